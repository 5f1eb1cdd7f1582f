"""The line to a PostgreSQL server: one idle connection that is kept, and what the server's refusals mean."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from sabun.errors import LedgerError, MissingExtra, ParameterError
from sabun.ledger.address import Address
from sabun.ledger.store import Unavailable

try:
    import psycopg
except ImportError:
    raise MissingExtra(job="a ledger on PostgreSQL", package="psycopg", extra="postgres") from None

# It warns of what is raised here anyway, and without this such warnings end up among a command's own words.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

__all__ = ["Line", "certainly_undone", "is_lost", "psycopg"]

T = TypeVar("T")

_UNDONE = ("40001", "40P01")
"""The server took the change back by itself, because others stood in its way."""
_STARTING = ("57P03", "53300")
"""It starts or stops, or has no room for one more connection: worth waiting for."""
_REFUSED = {
    "28": "the server does not let this user in. Check user and password; best keep that in a password file (PGPASSFILE)",
    "3D": "there is no such database. Check the address, or let its administrator create it",
    "42501": "this user has no right to do that. Ask the owner of the ledger for the role it needs",
    "25006": "this server can only be read (a standby). Give the address of the primary server",
    "53": "the server has no room left (disk, memory or connections). Make room",
}
_SIGNS = {
    "authentication failed": "28P01",
    "no password supplied": "28P01",
    "pg_hba.conf": "28000",
    'FATAL:  role "': "28000",
    'FATAL:  database "': "3D000",
    "starting up": "57P03",
    "shutting down": "57P03",
    "recovery mode": "57P03",
    "too many clients": "53300",
    "remaining connection slots": "53300",
}
_WITHIN = 10
"""Seconds in which a server must answer a call."""
_OFTEN = 2
"""A statement given more often than this is planned once: the look at the tables costs more to plan than to do."""


class Line:
    """Connections to one server, one at a time kept open; each belongs to the process and the call that uses it."""

    def __init__(self, address: Address, place: str) -> None:
        self._place = place
        try:
            self._target = psycopg.conninfo.conninfo_to_dict(address.server) | dict(address.secrets)
        except psycopg.Error:  # its words repeat parts of the address
            raise ParameterError(
                "a ledger's address must be one that libpq can read; got another. Check the names of its options."
            ) from None
        self._idle: list[tuple[int, Any]] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _hang_up, self._idle)

    @contextmanager
    def connected(self, patience: float, begin: Callable[[Any], T]) -> Iterator[tuple[Any, T]]:
        """A connection with what `begin` made of it; it is kept for the next call if this one ends well."""
        connection, begun = self._begun(patience, begin)
        try:
            yield connection, begun
        except BaseException:
            _end(os.getpid(), connection)
            raise
        with self._lock:
            spare = self._idle or connection.closed or connection.info.transaction_status
            if not spare:
                self._idle.append((os.getpid(), connection))
        if spare:
            _end(os.getpid(), connection)

    def _begun(self, patience: float, begin: Callable[[Any], T]) -> tuple[Any, T]:
        """Begins on the idle connection, or on a new one where that is another process's or broke while it lay idle."""
        with self._lock:
            owner, connection = self._idle.pop() if self._idle else (0, None)
        if connection is not None and owner != os.getpid():
            _end(owner, connection)
            connection = None
        kept = connection is not None
        connection = connection or self._called(patience)
        try:
            return connection, begin(connection)
        except BaseException as error:
            _end(os.getpid(), connection)
            if not kept or not is_lost(error):
                raise
        return self._begun(patience, begin)

    def _called(self, patience: float) -> Any:
        deadline = time.monotonic() + patience
        settings = {
            "application_name": "sabun",
            "connect_timeout": _WITHIN,
            "keepalives_idle": _WITHIN,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 1000 * 3 * _WITHIN,
        }
        while True:
            try:
                return psycopg.connect(**(settings | self._target), autocommit=True, prepare_threshold=_OFTEN)
            except psycopg.Error as error:
                if _state(error) not in _STARTING or time.monotonic() >= deadline:
                    raise
            time.sleep(0.05)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turns what psycopg raises into the errors of a store."""
        try:
            yield
        except psycopg.Error as error:
            # Without its cause: libpq's own words repeat parts of an address it could not read.
            raise self._trouble(error) from None

    def _trouble(self, error: psycopg.Error) -> LedgerError:
        state = _state(error)
        if state == "55P03":
            return Unavailable(f"{self._place} was held by others for too long.", "Try again.")
        if state in _UNDONE:
            return Unavailable(f"{self._place}: other clients stood in the way.", "Try again.")
        if state in ("3F000", "42P01"):
            return LedgerError(f"there is no ledger at {self._place}. Make one first, or check the address.")
        for beginning, words in _REFUSED.items():
            if state.startswith(beginning):
                return Unavailable(f"{self._place} cannot be used: {words}.", "")
        if is_lost(error):
            advice = "Check the address and the network, then try again."
            return Unavailable(f"{self._place} cannot be reached, or the connection broke.", advice)
        return LedgerError(
            f"{self._place}: the server refuses ({state or 'no code'}). Do not release from it; look at its log."
        )


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke, so that nobody knows what became of the last words."""
    state = _state(error)
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (not state or state[:2] in ("08", "57"))


def certainly_undone(error: BaseException) -> bool:
    """Whether the server said that it took a change back."""
    return _state(error) in _UNDONE


def _state(error: BaseException) -> str:
    """The server's code; a refused connection has none, so its words are looked at."""
    words = str(error) if isinstance(error, psycopg.OperationalError) else ""
    return getattr(error, "sqlstate", None) or next((code for sign, code in _SIGNS.items() if sign in words), "")


def _hang_up(idle: list[tuple[int, Any]]) -> None:
    while idle:
        _end(*idle.pop())


def _end(owner: int, connection: Any) -> None:
    with suppress(psycopg.Error, OSError):
        if owner != os.getpid():
            # A fork shares its parent's line: a farewell on it would end the parent's connection too.
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, connection.fileno())
            os.close(nowhere)
        connection.close()
