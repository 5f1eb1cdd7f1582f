"""What a caller can choose, refused before anything is charged where it cannot be."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from learning.learning_samples import points
from sabun.errors import ParameterError
from sabun.learning import PrivateClassifier
from sabun.ledger import Ledger

QUICK: dict[str, Any] = {"sampling_rate": 0.2, "epochs": 3}


@pytest.mark.parametrize("name", ["clip_norm", "threshold", "weight_bound"])
@pytest.mark.parametrize("value", [1e-300, 9e-7, 2e6, float("inf")])
def test_bounds_that_would_bound_nothing_are_refused(name: str, value: float) -> None:
    change: dict[str, Any] = {name: value}
    with pytest.raises(ParameterError, match=f"{name} must be between 1e-06 and 1000000; got"):
        PrivateClassifier(**change)


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
        ({"method": "magic"}, "method must be one of 'dp-sgd'"),
        ({"epsilon": 0}, "epsilon must be finite and > 0; got 0"),
        ({"epsilon": float("nan")}, "epsilon must be a number"),
        ({"epsilon": float("inf")}, "epsilon must be finite and > 0"),
        ({"delta": 0}, "delta must be above 0 for 'dp-sgd'; got 0. Use the method 'laplace-sgd' for delta 0"),
        ({"delta": 1}, "delta must be at least 0 and below 1"),
        ({"method": "laplace-sgd", "delta": 1e-5}, "delta must be 0 or left out for 'laplace-sgd'"),
        ({"method": "anonymizing-first", "synthesis": "histogram", "delta": 0.1}, "0 or left out for synthesis='histogram'"),
        ({"hidden": "wide"}, "hidden must be 'auto' or the sizes of the hidden layers"),
        ({"hidden": (0,)}, "hidden layer size must be a whole number >= 1"),
        ({"method": "objective-perturbation", "hidden": (3,)}, r"hidden must be \(\) for 'objective-perturbation'"),
        ({"relation": "local"}, "relation must be one of 'add-remove', 'replace-one'"),
        ({"method": "learning-first", "relation": "add-remove"}, "relation must be one of 'replace-one'"),
        ({"clip_norm": 0}, "clip_norm must be between 1e-06 and 1000000"),
        ({"clip_norm": float("nan")}, "clip_norm must be between 1e-06 and 1000000"),
        ({"threshold": -1}, "threshold must be between 1e-06 and 1000000"),
        ({"threshold": (-1, 1)}, "threshold must be between 1e-06 and 1000000"),
        ({"learning_rate": 1e7}, "learning_rate must be at most 1000000"),
        ({"checkpoint": 3}, "checkpoint must be the name of a folder; got 3"),
        ({"sampling_rate": 1.5}, "sampling_rate must be above 0 and at most 1"),
        ({"momentum": 1}, "momentum must be at least 0 and below 1"),
        ({"epochs": 0}, "epochs must be a whole number >= 1"),
        ({"n_public": 0}, "n_public must be a whole number >= 1"),
        ({"learning_rate": -1}, "learning_rate must be finite and > 0"),
        ({"regularisation": 0}, "regularisation must be finite and > 0"),
        ({"joint_epsilon": 1}, "joint_epsilon must be left out: epsilon is joint already"),
        ({"synthesis": "gan"}, "synthesis must be one of"),
        ({"schema": {}}, "schema must be a Schema or None"),
        ({"ledger": "book"}, "ledger must be a Ledger or None"),
        ({"progress": 3}, "progress must be a function or None"),
        ({"classes": ["only"]}, "classes must be at least two distinct labels"),
        ({"random_state": "x"}, "random_state must be None or a whole number"),
        ({"checkpoint": "c", "random_state": 1}, "random_state must be None when there is a checkpoint"),
        ({"precision": "half"}, "precision must be one of 'double', 'single'"),
        ({"precision": "single", "method": "laplace-sgd"}, "precision must be 'double' for 'laplace-sgd'"),
        ({"bins": 1}, "bins must be a whole number >= 2"),
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
