"""The laws every private method leans on: one record changes one row, and no cell can be told by a failure."""

from __future__ import annotations

import csv
import datetime
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.records import Column, Schema, chunks, open_source, read

SCHEMA = Schema(
    columns=[
        Column.number("a", lower=-1.5, upper=7, missing=0.25),
        Column.category("b", ["x", "1", "true"], missing="1"),
        Column.number("c", lower=0, upper=1e6, log1p=True),
        Column.category("d", ["x", "y"]),
    ]
)
LOWER = [-1.5, 0, 0, -1]
UPPER = [7, 2, 1e6, 1]

anything: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.fractions(),
    st.text(max_size=6),
    st.text(alphabet=st.characters(), max_size=3),
    st.sampled_from(["x", "1", "true", "y", " 2", "1e999", "-inf", "nan", "", "1.0", "\ud800", "\x00", 10**400, 5e-324, -0.0]),
    st.binary(max_size=3),
    st.dates(),
    st.complex_numbers(),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.just(np.datetime64("2020-01-01")),
    st.lists(st.integers(), max_size=2),
)
record = st.tuples(anything, anything, anything, anything)


def as_objects(rows: list[tuple[Any, ...]]) -> np.ndarray:
    result = np.empty((len(rows), 4), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            result[i, j] = cell
    return result


def as_frame(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    cells = as_objects(rows)
    return pd.DataFrame({name: pd.Series(cells[:, j], dtype=object) for j, name in enumerate(SCHEMA.names)})


@given(st.lists(record, min_size=1, max_size=6), record, st.data())
@settings(max_examples=150, deadline=None)
def test_one_record_changes_one_row_and_nothing_raises(
    rows: list[tuple[Any, ...]], other: tuple[Any, ...], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    neighbour = [*rows[:place], other, *rows[place + 1 :]]
    for kind in (as_objects, as_frame):
        one, two = read(kind(rows), schema=SCHEMA), read(kind(neighbour), schema=SCHEMA)
        assert one.shape == two.shape == (len(rows), 4)
        others = np.arange(len(rows)) != place
        assert one[others].tobytes() == two[others].tobytes()
        assert np.all((one >= LOWER) & (one <= UPPER))
        for to in ((-1.0, 1.0), (0.0, 1.0), (0.1, 0.3)):
            design = SCHEMA.design(one, to=to)
            numeric = design[:, [0, 4]]
            assert design.shape == (len(rows), SCHEMA.width)
            assert numeric.min() >= to[0]
            assert numeric.max() <= to[1]


@given(st.lists(record, max_size=9), st.integers(1, 10))
@settings(max_examples=60, deadline=None)
def test_chunks_put_together_are_the_whole_to_the_last_bit(rows: list[tuple[Any, ...]], size: int) -> None:
    whole = SCHEMA.encode(as_objects(rows))
    pieces = list(open_source(as_frame(rows), schema=SCHEMA).partitions(rows=size))
    assert b"".join(piece.tobytes() for piece in pieces) == whole.tobytes()
    assert b"".join(SCHEMA.design(piece).tobytes() for piece in pieces) == SCHEMA.design(whole).tobytes()
    parts = chunks([as_objects(rows[start : start + size]) for start in range(0, len(rows), size)])
    assert read(parts, schema=SCHEMA).tobytes() == whole.tobytes()


def test_scaling_in_pieces_is_scaling_the_whole_to_the_last_bit() -> None:
    rng = np.random.default_rng(5)
    matrix = SCHEMA.encode(np.exp(rng.normal(0, 6, size=(20_001, 4))))
    whole = SCHEMA.scaled(matrix)
    for size in (1, 3, 8191, 8193):
        starts = range(0, 40 if size < 9 else len(matrix), size)
        pieces = np.concatenate([SCHEMA.scaled(matrix[start : start + size]) for start in starts])
        assert pieces.tobytes() == whole[: len(pieces)].tobytes()


numeric = st.lists(
    st.tuples(
        *[st.one_of(st.floats(), st.just(None), st.integers(-(2**53), 2**53).map(float), st.floats(-2, 8)) for _ in range(4)]
    ),
    max_size=6,
)


@given(numeric)
@settings(max_examples=100, deadline=None)
def test_the_fast_way_for_arrays_is_the_slow_way(rows: list[tuple[float | None, ...]]) -> None:
    schema = Schema.of_bounds({"a": (-1.5, 7), "b": (0, 1e308), "c": (-5e-324, 5e-324), "d": (-1, 0)}, missing={"a": 0.25})
    array = np.array(rows, dtype=float).reshape(-1, 4)
    assert schema.encode(array).tobytes() == schema.encode(array.astype(object)).tobytes()
    assert np.isfinite(schema.scaled(schema.encode(array))).all()


text = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00\n\r"), max_size=5)
plain = st.one_of(
    text, st.floats().map(repr), st.sampled_from(["x", "y", " 1", "1.0", "TRUE", "1e400", "-5", "", "\t", '"', ","])
)


@given(st.lists(st.tuples(plain, plain, plain, plain), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_all_kinds_of_tables_and_files_give_one_matrix(rows: list[tuple[str, ...]]) -> None:
    columns: dict[str, list[str]] = {name: [row[j] for row in rows] for j, name in enumerate(SCHEMA.names)}
    want = SCHEMA.encode([list(row) for row in rows]).tobytes()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([SCHEMA.names, *rows])
        pq.write_table(pa.table(columns), folder / "t.parquet")
        sources = (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), folder / "t.csv", folder / "t.parquet")
        for source in (*sources, np.array(rows, dtype=object)):
            assert read(source, schema=SCHEMA).tobytes() == want


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats()),
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(0, 2)),
            st.one_of(st.none(), st.decimals(-(10**6), 10**6, places=3)),
            st.one_of(st.none(), st.booleans()),
        ),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=60, deadline=None)
def test_typed_columns_give_one_matrix(rows: list[tuple[float | None, int | None, Decimal | None, bool | None]]) -> None:
    schema = SCHEMA.replacing(Column.category("b", [0, 1]), Column.category("d", [True, False]))
    kinds = {"a": pa.float64(), "b": pa.int64(), "c": pa.decimal128(12, 3), "d": pa.bool_()}
    table = pa.table({name: pa.array([row[j] for row in rows], kind) for j, (name, kind) in enumerate(kinds.items())})
    want = schema.encode([list(row) for row in rows]).tobytes()
    nullable = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
    for source in (table, pl.from_arrow(table), nullable):
        assert read(source, schema=schema).tobytes() == want


def test_dates_in_object_columns_never_raise_whatever_the_other_records_hold() -> None:
    dates = [(datetime.date(2020, 1, 1),) * 4] * 3
    assert np.array_equal(read(as_frame(dates), schema=SCHEMA)[:2], read(as_frame([*dates[:2], ("q",) * 4]), schema=SCHEMA)[:2])


@pytest.mark.parametrize("cell", [5e-324, 1e308, -1e308, 1.7976931348623157e308, "1e-400", "1e400", 10**400])
def test_no_cell_raises_though_the_caller_asked_numpy_to_raise(cell: object) -> None:
    schema = Schema(
        columns=[
            Column.number("a", lower=0, upper=1e308, log1p=True),
            Column.number("b", lower=-1e300, upper=1e300),
            Column.category("c", ["1", "2"]),
        ]
    )
    with np.errstate(all="raise"):
        matrix = schema.encode([[cell, cell, cell], [0.5, 0.5, 1]])
        assert np.isfinite(schema.design(matrix, to=(0.0, 1.0))).all()
        if isinstance(cell, float):
            assert np.isfinite(
                schema.select(["a", "b"]).scaled(schema.select(["a", "b"]).encode(np.array([[cell, cell]])))
            ).all()
