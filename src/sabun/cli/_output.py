"""What the command line says, and where: results on stdout, complaints on stderr."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, TextIO, TypeAlias

import typer
from rich.console import Console

__all__ = ["Json", "complain", "print_json", "print_line", "safe"]

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
"""The option every command has."""

_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def print_line(text: str, *, style: str | None = None) -> None:
    """Prints text as it is: colour only on a terminal, no markup, no wrapping, no control characters."""
    _print(text, sys.stdout, style)


def print_json(record: Mapping[str, Any]) -> None:
    """Prints one JSON object; ASCII only, so that no terminal or pipe can spoil it."""
    sys.stdout.write(json.dumps(record, indent=2, allow_nan=False) + "\n")


def complain(message: str, error: BaseException, *, code: int, as_json: bool) -> int:
    """Prints an error on stderr, as words or as JSON; returns the exit code. No message, no line."""
    if not message:
        return code
    if as_json:
        record = {"error": {"type": type(error).__name__, "message": message, "exit_code": code}}
        sys.stderr.write(json.dumps(record) + "\n")
    else:
        _print(f"error: {message}", sys.stderr)
    return code


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
