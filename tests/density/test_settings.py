"""What serves one method only lives in settings; the flat names it once had mean the same."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from sabun.asking import settings_of
from sabun.density import (
    DensityRatio,
    JiElkanSettings,
    RkhsSettings,
    UlsifASettings,
    UlsifBSettings,
    UlsifCSettings,
    UlsifParametricSettings,
)
from sabun.density.settings import FORMER, KINDS, METHODS, DensitySettings
from sabun.errors import ParameterError

RNG = np.random.default_rng(4)
PRIVATE, PUBLIC = RNG.normal([1.0, 0.0], 0.6, (200, 2)), RNG.normal(0.5, 1.0, (40, 2))


def shape(row: Any) -> list[float]:
    return [1.0, float(row[0])]


CHOSEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "rkhs": (
        RkhsSettings(n_centers=9, bandwidth=0.8, tau2=0.3),
        {"n_centers": 9, "bandwidth": 0.8, "tau2": 0.3},
    ),
    "ulsif-parametric": (
        UlsifParametricSettings(basis=shape, basis_bounds=(-3, 3), regularization=0.2),
        {"basis": shape, "basis_bounds": (-3, 3), "regularization": 0.2},
    ),
    "ulsif-a": (UlsifASettings(n_centers=5, bounds=[(-3, 3)] * 2), {"n_centers": 5, "bounds": [(-3, 3)] * 2}),
    "ulsif-b": (UlsifBSettings(centers=PUBLIC[:4]), {"centers": PUBLIC[:4]}),
    "ulsif-c": (
        UlsifCSettings(n_centers=3, accept_publishing_raw_records=True),
        {"n_centers": 3, "accept_publishing_raw_records": True},
    ),
    "ji-elkan": (JiElkanSettings(clip_norm=2.0), {"clip_norm": 2.0}),
}
assert set(CHOSEN) == set(METHODS)


def fit(ratio: DensityRatio) -> DensityRatio:
    return ratio.fit(private=PRIVATE, public=PUBLIC)


def test_the_constructor_has_at_most_sixteen_parameters() -> None:
    assert len(inspect.signature(DensityRatio).parameters) <= 16
    named = {field.name for kind in KINDS for field in fields(kind)}
    assert named == set(FORMER), "every setting had a flat name, and every flat name has a place"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", METHODS)
def test_flat_names_mean_what_the_settings_hold(method: str) -> None:
    settings, flat = CHOSEN[method]
    one = fit(DensityRatio(epsilon=1, method=settings, random_state=1))
    for other in (
        DensityRatio(epsilon=1, method=method, **flat, random_state=1),
        DensityRatio(epsilon=1, random_state=1).set_params(method=method, **flat),
    ):
        assert type(other.method) is type(settings)
        assert np.array_equal(fit(other).weights_, one.weights_)
        assert dict(other.release_.provenance.parameters) == dict(one.release_.provenance.parameters)
        assert all(getattr(other, name) is value for name, value in flat.items())


def test_the_name_alone_is_the_method_as_usual() -> None:
    ratio = DensityRatio(epsilon=1)
    assert (ratio.method, ratio.n_centers, ratio.tau2, ratio.regularization) == ("rkhs", 300, 0.5, 0.1)
    assert settings_of("ulsif-b", KINDS) == UlsifBSettings()
    assert str(UlsifBSettings()) == "ulsif-b"
    assert DensityRatio(epsilon=1, **FORMER).method == "rkhs", "what once meant as usual still does, for every method"
    assert DensityRatio(epsilon=1, n_centers=9).set_params(n_centers=None).n_centers == 300


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clip_norm": 2.0}, "clip_norm must be None for method 'rkhs', which does without; got 2.0"),
        ({"method": "ji-elkan", "n_centers": 5}, "n_centers must be None for method 'ji-elkan'"),
        ({"method": UlsifBSettings(), "tau2": 0.2}, "tau2 must be 0.5 for method 'ulsif-b'"),
        ({"method": RkhsSettings}, "method must be one of 'rkhs', 'ulsif-parametric'"),
        ({"method": RkhsSettings(n_centers=0)}, "n_centers must be a whole number >= 1; got 0"),
        ({"method": RkhsSettings(bandwidth="scott")}, "bandwidth must be one of 'median'; got 'scott'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        DensityRatio(epsilon=1, **given)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"method": RkhsSettings(n_centers=9), "n_centers": 5}, "n_centers"),
        ({"method": RkhsSettings(n_centers=9), "n_centers": None}, "n_centers"),
        ({"method": RkhsSettings(tau2=0.1), "method__tau2": 0.2}, "tau2"),
        ({"tau2": 0.1, "method__tau2": 0.2}, "tau2"),
        ({"method": "ulsif-b", "centers": PUBLIC[:4], "method__centers": PUBLIC[:5]}, "centers"),
    ],
)
def test_a_setting_with_two_values_is_refused(given: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be given one value; got one as .* and another as .*"):
        DensityRatio(epsilon=1, **given)
    with pytest.raises(ParameterError, match=f"{name} must be given one value"):
        DensityRatio(epsilon=1).set_params(**given)


def test_a_setting_given_twice_alike_is_taken() -> None:
    twice: Any = {"centers": PUBLIC[:4], "method__centers": PUBLIC[:4].copy()}
    assert np.array_equal(DensityRatio(epsilon=1, method="ulsif-b", **twice).centers, PUBLIC[:4])
    assert DensityRatio(epsilon=1, method=RkhsSettings(), n_centers=None).n_centers == 300


def old(method: str, **changes: Any) -> DensityRatio:
    """A pickle as the last version without settings wrote it."""
    state: dict[str, Any] = {"epsilon": 1, "method": method, "standardize": True, "allow_large_delta": False}
    state |= dict.fromkeys(("delta", "relation", "ledger", "schema", "columns", "n_public"))
    ratio = DensityRatio.__new__(DensityRatio)
    ratio.__setstate__(state | dict(FORMER) | {"random_state": 1} | changes)
    return ratio


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", METHODS)
def test_a_pickle_with_flat_names_keeps_every_setting(method: str) -> None:
    settings, flat = CHOSEN[method]
    ratio = old(method, **flat)
    assert type(ratio.method) is type(settings)
    assert all(getattr(ratio, name) is value for name, value in flat.items())
    assert not set(vars(ratio)) & set(FORMER), "nothing is kept twice"
    same = fit(DensityRatio(epsilon=1, method=settings, random_state=1))
    assert np.array_equal(fit(clone(ratio)).weights_, same.weights_)
    assert old(method).method == method


def test_a_pickle_whose_settings_have_no_place_is_refused() -> None:
    with pytest.raises(ParameterError, match="a pickled DensityRatio must hold settings that this version takes; clip_norm"):
        old("rkhs", clip_norm=2.0)


def test_a_changed_setting_is_checked_when_it_is_used() -> None:
    ratio = DensityRatio(epsilon=1).set_params(method__n_centers=0)
    with pytest.raises(ParameterError, match="n_centers must be a whole number >= 1; got 0"):
        fit(ratio)
    with pytest.raises(
        ParameterError, match="method 'rkhs' must be told one of n_centers, bandwidth, centers, tau2; got 'lam'"
    ):
        ratio.set_params(method__lam=1)


def test_settings_are_replaced_and_never_changed() -> None:
    shared = RkhsSettings(n_centers=7)
    one = DensityRatio(epsilon=1, method=shared)
    other = clone(one).set_params(method__tau2=0.2)
    assert (shared.tau2, one.tau2, other.tau2, other.n_centers) == (0.5, 0.5, 0.2, 7)
    with pytest.raises(FrozenInstanceError):
        shared.tau2 = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("method", METHODS)
def test_clones_and_pickles_keep_the_settings(method: str) -> None:
    ratio = DensityRatio(epsilon=1, method=CHOSEN[method][0])
    assert clone(ratio).get_params()["method"] is ratio.method
    assert DensityRatio(**ratio.get_params(deep=False)).get_params(deep=False) == ratio.get_params(deep=False)
    stored = pickle.loads(pickle.dumps(ratio)).method
    assert type(stored) is type(ratio.method)
    assert stored.get_params().keys() == ratio.method.get_params().keys()
    assert f"method__{fields(ratio.method)[0].name}" in ratio.get_params()


class Weighing(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Stands between scikit-learn, which hands over one table, and a fit that needs two."""

    def __init__(self, ratio: DensityRatio) -> None:
        self.ratio = ratio

    def fit(self, X: Any, y: Any = None) -> Weighing:
        self.fitted_ = clone(self.ratio).fit(private=X, public=PUBLIC)
        return self

    def transform(self, X: Any) -> Any:
        return np.column_stack([X, self.fitted_.predict(X, min_support=0)])

    def score(self, X: Any, y: Any = None) -> float:
        return -float(abs(self.fitted_.mean(0) - np.asarray(X)[:, 0].mean()))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "grid",
    [
        {"ratio__method__tau2": [0.1, 0.9]},
        {"ratio__method": [RkhsSettings(n_centers=9), UlsifBSettings(n_centers=9)]},
        {"ratio__method": ["rkhs", "ulsif-b"], "ratio__method__n_centers": [5, 9]},
    ],
)
@pytest.mark.parametrize("method", ["rkhs", RkhsSettings(n_centers=12)])
def test_a_grid_search_reaches_the_settings(grid: dict[str, Any], method: Any) -> None:
    search = GridSearchCV(Weighing(DensityRatio(epsilon=5, method=method, random_state=0)), grid, cv=2, error_score="raise")
    search.fit(PRIVATE)
    tried = len(search.cv_results_["params"])
    assert tried == np.prod([len(values) for values in grid.values()])
    best = search.best_estimator_.ratio
    for name, value in search.best_params_.items():
        assert best.get_params().get(name.removeprefix("ratio__"), best.method) in (value, settings_of(best.method, KINDS))


def test_a_pipeline_carries_the_settings() -> None:
    line = Pipeline([("weigh", Weighing(DensityRatio(epsilon=5, method=RkhsSettings(n_centers=9), random_state=0)))])
    changed = clone(line).set_params(weigh__ratio__method__tau2=0.2, weigh__ratio__method__n_centers=8)
    assert changed.get_params()["weigh__ratio__method"] == RkhsSettings(n_centers=8, tau2=0.2)
    assert line.get_params()["weigh__ratio__method"] == RkhsSettings(n_centers=9)
    assert changed.fit_transform(PRIVATE).shape == (200, 3)


def test_settings_without_a_plan_cannot_be_made() -> None:
    class Half(DensitySettings):
        method = "half"

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]
