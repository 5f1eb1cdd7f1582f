from __future__ import annotations

import numpy as np
import pytest

from learning.learning_samples import SCHEMA, people, points
from sabun.errors import DataError, ParameterError
from sabun.learning import PrivateClassifier, canary_audit, membership_inference
from sabun.learning.audit import CanaryAudit, _auc, _best_bound, epsilon_lower_bound


def test_the_bound_is_zero_for_guessing_and_grows_with_success() -> None:
    bounds = [
        epsilon_lower_bound(canaries=1000, guesses=200, correct=right, delta=0.0, error=0.05) for right in (100, 130, 160, 190)
    ]
    assert bounds[0] == 0
    assert bounds == sorted(bounds)
    assert bounds[-1] > 2


def test_a_delta_can_only_lower_the_bound() -> None:
    with_delta, without = (
        epsilon_lower_bound(canaries=1000, guesses=200, correct=180, delta=delta, error=0.05) for delta in (1e-3, 0.0)
    )
    assert with_delta < without


def test_randomised_response_is_never_refuted_and_a_false_claim_is() -> None:
    generator = np.random.default_rng(4)
    inside = generator.integers(0, 2, 2000).astype(bool)
    kept = generator.random(2000) < np.exp(2) / (1 + np.exp(2))
    seen = np.where(kept, inside, ~inside).astype(float) + generator.random(2000) * 1e-3
    found = _best_bound(seen, inside, 0.999, 2.0, 0.0)
    assert 1.2 < found.epsilon_lower <= 2.0
    assert not found.refuted
    assert _best_bound(seen, inside, 0.999, 1.0, 0.0).refuted


def test_the_words_say_what_a_zero_means() -> None:
    found = CanaryAudit(epsilon_lower=0.0, confidence=0.95, claimed_epsilon=1.0, delta=0.0, canaries=10, guesses=4, correct=2)
    assert "a lower bound; zero does not mean private" in str(found)
    assert found.to_dict()["refuted"] is False


@pytest.mark.parametrize("method", ["dp-sgd", "learning-first"])
def test_our_claims_survive_a_canary_audit(method: str) -> None:
    frame, label = people(300)
    settings = {"delta": 1e-4, "sampling_rate": 0.2, "epochs": 3} if method == "dp-sgd" else {"hidden": (4,), "epochs": 2}
    found = canary_audit(PrivateClassifier(method=method, schema=SCHEMA, **settings), frame, label, canaries=200)  # type: ignore[arg-type]
    assert not found.refuted
    assert found.canaries == 200


def test_a_synthetic_table_has_no_rows_to_plant() -> None:
    with pytest.raises(DataError, match="method must train on rows to be audited"):
        canary_audit(PrivateClassifier(method="anonymizing-first", schema=SCHEMA), *people(30))
    with pytest.raises(ParameterError, match="canaries must be a whole number >= 10"):
        canary_audit(PrivateClassifier(), *points(), canaries=3)
    with pytest.raises(ParameterError, match="confidence must be between 0 and 1"):
        canary_audit(PrivateClassifier(), *points(), confidence=2)


def test_membership_inference_says_that_it_is_not_private() -> None:
    X, y = points()
    clf = PrivateClassifier(delta=1e-3, sampling_rate=0.2, epochs=3).fit(X[:200], y[:200])
    found = membership_inference(clf.model_, members=(X[:200], y[:200]), others=(X[200:], y[200:]))
    assert 0.35 < found.auc < 0.65
    assert str(found).startswith("NOT PRIVATE")
    assert found.to_dict()["auc"] == found.auc


def test_auc_counts_ties_as_half() -> None:
    assert _auc(np.array([1.0, 2.0]), np.array([0.0, 1.0])) == pytest.approx(0.875)
