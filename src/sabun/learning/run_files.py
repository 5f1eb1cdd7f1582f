"""The files of an interrupted run, which anybody may have written: looked at before they are opened, never run."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sabun.errors import DataError
from sabun.learning.training import State
from sabun.release.files import read_whole

__all__ = ["NO_LINK", "gone_if_refused", "must_be_plain", "only_one", "state_bytes"]

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


@contextlib.contextmanager
def gone_if_refused(made: Sequence[Path], lock: str) -> Iterator[None]:
    """Takes folders away that were made for a run which then did not begin; what holds anything but the lock stays."""
    try:
        yield
    except BaseException:
        if made and {file.name for file in made[0].iterdir()} <= {lock}:
            (made[0] / lock).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                for folder in made:
                    folder.rmdir()
        raise


@contextlib.contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """One run at a time; the operating system lets go when a process dies.

    Raises:
        DataError: There is another one.
    """
    if os.name != "posix":
        yield
        return
    import fcntl

    busy = f"{lock.parent} must be used by one run at a time; another one is at it."
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
    except FileNotFoundError:  # the folder was there a moment ago
        raise DataError(busy) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            same = os.path.samestat(os.fstat(handle), os.stat(lock))
        except OSError:
            raise DataError(busy) from None
        if not same:  # whoever held it took it away, and somebody else made another: both would have one
            raise DataError(busy)
        yield
    finally:
        os.close(handle)
