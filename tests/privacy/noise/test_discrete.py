from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.privacy.noise import discrete, discrete_gaussian, discrete_laplace, os_coin, seeded_coin

SCALES = [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(10**9 + 7, 10**6 + 3)]


@pytest.mark.parametrize("scale", SCALES)
def test_independent_digits_make_the_geometric_law(scale: Fraction) -> None:
    with mpmath.workprec(300):
        count, _ = discrete._digits(scale)
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        ones = [mpmath.mpf(discrete._digit((1 << j) / scale, 200)) / mpmath.mpf(2) ** 200 for j in range(count)]
        for g in range(min(1 << count, 40)):
            made = mpmath.mpf(1)
            for j, p in enumerate(ones):
                made *= p if g >> j & 1 else 1 - p
            assert mpmath.almosteq(made, (1 - q) * q**g / (1 - q ** (1 << count)), rel_eps=1e-50, abs_eps=mpmath.mpf(2) ** -190)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(1 << 200)])
def test_overflow_of_the_digits_is_rare(scale: Fraction) -> None:
    count, _ = discrete._digits(scale)
    assert (1 << count) / scale >= 16
    assert count == 0 or (1 << count - 1) / scale < 16


def test_tosses_are_read_as_nonzero_sign_digits() -> None:
    packed = np.array([[0b10110], [0b10101], [0b10111], [0b00001]], dtype=np.uint8)
    for wide in (False, True):
        numbers = discrete._signed(packed, np.array([0, 0, 2, 0]), 3, wide=wide)
        assert numbers.tolist() == [0, 6, -(6 + 2 * 8), 1]


@pytest.mark.parametrize("laps", [0, 255, 256, 1 << 40])
def test_a_draw_that_does_not_fit_becomes_a_python_int(laps: int) -> None:
    packed = np.array([[0b111, 0, 0, 0, 0, 0, 0]], dtype=np.uint8)
    numbers = discrete._signed(packed, np.array([laps]), 54, wide=False)
    assert numbers.tolist() == [-(2 + laps * (1 << 54))]
    assert numbers.dtype == (np.int64 if laps < 256 else object)


def test_every_lap_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([True, True, False])
    monkeypatch.setattr(discrete, "bernoulli_exp", lambda gamma, *, coin: next(answers))
    heads = np.array([[True, False, True, False, True]])
    assert discrete._from_tosses(Fraction(1, 4), 2, heads, os_coin()).tolist() == [2 + 3 * 4]


@pytest.mark.parametrize("variance", [Fraction(1, 20), Fraction(1), Fraction(22, 7), Fraction(10**6), Fraction(1 << 80)])
def test_the_fast_decision_is_the_exact_decision(variance: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = discrete_gaussian(variance, coin=seeded_coin(3), size=1500)
    monkeypatch.setattr(discrete, "_BAND", 1 << 31)
    exact = discrete_gaussian(variance, coin=seeded_coin(3), size=1500)
    assert fast.tolist() == exact.tolist()


def test_the_guess_stays_inside_its_band() -> None:
    gamma = np.concatenate([np.linspace(0, 16, 400_001), np.linspace(16, 60, 1001), np.geomspace(1e-12, 1, 1001)])
    wrong = np.abs(discrete._exp_guess(gamma) - np.exp(-gamma) * 2.0**31)
    assert wrong.max() < discrete._BAND / 2


@pytest.mark.parametrize(
    "variance", [Fraction(1, 10**30), Fraction(1, 7), Fraction(1), Fraction(63), Fraction(10**9, 3), Fraction(1 << 300)]
)
def test_the_centre_is_near_the_standard_deviation(variance: Fraction) -> None:
    centre = discrete._centre(variance)
    assert Fraction(3, 4) * variance < centre**2 <= variance


@pytest.mark.parametrize("exponent", [40, 49, 50, 62, 63, 64, 100, 200])
def test_large_scales_spread_as_they_should(exponent: int) -> None:
    scale = 1 << exponent
    laplace = discrete_laplace(scale, coin=seeded_coin(exponent), size=4000)
    gauss = discrete_gaussian(scale * scale, coin=seeded_coin(exponent), size=800)
    assert laplace.dtype == (np.int64 if exponent < 50 else object)
    assert abs(sum(abs(int(x)) for x in laplace) / 4000 / scale - 1) < 0.1
    assert abs(sum(int(x) ** 2 for x in gauss) / 800 / scale**2 - 1) < 0.25
    assert abs(sum(int(x) > 0 for x in laplace) / 4000 - 0.5) < 0.05
    assert len({int(x) % 1024 for x in laplace}) > 900, "low bits are drawn too"


def test_tiny_scales_give_zero() -> None:
    assert not discrete_laplace(Fraction(1, 10**6), coin=os_coin(), size=100).any()
    assert not discrete_gaussian(Fraction(1, 10**40), coin=os_coin(), size=100).any()


def test_awkward_denominators_stay_on_the_fast_path() -> None:
    variance = Fraction(10**40 + 1, 3 * 10**38 + 7)
    drawn = discrete_gaussian(variance, coin=seeded_coin(0), size=50_000)
    assert drawn.dtype == np.int64
    assert abs(drawn.var() / float(variance) - 1) < 0.05


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("size", [0, 1, 2, 8192, 8193, 20_000])
def test_the_array_has_the_asked_length(draw: Any, size: int) -> None:
    assert draw(3, coin=os_coin(), size=size).shape == (size,)
    assert type(draw(3, coin=os_coin())) is int
    assert type(draw(1 << 120, coin=os_coin())) is int


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_a_seed_repeats_the_draw(draw: Any) -> None:
    first, second = (draw(Fraction(9, 2), coin=seeded_coin(8), size=500) for _ in range(2))
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("bad", [0, -1, 0.5, float("inf"), "1", None, True, Fraction(-1, 2)])
def test_a_scale_must_be_exact_and_positive(bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"scale must be a Fraction or int > 0; got "):
        discrete_laplace(bad, coin=os_coin())
    with pytest.raises(ParameterError, match=r"sigma_squared must be a Fraction or int > 0; got "):
        discrete_gaussian(bad, coin=os_coin())


def test_a_coin_is_never_optional() -> None:
    with pytest.raises(TypeError, match="coin"):
        discrete_laplace(1)  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match=r"coin must be a coin; got 3\."):
        discrete_laplace(1, coin=3)  # type: ignore[call-overload]
