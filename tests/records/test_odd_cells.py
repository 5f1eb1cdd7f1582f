"""What a second review broke: text that is no text, types with a hash of their own, a spelling that took forever."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sabun.errors import DataError
from sabun.records import Column, Schema, open_source, open_unbounded
from sabun.records.cells import folded

LABELS = Schema(columns=(Column.category("c", ["1", "x"]),))
NUMBERS = Schema(columns=(Column.number("c", lower=0, upper=9),))


def texts(*cells: bytes) -> pa.Table:
    return pa.table({"c": pa.array(cells, pa.binary()).view(pa.string())})


@pytest.mark.parametrize("form", ["table", "dictionary", "view", "file", "pandas", "pandas dictionary", "batch"])
def test_a_text_that_is_no_unicode_is_one_more_unknown_label(tmp_path: Path, form: str) -> None:
    bad = texts(b"1", b"\xff", b" x ", b"x\xc3", b"1.0")
    source: Any = bad
    coded = bad.set_column(0, "c", bad["c"].combine_chunks().dictionary_encode())
    if form == "dictionary":
        source = coded
    elif form == "pandas dictionary":
        source = coded.to_pandas(types_mapper=pd.ArrowDtype)
    elif form == "view":
        source = bad.set_column(0, "c", bad["c"].cast(pa.string_view()))
    elif form == "file":
        source = tmp_path / "bad.parquet"
        pq.write_table(bad, source)
    elif form == "pandas":
        source = bad.to_pandas(types_mapper=pd.ArrowDtype)
    elif form == "batch":
        source = bad.to_batches()[0]
    assert open_source(source, schema=LABELS).matrix().ravel().tolist() == [0, -1, 1, -1, 0]
    assert open_source(source, schema=NUMBERS).matrix().ravel().tolist() == [1, 4.5, 4.5, 4.5, 1]


class Hostile(type):
    def __hash__(cls) -> int:
        raise RuntimeError("private 42")

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("private 42")


class Cell(metaclass=Hostile):
    pass


@pytest.mark.parametrize("schema", [LABELS, NUMBERS], ids=["labels", "numbers"])
def test_a_type_with_a_hash_of_its_own_is_never_asked_for_it(schema: Schema) -> None:
    plain = schema.encode([[None], ["1"]]).tolist()
    assert schema.encode([[Cell()], ["1"]]).tolist() == plain
    assert schema.encode(pd.DataFrame({"c": [Cell(), "1"]})).tolist() == plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(same, same) for same in ("", ".", "-", "+.", ".5", "-.0", "1", "10", "+250", "1e0", "1.0e0", "1.0x", "1..0", "٣.0")],
        ("1.", "1"),
        ("1.0", "1"),
        ("-1.50", "-1.5"),
        ("+0.00", "+0"),
        ("100.00", "100"),
        ("1.05", "1.05"),
        ("True", "true"),
        ("FALSE", "false"),
        ("--1.0", "--1.0"),
        ("+-1.0", "+-1.0"),
    ],
)
def test_only_a_decimal_loses_its_trailing_zeros(text: str, expected: str) -> None:
    assert folded(text) == expected


def test_a_long_spelling_takes_no_longer_than_its_length() -> None:
    start = time.perf_counter()
    codes = LABELS.encode([["1." + "0" * 400_000 + "x"], ["1." + "0" * 400_000]])
    assert codes.ravel().tolist() == [-1, 0]
    assert time.perf_counter() - start < 5  # by trying every split it would be hours


def test_a_table_without_columns_is_refused_at_once() -> None:
    for table in (pd.DataFrame(index=range(5)), pa.table({})):
        with pytest.raises(DataError, match=r"a table must have at least one column; got none\."):
            open_unbounded(table)


def test_a_subnormal_cell_is_read_like_any_other_where_numpy_raises() -> None:
    schema = Schema(columns=(Column.number("a", lower=0, upper=1e300), Column.number("b", lower=0, upper=1, log1p=True)))
    with np.errstate(all="raise"):
        tiny = schema.design(schema.encode(np.array([[5e-324, 5e-324], [1e300, 1.0]])))
    assert tiny.tolist() == [[-1.0, -1.0], [1.0, 1.0]]
