from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabun import Guarantee
from sabun.reports.words import guess, guess_sentence, number, promise, shown


@given(st.floats(0.001, 12), st.floats(0, 0.5))
def test_the_guess_is_not_below_the_bound(epsilon: float, delta: float) -> None:
    """The bound of Kairouz, Oh and Viswanath for two worlds and a fair coin."""
    exact = 100 * (math.exp(epsilon) + delta) / (math.exp(epsilon) + 1)
    shown_bound = guess(Fraction(epsilon), Fraction(delta))
    assert shown_bound is not None
    assert exact - 1e-6 <= shown_bound <= exact + 0.1 + 1e-6


def test_randomised_response_reaches_the_guess() -> None:
    """Answering truthfully with probability 3/4 is ln 3-DP, and its reader is right 75 % of the time."""
    assert guess(Fraction("1.0986122886681098"), Fraction(0)) == pytest.approx(75.0, abs=0.11)


@pytest.mark.parametrize(("epsilon", "percent"), [(0, 50.0), (50, 100.0), (701, None), (math.inf, None)])
def test_extremes_of_the_guess(epsilon: float, percent: float | None) -> None:
    assert guess(Fraction(epsilon) if math.isfinite(epsilon) else epsilon, Fraction(0)) == percent


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("replace-one", "guesses which of two equally likely patients the rest belongs to"),
        ("add-remove", "guesses whether one patient's was used at all"),
        ("local", "sees one patient's own answers"),
    ],
)
def test_the_guess_speaks_of_the_relation(relation: str, words: str) -> None:
    model = "local" if relation == "local" else "central"
    assert words in guess_sentence(Guarantee(epsilon=1, relation=relation, model=model, unit="patient"))


def test_a_local_promise_holds_against_the_collector() -> None:
    lines = promise(Guarantee(epsilon=1, relation="local", model="local", unit="person"))
    assert any("holds against the collector as well" in line for line in lines)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "yes"),
        (None, "none"),
        (1234, "1,234"),
        (0.000012345, "1.234e-05"),
        (-math.inf, "−∞"),
        (Fraction(-1, 3), "−0.333334"),
        ((1, 2), "1, 2"),
        ((), "nothing"),
        (tuple(range(20)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … (20 in all)"),
        (np.zeros((3, 4)), "array of 3 × 4"),
        (np.arange(3), "0, 1, 2"),
        ({"a": 1}, "a: 1"),
        (object(), "object"),
    ],
)
def test_anything_in_few_words(value: object, words: str) -> None:
    assert shown(value) == words


@given(st.floats(-1e300, 1e300))
def test_a_number_reads_back_nearly(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=1e-3, abs=1e-300)


@pytest.mark.parametrize(("epsilon", "weak"), [(0.1, False), (2.9, False), (3, True), (50, True), (800, True)])
def test_a_weak_promise_is_called_weak(epsilon: float, weak: bool) -> None:
    first = promise(Guarantee(epsilon=epsilon, unit="patient"))[0]
    assert first.startswith("This promise is weak") == weak
