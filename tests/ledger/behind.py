"""A ledger seen and changed behind its back, in a file or on a server."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["edited", "is_on_server", "on_server", "written"]


def is_on_server(place: Path | str) -> bool:
    return isinstance(place, str) and place.startswith("postgresql:")


def written(place: Path | str) -> list[tuple[str, str]]:
    """The records of a ledger with their hashes, oldest first."""
    query = "SELECT record, hash FROM book ORDER BY sequence"
    if is_on_server(place):
        return on_server(place, query)
    with closing(sqlite3.connect(place)) as connection:
        return connection.execute(query).fetchall()


def edited(place: Path | str, *statements: str) -> None:
    """Lifts the guards, runs the statements, puts the guards back."""
    if is_on_server(place):
        lift, put_back = ([f"ALTER TABLE {table} {way} TRIGGER USER" for table in ("book", "payloads")] for way in _WAYS)
        bytea = (re.sub("x'([0-9a-f]*)'", r"'\\\\x\1'", statement) for statement in statements)
        on_server(place, *lift, *bytea, *put_back)
        return
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, text in guards:
            connection.execute(text)


_WAYS = ("DISABLE", "ENABLE")


def on_server(place: Path | str, *statements: str) -> list[Any]:
    """Runs statements as one change in the schema of a ledger; rows of the last one, if it has any."""
    import psycopg

    server, _, name = str(place).rpartition("&ledger=")
    with psycopg.connect(server) as connection:
        connection.execute(f'SET search_path = "{name}"')
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
