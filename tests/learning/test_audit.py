from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from learning.learning_samples import SCHEMA, people, points
from sabun.errors import ParameterError
from sabun.learning import PrivateClassifier, canary_audit, membership_inference
from sabun.learning.audit import CanaryAudit, _auc, _best_bound, _chance, epsilon_lower_bound
from sabun.privacy import Guarantee


def claim(epsilon: float, delta: float = 0) -> Guarantee:
    return Guarantee(epsilon=epsilon, delta=delta, relation="add-remove", unit="record", mechanism="m")


def test_the_bound_is_zero_for_guessing_and_grows_with_success() -> None:
    bounds = [
        epsilon_lower_bound(canaries=1000, guesses=200, correct=right, delta=0.0, error=0.05) for right in (100, 130, 160, 190)
    ]
    assert bounds[0] == 0
    assert bounds == sorted(bounds)
    assert bounds[-1] > 2


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "delta", "printed"),
    [(1000, 100, 75, 1e-4, 0.673), (100_000, 1510, 1439, 1e-5, 2.675)],
)
def test_the_papers_printed_values(canaries: int, guesses: int, correct: int, delta: float, printed: float) -> None:
    """Steinke, Nasr and Jagielski 2023, Appendix D and section 7; the second is cut off after the third digit, not rounded."""
    found = epsilon_lower_bound(canaries=canaries, guesses=guesses, correct=correct, delta=delta, error=0.05)
    assert found == pytest.approx(printed, abs=1e-3)


def revealing(canaries: int, guesses: int, epsilon: float, delta: float) -> np.ndarray:
    """The exact law of right guesses when each bit is shown in the clear with probability delta, else by randomised response.

    This is (epsilon, delta)-DP, exactly. The attack guesses bits shown in the clear first.
    """
    shown = binom.pmf(np.arange(canaries + 1), canaries, delta)
    law = np.zeros(guesses + 1)
    for count, chance in enumerate(shown):
        clear = min(count, guesses)
        law[clear:] += chance * binom.pmf(np.arange(guesses - clear + 1), guesses - clear, 1 / (1 + np.exp(-epsilon)))
    return law


def adapting(groups: int, epsilon: float, delta: float) -> np.ndarray:
    """The exact law when a group of three bits is shown in the clear just when randomised response got all three wrong.

    Showing it with probability delta makes this (epsilon, (1 + e^epsilon) delta)-DP: the output "shown" tells all bits, and its
    absence is missing from one other output.
    """
    hit = 1 / (1 + np.exp(-epsilon))
    group = binom.pmf(np.arange(4), 3, hit)
    assert group[0] >= delta
    group += np.array([-delta, 0, 0, delta])
    law = np.ones(1)
    for _ in range(groups):
        law = np.convolve(law, group)
    return law


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.01), (1.0, 0.001), (1.0, 0.02), (2.0, 0.05)])
@pytest.mark.parametrize("guesses", [20, 100, 300])
def test_the_bound_holds_for_mechanisms_that_use_all_of_their_delta(epsilon: float, delta: float, guesses: int) -> None:
    right = revealing(300, guesses, epsilon, delta)[::-1].cumsum()[::-1]
    bounds = np.array([_chance(epsilon, 300, guesses, v, delta) for v in range(guesses + 1)])
    assert (right <= bounds + 1e-12).all()
    without = np.array([_chance(epsilon, 300, guesses, v, 0.0) for v in range(guesses + 1)])
    assert (right > without + 1e-12).any()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.01), (0.5, 0.001), (1.0, 0.01)])
def test_the_bound_holds_for_a_mechanism_that_spends_its_delta_where_it_pays(epsilon: float, delta: float) -> None:
    right = adapting(40, epsilon, delta)[::-1].cumsum()[::-1]
    real = (1 + np.exp(epsilon)) * delta
    bounds = np.array([_chance(epsilon, 120, 120, v, real) for v in range(121)])
    plain = binom.sf(np.arange(121) - 1, 120, 1 / (1 + np.exp(-epsilon)))
    assert (right <= bounds + 1e-12).all()
    assert (right <= plain + 120 * real / (1 + np.exp(epsilon)) + 1e-12).all()
    assert (right > plain + 1e-12).any()


def test_an_audit_without_the_delta_term_would_accuse_the_innocent() -> None:
    """100 guesses about bits that are mostly shown in the clear, which delta allows: all right, and no claim refuted."""
    generator = np.random.default_rng(8)
    accused = {"with": 0, "without": 0}
    for _ in range(40):
        inside = generator.integers(0, 2, 2000).astype(bool)
        clear = generator.random(2000) < 0.05
        answer = np.where(clear | (generator.random(2000) < 1 / (1 + np.exp(-1.0))), inside, ~inside)
        seen = np.where(answer, 1.0, -1.0) * (1 + 9 * clear) + generator.random(2000) * 1e-3
        accused["with"] += _best_bound(seen, inside, 0.95, claim(1, 0.05)).refuted
        accused["without"] += _best_bound(seen, inside, 0.95, claim(1)).refuted
    assert accused["with"] <= 4
    assert accused["without"] == 40


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
    found = _best_bound(seen, inside, 0.999, claim(2))
    assert 1.2 < found.epsilon_lower <= 2.0
    assert not found.refuted
    assert _best_bound(seen, inside, 0.999, claim(1)).refuted


def test_the_words_say_what_a_zero_means() -> None:
    found = CanaryAudit(
        epsilon_lower=0.0,
        confidence=0.95,
        claimed_epsilon=1.0,
        delta=0.0,
        canaries=10,
        guesses=4,
        correct=2,
        relation="add-remove",
    )
    assert "a lower bound; zero does not mean private" in str(found)
    assert str(found).startswith("NOT PRIVATE (for the owner of the data)")
    assert found.to_dict()["refuted"] is False


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("dp-sgd", {"delta": 1e-4, "sampling_rate": 0.2, "epochs": 3}),
        ("learning-first", {"hidden": (4,), "epochs": 2}),
        ("anonymized-learning", {"hidden": (4,)}),
        ("objective-perturbation", {}),
        ("anonymizing-first", {"n_synthetic": 200, "epochs": 2}),
        ("anonymizing-first", {"synthesis": "microaggregation", "group_size": 20}),
    ],
)
def test_our_claims_survive_a_canary_audit(method: str, settings: dict[str, Any]) -> None:
    frame, label = people(300)
    clf = PrivateClassifier(method=method, schema=SCHEMA, **settings)
    found = canary_audit(clf, frame, label, canaries=200)
    assert not found.refuted
    assert found.canaries == 200
    assert found.relation == ("add-remove" if method == "dp-sgd" or settings.get("n_synthetic") else "replace-one")


def test_an_audit_sees_through_a_method_that_adds_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noise taken out of one step, the planted rows are found, and the claim is refuted."""
    X, y = points(40)
    monkeypatch.setattr("sabun.learning.dpsgd.rounded_gaussian", lambda total, **_: total)
    settings: dict[str, Any] = {"epsilon": 0.2, "delta": 1e-5, "sampling_rate": 0.5, "epochs": 100, "hidden": (100,)}
    clf = PrivateClassifier(classes=[0, 1], n_public=240, learning_rate=0.5, clip_norm=10.0, **settings)
    assert canary_audit(clf, np.tile(X, (1, 10)), y, canaries=200).refuted


def test_strange_numbers_are_refused() -> None:
    with pytest.raises(ParameterError, match="canaries must be a whole number >= 10"):
        canary_audit(PrivateClassifier(), *points(), canaries=3)
    with pytest.raises(ParameterError, match="confidence must be between 0 and 1"):
        canary_audit(PrivateClassifier(), *points(), confidence=2)


def test_membership_inference_says_that_it_is_not_private() -> None:
    X, y = points()
    clf = PrivateClassifier(delta=1e-3, sampling_rate=0.2, epochs=3).fit(X[:200], y[:200])
    found = membership_inference(clf.model_, members=(X[:200], y[:200]), others=(X[200:], y[200:]))
    assert 0.35 < found.auc < 0.65
    assert 0 <= found.caught < 0.1
    assert str(found).startswith("NOT PRIVATE")
    assert "a lower bound; zero does not mean private" in str(found)
    assert found.to_dict()["auc"] == found.auc


def test_auc_counts_ties_as_half() -> None:
    assert _auc(np.array([1.0, 2.0]), np.array([0.0, 1.0])) == pytest.approx(0.875)


def test_the_canary_audit_says_which_neighbours_it_tests() -> None:
    for relation, words in (("replace-one", "another row in its place: replace-one"), ("add-remove", "no row: add-remove")):
        clf = PrivateClassifier(method="laplace-sgd", epsilon=8, classes=[0, 1], epochs=1, relation=relation)
        assert f"{words} neighbours" in str(canary_audit(clf, *points(100), canaries=10))
