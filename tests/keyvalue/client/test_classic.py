from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from sabun.keyvalue.client import (
    ClientError,
    Harmony,
    RandomizedResponse,
)
from sabun.keyvalue.client.bounds import exp_down

SIZE = 1 << 64


@pytest.mark.parametrize("categories", [2, 3, 50])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5), Fraction(200)])
def test_randomized_response_keeps_its_promise(categories: int, epsilon: Fraction) -> None:
    response = RandomizedResponse(categories=tuple(map(str, range(categories))), epsilon=epsilon)
    assert Fraction(response.keep, response.each) <= exp_down(min(epsilon, Fraction(100)))
    assert response.keep + (categories - 1) * response.each == SIZE


def test_randomized_response_reaches_every_other_category_equally() -> None:
    response = RandomizedResponse(categories=("a", "b", "c", "d"), epsilon=1)
    starts = [response.keep + i * response.each for i in range(3)]
    assert [response.answer_of(1, word) for word in (0, response.keep - 1, *starts, SIZE - 1)] == [1, 1, 0, 2, 3, 3]


def test_frequencies_of_expected_counts_are_the_truth() -> None:
    response = RandomizedResponse(categories=("a", "b", "c"), epsilon=2)
    p, q = response.keep / SIZE, response.each / SIZE
    truth, n = (0.7, 0.2, 0.1), 10**9
    counts = [round(n * (q + share * (p - q))) for share in truth]
    assert response.frequencies(counts) == pytest.approx(truth, abs=1e-6)


def test_two_categories_are_warners_estimator() -> None:
    response = RandomizedResponse(categories=("yes", "no"), epsilon=1)
    p = math.e / (math.e + 1)
    assert response.frequencies([600, 400])[0] == pytest.approx((0.6 - (1 - p)) / (2 * p - 1))


def test_answers_follow_the_law() -> None:
    response = RandomizedResponse(categories=("yes", "no"), epsilon=1)
    found = Counter(response.answer("yes") for _ in range(20_000))
    assert abs(found[0] - 20_000 * math.e / (math.e + 1)) < 400


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_harmony_keeps_its_promise(epsilon: Fraction) -> None:
    harmony = Harmony(epsilon=epsilon)
    assert Fraction(harmony.keep, SIZE - harmony.keep) <= exp_down(epsilon)
    assert (harmony.answer_of(1, 0), harmony.answer_of(1, SIZE - 1), harmony.answer_of(2, SIZE - 1)) == (1, 2, 1)


def test_harmony_needs_its_constant() -> None:
    """The paper's (m1 - m2)/n leaves out C = (E+1)/(E-1)."""
    n, truth = 10**9, 0.3
    p = math.e / (math.e + 1)
    plus = round(n * ((1 + truth) / 2 * p + (1 - truth) / 2 * (1 - p)))
    assert Harmony(epsilon=1).mean(plus, n - plus) == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf, 2.0, "x", None])
def test_harmony_answers_whatever_it_is_given(value: Any) -> None:
    assert Harmony(epsilon=1).answer(value) in (1, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomizedResponse(categories=("a",), epsilon=1), "categories must be at least two distinct words"),
        (lambda: RandomizedResponse(categories=("a", "b"), epsilon=0), "epsilon must be finite and > 0; got 0"),
        (lambda: Harmony(epsilon=math.inf), "epsilon must be finite and > 0; got inf"),
        (lambda: Harmony(epsilon=Fraction(1, 10**30)), "epsilon must be large enough to leave a trace"),
        (lambda: RandomizedResponse(categories=("a", "b"), epsilon=1).answer("c"), "category must be one of the public list"),
        (lambda: RandomizedResponse(categories=("a", "b"), epsilon=1).frequencies([1]), "counts must be one count >= 0"),
        (lambda: Harmony(epsilon=1).mean(0, 0), "plus must be a count >= 0, with some answers at all"),
    ],
)
def test_bad_parameters_are_named(call: Any, message: str) -> None:
    with pytest.raises(ClientError, match=message):
        call()


class OddNumber(float):
    def __float__(self) -> float:
        raise RuntimeError


@pytest.mark.parametrize("value", [10**400, Fraction(10**400), OddNumber(0.5), float("nan"), "x", None, 1j])
def test_harmony_answers_odd_numbers_too(value: Any) -> None:
    assert Harmony(epsilon=Fraction(1)).answer(value) in (1, 2)


@pytest.mark.parametrize("categories", [["a", ["b"]], [1, 2], "ab", ["a"]])
def test_categories_are_words(categories: Any) -> None:
    with pytest.raises(ClientError, match="categories must be at least two distinct words"):
        RandomizedResponse(categories=categories, epsilon=Fraction(1))
