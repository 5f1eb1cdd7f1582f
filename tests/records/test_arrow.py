"""Arrow columns come in pieces, coded and wide: what is refused follows from a column's type, never from its cells."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sabun.errors import DataError
from sabun.records import Column, Schema, inspect_table, open_source
from sabun.records.cells import label_positions, numbers
from sabun.records.files import file_column

SCHEMA = Schema(columns=(Column.number("c", lower=0, upper=10**6),))
LABELS = Schema(columns=(Column.category("c", ["0", "1", "127", "128", "x"]),))


def coded(labels: list[str], *, index: pa.DataType, values: pa.DataType | None = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(labels)), index), pa.array(labels, values or pa.string()))


def in_two_pieces(count: int, *, index: pa.DataType, values: pa.DataType | None = None) -> pa.Table:
    """That many distinct labels, each piece of them within what its index type can number."""
    labels = [str(number) for number in range(count)]
    cut = count * 2 // 3
    pieces = [coded(part, index=index, values=values) for part in (labels[:cut], labels[cut:])]
    return pa.table({"c": pa.chunked_array(pieces)})


def in_a_file(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


FORMS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "arrow": lambda table, folder: table,
    "pandas": lambda table, folder: pd.DataFrame({"c": pd.Series(pd.arrays.ArrowExtensionArray(table["c"]))}),
    "file": in_a_file,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("index", "count"), [(pa.int8(), 127), (pa.int8(), 128), (pa.int8(), 190), (pa.uint8(), 256), (pa.int16(), 32_768)]
)
def test_one_more_label_than_an_index_can_number_changes_one_row(
    form: str, index: pa.DataType, count: int, tmp_path: Path
) -> None:
    table = in_two_pieces(count + 1, index=index)
    pieces = table["c"].chunks
    same = pa.DictionaryArray.from_arrays(  # the last record replaced by one with a label that is there already
        pa.array([*range(len(pieces[1]) - 1), 0], index), pieces[1].dictionary.slice(0, len(pieces[1]) - 1)
    )
    neighbour = pa.table({"c": pa.chunked_array([pieces[0], same])})
    for schema in (SCHEMA, LABELS):
        one, two = (open_source(FORMS[form](t, tmp_path), schema=schema).matrix() for t in (table, neighbour))
        assert one.shape == two.shape == (count + 1, 1)
        assert one[:-1].tobytes() == two[:-1].tobytes()
    got = open_source(FORMS[form](table, tmp_path), schema=SCHEMA).matrix().ravel()
    assert got.tolist() == list(range(count + 1))


def test_coded_text_that_written_out_would_pass_two_gigabytes_is_read() -> None:
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2_100, dtype=np.int8)), pa.array(["x" * (1 << 20)]))
    assert np.isnan(numbers(long, name="c")).all()
    assert set(label_positions(long, lambda text: len(text or ""), name="c")) == {1 << 20}


def test_pieces_of_text_that_together_pass_two_gigabytes_are_read() -> None:
    number, word = pa.array(["0" * (1 << 26)]), pa.array(["x" * (1 << 26)])
    whole = pa.chunked_array([*[number] * 32, word])  # one buffer, named many times; numbers are read fastest
    with pytest.raises(pa.ArrowInvalid):
        whole.combine_chunks()
    read = numbers(whole, name="c")
    assert (read[:-1] == 0).all()
    assert np.isnan(read[-1])


def values_of(held: pa.DataType) -> list[pa.Array]:
    """Columns of one type whose cells have nothing in common."""
    texts = ["1", "x", "", "1e999", "-5.5"]
    if pa.types.is_decimal(held):
        return [pa.array([decimal.Decimal("1.50"), None], held), pa.array([decimal.Decimal("-0.01")], held)]
    if pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_string_view(held):
        return [pa.array(texts, held), pa.array([None, "x" * 5_000], held)]
    if pa.types.is_floating(held):
        return [pa.array(np.array([np.nan, np.inf, -0.0, 1.5], dtype=np.float16)).cast(held)]
    if pa.types.is_boolean(held):
        return [pa.array([True, None, False])]
    if pa.types.is_integer(held):
        return [pa.array([1, None, 100], held)]
    return []


READ = [
    pa.string(), pa.large_string(), pa.string_view(), pa.bool_(), pa.null(), pa.int8(), pa.uint64(), pa.float16(), pa.float32(),
    pa.float64(), pa.decimal128(10, 2), pa.decimal256(50, 2),
]  # fmt: skip
REFUSED = [
    pa.date32(), pa.timestamp("ns"), pa.time32("s"), pa.duration("s"), pa.binary(), pa.binary_view(), pa.binary(3),
    pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8()),
    pa.run_end_encoded(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.date32()),
]  # fmt: skip


def forms_of(cells: pa.Array) -> list[Any]:
    """The same cells whole, in pieces, in empty pieces, and coded once and twice."""
    empty = cells.slice(0, 0)
    whole = [cells, pa.chunked_array([cells]), pa.chunked_array([empty, cells.slice(0, 1), cells.slice(1), empty])]
    once = pa.DictionaryArray.from_arrays(pa.array(range(len(cells)), pa.int8()), cells)
    twice = pa.DictionaryArray.from_arrays(pa.array(range(len(cells)), pa.int16()), once)
    return [*whole, once, pa.chunked_array([once, once]).slice(0, len(cells)), twice]


@pytest.mark.parametrize("held", READ, ids=str)
def test_every_form_of_a_column_is_read_as_the_same_cells(held: pa.DataType) -> None:
    for cells in [*values_of(held), pa.nulls(3, held), pa.nulls(0, held)]:
        objects = cells.to_pylist()
        for form in forms_of(cells):
            assert numbers(form, name="c").tobytes() == numbers(objects, name="c").tobytes()
            lengths = label_positions(form, lambda text: -1 if text is None else len(text), name="c")
            assert (
                lengths.tolist() == label_positions(objects, lambda text: -1 if text is None else len(text), name="c").tolist()
            )


@pytest.mark.parametrize("held", REFUSED, ids=str)
@pytest.mark.parametrize("rows", [0, 3])
def test_a_type_that_is_not_read_is_refused_whatever_it_holds(held: pa.DataType, rows: int) -> None:
    for form in (pa.nulls(rows, held), pa.chunked_array([pa.nulls(rows, held)] * 2, type=held), pa.chunked_array([], held)):
        with pytest.raises(DataError, match="column 'c' must hold numbers or text"):
            numbers(form, name="c")
        with pytest.raises(DataError, match="column 'c' must hold numbers or text"):
            label_positions(form, len, name="c")


def test_an_index_outside_its_dictionary_is_a_missing_cell() -> None:
    broken = pa.DictionaryArray.from_arrays(pa.array([0, 5, -3, None], pa.int8()), pa.array(["1"]), safe=False)
    assert numbers(broken, name="c")[0] == 1
    assert np.isnan(numbers(broken, name="c")[1:]).all()
    assert label_positions(broken, lambda text: -1 if text is None else 7, name="c").tolist() == [7, -1, -1, -1]


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series(pd.Categorical([2**53, 2**53 + 1, None])),
        pd.Series(pd.Categorical(["9007199254740992", "9007199254740993", None])),
        pd.Series(pd.array(pd.Categorical([2**53, 2**53 + 1, pd.NaT], categories=[2**53, 2**53 + 1]))),
        pl.Series(["9007199254740992", "9007199254740993", None], dtype=pl.Categorical),
        pl.Series(["9007199254740992", "9007199254740993", None], dtype=pl.Enum(["9007199254740993", "9007199254740992", "z"])),
        pl.Series([2**53, 2**53 + 1, None], dtype=pl.Int128),
    ],
    ids=str,
)
def test_a_missing_cell_does_not_round_the_labels_of_others(cells: Any) -> None:
    schema = Schema(columns=(Column.category("c", [2**53, 2**53 + 1]),))
    assert schema.encode(cells).ravel().tolist() == [0, 1, -1]
    assert schema.encode(cells[:2]).ravel().tolist() == [0, 1]


@pytest.mark.parametrize(
    "odd", [pd.Timestamp("2020"), pd.Interval(0, 1), (1, 2), b"5", pd.Period("2020"), 5j, frozenset({1}), "\ud800"], ids=repr
)
def test_an_odd_category_is_a_missing_cell(odd: object) -> None:
    categories = pd.Index([*range(130), odd], dtype=object)
    cells = pd.Series(pd.Categorical.from_codes([0, 130, 129, -1], categories=categories))
    assert SCHEMA.encode(cells).ravel().tolist() == [0, 500_000, 129, 500_000]


def test_only_labels_that_stand_in_a_cell_are_shown_to_the_owner() -> None:
    cells = pa.DictionaryArray.from_arrays(pa.array([1, 1, None], pa.int8()), pa.array(["never", "strange"]))
    assert inspect_table(pa.table({"c": cells}), schema=LABELS).columns[0].strange == {"strange": 2}


def test_a_column_of_a_file_for_its_owner_has_none_where_python_has_no_object(tmp_path: Path) -> None:
    texts = pa.array([b"1", b"\xff", b"x"]).view(pa.string())
    table = pa.table({"text": texts, "day": pa.array([0, 10**7, None], pa.int32()).cast(pa.date32())})
    path = in_a_file(table, tmp_path)
    assert file_column(path, "text") == ["1", None, "x"]
    assert [day is None for day in file_column(path, "day")] == [False, True, True]
