"""Theorem 3 as a function of public figures, and as a verb."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.terminal import exit_code
from regression.worlds import unit_study
from sabun.errors import ParameterError
from sabun.regression import risk_bound
from sabun.regression.reproduction.claims import posterior_delta
from sabun.regression.theorem_three import bound_of_study

WORLD = {"n_records": 1000, "organisations": 10, "features": 5, "epsilon": 1}


def test_every_term_is_that_of_the_theorem() -> None:
    """(13) written out once more, at one lambda."""
    found = risk_bound(
        **WORLD, home_records=400, coef_bound=2, coef_length=1.5, residual=0.5, confidence=0.9, regularization=0.25
    )
    s, many = 1 / 7, math.log(2 * 10 / 0.1)
    approximation = 0.25 * s / (0.25 + s) * 1.5**2
    spread = math.sqrt(many / 1000) + math.sqrt(4 / 1000) + 8 / 3 * many / 1000
    assert found.ridge_terms == pytest.approx(approximation + spread / 0.25)
    assert found.privacy_term == pytest.approx((4 * 6 * 5 * 2 + 2 * 4) / 1000)
    assert found.temperature == pytest.approx(2 * 0.25 + 8 * 4)
    assert found.mixing_term == pytest.approx(found.temperature * math.log(10) / 400)
    assert found.total == pytest.approx(found.ridge_terms + found.privacy_term + found.mixing_term)
    assert found.risk_of_zero == pytest.approx(1.5**2 / 7)


def test_the_approximation_error_is_the_least_of_its_objective() -> None:
    """(12) for a covariance s I, against a search over all multiples of beta."""
    s, length = 1 / 7, 0.8
    for lam in (0.01, 0.3, 5.0):
        scales = np.linspace(0, 1, 20_001)
        searched = np.min(lam * (scales * length) ** 2 + s * ((scales - 1) * length) ** 2)
        far = risk_bound(**WORLD | {"n_records": 10**18}, regularization=lam)
        assert far.ridge_terms == pytest.approx(searched, rel=1e-4)


def test_the_best_lambda_is_taken_and_more_rows_make_the_bound_useful() -> None:
    best = risk_bound(**WORLD)
    assert all(best.total <= risk_bound(**WORLD, regularization=float(one)).total + 1e-12 for one in np.logspace(-4, 6, 60))
    assert not best.informative
    assert best.rows_needed is not None
    assert risk_bound(**WORLD | {"n_records": best.rows_needed}).informative
    assert not risk_bound(**WORLD | {"n_records": best.rows_needed // 2}).informative
    assert "does not say that the model is better" in str(best)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_records": 0}, "n_records must be"),
        ({"organisations": 0}, "organisations must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"coef_length": -1}, "coef_length must be"),
        ({"confidence": 1}, "confidence must be"),
        ({"home_records": 0}, "home_records must be"),
        ({"regularization": 0}, "regularization must be"),
    ],
)
def test_figures_have_rules(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        risk_bound(**WORLD | changed)


def test_the_verb_tells_it_of_figures_and_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    study = unit_study(width=3, epsilon=2)
    study.save("study.json")
    assert (
        exit_code("regression", "risk-bound", "--study", "study.json", "--n-records", "500", "--organisations", "4", "--json")
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told == bound_of_study(study, n_records=500, organisations=4).to_dict()
    figures = ("--features", "5", "--epsilon", "1", "--organisations", "10", "--n-records", "1000")
    assert exit_code("regression", "risk-bound", *figures) == 0
    assert "Theorem 3 bounds the mean excess risk of mirror averaging by" in capsys.readouterr().out
    assert exit_code("regression", "risk-bound", "--n-records", "1000") == 2
    assert "organisations must be given. Pass --organisations, or a --study that says it." in capsys.readouterr().err


def test_a_draw_from_the_normal_posterior_is_private_for_no_epsilon() -> None:
    """Against numerical integration of the two posteriors; and it never vanishes."""
    theta = np.linspace(-12, 12, 2_000_001)
    wide = np.exp(-(theta**2) / 2) / math.sqrt(2 * math.pi)
    narrow = np.exp(-((theta - 0.5) ** 2)) / math.sqrt(math.pi)
    for epsilon in (0.5, 1.0, 3.0):
        integral = np.maximum(wide - math.exp(epsilon) * narrow, 0).sum() * (theta[1] - theta[0])
        assert posterior_delta(epsilon) == pytest.approx(integral, rel=1e-4)
    assert posterior_delta(10.0) > 1e-5
