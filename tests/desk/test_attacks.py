"""Who is kept out of the desk: strangers, other ports, other names, other visits, paths, links; what a bad form costs."""

from __future__ import annotations

import html
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cli.terminal import exit_code
from desk.desks import Clinic
from desk.guests import Guest
from sabun.desk.entrance import Entrance
from sabun.desk.shelf import Shelf
from sabun.errors import ParameterError
from sabun.records import Column, Schema


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = Clinic(tmp_path_factory.mktemp("clinic"))
    made.declare()
    yield made
    made.end()


@pytest.fixture
def guest(clinic: Clinic) -> Iterator[Guest]:
    made = Guest(clinic)
    yield made
    made.close()


def test_a_code_works_once_for_a_minute_and_only_its_owner_reads_it() -> None:
    now = 0.0
    entrance = Entrance("http://127.0.0.1:1/", clock=lambda: now)
    try:
        file = entrance.renew()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        first, second = (re.findall(r"enter/([\w-]+)", entrance.renew().read_text())[0] for _ in range(2))
        assert len(second) >= 32
        assert not entrance.admits(first), "a newer one was written"
        assert not entrance.admits("")
        assert entrance.admits(second)
        assert not entrance.admits(second)
        assert not file.exists()
        third = re.findall(r"enter/([\w-]+)", entrance.ready().read_text())[0]
        assert third in entrance.ready().read_text(), "looking at the first page takes nobody's code away"
        now = 61.0
        assert third not in entrance.ready().read_text()
        assert not entrance.admits(third)
    finally:
        entrance.close()
    assert not file.parent.exists()


def test_a_stranger_sees_nothing_but_the_door(clinic: Clinic, guest: Guest) -> None:
    with httpx.Client(base_url=clinic.origin) as stranger:
        door = stranger.get("/")
        assert "patients" not in door.text
        assert clinic.server.entrance.file.read_text().split("enter/")[1][:20] not in door.text, "the code is not on the page"
        for path in ("", "ledgers", "new-ledger", f"tables/{guest.handle('patients.csv')}"):
            answer = stranger.get(guest.root + path)
            assert answer.status_code == 403
            assert "patients" not in answer.text
        assert stranger.get("/enter/wrong").status_code == 403


def test_a_cookie_opens_its_own_path_alone(clinic: Clinic, guest: Guest) -> None:
    other = Guest(clinic)
    [cookie] = [one for one in guest.http.cookies.jar if one.name == "sabun-visit"]
    assert cookie.path == guest.root
    value = {"cookie": f"sabun-visit={cookie.value}"}
    assert httpx.get(clinic.origin + guest.root, headers=value).status_code == 200
    assert httpx.get(clinic.origin + other.root, headers=value).status_code == 403
    forged = {"cookie": f"sabun-visit={cookie.value[:-1]}{'0' if cookie.value[-1] != '0' else '1'}"}
    assert httpx.get(clinic.origin + guest.root, headers=forged).status_code == 403
    other.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "localhost"},
        {"host": "127.0.0.1.nip.io"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ],
)
def test_requests_that_another_page_made_are_refused(clinic: Clinic, guest: Guest, headers: dict[str, str]) -> None:
    assert guest.http.get(guest.root, headers=headers).status_code == 403
    before = sorted(os.listdir(clinic.folder))
    fields = {"token": "x", "name": "mine", "epsilon": "1"}
    assert guest.http.post(guest.root + "new-ledger", data=fields, headers=headers).status_code == 403
    assert sorted(os.listdir(clinic.folder)) == before


def test_a_form_without_its_token_or_with_another_visit_s_changes_nothing(clinic: Clinic, guest: Guest) -> None:
    other = Guest(clinic)
    theirs = re.findall(r'name="token" value="(\w+)"', other.get("new-ledger").text)[0]
    other.close()
    before = sorted(os.listdir(clinic.folder))
    for token in ("", theirs):
        assert guest.post("new-ledger", token=token, name="mine", epsilon="1").status_code == 403
    assert sorted(os.listdir(clinic.folder)) == before


def test_every_answer_has_the_strict_policy(clinic: Clinic, guest: Guest) -> None:
    for path in ("/", guest.root, f"{guest.root}ledgers", "/assets/desk.js", "/nothing", f"{guest.root}tables/no"):
        answer = guest.http.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_an_address_that_no_page_links_to_is_answered_with_the_policy(clinic: Clinic, guest: Guest) -> None:
    book = clinic.server.desk.shelf.ledgers()[0].handle
    for entry in ("9" * 5000, "-1", "\u0663", "1e3", "9" * 19):
        answer = guest.get(f"ledgers/{book}/{entry}")
        assert answer.status_code == 400
        assert "bug" not in answer.text
    for path in ("/", guest.root, "/assets/desk.js"):
        answer = guest.http.request("PUT", path, headers={"origin": clinic.origin})
        assert answer.status_code == 405
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_cookie_of_another_port_ends_no_visit(clinic: Clinic, guest: Guest) -> None:
    [ours] = [f"{name}={value}" for name, value in guest.http.cookies.items()]
    for sent in (f"{ours}; sabun-visit=junk", f"sabun-visit=junk; {ours}"):
        request = httpx.get(clinic.origin + guest.root, headers={"cookie": sent})
        assert request.status_code == 200


def test_a_file_has_a_handle_and_no_path_is_taken(clinic: Clinic, guest: Guest) -> None:
    outside = clinic.folder.parent / "outside.csv"
    outside.write_text("age\n1\n")
    for name in ("patients.csv", "..%2Foutside.csv", "%2Fetc%2Fpasswd", outside.name, "0" * 24):
        answer = guest.get(f"tables/{name}")
        assert answer.status_code in (400, 404)
        assert "<bdi>age<" not in answer.text
    assert not list(clinic.folder.parent.glob("outside.schema.json"))


def test_links_hidden_files_and_folders_are_not_on_the_shelf(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    (inside / "below").mkdir(parents=True)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (inside / "below" / "deep.csv").write_text("a\n1\n")
    (inside / ".hidden.csv").write_text("a\n1\n")
    (inside / "good.csv").write_text("a\n1\n")
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "folder.csv").symlink_to(tmp_path)
    (inside / "gone.csv").symlink_to(tmp_path / "nothing")
    os.mkfifo(inside / "pipe.csv")
    shelf = Shelf(inside)
    [good] = shelf.tables()
    assert good.name == "good.csv"
    (inside / "good.csv").unlink()
    (inside / "good.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(ParameterError, match="one of this folder"):
        shelf.found(good.handle, shelf.tables())
    assert Shelf(inside).items() == []
    with pytest.raises(ParameterError, match="folder that exists"):
        Shelf(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("fields", "beside", "words"),
    [
        ({"column": "age", "epsilon": "-1"}, "epsilon", "(epsilon)” must be finite and &gt; 0"),
        ({"column": "age", "epsilon": "much"}, "epsilon", "“Privacy loss (epsilon)” must be"),
        ({"column": "age", "epsilon": ""}, "epsilon", "“Privacy loss (epsilon)” must be"),
        ({"column": "", "epsilon": "1"}, "column", "“Column” must be filled in"),
        ({"column": "age", "epsilon": "1", "confidence": "2"}, "confidence", "“How often intervals hold” must be"),
        ({"column": "age", "epsilon": "1", "confidence": "x"}, "confidence", "must be a number"),
        ({"column": "age", "epsilon": "1", "where": "nonsense"}, "where", "“Only rows where” must look like"),
        ({"column": "age", "epsilon": "1", "delta": "7"}, "delta", "“Delta” must be"),
        ({"column": "age", "epsilon": "1", "ledger": "../other"}, "ledger", "one of this folder"),
        ({"column": "age", "epsilon": "1000"}, "", "Nothing was released, nothing was charged"),
    ],
)
def test_bad_input_is_told_beside_its_field_and_costs_nothing(
    clinic: Clinic, guest: Guest, fields: dict[str, str], beside: str, words: str
) -> None:
    path = f"tables/{guest.handle('patients.csv')}/jobs/summaries/mean"
    before = clinic.book.entries()
    answer = guest.send(path, **fields, act="ask")
    if answer.status_code == 303:
        answer = guest.answered(answer)
    told = re.findall(rf'class="wrong" id="{beside}-wrong" data-live role="alert">(.*?)<', answer.text)
    assert words in (told[0] if beside else answer.text)
    assert (f'id="{beside}" name="{beside}"' in answer.text and 'aria-invalid="true"' in answer.text) or not beside
    assert clinic.book.entries() == before


def test_nothing_but_noise_needs_a_tick(clinic: Clinic, guest: Guest) -> None:
    path = f"tables/{guest.handle('patients.csv')}/jobs/summaries/mean"
    fields = {"column": "age", "epsilon": "0.0001"}
    plan = guest.send(path, **fields, act="plan")
    assert "hardly anything but noise" in plan.text
    before = clinic.book.entries()
    refused = guest.answered(guest.send(path, **fields, act="ask"))
    assert "must be larger to tell anything" in refused.text
    assert "Pass “Release even if nothing but noise is expected” to release anyway" in refused.text, "no option, but its field"
    assert 'value="0.0001"' in refused.text, "what was filled in is still there"
    assert clinic.book.entries() == before
    taken = guest.answered(guest.send(path, **fields, yes="yes", act="ask"))
    assert 'id="cost"' in taken.text
    assert len(clinic.book.entries()) == len(before) + 1


def test_one_form_asks_once_even_where_it_asks_anew(clinic: Clinic, guest: Guest) -> None:
    path = f"tables/{guest.handle('patients.csv')}/jobs/summaries/mean"
    page = guest.get(path).text
    hidden = dict(re.findall(r'<input type="hidden" name="([\w-]+)" value="([^"]*)"', page))
    fields = hidden | {"column": "stay days", "epsilon": "0.5", "again": "yes", "act": "ask"}
    before = len(clinic.book.entries())
    sent = [guest.post(path, **fields) for _ in range(3)]
    assert len({one.headers["location"] for one in sent}) == 1
    guest.answered(sent[0])
    assert len(clinic.book.entries()) == before + 1
    guest.answered(guest.send(path, column="stay days", epsilon="0.5", again="yes", act="ask"))
    assert len(clinic.book.entries()) == before + 2, "another form that asks anew pays"


def test_rows_are_not_read_before_somebody_says_so(clinic: Clinic, guest: Guest) -> None:
    path = f"tables/{guest.handle('volunteers.csv')}"
    (clinic.folder / "volunteers.csv").chmod(0o600)
    page = guest.get(path)
    assert "cells are empty" not in page.text
    looked = guest.send(path, act="look")
    assert "NOT PRIVATE: what is said about cells below" in looked.text
    assert "of the cells are numbers" in looked.text
    shown = guest.send(path, **{"kind-0": "number", "low-0": "0", "high-0": "9", "act": "look"}).text
    assert re.search(r"<br>\d+ of \d+ cells fit what is declared\.<br>\d+ lie below the bounds, \d+ above\.", shown)
    assert not (clinic.folder / "volunteers.schema.json").exists()
    wrong = guest.send(path, **{"kind-0": "number", "low-0": "9", "high-0": "1", "act": "save"})
    assert wrong.status_code == 400
    assert 'id="wrong-0"' in wrong.text
    assert '<a href="#column-0">' in wrong.text, "what is wrong is said where the page begins, too"
    (clinic.folder / "one.csv").write_text("a;b\n1;2\n")
    assert "One column was found." in guest.get(f"tables/{guest.handle('one.csv')}").text
    assert not (clinic.folder / "volunteers.schema.json").exists()


def test_what_is_declared_of_a_table_stays_with_it(clinic: Clinic, guest: Guest) -> None:
    """Neither a table of a like name nor a visit to the page changes it: labels may hold commas."""
    before = (clinic.folder / "patients.schema.json").read_bytes()
    (clinic.folder / "patients.old.csv").write_text("age,who\n1,x\n")
    age = Column.number("age", lower=0, upper=5, unit="years", log1p=True)
    declared = Schema(columns=(age, Column.category("who", ["Doe, Jane", 'the "x"', "y"])))
    (clinic.folder / "patients.old.schema.json").write_text(declared.to_text())
    path = f"tables/{guest.handle('patients.old.csv')}"
    page = html.unescape(guest.get(path).text.replace("&#34;", "\0"))
    fields = {name: value.replace("\0", '"') for name, value in re.findall(r'name="([\w-]+)" value="([^"]*)"', page)}
    labels = re.findall(r'name="labels-1"[^>]*value="([^"]*)"', page)[0].replace("\0", '"')
    ends = {"low-0": "0", "high-0": "5", "kind-0": "number", "kind-1": "category", "labels-1": labels}
    assert guest.post(path, **fields | ends | {"act": "save"}).status_code == 303
    assert Schema.load(clinic.folder / "patients.old.schema.json") == declared
    assert (clinic.folder / "patients.schema.json").read_bytes() == before


def test_a_ledger_that_was_renamed_is_asked_for_by_its_name(clinic: Clinic, guest: Guest) -> None:
    path = f"tables/{guest.handle('patients.csv')}/jobs/summaries/mean"
    sent = guest.send(path, column="age", epsilon="0.25", act="ask")
    while not clinic.server.desk.errands.sent(sent.headers["location"].rpartition("/")[2]).over:
        time.sleep(0.05)
    book = clinic.folder / "clinic.ledger"
    book.rename(clinic.folder / "moved.ledger")
    try:
        gone = guest.get(sent.headers["location"])
    finally:
        (clinic.folder / "moved.ledger").rename(book)
    assert gone.status_code == 400
    assert "of the ledger has its answer" in gone.text
    place = str(guest.answered(sent).url)
    (clinic.folder / "patients.schema.json").rename(clinic.folder / "away.json")
    try:
        assert guest.get(place.removeprefix(clinic.origin)).status_code == 200
        assert guest.get(path).status_code == 303
    finally:
        (clinic.folder / "away.json").rename(clinic.folder / "patients.schema.json")


def test_two_questions_at_once_write_two_files(clinic: Clinic, guest: Guest) -> None:
    path = f"tables/{guest.handle('patients.csv')}/jobs/density/weights"
    public = guest.handle("volunteers.csv")
    sent = [guest.send(path, act="ask", public=public, columns=name, epsilon="1") for name in ("age", "stay days")]
    for one in sent:
        assert "/ledgers/" in str(guest.answered(one).url)


def test_bad_options_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert exit_code("desk", "--folder", str(tmp_path / "no"), "--check") == 2
    assert exit_code("desk", "--folder", str(tmp_path), "--port", "99999", "--check") == 2
    assert exit_code("desk", "--folder", str(tmp_path), "--lang", "xx", "--check") == 2
    assert exit_code("desk", "--folder", str(tmp_path), "--language", "ja", "--check") == 0, "its older name"
    assert exit_code("desk", "--folder", str(tmp_path), "--check") == 0
