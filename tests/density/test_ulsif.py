from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from sabun.density import ULSIF
from sabun.density.loocv import loo_scores
from sabun.errors import DataError, ParameterError

GOLDEN = json.loads((Path(__file__).parent / "golden" / "densratio.json").read_text(encoding="utf-8"))


def brute_force(public: np.ndarray, private: np.ndarray, lam: float, clip: bool) -> float:
    scores = []
    for i in range(min(len(public), len(private))):
        e, d = np.delete(public, i, 0), np.delete(private, i, 0)
        alpha = np.linalg.solve(e.T @ e / len(e) + lam * np.eye(e.shape[1]), d.mean(axis=0))
        alpha = np.maximum(0, alpha) if clip else alpha
        scores.append((public[i] @ alpha) ** 2 / 2 - private[i] @ alpha)
    return float(np.mean(scores))


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize(("rows", "others", "size"), [(40, 60, 15), (60, 40, 15), (50, 50, 30), (2, 3, 1)])
def test_leave_one_out_equals_brute_force(rows: int, others: int, size: int, clip: bool) -> None:
    rng = np.random.default_rng(rows)
    public, private = rng.random((rows, size)), rng.random((others, size))
    penalties = [1e-3, 0.1, 1.0, 10.0]
    expected = [brute_force(public, private, lam, clip) for lam in penalties]
    assert np.abs(loo_scores(public, private, penalties, clip=clip) - expected).max() < 1e-10


def test_more_rows_than_a_block_change_nothing() -> None:
    rng = np.random.default_rng(1)
    public, private = rng.random((1030, 3)), rng.random((1100, 3))
    assert loo_scores(public, private, [0.1])[0] == pytest.approx(brute_force(public, private, 0.1, True), abs=1e-10)


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_weights_equal_those_of_densratio(case: dict[str, object]) -> None:
    fit = ULSIF(sigma=case["sigma"], lam=case["lam"], centers=np.array(case["centers"]))
    fit.fit(private=np.array(case["private"]), public=np.array(case["public"]))
    assert np.abs(fit.weights_ - case["weights"]).max() < 1e-10
    assert np.abs(fit.predict(case["public"]) - case["weights"]).max() < 1e-10


def test_search_finds_the_smallest_score() -> None:
    rng = np.random.default_rng(0)
    fit = ULSIF(sigma=[0.5, 1.0, 2.0], lam=[0.01, 0.1, 1.0]).fit(
        private=rng.normal(1, 1, (300, 2)), public=rng.normal(size=(200, 2))
    )
    assert fit.scores_ is not None
    i, j = np.unravel_index(fit.scores_.argmin(), fit.scores_.shape)
    assert (fit.sigma_, fit.lam_) == ([0.5, 1.0, 2.0][i], [0.01, 0.1, 1.0][j])


def test_bandwidths_are_bounded_below_by_public_spacing() -> None:
    rng = np.random.default_rng(3)
    public = rng.normal(1, 1, (50, 1))
    fit = ULSIF().fit(private=rng.normal(2, 0.5, (500, 1)), public=public)
    assert fit.sigma_ >= 0.19 * np.median(np.abs(public - public.T)[np.triu_indices(50, 1)])


def test_identical_samples_give_weights_near_one() -> None:
    sample = np.random.default_rng(4).normal(size=(500, 2))
    assert np.abs(ULSIF().fit(private=sample, public=sample).weights_ - 1).mean() < 0.1


def test_normalised_weights_have_mean_one() -> None:
    rng = np.random.default_rng(5)
    fit = ULSIF(normalize=True, loo=None, sigma=1.0, lam=0.1).fit(private=rng.normal(1, 1, 300), public=rng.normal(size=300))
    assert fit.weights_.mean() == pytest.approx(1)
    assert fit.scores_ is None


def test_protocol_of_estimators() -> None:
    fit = ULSIF(sigma=1.0, lam=0.1).fit(private=[0.0, 1.0, 2.0], public=[0.0, 0.5, 1.0])
    assert clone(fit).get_params() == fit.get_params()
    assert np.array_equal(pickle.loads(pickle.dumps(fit)).weights_, fit.weights_)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"sigma": 0}, "sigma must be finite and > 0; got 0"),
        ({"lam": -1.0}, "lam must be finite and > 0; got -1.0"),
        ({"sigma": "best"}, "sigma must be one of 'cv'; got 'best'"),
        ({"lam": []}, "lam must be a number, a list of numbers or 'cv'"),
        ({"loo": "fast"}, "loo must be one of"),
        ({"centers": "both"}, "centers must be one of"),
        ({"n_centers": 0}, "n_centers must be a whole number >= 1"),
        ({"normalize": 1}, "normalize must be True or False"),
    ],
)
def test_bad_parameters_are_refused_at_construction(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message.replace("(", r"\(")):
        ULSIF(**bad)


def test_bad_tables_are_refused() -> None:
    good = np.zeros((3, 2))
    with pytest.raises(DataError, match="private must be an array of numbers"):
        ULSIF().fit(private=[["a", "b"]], public=good)
    with pytest.raises(DataError, match="public must hold finite numbers only"):
        ULSIF().fit(private=good, public=[[np.nan, 1.0], [1.0, 2.0]])
    with pytest.raises(DataError, match="both tables must have the same columns; got 2 and 3"):
        ULSIF().fit(private=good, public=np.zeros((3, 3)))
    with pytest.raises(DataError, match="public must be a 2-D array with at least 2 rows"):
        ULSIF().fit(private=good, public=good[:1])
