from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from regression.worlds import CLINIC, clinic, unit_study
from sabun.errors import BoundsError, BudgetExceeded, DataError, ParameterError, SimulatedError
from sabun.ledger import Ledger
from sabun.privacy import rho_of
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, PublicModel, Study
from sabun.release import Release, generate_key, save_key


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "clinic.ledger", name="clinic", unit="patient", epsilon=3, delta="1e-5")


def test_the_example_of_the_architecture_works(ledger: Ledger, tmp_path: Path) -> None:
    X, y = clinic(20_000)
    m = PrivateRidge(epsilon=1.0, delta=1e-6, method="ssp-gauss", coef_bound=1.7, ledger=ledger, **CLINIC).fit(X, y)
    assert m.coef_ == pytest.approx([0.3, 0.5], abs=0.05)
    assert m.intercept_ == pytest.approx(20, abs=2)
    assert m.predict(X) == pytest.approx(X @ m.coef_ + m.intercept_)
    low, high = m.conf_int().T
    assert np.all(low < m.coef_)
    assert np.all(m.coef_ < high)
    assert m.score(X, y) > 0.8
    m.release_.save(tmp_path / "north.json")
    assert Release.load(tmp_path / "north.json") == m.release_
    assert ledger.spent == (1, Fraction(1, 10**6))
    assert m.guarantee_.unit == "patient"
    assert m.guarantee_.epsilon == 1
    assert any("at most one row" in sentence for sentence in m.guarantee_.assumptions)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_gaussian_noise_states_its_price_to_a_ledger_with_an_order(relation: str, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b", name="b", unit="patient", epsilon=3, delta="1e-5", relation=relation)
    X, y = clinic(500)
    for method in ("ssp-gauss", "ssp-laplace"):
        PrivateRidge(epsilon=0.5, delta="1e-6", method=method, ledger=book, **CLINIC).fit(X, y)
    gauss, laplace = book.entries()
    assert (gauss.form, laplace.form, laplace.price) == ("curve", "stated", None)
    [noise] = gauss.price["events"]  # type: ignore[index]
    rho = Fraction(noise["l2_squared"]) / (2 * Fraction(noise["sigma_squared"]))
    assert rho_of("1/2", "1e-6") * Fraction(99, 100) < rho <= rho_of("1/2", "1e-6")
    book.verify()


@pytest.mark.parametrize("mechanism", ["ssp-gauss", "ssp-laplace", "objpert"])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_every_mechanism_learns_under_both_relations(mechanism: str, relation: str) -> None:
    X, y = clinic(30_000)
    m = PrivateRidge(epsilon=3, method=mechanism, relation=relation, **CLINIC).fit(X, y)
    assert m.coef_ == pytest.approx([0.3, 0.5], abs=0.1)
    assert m.guarantee_.relation == relation
    assert m.guarantee_.delta == (Fraction(1, 10**6) if mechanism == "ssp-gauss" else 0)


def test_without_an_intercept_the_line_goes_through_zero() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (20_000, 2))
    m = PrivateRidge(epsilon=5, x_bounds=(0, 10), y_bounds=(0, 40), fit_intercept=False).fit(X, X @ [1.0, 2.0])
    assert m.intercept_ == 0
    assert m.coef_ == pytest.approx([1, 2], abs=0.1)


def test_frames_files_and_arrays_give_one_result(tmp_path: Path) -> None:
    X, y = clinic(500)
    frame = pd.DataFrame(X, columns=["age", "bmi"])
    full = frame.assign(dose=y)
    full.to_csv(tmp_path / "c.csv", index=False)
    full.to_parquet(tmp_path / "c.parquet")
    named: dict[str, Any] = {
        "x_bounds": {"age": (0, 120), "bmi": (10, 60)},
        "y_bounds": {"dose": (0, 100)},
        "epsilon": 1,
        "random_state": 7,
    }
    wanted = PrivateRidge(**named).fit(frame, y).coef_
    assert np.array_equal(PrivateRidge(**named).fit(pl.from_pandas(frame), y).coef_, wanted)
    assert np.array_equal(PrivateRidge(**named).fit(X, y).coef_, wanted)
    for source in (full, tmp_path / "c.csv", str(tmp_path / "c.parquet")):
        assert np.array_equal(PrivateRidge(**named).fit(source).coef_, wanted)
    by_position = PrivateRidge(**(named | CLINIC)).fit(frame, y)
    assert np.array_equal(by_position.coef_, wanted)
    assert by_position.model_.feature_names_ == ("age", "bmi")


def test_labels_are_features() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(0, 100, 20_000), "sex": rng.choice(["F", "M"], 20_000)})
    y = 10 + 0.2 * frame["age"] + 5 * (frame["sex"] == "M")
    schema = Schema(columns=(Column.number("age", lower=0, upper=100), Column.category("sex", ["F", "M"])))
    m = PrivateRidge(epsilon=5, x_bounds=schema, y_bounds=(0, 40)).fit(frame, y)
    assert m.model_.feature_names_ == ("age", "sex=M")
    assert m.coef_ == pytest.approx([0.2, 5], abs=0.7)


def test_a_seed_is_a_simulation(ledger: Ledger, tmp_path: Path) -> None:
    X, y = clinic(200)
    one, two = (PrivateRidge(epsilon=1, random_state=5, **CLINIC).fit(X, y) for _ in range(2))
    assert np.array_equal(one.coef_, two.coef_)
    assert one.guarantee_.simulated
    assert "NOT PRIVATE" in str(one.model_)
    with pytest.raises(SimulatedError):
        one.release_.save(tmp_path / "x.json")
    with pytest.raises(SimulatedError):
        one.model_.save(tmp_path / "m.json")
    with pytest.raises(SimulatedError, match="a seeded result is not private, so it cannot be charged to a ledger"):
        PrivateRidge(epsilon=1, random_state=5, ledger=ledger, **CLINIC).fit("no such file")
    assert ledger.spent.epsilon == 0


def test_two_private_runs_differ() -> None:
    X, y = clinic(200)
    assert not np.array_equal(*(PrivateRidge(epsilon=1, **CLINIC).fit(X, y).coef_ for _ in range(2)))


def test_a_spent_budget_refuses(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l", name="l", unit="patient", epsilon=3, delta="1e-5", accounting="sums")
    X, y = clinic(100)
    for _ in range(3):
        PrivateRidge(epsilon=1, ledger=ledger, **CLINIC).fit(X, y)
    with pytest.raises(BudgetExceeded):
        PrivateRidge(epsilon=1, ledger=ledger, **CLINIC).fit(X, y)


def test_asking_again_in_a_study_returns_identical_bytes(ledger: Ledger) -> None:
    key = generate_key()
    study = Study(
        name="dose", features=Schema.of_bounds([(0, 120), (10, 60)]), target=Column.number("y", lower=0, upper=100), epsilon=1,
        unit="patient", organisations={"north": key.public_key()},
    )  # fmt: skip
    X, y = clinic(300)
    ask = {"study": study, "organisation": "north", "key": key, "ledger": ledger}
    first, second = (PrivateRidge(**ask).fit(X, y).release_.to_json() for _ in range(2))
    assert first == second
    assert ledger.spent.epsilon == 1
    other = Study(**{**{name: getattr(study, name) for name in study.__dataclass_fields__}, "name": "second", "epsilon": "10"})
    with pytest.raises(BudgetExceeded):
        PrivateRidge(**(ask | {"study": other})).fit(X, y)


def test_a_study_says_everything() -> None:
    study = Study(features=Schema.of_bounds([(0, 1)]), target=Column.number("y", lower=0, upper=1), epsilon=1)
    with pytest.raises(ParameterError, match="epsilon must be left out when a study says it; got 1"):
        PrivateRidge(study=study, epsilon=1)
    with pytest.raises(ParameterError, match=r"study must be a Study; got str. Read one with Study.load"):
        PrivateRidge(study="study.json")
    signed = Study(
        features=Schema.of_bounds([(0, 1)]), target=Column.number("y", lower=0, upper=1), epsilon=1,
        organisations={"north": generate_key().public_key()},
    )  # fmt: skip
    with pytest.raises(ParameterError, match="organisation must be one of 'north'"):
        PrivateRidge(study=signed)


@pytest.mark.parametrize(
    ("terms", "error", "message"),
    [
        ({"epsilon": None}, ParameterError, "epsilon must be given; got None. It has no default."),
        ({"epsilon": -1.0}, ParameterError, "epsilon must be finite and > 0; got -1.0."),
        ({"x_bounds": None}, BoundsError, "x_bounds must be declared. Bounds must not come from the data"),
        ({"y_bounds": None}, BoundsError, "y_bounds must be declared. Bounds must not come from the data"),
        ({"x_bounds": 5}, BoundsError, "x_bounds must be pairs (lower, upper), by position or by name; got 5"),
        ({"x_bounds": [(1, 0), (0, 1)]}, BoundsError, "lower < upper"),
        ({"y_bounds": (1, 1)}, BoundsError, "lower < upper"),
        ({"y_bounds": {"a": (0, 1), "b": (0, 1)}}, ParameterError, "y_bounds must be one name with its pair"),
        ({"random_state": 0.5}, ParameterError, "random_state must be None or a whole number >= 0"),
        ({"organisation": ""}, ParameterError, "organisation must be a non-empty string"),
        ({"method": "ols"}, ParameterError, "method must be one of"),
    ],
)
def test_bad_parameters_are_refused_at_construction(terms: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        PrivateRidge(**({"epsilon": 1} | CLINIC | terms))
    assert message in str(caught.value)


def test_set_params_is_checked_again() -> None:
    m = PrivateRidge(epsilon=1, **CLINIC).set_params(epsilon=-1)
    with pytest.raises(ParameterError, match="epsilon must be finite and > 0"):
        m.fit(*clinic(10))


def test_the_number_of_rows_must_fit_delta_where_it_is_public() -> None:
    X, y = clinic(200)
    with pytest.raises(ParameterError, match=r"delta must be below 1 / \(number of rows\); got 0.01"):
        PrivateRidge(epsilon=1, delta=0.01, **CLINIC).fit(X, y)
    assert PrivateRidge(epsilon=1, delta=0.01, relation="add-remove", **CLINIC).fit(X, y).release_["rows"] is None


def test_an_empty_table_is_refused_only_where_its_size_is_public() -> None:
    empty = np.zeros((0, 2)), np.zeros(0)
    with pytest.raises(DataError, match="the table must have at least one row; it has none"):
        PrivateRidge(epsilon=1, **CLINIC).fit(*empty)
    assert np.isfinite(PrivateRidge(epsilon=1, relation="add-remove", **CLINIC).fit(*empty).coef_).all()


def test_clone_params_and_pickle(ledger: Ledger) -> None:
    m = PrivateRidge(epsilon=0.5, ledger=ledger, **CLINIC)
    assert clone(m).get_params() == m.get_params()
    fitted = m.fit(*clinic(100))
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.coef_, fitted.coef_)
    assert again.release_ == fitted.release_


def test_a_private_key_may_be_a_path_and_never_enters_a_pickle(tmp_path: Path) -> None:
    key = generate_key()
    save_key(key, tmp_path / "k.pem")
    X, y = clinic(50)
    by_path = PrivateRidge(epsilon=1, signing_key=tmp_path / "k.pem", **CLINIC)
    assert clone(by_path).fit(X, y).release_.verify(key.public_key()).trusted
    secret = key.private_bytes_raw()
    held = PrivateRidge(epsilon=1, signing_key=key, **CLINIC).fit(X, y)
    stored = pickle.dumps(held)
    assert secret not in stored
    assert pickle.loads(stored).key is None
    with pytest.raises(ParameterError, match="key must be a private Ed25519 key or the path of one; got Ed25519PublicKey"):
        PrivateRidge(epsilon=1, signing_key=key.public_key(), **CLINIC).fit(X, y)


def test_an_unfitted_model_says_so() -> None:
    with pytest.raises(NotFittedError):
        PrivateRidge(epsilon=1, **CLINIC).predict(np.zeros((1, 2)))


def test_objpert_has_no_intervals() -> None:
    m = PrivateRidge(epsilon=1, method="objpert", **CLINIC).fit(*clinic(100))
    with pytest.raises(ParameterError, match="intervals must be asked of method 'pool'; got 'average'"):
        m.conf_int()


def test_a_public_model_survives_its_file(tmp_path: Path) -> None:
    X, y = clinic(300)
    model = PrivateRidge(epsilon=1, **CLINIC).fit(X, y).model_
    model.save(tmp_path / "m.json")
    again = PublicModel.load(tmp_path / "m.json")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.predict_interval(X[:3]), model.predict_interval(X[:3]))
    (tmp_path / "bad.json").write_text('{"format": "sabun-regression-model-1"}')
    with pytest.raises(DataError, match=r"must be a model file written by PublicModel.save"):
        PublicModel.load(tmp_path / "bad.json")


def test_prediction_intervals_hold_new_records() -> None:
    X, y = clinic(5000)
    m = PrivateRidge(epsilon=2, **CLINIC).fit(X, y)
    new, truth = clinic(2000, seed=9)
    low, high = m.predict_interval(new).T
    assert 0.88 < np.mean((low <= truth) & (truth <= high)) < 0.99
    with pytest.raises(ParameterError, match="confidence must be above 0 and below 1; got 95"):
        m.conf_int(95)


def test_it_works_inside_scikit_learn() -> None:
    X, y = clinic(3000)
    scores = cross_val_score(PrivateRidge(epsilon=5, **CLINIC), X, y, cv=3)
    assert scores.min() > 0.7


AGREED = unit_study(2, name="s", organisations={name: generate_key().public_key() for name in ("A", "B")})
ZEROS = np.zeros((5, 2)), np.zeros(5)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (
            {"mechanism": "objpert"},
            "method must be left out, or the study's 'ssp-gauss', when a study says it; got 'objpert'",
        ),
        ({"records_per_person": 50}, "records_per_person must be left out, or the study's 1, when a study says it; got 50"),
        ({"coef_bound": 7}, "coef_bound must be left out, or the study's 1, when a study says it; got 7"),
    ],
)
def test_a_term_that_contradicts_the_study_is_refused(terms: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        PrivateRidge(study=AGREED, organisation="A", **terms)
    assert message in str(caught.value)


def test_an_intercept_that_contradicts_the_study_is_refused() -> None:
    study = Study(features=Schema.of_bounds([(0, 1)]), target=Column.number("y", lower=0, upper=1), epsilon=1)
    with pytest.raises(ParameterError, match="fit_intercept must be left out, or the study's True"):
        PrivateRidge(study=study, fit_intercept=False)


def test_a_term_that_agrees_with_the_study_is_taken() -> None:
    model = PrivateRidge(study=AGREED, organisation="A", coef_bound="1", fit_intercept=False, records_per_person=1)
    assert model.fit(*ZEROS).study_.hash == AGREED.hash


@pytest.mark.parametrize("rows", [[], [[0.1, 0.2]]])
def test_the_records_of_a_list_do_not_decide_how_many_coefficients_there_are(rows: list[list[float]]) -> None:
    """Under add-remove an empty list gave one coefficient, its neighbour two."""
    targets = [0.1] * len(rows)
    terms: dict[str, Any] = {"epsilon": 1, "y_bounds": (-1, 1), "relation": "add-remove"}
    with pytest.raises(BoundsError, match="x_bounds must hold a pair for each column where X is a list of rows; got one pair"):
        PrivateRidge(x_bounds=(-1, 1), **terms).fit(rows, targets)
    fitted = PrivateRidge(x_bounds=[(-1, 1)] * 2, **terms).fit(rows, targets)
    assert fitted.coef_.shape == (2,)
    assert fitted.study_.hash == PrivateRidge(x_bounds=(-1, 1), **terms).fit(np.zeros((0, 2)), np.zeros(0)).study_.hash


def test_a_ledger_that_no_method_can_charge_is_refused_at_construction(tmp_path: Path) -> None:
    local = Ledger.create(tmp_path / "local", name="phones", relation="local", epsilon=1)
    words = "ledger must be kept for replace-one or add-remove neighbours, the only ones this promise is about; 'phones' is"
    with pytest.raises(ParameterError, match=words):
        PrivateRidge(epsilon=1, ledger=local, **CLINIC)
    with pytest.raises(ParameterError, match="ledger must be kept for replace-one neighbours"):
        PrivateRidge(study=AGREED, organisation="A", ledger=local)
    wrong: Any = "book"
    for terms in ({"epsilon": 1, **CLINIC}, {"study": AGREED, "organisation": "A"}):
        with pytest.raises(ParameterError, match="ledger must be a Ledger or None"):
            PrivateRidge(ledger=wrong, **terms)


def test_sums_are_read_once_and_answered_on_their_own_terms(tmp_path: Path) -> None:
    X, y = clinic(300)
    ledger = Ledger.create(tmp_path / "book", name="clinic", epsilon=5, delta="1e-4")
    model = PrivateRidge(epsilon=1, ledger=ledger, retry_key="monday", **CLINIC)
    sums = model.read(X, y)
    assert sums.state.rows == 300
    assert ledger.entries() == ()
    first = model.fit(sums).release_
    assert model.fit(X, y).release_.to_json() == first.to_json()
    assert len(ledger.entries()) == 1
    other = PrivateRidge(epsilon=1, x_bounds=[(0, 120), (10, 61)], y_bounds=(0, 100))
    with pytest.raises(ParameterError, match="X must be sums that were read on these terms; columns or bounds differ"):
        other.fit(sums)
    one_pair = PrivateRidge(epsilon=1, x_bounds=(0, 120), y_bounds=(0, 100))
    assert one_pair.fit(one_pair.read(X, y)).study_.hash == one_pair.fit(X, y).study_.hash
