from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from cli.terminal import exit_code, process
from ledger.long_books import long_book
from sabun.errors import LedgerError, ParameterError
from sabun.ledger import Ledger
from sabun.privacy import Guarantee
from sabun.privacy.noise import os_coin
from sabun.release import publish
from sabun.telling.terminal.charging import Payment


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.ledger"


def create(path: Path, *more: str) -> int:
    return exit_code("ledger", "create", path, "--name", "clinic", "--unit", "patient", *more)


@pytest.mark.parametrize(
    ("written", "meant"), [("0.1", Fraction(1, 10)), ("1/3", Fraction(1, 3)), ("3", 3), ("1e-2", Fraction(1, 100))]
)
def test_amounts_are_read_exactly(path: Path, written: str, meant: Fraction) -> None:
    assert create(path, "--epsilon", written, "--delta", "1e-6") == 0
    assert Ledger.open(path).budget == (meant, Fraction(1, 10**6))


def test_the_terms_are_printed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "3", "--relation", "add-remove") == 0
    out = capsys.readouterr().out
    assert f"Created '{path}'." in out
    assert "'clinic': epsilon 3, delta 0 for each patient (add-remove)." in out


def test_json_is_the_whole_ledger(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "1", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["path"] == str(path)
    assert made["remaining"] == {"epsilon": "1/1", "delta": "0/1"}
    Ledger.open(path).charge(Guarantee(epsilon=0.1, unit="patient"), purpose="a count")
    assert exit_code("ledger", "show", path, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["remaining"]["epsilon"] == "9/10"
    assert [entry["purpose"] for entry in shown["entries"]] == ["a count"]


def test_show_prints_each_charge(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger.create(path, name="clinic", epsilon=1).charge(Guarantee(epsilon=0.1), purpose="a count")
    assert exit_code("ledger", "show", path) == 0
    out = capsys.readouterr().out
    assert "0.9 left" in out
    assert "a count" in out


def test_show_lists_the_newest_charges_or_as_many_as_are_asked_for(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long_book(path, 30)

    def listed(*options: object) -> int:
        assert exit_code("ledger", "show", path, *options) == 0
        return capsys.readouterr().out.count("  committed  ")

    assert (listed(), listed("--last", 3), listed("--last", 0), listed("--all")) == (20, 3, 0, 30)
    for options, entries in (((), 30), (("--last", 2), 2)):
        assert exit_code("ledger", "show", path, "--json", *options) == 0
        assert len(json.loads(capsys.readouterr().out)["entries"]) == entries
    assert exit_code("ledger", "show", path, "--all", "--last", 3) == 2
    assert "last must be left out with --all; got both." in capsys.readouterr().err
    assert exit_code("ledger", "show", path, "--last", -1) == 2


def test_verify_tells_how_far_it_has_come(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_book(path, 300)
    told: list[tuple[float, str]] = []

    @contextmanager
    def bar(title: str, *, quiet: bool) -> Iterator[Callable[[float, str], None]]:
        yield lambda share, words: told.append((share, words))

    monkeypatch.setattr("sabun.cli.ledger.progress_bar", bar)
    assert exit_code("ledger", "verify", path) == 0
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    assert len(told) > 1
    assert told[-1] == (1.0, "300 charges")


@pytest.mark.parametrize(
    "epsilon", ["-1", "0", "nan", "inf", "abc", "1/0", "1e999999999", "1e-999999999", "9" * 100, "", "1.2.3"]
)
def test_a_bad_epsilon_is_refused(path: Path, epsilon: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, f"--epsilon={epsilon}") == 2
    rule = "finite and > 0; got " if epsilon in ("-1", "0") else ""
    assert f"error: --epsilon must be {rule}" in capsys.readouterr().err
    assert not path.exists()


def test_other_bad_terms_are_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "1", "--delta", "2") == 2
    assert "error: --delta must be at least 0 and below 1" in capsys.readouterr().err
    assert create(path, "--epsilon", "1", "--relation", "twins") == 2
    assert "error: --relation must be one of" in capsys.readouterr().err


def test_an_existing_ledger_is_not_touched(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "1") == 0
    assert create(path, "--epsilon", "9") == 2
    assert "error: " in capsys.readouterr().err
    assert Ledger.open(path).budget.epsilon == 1


def test_a_missing_ledger_is_bad_data(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("show", "verify"):
        assert exit_code("ledger", verb, path, "--json") == 4
        assert json.loads(capsys.readouterr().err)["error"]["type"] == "LedgerError"
    assert not path.exists()


def test_verify_prints_the_newest_hash_and_checks_one_that_was_kept(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.create(path, name="clinic", epsilon=1)
    receipt = ledger.charge(Guarantee(epsilon=0.1), purpose="a count")
    assert exit_code("ledger", "verify", path) == 0
    out = capsys.readouterr().out
    assert ledger.verify().head_hash in out
    assert "Keep this hash elsewhere" in out
    assert exit_code("ledger", "verify", path, "--head", receipt.entry_hash, "--json") == 0
    assert json.loads(capsys.readouterr().out)["head_checked"] is True
    assert exit_code("ledger", "verify", path, "--head", "0" * 64) == 4
    assert exit_code("ledger", "verify", path, "--head", "short") == 2


def test_verify_finds_a_changed_ledger(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger.create(path, name="clinic", epsilon=1).charge(Guarantee(epsilon=0.5), purpose="a count")
    changed = 0
    for file in path.parent.iterdir():
        content = file.read_bytes()
        changed += content.count(b"a count")
        file.write_bytes(content.replace(b"a count", b"b count"))
    assert changed
    assert exit_code("ledger", "verify", path) == 4
    assert "error: " in capsys.readouterr().err


def test_exit_codes_are_those_of_the_process(path: Path, tmp_path: Path) -> None:
    made = process("ledger", "create", path, "--name", "n", "--epsilon", "1", "--json", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, b"")
    assert json.loads(made.stdout)["name"] == "n"
    again = process("ledger", "create", path, "--name", "n", "--epsilon", "1", folder=tmp_path)
    assert (again.returncode, again.stdout) == (2, b"")
    assert again.stderr.startswith(b"error: ")


def test_a_lost_file_is_written_again(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.create(path, name="clinic", epsilon=1)
    coin = os_coin()
    release = publish(
        kind="count", guarantee=Guarantee(epsilon=0.5), parameters={}, draw=lambda: {"count": 3}, ledger=ledger, coin=coin
    )
    out = tmp_path / "back.json"
    assert exit_code("ledger", "recover", path, 1, "--out", out) == 0
    assert "count, charged to 'clinic' as entry 1 (epsilon 0.5)." in capsys.readouterr().out
    assert out.read_bytes() == release.to_json()
    assert exit_code("ledger", "recover", path, 1, "--out", out) == 2
    assert "out must be a new file" in capsys.readouterr().err
    assert exit_code("ledger", "recover", path, 2, "--out", tmp_path / "x.json") == 2
    assert "entry must be an entry of 'clinic' with a kept result; got 2." in capsys.readouterr().err
    assert exit_code("ledger", "recover", path, 1, "--out", tmp_path / "y.json", "--json") == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "count"
    assert ledger.spent.epsilon == 0.5


def test_a_budget_that_protects_hardly_anybody_is_called_so(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "100") == 0
    assert "Warning: epsilon 100 protects hardly anybody" in capsys.readouterr().err


def test_a_ledger_is_created_with_all_its_terms(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--delta", "1e-6", "--ceiling", "4", "--group", "2", "--account", "heart=1/3", "--order", "8", "--shares", "0,0,1"]
    assert create(path, "--epsilon", "3", *more, "--json") == 0
    standing = json.loads(capsys.readouterr().out)["standing"]
    assert standing["shares"] == {"order": 8, "sums": "0/1", "stated": "0/1", "tail": "1/1000000"}
    assert (standing["promised"]["epsilon"], standing["group"]) == ("4/1", 2)
    assert standing["accounts"]["heart"]["part"] == "1/3"
    for wrong in (["--account", "heart"], ["--shares", "0,1"], ["--accounting", "best"], ["--ceiling", "1"]):
        assert create(path.with_suffix(".other"), "--epsilon", "3", "--delta", "1e-6", *wrong) == 2
        assert capsys.readouterr().err.startswith("error: ")
    assert not path.with_suffix(".other").exists()


def test_show_tells_what_a_question_costs_and_how_many_are_left(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "3", "--delta", "1e-6") == 0
    capsys.readouterr()
    assert exit_code("ledger", "show", path, "--epsilon", "0.1") == 0
    out = capsys.readouterr().out
    assert "epsilon 0.1  2.6 %  39" in out
    assert "0 % of the budget" in out
    assert exit_code("ledger", "show", path, "--epsilon", "0.1", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["forecast"]["left"] == 39
    assert shown["share_used"] == "0/1"


def test_a_budget_is_raised_with_a_reason(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "1", "--ceiling", "2") == 0
    assert exit_code("ledger", "raise", path, "--epsilon", "2", "--reason", "the board agreed") == 0
    assert "'clinic' may spend epsilon 2 now." in capsys.readouterr().out
    assert exit_code("ledger", "raise", path, "--epsilon", "3", "--reason", "more") == 2
    assert "at most the ceiling 2/1" in capsys.readouterr().err
    assert exit_code("ledger", "verify", path) == 0


def test_an_account_is_opened_and_charged_by_its_name(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "1") == 0
    capsys.readouterr()
    assert exit_code("ledger", "account", path, "heart", "--part", "1/2", "--reason", "new", "--json") == 0
    assert json.loads(capsys.readouterr().out)["standing"]["accounts"]["heart"]["part"] == "1/2"
    with Payment.of(f"{path}::heart", None) as payment:
        assert payment.file == str(path)
        assert payment.book is not None
        assert payment.book.remaining.epsilon == Fraction(1, 2)
    with pytest.raises(ParameterError, match="account must be an account of 'clinic'"):
        Payment.of(f"{path}::lung", None)
    with pytest.raises(LedgerError, match="no ledger at"):
        Payment.of(f"{path}.gone::lung", None)


def test_the_rest_is_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "3", "--delta", "1e-6") == 0
    assert exit_code("ledger", "rest", path, "--delta", "1e-7") == 0
    assert "--delta 1e-07" in capsys.readouterr().out
    assert exit_code("ledger", "rest", path, "--json") == 0
    found = {name: Fraction(text) for name, text in json.loads(capsys.readouterr().out).items() if name != "path"}
    assert found["epsilon"] > 2


def test_a_ledger_is_converted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(path, "--epsilon", "3", "--delta", "1e-6", "--accounting", "sums") == 0
    assert exit_code("ledger", "convert", path, "--reason", "small questions") == 0
    assert "counts by sums or by a Rényi order now" in capsys.readouterr().out
    assert exit_code("ledger", "convert", path, "--reason", "again") == 2


def test_several_ledgers_promise_their_sum(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = path.with_suffix(".other")
    assert create(path, "--epsilon", "3", "--ceiling", "4") == 0
    assert create(other, "--epsilon", "1", "--delta", "1e-6") == 0
    capsys.readouterr()
    assert exit_code("ledger", "sum", path, other, "--json") == 0
    found = json.loads(capsys.readouterr().out)["guarantee"]
    assert (found["epsilon"], found["delta"], found["unit"]) == ("5", "1/1000000", "patient")
    third = path.with_suffix(".third")
    assert exit_code("ledger", "create", third, "--name", "x", "--epsilon", "1") == 0
    assert exit_code("ledger", "sum", path, third) == 2
    assert "ledgers must protect the same unit in the same way" in capsys.readouterr().err
