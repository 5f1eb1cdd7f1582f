"""A ledger file that is moved, linked or torn: no charge that was reported may be lost with a file beside it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from itertools import combinations

import pytest

from sabun.errors import LedgerError
from sabun.ledger import Ledger
from sabun.ledger.sqlite_store import SqliteStore

ABOUT_FILES = True

PAGE = 4096

KILLED = """
import os, signal, sys
from sabun.ledger import Ledger
from sabun.privacy.guarantee import Guarantee

ledger = Ledger.open(sys.argv[1])
ledger.reserve(Guarantee(epsilon=0.5, unit="patient"), purpose="doomed")
with ledger._store.reading() as view:
    view.last()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_charge_is_in_the_file_itself_when_reserve_returns(ledger, path, promise):
    for number in range(1, 4):
        ledger.reserve(promise(), purpose="p")
        assert [file.name for file in path.parent.iterdir() if file.name.startswith(path.name)] == [path.name]
        alone = path.with_name("elsewhere")
        shutil.copy(path, alone)
        assert Ledger.open(alone).spent.epsilon == Fraction(number, 2)


def test_a_ledger_moved_after_a_crash_keeps_its_charge(ledger, path):
    process = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert process.returncode == -signal.SIGKILL
    moved = path.with_name("moved.ledger")
    path.rename(moved)
    assert Ledger.open(moved).spent.epsilon == Fraction(1, 2)
    Ledger.open(moved).verify()


def test_a_read_that_goes_on_while_a_charge_is_written_delays_it_and_loses_nothing(ledger, path, promise):
    impatient = Ledger.open(SqliteStore(path, patience=0.1))
    with ledger._store.reading() as view:
        view.last()
        with pytest.raises(LedgerError, match=r"was held by other processes for 0\.1 seconds\. Nothing was charged"):
            impatient.reserve(promise(), purpose="p")
    assert ledger.spent.epsilon == 0
    impatient.reserve(promise(), purpose="p")
    assert ledger.spent.epsilon == Fraction(1, 2)


def test_a_second_name_for_the_file_is_refused(ledger, path, promise):
    other = path.with_name("other.ledger")
    reservation = ledger.reserve(promise(), purpose="p")
    os.link(path, other)
    attempts = (
        lambda: Ledger.open(path),
        lambda: Ledger.open(other),
        lambda: ledger.reserve(promise(), purpose="p"),
        lambda: reservation.commit(b""),
        lambda: ledger.spent,
    )
    for attempt in attempts:
        with pytest.raises(LedgerError, match=r"must have one name only; it has hard links\. Remove the other names"):
            attempt()
    other.unlink()
    reservation.commit(b"")
    assert ledger.spent.epsilon == Fraction(1, 2)


def test_a_symbolic_link_is_the_same_ledger(ledger, path, promise):
    other = path.with_name("other.ledger")
    other.symlink_to(path)
    Ledger.open(other).charge(promise(), purpose="p")
    assert ledger.spent.epsilon == Fraction(1, 2)


def test_a_ledger_switched_to_a_write_ahead_log_is_switched_back_by_the_next_charge(ledger, path, promise):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        assert other.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    ledger.reserve(promise(), purpose="p")
    alone = path.with_name("elsewhere")
    shutil.copy(path, alone)
    assert Ledger.open(alone).spent.epsilon == Fraction(1, 2)
    assert path.read_bytes()[18:20] == b"\x01\x01"


def pages(content):
    return [content[start : start + PAGE] for start in range(0, len(content), PAGE)]


def torn(before, after, written):
    """The file as a crash leaves it when only some of a change's pages were written, and its journal stayed behind."""
    old, new = pages(before), pages(after)
    last = max([len(old) - 1, *written])
    return b"".join(new[n] if n in written else old[n] if n < len(old) else bytes(PAGE) for n in range(last + 1))


def charges_in(path):
    """How many charges a reader of the file finds, or None when it is told that the file is damaged."""
    try:
        return Ledger.open(path).verify().entries
    except LedgerError:
        return None


@pytest.mark.parametrize("words", ["p", "long " * 300])
def test_a_write_torn_by_a_crash_loses_no_earlier_charge_even_without_its_journal(path, promise, words):
    """Pages are written in their order; every prefix is tried, for charges that split pages of the tree too."""
    ledger = Ledger.create(path, name="torn", unit="patient", epsilon=100)
    place, splits = path.with_name("torn.ledger"), 0
    for number in range(12):
        before = path.read_bytes()
        ledger.reserve(promise(0.1), purpose=words, key=f"k{number}")
        after = path.read_bytes()
        changed = [n for n, page in enumerate(pages(after)) if page != (pages(before)[n : n + 1] or [None])[0]]
        splits += len(after) > len(before)
        assert changed[0] == 0, "the first page tells how long the file must be"
        for count in range(1, len(changed)):
            place.write_bytes(torn(before, after, changed[:count]))
            found = charges_in(place)
            assert found is None or found >= number
    assert splits >= 2


def test_pages_written_in_any_order_lose_no_earlier_charge_without_being_found(path, promise):
    """A power cut may keep any set of pages; checked by `verify`, which reads the indexes too."""
    ledger = Ledger.create(path, name="torn", unit="patient", epsilon=100)
    place = path.with_name("torn.ledger")
    for number in range(12):
        before = path.read_bytes()
        ledger.reserve(promise(0.1), purpose="p", key=f"k{number}")
        after = path.read_bytes()
        changed = [n for n, page in enumerate(pages(after)) if page != (pages(before)[n : n + 1] or [None])[0]]
        for count in range(1, len(changed)):
            for written in combinations(changed, count):
                place.write_bytes(torn(before, after, written))
                found = charges_in(place)
                assert found is None or found >= number, (number, written, changed)
