"""What a caller can choose, refused before anything is charged where it cannot be."""

from __future__ import annotations

import pickle
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from learning.learning_samples import points
from sabun.errors import ParameterError
from sabun.learning import (
    DpAdamSettings,
    DpSgdSettings,
    LaplaceSgdSettings,
    LearningFirstSettings,
    ObjectivePerturbationSettings,
    PrivateClassifier,
)
from sabun.learning.settings import FORMER, KINDS, METHODS
from sabun.ledger import Ledger

OWNERS = {"clip_norm": "laplace-sgd", "threshold": "anonymized-learning", "weight_bound": "learning-first"}
QUICK: dict[str, Any] = {"sampling_rate": 0.2, "epochs": 3}


@pytest.mark.parametrize("name", ["clip_norm", "threshold", "weight_bound"])
@pytest.mark.parametrize("value", [1e-300, 9e-7, 2e6, float("inf")])
def test_bounds_that_would_bound_nothing_are_refused(name: str, value: float) -> None:
    change: dict[str, Any] = {name: value}
    with pytest.raises(ParameterError, match=f"{name} must be between 1e-06 and 1000000; got"):
        PrivateClassifier(method=OWNERS[name], **change)


@pytest.mark.parametrize("method", ["dp-sgd", "laplace-sgd", "objective-perturbation", "anonymizing-first", "learning-first"])
def test_an_epsilon_too_small_to_draw_noise_for_is_refused_before_the_charge(method: str) -> None:
    with pytest.raises(ParameterError, match="epsilon must be at least 1e-06; got"):
        PrivateClassifier(method=method, epsilon="1e-9")
    with pytest.raises(ParameterError, match="joint_epsilon must be at least 1e-06; got"):
        PrivateClassifier(method="learning-first", joint_epsilon="1e-9")


def test_noise_too_large_to_calibrate_is_refused_before_the_charge(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=9, delta=0.1)
    for folder in (None, tmp_path / "run"):
        with pytest.raises(ParameterError, match="epsilon must be large enough for noise below 1e6 times the clip norm"):
            PrivateClassifier(epsilon="1e-6", delta=1e-6, classes=[0, 1], ledger=book, checkpoint=folder).fit(*points(50))
    assert book.entries() == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "magic"}, "method must be one of 'dp-adam', 'dp-sgd'"),
        ({"epsilon": 0}, "epsilon must be finite and > 0; got 0"),
        ({"epsilon": float("nan")}, "epsilon must be a number"),
        ({"epsilon": float("inf")}, "epsilon must be finite and > 0"),
        ({"delta": 0}, "delta must be above 0 for 'dp-adam'; got 0. Use the method 'noisy-centroids' for delta 0"),
        ({"method": "dp-sgd", "delta": 0}, "delta must be above 0 for 'dp-sgd'; got 0. Use the method 'noisy-centroids'"),
        ({"method": DpAdamSettings(standardize=1)}, "standardize must be True or False; got 1"),  # type: ignore[arg-type]
        ({"method": "noisy-centroids", "hidden": (3,)}, "hidden must be empty for 'noisy-centroids', which is linear"),
        ({"delta": 1}, "delta must be at least 0 and below 1"),
        ({"method": "laplace-sgd", "delta": 1e-5}, "delta must be 0 or left out for 'laplace-sgd'"),
        (
            {"method": "anonymizing-first", "synthesis": "histogram", "delta": 0.1},
            "0 or left out for the synthesis 'histogram'",
        ),
        ({"hidden": "wide"}, "hidden must be 'auto' or the sizes of the hidden layers"),
        ({"hidden": (0,)}, "hidden layer size must be a whole number >= 1"),
        ({"method": "objective-perturbation", "hidden": (3,)}, "hidden must be empty for 'objective-perturbation'"),
        ({"relation": "local"}, "relation must be one of 'add-remove', 'replace-one'"),
        ({"method": "learning-first", "relation": "add-remove"}, "relation must be one of 'replace-one'"),
        ({"clip_norm": 0}, "clip_norm must be between 1e-06 and 1000000"),
        ({"clip_norm": float("nan")}, "clip_norm must be between 1e-06 and 1000000"),
        ({"method": "anonymized-learning", "threshold": -1}, "threshold must be between 1e-06 and 1000000"),
        ({"method": "anonymized-learning", "threshold": (-1, 1)}, "threshold must be between 1e-06 and 1000000"),
        ({"learning_rate": 1e7}, "learning_rate must be at most 1000000"),
        ({"checkpoint": 3}, "checkpoint must be the name of a folder; got 3"),
        ({"sampling_rate": 1.5}, "sampling_rate must be above 0 and at most 1"),
        ({"momentum": 1}, "momentum must be at least 0 and below 1"),
        ({"epochs": 0}, "epochs must be a whole number >= 1"),
        ({"n_public": 0}, "n_public must be a whole number >= 1"),
        ({"learning_rate": -1}, "learning_rate must be finite and > 0"),
        ({"method": "objective-perturbation", "regularization": 0}, "regularization must be finite and > 0"),
        ({"joint_epsilon": 1}, "joint_epsilon must be None for method 'dp-adam', which does without; got 1"),
        ({"method": "anonymizing-first", "synthesis": "gan"}, "synthesis must be one of"),
        ({"schema": {}}, "schema must be a Schema or None"),
        ({"ledger": "book"}, "ledger must be a Ledger or None"),
        ({"progress": 3}, "progress must be a function or None"),
        ({"classes": ["only"]}, "classes must be at least two distinct labels"),
        ({"random_state": "x"}, "random_state must be None or a whole number"),
        ({"method": DpSgdSettings(clip_norm=-1)}, "clip_norm must be between 1e-06 and 1000000; got -1"),
        ({"method": 3}, "method must be one of 'dp-adam'"),
        ({"retry_key": ""}, "retry_key must be a non-empty string"),
        ({"checkpoint": "c", "retry_key": "k"}, "retry_key must be left out when there is a checkpoint"),
        ({"checkpoint": "c", "random_state": 1}, "random_state must be None when there is a checkpoint"),
        ({"precision": "half"}, "precision must be one of 'double', 'single'"),
        (
            {"precision": "single", "method": "laplace-sgd"},
            "precision must be 'double' for method 'laplace-sgd'",
        ),
        ({"method": "anonymizing-first", "bins": 1}, "bins must be a whole number >= 2"),
    ],
)
def test_a_bad_parameter_is_refused_when_the_object_is_made(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        PrivateClassifier(**changes)


def test_parameters_changed_later_are_checked_again() -> None:
    clf = PrivateClassifier().set_params(epsilon=-1)
    with pytest.raises(ParameterError, match="epsilon must be finite and > 0"):
        clf.fit(*points())


def test_clone_pickle_and_pipeline_work() -> None:
    clf = PrivateClassifier(epsilon="0.5", delta=1e-3, random_state=3, **QUICK)
    assert clone(clf).get_params() == clf.get_params()
    X, y = points()
    fitted = pickle.loads(pickle.dumps(clone(clf).fit(X, y)))
    assert (fitted.predict(X) == clone(clf).fit(X, y).predict(X)).all()
    assert make_pipeline(FunctionTransformer(), clf).fit(X, y).predict(X).shape == (400,)


def test_every_method_is_named_by_its_settings_and_the_constructor_stays_short() -> None:
    assert tuple(str(kind()) for kind in KINDS) == METHODS
    assert len(signature(PrivateClassifier).parameters) <= 16
    for kind in KINDS:
        by_name, by_settings = PrivateClassifier(method=kind.method), PrivateClassifier(method=kind())
        assert by_name._checked().method == by_settings._checked().method


def test_settings_that_every_method_once_took_are_taken_by_their_own_name() -> None:
    clf = PrivateClassifier(clip_norm=0.5, threshold=0.1, bins=16)  # as usual: what another method has is left alone
    assert clf.method == DpAdamSettings(clip_norm=0.5)
    assert (clf.clip_norm, clf.threshold, clf.sampling_rate) == (0.5, 0.1, 0.1)
    assert "clip_norm" not in clf.get_params()
    assert clf.get_params()["method__clip_norm"] == 0.5
    old = {name: value for name, value in FORMER.items() if name != "regularization"} | {"regularisation": None}
    for name in METHODS:
        assert PrivateClassifier(method=name, **old).method == name
    linear = PrivateClassifier(method="objective-perturbation", regularisation=3)
    assert linear.method == ObjectivePerturbationSettings(regularization=3)
    assert linear.regularisation == linear.regularization == 3  # type: ignore[attr-defined]
    twice: Any = {"regularisation": 3, "regularization": 3}
    assert PrivateClassifier(method="objective-perturbation", **twice).method == linear.method


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"method": LearningFirstSettings(joint_epsilon=0.5), "joint_epsilon": None}, "joint_epsilon"),
        ({"method": LearningFirstSettings(joint_epsilon=0.5), "method__joint_epsilon": 1}, "joint_epsilon"),
        ({"method": DpSgdSettings(clip_norm=0.5), "clip_norm": 2.0}, "clip_norm"),
        ({"method": DpSgdSettings(clip_norm=0.5), "clip_norm": 1.0}, "clip_norm"),
        ({"clip_norm": 0.5, "method__clip_norm": 2.0}, "clip_norm"),
        ({"method": "objective-perturbation", "regularisation": 1, "regularization": 2}, "regularization"),
    ],
)
def test_a_setting_with_two_values_is_refused(given: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be given one value; got one as .* and another as .*"):
        PrivateClassifier(**given)
    clf = PrivateClassifier()
    with pytest.raises(ParameterError, match=f"{name} must be given one value"):
        clf.set_params(**given)
    assert clf.method == "dp-adam"


def test_a_setting_given_twice_alike_is_taken() -> None:
    shared = DpSgdSettings(clip_norm=0.5)
    twice: Any = {"method": shared, "clip_norm": 0.5, "method__clip_norm": 0.5, "threshold": 0.1}
    assert PrivateClassifier(**twice).method is shared
    every = PrivateClassifier(method=shared, epochs=3).get_params()
    assert PrivateClassifier().set_params(**every).get_params() == every


OLD: dict[str, Any] = {  # what the last version without settings wrote down
    "method": "dp-sgd",
    "epsilon": 1,
    "delta": None,
    "hidden": "auto",
    "schema": None,
    "classes": None,
    "relation": None,
    "n_public": None,
    "clip_norm": 1.0,
    "sampling_rate": 0.1,
    "epochs": None,
    "batch_size": 50,
    "learning_rate": None,
    "momentum": 0.9,
    "precision": "double",
    "threshold": 0.1,
    "weight_bound": 0.5,
    "regularisation": None,
    "joint_epsilon": None,
    "synthesis": "bayes-net",
    "n_synthetic": 30_000,
    "bins": 16,
    "group_size": 1000,
    "ledger": None,
    "checkpoint": None,
    "progress": None,
    "random_state": None,
}


def restored(**changes: Any) -> PrivateClassifier:
    clf = PrivateClassifier.__new__(PrivateClassifier)
    clf.__setstate__(OLD | changes)
    return clf


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        ({}, "dp-sgd"),
        ({"clip_norm": 0.5, "sampling_rate": 0.3}, DpSgdSettings(clip_norm=0.5, sampling_rate=0.3)),
        ({"method": "learning-first", "joint_epsilon": 0.5}, LearningFirstSettings(joint_epsilon=0.5)),
        ({"method": "objective-perturbation", "regularisation": 3}, ObjectivePerturbationSettings(regularization=3)),
    ],
)
def test_a_pickle_with_flat_names_keeps_every_setting(changes: dict[str, Any], settings: Any) -> None:
    clf = restored(**changes)
    assert clf.method == settings
    assert {name: getattr(clf, name) for name in OLD | changes} == OLD | changes | {"method": settings}
    assert not set(vars(clf)) & set(FORMER), "nothing is kept twice"
    same = PrivateClassifier(epsilon=1, method=settings)
    assert clone(clf).get_params() == same.get_params()
    assert clf.plan(n_records=500, n_features=2, n_classes=2) == same.plan(n_records=500, n_features=2, n_classes=2)
    assert pickle.loads(pickle.dumps(clf)).get_params() == same.get_params()


def test_a_pickle_whose_settings_have_no_place_is_refused() -> None:
    refused = "a pickled PrivateClassifier must hold"
    with pytest.raises(ParameterError, match=f"{refused} settings that this version takes; joint_epsilon must be None for"):
        restored(joint_epsilon=0.5)
    with pytest.raises(ParameterError, match=f"{refused} settings that this version takes; method must be one of"):
        restored(method="magic")
    with pytest.raises(ParameterError, match=f"{refused} settings that this version takes; clip_norm must be given one value"):
        restored(method=DpSgdSettings(clip_norm=0.5), clip_norm=2.0)
    with pytest.raises(ParameterError, match=f"{refused} its method; it does not"):
        PrivateClassifier.__new__(PrivateClassifier).__setstate__({"epsilon": 1})


def test_a_setting_that_a_method_does_not_have_is_refused_not_ignored() -> None:
    with pytest.raises(ParameterError, match=r"threshold must be 0\.1 for method 'dp-adam', which does without; got 0\.5"):
        PrivateClassifier(threshold=0.5)
    with pytest.raises(ParameterError, match="method 'dp-adam' must be told one of clip_norm, standardize"):
        PrivateClassifier().set_params(method__bins=4)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        PrivateClassifier(colour="red")  # type: ignore[call-arg]


def test_settings_are_replaced_never_changed() -> None:
    shared = DpSgdSettings(clip_norm=0.5)
    one, two = PrivateClassifier(method=shared), clone(PrivateClassifier(method=shared))
    assert two.method is shared
    two.set_params(method__clip_norm=2.0)
    two.set_params(momentum=0.5)
    assert (one.method, two.method) == (DpSgdSettings(clip_norm=0.5), DpSgdSettings(clip_norm=2.0, momentum=0.5))
    assert PrivateClassifier().set_params(method__clip_norm=2.0).method == DpAdamSettings(clip_norm=2.0)
    assert PrivateClassifier().set_params(method="laplace-sgd", clip_norm=2.0).method == LaplaceSgdSettings(clip_norm=2.0)
    bad = two.set_params(method__clip_norm=-1)  # like every parameter it is checked when it is used
    with pytest.raises(ParameterError, match="clip_norm must be between"):
        bad.fit(*points())


def test_settings_are_searched_and_travel_through_pipelines_and_pickles() -> None:
    X, y = points(120)
    # With everybody in every step the noise does not depend on the number of rows, and is looked for twice, not six times.
    all_rows = DpSgdSettings(sampling_rate=1)
    clf = PrivateClassifier(epsilon=1, delta=1e-4, method=all_rows, hidden=(), epochs=1, classes=[0, 1], random_state=1)
    whole: dict[str, list[Any]] = {"method": ["laplace-sgd", all_rows], "delta": [None]}
    for grid in ({"method__clip_norm": [0.5, 1.0]}, {"clip_norm": [0.5, 1.0]}, whole):
        found = GridSearchCV(clf, grid, cv=2).fit(X, y)
        assert len(found.cv_results_["params"]) == 2
        assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    pipe = Pipeline([("same", FunctionTransformer()), ("clf", clf)]).set_params(clf__method__momentum=0.5, clf__epochs=2)
    assert pipe.fit(X, y)["clf"].method == DpSgdSettings(sampling_rate=1, momentum=0.5)
    again = pickle.loads(pickle.dumps(pipe))
    assert again["clf"].method == DpSgdSettings(sampling_rate=1, momentum=0.5)
    assert (again.predict(X) == pipe.predict(X)).all()
