"""Long ledgers: what a look at one costs does not grow with it, and what that look leaves out, `verify` finds."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import tracemalloc
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from ledger.long_books import EACH, long_book
from sabun.errors import LedgerError, ParameterError
from sabun.ledger import Ledger
from sabun.ledger.chain import WINDOW
from sabun.ledger.row import Row
from sabun.ledger.statement import Budget

ENTRIES = 300


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    return long_book(tmp_path_factory.mktemp("long") / "long.ledger", ENTRIES, key="first").read_bytes()


@pytest.fixture
def long(content, path):
    path.write_bytes(content)
    return path


@pytest.fixture
def reads(monkeypatch):
    """How many rows were read so far."""
    seen, read = [], Row.read

    def counted(*about, **place):
        seen.append(None)
        return read(*about, **place)

    monkeypatch.setattr(Row, "read", counted)
    return seen


LOOKS = {
    "open": Ledger.open,
    "balance": lambda path: Ledger.open(path).remaining,
    "show": lambda path: Ledger.open(path).show(),
    "show as JSON": lambda path: Ledger.open(path).to_dict(last=5),
    "one entry": lambda path: Ledger.open(path).entry(7),
    "a key": lambda path: Ledger.open(path).with_key("first"),
    "recall": lambda path: Ledger.open(path).recall("first", guarantee=EACH, purpose="p"),
    "kept bytes": lambda path: Ledger.open(path).kept(1),
    "charge": lambda path: Ledger.open(path).charge(EACH, purpose="p", key="new"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_reads_as_many_rows_of_a_long_ledger_as_of_a_short_one(tmp_path, reads, look):
    costs = []
    for size in (80, 800):
        place = long_book(tmp_path / f"{size}", size, key="first")
        before = len(reads)
        LOOKS[look](place)
        costs.append(len(reads) - before)
    assert costs[0] == costs[1] < 4 * WINDOW


def test_the_whole_ledger_is_read_without_holding_it_in_memory(tmp_path):
    peaks = []
    for size in (400, 1600):
        ledger = Ledger.open(long_book(tmp_path / f"{size}", size))
        tracemalloc.start()
        assert ledger.verify().entries == size
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_a_charge_is_one_change_of_the_file(ledger, path, promise):
    def changes():
        return int.from_bytes(path.read_bytes()[24:28], "big")

    before = changes()
    receipt = ledger.charge(promise(), purpose="p")
    assert changes() == before + 1
    assert ledger.entry(receipt.entry).state == "committed"
    assert ledger.verify().entries == 1


def test_the_newest_entries_and_single_ones_are_those_of_the_whole_list(long, promise):
    ledger = Ledger.open(long)
    ledger.reserve(promise(0.01), purpose="p", key="k").touch()
    ledger.reserve(promise(0.01), purpose="p", key="k").void()
    everything = ledger.entries()
    assert [entry.entry for entry in everything] == list(range(1, ENTRIES + 3))
    assert [entry.state for entry in everything[-3:]] == ["committed", "reserved", "voided"]
    assert ledger.entries(last=5) == everything[-5:]
    assert ledger.entries(last=0) == ()
    assert ledger.entries(last=10**6) == everything
    assert tuple(ledger.entry(entry.entry) for entry in everything[::50]) == everything[::50]
    assert ledger.with_key("k") == everything[-2:]
    assert ledger.with_key("first") == everything[:1]
    assert ledger.with_key("unheard of") == ()
    assert ledger.to_dict(last=2)["entries"] == ledger.to_dict()["entries"][-2:]


@pytest.mark.parametrize("number", [0, -1, ENTRIES + 1, True, "1", 1.0, None])
def test_an_entry_is_found_by_its_number_alone(long, number):
    with pytest.raises(ParameterError, match="number must be the number of an entry of 'long'; got"):
        Ledger.open(long).entry(number)
    with pytest.raises(ParameterError, match="last must be a whole number of at least 0; got -1"):
        Ledger.open(long).entries(last=-1)


def test_the_page_says_how_many_entries_it_leaves_out(long):
    ledger = Ledger.open(long)
    page = ledger.show()
    assert f"Earlier entries that are not shown: {ENTRIES - 20}." in page
    assert len(page.splitlines()) < 45
    assert ledger.show(last=0).endswith(f"Earlier entries that are not shown: {ENTRIES}.")
    whole = ledger.show(last=None)
    assert "not shown" not in whole
    assert len(whole.splitlines()) > ENTRIES


# --- forgeries


def rows_of(path):
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT record, hash FROM book ORDER BY sequence").fetchall()
    return [Row.read(record, digest, place="here") for record, digest in found]


def forged(path, edit, sequence, *, onward, **changes):
    """Changes one row; `onward` hashes the rows after it anew, so that the chain holds from there on."""
    rows = rows_of(path)
    rows[sequence] = dataclasses.replace(rows[sequence], **changes)
    for later in range(sequence + 1, len(rows) if onward else 0):
        rows[later] = dataclasses.replace(rows[later], previous=rows[later - 1].hash)
    changed = rows[sequence:] if onward else [rows[sequence]]
    edit(
        path,
        *(f"UPDATE book SET record = '{row.record}', hash = '{row.hash}' WHERE sequence = {row.sequence}" for row in changed),
    )


NOTHING = Budget(Fraction(0), Fraction(0))


@pytest.mark.parametrize("back", [0, 1, WINDOW // 2, WINDOW - 1])
@pytest.mark.parametrize("onward", [True, False])
def test_a_total_forged_among_the_newest_rows_is_found_at_once(long, edit, back, onward):
    live = Ledger.open(long)
    forged(long, edit, 2 * ENTRIES - back, onward=onward, spent=NOTHING)
    with pytest.raises(LedgerError, match="was changed by something other than Sabun"):
        Ledger.open(long)
    if onward:  # else the newest row, which a live handle has seen, is still there
        with pytest.raises(LedgerError, match="the ledger must still hold what this handle has seen"):
            live.charge(EACH, purpose="p")


@pytest.mark.parametrize("back", [WINDOW + 1, WINDOW + 2, ENTRIES])
def test_a_row_forged_further_back_gives_no_budget_and_shows_when_all_is_read(long, edit, back):
    honest = Ledger.open(long).spent
    forged(long, edit, 2 * ENTRIES - back, onward=False, spent=NOTHING)
    ledger = Ledger.open(long)
    assert ledger.spent == honest
    for reading in (ledger.verify, ledger.entries, ledger.to_dict):
        with pytest.raises(LedgerError, match=r"row .* and does not: the ledger was changed by something other than Sabun"):
            reading()


def test_all_rows_from_one_far_back_written_anew_pass_a_look_and_fail_when_all_is_read(long, edit):
    """What the quick look cannot know, with the sums forged from there on too; a live handle still refuses it."""
    live, rows = Ledger.open(long), rows_of(long)
    start = 2 * ENTRIES - WINDOW
    gone = rows[start].spent.epsilon
    statements, previous = [], rows[start - 1].hash
    for row in rows[start:]:
        new = dataclasses.replace(row, previous=previous, spent=Budget(row.spent.epsilon - gone, row.spent.delta))
        previous = new.hash
        statements.append(f"UPDATE book SET record = '{new.record}', hash = '{new.hash}' WHERE sequence = {row.sequence}")
    edit(long, *statements)
    assert Ledger.open(long).spent.epsilon < gone
    with pytest.raises(LedgerError, match=f"row {start} must carry the sums of the rows before it"):
        Ledger.open(long).verify()
    with pytest.raises(LedgerError, match="the ledger must still hold what this handle has seen"):
        live.charge(EACH, purpose="p")


@pytest.mark.parametrize("change", ["DELETE FROM book WHERE sequence = 9", "DELETE FROM book WHERE sequence < 99"])
def test_rows_cut_out_far_back_show_when_all_is_read(long, edit, change):
    edit(long, change)
    with pytest.raises(LedgerError):
        Ledger.open(long).verify()


def test_a_row_outside_the_chain_shows_when_all_is_read(long, edit):
    """One with a number below the first could answer a key, and no row follows it."""
    row = dataclasses.replace(rows_of(long)[1], sequence=-1, key="forged")
    edit(long, f"INSERT INTO book VALUES (-1, 1, 'forged', '{row.record}', '{row.hash}')")
    with pytest.raises(LedgerError, match="every row must be in the chain"):
        Ledger.open(long).verify()


def test_an_entry_closed_long_after_it_was_opened_keeps_the_rules(long, edit, promise):
    ledger = Ledger.open(long)
    early = [ledger.reserve(promise("0.01"), purpose="early") for _ in range(3)]
    for _ in range(WINDOW):
        ledger.charge(promise("0.0001"), purpose="later")
    early[0].void()
    early[1].commit(b"result")
    again = Ledger.open(long)
    assert again.spent == ledger.spent
    states = [again.entry(reservation.receipt.entry).state for reservation in early]
    assert states == ["voided", "committed", "reserved"]
    assert again.verify().entries == ENTRIES + 3 + WINDOW
    rows = rows_of(long)
    twice = dataclasses.replace(rows[-1], sequence=len(rows), previous=rows[-1].hash, entry=1)
    edit(long, f"INSERT INTO book VALUES ({twice.sequence}, 1, NULL, '{twice.record}', '{twice.hash}')")
    with pytest.raises(LedgerError, match=f"row {twice.sequence} must change the state of an entry by the rules"):
        Ledger.open(long)


def test_a_void_far_from_its_reservation_must_show_its_token(long, edit, promise):
    ledger = Ledger.open(long)
    early = ledger.reserve(promise("0.01"), purpose="early")
    for _ in range(WINDOW):
        ledger.charge(promise("0.0001"), purpose="later")
    rows = rows_of(long)
    last, body = rows[-1], {"void_token": "00" * 32}
    spent = Budget(last.spent.epsilon - Fraction(1, 100), last.spent.delta)
    number = early.receipt.entry
    forgery = dataclasses.replace(
        last, sequence=len(rows), previous=last.hash, kind="void", entry=number, body=body, spent=spent
    )
    edit(long, f"INSERT INTO book VALUES ({forgery.sequence}, {number}, NULL, '{forgery.record}', '{forgery.hash}')")
    with pytest.raises(LedgerError, match="must be voided by its own reservation"):
        Ledger.open(long)


def test_a_handle_that_slept_while_many_charged_goes_on_from_the_newest_rows(long, reads):
    sleeper, busy = Ledger.open(long), Ledger.open(long)
    for _ in range(WINDOW):
        busy.charge(EACH, purpose="p")
    before = len(reads)
    sleeper.charge(EACH, purpose="p")
    assert len(reads) - before < 4 * WINDOW
    assert sleeper.spent == busy.spent
    assert sleeper.verify().entries == ENTRIES + WINDOW + 1


# --- a ledger of the first version


@pytest.fixture
def old(path):
    script = Path(__file__).with_name("format_1.sql").read_text(encoding="ascii")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def test_a_ledger_written_by_the_first_version_opens_answers_and_goes_on(old, promise):
    before = old.read_bytes()
    ledger = Ledger.open(old)
    assert (ledger.name, ledger.spent) == ("clinic-2025", Budget(Fraction(13, 12), Fraction(1, 10**7)))
    assert [entry.state for entry in ledger.entries()] == ["committed", "reserved", "voided", "committed"]
    found = ledger.recall("monday", guarantee=promise("1/4"), purpose="count of visits")
    assert found is not None
    assert found[1] == b"payload of the first release"
    head = "db248be48cdfe959782e48110bed0f447987414be98373de02b858600549f0b4"
    assert ledger.verify(expect_head=head).head_hash == head
    assert old.read_bytes() == before
    ledger.charge(promise("1/4"), purpose="new")
    assert Ledger.open(old).verify(expect_head=head).entries == 5
    assert json.loads(rows_of(old)[-2].record)["previous"] == head
