"""Charge, no way back, draw, keep: in that order, seen from inside the draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sabun import Guarantee, Ledger
from sabun.errors import LedgerError
from sabun.privacy.noise import os_coin
from sabun.release import publish


def test_when_data_is_read_the_charge_stands_and_cannot_be_given_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "book", name="book", epsilon=2)
    made: list[Any] = []
    reserve = Ledger.reserve
    monkeypatch.setattr(Ledger, "reserve", lambda self, *about, **how: made.append(reserve(self, *about, **how)) or made[-1])

    def draw() -> dict[str, int]:
        [reservation] = made
        assert Ledger.open(tmp_path / "book").spent.epsilon == 1, "on disk already"
        assert reservation.touched
        with pytest.raises(LedgerError, match="must be voided before touch"):
            reservation.void()
        return {"count": 7}

    promise = Guarantee(epsilon=1, unit="record", mechanism="x")
    release = publish(kind="count", guarantee=promise, parameters={}, draw=draw, ledger=ledger, coin=os_coin())
    assert release["count"] == 7
    assert ledger.spent.epsilon == 1
    assert len(made) == 1


def test_a_draw_that_fails_is_paid_for_all_the_same(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "book", name="book", epsilon=2)
    promise = Guarantee(epsilon=1, unit="record", mechanism="x")
    with pytest.raises(ZeroDivisionError):
        publish(kind="count", guarantee=promise, parameters={}, draw=lambda: {"x": 1 // 0}, ledger=ledger, coin=os_coin())
    assert ledger.spent.epsilon == 1
