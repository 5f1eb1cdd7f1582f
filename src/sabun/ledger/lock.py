"""One writer at a time, whatever else its process does with the ledger's file, and nobody waits for ever.

SQLite's own locks on POSIX systems belong to the process and fall as soon as *any* descriptor of the file is closed: a thread
that copies the ledger for a backup would let a second process write into a charge. This lock is on a small file of its own
(`.NAME.lock`), belongs to the descriptor it was taken with, and is held around every look at the ledger: shared by readers,
alone by a writer or by whoever clears up after a crash.

Such a lock alone lets readers that come one after another keep a writer out for ever. So there is a turnstile before it
(`.NAME.turn`): a reader only passes through, a writer stays in it until it is done. While it waits no new reader comes in, so
it waits for those alone that are inside already. Both files stay, empty; removing them would let two processes hold two locks
of one name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path

__all__ = ["held", "lock_of", "turn_of", "wanted"]

_PAUSE = 0.002


def lock_of(path: Path) -> Path:
    """The lock beside a ledger; a symbolic link has that of the file it leads to."""
    return _beside(path, "lock")


def turn_of(path: Path) -> Path:
    """The turnstile before the lock."""
    return _beside(path, "turn")


def _beside(path: Path, ending: str) -> Path:
    real = Path(os.path.realpath(path))
    return real.with_name(f".{real.name}.{ending}")


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
    deadline = time.monotonic() + patience
    with ExitStack() as stack:
        turn = _held(turn_of(path), alone, deadline)
        if alone:
            stack.enter_context(turn)
        else:
            with turn:
                pass
        yield stack.enter_context(_held(lock_of(path), alone, deadline))


def wanted(path: Path) -> bool:
    """Whether a writer waits or writes: a reader that takes long and can begin anew gives way then."""
    if os.name != "posix":
        return False
    try:
        with _held(turn_of(path), alone=False, deadline=0.0):
            return False
    except TimeoutError:
        return True


@contextmanager
def _held(file: Path, alone: bool, deadline: float) -> Iterator[bool]:
    """Holds one of the two files; a reader that may not make it goes without."""
    try:
        handle = _taken(file, alone, deadline)
    except TimeoutError:
        raise
    except OSError:
        if alone:
            raise
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
