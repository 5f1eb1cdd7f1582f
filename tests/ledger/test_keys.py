from __future__ import annotations

from fractions import Fraction

import pytest

from sabun.errors import LedgerError, ParameterError, SimulatedError
from sabun.ledger import Ledger


def test_a_recalled_release_is_free_and_identical(ledger, place, promise):
    reservation = ledger.reserve(promise(), purpose="count", key="monday")
    receipt = reservation.commit(b"\x00exactly these bytes\xff")
    for handle in (ledger, Ledger.open(place)):
        assert handle.recall("monday", guarantee=promise(), purpose="count") == (receipt, b"\x00exactly these bytes\xff")
    assert ledger.spent.epsilon == Fraction(1, 2)
    assert len(ledger.entries()) == 1


def test_a_key_without_a_result_recalls_nothing(ledger, promise):
    assert ledger.recall("new", guarantee=promise(), purpose="p") is None
    ledger.reserve(promise(), purpose="p", key="new")
    assert ledger.recall("new", guarantee=promise(), purpose="p") is None


def test_a_key_that_was_reserved_but_never_committed_pays_again(ledger, promise):
    ledger.reserve(promise(), purpose="p", key="k")
    ledger.reserve(promise(), purpose="p", key="k").commit(b"second")
    assert ledger.spent.epsilon == Fraction(1)
    assert ledger.recall("k", guarantee=promise(), purpose="p")[1] == b"second"


def test_a_voided_key_is_free_for_anything(ledger, promise):
    ledger.reserve(promise(), purpose="p", key="k").void()
    assert ledger.recall("k", guarantee=promise(0.1), purpose="q") is None
    ledger.reserve(promise(0.1), purpose="q", key="k").commit(b"x")


@pytest.mark.parametrize("finished", [True, False])
def test_a_key_cannot_be_used_for_something_else(ledger, promise, finished):
    reservation = ledger.reserve(promise(), purpose="p", key="k")
    if finished:
        reservation.commit(b"x")
    before = ledger.to_dict()
    for guarantee, purpose in ((promise(0.4), "p"), (promise(), "q"), (promise(mechanism="other"), "p")):
        with pytest.raises(ParameterError, match="key must be new for another guarantee or purpose; got 'k', used before"):
            ledger.reserve(guarantee, purpose=purpose, key="k")
        with pytest.raises(ParameterError, match="key must be new for another guarantee or purpose"):
            ledger.recall("k", guarantee=guarantee, purpose=purpose)
    assert ledger.to_dict() == before


def test_reserving_an_answered_key_points_to_recall(ledger, promise):
    ledger.reserve(promise(), purpose="p", key="k").commit(b"x")
    with pytest.raises(ParameterError, match=r"got 'k', which already has a result\. Take that one with Ledger\.recall"):
        ledger.reserve(promise(), purpose="p", key="k")
    assert ledger.spent.epsilon == Fraction(1, 2)


def test_a_charge_with_a_used_key_is_refused_rather_than_free(ledger, promise):
    ledger.charge(promise(), purpose="p", key="k")
    with pytest.raises(ParameterError, match="which already has a result"):
        ledger.charge(promise(), purpose="p", key="k")


def test_the_earliest_commit_answers_for_good(ledger, promise):
    early, late = (ledger.reserve(promise(), purpose="p", key="k") for _ in range(2))
    late.commit(b"committed first")
    early.commit(b"committed second")
    assert ledger.recall("k", guarantee=promise(), purpose="p") == (late.receipt, b"committed first")


def test_a_simulated_run_cannot_recall(ledger, promise):
    ledger.reserve(promise(), purpose="p", key="k").commit(b"x")
    with pytest.raises(SimulatedError):
        ledger.recall("k", guarantee=promise().as_simulated(), purpose="p")


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "a\nb", "\ud800", 7])
def test_a_key_is_a_short_printable_text(ledger, promise, key):
    for attempt in (
        lambda: ledger.reserve(promise(), purpose="p", key=key),
        lambda: ledger.recall(key, guarantee=promise(), purpose="p"),
    ):
        with pytest.raises(ParameterError, match="key must be a"):
            attempt()
    assert ledger.entries() == ()


def test_a_recall_of_changed_bytes_is_refused(ledger, place, promise, edit):
    ledger.reserve(promise(), purpose="p", key="k").commit(b"result")
    edit(place, "UPDATE payloads SET payload = x'00'")
    with pytest.raises(LedgerError, match=r"the kept bytes of entry 1 were changed"):
        ledger.recall("k", guarantee=promise(), purpose="p")
