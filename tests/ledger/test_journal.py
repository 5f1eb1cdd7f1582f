"""What a second review broke: stale journals, locks that fell, a clock that told how long private work took."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import threading
from contextlib import closing
from fractions import Fraction

import pytest

import sabun.ledger.ledger as ledger_module
from sabun.errors import LedgerError
from sabun.ledger import Ledger
from sabun.ledger.journal import beside as companion
from sabun.ledger.journal import has_journal, has_log, restores
from sabun.ledger.lock import held, lock_of, turn_of
from sabun.ledger.sqlite_store import SqliteStore

ABOUT_FILES = True

PAGE, SECTOR, NONCE = 4096, 512, 77
posix = pytest.mark.skipif(os.name != "posix", reason="needs locks that belong to a descriptor")


def pages(content):
    return [content[start : start + PAGE] for start in range(0, len(content), PAGE)]


def journal_of(before, changed):
    """SQLite's rollback journal of a write that changes these pages of a file."""
    old = [n for n in changed if n < len(pages(before))]
    head = struct.pack(">8s5I", bytes.fromhex("d9d505f920a163d7"), len(old), NONCE, len(pages(before)), SECTOR, PAGE)
    records = [head.ljust(SECTOR, b"\0")]
    for n in old:
        page = pages(before)[n]
        check = (NONCE + sum(page[place] for place in range(PAGE - 200, 0, -200))) % 2**32
        records.append(struct.pack(">I", n + 1) + page + struct.pack(">I", check))
    return b"".join(records)


class Interrupted:
    """A charge as a crash in its middle finds it: the file before and after, the pages it changes, its journal."""

    def __init__(self, ledger, path, guarantee):
        self.before = path.read_bytes()
        ledger.reserve(guarantee, purpose="interrupted")
        self.after = path.read_bytes()
        old, new = pages(self.before), pages(self.after)
        self.changed = [n for n, page in enumerate(new) if page != (old[n : n + 1] or [None])[0]]
        self.journal = journal_of(self.before, self.changed)

    def torn(self, count):
        """The file with the first `count` of the changed pages written."""
        written = self.changed[:count]
        old, new = pages(self.before), pages(self.after)
        last = max([len(old) - 1, *written])
        return b"".join(new[n] if n in written else old[n] if n < len(old) else bytes(PAGE) for n in range(last + 1))


def beside(path):
    return path.with_name(f"{path.name}-journal")


@pytest.fixture
def interrupted(ledger, path, promise):
    ledger.charge(promise("0.1"), purpose="first")
    crash = Interrupted(ledger, path, promise("0.1"))
    assert crash.changed[0] == 0
    assert len(crash.changed) >= 2
    return crash


@posix
@pytest.mark.parametrize("written", ["nothing", "everything"])
@pytest.mark.parametrize("spending", ["one row", "six rows"])
def test_a_stale_journal_takes_nothing_back(path, promise, interrupted, written, spending):
    """The file alone is moved away after a crash, spent from, moved back to where the old journal waits."""
    moved = path.with_name("moved.ledger")
    moved.write_bytes(interrupted.before if written == "nothing" else interrupted.after)
    path.unlink()
    elsewhere = Ledger.open(moved)
    if spending == "one row":  # the file is then one change ahead, as it would be in the write that the journal is of
        elsewhere.reserve(promise(1), purpose="elsewhere")
    else:
        for _ in range(3):
            elsewhere.charge(promise("0.4"), purpose="elsewhere")
    spent, entries = elsewhere.spent, len(elsewhere.entries())
    moved.rename(path)
    beside(path).write_bytes(interrupted.journal)
    again = Ledger.open(path)
    assert (again.spent, again.verify().entries) == (spent, entries)
    assert not beside(path).exists()


@posix
@pytest.mark.parametrize("first", ["read", "charge"])
def test_a_torn_file_is_restored_from_its_own_journal(path, promise, interrupted, first):
    seen = set()
    for count in range(len(interrupted.changed) + 1):
        path.write_bytes(interrupted.torn(count))
        handle = Ledger.open(path) if first == "charge" and count == 0 else None
        beside(path).write_bytes(interrupted.journal)
        if handle is not None:
            handle.charge(promise("0.1"), purpose="next")
            assert handle.verify().entries == 2
        else:
            found = Ledger.open(path).verify().entries
            assert found in (1, 2)
            seen.add(found)
        assert not beside(path).exists()
    assert 1 in seen


@posix
def test_a_torn_file_with_the_journal_of_another_state_is_refused(path, promise, interrupted):
    old = interrupted.journal
    ledger = Ledger.open(path)
    for _ in range(2):
        ledger.charge(promise("0.1"), purpose="later")
    later = Interrupted(ledger, path, promise("0.1", mechanism="long " * 2000))
    torn = later.torn(1)
    path.write_bytes(torn)
    without_first_page = journal_of(later.before, later.changed[1:])
    for journal in (old, without_first_page, later.journal[:20], journal_of(later.before, [])):
        beside(path).write_bytes(journal)
        with pytest.raises(LedgerError, match=r"is torn, and the journal beside it is of another file or an older one\. Put"):
            Ledger.open(path)
        assert (path.read_bytes(), beside(path).read_bytes()) == (torn, journal)
    beside(path).write_bytes(later.journal)
    assert Ledger.open(path).verify().entries == 4


@posix
def test_a_journal_that_sqlite_would_not_apply_changes_nothing(ledger, path, promise):
    ledger.charge(promise(), purpose="p")
    for content in (b"", bytes(600), b"something else"):
        beside(path).write_bytes(content)
        assert Ledger.open(path).spent.epsilon == Fraction(1, 2)


@posix
def test_a_journal_of_a_program_that_is_writing_is_left_to_it(ledger, path, promise, interrupted):
    beside(path).write_bytes(interrupted.journal)
    script = (
        "import fcntl, sys\nfile = open(sys.argv[1], 'r+b')\nfcntl.lockf(file, fcntl.LOCK_EX, 1, 2**30 + 1)\n"
        "print('held', flush=True)\nsys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(LedgerError, match=r"was held by other processes for 0\.1 seconds"):
            Ledger.open(SqliteStore(path, patience=0.1))
        assert beside(path).exists()
        other.stdin.close()
        other.wait()
    assert Ledger.open(path).verify().entries == 2


@posix
def test_a_foreign_write_ahead_log_is_refused(ledger, path, promise):
    ledger.charge(promise(), purpose="p")
    log = path.with_name(f"{path.name}-wal")
    log.write_bytes(b"stale frames")
    for attempt in (lambda: Ledger.open(path), lambda: ledger.charge(promise(), purpose="p")):
        with pytest.raises(LedgerError, match=r"must keep no write-ahead log; another program left one\. Close that program"):
            attempt()
    log.unlink()
    assert Ledger.open(path).verify().entries == 1


OTHER = """
import sys
from sabun.errors import LedgerError
from sabun.ledger import Ledger
from sabun.ledger.sqlite_store import SqliteStore

try:
    ledger = Ledger.open(SqliteStore(sys.argv[1], patience=0.3))
    ledger.charge(Guarantee(epsilon="1.9", unit="patient"), purpose="other process")
except LedgerError as error:
    print(error)
"""


@posix
def test_a_copy_made_by_a_thread_lets_nobody_into_a_charge(ledger, path, promise, monkeypatch):
    """Closing any descriptor of the file drops SQLite's own locks; the moment of the copy is staged."""
    plain, said = ledger_module._software, []

    def meanwhile():
        monkeypatch.setattr(ledger_module, "_software", plain)
        copying = threading.Thread(target=shutil.copy, args=(path, path.with_name("copy")))
        copying.start()
        copying.join()
        run = subprocess.run([sys.executable, "-c", OTHER, str(path)], check=True, capture_output=True, text=True)
        said.append(run.stdout)
        return plain()

    monkeypatch.setattr(ledger_module, "_software", meanwhile)
    ledger.charge(promise("0.2"), purpose="this process")
    assert "was held by other processes for 0.3 seconds" in said[0]
    assert [(entry.purpose, entry.epsilon) for entry in Ledger.open(path).entries()] == [("this process", Fraction(1, 5))]


@posix
def test_a_child_forked_in_the_middle_of_a_charge_does_not_keep_the_lock(ledger, path, promise):
    reading, writing = os.pipe()
    with ledger._store.writing():
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # lives on until the parent is done
            os._exit(0)
    try:
        Ledger.open(SqliteStore(path, patience=0.2)).charge(promise(), purpose="parent")
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)
    assert ledger.spent.epsilon == Fraction(1, 2)


@posix
def test_the_lock_is_one_for_all_names_and_survives_its_removal(ledger, path, promise):
    link = path.with_name("link.ledger")
    link.symlink_to(path)
    assert lock_of(link) == lock_of(path)
    with held(link, alone=True, patience=1) as mine:
        assert mine
        with pytest.raises(TimeoutError), held(path, alone=False, patience=0.01):
            pass
    with held(path, alone=False, patience=1), held(link, alone=False, patience=1):
        lock_of(path).unlink()
    ledger.charge(promise(), purpose="p")
    assert lock_of(path).exists()
    for file in (lock_of(path), turn_of(path)):  # one of the two is enough to keep everybody out
        with held(path, alone=True, patience=1):
            file.unlink()
            for alone in (True, False):
                with pytest.raises(TimeoutError), held(path, alone=alone, patience=0.01):
                    pass
    with held(path, alone=True, patience=1):
        lock_of(path).unlink()
        turn_of(path).unlink()
        with held(path, alone=True, patience=1) as other:
            assert other  # new files have new locks: that is why nobody may remove them


@posix
def test_a_folder_without_a_lock_that_nobody_may_write_to_can_be_read(ledger, path, promise, monkeypatch):
    ledger.charge(promise(), purpose="p")
    lock_of(path).unlink()

    def refused(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("sabun.ledger.lock._opened", refused)
    assert Ledger.open(path).spent.epsilon == Fraction(1, 2)
    with pytest.raises(LedgerError, match="cannot be opened or written"):
        ledger.charge(promise(), purpose="p")
    beside(path).write_bytes(journal_of(path.read_bytes(), [0]))
    with pytest.raises(LedgerError, match=r"has an interrupted write beside it\. Open it once as somebody who may write"):
        Ledger.open(SqliteStore(path, patience=0.05))


def test_a_backup_is_whole_and_takes_no_place(ledger, path, promise, tmp_path):
    ledger.charge(promise(), purpose="p")
    copy = tmp_path / "backup.ledger"
    ledger.backup(copy)
    assert copy.read_bytes() == path.read_bytes()
    assert Ledger.open(copy).verify() == ledger.verify()
    for taken in (copy, path, tmp_path / "missing" / "backup"):
        with pytest.raises(LedgerError, match=r"a backup of .* cannot be written to .*choose a free path"):
            ledger.backup(taken)


def test_the_head_tells_nothing_about_the_time_private_work_took(ledger, path, promise, monkeypatch):
    """From a release, its receipt and the head alone, every row of the book can be written down."""
    clock = iter([f"2026-01-01T00:00:0{second}+00:00" for second in range(9)])
    monkeypatch.setattr("sabun.ledger.row._now", lambda: next(clock))
    reservation = ledger.reserve(promise(), purpose="p")
    receipt = reservation.commit(b"released")
    with closing(sqlite3.connect(path)) as connection:
        [_, (committed,)] = connection.execute("SELECT record FROM book WHERE entry = 1 ORDER BY sequence")
    guess = committed.replace("00:00:00", "00:00:05")
    assert f'"time":"{receipt.time}"' in committed
    assert (
        hashlib.sha256(committed.encode()).hexdigest()
        == ledger.verify().head_hash
        != hashlib.sha256(guess.encode()).hexdigest()
    )
    monkeypatch.undo()
    assert "." not in ledger.charge(promise(), purpose="q").time  # no finer than a second


def test_a_store_of_another_kind_has_no_file_to_copy(promise):
    class Elsewhere:
        place = "a server"

        def __init__(self):
            self.rows = []

        def create(self, first):
            self.rows.append(first)

        def writing(self):
            raise AssertionError

    made = Ledger.create(Elsewhere(), name="n", epsilon=1)
    with pytest.raises(LedgerError, match=r"a ledger must be kept in a file to be copied; a server is not\."):
        made.backup("x")


@pytest.mark.parametrize("ahead", range(-2, 4))
def test_only_the_journal_of_the_last_write_restores_a_file(ledger, path, promise, interrupted, ahead):
    """Its first page is as the file was before: as many changes as the file counts, or one less."""
    beside(path).write_bytes(interrupted.journal)
    torn = bytearray(interrupted.torn(1))
    count = int.from_bytes(interrupted.before[24:28], "big")
    torn[24:28] = (count + ahead).to_bytes(4, "big")
    path.write_bytes(torn)
    assert restores(path) == (ahead in (0, 1))


@pytest.mark.parametrize(("ending", "there"), [("-journal", has_journal), ("-wal", has_log)])
def test_what_cannot_be_looked_at_may_be_anything(path, ending, there):
    assert not there(path)
    loop = companion(path, ending)
    loop.symlink_to(loop.name)  # leads to itself: the system refuses to open it
    assert there(path)
