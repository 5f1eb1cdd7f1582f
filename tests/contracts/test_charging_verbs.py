"""Every command that charges a ledger: it looks before it pays, tells what it paid, and loses nothing that is paid for."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest
import typer

from cli.terminal import SOURCE, exit_code
from sabun import Ledger
from sabun.asking import Forecast, rooms
from sabun.asking.evidence import commands
from sabun.cli import build
from sabun.errors import LedgerError
from sabun.ledger.reservation import Reservation
from sabun.ledger.store import Unavailable
from sabun.release import Release, files
from sabun.telling.terminal import foretelling
from sabun.telling.terminal.charging import Payment

Capture = pytest.CaptureFixture[str]

COMMANDS = commands()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("t.csv", "public.csv"):
        rows = [f"{rng.uniform(20, 90):.3f},{rng.uniform(15, 40):.3f},{rng.choice(['no', 'yes'])}" for _ in range(400)]
        Path(name).write_text("\n".join(["age,bmi,sick", *rows]) + "\n")
    return tmp_path


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.create("book", name="clinic", unit="patient", epsilon=1000, delta="1e-3")


def arguments(verb: str, out: object = None, *, epsilon: str = "2", book: bool = True) -> tuple[object, ...]:
    paid = ("--ledger", "book") if book else ()
    return (*verb.split(), *COMMANDS[verb].arguments, "--epsilon", epsilon, *paid, "--out", out or COMMANDS[verb].out)


def test_the_list_holds_every_command_that_charges() -> None:
    charging = {
        f"{name} {inner}"
        for name, verb in typer.main.get_command(build()).commands.items()  # type: ignore[attr-defined]
        for inner, command in getattr(verb, "commands", {}).items()
        # `regression refine` needs the files of a first round: it is tried in tests/regression/test_rounds.py.
        if inner not in ("plan", "verify", "refine") and any("--ledger" in parameter.opts for parameter in command.params)
    }
    assert charging == set(COMMANDS)


def _taken(name: str) -> str:
    if Path(name).suffix:
        Path(name).write_text("precious")
    else:
        Path(name).mkdir()
        (Path(name) / "precious").touch()
    return name


PLACES: dict[str, Callable[[str], str]] = {
    "is taken": _taken,
    "has no folder": lambda name: f"nowhere/{name}",
    "lies in a file": lambda name: f"t.csv/{name}",
    "cannot be written": lambda name: "x" * 300 + Path(name).suffix,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("verb", COMMANDS)
def test_an_output_that_cannot_be_written_is_refused_before_the_charge(
    verb: str, place: str, here: Path, ledger: Ledger, capsys: Capture
) -> None:
    out = PLACES[place](COMMANDS[verb].out)
    before = {str(file): file.read_bytes() for file in here.rglob("*") if file.is_file()}
    assert exit_code(*arguments(verb, out)) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --out must be ")
    assert said.endswith("Nothing was released, nothing was charged.\n")
    assert {str(file): file.read_bytes() for file in here.rglob("*") if file.is_file()} == before
    assert ledger.entries() == ()


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_end_of_every_command_says_who_paid_and_what_is_left(verb: str, ledger: Ledger, capsys: Capture) -> None:
    assert exit_code(*arguments(verb), "--purpose", "annual report") == 0
    out, err = capsys.readouterr()
    assert "Ledger: charged to 'clinic' as entry 1 (epsilon " in out
    assert "'clinic' has epsilon " in out
    assert "Warning" not in err
    [entry] = ledger.entries()
    assert entry.remark == "annual report"
    assert entry.state == "committed"
    assert f"annual report: {verb.split()[0]}." in ledger.show()


@pytest.mark.parametrize("verb", COMMANDS)
def test_without_a_ledger_every_command_says_that_nobody_keeps_count(verb: str, capsys: Capture) -> None:
    assert exit_code(*arguments(verb, book=False)) == 0
    assert "No ledger was given: this cost is written down nowhere." in capsys.readouterr().out
    other = f"again{Path(COMMANDS[verb].out).suffix}"
    assert exit_code(*arguments(verb, other, book=False), "--purpose", "x") == 2
    assert "purpose must come with a ledger that keeps it; got none. Pass --ledger." in capsys.readouterr().err


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_promise_that_is_hardly_one_is_called_so(verb: str, capsys: Capture) -> None:
    assert exit_code(*arguments(verb, epsilon="100", book=False)) == 0
    assert "Warning: epsilon 100 protects hardly anybody: " in capsys.readouterr().err


@pytest.mark.parametrize("verb", COMMANDS)
def test_an_interrupt_says_what_stays_spent(
    verb: str, here: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def stopped(self: Any) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(Reservation, "touch", stopped)
    before = {file.name for file in here.iterdir()}
    assert exit_code(*arguments(verb)) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("error: interrupted; nothing was released, but records may have been read: epsilon ")
    assert said.endswith(" stays spent (entry 1) in 'clinic'.")
    assert {file.name for file in here.iterdir()} == before
    assert "reserved: spent, though no result was kept" in ledger.show()


def _full(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "_write_durably", full)


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_full_disk_loses_nothing_that_is_paid_for(
    verb: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    with monkeypatch.context() as patched:
        _full(patched)
        assert exit_code(*arguments(verb)) == 4
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "The charge stands, and the ledger kept the result. Give the same command again, with an --out that can" in said
    assert exit_code("ledger", "recover", "book", "1", "--out", "back.json") == 0
    [receipt] = [entry.entry_hash for entry in ledger.entries()]
    kept = Release.load("back.json").provenance.receipt
    assert kept is not None
    assert kept.entry_hash == receipt


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_full_disk_without_a_ledger_hands_the_result_to_stdout(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    _full(monkeypatch)
    assert exit_code(*arguments(verb, book=False)) == 4
    out, err = capsys.readouterr()
    assert "it is printed on stdout instead: keep it." in err
    line = next(line for line in out.splitlines() if line.startswith("{"))
    assert Release.from_json(line).provenance.kind.startswith(verb.split()[0])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("verb", COMMANDS)
def test_a_full_stdout_after_the_charge_names_the_entry_and_the_way_back(
    verb: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    full = Path("/dev/full").open("w")  # noqa: SIM115 (closing it fails)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        assert exit_code(*arguments(verb)) == 4
        sys.stdout.close()
    with suppress(OSError):
        full.close()
    said = capsys.readouterr().err
    assert "error: the operating system refuses: No space left on device. Entry 1 is paid for, and the ledger kept its" in said
    assert "Get it with: sabun ledger recover book 1 --out FILE" in said
    assert exit_code("ledger", "recover", "book", "1", "--out", "back.json") == 0


@pytest.mark.parametrize("verb", ["outliers count", "regression fit"])
def test_an_error_after_the_charge_never_hides_it(
    verb: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    held = LedgerError("'book' was held by others. Try again.")
    for error, code in ((ZeroDivisionError(), 70), (held, 4), (KeyboardInterrupt(), 130)):

        def fails(*_: Any, error: BaseException = error) -> NoReturn:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(Payment, "tell_left", fails)
            out = f"{code}{Path(COMMANDS[verb].out).suffix}"
            assert exit_code(*arguments(verb, out), "--again") == code
        said = capsys.readouterr().err
        assert "is paid for, and the ledger kept it" in said
        assert "Get it with: sabun ledger recover book " in said
        assert "othing was charged" not in said


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_ledger_that_cannot_keep_the_result_hands_it_to_stdout(
    verb: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def held(*_: Any) -> NoReturn:
        raise Unavailable("'book' was held by others.", "Try again.", means="Entry 1 stays charged.")

    monkeypatch.setattr(Reservation, "commit", held)
    assert exit_code(*arguments(verb)) == 4
    out, err = capsys.readouterr()
    assert "Entry 1 stays charged. Try again. The result was drawn, so it is printed on stdout instead: keep it." in err
    assert "othing was charged" not in err
    line = next(line for line in out.splitlines() if line.startswith("{"))
    receipt = Release.from_json(line).provenance.receipt
    assert receipt is not None
    assert receipt.entry_hash == ledger.entry(1).entry_hash


def test_a_result_that_neither_ledger_nor_stdout_takes_goes_to_stderr(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def held(*_: Any) -> NoReturn:
        raise Unavailable("'book' was held by others.", "Try again.")

    def full(*_: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Reservation, "commit", held)
    monkeypatch.setattr(sys.stdout, "write", full)
    assert exit_code(*arguments("regression fit")) == 4
    err = capsys.readouterr().err
    assert "The result was drawn, so it is printed on stderr instead: keep it." in err
    line = next(line for line in err.splitlines() if line.startswith("{"))
    assert Release.from_json(line).provenance.receipt is not None


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes a stream")
@pytest.mark.parametrize(
    ("redirection", "words"),
    [
        (">&-", "the operating system refuses: stdout is closed."),
        ("| true", "nobody reads the output any more."),
    ],
    ids=["closed", "left"],
)
def test_a_stdout_that_is_gone_when_the_charge_is_made(redirection: str, words: str, here: Path, ledger: Ledger) -> None:
    command = f'"{sys.executable}" -m sabun.cli {shlex.join(map(str, arguments("regression fit")))}'
    script = f"{{ {command}; echo code $? >&2; }} {redirection}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=here, env=os.environ | {"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False
    )
    said = done.stderr.splitlines()
    assert f"error: {words} Entry 1 is paid for, and the ledger kept its result. " in done.stderr
    assert said[-2].endswith("Get it with: sabun ledger recover book 1 --out FILE")
    assert said[-1] == "code 4"
    assert ledger.entry(1).state == "committed"


@pytest.mark.parametrize("verb", COMMANDS)
def test_json_says_where_the_result_is_under_one_name(verb: str, ledger: Ledger, capsys: Capture) -> None:
    assert exit_code(*arguments(verb), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["out"] == COMMANDS[verb].out
    assert told["entry"] == 1


def test_a_result_that_was_asked_for_by_name_is_paid_for_once(ledger: Ledger, capsys: Capture) -> None:
    assert exit_code(*arguments("outliers count"), "--retry-key", "monday") == 0
    assert exit_code(*arguments("outliers count", "again.json"), "--retry-key", "monday") == 0
    again = "Ledger: already paid ('clinic', entry 1): the same result again, whatever table was named; nothing was charged."
    assert again in capsys.readouterr().out
    assert Path("out.json").read_bytes() == Path("again.json").read_bytes()
    assert exit_code(*arguments("outliers count", "third.json"), "--key", "monday", "--json") == 0
    assert json.loads(capsys.readouterr().out)["already_paid"] is True
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_same_question_about_the_same_table_is_charged_once(verb: str, ledger: Ledger, capsys: Capture) -> None:
    assert exit_code(*arguments(verb)) == 0
    suffix = Path(COMMANDS[verb].out).suffix
    capsys.readouterr()
    assert exit_code(*arguments(verb, f"second{suffix}")) == 0
    told = "entry 1): the same result again, for the same was asked of 't.csv' before (--again draws anew and pays)"
    assert told in capsys.readouterr().out
    assert len(ledger.entries()) == 1
    for number, other in enumerate((("--again",), ("--label", "october")), start=2):
        assert exit_code(*arguments(verb, f"other{number}{suffix}"), *other) == 0
        assert len(ledger.entries()) == number
    assert exit_code(*arguments(verb, f"more{suffix}", epsilon="3")) == 0
    assert len(ledger.entries()) == 4


@pytest.mark.parametrize("verb", ["summaries mean", "outliers count"])
def test_the_same_file_read_in_another_way_is_another_question(verb: str, ledger: Ledger, capsys: Capture) -> None:
    for number, said in enumerate(((), ("--decimal", ","), ("--sheet", "b"), ("--sheet", "c")), start=1):
        for again in ("first", "second"):
            assert exit_code(*arguments(verb, f"{again}{number}.json"), *said) == 0
            assert len(ledger.entries()) == number
    assert "'t.csv (sheet 'c')'" in capsys.readouterr().out.replace('"', "'")


def test_an_edited_row_does_not_show_in_the_ledger(ledger: Ledger, here: Path) -> None:
    """A key made of the rows would be charged again, and the ledger would tell that somebody's record was changed."""
    assert exit_code(*arguments("outliers count")) == 0
    lines = Path("t.csv").read_text().splitlines()
    Path("t.csv").write_text("\n".join([*lines[:-1], "1e308,nan,no"]) + "\n")
    assert exit_code(*arguments("outliers count", "second.json")) == 0
    assert len(ledger.entries()) == 1


def test_an_empty_label_is_refused(ledger: Ledger, capsys: Capture) -> None:
    assert exit_code(*arguments("outliers count"), "--label", "") == 2
    assert "label must be" in capsys.readouterr().err


def test_an_interrupt_after_the_charge_leads_back_to_the_result(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def stopped(*_: Any, **__: Any) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(Release, "save", stopped)
    assert exit_code(*arguments("outliers count"), "--again") == 130
    said = capsys.readouterr().err
    assert "the result is paid for, and the ledger kept it. Get it with: sabun ledger recover book 1 --out FILE" in said
    assert exit_code(*arguments("outliers count"), "--key", "monday") == 130
    assert "Give the same command again, with an --out that can be written: it costs nothing." in capsys.readouterr().err


def test_a_read_only_folder_is_refused_before_the_charge(ledger: Ledger, capsys: Capture) -> None:
    Path("locked").mkdir(mode=0o500)
    try:
        (Path("locked") / "probe").touch()
    except OSError:
        assert exit_code(*arguments("outliers count", "locked/out.json")) == 2
        assert "must be a place that can be written; 'locked/out.json' cannot: Permission denied." in capsys.readouterr().err
        assert ledger.entries() == ()
    else:  # whoever runs the tests may write everywhere
        shutil.rmtree("locked")
        pytest.skip("no folder is read-only to this user")


def _planned(monkeypatch: pytest.MonkeyPatch, *, vacuous: bool, seen: list[str]) -> None:
    """Every plan that is made says what a test wants to hear; what happens in which order goes to `seen`."""
    touched, shown = Reservation.touch, foretelling.shown_plan

    def touch(self: Any) -> Any:
        seen.append("charged")
        return touched(self)

    def told(plan: Any) -> str:
        seen.append("shown")
        return shown(plan)

    def made(question: Any, **public: Any) -> Any:
        assert "charged" not in seen
        seen.append(f"of {public['n_records']}")
        return SimpleNamespace(
            forecasts=(Forecast(quantity="error of this", low=1, middle=2, high=3, assumed=("it rains",)),),
            vacuous=vacuous and Fraction(question.epsilon or 0) < 16,
            to_dict=lambda: {"forecasts": ["as told"]},
        )

    monkeypatch.setattr(Reservation, "touch", touch)
    monkeypatch.setattr(foretelling, "shown_plan", told)
    for room in rooms():
        for name in room.questions:
            if hasattr(question := getattr(import_module(room.package), name), "plan"):
                monkeypatch.setattr(question, "plan", made)


def _with_records(verb: str) -> tuple[str, ...]:
    """The number of records, told where it is private: the network's promise is about tables of any size."""
    return ("--n-public", "400") if verb == "learning train" else ()


def _without_yes(verb: str, **how: Any) -> list[object]:
    return [each for each in arguments(verb, **how) if each != "--yes"]


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_command_shows_its_plan_before_the_charge(
    verb: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    seen: list[str] = []
    _planned(monkeypatch, vacuous=False, seen=seen)
    assert exit_code(*_without_yes(verb), *_with_records(verb)) == 0
    assert seen[:3] == ["of 400", "shown", "charged"]
    said = capsys.readouterr().err
    assert "Plan: error of this: about 2, in eight of ten runs from 1 to 3 (if it rains)." in said


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_vacuous_plan_is_refused_with_nothing_charged_and_a_yes_goes_on(
    verb: str, here: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    seen: list[str] = []
    _planned(monkeypatch, vacuous=True, seen=seen)
    before = {file.name for file in here.iterdir()}
    command = (*_without_yes(verb), *_with_records(verb))
    assert exit_code(*command) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("error: --epsilon must be larger to tell anything about 400 records; got 2: even at best, ")
    ways = "From --epsilon 16 on it is no longer refused; a good answer takes more. Pass --yes to release anyway."
    assert said.endswith(f"nothing was charged. {ways}")
    assert ledger.entries() == ()
    assert {file.name for file in here.iterdir()} == before
    assert exit_code(*command, "--json") == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["type"], error["plan"]) == ("VacuousPlan", {"forecasts": ["as told"]})
    assert seen.count("shown") == 1
    assert exit_code(*command, "--yes") == 0
    assert [entry.state for entry in ledger.entries()] == ["committed"]


@pytest.mark.parametrize("verb", COMMANDS)
def test_json_carries_the_plan_beside_the_answer_and_nothing_is_said_before(
    verb: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    _planned(monkeypatch, vacuous=False, seen=[])
    assert exit_code(*_without_yes(verb), *_with_records(verb), "--json") == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["plan"] == {"forecasts": ["as told"]}
    assert told["entry"] == 1
    assert err == ""


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_plan_never_reads_how_many_records_there_are_where_that_is_private(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    seen: list[str] = []
    _planned(monkeypatch, vacuous=True, seen=seen)
    book = Ledger.create("book", name="clinic", unit="patient", relation="add-remove", epsilon=1000, delta="1e-3")
    code, said = exit_code(*_without_yes(verb)), capsys.readouterr().err
    assert code == 2
    if "ledger must be kept for replace-one neighbours" in said:  # a promise that is about these alone
        assert seen == []
        return
    assert "No plan: the number of records is private here, and nobody guessed it. " in said
    assert "--n-records must be guessed where up to 1,000,000 records would give nothing but noise; got none." in said
    assert set(seen) == {"of 100", "of 1000000"}
    assert book.entries() == ()
    assert exit_code(*_without_yes(verb), "--json") == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["plan"], error["vacuous_below"]) == (None, None)
    assert error["no_plan"].startswith("No plan: the number of records is private here")
    seen.clear()
    guess = "--n-public" if verb == "learning train" else "--n-records"
    again = f"again{Path(COMMANDS[verb].out).suffix}"
    assert exit_code(*_without_yes(verb, out=again), "--yes", "--json", "--again", guess, "777") == 0
    assert seen == ["of 777", "charged"]
    seen.clear()
    capsys.readouterr()
    _planned(monkeypatch, vacuous=False, seen=seen)  # a hundred records are enough
    assert exit_code(*_without_yes(verb, out=f"third{Path(COMMANDS[verb].out).suffix}"), "--json", "--again") == 0
    assert list(dict.fromkeys(seen)) == ["of 100", "charged"]
    assert json.loads(capsys.readouterr().out)["plan"] is None
