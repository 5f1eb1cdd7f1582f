from __future__ import annotations

import dataclasses
import json
import random
import re
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

from ledger.behind import on_server, written
from ledger.long_books import long_book
from sabun.errors import LedgerError, ParameterError
from sabun.ledger import Budget, Ledger, Verification
from sabun.ledger.amounts import read_amount
from sabun.ledger.row import Row
from sabun.ledger.sqlite_store import SqliteStore


@pytest.fixture
def busy_ledger(ledger, promise):
    ledger.reserve(promise(0.25), purpose="count of visits", key="monday").commit(b"payload of the first release")
    ledger.reserve(promise(0.5), purpose="lost in a crash")
    ledger.reserve(promise(0.125), purpose="never started").void()
    ledger.charge(promise("1/3", "1e-7"), purpose="mean age")
    return ledger


def test_an_honest_ledger_verifies(busy_ledger):
    assert busy_ledger.verify() == Verification(entries=4, head_hash=busy_ledger.to_dict()["head_hash"])


FILE_CHANGES = [
    "UPDATE book SET record = CAST(record AS BLOB) WHERE sequence = 3",
    "UPDATE payloads SET payload = CAST(payload AS TEXT) WHERE entry = 1",
    "CREATE TABLE more (x)",
    "CREATE TRIGGER forget AFTER INSERT ON book BEGIN DELETE FROM book WHERE sequence > 0; END",
    "PRAGMA application_id = 7",
    "PRAGMA user_version = 2",
]
SERVER_CHANGES = [
    "CREATE TABLE more (x int)",
    "ALTER TABLE book DISABLE TRIGGER book_keeps",
    "ALTER TABLE book DISABLE TRIGGER book_follows",
    "ALTER TABLE book ENABLE REPLICA TRIGGER book_keeps",
    "DROP TRIGGER payloads_keep ON payloads",
    "ALTER TABLE book ENABLE ROW LEVEL SECURITY",
    "CREATE RULE forget AS ON INSERT TO book DO INSTEAD NOTHING",
    "CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    "CREATE TRIGGER forget BEFORE INSERT ON book FOR EACH ROW EXECUTE FUNCTION keep()",
    "ALTER TABLE book ADD COLUMN more int",
    "ALTER TABLE book ALTER COLUMN hash DROP NOT NULL",
    "ALTER TABLE payloads DROP CONSTRAINT payloads_payload_check",
    "ALTER TABLE payloads SET UNLOGGED",
    "CREATE TABLE heir () INHERITS (book)",
]


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE book SET record = replace(record, '"epsilon":"1/4"', '"epsilon":"1/8"') WHERE sequence = 1""",
        "UPDATE book SET record = replace(record, 'visits', 'visitz') WHERE sequence = 1",
        "UPDATE book SET record = record || ' '",
        "UPDATE book SET record = 'null', hash = '74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b'",
        "UPDATE book SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE sequence = 2",
        "UPDATE book SET key = 'tuesday' WHERE key = 'monday'",
        "UPDATE book SET entry = 9 WHERE sequence = 2",
        "UPDATE book SET sequence = 99 WHERE sequence = 2",
        "DELETE FROM book WHERE sequence = 3",
        "DELETE FROM book WHERE sequence = 0",
        "DELETE FROM book",
        "UPDATE payloads SET payload = x'00' WHERE entry = 1",
        "DELETE FROM payloads WHERE entry = 1",
        "INSERT INTO payloads VALUES (2, x'00')",
        "DROP INDEX book_by_key",
    ],
)
def test_every_change_by_sql_is_found(busy_ledger, place, edit, change):
    edit(place, change)
    must_be_found(busy_ledger, place)


def must_be_found(ledger, place):
    with pytest.raises(LedgerError):
        ledger.verify()
    with pytest.raises(LedgerError):
        Ledger.open(place).verify()


@pytest.mark.parametrize("change", FILE_CHANGES)
def test_every_change_of_a_file_is_found(busy_ledger, path, edit, change):
    edit(path, change)
    must_be_found(busy_ledger, path)


@pytest.mark.parametrize("place", ["server"], indirect=True)
@pytest.mark.parametrize("change", SERVER_CHANGES)
def test_every_change_of_tables_on_a_server_is_found(busy_ledger, place, promise, change):
    on_server(place, change)
    must_be_found(busy_ledger, place)
    with pytest.raises(LedgerError, match="the tables of the ledger were changed by another program"):
        busy_ledger.charge(promise(0.1), purpose="p")


FORGETFUL = "CREATE TRIGGER forget AFTER INSERT ON book BEGIN DELETE FROM book WHERE sequence = NEW.sequence; END"


@pytest.mark.parametrize(
    "change",
    [
        FORGETFUL,
        "CREATE TRIGGER ignore BEFORE INSERT ON book BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER lose AFTER INSERT ON payloads BEGIN DELETE FROM payloads WHERE entry = NEW.entry; END",
        "CREATE VIEW more AS SELECT 1",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON book (hash)",
        "DROP INDEX book_by_entry",
        "DROP INDEX book_by_key",
    ],
)
def test_tables_that_were_changed_are_refused_on_every_look(busy_ledger, path, edit, promise, change):
    """A trigger more could take every charge back as it is written: a budget without end, until somebody verifies."""
    reservation = busy_ledger.reserve(promise("0.01"), purpose="p")
    spent = busy_ledger.spent
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(change)
    attempts = (
        lambda: Ledger.open(path),
        lambda: busy_ledger.charge(promise("0.01"), purpose="p"),
        lambda: reservation.commit(b"result"),
        lambda: busy_ledger.spent,
    )
    for attempt in attempts:
        with pytest.raises(LedgerError, match=r"the tables of the ledger were changed by another program\. Do not release"):
            attempt()
    if change.startswith("CREATE"):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("DROP " + " ".join(change.split()[1:3]))
        reservation.commit(b"result")
        assert Ledger.open(path).spent == spent


@pytest.mark.parametrize("change", [FORGETFUL, FORGETFUL.replace("DELETE FROM book", "UPDATE book SET hash = 'x'")])
def test_a_written_row_is_read_back_before_it_counts(busy_ledger, path, promise, monkeypatch, change):
    """The second guard, with the first lifted: a row that is not there after it was written is no charge."""
    monkeypatch.setattr(SqliteStore, "_must_have_its_tables", lambda *_: None)
    guard = "book_holds" if "DELETE" in change else "book_keeps"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"DROP TRIGGER {guard}")
        connection.execute(change)
    with pytest.raises(LedgerError, match=r"must hold entry 5 as it was written|a row was changed after it was written"):
        busy_ledger.charge(promise("0.01"), purpose="p")


def test_kept_bytes_are_read_back_too(busy_ledger, path, promise, monkeypatch):
    monkeypatch.setattr(SqliteStore, "_must_have_its_tables", lambda *_: None)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER payloads_keep")
        connection.execute("CREATE TRIGGER x AFTER INSERT ON payloads BEGIN UPDATE payloads SET payload = x'00'; END")
    with pytest.raises(
        LedgerError, match=r"must hold entry 5 as it was written, and does not: another program changes the file"
    ):
        busy_ledger.charge(promise("0.01"), purpose="p")
    assert busy_ledger.entries(last=1)[0].entry == 4


def test_rows_cannot_be_changed_or_deleted_by_plain_sql(busy_ledger, path):
    with closing(sqlite3.connect(path)) as connection:
        for statement in (
            "UPDATE book SET key = 'x'",
            "DELETE FROM book",
            "DELETE FROM payloads",
            "UPDATE payloads SET entry = 7",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                connection.execute(statement)
    busy_ledger.verify()


def rewritten(place, edit, change):
    """Forges rows with hashes that fit again, as someone who read our source would."""
    records = [json.loads(text) for text, _ in written(place)]
    change(records)
    previous, statements = "0" * 64, ["DELETE FROM book"]
    for record in records:
        spent = Budget(read_amount(record["spent"]["epsilon"]), read_amount(record["spent"]["delta"]))
        row = Row(**(record | {"previous": previous, "spent": spent}))
        previous = row.hash
        key = "NULL" if row.key is None else f"'{row.key}'"
        text = row.record.replace("'", "''")
        statements.append(f"INSERT INTO book VALUES ({row.sequence}, {row.entry}, {key}, '{text}', '{row.hash}')")
    edit(place, *statements)


def _set(sequence, **values):
    return lambda records: records[sequence].update(values)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (_set(1, spent={"epsilon": "0/1", "delta": "0/1"}), "row 1 must carry the sums of the rows before it"),
        (_set(1, entries=0), "row 1 must carry the sums"),
        (_set(1, entry=2), "row 1 must change the state of an entry by the rules"),
        (_set(2, kind="create"), "row 2 must change the state of an entry by the rules"),
        (_set(3, kind="commit", entry=1), "row 3 must have the fields of its kind"),
        (lambda records: records[1]["body"].update(epsilon="8/1"), "row 1 must carry the sums"),
        (lambda records: records[0]["body"].update(epsilon="1/8"), "row 1 must stay within the budget"),
        (lambda records: records[0]["body"].update(relation="swap"), "row 0 must open the book with nothing spent"),
        (lambda records: records[0]["body"].pop("name"), "row 0 must hold name, unit, relation and budget"),
        (lambda records: records[0]["body"].update(format=9), "ledger format must be 1 or 2; got 9"),
        (_set(0, kind="void"), "row 0 must have the fields of its kind"),
        (lambda records: records[5]["body"].update(void_token="00" * 32), "row 5 must be voided by its own reservation"),
        (lambda records: records[5]["body"].pop("void_token"), "row 5 must have the fields of its kind"),
        (lambda records: records[2]["body"].update(payload_size="28"), "row 2 must have the fields of its kind"),
        (lambda records: records[1]["body"].update(guarantee=[1]), "row 1 must have the fields of its kind"),
        (lambda records: records[1]["body"].update(purpose=None), "row 1 must have the fields of its kind"),
        (lambda records: records[0]["body"].update(unit="\ud800"), "row 0 must hold name, unit, relation and budget"),
        (lambda records: records.append(records[-1] | {"sequence": 8}), "row 8 must change the state"),
        (lambda records: records.pop(3), "row 4 must follow the row before it"),
    ],
)
def test_a_forged_chain_must_still_obey_the_rules(busy_ledger, place, edit, change, rule):
    rewritten(place, edit, change)
    with pytest.raises(LedgerError, match=rule):
        Ledger.open(place).entries()


def test_an_amount_below_its_guarantee_is_found_by_verify(ledger, promise, place, edit):
    ledger.charge(promise(1), purpose="p")

    def less(records):
        records[1]["body"]["epsilon"] = "1/1000"
        for record in records[1:]:
            record["spent"]["epsilon"] = "1/1000"

    rewritten(place, edit, less)
    with pytest.raises(LedgerError, match="row 1 must book what its guarantee"):
        Ledger.open(place).verify()


def test_a_price_in_a_ledger_of_the_first_format_is_found_by_verify(ledger, promise, place, edit):
    ledger.charge(promise(1), purpose="p")
    rewritten(place, edit, lambda records: records[1]["body"].update(tau="0/1", loose="0/1", extra="0/1", form="curve"))
    with pytest.raises(LedgerError, match="row 1 must book what its guarantee"):
        Ledger.open(place).verify()


def test_one_row_swapped_for_another_with_a_hash_of_its_own_breaks_the_chain(busy_ledger, place, edit):
    record, digest = written(place)[1]
    forged = Row.read(record, digest, place="here")
    forged = dataclasses.replace(forged, body=dict(forged.body) | {"purpose": "something else"})
    edit(place, f"UPDATE book SET record = '{forged.record}', hash = '{forged.hash}' WHERE sequence = 1")
    with pytest.raises(LedgerError, match="row 2 must follow the row before it"):
        Ledger.open(place).verify()


def test_a_forged_total_in_the_newest_row_buys_nothing(place, edit, promise):
    ledger = Ledger.create(place, name="x", unit="patient", epsilon=1)
    ledger.charge(promise(1), purpose="all of it")
    elsewhere = Ledger.open(place)
    ledger.reserve(promise(0), purpose="free")
    record, digest = written(place)[-1]
    forged = dataclasses.replace(Row.read(record, digest, place="here"), spent=Budget(Fraction(0), Fraction(0)))
    edit(place, f"UPDATE book SET record = '{forged.record}', hash = '{forged.hash}' WHERE sequence = 3")
    with pytest.raises(LedgerError, match="must still hold what this handle has seen"):
        ledger.reserve(promise(1), purpose="again")
    with pytest.raises(LedgerError, match="row 3 must carry the sums of the rows before it"):
        elsewhere.reserve(promise(1), purpose="again")
    with pytest.raises(LedgerError, match="row 3 must carry the sums of the rows before it"):
        Ledger.open(place)


def test_a_chain_written_anew_is_found_by_whoever_kept_a_head(busy_ledger, place, edit):
    head = busy_ledger.verify().head_hash
    rewritten(place, edit, lambda records: records[1]["body"].update(purpose="something else"))
    anew = Ledger.open(place)
    anew.verify()
    with pytest.raises(LedgerError, match="expect_head must be part of the chain; it is not"):
        anew.verify(expect_head=head)


def test_a_cut_off_tail_is_found_by_whoever_kept_a_head(busy_ledger, place, edit, promise):
    early, receipt = busy_ledger.verify().head_hash, busy_ledger.charge(promise(0.1), purpose="last")
    head = busy_ledger.verify(expect_head=early).head_hash
    edit(place, "DELETE FROM book WHERE entry = 5", "DELETE FROM payloads WHERE entry = 5")
    shorter = Ledger.open(place)
    assert shorter.verify(expect_head=early).entries == 4
    for kept in (head, receipt.entry_hash):
        with pytest.raises(LedgerError, match=r"expect_head must be part of the chain; it is not\. The ledger was cut short"):
            shorter.verify(expect_head=kept)


def test_a_live_handle_notices_that_the_ledger_went_back_in_time(ledger, path, promise):
    backup = path.with_name("backup")
    shutil.copy(path, backup)
    ledger.charge(promise(), purpose="p")
    shutil.copy(backup, path)
    for attempt in (lambda: ledger.remaining, lambda: ledger.reserve(promise(), purpose="q"), ledger.verify):
        with pytest.raises(
            LedgerError, match="must still hold what this handle has seen; it was replaced by an older or another one"
        ):
            attempt()


@pytest.mark.parametrize("head", ["", "abc", "Z" * 64, 5])
def test_an_expected_head_is_a_hash(ledger, head):
    with pytest.raises(ParameterError, match="expect_head must be 64 hexadecimal digits; got"):
        ledger.verify(expect_head=head)


def outcome(path):
    """What a reader of a damaged file learns: the contents, or that it is damaged."""
    try:
        ledger = Ledger.open(path)
        ledger.verify()
        return ledger.to_dict()
    except LedgerError:
        return None


def flipped(content, offset, bit):
    changed = bytearray(content)
    changed[offset] ^= 1 << bit
    return bytes(changed)


def test_a_flipped_byte_in_a_row_or_payload_is_always_found(busy_ledger, path):
    content, coin = path.read_bytes(), random.Random(1)
    with closing(sqlite3.connect(path)) as connection:
        texts = [text.encode() for pair in connection.execute("SELECT record, hash FROM book") for text in pair]
    path.write_bytes(content)
    for text in [*texts, b"payload of the first release"]:
        copies = [found.start() for found in re.finditer(re.escape(text), content)]
        assert copies
        for offset in (0, len(text) - 1, *coin.sample(range(len(text)), 12)):
            bit, changed = coin.randrange(8), content
            for start in copies:
                changed = flipped(changed, start + offset, bit)
            path.write_bytes(changed)
            assert outcome(path) is None, (text, offset)


def test_a_flipped_byte_anywhere_is_found_or_changes_nothing(busy_ledger, path):
    content, coin, honest = path.read_bytes(), random.Random(2), busy_ledger.to_dict()
    for offset in [*range(100), *(coin.randrange(len(content)) for _ in range(300))]:
        path.write_bytes(flipped(content, offset, coin.randrange(8)))
        for ending in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        assert outcome(path) in (None, honest), offset


def test_a_file_cut_short_is_damaged(busy_ledger, path):
    content = path.read_bytes()
    for size in (1, 99, 512, 4096, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        assert outcome(path) is None, size


@pytest.mark.parametrize(
    "change",
    [
        *(lambda records, name=name: records[1]["body"].pop(name) for name in ("purpose", "note", "guarantee", "epsilon")),
        lambda records: records[1]["body"].update(delta="x"),
        lambda records: records[1]["body"].update(guarantee=None),
        lambda records: records[2]["body"].pop("payload_sha256"),
        *(_set(place, entries=wrong) for place in (0, 75) for wrong in (None, [], "x")),
    ],
)
def test_a_forged_row_outside_the_window_is_refused_in_words(tmp_path, edit, change):
    path = long_book(tmp_path / "long.ledger", 70, key="monday")
    rewritten(path, edit, change)
    for look in (
        lambda: Ledger.open(path).show(last=100),
        lambda: Ledger.open(path).to_dict(last=100),
        lambda: Ledger.open(path).verify(),
    ):
        with pytest.raises(LedgerError, match="must have the fields of its kind"):
            look()


def test_newest_rows_written_anew_are_found_by_a_kept_head_alone(ledger, promise, place, edit):
    ledger.charge(promise(0.5), purpose="one")
    kept = ledger.reserve(promise(1), purpose="two").receipt.entry_hash

    def cheaper(records):
        records[-1]["body"].update(epsilon="1/8", guarantee=promise("1/8").to_dict())
        records[-1]["spent"].update(epsilon="5/8")

    rewritten(place, edit, cheaper)
    assert Ledger.open(place).verify().entries == 2  # the hashes have no key: what the documents say of it
    with pytest.raises(LedgerError, match="expect_head must be part of the chain"):
        Ledger.open(place).verify(expect_head=kept)


def test_a_log_that_cannot_be_looked_at_is_refused_in_words(ledger, path):
    path.with_name(f"{path.name}-wal").symlink_to(f"{path.name}-wal")
    with pytest.raises(LedgerError, match="must keep no write-ahead log"):
        Ledger.open(path)
