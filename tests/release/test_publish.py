from __future__ import annotations

import multiprocessing
import os
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sabun.errors import BudgetExceeded, IncompatibleGuarantees, LedgerError, ParameterError, SimulatedError
from sabun.ledger import Ledger, Receipt, Reservation
from sabun.ledger.store import Unavailable
from sabun.privacy import Guarantee
from sabun.privacy.noise import discrete_laplace, os_coin, seeded_coin
from sabun.records import Schema
from sabun.release import Release, ResultNotKept, publish
from sabun.release.draft import purpose_of
from sabun.release.publish import recovered
from sabun.summaries import Mean

PROMISE = Guarantee(epsilon=0.4, unit="patient", mechanism="discrete Laplace")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "clinic.ledger", name="clinic", unit="patient", epsilon=1)


def noisy() -> dict[str, Any]:
    return {"count": 100 + discrete_laplace(Fraction(5, 2), coin=os_coin())}


def never() -> dict[str, Any]:
    raise AssertionError("the coin was tossed")


def released(ledger: Ledger | None, draw: Callable[[], Any] = noisy, **changes: Any) -> Release:
    parts: dict[str, Any] = {"kind": "count", "guarantee": PROMISE, "parameters": {"column": "age"}, "coin": os_coin()}
    return publish(**(parts | {"ledger": ledger, "draw": draw} | changes))


def test_the_charge_is_durable_before_the_noise(ledger: Ledger, tmp_path: Path) -> None:
    seen = []

    def draw() -> dict[str, Any]:
        other_handle = Ledger.open(tmp_path / "clinic.ledger")
        seen.append((other_handle.remaining.epsilon, other_handle.entries()[0].state))
        return noisy()

    released(ledger, draw)
    assert seen == [(Fraction(3, 5), "reserved")]
    assert ledger.entries()[0].state == "committed"


def test_the_release_carries_its_receipt(ledger: Ledger) -> None:
    release = released(ledger)
    receipt = release.provenance.receipt
    assert receipt is not None
    assert (receipt.entry, receipt.ledger_name, receipt.epsilon) == (1, "clinic", Fraction(2, 5))
    assert receipt.entry_hash == ledger.entries()[0].entry_hash
    ledger.verify(expect_head=receipt.entry_hash)
    assert "charged to 'clinic' as entry 1 (epsilon 0.4)" in str(release)
    assert Release.from_json(release.to_json()).provenance.receipt == receipt


def test_the_restated_amount_is_what_the_receipt_shows(ledger: Ledger) -> None:
    promise = Guarantee(epsilon=0.4, unit="patient", relation="add-remove", mechanism="m")
    release = released(ledger, guarantee=promise)
    assert release.provenance.receipt is not None
    assert release.provenance.receipt.epsilon == Fraction(4, 5)
    assert release.guarantee == promise


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failing_draw_leaves_the_charge_spent(ledger: Ledger, failure: type[BaseException]) -> None:
    def draw() -> dict[str, Any]:
        raise failure("stop")

    with pytest.raises(failure, match="stop"):
        released(ledger, draw)
    assert ledger.remaining.epsilon == Fraction(3, 5)
    assert ledger.entries()[0].state == "reserved"
    ledger.verify()


@pytest.mark.parametrize("value", [{}, None, {"x": object()}, {"x": np.array([object()])}])
def test_a_value_that_cannot_be_released_leaves_the_charge_spent(ledger: Ledger, value: Any) -> None:
    with pytest.raises(ParameterError, match="value"):
        released(ledger, lambda: value)
    assert ledger.remaining.epsilon == Fraction(3, 5)


def _die(path: str) -> None:
    released(Ledger.open(path), lambda: os._exit(9))


def test_a_process_that_dies_while_drawing_leaves_the_charge_spent(ledger: Ledger, tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_die, args=(str(tmp_path / "clinic.ledger"),))
    child.start()
    child.join(20)
    assert child.exitcode == 9
    assert ledger.remaining.epsilon == Fraction(3, 5)


def test_a_refused_budget_tosses_no_coin_and_charges_nothing(ledger: Ledger) -> None:
    released(ledger)
    released(ledger)
    with pytest.raises(BudgetExceeded, match="Nothing was released, nothing was charged"):
        released(ledger, never)
    assert ledger.remaining.epsilon == Fraction(1, 5)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": ""},
        {"parameters": {"x": object()}},
        {"parameters": None},
        {"notes": ("",)},
        {"schema_hash": ""},
        {"key": ""},
        {"key": "x" * 300},
        {"kind": "\ud800"},
        {"parameters": {"x": "\ud800"}},
        {"notes": ("\ud800",)},
        {"schema_hash": "\ud800"},
        {"guarantee": Guarantee(epsilon=0.1, unit="patient", mechanism="\ud800")},
        {"guarantee": Guarantee(epsilon=0.1, unit="patient", assumptions=("\ud800",))},
        {"guarantee": Guarantee(epsilon=0.1, unit="\ud800")},
        {"guarantee": None},
        {"coin": None},
        {"coin": SimpleNamespace(private=True)},
    ],
)
def test_bad_parameters_charge_nothing(ledger: Ledger, changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        released(ledger, never, **changes)
    assert ledger.spent.epsilon == 0


def test_a_coin_must_be_one() -> None:
    with pytest.raises(
        ParameterError, match=r"coin must be a Coin; got SimpleNamespace\. Pass os_coin\(\) for a private result"
    ):
        released(None, never, coin=SimpleNamespace(private=True))
    with pytest.raises(ParameterError, match="guarantee must be a Guarantee; got NoneType"):
        released(None, never, guarantee=None)


def test_words_no_file_can_hold_are_refused_without_a_ledger_too() -> None:
    with pytest.raises(ParameterError, match="guarantee must hold valid Unicode text; got one with a lone surrogate"):
        released(None, never, guarantee=Guarantee(epsilon=0.1, unit="\ud800", mechanism="m"))


def test_a_guarantee_of_another_unit_charges_nothing(ledger: Ledger) -> None:
    with pytest.raises(IncompatibleGuarantees):
        released(ledger, never, guarantee=Guarantee(epsilon=0.1, unit="visit", mechanism="m"))
    assert ledger.spent.epsilon == 0


# --- a ledger that cannot keep the result


def _refusing(monkeypatch: pytest.MonkeyPatch, error: LedgerError, times: int) -> list[bytes]:
    """Makes that many commits fail; what they were given is kept."""
    seen: list[bytes] = []
    commit = Reservation.commit

    def refuse(self: Reservation, payload: bytes) -> Receipt:
        seen.append(payload)
        if len(seen) <= times:
            raise error
        return commit(self, payload)

    monkeypatch.setattr(Reservation, "commit", refuse)
    return seen


BUSY = Unavailable("'x' was held by other processes for 30 seconds.", "Try again.")


def test_a_ledger_that_is_held_is_tried_again_with_the_same_value(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, drawn = _refusing(monkeypatch, BUSY, 2), []

    def draw() -> dict[str, Any]:
        drawn.append(noisy())
        return drawn[-1]

    release = released(ledger, draw)
    assert len(drawn) == 1
    assert set(seen) == {release.to_json()}
    assert recovered(ledger, 1).to_json() == release.to_json()


@pytest.mark.parametrize(
    ("error", "tries"), [(BUSY, 3), (LedgerError("it was replaced."), 1), (OSError("io"), 1), (MemoryError(), 1)]
)
def test_a_result_that_no_ledger_keeps_comes_with_the_error(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, error: Exception, tries: int
) -> None:
    seen = _refusing(monkeypatch, error, 99)
    with pytest.raises(ResultNotKept, match=r"The result is drawn and paid for, and comes with this error") as caught:
        released(ledger)
    assert len(seen) == tries
    assert "Nothing was charged" not in str(caught.value)
    assert caught.value.exit_code == 4
    release = caught.value.release
    assert release.to_json() == seen[0]
    assert release.provenance.receipt == ledger.receipts[0]
    assert (ledger.entry(1).state, ledger.spent.epsilon) == ("reserved", Fraction(2, 5))


# --- seeds


def test_a_seeded_coin_cannot_be_charged(ledger: Ledger) -> None:
    with pytest.raises(SimulatedError, match="a seeded result is not private, so it cannot be charged"):
        released(ledger, never, coin=seeded_coin(1))
    with pytest.raises(SimulatedError, match="a seeded result is not private"):
        released(ledger, never, guarantee=PROMISE.as_simulated())
    assert ledger.spent.epsilon == 0


def test_a_seeded_coin_cannot_recall_a_private_result_either(ledger: Ledger) -> None:
    released(ledger, key="monday")
    with pytest.raises(SimulatedError):
        released(ledger, never, key="monday", coin=seeded_coin(1))


def test_a_seeded_coin_without_a_ledger_gives_a_marked_result(tmp_path: Path) -> None:
    release = released(None, coin=seeded_coin(1))
    assert release.guarantee.simulated
    assert str(release).startswith("NOT PRIVATE")
    with pytest.raises(SimulatedError, match="NOT PRIVATE"):
        release.save(tmp_path / "x.json")


def test_without_a_ledger_the_release_says_so() -> None:
    release = released(None)
    assert not release.guarantee.simulated
    assert release.provenance.receipt is None
    assert "Ledger: not charged to a ledger." in str(release)
    release.to_json()


def test_a_key_needs_a_ledger() -> None:
    with pytest.raises(ParameterError, match="key must be left out when there is no ledger; got 'monday'"):
        released(None, never, key="monday")


# --- retries


def test_the_same_key_returns_the_identical_bytes_for_free(ledger: Ledger, tmp_path: Path) -> None:
    first = released(ledger, key="monday")
    again = released(Ledger.open(tmp_path / "clinic.ledger"), never, key="monday")
    assert again.to_json() == first.to_json()
    assert ledger.remaining.epsilon == Fraction(3, 5)


def test_a_retry_is_answered_even_when_the_budget_is_gone(ledger: Ledger) -> None:
    promise = Guarantee(epsilon=1, unit="patient", mechanism="m")
    first = released(ledger, key="all", guarantee=promise)
    assert ledger.remaining.epsilon == 0
    assert released(ledger, never, key="all", guarantee=promise) == first


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {"column": "weight"}},
        {"kind": "sum"},
        {"schema_hash": "ab" * 32},
        {"notes": ("Another note.",)},
        {"guarantee": Guarantee(epsilon=0.1, unit="patient", mechanism="m")},
    ],
)
def test_a_key_is_tied_to_what_it_was_used_for(ledger: Ledger, changes: dict[str, Any]) -> None:
    released(ledger, key="monday")
    with pytest.raises(ParameterError, match="key must be new for another guarantee or purpose"):
        released(ledger, never, key="monday", **changes)


def test_a_key_whose_draw_failed_is_paid_for_again(ledger: Ledger) -> None:
    with pytest.raises(AssertionError, match="tossed"):
        released(ledger, never, key="monday")
    released(ledger, key="monday")
    assert ledger.remaining.epsilon == Fraction(1, 5)


def test_a_release_too_large_for_the_ledger_is_kept_as_a_digest(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["sabun.release.publish"], "LARGEST_PAYLOAD", 100)
    release = released(ledger, key="monday")
    release.to_json()
    refusal = "must be small enough to be kept in the ledger; it was not"
    with pytest.raises(ParameterError, match=f"the release of key 'monday' {refusal}"):
        released(ledger, never, key="monday")
    with pytest.raises(ParameterError, match=f"the release of entry 1 {refusal}"):
        recovered(ledger, 1)
    assert ledger.remaining.epsilon == Fraction(3, 5)


def test_the_order_of_parameters_does_not_matter_but_their_values_do() -> None:
    one = purpose_of("count", {"a": 1, "b": 0.5})
    assert one == purpose_of("count", {"b": 0.5, "a": 1})
    assert one != purpose_of("count", {"a": 1, "b": 0.25})
    assert one != purpose_of("sum", {"a": 1, "b": 0.5})
    assert one != purpose_of("count", {"a": 1, "b": 0.5}, schema_hash="x")
    assert one != purpose_of("count", {"a": 1, "b": 0.5}, notes=("x",))
    assert re.fullmatch(r"count \(parameters [0-9a-f]{64}\)", one)
    assert re.fullmatch(r"count on a, b \(parameters [0-9a-f]{64}\)", purpose_of("count", {"a": 1}, subject=("a", "b")))


def test_the_ledger_shows_a_purpose_by_the_first_digits_of_its_digest(ledger: Ledger) -> None:
    released(ledger)
    assert re.search(r"\(parameters [0-9a-f]{12}…\)$", ledger.show())


def test_nothing_but_the_value_depends_on_the_draw(ledger: Ledger) -> None:
    """Two runs on different data differ only in the value, the entry and the clock."""
    one, two = released(None, lambda: {"x": 1}), released(None, lambda: {"x": 2})
    assert one.guarantee == two.guarantee
    assert one.provenance.parameters == two.provenance.parameters
    assert one.provenance.software == two.provenance.software


def test_a_lost_release_comes_back_from_the_ledger_for_nothing(ledger: Ledger) -> None:
    release = released(ledger)
    left = ledger.remaining
    assert recovered(ledger, 1).to_json() == release.to_json()
    assert ledger.remaining == left
    for entry in (0, 2):
        with pytest.raises(ParameterError, match=f"entry must be an entry of '.*' with a kept result; got {entry}"):
            recovered(ledger, entry)


def test_a_ledger_opened_for_a_named_table_answers_the_same_question_once(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "book", name="clinic", unit="patient", epsilon=100)
    schema = Schema.of_bounds({"age": (0, 100)})

    def asked(table: str, rows: list[list[float]], **other: Any) -> Release:
        with Ledger.open(tmp_path / "book", table=table) as ledger:
            return Mean(column="age", epsilon=other.pop("epsilon", 1), schema=schema, ledger=ledger, **other).fit(rows).release_

    first = asked("october", [[20], [30]])
    assert asked("october", [[20], [99]]).to_json() == first.to_json()
    with Ledger.open(tmp_path / "book") as ledger:
        assert len(ledger.entries()) == 1
    others = [
        asked("november", [[20], [30]]),
        asked("", [[20], [30]]),
        asked("october", [[20], [30]], epsilon=2),
        asked("october", [[20], [30]], confidence=0.9),
        asked("october", [[20], [30]], relation="replace-one", where={"age": (0, 50)}),
        asked("october", [[20], [30], [40]]),  # another number of records, which is public here
    ]
    assert [release.provenance.receipt.entry for release in others if release.provenance.receipt] == [2, 3, 4, 5, 6, 7]


def test_an_error_that_nobody_foresaw_is_named_by_its_type_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library says may quote whatever it was given."""
    ledger = Ledger.create(tmp_path / "book", name="book", epsilon=1)

    def broken(self: Reservation, payload: bytes) -> Receipt:
        raise RuntimeError("bezoar")

    monkeypatch.setattr(Reservation, "commit", broken)
    terms: dict[str, Any] = {"guarantee": Guarantee(epsilon="0.1"), "parameters": {}, "coin": os_coin(), "ledger": ledger}
    with pytest.raises(
        ResultNotKept, match="stays charged; keeping its result ended with an unexpected RuntimeError"
    ) as caught:
        publish(kind="count", draw=lambda: {"count": 7}, **terms)
    assert "bezoar" not in str(caught.value)
