from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regression.worlds import CLINIC, clinic
from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.regression import METHODS, PrivateRidge, combine
from sabun.release import Release

HOME, OTHER = clinic(400, seed=1), clinic(400, seed=2)


def released(name: str, table: tuple[Any, Any], **terms: Any) -> Release:
    return PrivateRidge(organisation=name, **(CLINIC | {"epsilon": 5} | terms)).fit(*table).release_


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "home.ledger", name="home", epsilon=20, delta="1e-4")


def test_ones_own_release_is_left_out_however_it_is_named(book: Ledger, tmp_path: Path) -> None:
    mine, theirs = released("home", HOME, ledger=book), released("other", OTHER)
    receipt = mine.provenance.receipt
    assert receipt is not None
    mine.save(tmp_path / "mine.json")
    wanted = combine([theirs], *HOME)
    twice = combine([mine, theirs], *HOME)
    assert not np.allclose(twice.coef_, wanted.coef_)
    for own in ("home", receipt.entry_hash, receipt, mine, tmp_path / "mine.json", book):
        model = combine([mine, theirs], *HOME, own=own)
        assert model.organisations == ("other",)
        assert np.array_equal(model.conf_int(), wanted.conf_int())
        assert "Left out the release of 'home': it was made of the home data, whose rows count once." in model.findings
        assert "Left out" in str(model)


def test_every_method_leaves_it_out(book: Ledger) -> None:
    mine, theirs = released("home", HOME, ledger=book), released("other", OTHER)
    for method in METHODS:
        assert combine([mine, theirs], *HOME, method=method, own=book).organisations == ("other",)


def test_rows_counted_twice_make_intervals_that_are_too_short() -> None:
    mine, theirs = released("home", HOME, epsilon=100), released("other", OTHER, epsilon=100)
    once, twice = combine([mine, theirs], *HOME, own="home").conf_int(), combine([mine, theirs], *HOME).conf_int()
    assert (np.diff(twice, axis=1) < 0.9 * np.diff(once, axis=1)).all()


def test_a_book_that_paid_for_none_leaves_all(book: Ledger) -> None:
    assert combine([released("a", HOME), released("b", OTHER)], *HOME, own=book).organisations == ("a", "b")


def test_what_cannot_be_meant_is_refused(book: Ledger) -> None:
    mine, theirs = released("home", HOME, ledger=book), released("other", OTHER)
    with pytest.raises(ParameterError, match="own must be one of the releases; got 'nobody', and they are of 'home', 'other'"):
        combine([mine, theirs], *HOME, own="nobody")
    with pytest.raises(ParameterError, match="own must be left out without home data"):
        combine([mine, theirs], own="home")
    with pytest.raises(ParameterError, match="releases must hold one that was not made of the home data"):
        combine([mine], *HOME, own=book)
    for nonsense in (5, "", ["home"]):
        with pytest.raises(ParameterError, match="own must be"):
            combine([mine, theirs], *HOME, own=nonsense)  # type: ignore[arg-type]
