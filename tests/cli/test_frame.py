from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import sabun
from cli.terminal import SOURCE, exit_code, process
from reports.report_samples import release_of
from sabun.asking import rooms
from sabun.cli import _frame, build
from sabun.errors import BudgetExceeded, DataError, InternalError, ParameterError, SabunError
from sabun.telling.terminal.charging import Interrupted, warn_if_large
from sabun.telling.terminal.output import print_json, print_line, safe, warn

PRIVATE = "patient 4711 has HIV"


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(build(), ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"sabun {sabun.__version__}\n"


def test_every_module_without_an_underscore_is_a_verb_and_so_is_every_room() -> None:
    folder = Path(_frame.__file__).parent
    files = {file.stem for file in folder.glob("*.py") if not file.stem.startswith("_")} | {room.name for room in rooms()}
    verbs = set(typer.main.get_command(build()).commands)  # type: ignore[attr-defined]
    assert {name.replace("_", "-") for name in files} == verbs
    assert verbs >= {"ledger", "release", "demo"}


def test_no_arguments_print_the_help_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code() == 2
    out, err = capsys.readouterr()
    assert "Usage: sabun" in out
    assert err == ""


def test_a_verb_without_app_or_command_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sabun.cli.strange_verb", types.ModuleType("strange_verb"))
    with pytest.raises(InternalError, match=r"the verb 'strange-verb' has neither an app nor a command\. This is a bug"):
        _frame._add_verb(typer.Typer(), "strange_verb")


# --- errors become exit codes


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def command(json: bool = False) -> None:
        raise error

    root = typer.Typer()
    root.command("go")(command)
    root.command("other")(lambda: None)
    monkeypatch.setattr(_frame, "build", lambda only=None: root)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ParameterError("p must be q."), 2),
        (BudgetExceeded("no", remaining_epsilon=0, remaining_delta=0, requested_epsilon=1, requested_delta=0), 3),  # type: ignore[arg-type]
        (DataError("table"), 4),
        (InternalError("Oh."), 70),
        (SabunError("base"), 70),
    ],
)
def test_our_own_errors_are_one_line_with_their_exit_code(
    error: SabunError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, error)
    assert exit_code("go") == code
    assert capsys.readouterr() == ("", f"error: {error}\n")
    assert exit_code("go", "--json") == code
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err) == {"error": {"type": type(error).__name__, "message": str(error), "exit_code": code}}


def test_an_unexpected_error_is_our_bug_and_keeps_its_words_to_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SABUN_TRACEBACK", raising=False)
    raising(monkeypatch, KeyError(PRIVATE))
    assert exit_code("go") == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert "unexpected KeyError. This is a bug in Sabun" in err
    assert "SABUN_TRACEBACK=1" in err
    assert PRIVATE not in err
    assert "Traceback" not in err


def test_a_traceback_is_shown_only_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SABUN_TRACEBACK", "1")
    raising(monkeypatch, KeyError(PRIVATE))
    assert exit_code("go") == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert PRIVATE in err


def test_an_interrupt_is_one_line_and_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for stop in (KeyboardInterrupt(), typer.Abort()):
        raising(monkeypatch, stop)
        assert exit_code("go") == 130
        assert capsys.readouterr() == ("", "error: interrupted.\n")
    raising(monkeypatch, Interrupted("interrupted; epsilon 1 stays spent."))
    assert exit_code("go") == 130
    assert capsys.readouterr().err == "error: interrupted; epsilon 1 stays spent.\n"
    assert exit_code("go", "--json") == 130
    assert json.loads(capsys.readouterr().err)["error"]["exit_code"] == 130


def test_the_package_itself_can_be_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sabun", "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == f"sabun {sabun.__version__}\n"


def test_a_refusal_of_the_system_is_not_called_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, PermissionError(13, "Permission denied", "x.csv"))
    assert exit_code("go") == 4
    assert capsys.readouterr().err == "error: the operating system refuses: Permission denied (x.csv).\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lodger"], "No such command 'lodger'"),
        (["ledger", "create", "x"], "Missing option '--name'"),
        (["ledger", "show"], "Missing argument"),
        (["ledger", "show", "x", "--colour"], "No such option"),
        (["release", "sign", "x"], "Missing option '--signing-key'"),
    ],
)
def test_wrong_usage_is_one_line_that_leads_to_the_help(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {words}")
    assert err.count("\n") == 1
    assert "See: sabun" in err
    assert exit_code(*arguments, "--json") == 2
    assert json.loads(capsys.readouterr().err)["error"]["exit_code"] == 2


# --- what is printed


def test_letters_that_drive_a_terminal_are_replaced() -> None:
    assert safe("a\x1b[31mb\x07\r\n\tc\u202ed\x9b") == "a\ufffd[31mb\ufffd\ufffd\n\tc\ufffdd\ufffd"


def test_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    line = "[red]no markup[/red] :smile: " + "long " * 60
    print_line(line, style="bold")
    assert capsys.readouterr().out == line + "\n"


def test_only_a_large_epsilon_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    warn_if_large(10)
    assert capsys.readouterr() == ("", "")
    warn_if_large("10.5")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "Warning: epsilon 10.5 protects hardly anybody: one person's data may make an outcome e^10.5 times as likely. "
        "Choose at most 10, better 1 or less.\n"
    )
    warn_if_large("inf")
    assert "any number of times as likely" in capsys.readouterr().err


def test_json_is_plain_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "größer"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {"name": "größer"}


def test_a_plain_ascii_terminal_does_not_crash(tmp_path: Path) -> None:
    plain: dict[str, Any] = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert process("ledger", "create", "x", "--name", "größer", "--epsilon", "1", folder=tmp_path, **plain).returncode == 0
    shown = process("ledger", "show", "x", folder=tmp_path, **plain)
    assert shown.returncode == 0
    assert b"gr\\xf6\\xdfer" in shown.stdout
    assert process("--help", folder=tmp_path, **plain).returncode == 0


def test_there_are_no_colour_codes_in_a_pipe(tmp_path: Path) -> None:
    for arguments in (["demo", "--job", "count", "--folder", "demo"], ["--help"], ["nonsense"]):
        result = process(*arguments, folder=tmp_path)
        assert b"\x1b" not in result.stdout + result.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    assert process("ledger", "create", "x", "--name", "n", "--epsilon", "1", folder=tmp_path).returncode == 0
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        result = subprocess.run(
            [sys.executable, "-m", "sabun.cli", "ledger", "show", "x"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": SOURCE},
            stdout=gone,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert result.returncode == 1
    assert result.stderr == b""


def test_completion_is_offered(tmp_path: Path) -> None:
    result = process(folder=tmp_path, _SABUN_COMPLETE="complete_bash", COMP_WORDS="sabun le", COMP_CWORD="1")
    assert b"ledger" in result.stdout


def test_a_verb_is_started_without_importing_the_others(tmp_path: Path) -> None:
    probe = "import sys; from sabun.cli import _frame; _frame.build('ledger'); print('sabun.cli.datasets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "False"


def test_a_warning_that_nobody_can_read_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", encoding="utf-8", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        warn("epsilon 20 protects hardly anybody")
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()


OLDER = [
    (("release", "sign"), "--signing-key", "--key"),
    (("release", "verify"), "--trusted-key", "--key"),
    (("report",), "--trusted-key", "--key"),
    (("outliers", "count"), "--retry-key", "--key"),
    (("outliers", "count"), "--method", "--mechanism"),
    (("summaries", "count"), "--confidence", "--level"),
    (("summaries", "plan"), "--n-records", "--records"),
]


@pytest.mark.parametrize(("verb", "name", "older"), OLDER)
def test_an_older_spelling_works_and_is_not_shown(
    verb: tuple[str, ...], name: str, older: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*verb, "--help") == 0
    words = capsys.readouterr().out.split()
    assert name in words
    assert older not in words
    for spelling in (name, older):
        assert exit_code(*verb, spelling) == 2
        assert f"Option '{spelling}' requires an argument" in capsys.readouterr().err


TAKEN = [
    ("ledger", "create", "taken", "--name", "x", "--epsilon", "1"),
    ("schema", "new", "taken", "--number", "age=0:120"),
    ("datasets", "save", "wdbc", "taken"),
    ("datasets", "save", "wdbc", "new.csv", "--schema", "taken"),
    ("ledger", "recover", "book", "1", "--out", "taken"),
    ("release", "sign", "r.json", "--signing-key", "k.pem", "--out", "taken"),
    ("report", "r.json", "--out", "taken"),
]


@pytest.mark.parametrize("command", TAKEN, ids=" ".join)
def test_an_output_that_exists_is_a_bad_parameter_everywhere(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    release_of({"count": 42}).save("r.json")
    Path("taken").write_text("precious")
    assert exit_code(*command) == 2
    assert "must be a new file; 'taken' exists" in capsys.readouterr().err
    assert Path("taken").read_text() == "precious"
