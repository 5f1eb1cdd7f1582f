"""Older spellings are taken, what is kept can be read under both, and files and pickles of earlier versions open."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from regression.worlds import CLINIC, clinic, unit_study
from sabun.errors import ParameterError
from sabun.regression import Penalized, PrivateRidge, Study, combine, plan_of
from sabun.regression.simulation import simulate
from sabun.release import generate_key


def test_a_ridge_takes_older_names() -> None:
    key = generate_key()
    older: Any = {"mechanism": "objpert", "ridge": 3, "key": key}
    model = PrivateRidge(epsilon=1, **CLINIC, **older)
    assert model.method == Penalized(method="objpert", regularization=3)
    assert (model.regularization, model.ridge, model.regularisation, model.key) == (3, 3, 3, key)
    again = PrivateRidge(epsilon=1, method="objpert", regularization=3, **CLINIC)  # type: ignore[call-arg]
    assert model._terms(2).hash == again._terms(2).hash
    assert PrivateRidge(epsilon=1, **CLINIC, mechanism="objpert").mechanism == "objpert"  # type: ignore[attr-defined]
    twice: Any = {"method": "objpert", "ridge": 1, "regularization": 1}
    assert PrivateRidge(epsilon=1, **twice, **CLINIC).regularization == 1
    with pytest.raises(TypeError, match="unexpected keyword argument 'rigde'"):
        PrivateRidge(epsilon=1, rigde=1, **CLINIC)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"ridge": 1, "regularization": 2}, "regularization"),
        ({"ridge": 1, "regularisation": 2}, "regularization"),
        ({"ridge": 1, "method__regularization": 2}, "regularization"),
        ({"method": Penalized(regularization=3), "ridge": None}, "regularization"),
        ({"method": Penalized(regularization=3), "method__regularization": 2}, "regularization"),
        ({"method": "objpert", "method__method": "paper"}, "method"),
        ({"method": "objpert", "mechanism": "paper"}, "method"),
        ({"signing_key": "a.pem", "key": "b.pem"}, "signing_key"),
    ],
)
def test_a_parameter_with_two_values_is_refused(given: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be given one value; got one as .* and another as .*") as refused:
        PrivateRidge(epsilon=1, **given, **CLINIC)
    assert ".pem" not in str(refused.value), "a key is not shown"
    model = PrivateRidge(epsilon=1, method="objpert", **CLINIC)
    with pytest.raises(ParameterError, match=f"{name} must be given one value"):
        model.set_params(**given)
    assert model.method == "objpert"


def test_a_setting_that_there_is_not_is_refused_with_those_there_are() -> None:
    message = "method must be told one of method, regularization; got 'foo'"
    with pytest.raises(ParameterError, match=message):
        PrivateRidge(epsilon=1, method__foo=1, **CLINIC)  # type: ignore[call-arg]
    with pytest.raises(ParameterError, match=message):
        PrivateRidge(epsilon=1, **CLINIC).set_params(method__foo=1)


def test_a_study_takes_older_names_and_its_file_keeps_them() -> None:
    older, newer = unit_study(mechanism="objpert", ridge=2), unit_study(method="objpert", regularization=2)
    assert older == newer
    record = newer.to_dict()
    assert (record["mechanism"], record["ridge"]) == ("objpert", "2")
    assert "method" not in record
    assert "regularization" not in record
    assert (newer.mechanism, newer.ridge) == ("objpert", 2)  # type: ignore[attr-defined]
    assert Study.from_dict(record).hash == newer.hash


def test_functions_and_methods_take_older_names() -> None:
    older: Any = {"rows": 500}
    study = unit_study(4)
    assert plan_of(study, **older) == plan_of(study, n_records=500)
    assert (plan_of(study, **older).rows, plan_of(study, **older).mechanism) == (500, "ssp-gauss")  # type: ignore[attr-defined]
    assert PrivateRidge(epsilon=1, **CLINIC).plan(**older).n_records == 500
    facts: Any = {"features": 2, "organisations": 2, "epsilon": 1, "repeats": 1}
    assert simulate(n_records=100, **facts) == simulate(rows=100, mechanism="staged", **facts)  # type: ignore[call-arg]
    model = combine([PrivateRidge(epsilon=5, **CLINIC).fit(*clinic(300)).release_])
    table, level = clinic(3)[0], {"level": 0.5}
    for ask in (model.conf_int, lambda **how: model.predict_interval(table, **how), model.intercept_interval):
        assert np.array_equal(ask(**level), ask(confidence=0.5))


def test_settings_are_replaced_and_clones_share_them() -> None:
    model = PrivateRidge(epsilon=1, method=Penalized(regularization=3), **CLINIC)
    assert clone(model).method is model.method
    assert clone(model).set_params(method__regularization=5).regularization == 5
    assert model.regularization == 3
    assert model.set_params(ridge=4).method == Penalized(method="objpert", regularization=4)
    assert model.set_params(method="ssp-gauss").regularization is None
    assert model.set_params(ridge=None).method == "ssp-gauss"
    with pytest.raises(ParameterError, match="regularization must be left out unless method is 'objpert' or 'paper'"):
        model.set_params(method__regularization=1).fit(*clinic(20))
    with pytest.raises(ValueError, match="Invalid parameter 'rigde'"):
        model.set_params(rigde=1)


def test_settings_are_searched_by_scikit_learn() -> None:
    pipe = make_pipeline(PrivateRidge(epsilon=1, method="objpert", random_state=0, **CLINIC))
    grid = {"privateridge__method": [Penalized(regularization=1), "ssp-gauss"]}
    assert GridSearchCV(pipe, grid, cv=2).fit(*clinic(200)).best_params_["privateridge__method"] in grid["privateridge__method"]
    inner = {"method__regularization": [1, 50]}
    start = PrivateRidge(epsilon=1, method=Penalized(), random_state=0, **CLINIC)
    assert GridSearchCV(start, inner, cv=2).fit(*clinic(200)).best_params_["method__regularization"] in (1, 50)


def test_a_constructor_has_no_more_parameters_than_one_can_read() -> None:
    assert len(PrivateRidge(epsilon=1, **CLINIC).get_params(deep=False)) == 16


def test_pickles_that_hold_older_names_open() -> None:
    X, y = clinic(200)
    fitted = PrivateRidge(epsilon=1, **CLINIC).fit(X, y)
    state = dict(fitted.__getstate__())
    for name in ("method", "signing_key", "retry_key"):
        del state[name]
    old = PrivateRidge.__new__(PrivateRidge)
    old.__setstate__(state | {"mechanism": "objpert", "ridge": 2, "key": "k.pem"})
    assert (old.method, old.signing_key, old.retry_key) == (Penalized(regularization=2), "k.pem", None)
    assert np.array_equal(old.predict(X), fitted.predict(X))
    assert clone(old).set_params(signing_key=None, method="ssp-gauss").fit(X, y).release_ is not None
    terms = dict(vars(fitted.study_))
    was = Study.__new__(Study)
    was.__setstate__(  # type: ignore[attr-defined]
        {{"method": "mechanism", "regularization": "ridge"}.get(name, name): value for name, value in terms.items()}
    )
    assert was == fitted.study_ == pickle.loads(pickle.dumps(was))
