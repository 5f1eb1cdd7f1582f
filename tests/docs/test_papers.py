"""Item of a paper → where in Sabun → test that runs it: each cell is there, and the page that shows them is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from docs.paper_items import ROOT, lost_place, lost_test
from sabun.errors import InternalError
from sabun.reproduction import Item, items, papers, unmade
from sabun.telling.reproduction import Reproduction, Table

sys.path.insert(0, str(ROOT / "tools" / "docs"))
import papers as papers_page

LISTED = [room for room in papers() if items(room)]
GOOD = Item(item="Table 1", place="sabun reproduce --quick; sabun.reproduction.items", test="tests/docs/test_papers.py::test_x")


@pytest.mark.parametrize("room", LISTED)
def test_every_place_of_a_paper_s_items_is_there(room: str) -> None:
    assert {place: lost for item in items(room) for place in item.places if (lost := lost_place(place))} == {}


@pytest.mark.parametrize("room", LISTED)
def test_every_test_of_a_paper_s_items_is_there(room: str) -> None:
    assert {test: lost for item in items(room) for test in item.tests if (lost := lost_test(test))} == {}


@pytest.mark.parametrize("room", LISTED)
def test_no_item_stands_twice_and_none_is_empty(room: str) -> None:
    names = [item.item for item in items(room)]
    assert len(set(names)) == len(names)
    assert [item.item for item in items(room) if not (item.place and item.test) and not item.reason] == []


def test_every_paper_has_its_items() -> None:
    assert papers(), "there are papers"
    assert [room for room in papers() if not items(room)] == []


@pytest.mark.parametrize("room", LISTED)
def test_the_room_s_own_run_makes_the_tables_and_figures_its_items_name(room: str) -> None:
    """The quick run takes seconds, so the room's tests, which have one at hand, ask `unmade` about it."""
    text = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests" / room).glob("test_*.py"))
    assert "unmade(" in text, f"a test of {room} must hold its quick run against unmade"


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers_page.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "lost"),
    [
        ("sabun.reproduction.items", ""),
        ("sabun.reproduction.no_such_name", "no such name"),
        ("sabun.no_such_module.x", "no such name"),
        ("sabun reproduce outliers --quick", ""),
        ("sabun outliers count --k 3", ""),
        ("sabun outliers", "no such command: a verb is missing"),
        ("sabun outliers guess", "no such command: guess"),
        ("sabun outliers count --no-such-option", "no such option: --no-such-option"),
    ],
)
def test_a_place_that_is_not_there_is_found(place: str, lost: str) -> None:
    assert lost_place(place) == lost


@pytest.mark.parametrize(
    ("test", "lost"),
    [
        ("tests/docs/test_papers.py::test_the_page_is_up_to_date", ""),
        ("tests/docs/test_papers.py::test_a_place_that_is_not_there_is_found[x]", ""),
        ("tests/docs/test_papers.py::test_no_such_thing", "no such test"),
        ("tests/docs/test_papers.py", ""),
        ("tests/docs/paper_items.py", "no test in it"),
        ("tests/docs/no_such_file.py::test_x", "no such file"),
        ("tests/docs/paper_items.py::lost_test", "not a test"),
    ],
)
def test_a_test_that_is_not_there_is_found(test: str, lost: str) -> None:
    assert lost_test(test) == lost


def test_a_cell_without_a_reason_is_refused() -> None:
    with pytest.raises(InternalError, match="must have a place and a test, or a reason why not"):
        Item(item="Table 1", place="sabun.reproduction.items")
    with pytest.raises(InternalError, match="must have a place and a test, or a reason why not"):
        Item(item="Table 1")


def test_the_page_has_a_row_for_each_item() -> None:
    none = Item(item="Theorem 2, section 3.1", reason="A remark, not a method | nothing to run.")
    english, japanese = (papers_page.page({"outliers": [GOOD, none]}, lang) for lang in ("en", "ja"))
    assert (
        "| Table 1 | `sabun reproduce --quick`<br>`sabun.reproduction.items` | `tests/docs/test_papers.py::test_x` |" in english
    )
    remark = "A remark, not a method \\| nothing to run."
    assert f"| Theorem 2, section 3.1 | {remark} | – |" in english
    assert "| 定理 2、3.1 節 |" in japanese
    assert "| 表 1 |" in japanese


def test_a_table_that_no_run_makes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import sabun.reproduction as shelf

    listed = (
        Item(item="Table 1", place="reproduction: table-1", test="x"),
        Item(item="Figure 9", place="reproduction: f", test="x"),
    )
    monkeypatch.setattr(shelf, "items", lambda room: listed)
    table = Table(name="table-1", title="t", columns=("a",), rows=())
    made = Reproduction(room="r", paper="p", summary="s", tables=(table,), figures=(), errata=(), settings={})
    assert unmade(made) == ["reproduction: f"]


def test_a_room_s_items_are_found_beside_its_reproduction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sabun.reproduction as shelf
    from sabun.asking import Room

    line = "from sabun.telling.reproduction import Item\nITEMS = (Item(item='Table 1', reason='no'),)\n"
    for name, files in {
        "one_paper": {"reproduction.py": line + "def reproduce(): ...\n"},
        "two_paper": {"reproduction/__init__.py": "def reproduce(): ...\n", "reproduction/items.py": line},
        "no_paper": {"reproduction/__init__.py": "def reproduce(): ...\n"},
    }.items():
        for file, text in {"__init__.py": "", **files}.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(shelf, "room_named", lambda name: Room(name=name, package=name, job="x", order=1))
    assert [len(items(name)) for name in ("one_paper", "two_paper", "no_paper")] == [1, 1, 0]
