"""From what a person types to the store that is meant."""

from __future__ import annotations

import os

from sabun.ledger.address import is_address
from sabun.ledger.sqlite_store import SqliteStore
from sabun.ledger.store import Store

__all__ = ["store_at"]


def store_at(place: str | os.PathLike[str] | Store) -> Store:
    """A file for a path, a server for an address; a store is its own.

    Raises:
        ParameterError: It is none of them.
        MissingExtra: It is on a server, and what talks to servers is not installed.
    """
    if is_address(place):
        from sabun.ledger.postgres_store import PostgresStore

        return PostgresStore(os.fspath(place))  # type: ignore[arg-type]
    is_path = isinstance(place, str | os.PathLike) or not hasattr(place, "writing")
    return SqliteStore(place) if is_path else place  # type: ignore[arg-type, return-value]
