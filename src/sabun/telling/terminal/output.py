"""What the command line says, and where: results on stdout, complaints on stderr; or to a page that runs a command."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeAlias, final

import typer
from rich.console import Console

from sabun.errors import ParameterError, VacuousPlan

__all__ = [
    "Heard",
    "Json",
    "complain",
    "heard",
    "hearing",
    "new_file",
    "new_folder",
    "on_terminal",
    "print_json",
    "print_line",
    "remark",
    "safe",
    "warn",
]

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
"""The option every command has."""

_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@final
@dataclass(kw_only=True)
class Heard:
    """What a command says to whoever runs it in this process.

    Attributes:
        record: Its answer in plain JSON types.
        remarks: What it says beside the answer, warnings too.
        complaint: Why it failed; empty where it did not.
        error: What was raised.
        doing: What it is doing now, and
        share: how much of that is done, from 0 to 1; None where that is not known.
        plan_only: Whether it shall end as soon as it has foretold what it would do.
        foretold: The question it foretold, the number of records, and what else its plan takes.
    """

    record: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    complaint: str = ""
    error: BaseException | None = None
    doing: str = ""
    share: float | None = None
    plan_only: bool = False
    foretold: tuple[Any, int | None, dict[str, Any]] | None = None


_hearer: ContextVar[Heard | None] = ContextVar("sabun_hearer", default=None)


@contextlib.contextmanager
def heard(*, plan_only: bool = False) -> Iterator[Heard]:
    """Inside, a command tells what it has to say to what is yielded, and prints nothing; in this thread alone."""
    hears = Heard(plan_only=plan_only)
    before = _hearer.set(hears)
    try:
        yield hears
    finally:
        _hearer.reset(before)


def hearing() -> Heard | None:
    """Who listens to the command that runs; None where it speaks to a terminal."""
    return _hearer.get()


def print_line(text: str, *, style: str | None = None) -> None:
    """Prints text as it is: colour only on a terminal, no markup, no wrapping, no control characters."""
    if (hears := hearing()) is not None:
        hears.remarks.append(safe(text))
        return
    _print(text, sys.stdout, style)


def print_json(record: Mapping[str, Any]) -> None:
    """Prints one JSON object; ASCII only, so that no terminal or pipe can spoil it."""
    if (hears := hearing()) is not None:
        hears.record = dict(record)
        return
    sys.stdout.write(json.dumps(record, indent=2, allow_nan=False) + "\n")


def complain(message: str, error: BaseException, *, code: int, as_json: bool) -> int:
    """Prints an error on stderr, as words or as JSON; returns the exit code. No message, no line."""
    if (hears := hearing()) is not None:
        hears.complaint, hears.error = safe(message), error
        return code
    if not message:
        return code
    with contextlib.suppress(OSError):  # who closed stderr too gets the exit code
        if as_json:
            facts = error.facts if isinstance(error, VacuousPlan) else {}  # the plan that says so
            record = {"error": {"type": type(error).__name__, "message": message, "exit_code": code, **facts}}
            sys.stderr.write(json.dumps(record) + "\n")
        else:
            _print(f"error: {message}", sys.stderr)
    return code


def warn(message: str) -> None:
    """Prints a warning on stderr; see `remark`."""
    remark(f"Warning: {message}", style="yellow")


def remark(message: str, *, style: str | None = None) -> None:
    """Prints on stderr what must not get into a result; a full or closed stderr ends no command."""
    if (hears := hearing()) is not None:
        hears.remarks.append(safe(message))
        return
    with contextlib.suppress(OSError):
        _print(message, sys.stderr, style)


def on_terminal() -> bool:
    """Whether complaints are read by a person at a terminal, and go into no file."""
    return sys.stderr.isatty()


def new_file(path: Path, *, name: str = "out", overwrite: bool | None = None) -> None:
    """Refuses a file that could not be written later: a result that cannot be written would be paid for in vain.

    Args:
        path: The file.
        name: The option it comes from.
        overwrite: Whether it may be replaced; None where the command has no such option.

    Raises:
        ParameterError: It exists, its folder does not, or nothing can be written there.
    """
    if os.path.isdir(path):  # unlike Path's own, it cannot fail on a strange name
        raise _unfit(name, "a file", f"got the folder {str(path)!r}. Name a file in it.")
    if os.path.exists(path) and not overwrite:
        way_out = "Choose another name." if overwrite is None else "Choose another name, or pass --overwrite."
        raise _unfit(name, "a new file", f"{str(path)!r} exists. {way_out}")
    _must_be_writable(path, name)


def new_folder(path: Path, *, name: str = "out") -> None:
    """Refuses a folder that holds something already, or that could not be made; see `new_file`."""
    if os.path.exists(path) and (not path.is_dir() or any(path.iterdir())):
        raise _unfit(name, "a new or empty folder", f"{str(path)!r} holds something already. Choose another name.")
    _must_be_writable(path / "x" if os.path.isdir(path) else path, name)


def _must_be_writable(path: Path, name: str) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise _unfit(name, "in a folder that exists", f"there is no folder {str(folder)!r}. Make it first.")
    probe = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        probe.unlink()
    except OSError as error:
        raise _unfit(name, "a place that can be written", f"{str(path)!r} cannot: {error.strerror}.") from None


def _unfit(name: str, rule: str, got: str) -> ParameterError:
    return ParameterError(f"{name} must be {rule}; {got} Nothing was released, nothing was charged.")


def safe(text: str) -> str:
    """Replaces what could drive a terminal or turn text around: a file from elsewhere must not."""
    return "".join(
        "\ufffd" if letter in _TURNING or (unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t") else letter
        for letter in text
    )


def _print(text: str, stream: TextIO, style: str | None = None) -> None:
    encoding = stream.encoding or "utf-8"
    shown = safe(text).encode(encoding, "backslashreplace").decode(encoding)  # a plain-ASCII pipe gets escapes, not a crash
    Console(file=stream, markup=False, emoji=False, highlight=False).print(shown, style=style, soft_wrap=True)
