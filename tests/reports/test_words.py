from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabun import Guarantee
from sabun.telling.words import guess, guess_sentence, number, promise, shown


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
        ("replace-one", "that one patient's data are one of two possibilities, guesses which it is"),
        ("add-remove", "guesses whether one patient's data were used at all"),
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


@pytest.mark.parametrize(
    ("epsilon", "delta", "words"),
    [
        (0.1, 0, "Very strong protection"),
        (0.11, 0, "Strong protection"),
        (0.5, "1e-6", "Strong protection"),
        (0.51, 0, "Moderate protection"),
        (1, "1e-6", "Moderate protection"),
        (1.1, 0, "Weak protection"),
        (3, 0, "Weak protection"),
        (3.1, 0, "Hardly any protection"),
        (10.1, 0, "Hardly any protection"),
        (800, 0, "Hardly any protection"),
        (0.1, "0.001", "Weak protection"),
        (20, "0.5", "Hardly any protection"),
        (0.1, "0.5", "Weak protection"),
        (0.1, "0.95", "Hardly any protection"),  # the best guesser is right 97.6 % of the time
        (2.9, "0.5", "Hardly any protection"),
    ],
)
def test_a_promise_is_called_as_strong_as_it_is(epsilon: float, delta: float | str, words: str) -> None:
    first = promise(Guarantee(epsilon=epsilon, delta=delta, unit="patient"))[0]
    assert first.startswith(f"{words}: ")
    assert first.endswith(" a single patient." if words.split()[0] in ("Moderate", "Weak", "Hardly") else "from this result.")


@given(st.floats(1e-6, 19.9))
def test_the_factor_is_never_rounded_down(epsilon: float) -> None:
    line = promise(Guarantee(epsilon=epsilon))[1]
    found = re.search(r"more than ([\d.,]+) \(rounded up\) times", line)
    assert found is not None
    assert math.exp(epsilon) <= float(found[1].replace(",", "")) * (1 + 1e-12) <= 1.0101 * math.exp(epsilon)
