"""Code books of several kinds become the same columns, and say what they lack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sabun.errors import DataError
from sabun.records import Column
from sabun.records.codebooks import read_code_book

AGE = Column.number("age", lower=0, upper=120)
SMOKER = Column.category("smoker", ["no", "yes"])

CSV = "name,kind,lower,upper,labels,missing\nage,number,0,120,,\nsmoker,category,,,no|yes,\nnotes,text,,,,\n"
FRICTIONLESS = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "smoker", "type": "string", "constraints": {"enum": ["no", "yes"]}},
        {"name": "notes", "type": "string"},
    ]
}
PANDERA = {
    "schema_type": "dataframe",
    "columns": {
        "age": {"dtype": "int64", "checks": {"greater_than_or_equal_to": 0, "less_than_or_equal_to": 120}},
        "smoker": {"dtype": "object", "checks": {"isin": ["no", "yes"]}},
        "notes": {"dtype": "object", "checks": None},
    },
}
NEWER = {
    "columns": {
        "age": {"dtype": "int64", "checks": [{"min_value": 0, "max_value": 120, "options": {"check_name": "in_range"}}]},
        "smoker": {"dtype": "str", "checks": [{"value": ["no", "yes"], "options": {"check_name": "isin"}}]},
        "notes": {"dtype": "str", "checks": []},
    }
}
DDI = """<?xml version="1.0"?>
<codeBook xmlns="ddi:codebook:2_5"><dataDscr>
  <var name="age"><valrng><range min="0" max="120"/></valrng><varFormat type="numeric"/></var>
  <var name="smoker"><catgry><catValu>no</catValu></catgry><catgry><catValu>yes</catValu></catgry>
    <catgry missing="Y"><catValu>9</catValu></catgry><varFormat type="character"/></var>
  <var name="notes"><varFormat type="character"/></var>
</dataDscr></codeBook>"""
BOOKS = {
    "lines.csv": CSV,
    "european.csv": CSV.replace(",", ";"),
    "table.json": json.dumps(FRICTIONLESS),
    "package.json": json.dumps({"resources": [{"schema": FRICTIONLESS}]}),
    "pandera.json": json.dumps(PANDERA),
    "newer.json": json.dumps(NEWER),
    "study.xml": DDI,
}


@pytest.mark.parametrize("name", BOOKS)
def test_every_kind_declares_the_same_columns(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(BOOKS[name])
    found = read_code_book(tmp_path / name)
    assert found.columns == (AGE, SMOKER)
    assert found.short == {"notes": "a text without a list of labels"}


def test_pandera_writes_yaml_too(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(PANDERA))
    assert read_code_book(tmp_path / "p.yaml").columns == (AGE, SMOKER)


def test_a_japanese_code_book_in_shift_jis_is_read(tmp_path: Path) -> None:
    (tmp_path / "j.csv").write_bytes("name,kind,lower,upper\n年齢,number,0,120\n".encode("cp932"))
    assert read_code_book(tmp_path / "j.csv").columns == (Column.number("年齢", lower=0, upper=120),)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "column,low\nage,0\n", "must have a column 'name'"),
        ("a.csv", "name,lower,upper\nage,0,1\nage,0,1\n", "must name each column once"),
        ("a.csv", "name\n", "must describe columns"),
        ("a.json", "[1]", "must be a Table Schema"),
        ("a.json", "{", "a code book"),
        ("a.xml", "<!DOCTYPE x [<!ENTITY a 'aa'>]><x>&a;</x>", "must have no DOCTYPE"),
        ("a.xml", "<var>", "must be well-formed"),
        ("a.txt", "", "must be a file .csv"),
    ],
)
def test_what_is_no_code_book_is_refused(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=words):
        read_code_book(tmp_path / name)
    with pytest.raises(DataError, match="must be a file that can be read"):
        read_code_book(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yaml", b"columns:\n  a:\n    dtype: 2020-13-45\n"),
        ("a.yaml", b"columns:\n  a:\n    dtype: " + b"1" * 5000),
        ("a.yaml", b"[" * 3000),
        ("a.xml", b'<?xml version="1.0" encoding="cp932"?><a/>'),
        ("a.xml", b'<?xml version="1.0" encoding="nobody"?><a/>'),
        ("a.csv", b"name,labels\na," + b"x" * 200_000),
    ],
)
def test_what_its_reader_chokes_on_is_no_code_book(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="must be a file that can be read as what its name says"):
        read_code_book(tmp_path / name)


def test_a_list_that_swells_without_end_is_no_bound_and_no_label(tmp_path: Path) -> None:
    """Thirty lists of ten, each of the one before: every text of the last would fill all memory there is."""
    lists = "".join(f"l{depth}: &l{depth} [{', '.join([f'*l{depth - 1}' if depth else 'x'] * 10)}]\n" for depth in range(30))
    checks = {"a": "{ge: *l29, le: 5}", "b": "{isin: [*l29]}", "c": "[{options: {check_name: *l29}, value: 1}]"}
    columns = "".join(f"  {name}:\n    dtype: *l29\n    checks: {rule}\n" for name, rule in checks.items())
    (tmp_path / "a.yaml").write_text(f"{lists}columns:\n{columns}")
    found = read_code_book(tmp_path / "a.yaml")
    assert found.columns == ()
    assert list(found.short) == ["a", "b", "c"]


@pytest.mark.parametrize(("lower", "upper"), [("0", ""), ("low", "high"), ("nan", "1"), ("5", "1"), ("-inf", "inf")])
def test_bounds_that_are_none_leave_the_column_out(lower: str, upper: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"name,kind,lower,upper\nage,number,{lower},{upper}\n")
    found = read_code_book(tmp_path / "a.csv")
    assert found.columns == ()
    assert list(found.short) == ["age"]


@pytest.mark.parametrize("name", ["lines.csv", "table.json", "study.xml"])
def test_a_code_book_may_bring_units(name: str, tmp_path: Path) -> None:
    fields = [dict(field, unit="  years ") if field["name"] == "age" else field for field in FRICTIONLESS["fields"]]
    books = {
        "lines.csv": CSV.replace("missing\n", "missing,unit\n").replace("120,,\n", "120,,,years\n"),
        "table.json": json.dumps({"fields": fields}),
        "study.xml": DDI.replace('<var name="age">', '<var name="age" measUnit="years">'),
    }
    (tmp_path / name).write_text(books[name])
    assert read_code_book(tmp_path / name).columns == (Column.number("age", lower=0, upper=120, unit="years"), SMOKER)
    (tmp_path / name).write_text(books[name].replace("years", "years since the birth of the person"))
    assert read_code_book(tmp_path / name).columns == (AGE, SMOKER)
