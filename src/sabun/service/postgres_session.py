"""The store on PostgreSQL: many writers, a partition for each round, advisory locks between adding and closing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from sabun.errors import MissingExtra, ParameterError
from sabun.service.session import StoreUnavailable

try:
    import psycopg
except ImportError:
    raise MissingExtra(job="a collector on PostgreSQL", package="psycopg", extra="postgres") from None

# What it warns of is raised here anyway, in words that hold no address.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

__all__ = ["PostgresDatabase"]

_LOCK = 0x5AB0
"""Our part of the numbers of advisory locks."""
_SCHEMA = "sabun_collector"
_WITHIN = 10
_ID = 16
_SPLIT = "SELECT substring(%b::bytea FROM g * 16 + 1 FOR 16) FROM generate_series(0, %s::int) g"
_KEEP = (
    "WITH kept AS (INSERT INTO report (round, id, answer) SELECT %s, substring(%b::bytea FROM g * 16 + 1 FOR 16), "
    "substring(%b::bytea FROM g * %s::int + 1 FOR %s::int) FROM generate_series(0, %s::int) g "
    "ON CONFLICT DO NOTHING RETURNING id) SELECT string_agg(id, ''::bytea) FROM kept"
)
_KNOWN = f"SELECT id, answer FROM report WHERE round = %s AND id IN ({_SPLIT})"
_ENROLLED = f"SELECT id FROM credential WHERE study = %s AND id IN ({_SPLIT})"
_SAFE = {"fsync": "on", "full_page_writes": "on"}


class _Session:
    """One transaction of a connection."""

    to_change = " FOR UPDATE"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.replace("?", "%s"), values or None)
        found: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        return found

    def stream(self, statement: str, *values: object, at_once: int) -> Iterator[tuple[Any, ...]]:
        with self._connection.cursor(name="stream", binary=True) as cursor:
            cursor.itersize = at_once
            yield from cursor.execute(statement.replace("?", "%s"), values)

    def keep_reports(self, round: int, reports: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        if not reports:
            return {}
        ids = sorted(reports)  # two writers that meet at the same ids meet in the same order: no deadlock
        answers = b"".join(map(reports.__getitem__, ids))
        width, last = len(answers) // len(ids), len(ids) - 1
        [(found,)] = self._binary(_KEEP, (round, b"".join(ids), answers, width, width, last))
        kept = found or b""
        if len(kept) == _ID * len(ids):
            return {}
        new = {kept[place : place + _ID] for place in range(0, len(kept), _ID)}
        others = [id for id in ids if id not in new]
        return dict(self._binary(_KNOWN, (round, b"".join(others), len(others) - 1)))

    def enrolled(self, study: int, ids: Collection[bytes]) -> set[bytes]:
        return {id for (id,) in self._binary(_ENROLLED, (study, b"".join(ids), len(ids) - 1))} if ids else set()

    def _binary(self, statement: str, values: tuple[object, ...]) -> Any:
        return self._connection.cursor(binary=True).execute(statement, values).fetchall()

    def hold(self, round: int, *, alone: bool) -> None:
        self._connection.execute(
            f"SELECT pg_advisory_xact_lock{'' if alone else '_shared'}({_LOCK}, {int(round)})", prepare=not alone
        )

    def make_place(self, round: int) -> None:
        self._connection.execute(f"CREATE TABLE report_{int(round)} PARTITION OF report FOR VALUES IN ({int(round)})")

    def drop_place(self, round: int) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS report_{int(round)}")


@final
class PostgresDatabase:
    """A `Database` on a server.

    Args:
        address: `postgresql://USER@HOST/DATABASE`; `collector=NAME` among its options names the schema of the tables.

    Raises:
        ParameterError: libpq cannot read the address; the message repeats nothing of it, for a password may be in it.
    """

    name = "PostgreSQL"

    def __init__(self, address: str) -> None:
        try:
            parts = urlsplit(address)
            options = dict(parse_qsl(parts.query))
            self._schema = options.pop("collector", _SCHEMA)
            bare = urlunsplit(parts._replace(query=urlencode(options, quote_via=quote)))
            self._target: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(bare)
        except (ValueError, psycopg.Error):
            raise ParameterError("database must be an address that libpq can read; got another.") from None
        if not self._schema.isascii() or not self._schema.isidentifier() or self._schema != self._schema.lower():
            raise ParameterError("collector must be small letters, digits and _; got another name in the address.")
        self._own = threading.local()
        self._all: list[Any] = []
        self._lock = threading.Lock()

    @contextmanager
    def change(self) -> Iterator[_Session]:
        """See `Database`."""
        with self._transaction("READ WRITE") as session:
            yield session

    @contextmanager
    def look(self) -> Iterator[_Session]:
        """See `Database`."""
        with self._transaction("ISOLATION LEVEL REPEATABLE READ, READ ONLY") as session:
            yield session

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[_Session]:
        try:
            connection = self._connection()
            try:
                connection.execute(f"BEGIN {kind}")
            except psycopg.OperationalError:  # it broke while it lay idle: nothing was asked yet, so a new one may be
                self._drop()
                connection = self._connection()
                connection.execute(f"BEGIN {kind}")
            try:
                yield _Session(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
        except psycopg.Error as error:
            self._drop()
            if isinstance(error, psycopg.IntegrityError | psycopg.DataError | psycopg.ProgrammingError):
                raise
            state = error.sqlstate or "no connection"  # libpq's own words repeat parts of the address
            raise StoreUnavailable(f"the store cannot be used: PostgreSQL says {state}.") from None

    def scrub(self) -> bool:
        """Dropping a table removes its files."""
        return True

    def close(self) -> None:
        """See `Database`."""
        with self._lock:
            while self._all:
                with suppress(psycopg.Error):
                    self._all.pop().close()
        self._own = threading.local()

    def _connection(self) -> Any:
        found = getattr(self._own, "connection", None)
        if found is None:
            found = self._called()
            self._own.connection = found
            with self._lock:
                self._all.append(found)
        return found

    def _called(self) -> Any:
        known = {"application_name": "sabun-collector", "connect_timeout": _WITHIN, "tcp_user_timeout": 3000 * _WITHIN}
        connection = psycopg.connect(**(known | self._target), autocommit=True, prepare_threshold=2)
        connection.execute(f"SET search_path = {self._schema}")
        connection.execute("SET synchronous_commit = on")  # what is answered with 200 is on disk, whatever the server's habit
        connection.execute("SET lock_timeout = '30s'")
        for name, wanted in _SAFE.items():
            if connection.execute(f"SHOW {name}").fetchone() != (wanted,):
                connection.close()
                raise ParameterError(f"the database server must run with {name} = {wanted}; it does not.")
        if connection.execute("SELECT to_regnamespace(%s)", (self._schema,)).fetchone() == (None,):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
        return connection

    def _drop(self) -> None:
        broken = getattr(self._own, "connection", None)
        self._own.connection = None
        if broken is not None:
            with self._lock, suppress(ValueError):
                self._all.remove(broken)
            with suppress(psycopg.Error):
                broken.close()
