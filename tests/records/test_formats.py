"""Files as people have them: encodings, separators, number signs, dates, packed files. Declared, never guessed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from sabun.errors import BoundsError, DataError, ParameterError
from sabun.records import Column, FileFormat, FilePart, Schema, inspect_table, open_source, open_unbounded, read
from sabun.records.cells import numbers

COLUMNS = (Column.number("年齢", lower=0, upper=120), Column.category("性別", ["女", "男"]))
TRUTH = [[34.0, 0.0], [61.0, 1.0], [60.0, -1.0]]
TEXT = "年齢,性別,備考\n34,女,髙橋㈱①\n61,男,ソ表\n,不明,―\n"


@pytest.mark.parametrize("encoding", ["cp932", "Shift-JIS", "shift_jis", "utf-16", "utf-16-le", "euc_jp", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.zst", ".tsv"])
def test_a_file_reads_alike_in_every_encoding(tmp_path: Path, encoding: str, ending: str) -> None:
    text = "".join(letter for letter in TEXT if letter not in "①㈱髙―") if encoding == "euc_jp" else TEXT
    text = text.replace(",", "\t") if ending == ".tsv" else text
    content = text.encode("cp932" if "hift" in encoding else encoding)
    file = tmp_path / f"people{ending}"
    if ending == ".csv.zst":
        with pa.CompressedOutputStream(str(file), "zstd") as out:
            out.write(content)
    else:
        file.write_bytes(gzip.compress(content) if ending == ".csv.gz" else content)
    declared = Schema(columns=COLUMNS, file=FileFormat(encoding=encoding))
    assert read(file, schema=declared).tolist() == TRUTH
    assert read(FilePart(path=file, form=FileFormat(encoding=encoding)), schema=Schema(columns=COLUMNS)).tolist() == TRUTH


def test_a_packed_file_that_is_one_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabun.records.csv_files._LONGEST_LINE", 1000)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"secret" * 1000))
    with pytest.raises(DataError, match="cannot be read as one") as caught:
        read(tmp_path / "a.csv.gz", schema=Schema(columns=COLUMNS))
    assert "secret" not in str(caught.value)


def test_characters_of_two_bytes_may_lie_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabun.records.csv_files._BLOCK_BYTES", 96)
    (tmp_path / "a.csv").write_bytes(("年齢,性別,備考\n" + "34,女,ソ表能\n" * 200).encode("cp932"))
    schema = Schema(columns=COLUMNS, file=FileFormat(encoding="cp932"))
    assert read(tmp_path / "a.csv", schema=schema).tolist() == [[34, 0]] * 200


def test_a_file_in_another_encoding_is_refused_with_advice_and_without_its_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT.encode("cp932"))
    with pytest.raises(DataError, match="cp932") as caught:
        read(tmp_path / "a.csv", schema=Schema(columns=COLUMNS))
    assert "髙" not in str(caught.value)
    (tmp_path / "b.csv").write_bytes(b"a\n1\n\x81\xff\n")
    schema = Schema(columns=(Column.number("a", lower=0, upper=1),), file=FileFormat(encoding="cp932"))
    with pytest.raises(DataError, match="cp932 text"):
        read(tmp_path / "b.csv", schema=schema)


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        (FileFormat(decimal=","), "3,5", 3.5),
        (FileFormat(decimal=","), "3.5", np.nan),
        (FileFormat(decimal=",", thousands="."), "1.234.567,5", 1234567.5),
        (FileFormat(decimal=",", thousands="."), "1.234", 1234.0),
        (FileFormat(decimal=",", thousands="."), "1.2345", np.nan),
        (FileFormat(thousands=","), "1,234,567.5", 1234567.5),
        (FileFormat(thousands=","), "1234567.5", 1234567.5),
        (FileFormat(thousands=","), "12,34", np.nan),
        (FileFormat(thousands=","), "1234,567", np.nan),
        (FileFormat(thousands=","), "-1,234e2", -123400.0),
        (FileFormat(thousands=" "), "1 234", 1234.0),
        (FileFormat(thousands="\u202f"), "1\u202f234", 1234.0),
        (FileFormat(thousands=","), "true", 1.0),
        (FileFormat(decimal=","), "-inf", -np.inf),
        (FileFormat(decimal=","), ",5", 0.5),
        (FileFormat(decimal=","), "", np.nan),
    ],
)
def test_numbers_are_read_as_they_are_written(form: FileFormat, text: str, value: float) -> None:
    for cells in ([text], pa.array([text]), np.array([text], dtype=object), pa.array([text]).dictionary_encode()):
        assert np.array_equal(numbers(cells, name="c", form=form), [value], equal_nan=True)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12))
def test_a_number_written_with_groups_is_that_number(value: Any) -> None:
    text = f"{value:,}"
    swapped = text.translate(str.maketrans(",.", ".,"))
    assert numbers([text], name="c", form=FileFormat(thousands=","))[0] == float(value)
    assert numbers([swapped], name="c", form=FileFormat(thousands=".", decimal=","))[0] == float(value)


def test_a_schema_keeps_how_its_file_is_written() -> None:
    declared = Schema(columns=COLUMNS, file=FileFormat(encoding="cp932", separator=";", decimal=","))
    assert Schema.from_json(declared.to_json()) == declared
    assert declared.select(["性別"]).file == declared.file
    assert "file" not in Schema(columns=COLUMNS).to_dict()
    assert Schema(columns=COLUMNS).to_json() == Schema(columns=COLUMNS, file=FileFormat()).to_json()


@pytest.mark.parametrize(
    "wrong",
    [
        {"encoding": "klingon"},
        {"encoding": "base64"},
        {"encoding": "rot13"},
        {"encoding": "punycode"},
        {"encoding": "undefined"},
        {"separator": ""},
        {"separator": ";;"},
        {"separator": '"'},
        {"separator": "\n"},
        {"decimal": ";"},
        {"thousands": "x"},
        {"thousands": ",", "decimal": ","},
        {"sheet": 1},
    ],
)
def test_a_form_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        FileFormat(**wrong)
    with pytest.raises(ParameterError):
        Schema.from_dict({"format": "sabun-schema-1", "columns": [COLUMNS[0].to_dict()], "file": {"other": 1}})


def test_dates_are_days_whatever_holds_them(tmp_path: Path) -> None:
    column = Column.date("visit", lower="2020-01-01", upper="2024-12-31")
    schema = Schema(columns=(column,))
    texts = ["2024-03-01", "2024/3/1 09:30", "2024年3月1日", "20240301", "1999-01-01", "2031-01-01", "2024-02-30", "", "soon"]
    days = [19783.0] * 4 + [column.lower, column.upper] + [column.missing] * 3
    (tmp_path / "a.csv").write_text("visit\n" + "\n".join(texts) + "\n", encoding="utf-8")
    assert read(tmp_path / "a.csv", schema=schema).ravel().tolist() == days
    assert read(pd.DataFrame({"visit": texts}), schema=schema).ravel().tolist() == days
    stamps = pd.to_datetime(pd.Series(["2024-03-01 23:59", None]))
    truth = [19783.0, column.missing]
    for frame in (
        pd.DataFrame({"visit": stamps}),
        pd.DataFrame({"visit": stamps.astype(object)}),
        pl.DataFrame({"visit": pl.Series(["2024-03-01", None]).str.to_date()}),
        pa.table({"visit": pa.array([19783, None], type=pa.date32())}),
        pd.DataFrame({"visit": stamps.dt.tz_localize("Asia/Tokyo")}),
    ):
        assert read(frame, schema=schema).ravel().tolist() == truth
    parquet.write_table(pa.table({"visit": pa.array([19783, None], type=pa.date32())}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", schema=schema).ravel().tolist() == truth
    assert Schema.from_json(schema.to_json()) == schema
    assert schema.to_dict()["columns"][0]["lower"] == "2020-01-01"
    assert "a date from 2020-01-01 to 2024-12-31" in str(column)


def test_bounds_of_dates_must_be_dates() -> None:
    for wrong in ({"lower": "2020-13-01", "upper": "2021-01-01"}, {"lower": "2021-01-01", "upper": "2020-01-01"}):
        with pytest.raises(BoundsError):
            Column.date("visit", **wrong)


_CELLS = st.one_of(st.text(max_size=12), st.dates().map(str), st.none(), st.integers(), st.floats(), st.dates())


@given(st.lists(_CELLS, max_size=6))
def test_no_cell_of_a_date_column_raises_or_changes_another(cells: list[Any]) -> None:
    column = Column.date("visit", lower="1900-01-01", upper="2100-01-01")
    together = column.encode(cells)
    assert together.tolist() == [column.encode([cell])[0] for cell in cells]
    assert ((together >= column.lower) & (together <= column.upper)).all()


def test_a_list_of_dicts_is_read_by_the_declared_names() -> None:
    rows: list[Any] = [{"年齢": 34, "性別": "女", "x": 1}, {"性別": "男", "年齢": "61"}, {"性別": "不明"}]
    assert read(rows, schema=Schema(columns=COLUMNS)).tolist() == TRUTH
    assert read([*rows, 5], schema=Schema(columns=COLUMNS)).tolist() == [*TRUTH, [60.0, -1.0]]
    with pytest.raises(DataError):
        open_unbounded(rows)
    assert open_unbounded(rows, columns=["年齢"]).matrix().ravel().tolist()[:2] == [34.0, 61.0]


def test_lazy_frames_are_run_and_their_errors_say_nothing() -> None:
    frame = pl.DataFrame({"年齢": [34, 61], "性別": ["女", "男"]})
    assert read(frame.lazy(), schema=Schema(columns=COLUMNS)).tolist() == TRUTH[:2]
    broken = frame.lazy().with_columns(pl.col("性別").cast(pl.Int64).alias("年齢"))
    with pytest.raises(DataError) as caught:
        read(broken, schema=Schema(columns=COLUMNS))
    assert "女" not in str(caught.value)


def test_relations_of_duckdb_are_read() -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    found = duckdb.sql("SELECT 34 AS 年齢, '女' AS 性別 UNION ALL SELECT 61, '男' ORDER BY 1")
    assert read(found, schema=Schema(columns=COLUMNS)).tolist() == TRUTH[:2]


def test_the_owner_is_told_how_a_table_fits_in_its_own_form() -> None:
    schema = Schema(columns=(Column.number("cost", lower=0, upper=10000),), file=FileFormat(decimal=",", thousands="."))
    fit = inspect_table(pd.DataFrame({"cost": ["1.234,5", "1.2345", "20.000,0"]}), schema=schema).columns[0]
    assert (fit.unreadable, fit.above, fit.fitting) == (1, 1, 1)


def test_a_form_goes_to_whoever_reads_the_file_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("年齢;性別\n34,0;女\n61,0;男\n".encode("cp932"))
    form = FileFormat(encoding="cp932", separator=";", decimal=",")
    source = open_source(FilePart(path=tmp_path / "a.csv", form=form), schema=Schema(columns=COLUMNS))
    assert np.concatenate(list(source.partitions(rows=1))).tolist() == TRUTH[:2]
    part = FilePart(path=tmp_path / "a.csv", form=form)
    assert open_unbounded(part, columns=["年齢"]).matrix().tolist() == [[34.0], [61.0]]
