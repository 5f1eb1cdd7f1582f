"""What a device remembers: its budget, its answers, its reports; on disk before anything is sent.

One SQLite file (standard library), or a dictionary in memory. A report is made inside one transaction that books the charge,
draws the answer and keeps the finished bytes; only then are the bytes handed over. A crash leaves either nothing or the
identical bytes to send again. Whoever can read the file can find out what its person holds: it has the device's secret beside
the names of the states. Proved in diary.proof.md.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from fractions import Fraction
from typing import NoReturn, Self, final

from .pages import TABLES, Book, Page, Staged, Transaction
from .refusals import DiaryError, require

__all__ = ["Diary"]

_SCHEMA = {("table", statement.split()[2], statement) for statement in TABLES}


@final
class Diary:
    """A device's own book; one per person, shared by all studies.

    Args:
        path: The file, made if it is not there, for its owner's eyes only (a diary of wider permissions is narrowed; a
            link, somebody else's file and one that is no diary are refused, and left as they are); None is `in_memory`.

    Raises:
        DiaryError: The file cannot be used.

    Example:
        >>> Diary.in_memory().spent
        Fraction(0, 1)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        named = path is None or (isinstance(path, str | os.PathLike) and path != ":memory:")
        require(named, "diary", "the path of a file", path, "Use Diary.in_memory() for a book without one.")
        self._open: dict[str, object] = {}
        self._process = os.getpid()
        self._book: Book = {}
        self._base = None if path is None else _connected(path)
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
        """One transaction: everything in it is kept (on disk, where the book is a file) when it ends, or nothing is.

        Raises:
            DiaryError: The file cannot be used, a page of this diary is open already (that one goes on undisturbed), or this
                is a forked process, whose copy of the object would answer again.
        """
        if os.getpid() != self._process:  # proof: one-process
            raise DiaryError("the diary must be opened by the process that uses it; this one was forked. Open it here anew.")
        token = object()
        try:
            # One step that neither another thread nor an interruption can divide; what was not won is not given back below.
            if self._open.setdefault("page", token) is not token:  # proof: one-page
                raise DiaryError("the diary must have one page open at a time; another is open. Nothing was sent.")
            if self._base is None:
                staged = Staged(self._book)
                yield Page(staged)
                self._book.update(staged.written)  # proof: at-once
            else:
                with _in_words(), _transaction(self._base):
                    _must_have_its_tables(self._base)  # proof: own-tables
                    yield Page(Transaction(self._base))
        finally:
            if self._open.get("page") is token:
                del self._open["page"]

    def close(self) -> None:
        """Gives the file back."""
        if self._base is not None:
            self._base.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a diary must stay one object; a copy of it would spend its budget again.")

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _connected(path: str | os.PathLike[str]) -> sqlite3.Connection:
    with _in_words():
        # An absolute path, for SQLite reads some others as something else than a file.
        place = os.path.abspath(os.fsdecode(path))
        new = _made(place)
        # Transactions are begun by hand, so that the charge and the answer are one.
        base = sqlite3.connect(place, isolation_level=None, timeout=30)
        try:
            # EXTRA: the folder is synced too when the journal goes, or a power cut could bring it back and undo the page.
            base.execute("PRAGMA synchronous=EXTRA")  # proof: synced
            base.execute("PRAGMA trusted_schema=OFF")
            if not new:
                _has_its_tables(base)  # a file that is no diary is left as it is
                _narrow(place)
            # No write-ahead log: the file alone must be the whole book, or a copy of it would answer again.
            base.execute("PRAGMA journal_mode=DELETE")
        except BaseException:
            base.close()
            raise
    return base


def _must_have_its_tables(base: sqlite3.Connection) -> None:
    """Makes the tables in an empty file; refuses a file with any others."""
    if not _has_its_tables(base):
        for statement in TABLES:
            base.execute(statement)


def _has_its_tables(base: sqlite3.Connection) -> bool:
    """Whether the file has the tables of a diary or nothing; refused is whatever else it has."""
    found = base.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    # A trigger more could take each charge back as it is written, a view could show another total than the one that is kept.
    if found and (len(found) != len(TABLES) or set(found) != _SCHEMA):
        raise DiaryError("the diary must have its own tables only; another program changed them. Nothing was sent.")
    return bool(found)


@contextlib.contextmanager
def _transaction(base: sqlite3.Connection) -> Iterator[None]:
    try:
        base.execute("BEGIN IMMEDIATE")  # proof: one-writer
        yield
        base.execute("COMMIT")  # proof: durable
    except BaseException:
        # A failed COMMIT leaves the transaction open: the next page must not find it.
        if base.in_transaction:
            base.execute("ROLLBACK")  # proof: undone
        raise


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """A broken file is said in words; what SQLite says could quote what is in it."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise DiaryError(
            f"the diary must be a file this device can read and write; it is not ({type(error).__name__}). Nothing was sent."
        ) from None


def _made(path: str) -> bool:
    """Whether there was no file, and one was made that nobody else on the device can read; refuses all but plain own files."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        _must_be_own(path)
        return False
    if os.name == "posix":
        _sync_folder(os.path.dirname(path))
    return True


def _must_be_own(path: str) -> None:
    # Looked at by name: opening it and closing it again would drop SQLite's locks of another diary in this process.
    facts = os.lstat(path)
    if stat.S_ISLNK(facts.st_mode) or (hasattr(os, "getuid") and facts.st_uid != os.getuid()):
        raise DiaryError("the diary must be a plain file of this user, not a link or another's; it is not. Nothing was sent.")
    if not stat.S_ISREG(facts.st_mode):
        raise FileNotFoundError


def _narrow(path: str) -> None:
    """Makes a file readable by its owner alone."""
    if os.name == "posix" and os.lstat(path).st_mode & 0o077:
        os.chmod(path, 0o600)


def _sync_folder(folder: str) -> None:
    """The name of a new file is on disk too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
