"""Certified arithmetic: numbers enclose the truth, whatever the thread's decimal context."""

from __future__ import annotations

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sabun.outliers import OutlierCount, RegionCount
from sabun.outliers.enclosures import Arithmetic, Interval, Uniform, settle
from sabun.outliers.laws import Gaussian, Laplace, Law, PowerTail
from sabun.outliers.vector import PowerVector
from sabun.privacy.noise import seeded_coin


class Fixed(Uniform):
    """A uniform number with given first digits."""

    def __init__(self, prefix: int) -> None:
        super().__init__(seeded_coin(0))
        self._prefix = prefix


def as_mpf(value: Decimal) -> mpmath.mpf:
    exact = Fraction(value)
    return mpmath.mpf(exact.numerator) / exact.denominator


@pytest.mark.parametrize("digits", [2, 28, 200])
@pytest.mark.parametrize("prefix", [0x123456789ABCDEF0123456789ABCDEF0, 1, (1 << 128) - 2, 1 << 127])
def test_logarithms_enclose_the_truth_at_sixty_digits_under_every_decimal_context(digits: int, prefix: int) -> None:
    with decimal.localcontext(prec=digits), mpmath.workdps(120):
        reals = Arithmetic(60)
        x = reals.uniform(Fixed(prefix))
        found = reals.minus_log(x)
        assert as_mpf(found.low) <= -mpmath.log(as_mpf(x.high))
        assert as_mpf(found.high) >= -mpmath.log(as_mpf(x.low))
        point = reals.minus_log(Interval(x.low, x.low))
        assert as_mpf(point.high) - as_mpf(point.low) <= mpmath.mpf(10) ** -57 * (1 + as_mpf(point.high))


@pytest.mark.parametrize(
    "law",
    [
        PowerTail(epsilon=Fraction(7, 10), beta=Fraction(14, 100)),
        Laplace(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
        Gaussian(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
    ],
)
def test_draws_do_not_depend_on_the_decimal_context_of_the_thread(law: Law) -> None:
    def draws() -> list[int]:
        coin = seeded_coin(5)
        return [law.draw(Fraction(39_000, 7), coin=coin) for _ in range(60)]

    usual = draws()
    assert len(set(usual)) > 50
    for precision, rounding in itertools.product((1, 3, 28), (decimal.ROUND_UP, decimal.ROUND_DOWN)):
        with decimal.localcontext(prec=precision, rounding=rounding):
            assert draws() == usual


def test_whole_releases_do_not_depend_on_the_decimal_context_either() -> None:
    points = np.random.default_rng(1).normal(size=(80, 2))
    halves = {"left": {"x0": (None, 0)}, "right": {"x0": (0, None)}}

    def released() -> list[object]:
        made = OutlierCount(k=3, radius=0.5, epsilon=1, random_state=3).fit(points)
        regions = RegionCount(regions=halves, k=3, radius=0.5, epsilon=1, random_state=3).fit(points)
        vector = PowerVector.of(epsilon=Fraction(1), outputs=3, beta=None).draw(Fraction(7, 3), coin=seeded_coin(2))
        return [made.count_, made.interval_, regions.counts_, regions.intervals_, vector]

    usual = released()
    with decimal.localcontext(prec=3):
        assert released() == usual


SURE = Interval(Decimal("6.6"), Decimal("7.4"))


def test_a_draw_is_settled_only_once_both_ends_round_alike() -> None:
    """Whichever end rounds otherwise: more digits are drawn of every number, until none is left to chance."""
    for wide in (Interval(Decimal("2.4"), Decimal("2.6")), Interval(Decimal("1.4"), Decimal("2.4"))):
        drawn, waiting = [Uniform(seeded_coin(seed)) for seed in (1, 2)], [[wide, SURE], [SURE, wide], [SURE, SURE]]
        before = [uniform.ends()[2] for uniform in drawn]
        assert settle(drawn, lambda _, waiting=waiting: waiting.pop(0)) == [7, 7]
        assert all(uniform.ends()[2] > unit for uniform, unit in zip(drawn, before, strict=True))
