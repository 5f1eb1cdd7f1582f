from __future__ import annotations

import pickle
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sabun import Column, Ledger, Release, Schema
from sabun.density import CoverageWarning, DensityRatio
from sabun.density.export import table_of
from sabun.errors import BoundsError, BudgetExceeded, DataError, IncompatibleGuarantees, ParameterError, SimulatedError
from sabun.privacy import rho_of


@pytest.fixture(scope="module")
def tables() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal([2.0, 0.0], [0.5, 1.0], (3000, 2)), rng.normal([1.0, 0.0], [1.0, 1.0], (400, 2))


@pytest.fixture(scope="module")
def fitted(tables: tuple[np.ndarray, np.ndarray]) -> DensityRatio:
    return DensityRatio(epsilon=1.0).fit(private=tables[0], public=tables[1])


def test_weights_are_nonnegative_with_mean_one(fitted: DensityRatio) -> None:
    assert fitted.weights_.shape == (400,)
    assert (fitted.weights_ >= 0).all()
    assert fitted.weights_.mean() == pytest.approx(1.0)


def test_answers_are_near_the_truth(fitted: DensityRatio, tables: tuple[np.ndarray, np.ndarray]) -> None:
    private, public = tables
    assert abs(fitted.mean(0) - private[:, 0].mean()) < 0.15 < abs(public[:, 0].mean() - private[:, 0].mean())
    answer = fitted.query(lambda t: t[:, 0] > 2)
    assert answer.interval[0] < (private[:, 0] > 2).mean() < answer.interval[1]
    assert answer.noise_error > 0
    assert "are off the public table's support" in str(answer)


def test_ways_to_ask_agree(fitted: DensityRatio, tables: tuple[np.ndarray, np.ndarray]) -> None:
    public = tables[1]
    expected = fitted.mean(0)
    assert fitted.mean(lambda t: t[:, 0]) == pytest.approx(expected)
    assert fitted.mean(lambda row: row[0]) == pytest.approx(expected)
    assert fitted.mean(public[:, 0]) == pytest.approx(expected)
    assert fitted.mean(lambda row: row)[0] == pytest.approx(expected)
    assert fitted.query(0, ci=False) == pytest.approx(expected)
    assert fitted.query(0).estimate == pytest.approx(expected)


def test_the_guarantee_is_complete(fitted: DensityRatio) -> None:
    promise = fitted.guarantee_
    assert (promise.epsilon, promise.delta, promise.relation, promise.unit) == (Fraction(1), 0, "replace-one", "record")
    assert "the number of private rows is public" in promise.assumptions
    assert "each record has at most one row" in promise.assumptions
    assert not promise.simulated
    assert fitted.release_.provenance.parameters["private_rows"] == 3000


def test_everything_follows_from_the_release(fitted: DensityRatio, tables: tuple[np.ndarray, np.ndarray]) -> None:
    again = Release.from_json(fitted.release_.to_json())
    assert np.array_equal(again["weights"], fitted.weights_)
    assert np.allclose(fitted.predict(tables[1], min_support=0.0), fitted.weights_, atol=1e-6)


def test_points_off_the_public_support_get_no_number(fitted: DensityRatio) -> None:
    scores = fitted.support_score([[1.0, 0.0], [50.0, 0.0], [np.nan, 0.0]])
    assert scores[0] > 0.9
    assert (scores[1:] < 0.01).all()
    predicted = fitted.predict([[2.0, 0.0], [50.0, 0.0], [np.nan, 0.0]])
    assert np.isfinite(predicted[0])
    assert np.isnan(predicted[1:]).all()
    assert np.isfinite(fitted.predict([[50.0, 0.0]], min_support=0)).all()


def test_samples_look_like_the_private_table(fitted: DensityRatio) -> None:
    drawn = fitted.sample(2000)
    assert drawn.shape == (2000, 2)
    assert abs(drawn[:, 0].mean() - fitted.mean(0)) < 0.1
    assert np.array_equal(fitted.sample(5, random_state=1), fitted.sample(5, random_state=1))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_every_relation_and_noise_works(tables: tuple[np.ndarray, np.ndarray], relation: str, delta: float | None) -> None:
    ratio = DensityRatio(epsilon=0.5, delta=delta, relation=relation, n_public=3000).fit(private=tables[0], public=tables[1])
    assert ratio.guarantee_.relation == relation
    assert ratio.guarantee_.delta == (0 if delta is None else Fraction(1, 10**6))
    assert abs(ratio.mean(0) - 2.0) < 0.2
    assert ("private_rows" in ratio.release_.provenance.parameters) == (relation == "replace-one")


def test_under_add_remove_an_empty_table_is_answered_too(tables: tuple[np.ndarray, np.ndarray]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        ratio = DensityRatio(epsilon=0.1, relation="add-remove").fit(private=np.empty((0, 2)), public=tables[1])
    assert ratio.weights_.mean() == pytest.approx(1.0)
    with pytest.raises(DataError, match="the private table must have at least 1 row"):
        DensityRatio(epsilon=0.1).fit(private=np.empty((0, 2)), public=tables[1])


def test_parts_merged_in_any_order_equal_the_whole(tables: tuple[np.ndarray, np.ndarray]) -> None:
    private, public = tables
    whole = DensityRatio(epsilon=1, random_state=5).set_public(public).partial_fit(private=private)
    parts = [
        DensityRatio(epsilon=1, random_state=5).set_public(public).partial_fit(private=p) for p in np.array_split(private, 7)
    ]
    order = np.random.default_rng(1).permutation(7)
    merged = parts[order[0]]
    for index in order[1:]:
        merged.merge(parts[index])
    assert list(merged._part.state.sums) == list(whole._part.state.sums)
    assert merged._part.state.count == whole._part.state.count == 3000
    assert np.array_equal(merged.finalize().weights_, whole.finalize().weights_)
    assert np.array_equal(whole.weights_, DensityRatio(epsilon=1, random_state=5).fit(private=private, public=public).weights_)


def test_the_noise_is_drawn_once(tables: tuple[np.ndarray, np.ndarray]) -> None:
    ratio = DensityRatio(epsilon=1).fit(private=tables[0], public=tables[1])
    with pytest.raises(ParameterError, match="finalize must be called once; the noise was drawn already"):
        ratio.finalize()
    with pytest.raises(ParameterError, match="drawn already"):
        ratio.partial_fit(private=tables[0])


def test_a_part_that_was_merged_gives_its_sums_up(tables: tuple[np.ndarray, np.ndarray]) -> None:
    one, other = (DensityRatio(epsilon=1).set_public(tables[1]).partial_fit(private=tables[0]) for _ in range(2))
    one.merge(other)
    with pytest.raises(ParameterError, match="or the sums were merged into another part"):
        one.merge(other)
    with pytest.raises(ParameterError, match="other must be another part"):
        one.merge(one)


def test_parameters_changed_after_the_plan_do_not_change_the_promise(tables: tuple[np.ndarray, np.ndarray]) -> None:
    ratio = DensityRatio(epsilon=1).set_public(tables[1]).partial_fit(private=tables[0])
    ratio.set_params(relation="add-remove", epsilon=0.001, delta=1e-6, random_state=1)
    promise = ratio.finalize().guarantee_
    assert (promise.epsilon, promise.delta, promise.relation, promise.simulated) == (1, 0, "replace-one", False)


def test_parts_of_different_plans_are_not_merged(tables: tuple[np.ndarray, np.ndarray]) -> None:
    one, other = DensityRatio(epsilon=1).set_public(tables[1]), DensityRatio(epsilon=1, bandwidth=0.5).set_public(tables[1])
    with pytest.raises(ParameterError, match="both parts must be prepared with the same public table"):
        one.merge(other)


def test_the_state_before_the_noise_says_what_it_is(tables: tuple[np.ndarray, np.ndarray]) -> None:
    part = DensityRatio(epsilon=1).set_public(tables[1]).partial_fit(private=tables[0])
    assert "NOT PRIVATE" in repr(part._part.state)
    assert len(pickle.dumps(part._part.state.sums)) < 10_000


def test_steps_out_of_order_are_refused() -> None:
    with pytest.raises(NotFittedError, match="set_public must be called before"):
        DensityRatio(epsilon=1).partial_fit(private=[[1.0]])
    with pytest.raises(NotFittedError, match=r"fit \(or finalize\) must be called first"):
        DensityRatio(epsilon=1).mean(0)


def test_a_ledger_is_charged_before_the_release(tables: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l", name="clinic", unit="patient", epsilon=1)
    ratio = DensityRatio(epsilon=0.6, ledger=ledger).fit(private=tables[0], public=tables[1])
    assert ledger.remaining.epsilon == Fraction(2, 5)
    assert ratio.guarantee_.unit == "patient"
    assert "each patient has at most one row" in ratio.guarantee_.assumptions
    with pytest.raises(BudgetExceeded):
        ratio.fit(private=tables[0], public=tables[1])
    assert not hasattr(ratio, "weights_")
    assert ledger.remaining.epsilon == Fraction(2, 5)


def test_the_relation_comes_from_the_ledger(tables: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l", name="clinic", relation="add-remove", epsilon=2)
    ratio = DensityRatio(epsilon=1, ledger=book).fit(private=tables[0], public=tables[1])
    assert ratio.guarantee_.relation == "add-remove"
    with pytest.raises(IncompatibleGuarantees):
        DensityRatio(epsilon=1, relation="replace-one", ledger=book).fit(private=tables[0], public=tables[1])
    assert book.remaining.epsilon == 1


def test_an_add_remove_release_costs_a_replace_one_ledger_no_more(
    tables: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=1)
    ratio = DensityRatio(epsilon=1, relation="add-remove", ledger=book).fit(private=tables[0], public=tables[1])
    assert book.remaining.epsilon == 0
    assert ratio.guarantee_.relation == "replace-one"


@pytest.mark.parametrize(("method", "relation"), [("rkhs", "replace-one"), ("rkhs", "add-remove"), ("ji-elkan", "replace-one")])
def test_gaussian_noise_states_its_price_to_a_ledger_with_an_order(
    tables: tuple[np.ndarray, np.ndarray], tmp_path: Path, method: str, relation: str
) -> None:
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=3, delta="1e-5")
    asked = {"epsilon": 0.5, "method": method, "relation": relation, "ledger": book}
    for delta in ("1e-6", None):
        DensityRatio(delta=delta, **asked).fit(private=tables[0], public=tables[1])
    gauss, pure = book.entries()
    assert (gauss.form, pure.form, pure.price) == ("curve", "stated", None)
    assert gauss.price["relation"] == "replace-one"  # noise for both relations costs such a ledger no more
    [noise] = gauss.price["events"]
    rho = Fraction(noise["l2_squared"]) / (2 * Fraction(noise["sigma_squared"]))
    assert rho_of("1/2", "1e-6") * Fraction(99, 100) < rho <= rho_of("1/2", "1e-6")
    book.verify()


def test_a_seeded_result_is_never_private(tables: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    ratio = DensityRatio(epsilon=1, random_state=3).fit(private=tables[0], public=tables[1])
    assert ratio.guarantee_.simulated
    for write in (
        lambda: ratio.release_.save(tmp_path / "r"),
        lambda: ratio.to_csv(tmp_path / "w.csv"),
        lambda: ratio.to_parquet(tmp_path / "w.parquet"),
    ):
        with pytest.raises(SimulatedError):
            write()
    assert list(tmp_path.iterdir()) == []
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=1)
    with pytest.raises(SimulatedError, match="cannot be charged to a ledger"):
        DensityRatio(epsilon=1, random_state=3, ledger=book).fit(private="absent.csv", public=tables[1])
    assert book.remaining.epsilon == 1


def test_two_private_runs_differ(tables: tuple[np.ndarray, np.ndarray]) -> None:
    one, other = (DensityRatio(epsilon=1).fit(private=tables[0], public=tables[1]).weights_ for _ in range(2))
    assert not np.array_equal(one, other)


def test_protocol_of_estimators(fitted: DensityRatio) -> None:
    params = fitted.get_params()
    assert clone(fitted).get_params() == params
    assert DensityRatio(**params).get_params() == params
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).weights_, fitted.weights_)
    changed = clone(fitted).set_params(epsilon=-1)
    with pytest.raises(ParameterError, match="epsilon must be finite and > 0; got -1"):
        changed.fit(private=[[1.0, 2.0]], public=[[1.0, 2.0], [2.0, 1.0]])


def frames(private: np.ndarray, public: np.ndarray) -> list[tuple[object, object]]:
    named = [pd.DataFrame(table, columns=["a", "b"]) for table in (private, public)]
    return [
        (named[0], named[1]),
        (pl.from_pandas(named[0]), pl.from_pandas(named[1])),
        (pa.Table.from_pandas(named[0]), pa.Table.from_pandas(named[1])),
        (named[0], pl.from_pandas(named[1])),
    ]


def test_every_kind_of_table_gives_the_same_weights(tables: tuple[np.ndarray, np.ndarray]) -> None:
    expected = DensityRatio(epsilon=1, random_state=1).fit(private=tables[0], public=tables[1]).weights_
    for private, public in frames(*tables):
        ratio = DensityRatio(epsilon=1, random_state=1).fit(private=private, public=public)
        assert np.allclose(ratio.weights_, expected)
        assert ratio.mean("a") == pytest.approx(float(expected @ tables[1][:, 0]) / 400)
        assert len(ratio.sample(3)) == 3
        columns = getattr(ratio.to_frame(), "column_names", None) or ratio.to_frame().columns
        assert list(columns) == ["a", "b", "weight"]


def test_one_column_may_be_flat() -> None:
    rng = np.random.default_rng(0)
    ratio = DensityRatio(epsilon=1).fit(private=rng.normal(1, 0.5, 2000), public=rng.normal(0.5, 1, 300))
    assert abs(ratio.mean(lambda t: t[:, 0]) - 1) < 0.15
    assert ratio.predict(np.array([1.0])).shape == (1,)


def test_frames_with_numbers_as_names_work(tables: tuple[np.ndarray, np.ndarray]) -> None:
    expected = DensityRatio(epsilon=1, random_state=1).fit(private=tables[0], public=tables[1])
    ratio = DensityRatio(epsilon=1, random_state=1).fit(private=pd.DataFrame(tables[0]), public=pd.DataFrame(tables[1]))
    assert np.allclose(ratio.weights_, expected.weights_)
    assert ratio.mean(0) == pytest.approx(expected.mean(0))
    assert len(ratio.predict(pd.DataFrame(tables[1]))) == 400


@pytest.mark.parametrize("kind", [pd.Series, pl.Series, list, tuple])
def test_one_column_may_be_a_series_or_a_list(kind: type) -> None:
    rng = np.random.default_rng(0)
    private, public = kind(rng.normal(1, 0.5, 900)), kind(rng.normal(0.5, 1, 100))
    ratio = DensityRatio(epsilon=1).fit(private=private, public=public)
    assert len(ratio.weights_) == len(ratio.to_frame()) == 100
    assert len(ratio.predict(public)) == 100


def test_other_columns_of_the_public_table_can_be_asked_for(tables: tuple[np.ndarray, np.ndarray]) -> None:
    public = pd.DataFrame(tables[1], columns=["a", "b"]).assign(note="x", outcome=lambda t: 3 * t.a)
    private = pd.DataFrame(tables[0], columns=["a", "b"])
    ratio = DensityRatio(epsilon=1, columns=["a", "b"]).fit(private=private, public=public)
    assert abs(ratio.mean("outcome") - 6) < 0.5
    with pytest.raises(DataError, match="column 'note' must hold numbers"):
        ratio.mean("note")
    with pytest.raises(DataError, match="the public table has no column 'c'"):
        ratio.mean("c")


def mixed(rows: int, share: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows, p=[share, 1 - share])
    return pd.DataFrame({"sex": sex, "age": rng.normal(np.where(sex == "F", 50, 35), 10, rows)})


SCHEMA = Schema(columns=[Column.category("sex", ["F", "M"]), Column.number("age", lower=0, upper=100)])


def test_categories_work_through_the_schema() -> None:
    private, public = mixed(5000, 0.7, 1), mixed(800, 0.3, 2)
    ratio = DensityRatio(epsilon=1, schema=SCHEMA).fit(private=private, public=public)
    assert abs(ratio.mean(lambda t: t.sex == "F") - 0.7) < 0.03
    assert abs(ratio.mean("age") - private.age.mean()) < 1
    assert ratio.release_.provenance.schema_hash == SCHEMA.hash
    assert ratio.predict(pd.DataFrame({"sex": ["F", "?"], "age": [50.0, None]})).shape == (2,)


def test_labels_without_a_schema_are_refused_by_name() -> None:
    with pytest.raises(DataError, match=r"column 'sex' of the public table must hold finite numbers.*schema"):
        DensityRatio(epsilon=1).fit(private=mixed(10, 0.5, 1), public=mixed(10, 0.5, 2))


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"epsilon": 0}, ParameterError, "epsilon must be finite and > 0; got 0"),
        ({"epsilon": 1e-300}, ParameterError, "epsilon must be at least 1e-9; got 1e-300"),
        ({"epsilon": float("inf")}, ParameterError, "epsilon must be finite and > 0; got inf"),
        ({"epsilon": float("nan")}, ParameterError, "epsilon must be a number; got nan"),
        ({"delta": -1e-6}, ParameterError, "delta must be at least 0 and below 1; got -1e-06"),
        ({"delta": 1}, ParameterError, "delta must be at least 0 and below 1; got 1"),
        ({"method": "kliep"}, ParameterError, "method must be one of 'rkhs'"),
        ({"relation": "local"}, ParameterError, "relation must be one of 'replace-one', 'add-remove'"),
        ({"bandwidth": 0}, ParameterError, "bandwidth must be finite and > 0; got 0"),
        ({"bandwidth": "scott"}, ParameterError, "bandwidth must be one of 'median'"),
        ({"tau2": 0}, ParameterError, "tau2 must be finite and > 0"),
        ({"n_centers": 1.5}, ParameterError, "n_centers must be a whole number >= 1; got 1.5"),
        ({"n_public": 0}, ParameterError, "n_public must be a whole number >= 1"),
        ({"method": "ulsif-b", "regularization": -1}, ParameterError, "regularization must be finite and > 0"),
        ({"standardize": 1}, ParameterError, "standardize must be True or False"),
        ({"method": "ji-elkan", "clip_norm": 0}, ParameterError, "clip_norm must be finite and > 0"),
        ({"random_state": "x"}, ParameterError, "random_state must be None or a whole number"),
        ({"ledger": "x"}, ParameterError, "ledger must be a Ledger or None"),
        ({"schema": {}}, ParameterError, "schema must be a Schema or None"),
        ({"columns": "ab"}, ParameterError, "columns must be a list of distinct names"),
        ({"columns": ["a"], "schema": SCHEMA}, ParameterError, "columns must be None beside a schema"),
        (
            {"method": "ulsif-b", "relation": "add-remove"},
            ParameterError,
            "relation must be 'replace-one' for method 'ulsif-b'",
        ),
        ({"method": "ulsif-b", "delta": 1e-6}, ParameterError, "delta must be None for method 'ulsif-b'"),
        ({"method": "ulsif-c"}, ParameterError, "accept_publishing_raw_records must be True for method 'ulsif-c'"),
        ({"method": "ulsif-a"}, BoundsError, "needs bounds.*must not come from the data"),
        ({"method": "ulsif-parametric"}, ParameterError, "basis must be a function of one record"),
        ({"method": "ulsif-parametric", "basis": len}, BoundsError, "basis has no bounds"),
        ({"basis": len, "basis_bounds": (0, 1)}, ParameterError, "basis must be None for method 'rkhs'"),
    ],
)
def test_bad_parameters_are_refused_at_construction(bad: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DensityRatio(**{"epsilon": 1, **bad})


def test_bad_public_tables_are_refused() -> None:
    with pytest.raises(DataError, match="the public table must have at least 2 rows; got 1"):
        DensityRatio(epsilon=1).set_public([[1.0]])
    with pytest.raises(DataError, match="column 'x1' of the public table must hold finite numbers"):
        DensityRatio(epsilon=1).set_public(np.array([[1.0, np.inf], [1.0, 2.0]]))
    with pytest.raises(DataError, match="must have a finite variance"):
        DensityRatio(epsilon=1).set_public(np.array([[1e300], [-1e300]]))
    with pytest.warns(UserWarning, match="column 'x0' is constant in the public table"):
        DensityRatio(epsilon=1).set_public(np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]))
    with pytest.raises(DataError, match="centers must be a table of finite numbers"):
        DensityRatio(epsilon=1, centers=[[np.nan]]).set_public([[1.0], [2.0]])
    with pytest.raises(DataError, match="there is none of that name"):
        DensityRatio(epsilon=1).set_public("absent.csv")


def test_tables_must_have_the_same_columns(tables: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(DataError, match="2 columns"):
        DensityRatio(epsilon=1).fit(private=np.ones((5, 3)), public=tables[1])


def test_a_large_delta_is_refused(tables: tuple[np.ndarray, np.ndarray]) -> None:
    for relation, known in (("replace-one", None), ("add-remove", 3000)):
        ratio = DensityRatio(epsilon=1, delta=0.001, relation=relation, n_public=known)
        with pytest.raises(ParameterError, match=r"delta must be below 1 / \(number of private rows"):
            ratio.fit(private=tables[0], public=tables[1])
    DensityRatio(epsilon=1, delta=0.001, allow_large_delta=True).fit(private=tables[0], public=tables[1])


def test_a_declared_number_of_rows_must_be_right(tables: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(DataError, match="the private table must have the number of rows that was declared") as caught:
        DensityRatio(epsilon=1, n_public=10).fit(private=tables[0], public=tables[1])
    assert "3000" not in str(caught.value)


def test_questions_that_make_no_sense_are_refused(fitted: DensityRatio) -> None:
    with pytest.raises(ParameterError, match="column must be a column number below 2; got 2"):
        fitted.mean(2)
    with pytest.raises(ParameterError, match="column must be a whole number; got 'a'"):
        fitted.mean("a")
    with pytest.raises(DataError, match="must give one number for each of the 400 public rows"):
        fitted.mean([1.0, 2.0])
    with pytest.raises(DataError, match="must be finite for every public row"):
        fitted.mean(np.full(400, np.nan))
    with pytest.raises(ParameterError, match="the function must accept the public table or one of its rows; it raised"):
        fitted.mean(lambda t: t.nothing)
    with pytest.raises(ParameterError, match="f must be one number for each row"):
        fitted.query(lambda t: t)
    with pytest.raises(ParameterError, match="confidence must be above 0 and below 1; got 2"):
        fitted.query(0, confidence=2)
    with pytest.raises(ParameterError, match="m must be a whole number >= 1"):
        fitted.sample(0)


def test_a_retry_key_gets_the_same_weights_for_free(tmp_path: Path, tables: tuple[np.ndarray, np.ndarray]) -> None:
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=4, delta=0.5, accounting="sums")
    methods: dict[str, dict[str, object]] = {
        "rkhs": {},
        "ulsif-a": {"bounds": [(-1, 5), (-4, 4)]},
        "ulsif-b": {},
        "ji-elkan": {},
    }
    for name, settings in methods.items():
        asked = {"epsilon": 1, "method": name, "ledger": book, "retry_key": name, **settings}
        one, again = (DensityRatio(**asked).fit(private=tables[0], public=tables[1]) for _ in range(2))
        assert np.array_equal(one.weights_, again.weights_)
        assert one.release_.to_json() == again.release_.to_json()
    assert book.remaining.epsilon == 0
    part = DensityRatio(epsilon=1, ledger=book, retry_key="rkhs").set_public(tables[1]).partial_fit(private=tables[0])
    assert np.array_equal(part.finalize().weights_, DensityRatio.restore(part.release_, public=tables[1]).weights_)


def test_a_retry_key_is_tied_to_the_public_table(tmp_path: Path, tables: tuple[np.ndarray, np.ndarray]) -> None:
    """Its cells are not among the published facts: without a look the old weights would stand beside the wrong rows."""
    private, public = tables
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=4)
    for name in ("rkhs", "ulsif-b"):
        asked = {"epsilon": 1, "method": name, "ledger": book, "retry_key": name}
        DensityRatio(**asked).fit(private=private, public=public)
        for other in (public[::-1], public + 0.5, public * [[1.0, -1.0]]):
            ratio = DensityRatio(**asked)
            with pytest.raises(ParameterError, match="retry_key must stand for weights of this public table"):
                ratio.fit(private=private, public=other)
            assert not hasattr(ratio, "weights_")
    assert book.remaining.epsilon == 2


def test_older_names_are_taken(fitted: DensityRatio, tables: tuple[np.ndarray, np.ndarray]) -> None:
    answer, older = fitted.query(0, confidence=0.8), fitted.query(0, level=0.8)
    assert answer == older
    assert (answer.confidence, answer.level, answer.to_dict()["level"]) == (0.8, 0.8, 0.8)
    ratio = DensityRatio(epsilon=1)
    assert ratio.plan(public=tables[1], private_size=500) == ratio.plan(public=tables[1], n_records=500)
    assert fitted.query(0, confidence=0.8, level=0.8) == answer
    with pytest.raises(ParameterError, match="confidence must be given one value; got one as confidence and another as level"):
        fitted.query(0, confidence=0.8, level=0.9)


def test_only_the_default_method_serves_a_ledger_for_add_remove(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=4, relation="add-remove")
    assert DensityRatio(epsilon=1, ledger=book)._terms().target.relation == "add-remove"
    with pytest.raises(ParameterError, match="ledger must be kept for replace-one neighbours, the only ones this promise"):
        DensityRatio(epsilon=1, ledger=book, method="ulsif-b")


@pytest.mark.filterwarnings("ignore::sabun.density.CoverageWarning")
def test_a_table_in_memory_gives_what_its_file_gives(tmp_path: Path) -> None:
    """The owner's picture is drawn from the table that the release was made of, which is then read once."""
    rng = np.random.default_rng(6)
    ages = [f"{value:.2f}" for value in rng.normal(45, 10, 296)] + ["", "061", "unknown", "1e9"]
    lines = [f"{sex},{age}" for sex, age in zip(rng.choice(["F", "M", "?", ""], 300), ages, strict=True)]
    (tmp_path / "p.csv").write_text("\n".join(["sex,age", *lines]) + "\n")
    found = [
        DensityRatio(epsilon=1, schema=SCHEMA, random_state=1).fit(private=private, public=mixed(60, 0.5, 3)).weights_
        for private in (tmp_path / "p.csv", table_of(tmp_path / "p.csv", SCHEMA))
    ]
    assert np.array_equal(*found)
