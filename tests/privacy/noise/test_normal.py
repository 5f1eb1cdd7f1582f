from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sabun.errors import ParameterError
from sabun.privacy.noise import Coin, normal, os_coin, rounded_gaussian, rounded_gaussians, seeded_coin
from sabun.privacy.noise.spherical import _Point


class Rigged(Coin):
    """Gives chosen words first, then those of a seed."""

    private = False

    def __init__(self, *words: int) -> None:
        self._first, self._then = list(words), seeded_coin(5)

    def words(self, count: int) -> NDArray[np.uint64]:
        given, self._first = self._first[:count], self._first[count:]
        return np.concatenate([np.array(given, dtype=np.uint64), self._then.words(count - len(given))])


def by_intervals(variances: Iterator[Fraction], count: int, seed: int) -> list[int]:
    """The same draws with every pair settled by intervals."""
    words = seeded_coin(seed).words(2 * count).reshape(count, 2)
    found: list[int] = []
    for pair in words.tolist():
        point = _Point(pair[0] >> 1, pair[1] >> 1, 63)
        if normal._beside_rim(point, seeded_coin(0)) is not None:
            settled = normal._settled(point, [next(variances), next(variances)], seeded_coin(0))
            found += [-m if word & 1 else m for m, word in zip(settled, pair, strict=True)]
    return found


@pytest.mark.parametrize("variance", [Fraction(1, 7), Fraction(10), Fraction(2**40, 3), Fraction(2**54)])
def test_floats_decide_as_intervals_do(variance: Fraction) -> None:
    drawn = normal._pairs([variance], np.zeros((300, 2), dtype=np.int64), 300, seeded_coin(8))
    assert drawn.tolist() == by_intervals(itertools.repeat(variance), 300, 8)


def test_each_of_several_variances_has_its_own_draws() -> None:
    """An odd number of draws, so that a pair has two variances; a variance that only intervals can tell; none of one."""
    sizes = {Fraction(1, 7): 5, Fraction(2**54): 120, Fraction(2**130): 3, Fraction(3): 0, Fraction(10): 61}
    drawn = rounded_gaussians(list(sizes.items()), coin=seeded_coin(8))
    assert [len(part) for part in drawn] == list(sizes.values())
    wanted = by_intervals(
        itertools.chain(*(itertools.repeat(*part) for part in sizes.items()), itertools.repeat(Fraction(1))), 140, 8
    )
    wide = slice(125, 128)  # bits beyond those that the points have come from another coin here
    found = [int(one) for part in drawn for one in part]
    assert np.abs(np.array(found[wide]) - np.array(wanted[wide])).max() < 2**10
    assert max(map(abs, found[wide])) > 2**60
    assert found[:125] + found[128:] == wanted[:125] + wanted[128 : sum(sizes.values())]


def test_noise_of_grid_size_is_mostly_settled_by_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[_Point] = []
    original = normal._settled

    def listener(point: _Point, variances: Sequence[Fraction], coin: Coin) -> tuple[int, int]:
        asked.append(point)
        return original(point, variances, coin)

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
    found = [normal._beside_rim(_Point((1 << 63) - 1, 1 << 31, 63), seeded_coin(seed)) for seed in range(40)]
    assert None in found
    inside = [point for point in found if point is not None]
    assert inside
    assert {normal._settled(point, [Fraction(1)] * 2, seeded_coin(0)) for point in inside} == {(0, 0)}


def test_small_and_wrong_arguments() -> None:
    assert rounded_gaussian(1, coin=os_coin(), size=0).shape == (0,)
    assert isinstance(rounded_gaussian(10**6, coin=os_coin()), int)
    for wrong in (0, -1, 0.5):
        with pytest.raises(ParameterError, match="variance must be"):
            rounded_gaussian(wrong, coin=os_coin())  # type: ignore[call-overload]
