"""What a second review broke: charges that bought nothing, hidden cells, foreign types, a machine without a cache folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sabun.errors import DataError, ParameterError, SabunError
from sabun.ledger import Ledger
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice
from sabun.outliers.error_bar import ErrorBar
from sabun.records import Schema, chunks

NINE = np.zeros((9, 2))
ALMOST_SURE = 1 - Fraction(1, 10**30)
HALVES = {"left": {"x0": (None, 0)}, "right": {"x0": (0, None)}}


def book(folder: Path, relation: str = "replace-one") -> Ledger:
    return Ledger.create(folder / "book.ledger", name="book", relation=relation, epsilon="1e200", delta="0.5")


def count(ledger: Ledger | None = None, **changes: Any) -> OutlierCount:
    return OutlierCount(**({"k": 1, "radius": 1, "epsilon": 1, "ledger": ledger} | changes))


IMPOSSIBLE: list[tuple[str, Callable[[Ledger], object]]] = [
    (
        "epsilon must be from 1e-100",
        lambda book: count(book, epsilon="1e101", delta=1e-6, mechanism="global-gaussian").fit(NINE),
    ),
    ("confidence must be above 0 and below 1", lambda book: count(book, mechanism="global-laplace", confidence=ALMOST_SURE)),
    ("confidence must be above 0 and below 1", lambda book: count(book, confidence=10**400)),
    ("epsilon must be at least 1e-280 of beta", lambda book: count(book, error_bar="1e-320")),
    (
        "confidence must be above 0 and below 1",
        lambda book: RegionCount(regions=HALVES, k=1, radius=1, epsilon=1, confidence=ALMOST_SURE, ledger=book),
    ),
    (
        "epsilon must be at least 1e-280 of beta",
        lambda book: RegionCount(regions=HALVES, radius=1, epsilon=1, error_bar="1e-320"),
    ),
    ("a table must have at least one column", lambda book: count(book).fit(pd.DataFrame(index=range(5)))),
    ("a table must have at least one column", lambda book: count(book).fit(pa.table({}))),
    ("a table must have at least one column", lambda book: count(book).fit([[], []])),
    ("k must be at most 2147483648; got 9223372036854775808", lambda book: count(book, k=2**63)),
]


@pytest.mark.parametrize(("message", "release"), IMPOSSIBLE)
def test_what_public_facts_rule_out_costs_nothing(tmp_path: Path, message: str, release: Callable[[Ledger], object]) -> None:
    ledger = book(tmp_path)
    with pytest.raises(SabunError, match=message):
        release(ledger)
    assert ledger.spent.epsilon == 0
    assert ledger.entries() == ()


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_the_largest_k_is_drawn_for_every_table(tmp_path: Path, rows: int) -> None:
    ledger = book(tmp_path, "add-remove")
    for mechanism in ("global-laplace", "power"):
        model = count(ledger, k=2**31, mechanism=mechanism, relation="add-remove")
        assert model.fit(np.zeros((rows, 2))).count_ >= 0
    assert ledger.spent.epsilon == 2


def test_the_smallest_error_bar_that_is_taken_can_be_drawn() -> None:
    model = count(error_bar="1e-279", random_state=1, epsilon=5, beta=1).fit(NINE)
    assert model.interval_ is not None
    with pytest.raises(ParameterError, match="turn it off"):
        ErrorBar(epsilon=Fraction(1, 10**281), beta=Fraction(1))


def test_a_choice_between_subspaces_reads_its_table_once(tmp_path: Path) -> None:
    schema = Schema.of_bounds({"a": (0, 1), "b": (0, 1)})
    sizes: list[int] = []

    def growing() -> Iterator[Any]:
        sizes.append(5 + len(sizes))
        return iter([np.zeros((sizes[-1], 2))])

    model = SubspaceChoice(subspaces={"p": ["a"], "q": ["b"]}, k=1, radius=0.1, epsilon=1, schema=schema, ledger=book(tmp_path))
    model.fit(chunks(growing))
    assert sizes == [5]
    assert model.release_.provenance.parameters["records"] == 5
    pieces = (piece for piece in [np.zeros((5, 2)), np.zeros((4, 2))])
    assert model.fit(pieces).release_.provenance.parameters["records"] == 9


def test_what_a_mask_hides_is_not_counted() -> None:
    hidden = np.ma.MaskedArray([[0.0, 0.0], [5.0, 1.0]], mask=[[0, 0], [1, 0]])
    rows: list[object] = [hidden, np.ma.MaskedArray(np.zeros((2, 2)))]
    for table in rows:
        with pytest.raises(DataError, match=r"must have no mask; it has one\. Declare a schema"):
            count().fit(table)
    with pytest.raises(DataError, match="must hold numbers"):
        count().fit(list(hidden))
    assert count(schema=Schema.of_bounds([(0, 9), (0, 9)])).fit(hidden).count_ >= 0


@pytest.mark.parametrize("table", [[[True], [False]], [[True], [1]], [[1.5], [np.True_]], [[True], [2**70]]])
def test_a_boolean_is_no_number_whatever_stands_beside_it(table: object) -> None:
    with pytest.raises(DataError, match="must hold numbers; got cells of type object_"):
        count().fit(table)


class Hostile(type):
    def __hash__(cls) -> int:
        raise RuntimeError("private 42")

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("private 42")


class Cell(metaclass=Hostile):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("private 42")


def test_a_cell_of_a_hostile_type_is_asked_nothing() -> None:
    boxed = np.empty((2, 1), dtype=object)
    boxed[0, 0], boxed[1, 0] = Cell(), 1.0
    for table in ([[Cell()], [1.0]], [[1.0], Cell()], boxed):
        with pytest.raises(DataError, match="must hold numbers"):
            count().fit(table)


def test_a_machine_without_a_folder_for_machine_code_compiles_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import caching

    from sabun.outliers.compiled import compiled

    class Nowhere(caching._CacheLocator):  # type: ignore[misc]
        @classmethod
        def from_function(cls, function: object, path: object) -> None:
            return None

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [Nowhere])
    assert compiled(lambda x: x + 1)(1) == 2


def test_loops_that_cannot_be_loaded_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = book(tmp_path)
    for name in ("sabun.outliers.tree", "sabun.outliers.peeling"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delattr("sabun.outliers.tree", raising=False)
    monkeypatch.delattr("sabun.outliers.peeling", raising=False)
    models: list[Any] = [
        count(ledger),
        RegionCount(regions=HALVES, k=1, radius=1, epsilon=1, ledger=ledger),
        SubspaceChoice(subspaces={"p": [0], "q": [1]}, k=1, radius=1, epsilon=1, ledger=ledger),
    ]
    for model in models:
        with pytest.raises(ImportError):
            model.fit(NINE)
    assert ledger.spent.epsilon == 0
