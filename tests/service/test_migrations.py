"""A store of any earlier version opens, with all that is in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sabun.errors import DataError
from sabun.service.migrations import VERSION, migrate
from sabun.service.operators import add_operator, who
from sabun.service.report_store import Store
from sabun.service.round_keys import RoundKeys
from sabun.service.settings import database_of
from service.devices import KV3, made_up
from service.test_report_store import agrees, batch


@pytest.mark.parametrize("version", range(VERSION))
def test_a_store_of_every_earlier_version_becomes_todays(
    place: str, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = database_of(place)
    reports = made_up(KV3, 30, seed=1)
    assert migrate(database, to=version) == 0
    if version:  # what that version could do: take reports
        monkeypatch.setattr("sabun.service.report_store.migrate", lambda database: None)
        old = Store(database, RoundKeys(tmp_path / "keys"))
        old.commit([batch(old.register(KV3), reports[:20])])
        monkeypatch.undo()
    today = Store(database, RoundKeys(tmp_path / "keys"))
    today.commit([batch(today.register(KV3), reports)])
    agrees(today, today.register(KV3), reports)
    assert who(today, add_operator(today, "alice")) is not None
    assert migrate(database) == VERSION
    database.close()


def test_tokens_of_the_second_version_stay_valid(place: str, tmp_path: Path) -> None:
    database, tokens = database_of(place), {"alice": "sabun-one", "bob": "sabun-two"}
    migrate(database, to=2)
    with database.change() as session:
        for (name, token), study in zip(tokens.items(), (1, None), strict=True):
            hashed = hashlib.sha256(token.encode()).digest()
            session.rows("INSERT INTO operator VALUES (?, ?, ?, 'read', 99999)", name, hashed, study)
    today = Store(database, RoundKeys(tmp_path / "keys"))
    found = [(one.name, one.study) for token in tokens.values() if (one := who(today, token)) is not None]
    assert found == [("alice", 1), ("bob", None)]
    database.close()


def test_a_store_of_a_newer_version_is_refused_and_left_alone(place: str) -> None:
    database = database_of(place)
    migrate(database)
    with database.change() as session:
        session.rows("UPDATE version SET version = ?", VERSION + 1)
    with pytest.raises(DataError, match="newer"):
        migrate(database)
    with database.look() as session:
        assert session.rows("SELECT version FROM version") == [(VERSION + 1,)]
    database.close()
