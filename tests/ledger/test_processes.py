"""Crashes, races, forks and locks, with real processes."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from sabun.errors import BudgetExceeded, LedgerError
from sabun.ledger import Ledger
from sabun.ledger.sqlite_store import SqliteStore

CRASHING = """
import sys
from sabun.ledger import Ledger
from sabun.privacy.guarantee import Guarantee

for line in sys.stdin:
    place, touched = line.split()
    reservation = Ledger.open(place).reserve(Guarantee(epsilon=0.5, unit="patient"), purpose="doomed", key="k")
    if touched == "touched":
        reservation.touch()
    print("reserved", flush=True)
"""

RACING = """
import sys
from sabun.errors import BudgetExceeded
from sabun.ledger import Ledger
from sabun.privacy.guarantee import Guarantee

print("ready", flush=True)
for line in sys.stdin:
    try:
        Ledger.open(line.strip()).charge(Guarantee(epsilon=0.1, unit="patient"), purpose="the last tenth")
        print("won", flush=True)
    except BudgetExceeded:
        print("refused", flush=True)
"""


def started(script):
    return subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


@pytest.mark.parametrize("touched", ["touched", "untouched"])
def test_a_process_killed_between_reserve_and_commit_leaves_the_charge_spent(ledger, place, promise, touched):
    with started(CRASHING) as process:
        process.stdin.write(f"{place} {touched}\n")
        assert process.stdout.readline() == "reserved\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    survivor = Ledger.open(place)
    assert survivor.spent.epsilon == Fraction(1, 2)
    assert [entry.state for entry in survivor.entries()] == ["reserved"]
    assert survivor.recall("k", guarantee=promise(), purpose="doomed") is None
    survivor.reserve(promise(), purpose="doomed", key="k").commit(b"paid again")
    assert survivor.spent.epsilon == Fraction(1)
    survivor.verify()


def test_of_processes_racing_for_the_last_tenth_exactly_one_wins(tmp_path):
    paths = [tmp_path / f"{number}.ledger" for number in range(12)]
    for place in paths:
        Ledger.create(place, name="race", unit="patient", epsilon=0.1)
    racers = [started(RACING) for _ in range(3)]
    try:
        assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 3
        for place in paths:
            for racer in racers:
                racer.stdin.write(f"{place}\n")
            assert sorted(racer.stdout.readline() for racer in racers) == ["refused\n", "refused\n", "won\n"]
            assert Ledger.open(place).remaining.epsilon == 0
            assert Ledger.open(place).verify().entries == 1
    finally:
        for racer in racers:
            racer.communicate()


def test_threads_share_a_handle_without_overspending(place, promise):
    ledger = Ledger.create(place, name="threads", unit="patient", epsilon=1)
    outcomes = []

    def spend():
        for _ in range(4):
            try:
                outcomes.append(ledger.charge(promise(0.1), purpose="a tenth").entry)
            except BudgetExceeded:
                outcomes.append(0)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [0] * 6 + list(range(1, 11))
    assert ledger.remaining.epsilon == 0
    ledger.verify()


def in_child(action):
    """Runs an action in a forked child; an exception there fails the test here."""
    child = os.fork()
    if not child:
        try:
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@forking
def test_a_forked_child_spends_from_the_same_budget_but_cannot_close_its_parents_reservation(ledger, promise):
    reservation = ledger.reserve(promise(), purpose="parent")

    def child():
        for attempt in (reservation.void, reservation.touch, lambda: reservation.commit(b"")):
            with pytest.raises(
                LedgerError, match="entry 1 must be closed by the process that reserved it; this is another one"
            ):
                attempt()
        ledger.charge(promise(1), purpose="child")

    in_child(child)
    assert ledger.spent.epsilon == Fraction(3, 2)
    reservation.commit(b"result")
    assert [entry.purpose for entry in ledger.entries()] == ["parent", "child"]


@pytest.fixture
def open_folder():
    """A folder that a process without privileges can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def without_privileges(action):
    def run():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        action()

    in_child(run)


@forking
def test_a_write_protected_ledger_can_be_read_and_refuses_charges(open_folder, promise):
    place = open_folder / "x.ledger"
    Ledger.create(place, name="x", unit="patient", epsilon=1).charge(promise(), purpose="p")
    place.chmod(0o444)
    open_folder.chmod(0o555)

    def action():
        ledger = Ledger.open(place)
        assert ledger.remaining.epsilon == Fraction(1, 2)
        assert ledger.verify().entries == 1
        with pytest.raises(
            LedgerError, match=r"x\.ledger' cannot be opened or written\. Nothing was charged\. Check the permissions"
        ):
            ledger.charge(promise(), purpose="q")
        assert ledger.remaining.epsilon == Fraction(1, 2)
        with pytest.raises(LedgerError, match=r"cannot be created \(Permission denied\)"):
            Ledger.create(open_folder / "y.ledger", name="y", epsilon=1)

    without_privileges(action)


@forking
def test_an_unreadable_ledger_says_so(open_folder):
    place = open_folder / "x.ledger"
    Ledger.create(place, name="x", epsilon=1)
    place.chmod(0)

    def action():
        with pytest.raises(LedgerError, match="cannot be opened or written"):
            Ledger.open(place)

    without_privileges(action)


def test_a_ledger_held_by_another_writer_is_busy_for_writers_only(ledger, path, promise):
    impatient = Ledger.open(SqliteStore(path, patience=0.2))
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            LedgerError, match=r"was held by other processes for 0\.2 seconds\. Nothing was charged\. Try again"
        ):
            impatient.charge(promise(), purpose="p")
        assert impatient.remaining == ledger.budget
    impatient.charge(promise(), purpose="p")


def test_a_full_disk_is_a_ledger_error_that_charges_nothing(ledger, path, promise, monkeypatch):
    connect = SqliteStore._connect

    def small(self, *arguments, **options):
        connection = connect(self, *arguments, **options)
        connection.execute(f"PRAGMA max_page_count={path.stat().st_size // 4096}")
        return connection

    monkeypatch.setattr(SqliteStore, "_connect", small)
    reservation = ledger.reserve(promise(), purpose="p")
    with pytest.raises(
        LedgerError, match=r"could not be written to disk\. Entry 1 stays charged; its result is not kept yet\. Make room"
    ):
        reservation.commit(b"x" * 100_000)
    monkeypatch.undo()
    assert [entry.state for entry in ledger.entries()] == ["reserved"]
    reservation.commit(b"x" * 100_000)
    ledger.verify()


def test_a_creation_that_fails_leaves_no_file(path, monkeypatch):
    def broken(self, *arguments, **options):
        raise sqlite3.OperationalError("no")

    monkeypatch.setattr(SqliteStore, "_connect", broken)
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger.create(path, name="x", epsilon=1)
    assert list(path.parent.iterdir()) == []
