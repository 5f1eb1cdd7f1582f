"""A ledger in one SQLite file.

Every operation opens its own connection and closes it: nothing is shared between threads or carried across a fork.

The journal is SQLite's rollback journal, not its write-ahead log. A committed row is then always in the file itself, so a file
that is moved still holds every charge; a log would lie beside it, belong to the file's *name* and stay behind. Only a crash in
the middle of a write leaves a journal there, and that write was never reported as done; `journal.py` judges it before SQLite
may apply it. The lock of `lock.py` is held around everything, for SQLite's own can fall.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path

from sabun import checks
from sabun.errors import LedgerError
from sabun.ledger import journal, lock
from sabun.ledger.chain import inspected
from sabun.ledger.row import Row
from sabun.ledger.sqlite_transaction import SqliteTransaction
from sabun.ledger.store import Unavailable

__all__ = ["SqliteStore"]

_APPLICATION = 0x5ABC1ED6
_VERSION = 1
_TABLES = (
    "CREATE TABLE book (sequence INTEGER PRIMARY KEY, entry INTEGER NOT NULL, key TEXT, "
    "record TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE payloads (entry INTEGER PRIMARY KEY, payload BLOB NOT NULL)",
    "CREATE INDEX book_by_entry ON book (entry)",
    "CREATE INDEX book_by_key ON book (key) WHERE key IS NOT NULL",
    "CREATE TRIGGER book_keeps BEFORE UPDATE ON book BEGIN SELECT RAISE(ABORT, 'rows are never changed'); END",
    "CREATE TRIGGER book_holds BEFORE DELETE ON book BEGIN SELECT RAISE(ABORT, 'rows are never deleted'); END",
    "CREATE TRIGGER payloads_keep BEFORE UPDATE ON payloads BEGIN SELECT RAISE(ABORT, 'payloads are never changed'); END",
    "CREATE TRIGGER payloads_hold BEFORE DELETE ON payloads BEGIN SELECT RAISE(ABORT, 'payloads are never deleted'); END",
)
_SCHEMA = {(*statement.lower().split()[1:3], statement) for statement in _TABLES}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_NO_WRITING = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_GIVING_WAY = 20
"""How often the check of all pages begins anew because somebody wants to write; then it goes on to its end."""
_COMPANIONS = ("-wal", "-shm", "-journal")


class SqliteStore:
    """The store behind `Ledger.create(path)` or `Ledger.open(path)`.

    Args:
        path: The file. Keep it on a local disk: network file systems often lack the locks SQLite needs.
        patience: Seconds to wait for other writers before giving up.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 30.0) -> None:
        given = os.fspath(path) if isinstance(path, str | os.PathLike) else path
        checks.require(isinstance(given, str) and bool(given) and "\0" not in given, "a file path", path=path)
        checks.positive(patience=patience)
        self._path = Path(os.path.abspath(given))
        self._patience = patience

    def __repr__(self) -> str:
        return f"SqliteStore({str(self._path)!r})"

    @property
    def place(self) -> str:
        """The path, quoted."""
        return repr(str(self._path))

    def create(self, first: Row) -> None:
        """Makes the file with its first row; an existing file is never touched."""
        for taken in (self._path, *self._companions()):
            if os.path.lexists(taken):
                raise LedgerError(
                    f"a new ledger needs a free path; {str(taken)!r} exists. Open that one, or choose another path."
                )
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        except OSError as error:
            raise LedgerError(
                f"{self.place} cannot be created ({error.strerror}). Choose a path in a folder you may write to."
            ) from None
        try:
            self._fill(first)
        except BaseException:
            for leftover in (self._path, *self._companions(), lock.lock_of(self._path), lock.turn_of(self._path)):
                leftover.unlink(missing_ok=True)
            raise

    def _companions(self) -> list[Path]:
        return [journal.beside(self._path, ending) for ending in _COMPANIONS]

    def _fill(self, first: Row) -> None:
        with self._translated(), self._locked(alone=True), closing(self._connect(self._patience)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={_VERSION}")
            for statement in _TABLES:
                connection.execute(statement)
            SqliteTransaction(connection, self.place).append(first)
            connection.execute("COMMIT")
        # Without this a power cut could lose the name of a file whose first releases are already public.
        journal.sync_folder(self._path.parent)

    @contextmanager
    def reading(self) -> Iterator[SqliteTransaction]:
        """A consistent view; works on a write-protected file too."""
        with self._translated(), self._at_rest(), closing(self._begun("BEGIN")) as connection:
            yield SqliteTransaction(connection, self.place)

    @contextmanager
    def writing(self) -> Iterator[SqliteTransaction]:
        """An exclusive change, on disk when the block has ended; an exception in the block leaves no trace."""
        self._must_be_there()
        with self._translated(), self._locked(alone=True) as locked:
            if locked:
                self._settle()
            with closing(self._begun("BEGIN IMMEDIATE")) as connection:
                yield SqliteTransaction(connection, self.place)
                connection.execute("COMMIT")

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copies the file while nobody writes to it; an existing file is never touched, and a cut copy gets no name."""
        copy = Path(os.path.abspath(path))
        part = copy.with_name(f".{secrets.token_hex(8)}.part")
        with self._at_rest():
            try:
                with self._path.open("rb") as original, part.open("xb") as made:
                    shutil.copyfileobj(original, made)
                    made.flush()
                    os.fsync(made.fileno())
                _give_name(part, copy)
            except OSError as error:
                raise LedgerError(
                    f"a backup of {self.place} cannot be written to {str(copy)!r} ({error.strerror}). "
                    "No file was left there; choose a free path with enough room."
                ) from None
            finally:
                with suppress(OSError):
                    part.unlink(missing_ok=True)
        journal.sync_folder(copy.parent)

    def inspect(self) -> None:
        """Lets SQLite look at all its pages and indexes; whoever wants to write meanwhile is let in first."""
        for polite in (*[True] * _GIVING_WAY, False):
            with self._translated(), self._at_rest(), closing(self._begun("BEGIN")) as connection:
                if polite:
                    connection.set_progress_handler(lambda: lock.wanted(self._path), 10_000)
                try:
                    self._must_be_whole(connection)
                    break
                except sqlite3.OperationalError as error:
                    if _code(error) != sqlite3.SQLITE_INTERRUPT:
                        raise

    def _must_be_whole(self, connection: sqlite3.Connection) -> None:
        [(report,), *more] = connection.execute("PRAGMA integrity_check(1)").fetchall()
        if report != "ok" or more:
            raise LedgerError(f"{self.place} is damaged: SQLite finds broken pages. Restore it from a backup.")

    @contextmanager
    def _at_rest(self) -> Iterator[None]:
        """Shares the lock with other readers, once no journal waits to be judged."""
        self._must_be_there()
        deadline = time.monotonic() + self._patience
        while True:
            with self._locked(alone=False) as locked:
                if os.name != "posix" or not (journal.has_journal(self._path) or journal.has_log(self._path)):
                    yield
                    return
            if locked:
                with self._locked(alone=True):
                    self._settle()
            if time.monotonic() >= deadline:  # another program writes, or this folder does not let us clear up
                raise self._held if locked else LedgerError(self._unfinished)
            time.sleep(0.005)

    def _settle(self) -> None:
        """Judges what a crash left beside the file, while the lock is held alone."""
        if journal.has_log(self._path):
            raise LedgerError(
                f"{self.place} must keep no write-ahead log; another program left one. Close that program, or restore a backup."
            )
        if not journal.has_journal(self._path):
            return
        try:
            if self._is_sound_alone():
                journal.drop(self._path)
            elif journal.restores(self._path):
                with closing(self._connect(self._patience)) as connection:
                    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")  # SQLite restores before it reads
            else:
                raise LedgerError(
                    f"{self.place} is torn, and the journal beside it is of another file or an older one. Put the journal of "
                    "this file back beside it, or restore a backup."
                )
        except OSError:
            raise LedgerError(self._unfinished) from None

    def _is_sound_alone(self) -> bool:
        """Whether the file is a whole ledger without any journal."""
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
                self._must_be_whole(connection)
                self._must_have_its_tables(connection)
                inspected(lambda: nullcontext(SqliteTransaction(connection, self.place)), place=self.place)
        except (sqlite3.Error, UnicodeDecodeError, LedgerError):
            return False
        return True

    @property
    def _unfinished(self) -> str:
        return f"{self.place} has an interrupted write beside it. Open it once as somebody who may write to it and its folder."

    @contextmanager
    def _locked(self, *, alone: bool) -> Iterator[bool]:
        with ExitStack() as stack:
            try:
                locked = stack.enter_context(lock.held(self._path, alone=alone, patience=self._patience))
            except TimeoutError:
                raise self._held from None
            except OSError:
                raise self._closed_to_us from None
            yield locked

    def _must_be_there(self) -> None:
        if not os.path.isfile(self._path):
            raise LedgerError(f"there is no ledger at {self.place}. Make one first, or check the path.")

    def _begun(self, begin: str) -> sqlite3.Connection:
        """A connection inside a transaction; while others hold the file it tries again until patience ends."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return self._attempt(begin, max(deadline - time.monotonic(), 0.01))
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() >= deadline:
                    raise
            time.sleep(0.005)

    def _attempt(self, begin: str, patience: float) -> sqlite3.Connection:
        connection = self._connect(patience)
        try:
            if begin != "BEGIN":
                self._leave_log(connection)
            connection.execute(begin)
            marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
            if marks != [_APPLICATION, _VERSION]:
                raise LedgerError(f"{self.place} is not a Sabun ledger. Check the path.")
            self._must_have_its_tables(connection)
            self._must_have_one_name()
        except BaseException:
            connection.close()
            raise
        return connection

    def _leave_log(self, connection: sqlite3.Connection) -> None:
        """Another program may have switched the file to a write-ahead log; charges are never written to one."""
        [mode] = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
        if mode != "delete":
            raise LedgerError(f"{self.place} must keep no write-ahead log; another program holds it open with one. Close that.")

    def _must_have_its_tables(self, connection: sqlite3.Connection) -> None:
        # A trigger more could take back each row as it is written, and nobody would notice until all is read again.
        found = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        if len(found) != len(_SCHEMA) or set(found) != _SCHEMA:
            raise LedgerError(
                f"{self.place}: the tables of the ledger were changed by another program. Do not release from it; restore it "
                "from a backup."
            )

    def _must_have_one_name(self) -> None:
        # After a crash the journal lies beside one of the names, and whoever comes by another would not find it.
        if os.stat(self._path).st_nlink > 1:
            raise LedgerError(
                f"{self.place} must have one name only; it has hard links. Remove the other names, then try again."
            )

    def _connect(self, patience: float) -> sqlite3.Connection:
        connection = sqlite3.connect(f"{self._path.as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None)
        try:
            # EXTRA (with fullfsync where the system has it) is what makes a reservation durable before it is handed out: the
            # change counts once the journal is gone from its folder, and the folder too must be on disk. Without spilling, the
            # pages of a change are written in their order, so a torn one is shorter than its own first page says.
            for setting in ("synchronous=EXTRA", "fullfsync=ON", "cache_spill=OFF", "trusted_schema=OFF", "cell_size_check=ON"):
                connection.execute(f"PRAGMA {setting}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        # SQLite quotes damaged text in its messages, which Python then cannot decode.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._trouble(error) from error

    @property
    def _held(self) -> Unavailable:
        return Unavailable(f"{self.place} was held by other processes for {self._patience:g} seconds.", "Try again.")

    @property
    def _closed_to_us(self) -> Unavailable:
        advice = "Check the permissions of the file and of its folder."
        return Unavailable(f"{self.place} cannot be opened or written.", advice)

    def _trouble(self, error: Exception) -> LedgerError:
        code = _code(error)
        if code in _BUSY:
            return self._held
        if code in _NO_WRITING:
            return self._closed_to_us
        if code in _FULL:
            return Unavailable(f"{self.place} could not be written to disk.", "Make room or check the disk.", written=True)
        if code == sqlite3.SQLITE_NOTADB:
            return LedgerError(f"{self.place} is not a Sabun ledger. Check the path.")
        return LedgerError(f"{self.place} is damaged ({error}). Do not release from it; restore it from a backup.")


def _give_name(part: Path, copy: Path) -> None:
    """Names a file only if the name is free."""
    try:
        os.link(part, copy)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: an earlier look is the best there is
        if os.path.lexists(copy):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(part, copy)


def _code(error: Exception) -> int | None:
    """SQLite's primary error code, without the detail bits; None for anything else."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
