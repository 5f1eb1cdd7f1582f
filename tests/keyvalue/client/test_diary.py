from __future__ import annotations

import contextlib
import copy
import os
import pickle
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sabun.keyvalue.client import (
    BudgetRefused,
    Client,
    ClientError,
    Diary,
    DiaryError,
    Terms,
)
from sabun.keyvalue.client.diary import _made
from sabun.keyvalue.client.pages import Transaction

ONE = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3")


class Lazy(Mapping[Any, Any]):
    """Does something else while it is read."""

    def __init__(self, look: Callable[[], object]) -> None:
        self.look = look

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __getitem__(self, key: object) -> float:
        try:
            self.look()
        except Exception:
            return 0.5
        return 1.0


def test_pairs_that_look_at_the_diary_do_not_undo_the_charge(tmp_path: Path) -> None:
    """A page was opened within a page: the charge was rolled back and 50 reports were handed over, none of them booked."""
    diary = Diary(tmp_path / "diary")
    terms = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3", rounds=3, answers="fresh")
    client = Client(terms, diary=diary, max_epsilon=1)
    client.report(Lazy(lambda: diary.spent))
    assert diary.spent == 1
    for number in (1, 2, 1, 2):
        with pytest.raises(BudgetRefused):
            client.report(Lazy(lambda: diary.spent), round=number)
    assert diary.spent == 1


def test_pairs_that_report_themselves_cost_one_charge() -> None:
    diary = Diary.in_memory()
    client = Client(ONE, diary=diary)
    inner: list[bytes] = []
    outer = client.report(Lazy(lambda: inner.append(client.report({"a": 1.0}))))
    assert inner == [outer]
    assert diary.spent == 1


def test_a_page_within_a_page_is_refused_and_leaves_the_first_alone() -> None:
    diary = Diary.in_memory()
    with diary.page() as page:
        page.charge("t", 0, Fraction(2), limit=None)
        with pytest.raises(
            DiaryError, match=r"the diary must have one page open at a time; another is open\. Nothing was sent\."
        ):
            assert diary.spent
    assert diary.spent == 2


def test_published_means_that_look_at_the_diary_leave_the_charge_alone() -> None:
    diary = Diary.in_memory()
    client = Client(Terms(keys=("a",), epsilon=Fraction(1), protocol="privkvm", rounds=2), diary=diary)
    assert client.report({"a": 1}, round=1, means=Lazy(lambda: diary.spent))
    assert diary.spent == client.terms.certified


def test_a_diary_syncs_its_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a power cut can bring the journal back, and the device would answer again with other bytes."""
    synced: list[bool] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    diary = Diary(tmp_path / "diary")
    assert synced == [True]
    assert diary._base.execute("PRAGMA synchronous").fetchone() == (3,)
    assert diary._base.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_diary_is_nobody_elses(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Diary(tmp_path / "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    wide = tmp_path / "wide"
    wide.touch(mode=0o644)
    wide.chmod(0o644)
    Diary(wide)
    assert stat.S_IMODE(wide.stat().st_mode) == 0o600
    for target in (wide, tmp_path / "nowhere"):
        link = tmp_path / f"link-to-{target.name}"
        link.symlink_to(target)
        with pytest.raises(DiaryError, match="the diary must be a plain file of this user, not a link or another's"):
            Diary(link)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("kind", ["a line", "a page", "another program's tables", "a write-ahead log"])
def test_a_file_that_is_no_diary_is_left_as_it_is(kind: str, tmp_path: Path) -> None:
    """It was refused in words, and nobody but its owner could read it from then on."""
    other = tmp_path / "other"
    if kind in ("a line", "a page"):
        other.write_bytes(b"shopping" * (1 if kind == "a line" else 1000))
    else:
        with contextlib.closing(sqlite3.connect(other)) as base:
            if kind == "a write-ahead log":
                base.execute("PRAGMA journal_mode=WAL")
            base.execute("CREATE TABLE shopping (item)")
    other.chmod(0o644)
    before = other.read_bytes()
    with pytest.raises(DiaryError, match="Nothing was sent"):
        Diary(other)
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
    assert other.read_bytes() == before


def test_a_diary_that_others_could_read_is_narrowed_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    for name in ("empty", "old"):
        (tmp_path / name).touch()
    Diary(tmp_path / "old").close()
    for name in ("empty", "old"):
        (tmp_path / name).chmod(0o644)
    real = Transaction.add

    def add(self: Transaction, *arguments: Any) -> None:
        modes.append(stat.S_IMODE((tmp_path / name).stat().st_mode))
        real(self, *arguments)

    monkeypatch.setattr(Transaction, "add", add)
    for name in ("new", "empty", "old"):
        Client(ONE, diary=Diary(tmp_path / name)).report({})
    assert set(modes) == {0o600}
    assert len(modes) >= 3


@pytest.mark.parametrize("path", [":memory:", 3])
def test_a_diary_without_a_file_is_asked_for_by_name(path: Any) -> None:
    with pytest.raises(ClientError, match=r"diary must be the path of a file; got .* Use Diary\.in_memory\(\)"):
        Diary(path)


def test_a_second_diary_does_not_drop_the_locks_of_the_first(tmp_path: Path) -> None:
    """Opening and closing a file drops a process's locks on it: a path is looked at by name, never opened."""
    script = (
        "import sqlite3, sys; base = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try:\n    base.execute('BEGIN IMMEDIATE'); print('got in')\nexcept sqlite3.OperationalError:\n    print('locked')\n"
    )
    with Diary(tmp_path / "diary").page():
        assert not _made(str(tmp_path / "diary"))
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "diary")], capture_output=True, text=True, check=True
        )
    assert done.stdout == "locked\n"


@pytest.mark.parametrize("arguments", [{"max_epsilon": 1}, {"credential": b"0123456789abcdef"}])
def test_a_limit_or_a_credential_needs_a_book(arguments: dict[str, Any]) -> None:
    """Two clients with one credential and no book answered twice under one id, each within its limit."""
    with pytest.raises(ClientError, match=r"diary must be given with credential or max_epsilon; got None\. Pass its path"):
        Client(ONE, **arguments)
    assert Client(ONE, diary=Diary.in_memory(), **arguments).report({})


def test_a_page_that_could_not_be_committed_is_undone(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "diary")
    diary._base.execute("PRAGMA busy_timeout=50")
    client = Client(ONE, diary=diary)
    reader = sqlite3.connect(tmp_path / "diary", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM sent").fetchall()
    with pytest.raises(DiaryError, match="Nothing was sent"):
        client.report({"a": 1})
    reader.execute("COMMIT")
    reader.close()
    assert not diary._base.in_transaction
    assert client.spent == 0
    assert client.report({"a": 1}) == client.report({"a": 1})


KEYS = ("YouTube", "LINE", "Maps")


def terms(protocol: str = "kv3", **more: object) -> Terms:
    rounds = {"rounds": 3} if protocol == "privkvm" else {}
    return Terms(**({"keys": KEYS, "epsilon": Fraction(2), "protocol": protocol} | rounds | more))  # type: ignore[arg-type]


def test_a_broken_diary_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a diary " * 200)
    for place in (tmp_path / "text", tmp_path, tmp_path / "no" / "folder"):
        with pytest.raises(DiaryError, match="the diary must be a file this device can read and write; it is not"):
            Client(terms(), diary=place)


def test_a_diary_that_another_process_broke_sends_nothing(tmp_path: Path) -> None:
    client = Client(terms(), diary=tmp_path / "diary")
    base = sqlite3.connect(tmp_path / "diary")
    base.execute("DROP TABLE sent")
    base.commit()
    base.close()
    with pytest.raises(DiaryError, match="Nothing was sent"):
        client.report({})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_diary_cannot_be_copied(copied: Callable[[object], object], tmp_path: Path) -> None:
    for diary in (Diary.in_memory(), Diary(tmp_path / "diary")):
        with pytest.raises(TypeError, match="a diary must stay one object; a copy of it would spend its budget again"):
            copied(diary)
        with pytest.raises(TypeError):
            copy.deepcopy(Client(terms(), diary=diary))


def test_a_diary_without_its_secret_is_refused_in_words(tmp_path: Path) -> None:
    client = Client(terms(), diary=tmp_path / "diary")
    base = sqlite3.connect(tmp_path / "diary")
    base.execute("DELETE FROM device WHERE name = 'secret'")
    base.commit()
    base.close()
    with pytest.raises(DiaryError, match="the diary must hold its device's secret and total; it does not"):
        client.report({})
    assert client.spent == 0


def test_a_diary_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """The tables as they were first written; what was answered then is answered again, and stays paid."""
    study, credential = terms(rounds=2), b"0123456789abcdef"
    base = sqlite3.connect(tmp_path / "diary")
    base.executescript(
        "CREATE TABLE device (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;"
        "CREATE TABLE enrolment (task TEXT PRIMARY KEY, credential BLOB NOT NULL, place INTEGER) STRICT;"
        "CREATE TABLE spent (task TEXT, round INTEGER, epsilon TEXT NOT NULL, PRIMARY KEY (task, round)) STRICT;"
        "CREATE TABLE memory (task TEXT, state BLOB, answer BLOB NOT NULL, PRIMARY KEY (task, state)) STRICT;"
        "CREATE TABLE sent (task TEXT, round INTEGER, report BLOB NOT NULL, PRIMARY KEY (task, round)) STRICT;"
    )
    base.executemany("INSERT INTO device VALUES (?, ?)", [("secret", bytes(32)), ("spent", b"2")])
    base.execute("INSERT INTO enrolment VALUES (?, ?, NULL)", (study.task_id, credential))
    base.execute("INSERT INTO spent VALUES (?, 0, '2')", (study.task_id,))
    # HMAC-SHA-256 of "state\0" under the secret: the name of a person who holds nothing.
    name = bytes.fromhex("7b5fe06ec8eb120f388b5cf6a27480441cb2da92ee30ed9e22bb445742cc3cdc")
    base.execute("INSERT INTO memory VALUES (?, ?, ?)", (study.task_id, name, b"\2"))
    base.execute("INSERT INTO sent VALUES (?, 0, ?)", (study.task_id, b"the old report"))
    base.commit()
    base.close()
    client = Client(study, diary=tmp_path / "diary")
    assert client.report({"YouTube": 1.0}) == b"the old report"
    assert client.spent == 2
    assert client.report({}, round=1)[-1] == 2
    assert client.spent == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_device_does_not_answer_again(kept: bool, tmp_path: Path) -> None:
    client = Client(terms(), diary=tmp_path / "diary" if kept else None)
    child = os.fork()
    if child == 0:
        try:
            client.report({})
        except DiaryError:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(client.report({})) > 0


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON spent BEGIN UPDATE device SET value = x'30' WHERE name = 'spent'; END",
        "CREATE TRIGGER t AFTER INSERT ON sent BEGIN DELETE FROM sent; END",
        "CREATE VIEW v AS SELECT * FROM sent",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON sent (report)",
        "DROP TABLE memory",
    ],
)
@pytest.mark.parametrize("running", [False, True])
def test_a_diary_with_other_tables_is_refused_and_nothing_is_drawn(tmp_path: Path, statement: str, running: bool) -> None:
    """A trigger that takes each charge back as it is written let a device answer for ever within its limit."""
    study = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3", rounds=9, answers="fresh")
    device = Client(study, diary=tmp_path / "diary", max_epsilon=2)
    device.report({"a": 1.0})
    base = sqlite3.connect(tmp_path / "diary")
    base.execute(statement)
    base.close()
    go_on = partial(device.report, {"a": 1.0}, round=1) if running else partial(Diary, tmp_path / "diary")
    with pytest.raises(
        DiaryError, match=r"the diary must have its own tables only; another program changed them\. Nothing was sent\."
    ):
        go_on()
