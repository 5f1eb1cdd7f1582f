"""What a device remembers: its budget, its answers, its reports; on disk before anything is sent.

One SQLite file (standard library). A report is made inside one transaction that books the charge, draws the answer and keeps
the finished bytes; only then are the bytes handed over. A crash leaves either nothing or the identical bytes to send again.
Whoever can read the file can find out what its person holds: it has the device's secret beside the names of the states.
Proved in diary.proof.md.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from fractions import Fraction
from typing import Self, final

from .bounds import decimal_text
from .refusals import BudgetRefused, DiaryError, require

__all__ = ["Diary", "Page"]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS device (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS enrolment (task TEXT PRIMARY KEY, credential BLOB NOT NULL, place INTEGER) STRICT",
    "CREATE TABLE IF NOT EXISTS spent (task TEXT, round INTEGER, epsilon TEXT NOT NULL, PRIMARY KEY (task, round)) STRICT",
    "CREATE TABLE IF NOT EXISTS memory (task TEXT, state BLOB, answer BLOB NOT NULL, PRIMARY KEY (task, state)) STRICT",
    "CREATE TABLE IF NOT EXISTS sent (task TEXT, round INTEGER, report BLOB NOT NULL, PRIMARY KEY (task, round)) STRICT",
)


@final
class Diary:
    """A device's own book; one per person, shared by all studies.

    Args:
        path: The file, made if it is not there, for its owner's eyes only (a file of wider permissions is narrowed, a link or
            somebody else's file refused); None is `in_memory`.

    Raises:
        DiaryError: The file cannot be used.

    Example:
        >>> Diary.in_memory().spent
        Fraction(0, 1)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        named = path is None or (isinstance(path, str | os.PathLike) and path != ":memory:")
        require(named, "diary", "the path of a file", path, "Use Diary.in_memory() for a book without one.")
        with _in_words():
            # An absolute path, for SQLite reads some others as something else than a file.
            place = ":memory:" if path is None else _made_private(os.path.abspath(os.fsdecode(path)))
            # Transactions are begun by hand, so that the charge and the answer are one.
            self._base = sqlite3.connect(place, isolation_level=None, timeout=30)
            self._base.execute("PRAGMA journal_mode=DELETE")
            # EXTRA: the folder is synced too when the journal goes, or a power cut could bring it back and undo the page.
            self._base.execute("PRAGMA synchronous=EXTRA")  # proof: synced
        with self.page() as page:
            page.prepare()

    @classmethod
    def in_memory(cls) -> Self:
        """A book that is forgotten with the object: for trials, or a device that answers once."""
        return cls(None)

    @property
    def spent(self) -> Fraction:
        """Everything booked so far, over all studies."""
        with self.page() as page:
            return page.spent()

    @contextlib.contextmanager
    def page(self) -> Iterator[Page]:
        """One transaction: everything in it is on disk when it ends, or nothing is.

        Raises:
            DiaryError: The file cannot be used, or a page of this diary is open already; that one goes on undisturbed.
        """
        if self._base.in_transaction:  # proof: one-page
            raise DiaryError("the diary must have one page open at a time; another is open. Nothing was sent.")
        with _in_words():
            try:
                self._base.execute("BEGIN IMMEDIATE")  # proof: one-writer
                yield Page(self._base)
                self._base.execute("COMMIT")  # proof: durable
            except BaseException:
                # A failed COMMIT leaves the transaction open: the next page must not find it.
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")  # proof: undone
                raise

    def close(self) -> None:
        """Gives the file back."""
        self._base.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


@final
class Page:
    """What can be read or written within one transaction."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def prepare(self) -> None:
        """Makes what is not there yet."""
        for statement in _TABLES:
            self._base.execute(statement)
        self._base.execute("INSERT OR IGNORE INTO device VALUES ('secret', ?)", (secrets.token_bytes(32),))
        self._base.execute("INSERT OR IGNORE INTO device VALUES ('spent', ?)", (b"0",))

    def secret(self) -> bytes:
        """32 bytes that never leave the device."""
        [(value,)] = self._base.execute("SELECT value FROM device WHERE name = 'secret'")
        return bytes(value)

    def spent(self) -> Fraction:
        """Everything booked so far."""
        [(total,)] = self._base.execute("SELECT value FROM device WHERE name = 'spent'")
        return Fraction(bytes(total).decode())

    def charge(self, task: str, number: int, epsilon: Fraction, *, limit: Fraction | None) -> None:
        """Books a round of a study.

        Raises:
            BudgetRefused: The device's budget would be exceeded.
        """
        before = self.spent()
        if limit is not None and before + epsilon > limit:  # proof: cap
            raise BudgetRefused(
                f"this device has epsilon {decimal_text(limit - before)} of {decimal_text(limit)} left; this report needs "
                f"{decimal_text(epsilon)}. Nothing was drawn, nothing was booked."
            )
        self._base.execute("INSERT INTO spent VALUES (?, ?, ?)", (task, number, str(epsilon)))
        self._base.execute("UPDATE device SET value = ? WHERE name = 'spent'", (str(before + epsilon).encode(),))

    def booked(self, task: str) -> bool:
        """Whether any round of a study was booked."""
        return self._base.execute("SELECT 1 FROM spent WHERE task = ? LIMIT 1", (task,)).fetchone() is not None

    def enrolment(self, task: str) -> tuple[bytes, int | None] | None:
        """The credential and the chosen key of a study."""
        row = self._base.execute("SELECT credential, place FROM enrolment WHERE task = ?", (task,)).fetchone()
        return None if row is None else (bytes(row[0]), row[1])

    def enrol(self, task: str, credential: bytes, place: int | None) -> None:
        """Keeps them."""
        self._base.execute("INSERT INTO enrolment VALUES (?, ?, ?)", (task, credential, place))

    def remembered(self, task: str, state: bytes) -> bytes | None:
        """The permanent answer for a state."""
        row = self._base.execute("SELECT answer FROM memory WHERE task = ? AND state = ?", (task, state)).fetchone()
        return None if row is None else bytes(row[0])

    def remember(self, task: str, state: bytes, answer: bytes) -> None:
        """Keeps it."""
        self._base.execute("INSERT INTO memory VALUES (?, ?, ?)", (task, state, answer))

    def sent(self, task: str, number: int) -> bytes | None:
        """The bytes of a report that was made before."""
        row = self._base.execute("SELECT report FROM sent WHERE task = ? AND round = ?", (task, number)).fetchone()
        return None if row is None else bytes(row[0])

    def keep(self, task: str, number: int, report: bytes) -> None:
        """Keeps them."""
        self._base.execute("INSERT INTO sent VALUES (?, ?, ?)", (task, number, report))


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """A broken file is said in words; what SQLite says could quote what is in it."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise DiaryError(
            f"the diary must be a file this device can read and write; it is not ({type(error).__name__}). Nothing was sent."
        ) from None


def _made_private(path: str) -> str:
    """The path of a plain file that nobody else on the device can read, made if it is not there."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        _narrow(path)
    else:
        if os.name == "posix":
            _sync_folder(os.path.dirname(path))
    return path


def _narrow(path: str) -> None:
    """Makes a file readable by its owner alone, or refuses it."""
    # Looked at by name: opening it and closing it again would drop SQLite's locks of another diary in this process.
    facts = os.lstat(path)
    if stat.S_ISLNK(facts.st_mode) or (hasattr(os, "getuid") and facts.st_uid != os.getuid()):
        raise DiaryError("the diary must be a plain file of this user, not a link or another's; it is not. Nothing was sent.")
    if not stat.S_ISREG(facts.st_mode):
        raise FileNotFoundError
    if os.name == "posix" and facts.st_mode & 0o077:
        os.chmod(path, 0o600)


def _sync_folder(folder: str) -> None:
    """The name of a new file is on disk too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
