from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sabun.errors import ParameterError
from sabun.privacy.noise import Coin, normal, os_coin, rounded_gaussian, seeded_coin
from sabun.privacy.noise.spherical import _Point


class Rigged(Coin):
    """Gives chosen words first, then those of a seed."""

    private = False

    def __init__(self, *words: int) -> None:
        self._first, self._then = list(words), seeded_coin(5)

    def words(self, count: int) -> NDArray[np.uint64]:
        given, self._first = self._first[:count], self._first[count:]
        return np.concatenate([np.array(given, dtype=np.uint64), self._then.words(count - len(given))])


def by_intervals(variance: Fraction, count: int, seed: int) -> list[int]:
    """The same draws with every pair settled by intervals."""
    words = seeded_coin(seed).words(2 * count).reshape(count, 2)
    found: list[int] = []
    for pair in words.tolist():
        point = _Point(pair[0] >> 1, pair[1] >> 1, 63)
        settled = normal._settled(point, variance, seeded_coin(0))
        if settled is not None:
            found += [-m if word & 1 else m for m, word in zip(settled, pair, strict=True)]
    return found


@pytest.mark.parametrize("variance", [Fraction(1, 7), Fraction(10), Fraction(2**40, 3), Fraction(2**54)])
def test_floats_decide_as_intervals_do(variance: Fraction) -> None:
    drawn = normal._pairs(variance, 300, seeded_coin(8))
    assert drawn.tolist() == by_intervals(variance, 300, 8)


def test_noise_of_grid_size_is_mostly_settled_by_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[_Point] = []
    original = normal._settled

    def listener(point: _Point, variance: Fraction, coin: Coin) -> tuple[int, int] | None:
        asked.append(point)
        return original(point, variance, coin)

    monkeypatch.setattr(normal, "_settled", listener)
    assert rounded_gaussian(Fraction(2**54), coin=seeded_coin(1), size=100_000).dtype == np.int64
    assert len(asked) < 60  # about 50,000 pairs in 2**15
    asked.clear()
    rounded_gaussian(Fraction(2**90), coin=seeded_coin(1), size=100)
    assert len(asked) > 10


MIDDLE, RIM = 1 << 63, (1 << 64) - 1


@pytest.mark.parametrize("words", [(0, 0), (RIM, 0), (RIM, RIM), (MIDDLE, MIDDLE), (3, RIM - 1)])
def test_points_at_rim_and_centre_are_settled(words: tuple[int, int]) -> None:
    drawn = rounded_gaussian(Fraction(2**54), coin=Rigged(*words), size=9)
    assert drawn.shape == (9,)
    assert np.abs(drawn).max() < 2**27 * 12


def test_a_point_on_the_rim_with_its_unknown_bits_may_be_in_or_out() -> None:
    settled = [normal._settled(_Point((1 << 63) - 1, 0, 63), Fraction(1), seeded_coin(seed)) for seed in range(20)]
    assert set(settled) <= {None, (0, 0)}


def test_small_and_wrong_arguments() -> None:
    assert rounded_gaussian(1, coin=os_coin(), size=0).shape == (0,)
    assert isinstance(rounded_gaussian(10**6, coin=os_coin()), int)
    for wrong in (0, -1, 0.5):
        with pytest.raises(ParameterError, match="variance must be"):
            rounded_gaussian(wrong, coin=os_coin())  # type: ignore[call-overload]
