"""The tables, version by version: a store of any earlier version becomes one of today's when it is opened."""

from __future__ import annotations

from sabun.errors import DataError
from sabun.service.session import Database, Session

__all__ = ["VERSION", "migrate"]

_FIRST = (
    "CREATE TABLE study (study INTEGER PRIMARY KEY, task TEXT NOT NULL UNIQUE, terms TEXT NOT NULL, enrolment TEXT NOT NULL) "
    "{strict}",
    "CREATE TABLE round (round INTEGER PRIMARY KEY, study INTEGER NOT NULL, number {whole} NOT NULL, state TEXT NOT NULL, "
    "key_check {bytes} NOT NULL, feedback TEXT, frozen_day INTEGER, release {bytes}, UNIQUE (study, number)) {strict}",
    "CREATE TABLE ticket (study INTEGER NOT NULL, hash {bytes} NOT NULL, promise {bytes}, PRIMARY KEY (study, hash)) {bare}",
    "CREATE TABLE credential (study INTEGER NOT NULL, id {bytes} NOT NULL, PRIMARY KEY (study, id)) {bare}",
    "CREATE TABLE report (round INTEGER NOT NULL, id {bytes} NOT NULL, answer {bytes} NOT NULL, PRIMARY KEY (round, id)) "
    "{parted}",
    "CREATE TABLE counter (round INTEGER NOT NULL, shard INTEGER NOT NULL, state {bytes} NOT NULL, PRIMARY KEY (round, shard)) "
    "{bare}",
    "CREATE TABLE outcome (round INTEGER NOT NULL, hour INTEGER NOT NULL, what TEXT NOT NULL, shard INTEGER NOT NULL, "
    "n {whole} NOT NULL, PRIMARY KEY (round, hour, what, shard)) {bare}",
)
_OPERATORS = (
    "CREATE TABLE operator (name TEXT PRIMARY KEY, hash {bytes} NOT NULL, study INTEGER, scopes TEXT NOT NULL, "
    "expires INTEGER NOT NULL) {bare}",
)
_NAMES_PER_STUDY = (
    "ALTER TABLE operator RENAME TO operator_before",
    "CREATE TABLE operator (study INTEGER NOT NULL, name TEXT NOT NULL, hash {bytes} NOT NULL, scopes TEXT NOT NULL, "
    "expires INTEGER NOT NULL, PRIMARY KEY (study, name)) {bare}",
    "INSERT INTO operator (study, name, hash, scopes, expires) "
    "SELECT coalesce(study, 0), name, hash, scopes, expires FROM operator_before",
    "DROP TABLE operator_before",
)
"""An operator of every study has the number 0; studies are numbered from 1."""
_STEPS: tuple[tuple[str, ...], ...] = (_FIRST, _OPERATORS, _NAMES_PER_STUDY)
"""What leads from one version to the next; a step that was ever released is never changed."""
VERSION = len(_STEPS)

# Rows of a table without row ids lie in the order of their keys: the order in which they came is not kept.
_WORDS = {
    "SQLite": {
        "bytes": "BLOB",
        "whole": "INTEGER",
        "strict": "STRICT",
        "bare": "STRICT, WITHOUT ROWID",
        "parted": "STRICT, WITHOUT ROWID",
    },
    "PostgreSQL": {"bytes": "BYTEA", "whole": "BIGINT", "strict": "", "bare": "", "parted": "PARTITION BY LIST (round)"},
}
_ONE_AT_A_TIME = -1
"""The number under which those who open a store at the same time wait for each other."""


def migrate(database: Database, *, to: int = VERSION) -> int:
    """Brings the tables to a version, in one transaction; returns the version they had.

    Raises:
        DataError: A newer Sabun made them.
    """
    with database.change() as session:
        session.hold(_ONE_AT_A_TIME, alone=True)
        session.rows("CREATE TABLE IF NOT EXISTS version (version INTEGER NOT NULL)")
        found = _version(session)
        if found > VERSION:
            raise DataError(f"the store must be of version {VERSION} or older; it is newer. Use the Sabun that made it.")
        for step in _STEPS[found:to]:
            for statement in step:
                session.rows(statement.format(**_WORDS[database.name]))
        if found < to:
            session.rows("DELETE FROM version")
            session.rows("INSERT INTO version (version) VALUES (?)", to)
    return found


def _version(session: Session) -> int:
    rows = session.rows("SELECT version FROM version")
    return int(rows[0][0]) if rows else 0
