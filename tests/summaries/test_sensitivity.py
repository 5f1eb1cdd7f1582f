"""Every pair of neighbouring tiny tables, by enumeration: no change is larger than stated, and some pair reaches it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest

from sabun.records import Column, Schema
from sabun.summaries.people import People
from sabun.summaries.ruler import Ruler
from sabun.summaries.sensitivity import Change, cost_of_ranks, of_cells, of_moments, of_sides, of_sizes, of_sums

Row = tuple[int, int]
"""A group (-1: nobody) with a mark."""


def people(groups: int, *, condition: bool = True) -> People:
    labels = [Column.category("g", [str(i) for i in range(groups)])] if groups > 1 else []
    schema = Schema(columns=[Column.number("x", bounds=(0, 1)), *labels])
    return People.of(schema, column="x", by="g" if groups > 1 else None, where={"x": (0, None)} if condition else None)


def ruler(first: int, steps: int) -> Ruler:
    return Ruler(exponent=0, first=first, steps=steps)


def steps_of(relation: str, rows: list[Row]) -> Iterator[tuple[list[Row], list[Row]]]:
    """What leaves and what comes in a neighbour step; the other rows cancel in sums."""
    if relation == "add-remove":
        yield from (([], [row]) for row in rows)
    else:
        yield from (([one], [other]) for one, other in itertools.product(rows, repeat=2))


def worst(relation: str, groups: int, nobody: bool, steps: int, of_row: Callable[[int], list[int]]) -> Change:
    rows = list(itertools.product(range(-1 if nobody else 0, groups), range(steps + 1)))
    l1 = l2 = 0
    for gone, come in steps_of(relation, rows):
        change = [[0] * len(of_row(0)) for _ in range(groups)]
        for sign, moved in ((-1, gone), (1, come)):
            for group, mark in moved:
                if group >= 0:
                    change[group] = [a + sign * b for a, b in zip(change[group], of_row(mark), strict=True)]
        flat = [each for line in change for each in line]
        l1, l2 = max(l1, sum(map(abs, flat))), max(l2, sum(each * each for each in flat))
    return Change(Fraction(l1), Fraction(l2))


RELATIONS = ("replace-one", "add-remove")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_sizes(relation: str, groups: int) -> None:
    assert of_sizes(people(groups), relation) == worst(relation, groups, True, 1, lambda mark: [1])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("cells", [1, 2, 5])
def test_cells(relation: str, cells: int) -> None:
    assert of_cells(cells, relation) == worst(relation, cells, True, 0, lambda mark: [1])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("first", [-9, -6, -3, 0, 2])
def test_sums(relation: str, groups: int, first: int) -> None:
    stated = of_sums(people(groups), relation, ruler(first, 6))
    assert stated == worst(relation, groups, True, 6, lambda mark: [first + mark])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("groups", [1, 2])
def test_two_sides(relation: str, groups: int) -> None:
    assert of_sides(people(groups), relation, ruler(5, 6)) == worst(relation, groups, True, 6, lambda k: [k, 6 - k])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("groups", [1, 2])
def test_three_moments(relation: str, groups: int) -> None:
    stated = of_moments(people(groups), relation, ruler(5, 6))
    assert stated == worst(relation, groups, True, 6, lambda k: [k * k, 2 * k * (6 - k), (6 - k) ** 2])


def test_everybody_of_a_public_size() -> None:
    whole = people(1, condition=False)
    assert of_sums(whole, "replace-one", ruler(50, 6)) == worst("replace-one", 1, False, 6, lambda k: [k])
    assert of_sides(whole, "replace-one", ruler(50, 6)) == worst("replace-one", 1, False, 6, lambda k: [k])
    for width in (4, 8, 12):  # z' = -1/2 is a mark
        found = worst("replace-one", 1, False, width, lambda k, width=width: [width * (2 * k - width), (2 * k - width) ** 2])
        assert of_moments(whole, "replace-one", ruler(50, width)) == found
    odd = worst("replace-one", 1, False, 7, lambda k: [7 * (2 * k - 7), (2 * k - 7) ** 2])
    stated = of_moments(whole, "replace-one", ruler(50, 7))
    assert Fraction(99, 100) * stated.l1 < odd.l1 <= stated.l1
    assert odd.l2_squared == stated.l2_squared


def cost(cells: list[int], mark: int, share: Fraction) -> Fraction:
    """By the definition: the distance between q n and the ranks of a mark; outer marks reach beyond."""
    rank, below, upto = share * sum(cells), Fraction(sum(cells[:mark])), Fraction(sum(cells[: mark + 1]))
    if mark == 0:
        below = min(below, rank)
    if mark == len(cells) - 1:
        upto = max(upto, rank)
    return max(Fraction(0), below - rank, rank - upto)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
def test_ranks(relation: str, groups: int, share: Fraction) -> None:
    marks, found = 4, Fraction(0)
    rows = list(itertools.product(range(-1, groups), range(marks)))
    for table in itertools.combinations_with_replacement(rows, 4 - groups):
        for gone, come in steps_of(relation, rows):
            if gone and gone[0] not in table:
                continue
            after = list(table)
            for row in gone:
                after.remove(row)
            after += come
            moved = Fraction(0)
            for group in range(groups):
                one, other = ([sum(row == (group, mark) for row in side) for mark in range(marks)] for side in (table, after))
                moved += max(abs(cost(one, mark, share) - cost(other, mark, share)) for mark in range(marks))
            found = max(found, moved)
    stated = cost_of_ranks(people(groups), relation, share)
    assert stated * Fraction(3, 4) <= found <= stated
