"""What is ruled out is ruled out before the charge."""

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

from sabun.errors import SabunError, SimulatedError
from sabun.ledger import Ledger
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice
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


def test_a_seeded_coin_with_a_ledger_is_refused_before_a_row_is_read(tmp_path: Path) -> None:
    ledger = book(tmp_path)
    schema = Schema.of_bounds({"x0": (0, 1), "x1": (0, 1)})
    read: list[str] = []

    def rows() -> Iterator[Any]:
        read.append("a row")
        return iter([NINE])

    seeded: dict[str, Any] = {"k": 1, "radius": 1, "epsilon": 1, "schema": schema, "ledger": ledger, "random_state": 1}
    models: list[Any] = [
        OutlierCount(**seeded),
        RegionCount(regions={"left": {"x0": (None, 0.5)}}, **seeded),
        SubspaceChoice(subspaces={"p": ["x0"], "q": ["x1"]}, **seeded),
    ]
    for model in models:
        with pytest.raises(SimulatedError):
            model.fit(chunks(rows))
    assert read == []
    assert ledger.entries() == ()
