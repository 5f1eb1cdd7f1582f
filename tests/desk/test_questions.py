"""Every room's questions through the forms: asked once, paid once, the same elsewhere."""

from __future__ import annotations

import html
import os
import re
import shlex
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from desk.desks import Clinic
from desk.guests import Guest
from sabun.asking.directory import rooms
from sabun.cli._frame import run, whole
from sabun.desk.errands import Errands
from sabun.desk.jobs import jobs
from sabun.ledger import Ledger
from sabun.records import Schema

ASKED: dict[str, dict[str, Any]] = {
    "summaries/count": {"by": "sex"},
    "summaries/mean": {"column": "age", "by": "sex", "where": "age=30:\nsex=F", "confidence": "0.9"},
    "outliers/count": {"columns": ["age", "stay days"], "radius": "0.02"},
    "outliers/choose": {"subspace": "one=age\nother=stay days", "radius": "0.02"},
    "density/weights": {"columns": "age", "public": "volunteers.csv"},
    "regression/fit": {"columns": "age", "target": "stay days", "epsilon": "2"},
    "learning/train": {"columns": ["age", "stay days"], "target": "sex", "method": "noisy-centroids", "hidden": ""},
}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = Clinic(tmp_path_factory.mktemp("clinic"))
    made.declare()
    yield made
    made.end()


@pytest.fixture(scope="module")
def guest(clinic: Clinic) -> Iterator[Guest]:
    made = Guest(clinic)
    yield made
    made.close()


def code_in(page: str, name: str) -> str:
    return html.unescape(re.findall(rf'<code id="{name}">(.*?)</code>', page, re.DOTALL)[0])


def filled(guest: Guest, path: str, **fields: Any) -> dict[str, Any]:
    if "public" in fields:
        [found] = re.findall(rf'<option value="([0-9a-f]+)">{re.escape(fields["public"])}<', guest.get(path).text)
        fields["public"] = found
    return {"epsilon": "1", **fields, "act": "ask"}


def test_every_room_with_a_table_can_be_asked() -> None:
    found = jobs(whole)
    assert {room.name for room, own in found.items() if own} == {room.name for room in rooms()} - {"keyvalue"}
    assert {"/".join(job.words).partition("/")[0] for own in found.values() for job in own} == {
        name.partition("/")[0] for name in ASKED
    }


@pytest.mark.parametrize("job", ASKED)
def test_a_question_is_paid_once_and_is_free_from_everywhere_after_that(clinic: Clinic, guest: Guest, job: str) -> None:
    path = f"tables/{guest.handle('patients.csv')}/jobs/{job}"
    fields = filled(guest, path, **ASKED[job])
    before = len(clinic.book.entries())
    plan = guest.send(path, **fields | {"act": "plan"})
    assert plan.status_code == 200
    assert 'class="chosen"' in plan.text, "the plan is drawn"
    assert len(clinic.book.entries()) == before, "a plan costs nothing"
    page = guest.answered(guest.send(path, **fields))
    assert page.status_code == 200, page.text
    assert "entry" in re.findall(r'id="cost">(.*?)<', page.text)[0]
    entries = clinic.book.entries()
    assert len(entries) == before + 1
    again = guest.answered(guest.send(path, **fields))
    assert "Nothing: the same was asked before" in again.text
    assert re.findall(r'class="big.*?</p>', again.text) == re.findall(r'class="big.*?</p>', page.text)
    _typed_in_a_terminal(clinic, code_in(again.text, "command"))
    here = os.getcwd()
    try:
        os.chdir(clinic.folder)
        script: dict[str, Any] = {}
        exec(code_in(page.text, "python"), script)
    finally:
        os.chdir(here)
    assert script["release"].provenance.receipt.entry == entries[-1].entry
    assert clinic.book.entries() == entries, "the command and the script get the kept answer"


def _typed_in_a_terminal(clinic: Clinic, command: str) -> None:
    there, typed = command.splitlines()
    assert shlex.split(there) == ["cd", str(clinic.folder)]
    words = shlex.split(typed)
    assert words[0] == "sabun"
    here = os.getcwd()
    try:
        os.chdir(clinic.folder)
        assert run(words[1:]) == 0
    finally:
        os.chdir(here)


def test_a_ledger_is_made_as_the_command_makes_it(clinic: Clinic, guest: Guest) -> None:
    wrong = guest.send("new-ledger", name="lab", epsilon="plenty")
    assert wrong.status_code == 400
    assert re.search('id="epsilon-wrong"[^>]*>[^<]', wrong.text)
    assert not list(clinic.folder.glob("lab*"))
    made = guest.send("new-ledger", name="lab / 研究", epsilon="１/３", unit="visit")  # as an input method writes digits
    assert made.status_code == 303
    page = guest.get(made.headers["location"]).text
    assert "Nothing was charged yet." in page
    book = Ledger.open(clinic.folder / "lab---研究.ledger")
    assert (book.name, book.unit, str(book.budget.epsilon)) == ("lab / 研究", "visit", "1/3")
    poor = made.headers["location"].rpartition("/")[2]
    jobs = f"tables/{guest.handle('patients.csv')}/jobs"
    for delta, told in (("", True), ("1e-6", False)):
        page = guest.send(f"{jobs}/summaries/mean", column="age", epsilon="1", delta=delta, ledger=poor, act="plan").text
        assert ("of the budget of “lab / 研究”" in page) is told
        assert ("needs a delta, and the ledger “lab / 研究” has none" in page) is not told
    page = guest.send(f"{jobs}/outliers/count", radius="0.1", epsilon="1", ledger=poor, act="plan").text
    kindest, hardest = re.findall(r'<p class="small">(The (?:smallest|largest), if .*?)</p>', page)
    assert "smallest" in kindest
    assert "largest" in hardest, "each forecast by itself"


def test_persons_are_told_apart_by_a_column_that_no_schema_has(clinic: Clinic, guest: Guest) -> None:
    rows = [f"{i % 150:04d},{20 + i % 60},{i % 3}" for i in range(600)]
    (clinic.folder / "visits.csv").write_text("Member ID,age,ward\n" + "\n".join(rows) + "\n")
    columns = ["--number", "age=0:120", "--category", "ward=0,1,2"]
    assert run(["schema", "new", str(clinic.folder / "visits.schema.json"), *columns]) == 0
    path = f"tables/{guest.handle('visits.csv')}/jobs/summaries/mean"
    choices = dict(re.findall(r'<select id="(\w+)".*?>(.*?)</select>', guest.get(path).text, re.DOTALL))
    assert {name for name in choices if "<option>Member ID</option>" in choices[name]} == {"id", "order"}
    page = guest.answered(guest.send(path, column="age", id="Member ID", epsilon="1", act="ask"))
    assert page.status_code == 200, page.text
    assert "--id 'Member ID'" in code_in(page.text, "command")


def test_an_older_plan_is_passed_over_for_a_newer_of_the_same_form() -> None:
    errands, wanted = Errands(run), dict[str, bool]()

    def follow(name: str, form: str) -> threading.Thread:
        def ask() -> None:
            with errands.turn(form) as wanted[name]:
                pass

        before = errands._newest.get(form)
        thread = threading.Thread(target=ask)
        thread.start()
        while errands._newest.get(form) is before:  # until it waits for its turn
            time.sleep(0.001)
        return thread

    with errands.turn("one") as first:
        threads = [follow("older", "one"), follow("newer", "one"), follow("other", "another")]
        assert wanted == {}, "one at a time"
    for thread in threads:
        thread.join()
    errands.close()
    assert (first, wanted) == (True, {"older": False, "newer": True, "other": True})


def test_a_refused_question_can_be_mended_and_asked(clinic: Clinic, guest: Guest) -> None:
    path = f"tables/{guest.handle('patients.csv')}/jobs/summaries/count"
    refused = guest.send(path, by="ward", epsilon="300", act="ask")
    page = guest.answered(refused)
    assert "this release needs 300" in page.text
    tried = page.url.raw_path.decode()
    assert "tried=" in tried
    page = guest.answered(guest.send(tried, by="ward", epsilon="0.25", act="ask"))
    assert "entry" in re.findall(r'id="cost">(.*?)<', page.text)[0]
    assert clinic.book.entries()[-1].purpose.startswith("summaries.count on ward")


def test_columns_that_are_saved_as_they_were_are_the_same_schema(clinic: Clinic, guest: Guest) -> None:
    (clinic.folder / "stays.csv").write_text("ward,cost,day\nA,1,2026-01-01\n")
    declared = clinic.folder / "stays.schema.json"
    columns = [
        "--number",
        "cost=0:2000000",
        "--unit",
        "cost=円",
        "--date",
        "day=2026-01-01:2026-12-31",
        "--category",
        "ward=A,B",
    ]
    assert run(["schema", "new", str(declared), *columns]) == 0
    before, path = declared.read_bytes(), f"tables/{guest.handle('stays.csv')}"
    shown = _typed(guest.get(path).text)
    assert (shown["unit-1"], shown["high-1"]) == ("円", "2000000")
    assert guest.send(path, **shown, act="save").status_code == 303
    assert declared.read_bytes() == before, "or what was paid for would be asked anew"
    changed = shown | {"unit-1": "€", "labels-0": 'A、B，"C、D"'}
    assert guest.send(path, **changed, act="save").status_code == 303
    schema = Schema.load(declared)
    assert schema["cost"].to_dict()["unit"] == "€"
    assert schema["ward"].to_dict()["categories"] == ["A", "B", "C、D"]
    assert _typed(guest.get(path).text)["labels-0"] == 'A, B, "C、D"'


def test_the_sheets_of_a_workbook_are_offered(clinic: Clinic, guest: Guest) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl, which writes the workbook of this test, is not installed")
    book = openpyxl.Workbook()
    book.active.title = "Read me"
    book.active.append(["Figures of the month"])
    book.create_sheet("North").append(["age", "ward"])
    book.save(clinic.folder / "gym.xlsx")
    path = f"tables/{guest.handle('gym.xlsx')}"
    page = guest.get(path).text
    assert "This workbook has 2 sheets, and the columns are those of the first, Read me." in page
    assert re.findall(r"<option([^>]*)>([^<]*)</option>", page)[:2] == [(' value=""', "the first: Read me"), ("", "North")]
    page = guest.send(path, sheet="North", act="names").text
    assert "<bdi>age</bdi>" in page
    assert '<option selected="">North</option>' in page
    assert "Figures of the month" not in page
    assert "If that is a cover" not in page


def _typed(page: str) -> dict[str, str]:
    """What stands in the fields of a page, and which of its choices are made."""
    inputs = [dict(re.findall(r'([\w-]+)="([^"]*)"', one)) for one in re.findall(r"<input ([^>]*)>", page)]
    return {
        one["name"]: html.unescape(one.get("value", "")) for one in inputs if one.get("type") != "radio" or "checked" in one
    }
