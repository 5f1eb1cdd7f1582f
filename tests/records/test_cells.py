"""Cells of any type in any container: none raises, warns, hangs, or changes the reading of another."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabun.errors import DataError
from sabun.records import Column, Schema, open_source
from sabun.records.cells import _numbers_by_rule, numbers
from sabun.records.forms import PLAIN

NUMBER = Schema.of_bounds({"a": (0, 120)})
SCHEMA = Schema(columns=[Column.number("a", lower=0, upper=120), Column.category("b", ["F", "M", "5", "?", "N/A", "masked"])])


class Hostile:
    """Raises whatever is asked of it."""

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("a secret")

    __array__ = __len__ = __getitem__ = __iter__ = __float__ = __int__ = __str__ = __repr__ = __bool__ = _raise
    __eq__ = __hash__ = __getattr__ = __index__ = _raise

    @property
    def __class__(self) -> Any:
        raise RuntimeError("a secret")


class Endless:
    def __len__(self) -> int:
        return 2**60

    def __getitem__(self, place: int) -> int:
        return place


class Text(str):
    def __str__(self) -> str:
        raise RuntimeError("a secret")

    def strip(self, *_: Any) -> str:
        raise RuntimeError("a secret")


class Size(enum.IntEnum):
    LARGE = 5


class Pair(NamedTuple):
    a: object
    b: object


FOREIGN: list[Any] = [
    b"5", datetime.date(2020, 1, 1), [1, 2], (1, 2), {}, pd.Timestamp("2020"), pd.Timedelta(1), pd.NA, pd.NaT,
    pd.Series([1, 2]), pd.Period("2020"), pd.Interval(0, 1), pl.Series([1, 2]), pa.scalar(5), np.array([1, 2]), np.array([[5]]),
    np.ma.masked, np.datetime64("2020-01-01", "ns"), np.timedelta64(5, "ns"), 5j, Hostile(),
    np.array(np.datetime64("2020-01-01", "ns")),
    Endless(), Text("5"), Size.LARGE, range(3), memoryview(b"ab"), object(), type, Ellipsis,
]  # fmt: skip


def objects(cells: list[Any]) -> np.ndarray:
    result = np.empty((len(cells), 2), dtype=object)
    for place, cell in enumerate(cells):
        result[place, 0] = result[place, 1] = cell
    return result


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "array": objects,
    "rows": lambda cells: [[cell, cell] for cell in cells],
    "tuples": lambda cells: tuple((cell, cell) for cell in cells),
    "named tuples": lambda cells: [Pair(cell, cell) for cell in cells],
    "arrays in a list": lambda cells: list(objects(cells)),
    "pandas": lambda cells: pd.DataFrame({name: pd.Series(list(cells), dtype=object) for name in "ab"}),
    "polars": lambda cells: pl.DataFrame({name: pl.Series(name, cells, dtype=pl.Object) for name in "ab"}),
}


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("number", range(len(FOREIGN)), ids=lambda number: type(FOREIGN[number]).__name__)
def test_a_cell_of_a_foreign_type_is_missing_wherever_it_stands(number: int, kind: str) -> None:
    cell = FOREIGN[number]
    if kind == "polars" and type(cell) is Hostile:
        pytest.skip("polars itself asks such an object for its class")
    for company in (["5"], [None], [datetime.date(2020, 1, 1)]):
        for place in (0, 150):
            cells = company * 151
            cells[place] = cell
            source = open_source(CONTAINERS[kind](cells), schema=SCHEMA)
            whole = source.matrix()
            assert whole[place].tolist() == [60, -1]
            alone = SCHEMA.encode([[company[0], company[0]]])[0]
            assert np.array_equal(np.delete(whole, place, axis=0), np.tile(alone, (150, 1)))
            assert np.array_equal(np.concatenate(list(source.partitions(rows=100))), whole)


@pytest.mark.parametrize("kind", CONTAINERS)
def test_rows_cannot_change_how_a_column_of_objects_is_read(kind: str) -> None:
    cells = ["5"] * 150 + [b"x"] + ["7"] * 3
    source = open_source(CONTAINERS[kind](cells), schema=SCHEMA)
    for rows in (1, 10, 100, 149, 155):
        assert np.concatenate(list(source.partitions(rows=rows))).tobytes() == source.matrix().tobytes()
    assert source.matrix()[:, 0].tolist() == [5] * 150 + [60] + [7] * 3


@pytest.mark.parametrize("number", range(len(FOREIGN)), ids=lambda number: type(FOREIGN[number]).__name__)
def test_a_list_of_cells_is_read_one_element_at_a_time(number: int) -> None:
    cell = FOREIGN[number]
    for place in range(3):
        cells: list[Any] = [5, "6", [7]]
        cells.insert(place, cell)
        got = NUMBER.encode(cells).ravel().tolist()
        assert got.pop(place) == 60
        assert got == [5, 6, 7]


def test_arrays_without_dimensions_are_the_number_they_hold() -> None:
    assert NUMBER.encode([np.array(5), np.array("6"), [np.array(7)]]).ravel().tolist() == [5, 6, 7]
    assert SCHEMA.encode([[np.array(5), np.array("F")]]).tolist() == [[5, 0]]


def test_a_list_of_nothing_but_rows_of_another_length_is_no_column() -> None:
    for rows in ([[1, 2], [3, 4]], [[], [1, 2, 3]], [np.zeros(2)]):
        with pytest.raises(DataError, match="a list of rows must hold lists, tuples or one-dimensional arrays of 1 cells"):
            NUMBER.encode(rows)


def test_a_row_with_methods_of_its_own_is_read_by_those_of_its_base() -> None:
    class Row(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            raise RuntimeError("a secret")

        def __len__(self) -> int:
            raise RuntimeError("a secret")

    class Array(np.ndarray):
        def __getitem__(self, place: Any) -> Any:
            raise RuntimeError("a secret")

    assert SCHEMA.encode([Row([5, "F"]), np.array([6, "M"], dtype=object).view(Array)]).tolist() == [[5, 0], [6, 1]]


def test_numbers_of_exactly_known_types_are_read() -> None:
    kinds = [int, float, Fraction, Decimal, *(np.dtype(code).type for code in "bhilqBHILQefdg")]
    cells = [[kind(5), kind(5)] for kind in kinds]
    assert SCHEMA.encode(cells).tolist() == [[5, 2]] * len(kinds)


def test_long_doubles_beyond_every_bound_do_not_warn() -> None:
    column = np.array(["1e4000", "5", "-1e4000"], dtype=np.longdouble).reshape(3, 1)
    masked = np.ma.masked_array(column, mask=[[0], [0], [1]])
    assert NUMBER.encode(masked).ravel().tolist() == [120, 5, 60]
    for table in (column, column.tolist(), list(column), column.astype(object)):
        assert NUMBER.encode(table).ravel().tolist() == [120, 5, 0]
        assert Schema(columns=[Column.category("a", [5])]).encode(table).ravel().tolist() == [-1, 0, -1]


def test_what_a_mask_hides_is_missing_and_never_a_label() -> None:
    labels = Schema(columns=[Column.category("b", ["?", "N/A", "true", 2**53 + 1, "63"])])
    hidden = [[0], [1]]
    for cells, want in (
        (np.array([["?"], ["?"]]), 0),
        (np.array([["?"], ["?"]], dtype=object), 0),
        (np.array([[True], [True]]), 2),
        (np.array([[2**53 + 1], [2**53 + 1]]), 3),
    ):
        assert labels.encode(np.ma.masked_array(cells, mask=hidden)).tolist() == [[want], [-1]]
    with pytest.raises(DataError, match="got dates"):
        labels.encode(np.ma.masked_array(np.array([["2020"], ["2021"]], dtype="datetime64[ns]"), mask=hidden))


@pytest.mark.parametrize(
    ("cells", "held"),
    [
        (pd.Series([1 + 2j]), "complex numbers"),
        (pd.Series(pd.to_datetime(["2020-01-01"])), "dates"),
        (pd.Series(pd.to_timedelta([1])), "durations"),
        (pd.Series(pd.to_datetime(["2020-01-01"], utc=True)), "dates or times"),
    ],
)
def test_a_typed_column_of_a_pandas_frame_is_refused_by_its_type(cells: pd.Series, held: str) -> None:
    with pytest.raises(DataError, match=f"column 'a' must hold numbers or text; got {held}"):
        NUMBER.encode(pd.DataFrame({"a": cells}))


def test_pandas_types_without_a_fixed_meaning_are_read_cell_by_cell() -> None:
    sparse = pd.Series(pd.arrays.SparseArray([5.0, np.nan, 7.0]))
    words = pd.Series(["5", b"x", "7"], dtype="category")
    text = pd.Series(["5", "\ud800", "7"], dtype="string[python]")
    for column in (sparse, words, text):
        assert NUMBER.encode(pd.DataFrame({"a": column})).ravel().tolist() == [5, 60, 7]


_NEARLY_NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text(alphabet="+-.eE0123456789 \tinfINFnaNtrue_x()", max_size=12),
    st.sampled_from(
        ["", " ", "nan", "-nan", "+nan", "nan(1)", "inf", "-Infinity", "+INF", "1e400", "-1e-400", "0x1p3", "1_0", "true", "１"]
    ),
)


@given(st.lists(_NEARLY_NUMBERS, max_size=8))
def test_a_column_of_texts_reads_as_its_cells_read_alone_by_the_rule(texts: list[str]) -> None:
    column = pa.array(texts, type=pa.large_string())
    alone = [_numbers_by_rule(pc.ascii_trim_whitespace(pa.array([text], type=pa.large_string())), PLAIN) for text in texts]
    assert numbers(column, name="c").tobytes() == np.concatenate([np.empty(0), *alone]).tobytes()
