from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.terminal import exit_code
from sabun.errors import ParameterError
from sabun.records import Column, FileFormat, Schema
from sabun.telling.terminal.interview import column_of, looked_at, read_labels, typed_labels


class Said(NamedTuple):
    code: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def typed(*arguments: object) -> Said:
        code = exit_code(*arguments)
        return Said(code, *capsys.readouterr())

    return typed


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "t.csv"
    file.write_text('age,bmi,smoker,ward\n30,"21,9",YES,a\n200,22,no,b\n,300,yess,c\n40,25,yes,d\n')
    return file


def test_a_schema_from_options_is_the_schema_from_python(tmp_path: Path, run: Callable[..., Said]) -> None:
    out = tmp_path / "s.json"
    done = run("schema", "new", out, "--number", "age=0:120", "--category", "smoker=no, yes", "--missing", "age=40")
    assert done.code == 0, done.stderr
    assert Schema.load(out).to_dict()["columns"] == [
        {"kind": "number", "name": "age", "lower": 0.0, "upper": 120.0, "missing": 40.0, "log1p": False},
        {"kind": "category", "name": "smoker", "categories": ["no", "yes"], "missing": None},
    ]
    assert "sabun schema check" in done.stdout
    assert "age: a number from 0 to 120; unreadable cells count as 40" in run("schema", "show", out).stdout


def test_labels_on_the_command_line_are_parted_as_at_the_desk(tmp_path: Path, run: Callable[..., Said]) -> None:
    given = ("--category", "地区=中央、東部，西部", "--category", 'who="Doe, Jane",Poe')
    assert run("schema", "new", tmp_path / "s.json", *given).code == 0
    found = [column["categories"] for column in Schema.load(tmp_path / "s.json").to_dict()["columns"]]
    assert found == [["中央", "東部", "西部"], ["Doe, Jane", "Poe"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "columns must be declared"),
        (("--number", "age=0-120"), "number must look like name=low:high"),
        (("--number", "age"), "number must look like name=low:high"),
        (("--number", "age=120:0"), "bounds of column 'age' must be"),
        (("--category", "sex="), "category must look like name=label,label"),
        (("--number", "age=0:120", "--missing", "agee=4"), "missing must name a column that is declared; got 'agee'"),
        (("--number", "age=0:120", "--log1p", "income"), "log1p must name a column of numbers that is declared; got 'income'"),
        (("--number", "age=0:120", "--missing", "age=old"), "number must look like"),
    ],
)
def test_a_schema_that_cannot_be_is_refused_without_a_file(
    tmp_path: Path, options: tuple[str, ...], message: str, run: Callable[..., Said]
) -> None:
    done = run("schema", "new", tmp_path / "s.json", *options)
    assert done.code == 2
    assert message in done.stderr
    assert not (tmp_path / "s.json").exists()


def test_options_add_to_a_code_book(tmp_path: Path, run: Callable[..., Said]) -> None:
    book, out = tmp_path / "book.csv", tmp_path / "s.json"
    book.write_text("name,kind,lower,upper,labels\nage,number,0,120,\ncost,number,0,9000,\nsex,category,,,f|m\n")
    more = ("--missing", "age=40", "--missing", "sex=m", "--log1p", "cost")
    assert run("schema", "new", out, "--code-book", book, *more).code == 0
    assert Schema.load(out).columns == (
        Column.number("age", lower=0, upper=120, missing=40),
        Column.number("cost", lower=0, upper=9000, log1p=True),
        Column.category("sex", ["f", "m"], missing="m"),
    )
    for wrong, message in (
        (("--log1p", "sex"), "log1p must name a column of numbers that is declared; got 'sex'"),
        (("--missing", "age=old"), "missing must be a number for 'age'; got 'old'"),
    ):
        done = run("schema", "new", tmp_path / "other.json", "--code-book", book, *wrong)
        assert done.code == 2
        assert message in done.stderr


def test_an_existing_schema_is_not_replaced_unless_asked_for(tmp_path: Path, run: Callable[..., Said]) -> None:
    out = tmp_path / "s.json"
    run("schema", "new", out, "--number", "age=0:120")
    before = out.read_text()
    assert run("schema", "new", out, "--number", "age=0:90").code != 0
    assert out.read_text() == before
    assert run("schema", "new", out, "--number", "age=0:90", "--overwrite").code == 0
    assert Schema.load(out)["age"].upper == 90  # type: ignore[attr-defined]


def test_the_owner_sees_what_does_not_fit_before_paying(tmp_path: Path, table: Path, run: Callable[..., Said]) -> None:
    out = tmp_path / "s.json"
    run("schema", "new", out, "--number", "age=0:120", "--number", "bmi=10:60", "--category", "smoker=no,yes")
    done = run("schema", "check", table, "--schema", out)
    assert done.code == 0, done.stderr
    assert "NOT PRIVATE" in done.stdout
    assert "Not declared, so no job can use them: ward." in done.stdout
    assert "yess" not in done.stdout
    assert "'yess' (1)" in run("schema", "check", table, "--schema", out, "--labels").stdout
    assert "1 rows repeat an id" not in run("schema", "check", table, "--schema", out, "--id", "ward").stdout
    assert (
        "id must be a column of t.csv, such as 'age', 'bmi', 'smoker', 'ward'; got 'who'"
        in run("schema", "check", table, "--schema", out, "--id", "who").stderr
    )
    alone = run("schema", "check", table, "--schema", out, "--id", "ward").stdout
    assert "No row repeats an id." in alone
    assert "Not declared" not in alone, "the id need not be declared"
    assert "bmi, cannot be read: '21,9' (1)" in run("schema", "check", table, "--schema", out, "--labels").stdout
    twice = tmp_path / "twice.csv"
    twice.write_text("who,age,bmi,smoker\nP07,30,20,no\np7,31,21,no\n", encoding="utf-8")
    asked = ("schema", "check", twice, "--schema", out, "--id", "who")
    assert "Groups of ids that differ only in case or leading zeros: 1." in run(*asked).stdout
    assert "P07" not in run(*asked).stdout
    assert "These ids look alike: 'P07', 'p7'" in run(*asked, "--labels").stdout
    twice.write_text("who,age,bmi,smoker\nP7,30,20,no\np7,31,21,no\n", encoding="utf-8")
    assert "1 rows repeat an id" in (told := run(*asked, "--spelling", "caseless").stdout)
    assert "Groups of ids" not in told, "what the check recommends can be tried with it"
    assert "--spelling must come with --id" in run(*asked[:-2], "--spelling", "caseless").stderr
    assert "spelling must be one of 'text', 'caseless', 'number'" in run(*asked, "--spelling", "loud").stderr
    record = json.loads(run("schema", "check", table, "--schema", out, "--json").stdout)
    assert record["undeclared"] == ["ward"]
    assert [column["fitting"] for column in record["columns"]] == [2, 2, 2]


def test_foreign_column_names_cannot_write_lines_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lie = "age\nNo cell is missing.\u2028"
    Schema(columns=(Column.number(lie, lower=0, upper=9), Column.category("c", ["x"]))).save(tmp_path / "s.json")
    assert exit_code("schema", "show", tmp_path / "s.json") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    pq.write_table(pa.table({lie: [1], "c": ["y"], f"more{lie}": [1]}), tmp_path / "t.parquet")
    assert exit_code("schema", "check", tmp_path / "t.parquet", "--schema", tmp_path / "s.json", "--labels") == 0
    assert not any(line.startswith("No cell") for line in capsys.readouterr().out.splitlines())


def test_a_column_name_with_half_a_character_is_refused() -> None:
    with pytest.raises(ParameterError, match="name must be valid Unicode text"):
        Column.number("\ud800", lower=0, upper=9)
    with pytest.raises(ParameterError, match="name must be valid Unicode text"):
        Column.category("\ud800", ["x"])


def _answering(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_a_schema_by_question_and_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age,smoker,visit,name\n987,no,2020-01-01,Ann\n")
    wrong = ("banana", "n", "0", "x")
    number = ("0", "120", "", "", "n")
    _answering(monkeypatch, *wrong, *number, "c", "no, yes", "", "d", "2019-01-01", "2021-12-31", "", "")
    assert exit_code("schema", "new", "a.json", "--ask", "--names-of", "t.csv") == 0
    out, err = capsys.readouterr()
    assert Schema.load("a.json").columns == (
        Column.number("age", lower=0, upper=120),
        Column.category("smoker", ["no", "yes"]),
        Column.date("visit", lower="2019-01-01", upper="2021-12-31"),
    )
    assert "987" not in out + err
    assert "Ann" not in out + err
    assert "NOT PRIVATE" not in err
    assert out.startswith("age: a number from 0 to 120")


def test_an_id_is_known_to_the_questions_and_stays_out_of_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("patient no,age\n987,30\n")
    _answering(monkeypatch, "i", "n", "0", "120", "", "", "n")
    assert exit_code("schema", "new", "a.json", "--ask", "--names-of", "t.csv") == 0
    out, err = capsys.readouterr()
    assert Schema.load("a.json").names == ("age",)
    assert "ask with --id 'patient no'" in err
    assert "987" not in out + err


def test_who_is_asked_about_a_workbook_hears_of_its_sheets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Said]
) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl, which writes the workbook of this test, is not installed")
    book = openpyxl.Workbook()
    book.active.title = "cover"
    book.active.append(["Figures of the month"])
    book.create_sheet("North").append(["age"])
    book.save(tmp_path / "t.xlsx")
    asked = ("--ask", "--names-of", tmp_path / "t.xlsx")
    _answering(monkeypatch, "s")
    told = "t.xlsx has the sheets 'cover', 'North'; the columns are those of the first. For another: --sheet."
    assert told in run("schema", "new", tmp_path / "a.json", *asked).stderr
    _answering(monkeypatch, "n", "0", "120", "", "", "n")
    found = run("schema", "new", tmp_path / "a.json", *asked, "--sheet", "North")
    assert found.code == 0, found.stderr
    assert "has the sheets" not in found.stderr


def test_names_are_asked_for_where_no_table_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _answering(monkeypatch, "age", "n", "0", "120", "40", "", "", "age", "")
    assert exit_code("schema", "new", "a.json", "--ask") == 0
    assert Schema.load("a.json").columns == (Column.number("age", lower=0, upper=120, missing=40),)


def test_the_questions_ask_for_all_that_a_schema_can_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    income = ("income", "n", "0", "9000", "7e9", "100", "円" * 30, "円", "perhaps", "y")
    _answering(monkeypatch, *income, "t", "n", "-9", "9", "", "℃", "sex", "c", "F,M,?", "x", "?",
               "in", "d", "2020-01-01", "2020-12-31", "2020-02-01", "")  # fmt: skip
    assert exit_code("schema", "new", "a.json", "--ask") == 0
    assert Schema.load("a.json").columns == (
        Column.number("income", lower=0, upper=9000, missing=100, unit="円", log1p=True),
        Column.number("t", lower=-9, upper=9, unit="℃"),
        Column.category("sex", ["F", "M", "?"], missing="?"),
        Column.date("in", lower="2020-01-01", upper="2020-12-31", missing="2020-02-01"),
    )


def test_a_unit_is_an_option_and_names_that_are_near_are_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    declared = ("schema", "new", "a.json", "--number", "weight=0:200", "--category", "sex=F,M")
    assert exit_code(*declared, "--unit", "weight=kg") == 0
    assert "weight: a number from 0 to 200 kg; unreadable cells count as 100 kg" in capsys.readouterr().out
    for option, words in (
        ("--unit=wieght=kg", "unit must name a column of numbers that is declared; got 'wieght'. Did you mean 'weight'?"),
        ("--unit=sex=kg", "unit must name a column of numbers that is declared; got 'sex'."),
        ("--missing=Weigth=3", "missing must name a column that is declared; got 'Weigth'. Did you mean 'weight'?"),
        ("--log1p=wight", "log1p must name a column of numbers that is declared; got 'wight'. Did you mean 'weight'?"),
    ):
        assert exit_code(*declared[:2], "b.json", *declared[3:], option) == 2
        assert words in capsys.readouterr().err
    assert not Path("b.json").exists()


def test_a_look_counts_the_numbers_that_a_question_would_read() -> None:
    cells = ["1,234", 56.5, None, " ", "12,34", "true", "x"]
    assert (
        looked_at(cells, FileFormat(thousands=",")) == "2 of 7 cells are empty; 40% of the cells are numbers, 5 different ones."
    )
    assert "60% of the cells are numbers" in looked_at(cells, FileFormat(decimal=",")), "12,34 too"
    assert looked_at([None], FileFormat()) == "1 of 1 cells are empty; no cell is filled."


@pytest.mark.parametrize("typed", ["no;yes", "月額 年額 無料", "はい・いいえ", " "])
def test_labels_that_no_comma_parts_are_asked_for_again(typed: str) -> None:
    with pytest.raises(ParameterError, match="between commas"):
        column_of("stay", "category", labels=typed)
    assert read_labels(kept := typed_labels(["Ops night"])) == ["Ops night"]
    assert column_of("stay", "category", labels=kept) is not None


def test_a_look_at_the_rows_is_said_to_be_not_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age\n987\n\n55\n")
    _answering(monkeypatch, "s")
    assert exit_code("schema", "new", "a.json", "--ask", "--names-of", "t.csv", "--look") == 2
    said = capsys.readouterr().err
    assert "NOT PRIVATE" in said
    assert "100% of the cells are numbers" in said
    assert "987" not in said


def test_answers_that_end_early_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _answering(monkeypatch, "age", "n", "0")
    assert exit_code("schema", "new", "a.json", "--ask") == 2
    assert "must be answered to the end" in capsys.readouterr().err
    assert not Path("a.json").exists()


def test_a_code_book_and_options_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("book.csv").write_text("name,kind,lower,upper\nage,number,0,120\nbmi,number,,\ncost,number,,\n")
    assert exit_code("schema", "new", "a.json", "--code-book", "book.csv", "--number", "bmi=10:60") == 0
    assert Schema.load("a.json").names == ("age", "bmi")
    assert "cost is left out: the code book has a number without a lower and an upper bound" in capsys.readouterr().err
