from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.behind import edited
from ledger.servers import NoServer, Server
from sabun.ledger import Ledger
from sabun.privacy.guarantee import Guarantee


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The laws of the ledger hold in a file and on a server: a test gets both, unless it or its module is about one."""
    named = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "place" in metafunc.fixturenames and "place" not in named and not hasattr(metafunc.module, "place"):
        about_files = "path" in metafunc.fixturenames or getattr(metafunc.module, "ABOUT_FILES", False)
        metafunc.parametrize("place", ["file"] if about_files else ["file", "server"], indirect=True)


@pytest.fixture(scope="session")
def running() -> Iterator[Server]:
    """A PostgreSQL server for the whole run."""
    try:
        server = Server()
    except NoServer as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a ledger may be made: a free path, or a free name on the server."""
    return tmp_path / "clinic.ledger" if request.param == "file" else request.getfixturevalue("running").place()


@pytest.fixture
def path(place: Path) -> Path:
    return place


@pytest.fixture
def ledger(place: Path | str) -> Ledger:
    return Ledger.create(place, name="clinic-2026", unit="patient", epsilon=2, delta="1e-6", accounting="sums")


@pytest.fixture
def book(place: Path | str) -> Ledger:
    """One that counts by shares."""
    return Ledger.create(place, name="clinic-2026", unit="patient", epsilon=3, delta="1e-6")


@pytest.fixture
def promise() -> Callable[..., Guarantee]:
    def make(epsilon: object = 0.5, delta: object = 0, **others: object) -> Guarantee:
        return Guarantee(**({"epsilon": epsilon, "delta": delta, "unit": "patient"} | others))  # type: ignore[arg-type]

    return make


@pytest.fixture
def edit() -> Callable[..., None]:
    """Changes a ledger behind its back."""
    return edited
