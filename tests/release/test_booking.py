"""What a ledger vouches for: every field of a promise and of a receipt, found by looking at the classes themselves."""

from __future__ import annotations

import copy
import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sabun.errors import ParameterError, ReleaseError
from sabun.ledger import Ledger, Receipt
from sabun.privacy import Guarantee
from sabun.privacy.noise import os_coin
from sabun.release import Provenance, Release, generate_key, publish
from sabun.release.booking import Booking, booked
from sabun.release.draft import purpose_of

PROMISE = Guarantee(
    epsilon="1/1000", delta="1/10000000", unit="patient", mechanism="discrete Laplace", assumptions=("one row",)
)
FACTS = {"column": "age"}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "clinic.ledger", name="clinic", unit="patient", epsilon=1, delta="1/1000")


def published(ledger: Ledger) -> Release:
    return publish(
        kind="count", guarantee=PROMISE, parameters=FACTS, draw=lambda: {"count": 7}, ledger=ledger, coin=os_coin(),
        subject=["age"], schema_hash="0" * 64, notes=("A note.",),
    )  # fmt: skip


def without_bytes(ledger: Ledger) -> Release:
    """A release whose charge was booked with nothing kept."""
    purpose = purpose_of("count", FACTS, subject=["age"], schema_hash="0" * 64, notes=("A note.",))
    origin = Provenance(
        kind="count", mechanism=PROMISE.mechanism, parameters=FACTS, schema_hash="0" * 64, notes=("A note.",),
        receipt=ledger.charge(PROMISE, purpose=purpose),
    )  # fmt: skip
    return Release(value={"count": 7}, guarantee=PROMISE, provenance=origin)


def different(value: object) -> object:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, Fraction | int):
        return value + 1
    return (*value, "more") if isinstance(value, tuple) else f"{value}x"


def altered(thing: Any, **changes: object) -> Any:
    """The same object with other fields, past every check of its class."""
    twin = copy.copy(thing)
    for name, value in changes.items():
        object.__setattr__(twin, name, value)
    return twin


def with_receipt(release: Release, receipt: Receipt) -> Release:
    forged: Release = altered(release, provenance=altered(release.provenance, receipt=receipt))
    return forged


def names_of(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


MADE = {"bytes kept": published, "no bytes kept": without_bytes}


@pytest.mark.parametrize("made", MADE)
def test_a_release_as_it_was_paid_for_is_vouched_for(made: str, ledger: Ledger) -> None:
    published(ledger)
    release = MADE[made](ledger)
    assert booked(release, ledger) == Booking(entry=2, bytes_compared=made == "bytes kept")


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("name", names_of(Receipt))
def test_a_receipt_with_one_field_altered_is_refused(name: str, made: str, ledger: Ledger) -> None:
    release = MADE[made](ledger)
    receipt = release.provenance.receipt
    forged = with_receipt(release, altered(receipt, **{name: different(getattr(receipt, name))}))
    with pytest.raises(ReleaseError, match=r"must hold (this release as it was paid for|the charge of this release)"):
        booked(forged, ledger)


def test_a_group_is_written_only_where_there_is_one_and_no_foreign_size_is_taken(ledger: Ledger) -> None:
    receipt = published(ledger).provenance.receipt
    assert receipt is not None
    assert "group" not in receipt.to_dict()
    several = dataclasses.replace(receipt, group=7)
    assert Receipt.from_dict(several.to_dict()) == several
    for size in (True, 0, 1, -2, 10**9, "2", None):
        with pytest.raises(ParameterError, match="receipt"):
            Receipt.from_dict(several.to_dict() | {"group": size})


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("name", names_of(Guarantee))
def test_a_promise_with_one_field_altered_is_refused(name: str, made: str, ledger: Ledger) -> None:
    release = MADE[made](ledger)
    forged = altered(release, guarantee=altered(release.guarantee, **{name: different(getattr(release.guarantee, name))}))
    with pytest.raises(ReleaseError, match="as it was paid for; the guarantee in the file is another"):
        booked(forged, ledger)


ABOUT_THE_RUN = {"software", "time"}
"""What a charge cannot know beforehand: only kept bytes vouch for it."""


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("name", [name for name in names_of(Provenance) if name != "receipt"])
def test_an_origin_with_one_field_altered_is_refused(name: str, made: str, ledger: Ledger) -> None:
    release = MADE[made](ledger)
    value = getattr(release.provenance, name)
    other = dict(value) | {"more": "1"} if name in ("parameters", "software") else different(value)
    other = "2020-01-01T00:00:00Z" if name == "time" else other
    forged = dataclasses.replace(release, provenance=dataclasses.replace(release.provenance, **{name: other}))
    if made == "no bytes kept" and name in ABOUT_THE_RUN:
        assert not booked(forged, ledger).bytes_compared
        return
    with pytest.raises(ReleaseError, match=r"as it was paid for; the .* in the file is another"):
        booked(forged, ledger)


def test_another_value_is_refused_where_bytes_were_kept_and_not_vouched_for_elsewhere(ledger: Ledger) -> None:
    with pytest.raises(ReleaseError, match="the value in the file is another"):
        booked(dataclasses.replace(published(ledger), value={"count": 8}), ledger)
    assert not booked(dataclasses.replace(without_bytes(ledger), value={"count": 8}), ledger).bytes_compared


def test_a_promise_and_a_receipt_forged_together_are_refused(ledger: Ledger) -> None:
    """Within itself such a file is sound: its receipt pays for its guarantee."""
    honest = without_bytes(ledger)
    claims = dataclasses.replace(PROMISE, epsilon=10**6, joint_epsilon=None, joint_delta=None)
    receipt = dataclasses.replace(honest.provenance.receipt, epsilon=Fraction(10**6))
    forged = Release(value=honest.value, guarantee=claims, provenance=dataclasses.replace(honest.provenance, receipt=receipt))
    with pytest.raises(ReleaseError, match="the receipt's epsilon in the file is another"):
        booked(Release.from_json(forged.to_json()), ledger)


def test_a_charge_that_was_never_closed_vouches_for_no_value(ledger: Ledger) -> None:
    reservation = ledger.reserve(PROMISE, purpose="by hand")
    origin = Provenance(kind="count", mechanism=PROMISE.mechanism, receipt=reservation.receipt)
    release = Release(value={"count": 7}, guarantee=PROMISE, provenance=origin)
    assert booked(release, ledger) == Booking(entry=1, bytes_compared=False)
    free = Guarantee(epsilon=0, unit="patient", mechanism="none: the charge was booked before")
    ledger.reserve(free, purpose="result of entry 1, after an interruption").commit(release.to_json())
    assert booked(release, ledger) == Booking(entry=1, bytes_compared=True)
    assert not booked(dataclasses.replace(release, value={"count": 8}), ledger).bytes_compared


def test_a_charge_that_was_taken_back_vouches_for_nothing(ledger: Ledger) -> None:
    reservation = ledger.reserve(PROMISE, purpose="by hand")
    origin = Provenance(kind="count", mechanism=PROMISE.mechanism, receipt=reservation.receipt)
    reservation.void()
    with pytest.raises(ReleaseError, match="must hold the charge of this release; it does not"):
        booked(Release(value={"count": 7}, guarantee=PROMISE, provenance=origin), ledger)


def test_a_release_that_nobody_paid_for_is_refused(ledger: Ledger) -> None:
    unpaid = Release(value={"count": 7}, guarantee=PROMISE, provenance=Provenance(kind="count", mechanism="discrete Laplace"))
    with pytest.raises(ReleaseError, match="must have been charged to a ledger; it was not"):
        booked(unpaid, ledger)


def test_a_signature_does_not_stand_in_the_way(ledger: Ledger) -> None:
    assert booked(published(ledger).sign(generate_key()), ledger).bytes_compared


@pytest.mark.parametrize("name", ["epsilon", "delta"])
@pytest.mark.parametrize("times", [Fraction(1, 2), Fraction(999_999, 10**6), Fraction(11, 10), Fraction(2), Fraction(10**6)])
def test_a_receipt_for_another_amount_makes_no_release(name: str, times: Fraction, ledger: Ledger) -> None:
    """For less it pays too little; for more it is the receipt of something else."""
    release = published(ledger)
    receipt = release.provenance.receipt
    assert receipt is not None
    origin = dataclasses.replace(
        release.provenance, receipt=dataclasses.replace(receipt, **{name: getattr(receipt, name) * times})
    )
    with pytest.raises(ParameterError, match="receipt must be for the charge of this guarantee"):
        dataclasses.replace(release, provenance=origin)
