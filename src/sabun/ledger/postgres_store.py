"""A ledger in a schema of a PostgreSQL database, charged from many machines.

One writer at a time: whoever writes begins by locking an empty table, before the transaction's view of the rows is made. Rows
are only ever appended, so a change depends on the newest row alone; a change whose end was cut off is looked up, and where it
certainly did not arrive and nobody wrote meanwhile, it is made again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sabun import checks
from sabun.errors import LedgerError
from sabun.ledger.address import Address
from sabun.ledger.postgres_line import Line, certainly_undone, is_lost, psycopg
from sabun.ledger.postgres_tables import GRANTS, look, must_be_whole, statements
from sabun.ledger.postgres_transaction import PostgresTransaction
from sabun.ledger.row import Row
from sabun.ledger.store import Unavailable

__all__ = ["PostgresStore"]

_DURABLE = {"synchronous_commit": ("on", "remote_apply"), "fsync": ("on",), "full_page_writes": ("on",)}
"""Settings of the server without which a charge could be lost after its release."""
_ABANDONED = 60
"""Seconds after which the server ends the change of a client that fell silent in the middle of it."""
_SETTINGS = (
    "SELECT set_config('synchronous_commit', current_setting('synchronous_commit'), true), current_setting('fsync'), "
    f"current_setting('full_page_writes'), set_config('idle_in_transaction_session_timeout', '{_ABANDONED}s', true)"
)
_SEARCH = "SET LOCAL search_path = pg_catalog, pg_temp"


class PostgresStore:
    """The store behind `Ledger.create("postgresql://…")` or `Ledger.open("postgresql://…")`.

    Args:
        address: `postgresql://USER@HOST/DATABASE?ledger=NAME`, with whatever options libpq knows. A password in it is never
            shown and not pickled; a password file (PGPASSFILE) or PGPASSWORD is the better place for one.
        patience: Seconds to wait for other writers, and for a server that is away at the end of a change.
    """

    def __init__(self, address: str, *, patience: float = 30.0) -> None:
        checks.positive(patience=patience)
        self._address = Address.read(address)
        self._patience = patience
        self._line = Line(self._address, self.place)
        self._newest: Row | None = None

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.shown!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._address.shown, self._patience)

    @property
    def place(self) -> str:
        """The address without its password, quoted."""
        return repr(self._address.shown)

    def create(self, first: Row) -> None:
        """Makes the tables with their first row; a schema that holds anything is never touched."""
        with self._line.translated(), self._line.connected(self._patience, self._blank) as (connection, view):
            self._must_be_durable(connection.execute(_SETTINGS))
            self._claim(connection)
            for statement in statements(self._address.ledger):
                connection.execute(statement)
            view.append(first)
            view.commit()

    def _blank(self, connection: Any) -> PostgresTransaction:
        connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        return PostgresTransaction(connection, self._address.ledger, self.place)

    def _claim(self, connection: Any) -> None:
        """Makes the schema, or takes an empty one that an administrator made for us."""
        if connection.info.parameter_status("server_encoding") != "UTF8":
            raise LedgerError(
                f"{self.place}: the database must have the encoding UTF8; it has another. Choose another database."
            )
        schema = self._address.ledger
        try:
            connection.execute("SAVEPOINT alone")
            connection.execute(f'CREATE SCHEMA "{schema}"')
        except psycopg.errors.DuplicateSchema:
            connection.execute("ROLLBACK TO alone")
        except psycopg.errors.UniqueViolation:
            raise self._taken from None
        used = (
            "SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid) OR EXISTS (SELECT FROM pg_proc "
            "WHERE pronamespace = n.oid) FROM pg_namespace n WHERE nspname = %s"
        )
        if connection.execute(used, (schema,)).fetchone() != (False,):
            raise self._taken

    @property
    def _taken(self) -> LedgerError:
        return LedgerError(f"a new ledger needs a free place; {self.place} exists. Open that one, or choose another name.")

    def allow(self, user: str, role: str) -> None:
        """Lets a user of the server do what a role may, and nothing else here; only the owner can.

        Args:
            user: Name of a user (role) that the server knows.
            role: `analyst` (may charge, never change terms) or `reader`.

        Raises:
            LedgerError: The server knows no such user, or you are not the owner.
        """
        checks.text(user=user)
        checks.one_of(tuple(GRANTS), role=role)
        schema, name = f'"{self._address.ledger}"', psycopg.sql.Identifier(user).as_string()
        with self._line.translated(), self._line.connected(self._patience, self._changing) as (connection, view):
            owned = "SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = to_regclass(%s)"
            if connection.execute(owned, (f"{schema}.book",)).fetchone() != (True,):  # GRANT itself would only warn
                raise LedgerError(f"{self.place} must be changed by its owner; you are not. Ask the owner.")
            try:
                connection.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {name}")
            except psycopg.errors.UndefinedObject:
                raise LedgerError(f"user must be known to the server; {user!r} is not. Create the user first.") from None
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {name}")
            for grant in GRANTS[role]:
                connection.execute(f"GRANT {grant.format(schema)} TO {name}")
            view.commit()

    @contextmanager
    def reading(self) -> Iterator[PostgresTransaction]:
        """A consistent view: one snapshot, which holds nobody up."""
        with self._line.translated(), self._line.connected(self._patience, self._looking) as (connection, view):
            yield view
            connection.execute("COMMIT")
            self._newest = view.last()

    @contextmanager
    def writing(self) -> Iterator[PostgresTransaction]:
        """An exclusive change, durable on the server when the block has ended; an exception in the block leaves no trace."""
        view = None
        with self._line.translated():
            try:
                with self._line.connected(self._patience, self._changing) as (_, view):
                    yield view
                    view.commit()  # proof: durable-before-return
                    self._newest = view.added[-1] if view.added else self._newest
            except psycopg.Error as error:
                if view is None or not view.ending or not (is_lost(error) or certainly_undone(error)):
                    raise
                self._settle(view, known=certainly_undone(error))

    def _looking(self, connection: Any) -> PostgresTransaction:
        return self._begun(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", _SEARCH)

    def _changing(self, connection: Any) -> PostgresTransaction:
        """Holds the turn before the transaction sees any row: LOCK makes no snapshot, and the first SELECT comes after it."""
        return self._begun(
            connection,
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            _SEARCH,
            f"SET LOCAL lock_timeout = {max(int(1000 * self._patience), 1)}",
            f'LOCK TABLE "{self._address.ledger}".turn IN EXCLUSIVE MODE',  # proof: one-writer
            writing=True,
        )

    def _begun(self, connection: Any, *statements: str, writing: bool = False) -> PostgresTransaction:
        """A transaction in which everything that is asked for first was asked for at once."""
        view = PostgresTransaction(connection, self._address.ledger, self.place, known=self._newest)
        with connection.pipeline():
            for statement in statements:
                connection.execute(statement)
            settings = connection.execute(_SETTINGS)
            tables = look(connection, self._address.ledger)
            newest = view.ask() if writing or self._newest else None  # a first look is at the tables alone
        if writing:
            self._must_be_durable(settings)
        must_be_whole(tables, self._address.ledger, self.place)
        if newest is not None:
            view.see(newest)
        return view

    def _must_be_durable(self, answer: Any) -> None:
        """Refuses a server that answers before the disk does; what was found is fixed until the change ends."""
        for name, value in zip(_DURABLE, answer.fetchone(), strict=False):
            if value not in _DURABLE[name]:  # proof: durable-settings
                raise LedgerError(
                    f"{self.place}: {name} must be {' or '.join(_DURABLE[name])} on this server; it is {value!r:.40}, so a "
                    "charge could be lost after its release. Let its administrator change that."
                )

    def _settle(self, cut: PostgresTransaction, *, known: bool) -> None:
        """Finds out what became of a change whose end was cut off; makes it again where it did not arrive.

        The turn is taken first: a server that is still busy with the change holds it until the change is made or undone.
        """
        if not cut.added:
            return
        deadline = time.monotonic() + self._patience
        while True:
            try:
                with self._line.connected(self._patience, self._changing) as (_, view):
                    newest = cut.added[-1]
                    there = view.at(newest.sequence)
                    if there is None or there.hash != newest.hash:
                        if view.last().hash != cut.added[0].previous:  # proof: same-head
                            raise self._overtaken(written=not known)
                        view.repeat(cut)
                    else:
                        view.mark()  # proof: settled-durably
                    view.commit()
                    return
            except psycopg.Error as error:
                if not (is_lost(error) or certainly_undone(error)) or time.monotonic() >= deadline:
                    raise self._overtaken(written=not known) from None
                known = known and not is_lost(error)
            time.sleep(0.05)

    def _overtaken(self, *, written: bool) -> Unavailable:
        what = "the connection broke while a change was written, and it cannot be found" if written else "others were quicker"
        return Unavailable(f"{self.place}: {what}.", "Try again.", written=written)

    def inspect(self) -> None:
        """Lets the server read every row from the table itself, and compares that with what its indexes find."""
        book, by_table, by_index = f'"{self._address.ledger}".book', "enable_seqscan", "enable_indexscan"
        query = f"SELECT count(*), count(key), sum(hashtextextended(record || hash, entry)) FROM {book} WHERE "
        with self._line.translated(), self._line.connected(self._patience, self._looking) as (connection, _):
            connection.execute(f"SET LOCAL enable_bitmapscan = off; SET LOCAL {by_index} = off")
            whole = connection.execute(query + "true").fetchone()
            connection.execute(f"SET LOCAL {by_index} = on; SET LOCAL {by_table} = off")
            found = [connection.execute(f"{query} {column} >= -1").fetchone() for column in ("sequence", "entry")]
            keyed = connection.execute(f"SELECT count(*) FROM {book} WHERE key >= ''").fetchone()
            connection.execute("COMMIT")
        if any(one != whole for one in found) or keyed != (whole[1],):
            raise LedgerError(f"{self.place} is damaged: its indexes do not fit its rows. Restore it from a backup.")


def _again(address: str, patience: float) -> PostgresStore:
    return PostgresStore(address, patience=patience)
