from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special

from sabun.errors import InternalError
from sabun.learning import gaussian
from sabun.learning.gaussian import grid_exponent, rounded_gaussian
from sabun.learning.stream import BATCH, NOISE, Stream
from sabun.privacy.noise import os_coin


def distance(values: np.ndarray, sigma: float) -> float:
    """Kolmogorov-Smirnov distance to the normal law."""
    ordered = np.sort(values)
    law = special.ndtr(ordered / sigma)
    return float(np.abs(law - (np.arange(len(ordered)) + 0.5) / len(ordered)).max())


@pytest.mark.parametrize("sigma", [0.7, 12.25])
def test_the_true_deviation_is_accepted_and_a_wrong_one_rejected(sigma: float) -> None:
    noise = rounded_gaussian(np.zeros(100_000), sigma=sigma, stream=Stream.fresh(os_coin()), step=0)
    critical = 2.9 / np.sqrt(len(noise))  # chance below 1e-7
    assert distance(noise, sigma) < critical
    assert distance(noise, sigma * 1.05) > critical
    assert distance(noise, sigma * 0.95) > critical


def test_coordinates_are_uncorrelated_within_and_across_pairs() -> None:
    noise = rounded_gaussian(np.zeros(200_000), sigma=1.0, stream=Stream.fresh(os_coin()), step=3)
    for lag in (1, 2):
        assert abs(np.corrcoef(noise[:-lag], noise[lag:])[0, 1]) < 0.015
    assert abs(np.corrcoef(noise[0::2] ** 2, noise[1::2] ** 2)[0, 1]) < 0.02


def test_every_output_is_a_multiple_of_the_public_grid() -> None:
    centre = np.random.default_rng(0).normal(size=999) * 7
    noisy = rounded_gaussian(centre, sigma=3.3, stream=Stream.fresh(os_coin()), step=1)
    steps = np.ldexp(noisy, -grid_exponent(3.3))
    assert (steps == np.rint(steps)).all()
    assert 2**10 <= 3.3 / 2.0 ** grid_exponent(3.3) < 2**11


def test_intervals_agree_with_floats_wherever_floats_decide() -> None:
    pairs = gaussian._Pairs(400, Stream(bytes(32)), 5)
    normals = np.concatenate([some for _, some in pairs])
    exponent = grid_exponent(2.5)
    for place in range(0, 800, 2):
        settled = pairs.settle(place, Fraction(7, 3).limit_denominator(1000), Fraction(5, 2), exponent)
        guess = (float(Fraction(7, 3).limit_denominator(1000)) + 2.5 * normals[place]) * 2.0**-exponent
        assert abs(settled - guess) <= 0.5 + 2.0**-18


def test_an_interval_encloses_the_normal_it_stands_for() -> None:
    for x, y in ((1 << 62, 1 << 61), (3, 1 << 62), (0, 5), ((1 << 63) - 5, 1)):
        low, high = gaussian._normal(gaussian._Point(x, y, 63), 0)
        with mpmath.workdps(80):
            square = (mpmath.mpf(x) ** 2 + mpmath.mpf(y) ** 2) / mpmath.mpf(2) ** 126
            exact = mpmath.mpf(x) / mpmath.mpf(2) ** 63 * mpmath.sqrt(-2 * mpmath.log(square) / square)
            assert mpmath.mpf(str(low)) <= exact <= mpmath.mpf(str(high))


def test_a_point_at_the_edge_of_the_disc_is_decided_by_further_bits() -> None:
    unit = 1 << 63
    inside = gaussian._exactly_placed(gaussian._Point(unit // 2, unit // 2, 63), os_coin())
    assert inside is not None
    assert gaussian._exactly_placed(gaussian._Point(unit, 0, 63), os_coin()) is None
    edge = gaussian._exactly_placed(gaussian._Point(unit - 1, 1 << 31, 63), os_coin())
    assert edge is None or edge.bits > 63


class Rigged:
    """A stream whose first points lie at the edge and at the centre of the disc."""

    def __init__(self) -> None:
        self._inner = Stream(bytes(32))

    def coin(self, purpose: int, step: int) -> object:
        if purpose != NOISE:
            return self._inner.coin(purpose, step)
        rest = self._inner.coin(purpose, step)
        first = np.array([[2**63 - 2, 2], [3, 5], [2**62, 2**61]], dtype=np.uint64)

        class Coin:
            def words(self, count: int) -> np.ndarray:
                words = rest.words(count).copy()
                words[:6] = first.ravel()
                return words

        return Coin()


def test_rare_points_are_settled_and_not_guessed() -> None:
    noise = rounded_gaussian(np.zeros(40), sigma=1.0, stream=Rigged(), step=0)  # type: ignore[arg-type]
    assert np.isfinite(noise).all()


def test_huge_centres_are_rounded_exactly() -> None:
    noise = rounded_gaussian(np.full(11, 2.0**45), sigma=1.0, stream=Stream(bytes(32)), step=0)
    assert (np.abs(noise - 2.0**45) < 12).all()


def test_the_same_key_and_step_replay_and_others_do_not() -> None:
    stream, centre = Stream(bytes(range(32))), np.linspace(-1, 1, 50)
    first = rounded_gaussian(centre, sigma=2.0, stream=stream, step=9)
    assert (first == rounded_gaussian(centre, sigma=2.0, stream=Stream(bytes(range(32))), step=9)).all()
    assert (first != rounded_gaussian(centre, sigma=2.0, stream=stream, step=10)).any()
    assert (stream.words(BATCH, 9, 8) != stream.words(NOISE, 9, 8)).any()


def test_a_stream_hides_its_key_and_needs_a_whole_one() -> None:
    assert "hidden" in repr(Stream(bytes(32)))
    with pytest.raises(InternalError, match="a stream's key has 32 bytes"):
        Stream(b"short")
