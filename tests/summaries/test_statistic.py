"""The exact sums: one row at a time, whatever its cells; the same in any order, in any pieces, from any kind of table."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sabun.asking import Part, Statistic, probe, state_of
from sabun.errors import DataError
from sabun.records import Column, NumberColumn, Schema, chunks
from sabun.summaries.histogram import Bins
from sabun.summaries.people import People
from sabun.summaries.ruler import Ruler, number
from sabun.summaries.sensitivity import of_cells, of_moments, of_sides, of_sizes, of_sums
from sabun.summaries.statistic import CellCounts, PowerSums, Tally

SCHEMA = Schema(columns=[Column.number("x", bounds=(-3, 7)), Column.category("g", ["a", "b"])])
ODD = (math.nan, math.inf, -math.inf, 1e308, -1e308, -0.0, 0.0, 5e-324, "", "?", None, "7", True, 10**400, object())
LABELS = ("a", "b", "A", None, "unknown", 3, math.nan)


def people(by: str | None = "g", where: Any = None) -> People:
    return People.of(SCHEMA, column="x", by=by, where=where)


def statistics() -> dict[str, Statistic[Any]]:
    ruler = Ruler.of(SCHEMA["x"])  # type: ignore[arg-type]
    return {
        "sums": PowerSums(people=people(), ruler=ruler),
        "sums where": PowerSums(people=people(None, {"g": "a", "x": (0, None)}), ruler=ruler),
        "marks": CellCounts(people=people(), cells=Ruler.of(SCHEMA["x"], bits=6)),  # type: ignore[arg-type]
        "bins": CellCounts(people=people(), cells=Bins.of(SCHEMA["x"], [-3, 0, 1, 7])),
    }


def rows(count: int, seed: int = 0) -> list[list[Any]]:
    rng = np.random.default_rng(seed)
    return [
        [ODD[rng.integers(len(ODD))] if rng.random() < 0.3 else rng.uniform(-9, 9), LABELS[rng.integers(7)]]
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", statistics())
def test_order_and_pieces_do_not_matter(name: str) -> None:
    statistic, table = statistics()[name], rows(300)
    whole = statistic.pack(state_of(statistic, table))
    assert statistic.pack(state_of(statistic, table[::-1])) == whole
    assert statistic.pack(state_of(statistic, chunks([table[:1], table[1:200], table[200:]]))) == whole
    left, right = Part.empty(statistic, pieces=2), Part.empty(statistic, pieces=2)
    both = right.with_piece(1, table[77:]).merged(left.with_piece(0, table[:77]))
    assert statistic.pack(both.whole()) == whole
    assert statistic.pack(statistic.unpack(whole)) == whole
    assert probe(statistic) == probe(statistic)


@pytest.mark.parametrize("name", statistics())
def test_bytes_of_something_else_are_refused(name: str) -> None:
    statistic = statistics()[name]
    for content in (b"", b"[]", b"[1,[2,3]]", b"{}", b"\xff", b"[1,[1,2,3],[1,2,3],[1,2,3]]"):
        with pytest.raises(DataError, match=r"sums must|counts must"):
            statistic.unpack(content)


def test_many_large_squares_do_not_wrap_around() -> None:
    schema = Schema.of_bounds({"x": (0, 1)})
    asked = People.of(schema, column="x", by=None, where=None)
    statistic = PowerSums(people=asked, ruler=Ruler.of(schema["x"]))  # type: ignore[arg-type]
    block = asked.sample()._replace(groups=np.zeros(200_000, dtype=np.int64), cells=np.ones(200_000))
    top = statistic.ruler.steps  # type: ignore[union-attr]
    state = statistic.zero()
    state = statistic.add(state, block)
    for _ in range(10):
        state = statistic.merge(state, state)
    n = 200_000 << 10
    assert state == Tally(n, ((n, n * top, n * top**2),))
    assert n * top**2 > 2**63
    assert 200_000 * top**2 > 2**53


def vectors(table: list[list[Any]], by: str | None, where: Any) -> dict[str, list[int]]:
    """The whole numbers that get noise, for each question."""
    asked = people(by, where)
    ruler = Ruler.of(SCHEMA["x"])  # type: ignore[arg-type]
    state = state_of(PowerSums(people=asked, ruler=ruler), table)
    width = ruler.steps
    cells = state_of(CellCounts(people=asked, cells=Bins.of(SCHEMA["x"], 4)), table)[:, :4]
    return {
        "sizes": [n for n, _, _ in state.groups],
        "sums": [n * ruler.first + s for n, s, _ in state.groups],
        "sides": [each for n, s, _ in state.groups for each in (s, n * width - s)],
        "moments": [e for n, s, q in state.groups for e in (q, 2 * (width * s - q), n * width**2 - 2 * width * s + q)],
        "cells": cells.ravel().tolist(),
    }


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("by", "where"), [("g", None), (None, {"x": (-1, 2)}), ("g", {"x": (None, 6.5)})])
def test_no_odd_neighbour_changes_more_than_is_stated(relation: str, by: str | None, where: Any) -> None:
    asked, ruler = people(by, where), Ruler.of(SCHEMA["x"])  # type: ignore[arg-type]
    stated = {
        "sizes": of_sizes(asked, relation),
        "sums": of_sums(asked, relation, ruler),
        "sides": of_sides(asked, relation, ruler),
        "moments": of_moments(asked, relation, ruler),
        "cells": of_cells(4 * len(asked.groups), relation),
    }
    base = rows(5, seed=3)
    odd = [[cell, label] for cell, label in itertools.product(ODD, LABELS)]
    tables = [vectors([*base, row], by, where) for row in odd]
    others = [vectors(base, by, where)] if relation == "add-remove" else tables
    for one, other in itertools.product(others, tables):
        for name, change in stated.items():
            moved = [a - b for a, b in zip(one[name], other[name], strict=True)]
            assert sum(map(abs, moved)) <= change.l1, name
            assert sum(each * each for each in moved) <= change.l2_squared, name


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, 1),
        (-1, 1),
        (0.1, 0.3),
        (1e15, 1e15 + 1),
        (1e308, 1.7e308),
        (0, 5e-324),
        (-8e307, 8e307),
        (1900, 2020),
        (-1e-300, 1e300),
    ],
)
def test_a_ruler_reads_every_cell_at_its_nearest_mark(low: float, high: float) -> None:
    column = Column.number("x", bounds=(low, high))
    ruler = Ruler.of(column)
    values = np.unique(np.clip(low + (high - low) * np.random.default_rng(0).uniform(0, 1, 200), low, high))
    values = np.concatenate([[low], values, [high]])
    marks = ruler.index(values)
    assert marks[0] == 0
    assert marks[-1] == ruler.steps
    assert (np.diff(marks) >= 0).all()
    for value, mark in zip(values.tolist(), marks.tolist(), strict=True):
        assert abs(ruler.at(mark) - Fraction(value)) <= ruler.step / 2
    assert 2**19 - 2 <= ruler.steps <= 2**20 + 1


def test_whole_numbers_are_on_marks() -> None:
    ruler = Ruler.of(Column.number("x", bounds=(-1000, 400_000)))
    values = np.arange(-1000, 400_001, 97.0)
    assert [ruler.at(int(mark)) for mark in ruler.index(values)] == [Fraction(value) for value in values.tolist()]


def test_a_resolution_gives_fewer_marks() -> None:
    column: NumberColumn = Column.number("x", bounds=(0, 100))
    assert Ruler.of(column, bits=16, resolution=1).steps == 100
    assert Ruler.of(column, bits=16, resolution=0.3).step == Fraction(1, 4)
    assert Ruler.of(column, bits=16, resolution=1e-9) == Ruler.of(column, bits=16)


def test_numbers_beyond_every_float_are_the_largest_float() -> None:
    assert number(Fraction(10) ** 400) == -number(-(Fraction(10) ** 400)) == math.nextafter(math.inf, 0)


def test_every_kind_of_table_gives_the_same_sums(tmp_path: Path) -> None:
    schema = Schema(columns=[Column.number("y", bounds=(0, 1)), *SCHEMA.columns])
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"y": rng.uniform(0, 1, 50), "g": rng.choice(["a", "b", "c"], 50), "x": rng.uniform(-5, 9, 50)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    statistic = PowerSums(people=People.of(schema, column="x", by="g", where=None), ruler=Ruler.of(SCHEMA["x"]))  # type: ignore[arg-type]
    states = [state_of(statistic, source) for source in (frame, frame[["y", "x", "g"]].to_numpy(), str(tmp_path / "t.csv"))]
    assert states[0] == states[1] == states[2]
    assert states[0].rows == 50


@pytest.mark.parametrize(("column", "value", "bin_"), [("x", -3.0, 0), ("x", 0.0, 1), ("x", 7.0, 2), ("x", 6.999, 2)])
def test_bins_hold_their_lower_edge_and_the_last_its_upper_one(column: str, value: float, bin_: int) -> None:
    assert Bins.of(SCHEMA[column], [-3, 0, 1, 7]).index(np.array([value])).tolist() == [bin_]
    assert Bins.of(SCHEMA["x"], [-2, 0, 1]).index(np.array([-3.0, -2.0, 1.0, 1.1])).tolist() == [-1, 0, 1, -1]
