"""How a collector is run: checked once, then handed to every process."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from sabun import checks
from sabun.errors import ParameterError
from sabun.keyvalue import Study
from sabun.service.report_store import Store
from sabun.service.round_keys import RoundKeys
from sabun.service.session import Database
from sabun.service.sqlite_session import SqliteDatabase

__all__ = ["Settings", "database_of", "is_server", "opened_store"]


def is_server(database: str) -> bool:
    """Whether a database is on a PostgreSQL server."""
    return database.startswith(("postgresql://", "postgres://"))


def database_of(database: str) -> Database:
    """The database that was typed: the address of a server, or a file."""
    if is_server(database):
        from sabun.service.postgres_session import PostgresDatabase

        return PostgresDatabase(database)
    return SqliteDatabase(database)


def opened_store(database: str, keys: str, *, shard: int = 0) -> Store:
    """The store at a place, with its folder of keys."""
    return Store(database_of(database), RoundKeys(keys), shard=shard)


@final
@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a collector is run.

    Args:
        database: A file, or the address of a PostgreSQL server.
        keys: The folder of secrets.
        studies: Studies to serve besides those that the store knows, as JSON, each with whether it takes tickets and its seed.
        host: The address to listen at.
        port: The port; 0 for any that is free.
        processes: How many processes; more than one needs PostgreSQL.
        tls_cert: A certificate, for TLS without a proxy.
        tls_key: Its key.
        url: The server's address as browsers see it, where a proxy stands in front.
        retention_days: How long reports stay after a round is frozen.
        header_seconds: How long a client may take to announce a request.
        body_seconds: How long it may take to send it.
        connections: How many clients a process listens to at once.

    Raises:
        ParameterError: One of them breaks its rule.
    """

    database: str = field(repr=False)
    keys: str
    studies: tuple[tuple[str, bool, bytes], ...] = field(default=(), repr=False)
    host: str = "127.0.0.1"
    port: int = 8000
    processes: int = 1
    tls_cert: str | None = None
    tls_key: str | None = None
    url: str = ""
    retention_days: int = 30
    header_seconds: float = 15.0
    body_seconds: float = 20.0
    connections: int = 4096

    def __post_init__(self) -> None:
        checks.require(0 <= self.port < 65_536, "from 0 to 65535", port=self.port)
        checks.require(1 <= self.processes <= 64, "from 1 to 64", processes=self.processes)
        checks.require(0 <= self.retention_days <= 3650, "from 0 to 3650", retention_days=self.retention_days)
        if self.processes > 1 and not is_server(self.database):
            raise ParameterError("processes must be 1 with a store in a file; one process writes at a time. Use PostgreSQL.")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ParameterError("tls-cert and tls-key must be given together; one is missing.")
        for name, file in (("tls-cert", self.tls_cert), ("tls-key", self.tls_key)):
            if file is not None and not Path(file).is_file():
                raise ParameterError(f"{name} must be a file; there is none of that name.")

    def address(self, port: int) -> str:
        """Where people find the server."""
        scheme = "http" if self.tls_cert is None else "https"
        return self.url or f"{scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{port}"

    def tls(self) -> ssl.SSLContext | None:
        """What speaks TLS here, where no proxy does.

        Raises:
            ParameterError: The files hold no certificate and its key.
        """
        if self.tls_cert is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ValueError):
            raise ParameterError("tls-cert and tls-key must be a certificate and its key (PEM); they are not.") from None
        return context

    def register(self, store: Store) -> None:
        """Makes the store serve the studies."""
        for text, tickets, seed in self.studies:
            store.register(Study.from_json(text), tickets=tickets, seed=seed)
