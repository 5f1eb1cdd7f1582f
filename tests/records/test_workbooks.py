"""Workbooks: the first sheet or a named one, cells as they are, broken files without their words."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from sabun.errors import DataError
from sabun.records import Column, FileFormat, FilePart, Schema, read

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl, which writes the workbooks of this test, is not installed")

COST, DAY = Column.number("費用", lower=0, upper=10000), Column.date("日付", lower="2020-01-01", upper="2024-12-31")
SCHEMA = Schema(columns=(COST, Column.category("区分", ["入院", "外来", "1"]), DAY))


def _book(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, lines in sheets.items():
        sheet = book.create_sheet(name)
        for line in lines:
            sheet.append(line)
    book.save(path)
    return path


def test_cells_of_every_kind_are_read_by_the_rule_of_their_column(tmp_path: Path) -> None:
    lines: list[list[Any]] = [
        [],
        ["費用", "区分", "日付", "備考"],
        [1234.5, "入院", datetime.date(2024, 3, 1), "x"],
        ["88", 1, "2024/3/1", None],
        [None, None, None, None],
        [True, "その他", datetime.datetime(2024, 3, 1, 23, 0), None],
        ["many", "外来", None, "y"],
    ]
    found = read(_book(tmp_path / "a.xlsx", {"患者": lines}), schema=SCHEMA)
    assert found.tolist() == [[1234.5, 0, 19783], [88, 2, 19783], [1, -1, 19783], [COST.missing, 1, DAY.missing]]


def test_a_sheet_is_found_by_its_name(tmp_path: Path) -> None:
    head = ["費用", "区分", "日付"]
    file = _book(tmp_path / "a.xlsx", {"first": [head, [1, "入院", None]], "二": [head, [2, "外来", None], [3, "外来", None]]})
    assert len(read(file, schema=SCHEMA)) == 1
    assert len(read(FilePart(path=file, form=FileFormat(sheet="二")), schema=SCHEMA)) == 2
    with pytest.raises(DataError, match="'first', '二'"):
        read(FilePart(path=file, form=FileFormat(sheet="third")), schema=SCHEMA)


def test_numbers_stay_numbers_where_texts_have_another_decimal_sign(tmp_path: Path) -> None:
    file = _book(tmp_path / "a.xlsx", {"a": [["費用", "区分", "日付"], [12.5, "入院", None], ["12,5", "入院", None]]})
    found = read(FilePart(path=file, form=FileFormat(decimal=",")), schema=SCHEMA)
    assert found[:, 0].tolist() == [12.5, 12.5]


@pytest.mark.parametrize(("cell", "format"), [(-1e300, "yyyy-mm-dd"), (-1e18, "[h]:mm"), (1e300, "[h]:mm"), (3e9, "[h]:mm")])
def test_a_day_or_a_time_that_no_calendar_has_does_not_touch_other_records(tmp_path: Path, cell: float, format: str) -> None:
    head, other = ["費用", "区分", "日付"], [7, "外来", datetime.date(2024, 3, 1)]
    file = _book(tmp_path / "a.xlsx", {"a": [head, other, [3, "入院", None], other]})
    book = openpyxl.load_workbook(file)
    book["a"]["C3"].value, book["a"]["C3"].number_format = cell, format
    book.save(file)
    found = read(file, schema=SCHEMA)
    assert found[[0, 2]].tolist() == [[7, 1, 19783]] * 2
    assert found[1].tolist() in ([3, 0, DAY.missing], [COST.missing, -1, DAY.missing])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04broken", b"secret-cell"])
def test_a_broken_workbook_is_refused_without_its_words(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(DataError, match="must be a workbook") as caught:
        read(tmp_path / "a.xlsx", schema=SCHEMA)
    assert "secret" not in str(caught.value)


def test_an_empty_sheet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="empty"):
        read(_book(tmp_path / "a.xlsx", {"a": []}), schema=SCHEMA)
