"""Rooms whose statistic adds up give the same release from pieces; the others say that they need the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sabun.density import DensityRatio
from sabun.engine import spread
from sabun.errors import DataError
from sabun.ledger import Ledger
from sabun.outliers import OutlierCount, RegionCount
from sabun.records import Schema
from sabun.regression import PrivateRidge
from sabun.summaries import Histogram, Quantiles, Variance

BOUNDS = {"a": (0, 1), "b": (0, 1)}
SCHEMA = Schema.of_bounds(BOUNDS)
PUBLIC = np.random.default_rng(1).uniform(size=(120, 2))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rooms")
    rng = np.random.default_rng(0)
    for number in range(3):
        x = rng.uniform(size=(200, 2))
        columns = {"a": x[:, 0], "b": x[:, 1], "y": x @ [0.5, 0.2], "other": rng.normal(size=200)}
        parquet.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=64)
    return folder


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "variance": lambda source: Variance(column="a", epsilon=1, schema=SCHEMA, random_state=2).fit(source),
    "histogram": lambda source: Histogram(column="a", epsilon=1, schema=SCHEMA, random_state=2).fit(source),
    "quantiles": lambda source: Quantiles(column="a", epsilon=1, schema=SCHEMA, random_state=2).fit(source),
    "density": lambda source: DensityRatio(epsilon=1, schema=SCHEMA, random_state=2).fit(private=source, public=PUBLIC),
    "outliers": lambda source: OutlierCount(k=3, radius=0.05, epsilon=1, schema=SCHEMA, random_state=2).fit(source),
    "regression": lambda source: PrivateRidge(
        epsilon=1, delta=1e-6, x_bounds=BOUNDS, y_bounds={"y": (-1, 1)}, random_state=2
    ).fit(source),
}


def plain(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {name: plain(branch) for name, branch in tree.items()}
    return tree.tolist() if isinstance(tree, np.ndarray) else tree


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_release_from_pieces_is_that_of_the_table(name: str, table: Path) -> None:
    whole, pieces = (QUESTIONS[name](source).release_ for source in (table, spread(table)))
    assert plain(pieces.value) == plain(whole.value)
    assert pieces.provenance.parameters == whole.provenance.parameters


def test_a_room_that_needs_the_table_refuses_pieces_before_any_charge(table: Path, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", epsilon=1)
    halves = {"low": {"a": (None, 0.5)}, "high": {"a": (0.5, None)}}
    with pytest.raises(DataError, match="a table must be"):
        RegionCount(regions=halves, k=3, radius=0.1, epsilon=1, schema=SCHEMA, ledger=book).fit(spread(table))
    assert book.entries() == ()
