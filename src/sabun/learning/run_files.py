"""The files of an interrupted run, which anybody may have written: looked at before they are opened, never run."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from sabun.errors import DataError
from sabun.learning.training import State
from sabun.release.files import read_whole

__all__ = ["NO_LINK", "must_be_plain", "state_bytes"]

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""For `os.open`: somebody may put a link in the place of a file after it was looked at."""

_BESIDE = 1 << 20
"""Bytes of a state file that are no weights, at most: names, a tag, a fingerprint, a receipt."""


def must_be_plain(files: Iterable[Path]) -> None:
    """Refuses links, pipes and folders: who put one there would have another file read as a key, or erased.

    Raises:
        DataError: One of them is there, and no plain file.
    """
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(file.lstat().st_mode):
                raise DataError(
                    f"a checkpoint folder must hold plain files only; {file.name!r} is a link, pipe or folder. "
                    "Go on only with a folder that nobody else can write to."
                )


def state_bytes(file: Path, *, like: State) -> bytes:
    """The bytes of a file with two states of that shape; base64 writes three bytes as four.

    Raises:
        DataError: It is longer than such a file can be, or cannot be read.
    """
    most = _BESIDE + 2 * sum(-(-array.nbytes // 3) * 4 for array in (like.weights, like.velocity))
    if file.stat().st_size > most:
        raise DataError(f"{file.name} must be no longer than two states of this run; it is. Start a new run in another folder.")
    return read_whole(file, max_bytes=most)
