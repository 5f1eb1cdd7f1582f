"""The same question elsewhere: as a command, and as Python."""

from __future__ import annotations

import shlex
from pathlib import Path

from sabun.desk.errands import Errand

__all__ = ["command_of", "python_of"]


def command_of(errand: Errand, folder: Path) -> str:
    """What to type in a terminal to ask the same: the ledger gives the kept answer, for nothing."""
    return f"cd {shlex.quote(str(folder))}\n{shlex.join(['sabun', *errand.words])}"


def python_of(errand: Errand) -> str:
    """The same in Python."""
    return ""
