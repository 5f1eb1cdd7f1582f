"""What a crash in the middle of a write leaves beside a ledger, and whether it may be applied.

SQLite's rollback journal (`NAME-journal`) belongs to the file's *name*. When the file alone was moved away, used, then moved
back, or is reached by two names, the journal is of an older file; SQLite would apply it all the same and undo charges that were
paid. So before SQLite sees a journal it is judged here:

1. A file that is a sound ledger by itself needs no journal: every charge that was reported is in it. The journal is removed,
   which is what ends a write anyway; the interrupted charge, if it arrived whole, stays spent.
2. Otherwise the file is torn. The journal of that very write holds the first page as it was before: its change counter is that
   of the file, or one less. Such a journal is left to SQLite, which restores the file from it.
3. Any other journal is refused.

A write-ahead log (`NAME-wal`), which Sabun never writes, could do the same harm; one with anything in it is refused.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

__all__ = ["beside", "drop", "has_journal", "has_log", "restores", "sync_folder"]

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEADER = struct.Struct(">8s5I")
_COUNTER = slice(24, 28)
_UNCOUNTED = 0xFFFFFFFF
_LARGEST_PAGE = 1 << 16
_RESERVED = (1 << 30) + 1
"""The byte of the file that SQLite locks for a write."""


def beside(path: Path, ending: str) -> Path:
    """A companion of a ledger; SQLite follows symbolic links before it names one."""
    real = Path(os.path.realpath(path))
    return real.with_name(real.name + ending)


def _journal_of(path: Path) -> Path:
    """The journal of a ledger."""
    return beside(path, "-journal")


def has_journal(path: Path) -> bool:
    """Whether a journal lies beside the file that SQLite would apply; the first bytes decide."""
    try:
        with _journal_of(path).open("rb") as journal:
            return journal.read(len(_MAGIC)) == _MAGIC
    except FileNotFoundError:
        return False
    except OSError:  # one that cannot be read may be anything
        return True


def has_log(path: Path) -> bool:
    """Whether a write-ahead log with something in it lies beside the file."""
    try:
        return beside(path, "-wal").stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError:  # one that cannot be looked at may be anything
        return True


def restores(path: Path) -> bool:
    """Whether the journal is of the write that the file was in: its first page is at most one change behind the file's."""
    with path.open("rb") as file:
        now = _counter_in(file.read(_COUNTER.stop))
    before = _counter_in_journal(_journal_of(path))
    return before is not None and now is not None and now - before in (0, 1)


def drop(path: Path) -> None:
    """Ends an interrupted write whose pages are all in the file: they go to disk, then the journal goes.

    A program that is writing to the file right now, without Sabun's lock, keeps its journal.
    """
    import fcntl

    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _RESERVED)
        except OSError:
            return
        os.fsync(file.fileno())
        _journal_of(path).unlink(missing_ok=True)
    sync_folder(_journal_of(path).parent)


def sync_folder(folder: Path) -> None:
    """Brings the names in a folder to disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _counter_in_journal(journal: Path) -> int | None:
    """The change counter of the first page as the journal keeps it; None when it does not."""
    with journal.open("rb") as content:
        head = content.read(_HEADER.size)
        if len(head) < _HEADER.size:
            return None
        _, records, _, _, sector, page = _HEADER.unpack(head)
        if page > _LARGEST_PAGE:
            return None
        content.seek(sector)
        left = records
        while left and (record := content.read(page + 8)) and len(record) == page + 8:
            if record[:4] == b"\0\0\0\1":
                return _counter_in(record[4:])
            left -= left != _UNCOUNTED
    return None


def _counter_in(page: bytes) -> int | None:
    counter = page[_COUNTER]
    return int.from_bytes(counter, "big") if len(counter) == 4 else None
