from __future__ import annotations

import pickle
import warnings
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from outliers import brute
from sabun.errors import BudgetExceeded, DataError, ParameterError, SimulatedError
from sabun.ledger import Ledger
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice, outlier_degrees
from sabun.outliers.settings import METHODS
from sabun.privacy import rho_of
from sabun.records import Column, Schema
from sabun.release import Release


def table(n: int = 300, d: int = 2) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(n - 6, d)), rng.normal(size=(6, d)) * 3 + 20])


def delta_for(mechanism: str) -> float:
    return 0.0 if mechanism in ("power", "global-laplace") else 1e-6


@pytest.mark.parametrize("mechanism", METHODS)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_every_mechanism_gives_a_whole_count_in_range(mechanism: str, relation: str) -> None:
    if mechanism == "paper" and relation == "add-remove":
        return
    made = OutlierCount(k=5, radius=1, epsilon=1, delta=delta_for(mechanism), mechanism=mechanism, relation=relation).fit(
        table()
    )
    assert isinstance(made.count_, int)
    assert made.count_ >= 0
    assert made.count_ <= 300 or relation == "add-remove"
    assert made.guarantee_.relation == relation
    assert not made.guarantee_.simulated
    assert (made.interval_ is None) == (mechanism == "paper")


def test_a_large_epsilon_gives_the_exact_count_and_a_tight_interval() -> None:
    exact = int((outlier_degrees(table(), radius=1) < 5).sum())
    made = OutlierCount(k=5, radius=1, epsilon=5000).fit(table())
    assert made.count_ == exact
    assert made.interval_ == (exact, exact)


def test_the_interval_covers_as_often_as_it_says() -> None:
    points = table(200, 1)
    exact = int((outlier_degrees(points, radius=0.5) < 3).sum())
    hits = sum(
        low <= exact <= high
        for seed in range(150)
        for low, high in [
            OutlierCount(k=3, radius=0.5, epsilon=2, confidence=0.8, random_state=seed).fit(points).interval_ or (1, 0)
        ]
    )
    assert hits >= 115


def test_the_paper_promises_nothing_and_a_ledger_refuses_it(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "book", name="book", epsilon=1000, delta=0.5)
    estimator = OutlierCount(k=5, radius=1, epsilon=1, delta=1e-6, mechanism="paper")
    assert estimator.fit(table()).guarantee_.epsilon == float("inf")
    with pytest.raises(BudgetExceeded):
        estimator.set_params(ledger=ledger).fit(table())


def test_few_records_are_all_outliers_without_noise() -> None:
    made = OutlierCount(k=5, radius=1, epsilon=0.01).fit(np.zeros((5, 2)))
    assert (made.count_, made.interval_) == (5, (5, 5))


def test_under_add_remove_few_records_are_noisy_and_the_size_is_not_published() -> None:
    counts = {OutlierCount(k=5, radius=1, epsilon=0.1, relation="add-remove").fit(np.zeros((5, 2))).count_ for _ in range(12)}
    assert len(counts) > 1
    made = OutlierCount(k=5, radius=1, epsilon=1, relation="add-remove").fit(table())
    assert "records" not in made.release_.provenance.parameters
    assert b"300" not in made.release_.to_json().replace(str(made.release_.value).encode(), b"")


def test_the_noise_scale_appears_nowhere_without_an_error_bar() -> None:
    made = OutlierCount(k=5, radius=1, epsilon=1, error_bar=0).fit(table())
    assert set(made.release_.value) == {"count"}
    assert made.interval_ is None
    public = {name for name in vars(made) if not name.startswith("__")}
    assert public == {*made.get_params(), "count_", "interval_", "guarantee_", "n_features_in_", "release_"}


def test_the_ledger_is_charged_before_and_for_everything(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "book", name="clinic", unit="patient", epsilon=1)
    made = OutlierCount(k=5, radius=1, epsilon=0.4, ledger=ledger).fit(table())
    assert ledger.remaining.epsilon == Fraction(3, 5)
    assert made.guarantee_.unit == "patient"
    assert "each patient has at most one row" in made.guarantee_.assumptions
    made.release_.save(tmp_path / "count.json")
    assert Release.load(tmp_path / "count.json")["count"] == made.count_
    with pytest.raises(BudgetExceeded):
        OutlierCount(k=5, radius=1, epsilon=0.7, ledger=ledger).fit(table())
    assert ledger.remaining.epsilon == Fraction(3, 5)


def test_a_key_returns_the_same_count_for_free(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "book", name="clinic", epsilon=1)
    first = OutlierCount(k=5, radius=1, epsilon=0.4, ledger=ledger, key="monday").fit(table())
    again = OutlierCount(k=5, radius=1, epsilon=0.4, ledger=ledger, key="monday").fit(table())
    assert first.release_.to_json() == again.release_.to_json()
    assert ledger.remaining.epsilon == Fraction(3, 5)


def test_a_seeded_count_is_simulated_and_cannot_be_charged_or_saved(tmp_path: Path) -> None:
    made = OutlierCount(k=5, radius=1, epsilon=1, random_state=3).fit(table())
    assert made.guarantee_.simulated
    assert made.count_ == OutlierCount(k=5, radius=1, epsilon=1, random_state=3).fit(table()).count_
    with pytest.raises(SimulatedError):
        made.release_.save(tmp_path / "no.json")
    ledger = Ledger.create(tmp_path / "book", name="clinic", epsilon=1)
    with pytest.raises(SimulatedError):
        OutlierCount(k=5, radius=1, epsilon=1, random_state=3, ledger=ledger).fit(table())
    assert ledger.remaining.epsilon == 1


def test_the_schema_bounds_and_scales_publicly() -> None:
    schema = Schema(columns=[Column.number("a", lower=0, upper=10), Column.category("c", ["x", "y"])])
    rows = [[5.0, "x"]] * 60 + [[float("nan"), "?"], [1e300, "y"], [None, None]]
    made = OutlierCount(k=5, radius=0.2, epsilon=5000, schema=schema).fit(rows)
    assert made.count_ == 3
    assert made.release_.provenance.schema_hash == schema.hash


def test_columns_choose_the_coordinates() -> None:
    points = np.column_stack([np.zeros(100), 100.0 * np.arange(100)])
    assert OutlierCount(k=5, radius=1, epsilon=5000, columns=[0]).fit(points).count_ == 0
    assert OutlierCount(k=5, radius=1, epsilon=5000, columns=["x1"]).fit(points).count_ == 100


def test_frames_are_read_by_name() -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [0.0] * 50 + [9.0], "b": range(51)})
    assert OutlierCount(k=5, radius=1, epsilon=5000, columns=["a"]).fit(frame).count_ == 1


def test_the_estimator_protocol_holds() -> None:
    estimator = OutlierCount(k=3, radius=1.5, epsilon=0.5, cover="link-core")
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    fitted = pickle.loads(pickle.dumps(estimator.fit(table())))
    assert fitted.count_ == estimator.count_
    with pytest.raises(ParameterError):
        estimator.set_params(k=0).fit(table())


BAD = [
    ({"k": 0}, "k must be a whole number >= 1; got 0"),
    ({"k": True}, "k must be a whole number >= 1; got True"),
    ({"k": 2.5}, "k must be a whole number >= 1; got 2.5"),
    ({"radius": 0}, "radius must be a number from 1e-150 to 1e\\+150"),
    ({"radius": float("inf")}, "radius must be a number"),
    ({"radius": "auto"}, "a public reference table .suggest_radius; on the command line: sabun outliers radius"),
    ({"epsilon": 0}, "epsilon must be finite and > 0; got 0"),
    ({"epsilon": float("inf")}, "epsilon must be finite and > 0"),
    ({"delta": 1e-6}, "delta must be 0 with method 'power', which needs none"),
    ({"mechanism": "gaussian"}, "delta must be above 0 and below 1 with method 'gaussian'"),
    ({"mechanism": "laplace", "delta": 1e-6, "beta": 0.1}, "beta must be left out"),
    ({"mechanism": "global-laplace", "beta": 0.1}, "beta must be left out: only smooth mechanisms have one"),
    ({"beta": 0.7}, "beta must be below the epsilon of the count"),
    ({"beta": 0}, "beta must be finite and > 0"),
    ({"mechanism": "magic"}, "method must be one of"),
    ({"relation": "local"}, "relation must be one of"),
    ({"mechanism": "paper", "delta": 1e-6, "relation": "add-remove"}, "relation must be 'replace-one' with method 'paper'"),
    ({"cover": "paper"}, "cover must be one of"),
    ({"error_bar": 1}, "error_bar must be a share of epsilon, at least 0 and below 1"),
    ({"confidence": 1}, "confidence must be above 0 and below 1"),
    ({"columns": "age"}, "columns must be a list of column numbers or names"),
    ({"schema": 3}, "schema must be a Schema or None"),
    ({"ledger": "book"}, "ledger must be a Ledger or None"),
    ({"random_state": -1}, "random_state must be None or a whole number >= 0"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_parameters_are_refused_at_construction(change: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        OutlierCount(**({"k": 5, "radius": 1.0, "epsilon": 1.0} | change))  # type: ignore[arg-type]


def test_an_infinite_variance_is_announced() -> None:
    with pytest.warns(UserWarning, match="infinite variance"):
        OutlierCount(radius=1, epsilon=1, beta=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OutlierCount(radius=1, epsilon=1, beta=0.2)


BAD_TABLES = [
    (np.zeros(5), "2 dimensions"),
    (np.zeros((0, 2)), "at least one row"),
    (np.zeros((3, 0)), "at least one column"),
    (np.array([["a", "b"]]), "must hold numbers"),
    (np.array([[True, False]]), "must hold numbers"),
    (np.array([[1j, 2.0]]), "must hold real numbers"),
    (np.array([[None, 2.0]]), "must hold numbers"),
    (np.array([[np.nan, 2.0]]), "finite numbers"),
    (np.array([[np.inf, 2.0]]), "finite numbers"),
    (np.array([[2e150, 2.0]]), "finite numbers"),
    ([[1.0], [1.0, 2.0]], "rows of different lengths"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_TABLES)
def test_bad_tables_are_refused_without_telling_where(bad: object, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        OutlierCount(radius=1, epsilon=1).fit(bad)
    assert "nan" not in str(caught.value)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DataError, match="has no column 'zip'"):
        OutlierCount(radius=1, epsilon=1, columns=["zip"]).fit(np.zeros((9, 2)))
    with pytest.raises(DataError, match="has no column number 7"):
        OutlierCount(radius=1, epsilon=1, columns=[7]).fit(np.zeros((9, 2)))


def test_a_count_equals_the_plain_definition_whatever_the_cover() -> None:
    points = np.round(np.random.default_rng(8).normal(size=(60, 2)), 1)
    exact = brute.count(tuple(map(tuple, points.tolist())), 3, 0.3)
    for cover in ("degeneracy", "link-core", "exact"):
        assert OutlierCount(k=3, radius=0.3, epsilon=10_000, cover=cover).fit(points).count_ == exact


def test_older_names_of_parameters_mean_the_same() -> None:
    older = OutlierCount(radius=1, epsilon=1, mechanism="global-laplace", key=None)
    newer = OutlierCount(radius=1, epsilon=1, method="global-laplace")
    assert older.get_params() == newer.get_params()
    assert older.mechanism == newer.method == "global-laplace"
    assert older.plan(n=500, d=2) == newer.plan(n_records=500, dimensions=2)
    assert newer.plan(n_records=500, dimensions=2).records == 500


def test_global_gaussian_noise_states_its_price_and_smooth_noise_its_stated_amounts(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", epsilon=3, delta="1e-6")
    for method in ("global-gaussian", "gaussian"):
        OutlierCount(k=5, radius=1, epsilon=0.5, delta="1e-7", method=method, ledger=book).fit(table())
    whole, smooth = book.entries()
    assert (whole.form, smooth.form, smooth.price) == ("curve", "stated", None)
    [noise] = whole.price["events"]  # type: ignore[index]
    rho = Fraction(noise["l2_squared"]) / (2 * Fraction(noise["sigma_squared"]))
    assert whole.tau == pytest.approx(9 * rho)
    assert rho_of("1/2", "1e-7") * Fraction(99, 100) < rho <= rho_of("1/2", "1e-7")


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("method", ["global-laplace", "global-gaussian"])
def test_the_interval_around_noise_of_one_size_misses_as_often_as_it_says(method: str, confidence: float) -> None:
    """By the noise's own law, without drawing any: both tails beyond half the width together, neither more nor far fewer."""
    delta = 1e-6 if method == "global-gaussian" else 0
    asked = OutlierCount(radius=1, epsilon=1, delta=delta, method=method, confidence=confidence)
    width = asked._reach(SimpleNamespace(method=method), Fraction(100 if method == "global-laplace" else 100**2))  # type: ignore[arg-type]
    steps = np.arange(5000.0)
    law = np.exp(-steps / 100 if method == "global-laplace" else -(steps**2) / (2 * 100**2))
    missed = 2 * law[width + 1 :].sum() / (2 * law.sum() - 1)
    assert 0.9 * (1 - confidence) <= missed <= 1 - confidence


def test_what_is_assumed_of_cells_is_said_exactly_where_no_bounds_are_declared() -> None:
    words = "every cell is a finite number of at most 1e150 in size, for whoever the rows are about"
    for schema in (None, Schema.of_bounds({"x0": (-30, 30), "x1": (-30, 30)})):
        for asked in (
            OutlierCount(radius=1, epsilon=1, schema=schema),
            RegionCount(regions={"all": {"x0": (None, None)}}, radius=1, epsilon=1, schema=schema),
            SubspaceChoice(subspaces={"a": ["x0"], "b": ["x1"]}, radius=1, epsilon=1, schema=schema),
        ):
            assert (words in asked.fit(table()).guarantee_.assumptions) == (schema is None), type(asked)
