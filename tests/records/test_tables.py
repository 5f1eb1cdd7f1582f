from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sabun.errors import DataError
from sabun.records import Column, Schema

SCHEMA = Schema(columns=[Column.number("age", lower=0, upper=100, missing=40), Column.category("sex", ["F", "M"])])
ROWS = [[30, "M"], [None, "F"], [130, None]]
WANT = [[30, 1], [40, 0], [100, -1]]


def test_every_kind_of_table_gives_the_same_matrix() -> None:
    ages, sexes = zip(*ROWS, strict=True)
    columns = {"id": ["a", "b", "c"], "sex": list(sexes), "age": list(ages)}
    table = pa.table(columns)
    for source in (
        ROWS,
        tuple(ROWS),
        np.array(ROWS, dtype=object),
        pd.DataFrame(columns),
        pd.DataFrame(columns, dtype=object),
        pd.DataFrame(columns).convert_dtypes(),
        pd.DataFrame(columns).astype({"sex": "category"}),
        pd.DataFrame(columns).astype({"sex": "category", "age": "category"}),
        pd.DataFrame(columns).astype({"age": "Int64"}),
        pl.DataFrame(columns),
        pl.DataFrame(columns).cast({"sex": pl.Categorical}),
        pl.DataFrame(columns).cast({"sex": pl.Enum(["F", "M"]), "age": pl.Int128}),
        table,
        table.to_batches()[0],
        table.set_column(1, "sex", table["sex"].dictionary_encode()),
        table.set_column(1, "sex", table["sex"].cast(pa.string_view())),
        table.set_column(2, "age", pa.array([Decimal(30), None, Decimal(130)])),
        table.set_column(2, "age", pa.array(["30", "x", "1e9"])),
        table.set_column(2, "age", pa.array([30, None, 130], pa.float16())),
    ):
        assert SCHEMA.encode(source).tolist() == WANT


def test_an_index_that_was_saved_by_mistake_is_ignored() -> None:
    frame = pd.DataFrame({"Unnamed: 0": [0, 1, 2], "age": [1, 2, 3], "sex": ["F", "M", "F"]}, index=[5, 5, 9])
    assert SCHEMA.encode(frame).tolist() == [[1, 0], [2, 1], [3, 0]]


def test_columns_of_booleans_and_nulls_are_read() -> None:
    schema = Schema(
        columns=[Column.number("a", bounds=(0, 1)), Column.category("b", [False, True]), Column.number("c", bounds=(0, 4))]
    )
    want = [[1, 0, 2], [0, 1, 2]]
    columns = {"a": [True, False], "b": [False, True], "c": [None, None]}
    for source in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), pd.DataFrame(columns).astype(object)):
        assert schema.encode(source).tolist() == want


def test_whole_numbers_beyond_float_precision_keep_their_label() -> None:
    schema = Schema(columns=[Column.category("id", [2**53, 2**53 + 1])])
    for source in (pa.table({"id": [2**53 + 1, None]}), pd.DataFrame({"id": pd.array([2**53 + 1, None], dtype="Int64")})):
        assert schema.encode(source).tolist() == [[1], [-1]]


def test_masked_cells_are_missing() -> None:
    numbers = np.ma.masked_array([[30, 0], [7, 1]], mask=[[0, 0], [1, 1]])
    schema = Schema(columns=[Column.number("age", bounds=(0, 100)), Column.category("sex", [0, 1])])
    assert schema.encode(numbers).tolist() == [[30, 0], [50, -1]]
    assert schema.encode(numbers.astype(object)).tolist() == [[30, 0], [50, -1]]


@pytest.mark.parametrize(
    ("cells", "held"),
    [
        ([datetime.datetime(2020, 1, 1)], "dates or times"),
        ([datetime.date(2020, 1, 1)], "dates or times"),
        ([datetime.timedelta(1)], "dates or times"),
        ([[1, 2]], "nested, binary or extension cells"),
        ([b"1"], "nested, binary or extension cells"),
    ],
)
def test_a_frame_column_of_another_type_is_refused_by_name(cells: list[object], held: str) -> None:
    for source in (pa.table({"age": cells, "sex": ["F"]}), pl.DataFrame({"age": cells, "sex": ["F"]})):
        with pytest.raises(DataError, match=f"column 'age' must hold numbers or text; got {held}. Turn it into"):
            SCHEMA.encode(source)


def test_dates_among_objects_are_missing_cells_whatever_their_company() -> None:
    for company in (datetime.date(2020, 1, 1), "x", None):
        frame = pd.DataFrame({"age": pd.Series([datetime.date(2020, 1, 1), company], dtype=object), "sex": ["F", "M"]})
        assert SCHEMA.encode(frame).tolist() == [[40, 0], [40, 1]]


def test_a_missing_column_is_named_and_no_other() -> None:
    with pytest.raises(DataError) as caught:
        SCHEMA.encode(pd.DataFrame({"secret": [1], "age": [2]}))
    assert str(caught.value) == "the table has no column 'sex'. Its columns must include every name in the schema."


def test_a_column_name_that_stands_twice_is_refused() -> None:
    frame = pd.DataFrame([[1, 2, "F"]], columns=["age", "age", "sex"])
    for source in (frame, pa.table([[1], [2], ["F"]], names=["age", "age", "sex"])):
        with pytest.raises(DataError) as caught:
            SCHEMA.encode(source)
        assert str(caught.value) == "the table must have distinct column names; at least one stands twice. Rename or drop it."
        assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros(3), r"an array must have 2 dimensions \(rows, columns\); got 1\."),
        (np.zeros((3, 2, 1)), r"an array must have 2 dimensions \(rows, columns\); got 3\."),
        (np.zeros((3, 5)), r"an array must have 2 columns, in the order of the schema; got 5\."),
        (
            [[1, "F"], [2]],
            r"a list of rows must hold lists, tuples or one-dimensional arrays of 2 cells; at least one is not\.",
        ),
        ([[1, "F"], 5], r"a list of rows must hold lists, tuples or one-dimensional arrays of 2 cells; at least one is not\."),
        ([[1, "F"], np.array(5)], r"a list of rows must hold lists"),
        ([pd.DataFrame()], r"a list of tables must be wrapped: sabun.records.chunks\(\[...\]\)\."),
        (pd.Series([1.0]), r"a table must have 2 columns; got a single series\."),
        (5, r"a table must be a 2-D array, a list of rows, a pandas, polars or pyarrow frame; got int\."),
        (pl.LazyFrame({"age": ["x"]}).cast(pl.Int64), r"a polars query must give a table; it fails when it is run\."),
        ({"age": [1]}, r"a table must be .*; got dict\."),
    ],
)
def test_what_is_no_table_is_refused(source: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        SCHEMA.encode(source)


def test_no_rows_are_a_table_too() -> None:
    assert SCHEMA.encode([]).shape == (0, 2)
    assert SCHEMA.encode(np.zeros((0, 2))).shape == (0, 2)
    assert SCHEMA.encode(pd.DataFrame({"age": [], "sex": []})).shape == (0, 2)


@pytest.mark.parametrize("dtype", [float, object])
def test_an_unnamed_series_is_one_column(dtype: type) -> None:
    schema = Schema.of_bounds({"a": (0, 10)})
    assert schema.encode(pd.Series([1.0, 2, 30], dtype=dtype)).ravel().tolist() == [1, 2, 10]
    assert schema.encode(pd.Series([1.0, 2, 30], dtype=dtype, name=7)).ravel().tolist() == [1, 2, 10]


def test_numbered_columns_are_named_like_those_of_an_array() -> None:
    schema = Schema.of_bounds([(0, 1), (0, 2)])
    table = np.array([[0.5, 5.0], [0.25, 1.0]])
    assert (schema.encode(pd.DataFrame(table)) == schema.encode(table)).all()


class Capricious(pd.api.extensions.ExtensionArray):
    """A type of another package that cannot hand out some of its cells."""

    def __init__(self, cells: list[float]) -> None:
        self.cells = cells

    @property
    def dtype(self) -> CapriciousDtype:
        return CapriciousDtype()

    def __len__(self) -> int:
        return len(self.cells)

    def copy(self) -> Capricious:
        return Capricious(list(self.cells))

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return Capricious(self.cells[item])
        if self.cells[item] < 0:
            raise RuntimeError("private -1")
        return self.cells[item]


class CapriciousDtype(pd.api.extensions.ExtensionDtype):
    name = "capricious"
    type = float

    @classmethod
    def construct_array_type(cls) -> type[Capricious]:
        return Capricious


def test_a_cell_that_a_foreign_type_cannot_hand_out_is_missing() -> None:
    schema = Schema.of_bounds({"c": (0, 10)})
    for cells, expected in (([1.0, 2.0], [1, 2]), ([1.0, -1.0], [1, 5]), ([-1.0, 2.0], [5, 2])):
        frame = pd.DataFrame({"c": pd.Series(Capricious(cells))})
        assert schema.encode(frame).ravel().tolist() == expected
