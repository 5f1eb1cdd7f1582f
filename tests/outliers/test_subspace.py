from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outliers import brute
from sabun.errors import DataError, ParameterError
from sabun.ledger import Ledger
from sabun.outliers import SubspaceChoice
from sabun.outliers.subspace import dampened_score, permute_and_flip
from sabun.privacy.noise import seeded_coin
from sabun.records import Schema, chunks

SIDES = {"first": ["x0"], "second": ["x1"]}


@pytest.mark.parametrize(
    ("domain", "n", "k"), [(brute.line(6), 4, 1), (brute.line(5), 5, 2), (brute.square(3), 4, 1), (brute.line(3), 3, 3)]
)
def test_the_dampened_score_moves_by_at_most_one(domain: Sequence[tuple[float, ...]], n: int, k: int) -> None:
    scores = {db: dampened_score(np.array(db), k=k, radius=1.0, cover="degeneracy") for db in brute.databases(domain, n)}
    moves = [abs(score - scores[other]) for db, score in scores.items() for other in brute.replaced(db, domain)]
    assert max(moves) <= 1
    assert k >= n or max(moves) > Fraction(1, 2)


def law(scores: Sequence[Fraction], epsilon: float) -> list[float]:
    """Probabilities of permute and flip, over all orders."""
    wins = [math.exp(epsilon * float(s - max(scores)) / 2) for s in scores]
    chances = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for place in order:
            chances[place] += left * wins[place] / len(orders)
            left *= 1 - wins[place]
    return chances


def test_permute_and_flip_keeps_epsilon_when_scores_move_by_one() -> None:
    grid = [Fraction(x, 2) for x in range(-2, 3)]
    base = (Fraction(0), Fraction(1), Fraction(3))
    for moves in itertools.product(grid, repeat=3):
        moved = [s + m for s, m in zip(base, moves, strict=True)]
        if max(abs(m) for m in moves) <= 1:
            assert max(abs(math.log(a / b)) for a, b in zip(law(base, 0.7), law(moved, 0.7), strict=True)) <= 0.7 + 1e-12


def test_permute_and_flip_draws_its_law() -> None:
    scores, coin = [Fraction(0), Fraction(1), Fraction(3)], seeded_coin(2)
    drawn = np.bincount([permute_and_flip(scores, epsilon=Fraction(1), coin=coin) for _ in range(4000)], minlength=3) / 4000
    assert np.abs(drawn - law(scores, 1.0)).max() < 0.03


def test_the_subspace_with_the_outliers_is_chosen() -> None:
    points = np.zeros((400, 2))
    points[:80, 1] = 100 * np.arange(80)
    made = SubspaceChoice(subspaces=SIDES, k=5, radius={"first": 1, "second": 2}, epsilon=60).fit(points)
    assert made.choice_ == "second"
    assert made.guarantee_.epsilon == 60
    assert set(made.release_.value) == {"choice"}


def test_bad_choices_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least two names"):
        SubspaceChoice(subspaces={"a": [0]}, radius=1, epsilon=1)
    with pytest.raises(ParameterError, match="radius must be a number"):
        SubspaceChoice(subspaces=SIDES, radius={"first": 1}, epsilon=1)
    with pytest.raises(ParameterError, match="columns must be a list"):
        SubspaceChoice(subspaces={"a": [0], "b": "x"}, radius=1, epsilon=1)
    with pytest.raises(DataError, match="at least one row"):
        SubspaceChoice(subspaces=SIDES, radius=1, epsilon=1).fit(np.zeros((0, 2)))


def test_a_choice_between_subspaces_reads_its_table_once(tmp_path: Path) -> None:
    schema = Schema.of_bounds({"a": (0, 1), "b": (0, 1)})
    sizes: list[int] = []

    def growing() -> Iterator[Any]:
        sizes.append(5 + len(sizes))
        return iter([np.zeros((sizes[-1], 2))])

    book = Ledger.create(tmp_path / "book.ledger", name="book", epsilon=9)
    model = SubspaceChoice(subspaces={"p": ["a"], "q": ["b"]}, k=1, radius=0.1, epsilon=1, schema=schema, ledger=book)
    model.fit(chunks(growing))
    assert sizes == [5]
    assert model.release_.provenance.parameters["records"] == 5
    pieces = (piece for piece in [np.zeros((5, 2)), np.zeros((4, 2))])
    assert model.fit(pieces).release_.provenance.parameters["records"] == 9
