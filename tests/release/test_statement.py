"""What a ledger says to outsiders, and whether they can check it without us."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sabun import Guarantee, Ledger
from sabun.errors import LedgerError, ParameterError, ReleaseError
from sabun.release import Signature, Statement, generate_key, state
from sabun.reports import statement as page_of

DOCS = Path(__file__).parents[2] / "docs" / "ledger-statement.md"


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "clinic.ledger", name="clinic <b>", unit="patient", epsilon=2, delta="1e-6")
    made.reserve(Guarantee(epsilon="1/4", unit="patient"), purpose="count of visits").commit(b"result")
    made.reserve(Guarantee(epsilon="1/2", unit="patient"), purpose="lost <script>")
    made.reserve(Guarantee(epsilon="1/8", unit="patient"), purpose="never started").void()
    made.charge(Guarantee(epsilon="1/3", delta="1e-7", unit="patient"), purpose="mean\0 age")
    return made


@pytest.fixture
def check(tmp_path):
    """The checker of the page, as a reader would save and run it: with nothing but the standard library."""
    [code] = re.findall(r"```py\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    program = tmp_path / "check.py"
    program.write_text(code, encoding="utf-8")

    def run(file, *words):
        done = subprocess.run([sys.executable, "-I", "-S", program, file, *words], capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    return run


def test_the_checker_on_the_page_is_short():
    [code] = re.findall(r"```py\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 42


def test_where_an_order_counts_no_running_sum_stands_among_the_words(ledger, check, tmp_path):
    made = state(ledger)
    assert "promise   epsilon 2, delta 1e-06 for everything together" in made.words
    assert not any("spent" in words for words in made.words)
    ledger.open_account("heart", "1/2", reason="new")
    state(ledger).save(tmp_path / "changed.json")
    assert check(tmp_path / "changed.json").startswith("RIGHT: 9 rows, 4 charges")


def test_a_statement_says_what_was_released_and_what_is_left(ledger):
    made = state(ledger)
    assert made.ledger == ledger.to_dict()
    assert made.words == ledger.show(last=0).splitlines()
    assert made.head_hash == ledger.verify().head_hash
    assert list(made.rows) == list(ledger.records())
    assert len(made.rows) == 8


def test_an_outsider_finds_an_honest_statement_right(ledger, check, tmp_path):
    file, published = tmp_path / "statement.json", ledger.verify().head_hash
    ledger.charge(Guarantee(epsilon="1/16", unit="patient"), purpose="after the hash was published")
    state(ledger).save(file)
    unchecked = "; NOT checked: the limits"  # of a ledger that counts by an order
    assert check(file) == f"RIGHT: 10 rows, 5 charges, in the chain of {ledger.verify().head_hash}{unchecked}\n"
    assert check(file, published) == f"RIGHT: 10 rows, 5 charges, in the chain of {published}{unchecked}\n"
    assert check(file, "0" * 64).startswith("WRONG: the published hash is not in the chain")


@pytest.mark.parametrize("entry", [1, 2, 3, 4])
def test_one_release_is_proved_to_stand_in_the_chain_of_a_published_hash(ledger, check, tmp_path, entry):
    published, file = ledger.verify().head_hash, tmp_path / "proof.json"
    ledger.charge(Guarantee(epsilon="1/16", unit="patient"), purpose="later")
    made = state(ledger, entry=entry, head=published)
    assert made.head_hash == published
    assert json.loads(made.rows[0])["entry"] == entry
    assert ledger.entry(entry).entry_hash in ledger_hashes(made)
    made.save(file)
    unchecked = "the limits, the terms, charges and states after the last row"
    assert check(file, published).endswith(f"in the chain of {published}; NOT checked: {unchecked}\n")


def test_an_outsider_checks_the_sums_of_a_ledger_that_adds_up_until_it_counts_otherwise(check, tmp_path):
    file, promise = tmp_path / "statement.json", Guarantee(epsilon="0.1")
    ledger = Ledger.create(tmp_path / "sums.ledger", name="sums", epsilon=3, delta="1e-6", accounting="sums")
    ledger.charge(promise, purpose="before")
    state(ledger).save(file)
    assert check(file) == f"RIGHT: 3 rows, 1 charges, in the chain of {ledger.verify().head_hash}\n"
    ledger.convert(reason="many small questions", shares=(0, 0, 1))
    small = Guarantee(epsilon="0.05")
    while ledger.spent.epsilon <= 3:
        ledger.charge(small, purpose="after")
    state(ledger).save(file, overwrite=True)
    assert check(file).endswith(f"in the chain of {ledger.verify().head_hash}; NOT checked: the limits\n")


def test_what_is_listed_beyond_the_rows_is_not_called_right(ledger, check, tmp_path):
    file, published = tmp_path / "statement.json", ledger.verify().head_hash
    state(ledger).save(file)
    changed(file, lambda said: said["ledger"].update(head_hash="0" * 64, entries=[]))
    assert check(file, published).endswith("NOT checked: the limits, charges and states after the last row\n")


def ledger_hashes(made):
    return [hashlib.sha256(row.encode()).hexdigest() for row in made.rows]


def changed(file, change):
    said = json.loads(file.read_text("utf-8"))
    change(said)
    file.write_text(json.dumps(said), encoding="utf-8")


def in_row(number, old, new):
    def change(said):
        assert old in said["rows"][number]
        said["rows"][number] = said["rows"][number].replace(old, new)

    return change


@pytest.mark.parametrize(
    "change",
    [
        in_row(1, "visits", "visitz"),
        in_row(1, '"epsilon":"1/4"', '"epsilon":"1/8"'),
        in_row(-1, "payload", "qayload"),
        lambda said: said["rows"].pop(3),
        lambda said: said["rows"].pop(),
        lambda said: said["rows"].insert(2, said["rows"][1]),
        lambda said: said["ledger"]["entries"].pop(),
        lambda said: said["ledger"]["entries"][1].update(state="voided"),
        lambda said: said["ledger"]["entries"][0].update(entry_hash="0" * 64),
        lambda said: said["ledger"]["entries"][0].update(epsilon="1/8"),
        lambda said: said["ledger"]["entries"][3].update(delta="0/1"),
        lambda said: said["ledger"]["entries"][0].update(purpose="something else"),
        lambda said: said["ledger"]["entries"].insert(0, said["ledger"]["entries"][0] | {"epsilon": "1/8"}),
        lambda said: said["ledger"].update(unit="ward"),
        lambda said: said["ledger"].update(name="another"),
        lambda said: said["ledger"]["budget"].update(epsilon="1/1"),
    ],
)
def test_an_outsider_finds_every_change(ledger, check, tmp_path, change):
    file, published = tmp_path / "statement.json", ledger.verify().head_hash
    state(ledger).save(file)
    changed(file, change)
    assert check(file, published).startswith("WRONG")


def test_a_signed_statement_says_who_stands_behind_it(ledger, tmp_path):
    key, other, file = generate_key(), generate_key(), tmp_path / "statement.json"
    with pytest.raises(ReleaseError, match="the statement must be signed; it is not"):
        state(ledger).verify()
    state(ledger).sign(key).save(file)
    loaded = Statement.load(file)
    assert loaded.verify(key.public_key()).trusted
    with pytest.raises(ReleaseError, match="the statement must be signed by a trusted key"):
        loaded.verify(other.public_key())
    changed(file, lambda said: said["ledger"].update(remaining={"epsilon": "2/1", "delta": "0/1"}))
    with pytest.raises(ReleaseError, match="the statement must be as it was signed; it was changed or forged"):
        Statement.load(file).verify(key.public_key())


def test_a_signature_of_a_release_is_none_of_a_statement(ledger):
    key, made = generate_key(), state(ledger)
    forged = Statement(**(vars(made) | {"signature": Signature.of(made._bytes(signed=False), key)}))
    with pytest.raises(ReleaseError, match="changed or forged"):
        forged.verify(key.public_key())


def test_a_page_shows_every_charge_and_escapes_every_word(ledger):
    page = page_of(state(ledger).sign(generate_key()))
    assert "count of visits" in page
    assert "lost &lt;script&gt;" in page
    assert "<script>" not in page
    assert "clinic &lt;b&gt;" in page
    assert ledger.verify().head_hash in page
    assert "Signed by" in page
    assert "Not signed" in page_of(state(ledger))


def test_a_page_in_another_language_has_no_line_of_the_terminal(ledger):
    page = page_of(state(ledger), lang="ja")
    for words in ("question of", "promise", "committed", "reserved", "voided", "1/4"):
        assert words not in page
    for words in ("ε 2, δ 1e-06", "確定", "予約", "取り消し", "<bdi>0.25</bdi>"):
        assert words in page
    assert 'class="many"' in page, "a wide table becomes a list in a narrow window"


def test_a_statement_of_nothing_is_refused_in_words(ledger, tmp_path):
    with pytest.raises(ParameterError, match="number must be the number of an entry"):
        state(ledger, entry=9)
    with pytest.raises(LedgerError, match="expect_head must be part of the chain"):
        state(ledger, head="0" * 64)
    early = ledger.entry(1).entry_hash
    with pytest.raises(ParameterError, match="head must be the hash of a row from that entry on"):
        state(ledger, entry=4, head=early)
    for content in (b"{}", b"[]", b"x"):
        file = tmp_path / "other.json"
        file.write_bytes(content)
        with pytest.raises(ReleaseError):
            Statement.load(file)
