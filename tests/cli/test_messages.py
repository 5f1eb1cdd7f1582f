"""What is said to people who type: no names of programs, options that exist, columns that stand under each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.terminal import exit_code, process
from sabun.cli._frame import build
from sabun.cli._wording import in_typed_words, with_options
from sabun.foreign import fitted, padded, shown_width

PROGRAM_WORDS = re.compile(
    r"\b[a-z][a-z0-9]*_[a-z0-9_]+\b|\b\w+=(?:None|True|False|\[|\()|\b[a-z]\w*\(|\b[A-Z][a-z]+[A-Z]\w*\b|\bNone\b|\bTrue\b|\bFalse\b"
)
QUOTED = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|“[^”]*”""")
WAITING = {"serve", "desk", "demo", "reproduce", "audit", "collect", "fuzz"}
"""Commands that would work for long, or wait for somebody, if nothing were wrong."""

OFTEN = {"epsilon", "bounds", "relation", "method", "where", "file"}
"""Parameters that many commands have; the others are tried where a program calls them otherwise than they are typed."""


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, one in sorted(inner.items()):
        yield from leaves(one, (*path, name))


COMMANDS = [one for one in leaves(typer.main.get_command(build())) if not WAITING & set(one[0])]


def typed(param: Any, bad: str | None = None) -> list[str]:
    """A parameter as it may be typed."""
    kind = str(param.type_descriptor.annotation)
    good = {"epsilon": "1", "column": "age", "k": "3", "radius": "1"}.get(param.name)
    good = good or next((value for word, value in (("float", "1"), ("int", "3")) if f"'{word}'" in kind), "t.csv")
    value = good if bad is None else bad
    return [value] if param.param_type_name == "argument" else [param.opts[0], value]


def mistakes(path: tuple[str, ...], command: Any) -> Iterator[list[str]]:
    """The command with everything it needs, and one thing wrong."""
    needed = [param for param in command.params if param.required]
    for param in command.params:
        if param.name == "help" or getattr(param, "is_flag", False) or not ("_" in param.name or param.name in OFTEN):
            continue
        rest = [word for other in needed if other is not param for word in typed(other)]
        yield [*path, *rest, *typed(param, "-1" if len(param.name) % 2 else "x,y")]


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_no_message_speaks_to_programs(
    path: tuple[str, ...], command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age,sex\n3,F\n4,M\n")
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
    for given in mistakes(path, command):
        for file in tmp_path.iterdir():
            if file.name != "t.csv" and file.is_file():
                file.unlink()
        code = exit_code(*given)
        said = capsys.readouterr().err
        assert code in (0, 1, 2, 3, 4), (given, said)
        plain = QUOTED.sub("", said)
        assert PROGRAM_WORDS.findall(plain) == [], (given, said)
        if "sabun " not in plain.partition("See: ")[0]:  # another command is named, with options of its own
            advised = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", plain.partition("See: ")[0]))
            assert advised <= options | set(given), (given, said)


@pytest.mark.parametrize(
    ("said", "typed_words"),
    [
        ("n_records must be at least 1; got 0.", "--n-records must be at least 1; got 0."),
        (
            "column 'n_records' has no bounds: pass bounds=(lower, upper).",
            "column 'n_records' has no bounds: pass --bounds NAME=LOW:HIGH.",
        ),
        ("Give by or where, or relation='add-remove'.", "Give --by or --where, or --relation add-remove."),
        ("schema must be a Schema or None; got 3.", "schema must be a schema; got 3."),
        ("delta must be None for method 'x'; got 3.", "delta must be left out for method 'x'; got 3."),
        ("basis_bounds must be pairs.", "basis_bounds must be pairs."),
        ("Add --clip-norm, or see model_file.csv and `fit_x`.", "Add --clip-norm, or see model_file.csv and `fit_x`."),
    ],
)
def test_parameters_are_called_as_they_are_typed(said: str, typed_words: str) -> None:
    assert in_typed_words(said, {"n_records": "--n-records", "relation": "--relation"}) == typed_words


@pytest.mark.parametrize(
    ("said", "typed_words"),
    [
        (
            "t.csv must be a table in UTF-8; it cannot. Say how it is written: encoding, such as cp932, and separator.",
            "t.csv must be a table in UTF-8; it cannot. Say how it is written: --encoding, such as cp932, and --separator.",
        ),
        ("names must be parted by commas (say so if they are not: separator).",) * 2,
        ("lang must be one of 'en', 'ja'; got 'fr'.", "--lang must be one of 'en', 'ja'; got 'fr'."),
    ],
)
def test_a_terminal_hears_the_options_that_help(said: str, typed_words: str) -> None:
    """Pages translate the very same sentences, so the options are added at the terminal alone."""
    options = {"encoding": "--encoding", "separator": "--separator", "lang": "--lang"}
    assert with_options(said, options) == typed_words.replace("not: separator", "not: --separator")
    unpaid = " Nothing was released, nothing was charged."
    assert with_options(said.replace("lang", "other") + unpaid, {}) == said.replace("lang", "other")
    assert with_options(said + unpaid, options | {"ledger": "--ledger"}).endswith(unpaid)


def test_an_interrupt_while_libraries_are_loaded_is_not_a_traceback(tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys

    at_import = "import os, signal, sys\nclass Stop:\n  def find_spec(self, name, path=None, target=None):\n"
    stops = "    if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\nsys.meta_path.insert(0, Stop())\nimport sabun.cli"
    done = subprocess.run([sys.executable, "-c", at_import + stops], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_wide_letters_take_two_places() -> None:
    assert [shown_width(text) for text in ("age", "年齢", "か\u3099", "ｱ", "Ａ")] == [3, 4, 2, 1, 2]
    assert shown_width(padded("年齢", 9)) == 9
    assert shown_width(fitted("年齢と性別と職業", 9)) <= 9


def test_a_reader_who_has_seen_enough_gets_no_traceback(tmp_path: Path) -> None:
    """`sabun … | head -1`: the documented code, and not a word on stderr."""
    import subprocess
    import sys

    line = f"{sys.executable} -m sabun.cli --help | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in ("0", "1")
    assert process("datasets", "list", folder=tmp_path).returncode == 0
