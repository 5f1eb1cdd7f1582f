from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sabun.ledger import Ledger
from sabun.privacy.guarantee import Guarantee


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.ledger"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger.create(path, name="clinic-2026", unit="patient", epsilon=2, delta="1e-6", accounting="sums")


@pytest.fixture
def promise() -> Callable[..., Guarantee]:
    def make(epsilon: object = 0.5, delta: object = 0, **others: object) -> Guarantee:
        return Guarantee(**({"epsilon": epsilon, "delta": delta, "unit": "patient"} | others))  # type: ignore[arg-type]

    return make


@pytest.fixture
def edit() -> Callable[..., None]:
    """Changes a ledger behind its back: the guards are lifted, the statement is run, the guards are put back."""

    def run(path: Path, *statements: str) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                connection.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                connection.execute(statement)
            for _, text in guards:
                connection.execute(text)

    return run
