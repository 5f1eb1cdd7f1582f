from __future__ import annotations

import csv
import json
import sys
import webbrowser
from pathlib import Path

import pytest

import sabun.reproduction
from cli.terminal import exit_code
from reports.html_checks import Page
from sabun.asking import Room
from sabun.reproduction import paper_module, papers

TINY = """
from sabun.reproduction import Claim, Item, Reproduction, Table, drawn

ITEMS = (Item(item="Table 1", place="reproduction: table-1", test="tests/x.py::test_x"),
         Item(item="Section 2", reason="Words."))

def reproduce(*, quick, progress):
    progress(0.5, "halfway")
    extra = () if quick else (Table(name="table-2", title="Full only", columns=("a",), rows=((1,),)),)
    return Reproduction(
        room="{room}", paper="A <tiny> paper", summary="It `holds` & more.", errata=("Line 3 is wrong.",),
        tables=(Table(name="table-1", title="Errors", columns=("epsilon", "ours", "paper"),
                      rows=((0.1, 1 / 3, 0.3), (1, None, True))), *extra),
        figures=(drawn(name="figure-1", title="A line", draw=lambda axes: axes.plot([1, 2]), note="It rises."),),
        settings={{"trials": 3, "seeds": [0, 1, 2]}}, default="Our way.",
        claims=(Claim(text="It is fast.", where="section 4", verdict="does not hold", found="3 seconds"),),
    )
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two papers that take no time, in place of the real ones."""
    made = []
    for number, room in enumerate(("tiny", "weeny")):
        package = tmp_path / "modules" / f"{room}_paper"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "reproduction.py").write_text(TINY.format(room=room))
        made.append(Room(name=room, package=package.name, job="nothing", order=number))
        for name in (package.name, f"{package.name}.reproduction"):
            monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setattr(sabun.reproduction, "rooms", lambda: tuple(made))
    monkeypatch.setattr(sabun.reproduction, "room_named", {room.name: room for room in made}.get)


def test_the_papers_are_those_of_the_rooms(tiny: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("reproduce", "--list") == 0
    assert capsys.readouterr().out == "tiny\nweeny\n"
    assert exit_code("reproduce", "--list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"papers": ["tiny", "weeny"]}


def test_every_paper_that_comes_with_sabun_can_be_run() -> None:
    for room in papers():
        assert callable(paper_module(room).reproduce)


def test_a_paper_becomes_tables_figures_and_a_page(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert exit_code("reproduce", "tiny", "--out", out) == 0
    assert f"The page to read is '{out / 'tiny.html'}'" in capsys.readouterr().out
    with (out / "tiny" / "table-1.csv").open() as file:
        assert list(csv.reader(file)) == [["epsilon", "ours", "paper"], ["0.1", str(1 / 3), "0.3"], ["1", "", "True"]]
    assert (out / "tiny" / "figure-1.svg").read_text().startswith("<?xml")
    page = Page((out / "tiny.html").read_text(encoding="utf-8"))
    assert page.problems == []
    for words in ("A <tiny> paper", "It holds & more.", "Line 3 is wrong.", "0.3333", "full", "trials 3", " cores"):
        assert words in page.text, words
    assert [link for link in page.links if not link.startswith("data:") and not (out / link).exists()] == []
    assert not (out / "index.html").exists()


def test_all_of_them_get_an_index(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("reproduce", "--quick", "--out", tmp_path / "out", "--json") == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert err == ""
    assert [paper["room"] for paper in record["papers"]] == ["tiny", "weeny"]
    assert all(Path(file).exists() for paper in record["papers"] for file in paper["files"])
    page = Page(Path(record["page"]).read_text(encoding="utf-8"))
    assert page.problems == []
    assert page.links == ["tiny.html", "weeny.html"]
    assert "quick version" in page.text


def test_claims_are_told_with_their_verdict(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("reproduce", "tiny", "--out", tmp_path / "out") == 0
    told = capsys.readouterr().out
    assert told.index("✗ does not hold") < told.index("It is fast. (section 4)") < told.index("Found: 3 seconds")
    assert told.index("Found: 3 seconds") < told.index("It `holds` & more.") < told.index("By default: Our way.")
    assert exit_code("reproduce", "tiny", "--out", tmp_path / "out", "--json") == 0
    [paper] = json.loads(capsys.readouterr().out)["papers"]
    claim = {"text": "It is fast.", "where": "section 4", "verdict": "does not hold", "found": "3 seconds"}
    assert (paper["claims"], paper["default"]) == ([claim], "Our way.")
    assert json.loads((tmp_path / "out" / "reproduction.json").read_bytes())["papers"]["tiny"]["claims"] == [claim]


def test_a_paper_is_told_in_japanese(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("reproduce", "all", "--quick", "--out", tmp_path / "out", "--lang", "ja") == 0
    told = capsys.readouterr().out
    assert "× 成り立たない" in told
    assert "It is fast. (4 節)" in told
    page = Page((tmp_path / "out" / "tiny.html").read_text(encoding="utf-8"))
    assert page.problems == []
    assert "論文の主張と、確かめた結果" in page.text
    assert "簡易版" in Page((tmp_path / "out" / "index.html").read_text(encoding="utf-8")).text


def test_a_folder_of_an_earlier_version_has_no_claims_and_is_read(tiny: None, tmp_path: Path) -> None:
    assert exit_code("reproduce", "tiny", "--out", tmp_path / "out") == 0
    kept = tmp_path / "out" / "reproduction.json"
    record = json.loads(kept.read_bytes())
    del record["papers"]["tiny"]["claims"]
    kept.write_text(json.dumps(record))
    assert exit_code("reproduce", "all", "--out", tmp_path / "out") == 0
    record["papers"]["tiny"]["claims"] = [{"text": "x"}]
    kept.write_text(json.dumps(record))
    assert exit_code("reproduce", "weeny", "--out", tmp_path / "out") == 4


def test_the_items_of_a_paper_are_listed(tiny: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("reproduce", "tiny", "--items") == 0
    assert capsys.readouterr().out == (
        "tiny\nTable 1\n    reproduction: table-1\n    tests/x.py::test_x\nSection 2\n    Words.\n\n"
    )
    assert exit_code("reproduce", "--items", "--json") == 0
    found = json.loads(capsys.readouterr().out)["items"]
    assert list(found) == ["tiny", "weeny"]
    assert found["tiny"][1] == {"item": "Section 2", "place": "", "test": "", "reason": "Words."}


def test_an_earlier_reproduction_is_replaced(tiny: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert exit_code("reproduce", "tiny", "--out", out) == 0
    assert (out / "tiny" / "table-2.csv").exists()
    (out / "mine.txt").write_text("mine")
    assert exit_code("reproduce", "all", "--quick", "--out", out) == 0
    assert not (out / "tiny" / "table-2.csv").exists()
    assert (out / "weeny.html").exists()
    assert (out / "mine.txt").read_text() == "mine"


def test_a_folder_of_something_else_is_not_touched(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert exit_code("reproduce", "tiny", "--out", out) == 2
    assert "out must be a new folder, an empty one, or one made by an earlier reproduction; got" in capsys.readouterr().err
    assert exit_code("reproduce", "tiny", "--out", out / "mine.txt") == 2
    assert [file.name for file in out.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        '{"format": "sabun-reproduction", "papers": []}',
        '{"format": "sabun-reproduction", "papers": {"tiny": {}}}',
        '{"format": "sabun-reproduction", "papers": {"../x": {"room": "", "paper": "", "summary": "", "page": "../x.html", '
        '"time": "", "quick": true, "files": []}}}',
        '{"format": "sabun-reproduction", "papers": {"x": {"room": "", "paper": "", "summary": "", "page": "x.html", '
        '"time": "", "quick": true, "files": [1]}}}',
    ],
)
def test_a_damaged_list_is_bad_data(tiny: None, tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "reproduction.json").write_text(content)
    assert exit_code("reproduce", "tiny", "--out", tmp_path / "out") == 4
    assert "must be the list of an earlier reproduction; it is not" in capsys.readouterr().err


def test_a_list_cannot_make_it_remove_files_elsewhere(tiny: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert exit_code("reproduce", "tiny", "--out", out) == 0
    (tmp_path / "precious.csv").write_text("x")
    (out / "precious.csv").write_text("x")
    record = json.loads((out / "reproduction.json").read_bytes())
    record["papers"]["tiny"]["files"] += ["../precious.csv", "precious.csv", "tiny/../precious.csv", "tiny/../../precious.csv"]
    (out / "reproduction.json").write_text(json.dumps(record))
    assert exit_code("reproduce", "tiny", "--out", out) == 0
    assert (tmp_path / "precious.csv").exists()
    assert (out / "precious.csv").exists()


def test_an_unknown_paper_is_refused(tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("reproduce", "huge", "--out", tmp_path / "out") == 2
    assert "paper must be one of 'tiny', 'weeny', 'all'; got 'huge'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("table-1", "../table", "a table or figure must have a plain file name; got '../table'"),
        ("table-2", "table-1", "has two tables or two figures of one name"),
        ("def reproduce", "def other", "has no function reproduction.reproduce"),
    ],
)
def test_a_broken_reproduction_is_our_bug(
    tiny: None, tmp_path: Path, old: str, new: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "modules" / "tiny_paper" / "reproduction.py"
    module.write_text(module.read_text().replace(old, new))
    assert exit_code("reproduce", "tiny", "--out", tmp_path / "out") == 70
    assert words in capsys.readouterr().err
    assert not (tmp_path / "table.csv").exists()


def test_the_page_is_opened_on_request(tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert exit_code("reproduce", "tiny", "--out", tmp_path / "out", "--open") == 0
    assert opened == [(tmp_path / "out" / "tiny.html").resolve().as_uri()]


def test_a_real_paper_is_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The quickest one, with a single draw; it and the others have their quick runs in the tests of their rooms."""
    monkeypatch.setattr("sabun.outliers.reproduction._QUICK_DRAWS", 1)
    assert exit_code("reproduce", "outliers", "--quick", "--out", tmp_path / "out", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    page = Page(Path(record["page"]).read_text(encoding="utf-8"))
    assert page.problems == []
    assert len(record["papers"][0]["files"]) > 5
