from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sabun import checks, errors


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (lambda v: checks.positive(epsilon=v), -1.0, "epsilon must be finite and > 0; got -1.0."),
        (lambda v: checks.positive(epsilon=v), math.inf, "epsilon must be finite and > 0; got inf."),
        (lambda v: checks.positive(epsilon=v), True, "epsilon must be finite and > 0; got True."),
        (lambda v: checks.positive(epsilon=v), "1", "epsilon must be finite and > 0; got '1'."),
        (lambda v: checks.non_negative(beta=v), -0.1, "beta must be finite and >= 0; got -0.1."),
        (lambda v: checks.probability(delta=v), 1, "delta must be at least 0 and below 1; got 1."),
        (lambda v: checks.whole(minimum=1, k=v), 0, "k must be a whole number >= 1; got 0."),
        (lambda v: checks.whole(minimum=1, k=v), True, "k must be a whole number >= 1; got True."),
        (lambda v: checks.whole(minimum=1, k=v), 2.0, "k must be a whole number >= 1; got 2.0."),
        (lambda v: checks.boolean(flag=v), 1, "flag must be True or False; got 1."),
        (lambda v: checks.text(name=v), "", "name must be a non-empty string; got ''."),
        (lambda v: checks.one_of(("a", "b"), method=v), "c", "method must be one of 'a', 'b'; got 'c'."),
    ],
)
def test_the_message_has_name_rule_and_value(check, value, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(errors.ParameterError) as caught:
        check(value)
    assert str(caught.value) == message


def test_a_number_too_long_to_print_is_refused_in_words() -> None:
    for number in (10**5000, Fraction(10**5000), Fraction(10**400)):
        with pytest.raises(
            errors.ParameterError, match=r"epsilon must be finite and > 0; got (a number too long to print|10+)\."
        ):
            checks.positive(epsilon=number)
    with pytest.raises(errors.ParameterError, match="k must be a whole number >= 1; got a number too long to print"):
        checks.whole(minimum=1, k=-(10**5000))


def test_errors_know_their_exit_code_and_kind() -> None:
    assert {kind.__name__: kind.exit_code for kind in _all(errors.SabunError) if kind.__module__ == "sabun.errors"} == {
        "SabunError": 70,
        "ParameterError": 2,
        "BoundsError": 2,
        "IncompatibleGuarantees": 2,
        "VacuousPlan": 2,
        "SimulatedError": 2,
        "MissingExtra": 2,
        "BudgetExceeded": 3,
        "DataError": 4,
        "ReleaseError": 4,
        "LedgerError": 4,
        "InternalError": 70,
    }
    assert issubclass(errors.ParameterError, ValueError)
    assert issubclass(errors.DataError, ValueError)


def test_a_missing_extra_says_how_to_install_it() -> None:
    missing = errors.MissingExtra(job="learning", package="torch", extra="learning")
    assert str(missing) == "learning needs torch. Install it with: pip install 'sabun[learning]'"


def test_our_fault_and_yours_never_look_alike() -> None:
    assert "please report it" in str(errors.InternalError("a counter went backwards."))


def _all(kind: type[errors.SabunError]) -> list[type[errors.SabunError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _all(child))]


def test_an_exact_amount_is_shown_as_a_person_writes_it() -> None:
    with pytest.raises(errors.ParameterError, match=r"epsilon must be finite and > 0; got -1/3\."):
        checks.positive(epsilon=Fraction(-1, 3))


def test_a_message_stays_short_whatever_was_given():
    with pytest.raises(errors.ParameterError) as caught:
        checks.positive(epsilon="x" * 10**6)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("wieght", "Did you mean 'weight'?"),
        ("ＷＥＩＧＨＴ", "Did you mean 'weight'?"),
        ("患者年令", "Did you mean '患者年齢'?"),
        ("sex", ""),
        ("weight" * 10**6, ""),
        (7, ""),
    ],
)
def test_a_name_that_is_near_is_suggested(typed: object, words: str) -> None:
    assert checks.meant(typed, ["age", "weight", "患者年齢"]) == words
    with pytest.raises(errors.ParameterError) as caught:
        checks.column(["age", "weight", "患者年齢"], column=typed)
    assert str(caught.value).endswith(words or "Choose one of 'age', 'weight', '患者年齢'.")
    assert str(caught.value).startswith("column must be a declared column; got ")


ODD: tuple[object, ...] = (
    *(math.nan, math.inf, -math.inf, -1, -1e-300, 0, 0.0, 1e-300, 0.5, math.nextafter(1, 0), 1, 1.0, 2, 10**400, -(10**400)),
    *(Fraction(1, 3), Fraction(1), Fraction(10**400), np.float64(0.5), np.float64(math.inf), np.int64(3), np.bool_(True)),
    *(True, False, None, "", " ", "a", "1", b"a", 1j, [], (1,)),
)
FINITE = [
    value for value in ODD if type(value) in (int, float, Fraction, np.float64, np.int64) and -(10**300) < value < 10**300
]  # type: ignore[operator]
WHOLE = [value for value in ODD if type(value) in (int, np.int64)]
TAKEN: dict[str, tuple[Callable[[Any], None], list[Any]]] = {
    "positive": (lambda value: checks.positive(x=value), [value for value in FINITE if value > 0]),  # type: ignore[operator]
    "non_negative": (lambda value: checks.non_negative(x=value), [value for value in FINITE if value >= 0]),  # type: ignore[operator]
    "probability": (lambda value: checks.probability(x=value), [value for value in FINITE if 0 <= value < 1]),  # type: ignore[operator]
    "whole": (lambda value: checks.whole(minimum=1, x=value), [value for value in WHOLE if value >= 1]),  # type: ignore[operator]
    "boolean": (lambda value: checks.boolean(x=value), [True, False]),
    "text": (lambda value: checks.text(x=value), ["a", "1"]),
    "one_of": (lambda value: checks.one_of(("a", "b"), x=value), ["a"]),
    "column": (lambda value: checks.column(("a", "b"), x=value), ["a"]),
}
"""Each rule with the values, of all odd ones, that it takes; written out from its own sentence."""


@pytest.mark.parametrize("rule", TAKEN)
def test_a_rule_takes_what_it_says_and_nothing_else(rule: str) -> None:
    check, wanted = TAKEN[rule]
    for value in ODD:
        good = any(value is one for one in wanted)
        try:
            check(value)
        except errors.ParameterError:
            assert not good, value
        else:
            assert good, value


def test_every_rule_about_one_value_is_tried() -> None:
    rules = {name for name in checks.__all__ if inspect.isfunction(getattr(checks, name))}
    assert rules - TAKEN.keys() == {"require", "meant", "offered", "in_earnest"}
