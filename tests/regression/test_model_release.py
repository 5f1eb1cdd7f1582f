from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regression.worlds import CLINIC, clinic
from sabun.errors import IncompatibleGuarantees, ParameterError, ReleaseError, SimulatedError
from sabun.ledger import Ledger
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, PublicModel, Study, combine
from sabun.release import Release, generate_key
from sabun.reports import report


def fitted(seed: int, **terms: Any) -> Release:
    settings: dict[str, Any] = CLINIC | {"epsilon": 2} | terms
    return PrivateRidge(**settings).fit(*clinic(500, seed=seed)).release_


ONE, TWO = fitted(1), fitted(2, epsilon=3, delta="1e-7")


def joined(*releases: Release | Path, **options: Any) -> PublicModel:
    model = combine(releases, **options)
    assert isinstance(model, PublicModel)
    return model


def test_the_release_holds_the_model_and_can_be_saved(tmp_path: Path) -> None:
    model = joined(ONE, TWO)
    model.release().save(tmp_path / "joined.json")
    read = Release.load(tmp_path / "joined.json")
    assert np.array_equal(read["coefficients"], np.append(model.coef_, model.intercept_))
    assert np.array_equal(np.column_stack([read["low"], read["high"]])[:-1], model.conf_int())
    assert list(read["ranges"]) == [120, 50]
    assert read.provenance.receipt is None


def test_outside_a_study_one_table_may_stand_behind_all_so_the_promises_add_up() -> None:
    release = joined(ONE, TWO).release()
    whole = ONE.guarantee + TWO.guarantee
    assert (release.guarantee.epsilon, release.guarantee.delta) == (whole.epsilon, whole.delta)
    assert any("the promise is the sum of theirs" in note for note in release.provenance.notes)


def test_in_a_study_with_keys_the_promise_is_that_of_each_organisation() -> None:
    keys = {name: generate_key() for name in ("north", "east")}
    study = Study(
        features=Schema.of_bounds([(0, 120), (10, 60)]),
        target=Column.number("y", lower=0, upper=100),
        epsilon=2,
        organisations={name: key.public_key() for name, key in keys.items()},
    )
    parts = [
        PrivateRidge(study=study, organisation=name, signing_key=key).fit(*clinic(500, seed=place)).release_
        for place, (name, key) in enumerate(keys.items())
    ]
    promise = joined(*parts, study=study).release().guarantee
    assert promise == parts[0].guarantee
    assert any("in the tables of several organisations gets the sum" in words for words in promise.assumptions)


def test_it_names_the_ledger_rows_that_paid(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "north.ledger", name="north", epsilon=2, delta="1e-5")
    paid = fitted(1, ledger=book)
    assert paid.provenance.receipt is not None
    model = joined(paid, TWO)
    model.save(tmp_path / "model.json")
    wanted = (paid.provenance.receipt.entry_hash, None)
    assert model.ledger_rows == PublicModel.load(tmp_path / "model.json").ledger_rows == wanted
    assert tuple(model.release().provenance.parameters["ledger_rows"]) == wanted


def test_a_model_without_precision_is_released_without_intervals() -> None:
    release = joined(fitted(1, method="objpert"), fitted(2, method="objpert"), method="average").release()
    assert "low" not in release.value
    assert "carry no precision" in report(release)


def test_parts_that_protect_different_units_promise_nothing_in_common(tmp_path: Path) -> None:
    visits = Ledger.create(tmp_path / "visits.ledger", name="visits", unit="visit", epsilon=2, delta="1e-5")
    with pytest.raises(IncompatibleGuarantees, match="units must agree to compose; got 'record' and 'visit'"):
        joined(ONE, fitted(2, ledger=visits)).release()


def test_a_seeded_part_makes_a_release_that_cannot_be_saved(tmp_path: Path) -> None:
    release = joined(ONE, fitted(2, random_state=1)).release()
    assert release.guarantee.simulated
    with pytest.raises(SimulatedError):
        release.save(tmp_path / "x.json")


def test_a_model_that_used_raw_data_has_no_release() -> None:
    home = combine([ONE], *clinic(50))
    assert not hasattr(home, "release")
    with pytest.raises(ParameterError, match="a model to release must be a PublicModel; one that used raw data stays at home"):
        PublicModel.release(home)  # type: ignore[arg-type]


def test_a_model_that_knows_no_promise_is_not_released() -> None:
    with pytest.raises(ParameterError, match="must know the promises of its releases; it has none"):
        dataclasses.replace(joined(ONE), guarantees=()).release()


def test_a_joined_model_is_not_taken_for_an_organisation() -> None:
    with pytest.raises(ReleaseError, match="must carry its study"):
        combine([joined(ONE, TWO).release()])


EARLIER = Path(__file__).parent / "earlier"
"""Files of the version that took residual variances for known, from 300 made-up records each."""


def test_releases_of_an_earlier_version_are_combined() -> None:
    model = joined(EARLIER / "north.json", EARLIER / "east.json")
    assert model.coef_ == pytest.approx([0.3, 0.5], abs=0.3)
    assert model.doubt is not None
    assert model.findings == ()


def test_a_model_of_an_earlier_version_is_read_and_says_what_it_took_for_known() -> None:
    old, new = PublicModel.load(EARLIER / "model.json"), joined(EARLIER / "north.json", EARLIER / "east.json")
    assert old.coef_ == pytest.approx(new.coef_, rel=1e-2)
    assert old.findings[0].startswith("Written by an earlier version, which took the residual variance for known")
    assert old.findings[0] in str(old)
    assert old.findings[0] in old.release().provenance.notes
    (known,), (unsure,) = (np.diff(model.predict_interval([[60, 30]])) for model in (old, new))
    assert known < unsure


def test_a_saved_model_keeps_what_it_does_not_know(tmp_path: Path) -> None:
    model = joined(ONE, TWO)
    model.save(tmp_path / "m.json")
    again = PublicModel.load(tmp_path / "m.json")
    assert again.findings == ()
    for ask in (PublicModel.conf_int, PublicModel.intercept_interval, lambda one: one.predict_interval([[60, 30]])):
        assert np.array_equal(ask(again), ask(model))


def test_a_page_says_what_its_intervals_assume() -> None:
    for release in (ONE, joined(ONE, TWO).release()):
        page = report(release)
        assert "residuals may have any tails and vary more in one organisation than in another" in page
        assert "with coefficients no longer than" in page


def test_two_releases_of_one_table_promise_what_the_ledger_booked(tmp_path: Path) -> None:
    """The ledger had booked 10, the joined release promised 5."""
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=10, delta="1e-5", unit="patient")
    releases = [PrivateRidge(**CLINIC, epsilon=5, ledger=book).fit(*clinic(300)).release_ for _ in range(2)]
    promise = combine(releases).release().guarantee  # type: ignore[union-attr]
    assert (promise.epsilon, promise.delta) == (book.spent.epsilon, book.spent.delta) == (10, Fraction(2, 10**6))
