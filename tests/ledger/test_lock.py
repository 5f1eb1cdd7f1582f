"""Readers and writers take turns: however many come, nobody is kept out, and nothing that was paid for is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from fractions import Fraction

import pytest

from ledger.long_books import EACH, long_book
from sabun.errors import LedgerError
from sabun.ledger import Ledger, chain, lock
from sabun.ledger.lock import held, lock_of, turn_of
from sabun.ledger.sqlite_store import SqliteStore

ABOUT_FILES = True

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs locks that belong to a descriptor")

READING = """
import sys
from sabun.ledger import Ledger

print("ready", flush=True)
while True:
    Ledger.open(sys.argv[1]).show()
"""


def test_readers_in_a_loop_do_not_keep_a_writer_waiting(tmp_path):
    """Four processes that do nothing but read: without a turnstile a writer waits until its patience ends."""
    path = long_book(tmp_path / "long.ledger", 1000)
    ledger, waits = Ledger.open(path), []
    with ExitStack() as stack:
        for _ in range(4):
            command = [sys.executable, "-c", READING, str(path)]
            reader = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(reader.kill)
            reader.stdout.readline()
        for _ in range(5):
            start = time.monotonic()
            with ledger._store.writing():
                waits.append(time.monotonic() - start)
            ledger.reserve(EACH, purpose="p").commit(b"result")
    assert sorted(waits)[len(waits) // 2] < 1
    assert ledger.entry(1005).state == "committed"


def test_a_waiting_writer_lets_in_no_new_reader(path, ledger):
    order = []

    def write():
        with held(path, alone=True, patience=20):
            order.append("writer")

    def read():
        with held(path, alone=False, patience=20):
            order.append("reader")

    writer, reader = threading.Thread(target=write), threading.Thread(target=read)
    with held(path, alone=False, patience=1):
        assert not lock.wanted(path)
        writer.start()
        while not lock.wanted(path):
            time.sleep(0.001)
        reader.start()
        reader.join(0.1)
        assert order == []
    writer.join()
    reader.join()
    assert order == ["writer", "reader"]


def test_a_reader_passes_the_turnstile_and_others_may_follow(path, ledger):
    with held(path, alone=False, patience=1), held(path, alone=False, patience=1):
        assert not lock.wanted(path)


def test_a_writer_whose_patience_ends_leaves_the_turnstile_free(path, ledger, promise):
    with held(path, alone=False, patience=1), pytest.raises(TimeoutError), held(path, alone=True, patience=0.01):
        pass
    assert not lock.wanted(path)
    ledger.charge(promise(), purpose="p")
    assert ledger.spent.epsilon == Fraction(1, 2)


def test_a_ledger_from_before_there_were_turnstiles_gets_one(path, ledger, promise):
    turn_of(path).unlink()
    Ledger.open(path).charge(promise(), purpose="p")
    assert turn_of(path).exists()
    assert turn_of(path).stat().st_size == lock_of(path).stat().st_size == 0


def test_a_writer_is_let_in_while_the_whole_ledger_is_read(tmp_path):
    """Staged: it charges between the first piece and the second."""
    path = long_book(tmp_path / "long.ledger", 200)
    shares = []

    def progress(share, words):
        if not shares:
            Ledger.open(SqliteStore(path, patience=5)).charge(EACH, purpose="meanwhile")
        shares.append(share)

    assert Ledger.open(path).verify(progress=progress).entries == 201
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_large_results_are_verified_one_by_one(ledger, promise, path, edit, monkeypatch):
    monkeypatch.setattr(chain, "_LARGE", 10)
    for _ in range(2):
        ledger.reserve(promise("0.1"), purpose="p").commit(b"more than ten bytes")
    views = []
    monkeypatch.setattr(SqliteStore, "reading", _counted(SqliteStore.reading, views))
    assert ledger.verify().entries == 2
    assert len(views) == 3
    edit(path, "UPDATE payloads SET payload = x'00' WHERE entry = 2")
    with pytest.raises(LedgerError, match="the kept bytes of entry 2 were changed"):
        ledger.verify()


def _counted(reading, views):
    def counted(self):
        views.append(None)
        return reading(self)

    return counted


def test_the_check_of_all_pages_gives_way_to_a_writer_and_begins_anew(tmp_path, monkeypatch):
    path, asked = long_book(tmp_path / "long.ledger", 2000), []

    def wanted(_):
        asked.append(len(asked) < 2)
        return asked[-1]

    monkeypatch.setattr(lock, "wanted", wanted)
    store = SqliteStore(path)
    store.inspect()
    assert asked[:3] == [True, True, False]
    monkeypatch.setattr(lock, "wanted", lambda _: True)
    store.inspect()  # after some turns it goes on to its end: a ledger that is always written to is checked too


def test_no_message_says_that_nothing_was_charged_when_something_was(path, ledger, promise):
    reservation = Ledger.open(SqliteStore(path, patience=0.05)).reserve(promise(), purpose="p")
    with held(path, alone=True, patience=1):
        with pytest.raises(LedgerError, match=r"held by other processes for 0\.05 seconds\. Entry 1 stays charged; its result"):
            reservation.commit(b"result")
        with pytest.raises(LedgerError, match=r"held by other processes for 0\.05 seconds\. Try again\."):
            Ledger.open(SqliteStore(path, patience=0.05))
    reservation.commit(b"result")
    assert ledger.kept(1) == b"result"


@pytest.mark.parametrize("of", [lock_of, turn_of])
def test_a_lock_that_was_replaced_while_somebody_waited_is_taken_anew(path, ledger, of, monkeypatch):
    """Whoever removes a lock that others wait for lets two in, unless each looks whether what it holds still has the name."""
    real, replaced = lock._wait, []

    def waited(handle, alone, deadline):
        real(handle, alone, deadline)
        if not replaced and os.path.samestat(os.fstat(handle.fileno()), os.stat(of(path))):
            of(path).unlink()
            of(path).touch()
            replaced.append(handle)

    monkeypatch.setattr(lock, "_wait", waited)
    with held(path, alone=True, patience=1):
        assert replaced
        with pytest.raises(TimeoutError), lock._held(of(path), True, time.monotonic()):
            pass
