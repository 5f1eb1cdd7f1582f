"""One writer at a time, whatever else its process does with the ledger's file.

SQLite's own locks on POSIX systems belong to the process and fall as soon as *any* descriptor of the file is closed: a thread
that copies the ledger for a backup would let a second process write into a charge. This lock is on a small file of its own
(`.NAME.lock`), belongs to the descriptor it was taken with, and is held around every look at the ledger: shared by readers,
alone by a writer or by whoever clears up after a crash. The file stays, empty; removing it would let two processes hold two
locks of one name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

__all__ = ["held", "lock_of"]

_PAUSE = 0.005


def lock_of(path: Path) -> Path:
    """The lock beside a ledger; a symbolic link has that of the file it leads to."""
    real = Path(os.path.realpath(path))
    return real.with_name(f".{real.name}.lock")


@contextmanager
def held(path: Path, *, alone: bool, patience: float) -> Iterator[bool]:
    """Holds the lock of a ledger inside the block.

    Yields:
        Whether it is held. It is not where the system has no such locks (Windows, where SQLite's own belong to a handle and
        do not fall), and for a reader in a folder that nobody may write to and that has no lock yet.

    Raises:
        TimeoutError: Others held it for all that time.
        OSError: A writer may not make the lock.
    """
    if os.name != "posix":
        yield False
        return
    try:
        handle = _taken(lock_of(path), alone, time.monotonic() + patience)
    except TimeoutError:
        raise
    except OSError:
        if alone:
            raise
        handle = None
    if handle is None:
        yield False
        return
    try:
        yield True
    finally:
        _let_go(handle)


def _taken(lock: Path, alone: bool, deadline: float) -> FileIO:
    """An open file that holds the lock: the one that has its name at that moment."""
    while True:
        handle = _opened(lock)
        try:
            _wait(handle, alone, deadline)
            if os.path.lexists(lock) and os.path.samestat(os.fstat(handle.fileno()), os.stat(lock)):
                return handle
        except BaseException:
            handle.close()
            raise
        handle.close()  # somebody removed the file meanwhile


def _opened(lock: Path) -> FileIO:
    # For reading, and made only when it is missing: another user's lock may be readable and no more.
    try:
        return FileIO(lock)
    except FileNotFoundError:
        return FileIO(os.open(lock, os.O_RDONLY | os.O_CREAT, 0o666))


def _wait(handle: FileIO, alone: bool, deadline: float) -> None:
    import fcntl

    while True:
        try:
            return fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError from None
        time.sleep(_PAUSE)


def _let_go(handle: FileIO) -> None:
    import fcntl

    # Closing alone would not do: a child forked meanwhile has a copy of the descriptor, and with it of the lock.
    fcntl.flock(handle, fcntl.LOCK_UN)
    handle.close()
