from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.servers import NoServer, Server
from sabun.service.report_store import Store
from sabun.service.round_keys import RoundKeys
from sabun.service.settings import database_of


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server for the whole run."""
    try:
        server = Server()
    except NoServer as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store may be made: the laws are the same in a file and on a server."""
    if request.param == "SQLite":
        return str(tmp_path / "study.reports")
    name = f"c{abs(hash(request.node.nodeid)) % 10**12}"
    return f"{request.getfixturevalue('postgres').address(ledger=None)}&collector={name}"


@pytest.fixture
def opened(place: str, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Opens the store, as one of several processes if a shard is named."""
    made: list[Store] = []

    def open_store(shard: int = 0, keys: str = "keys", **named: object) -> Store:
        made.append(Store(database_of(place), RoundKeys(tmp_path / keys), shard=shard, **named))  # type: ignore[arg-type]
        return made[-1]

    yield open_store
    for store in made:
        store.database.close()


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened()
