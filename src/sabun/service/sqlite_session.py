"""The store in one SQLite file: write-ahead log, synced at every commit, deleted rows written over."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, final

from sabun.service.session import StoreUnavailable

__all__ = ["PRAGMAS", "SqliteDatabase"]

_PATIENCE = 20.0
"""Seconds to wait for another writer."""
_SCRUB_PATIENCE = 500
"""Milliseconds to wait for those who look."""
_AT_ONCE = 500
"""Ids in one look-up: one prepared statement serves them all."""
_INSERT = (
    "INSERT OR IGNORE INTO report (round, id, answer) WITH RECURSIVE g (i) AS "
    "(SELECT 0 UNION ALL SELECT i + 1 FROM g WHERE i < ?1) "
    "SELECT ?2, substr(?3, i * 16 + 1, 16), substr(?4, i * ?5 + 1, ?5) FROM g"
)
# Ids lie in no order, so a batch changes pages all over the file; a longer log brings each of them home once for many batches.
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "cache_size=-4096",
    "secure_delete=ON",
    "foreign_keys=ON",
    "wal_autocheckpoint=16384",
)
"""How every connection is set up."""


class _Session:
    """One transaction of a connection."""

    to_change = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def stream(self, statement: str, *values: object, at_once: int) -> Iterator[tuple[Any, ...]]:
        del at_once  # SQLite hands out one row after the other
        yield from self._connection.execute(statement, values)

    def keep_reports(self, round: int, reports: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        if not reports:
            return {}
        self._connection.execute("PRAGMA cache_size=-65536").fetchall()  # for the connection that adds reports, no other
        self._connection.execute("SAVEPOINT reports")
        if self._insert(round, reports) == len(reports):
            self._connection.execute("RELEASE reports")
            return {}
        # Some were known: back, and look which. BEGIN IMMEDIATE has shut every other writer out, so it stays as we find it.
        self._connection.execute("ROLLBACK TO reports")
        known = dict(self._among("SELECT id, answer FROM report WHERE round = ? AND id IN", round, reports))
        self._insert(round, {id: answer for id, answer in reports.items() if id not in known})
        return known

    def _insert(self, round: int, reports: Mapping[bytes, bytes]) -> int:
        """Adds those whose ids are new; returns how many. One statement: other threads of the process run on meanwhile."""
        if not reports:
            return 0
        ids = sorted(reports)
        answers = b"".join(map(reports.__getitem__, ids))
        given = (len(ids) - 1, round, b"".join(ids), answers, len(answers) // len(ids))
        return self._connection.execute(_INSERT, given).rowcount

    def enrolled(self, study: int, ids: Collection[bytes]) -> set[bytes]:
        return {id for (id,) in self._among("SELECT id FROM credential WHERE study = ? AND id IN", study, ids)}

    def _among(self, statement: str, first: int, ids: Collection[bytes]) -> Iterator[tuple[Any, ...]]:
        waiting = iter(ids)
        while some := list(islice(waiting, _AT_ONCE)):
            wide = _AT_ONCE if len(some) > 1 else 1
            some += some[-1:] * (wide - len(some))  # asked for twice is found once
            yield from self._connection.execute(f"{statement} ({','.join('?' * wide)})", (first, *some))

    def hold(self, round: int, *, alone: bool) -> None:
        """Every change is alone in the whole file."""

    def make_place(self, round: int) -> None:
        """All rounds share one table."""

    def drop_place(self, round: int) -> None:
        self._connection.execute("DELETE FROM report WHERE round = ?", (round,))


@final
class SqliteDatabase:
    """A `Database` in a file.

    Args:
        path: The file; made where there is none, readable by its owner alone.
        most_pages: The most pages it may have, for a store that must not fill a disk; None for no limit.
    """

    name = "SQLite"

    def __init__(self, path: str | os.PathLike[str], *, most_pages: int | None = None) -> None:
        self._path, self._most_pages = Path(path), most_pages
        self._own = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock, self._turn = threading.Lock(), threading.Lock()
        if not self._path.exists():
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    @contextmanager
    def change(self) -> Iterator[_Session]:
        """See `Database`."""
        # Among threads of one process a lock is fairer than SQLite's own waiting, which sleeps and tries again.
        with self._turn, self._transaction("BEGIN IMMEDIATE") as session:
            yield session

    @contextmanager
    def look(self) -> Iterator[_Session]:
        """See `Database`."""
        with self._transaction("BEGIN") as session:
            yield session

    @contextmanager
    def _transaction(self, beginning: str) -> Iterator[_Session]:
        with _translated():
            connection = self._connection()
            try:
                connection.execute(beginning)
                yield _Session(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled back by itself
                    connection.execute("ROLLBACK")
                if connection.in_transaction:  # it cannot even do that: the next change begins on another
                    self._own.connection = None
                    connection.close()
                raise

    def scrub(self) -> bool:
        """Empties the log, in which deleted rows, and the order in which rows came, would stay."""
        with self._turn, _translated():
            connection = self._connection()
            connection.execute(f"PRAGMA busy_timeout={_SCRUB_PATIENCE}").fetchall()  # nobody can write meanwhile
            try:
                [(busy, _, _)] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                connection.execute(f"PRAGMA busy_timeout={int(1000 * _PATIENCE)}").fetchall()
        return not busy

    def close(self) -> None:
        """See `Database`."""
        with self._lock:
            while self._all:
                self._all.pop().close()
        self._own = threading.local()

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if found is None:
            found = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            for pragma in PRAGMAS:
                found.execute(f"PRAGMA {pragma}").fetchall()
            if self._most_pages is not None:
                found.execute(f"PRAGMA max_page_count={int(self._most_pages)}").fetchall()
            self._own.connection = found
            with self._lock:
                self._all.append(found)
        return found


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:  # busy, full, unreadable
        raise StoreUnavailable(f"the store cannot be used: {error}.") from None
    except sqlite3.DatabaseError as error:
        if type(error) is not sqlite3.DatabaseError:  # a broken rule of a table is a bug of ours
            raise
        raise StoreUnavailable(f"the store cannot be used: {error}. Restore it from a backup if it is damaged.") from None
