from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone

from learning.learning_samples import SCHEMA, people, points
from sabun.errors import ParameterError
from sabun.learning import PrivateClassifier, canary_audit, membership_inference
from sabun.learning.audit import CanaryAudit
from sabun.learning.membership_attack import _auc
from sabun.learning.verdicts import Verdict, _chance, epsilon_lower_bound, free_verdict
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
    """Guesses about bits of which a fifth is shown in the clear, which delta allows: no claim is refuted.

    Of 1600 guesses 400 are surely right and 73 % of the others: 80 % +- 1 %, where epsilon 1 alone allows 73 %.
    """
    generator = np.random.default_rng(8)
    accused = {"with": 0, "without": 0}
    for _ in range(40):
        inside = generator.integers(0, 2, 2000).astype(bool)
        clear = generator.random(2000) < 0.2
        answer = np.where(clear | (generator.random(2000) < 1 / (1 + np.exp(-1.0))), inside, ~inside)
        seen = np.where(answer, 1.0, -1.0) * (1 + 9 * clear) + generator.random(2000) * 1e-3
        accused["with"] += free_verdict("", seen, inside, 0.95, claim(1, 0.2))[0].refuted
        accused["without"] += free_verdict("", seen, inside, 0.95, claim(1))[0].refuted
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
    found, guesses, correct = free_verdict("", seen, inside, 0.999, claim(2))
    assert 1.2 < found.epsilon_lower <= 2.0
    assert guesses == 1600 > correct
    assert not found.refuted
    assert free_verdict("", seen, inside, 0.999, claim(1))[0].refuted


def test_the_words_say_what_a_zero_means() -> None:
    verdict = Verdict(name="losses", epsilon_lower=0.0, refuted=False, evidence="2 of 4 guesses right")
    found = CanaryAudit(
        verdicts=(verdict,),
        confidence=0.95,
        claimed_epsilon=1.0,
        delta=0.0,
        canaries=10,
        guesses=4,
        correct=2,
        relation="add-remove",
    )
    assert "a lower bound; zero does not mean private" in str(found)
    assert "The claim is not refuted" in str(found)
    assert "What it would find without noise is not known" in str(found)
    assert "stands" not in str(found)
    assert str(found).startswith("NOT PRIVATE (for the owner of the data)")
    assert found.to_dict()["refuted"] is False
    assert found.to_dict()["verdicts"][0]["epsilon_lower"] == 0


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("dp-sgd", {"delta": 1e-8, "sampling_rate": 0.2, "epochs": 3}),
        ("dp-adam", {"delta": 1e-8, "epochs": 20, "relation": "replace-one", "hidden": (6,)}),
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
    found = canary_audit(clf, frame, label, canaries=200, confidence=1 - 1e-7)
    assert not found.refuted
    assert not found.publishable
    assert found.canaries == 200
    assert found.relation == ("add-remove" if method == "dp-sgd" or settings.get("n_synthetic") else "replace-one")


def test_strange_numbers_are_refused() -> None:
    with pytest.raises(ParameterError, match="canaries must be a whole number >= 10"):
        canary_audit(PrivateClassifier(), *points(), canaries=3)
    with pytest.raises(ParameterError, match="confidence must be between 0 and 1"):
        canary_audit(PrivateClassifier(), *points(), confidence=2)


def test_an_audit_without_rows_is_for_methods_by_noisy_sums() -> None:
    with pytest.raises(ParameterError, match="X must be given for the method 'objective-perturbation'"):
        canary_audit(PrivateClassifier(method="objective-perturbation", classes=[0, 1]))
    with pytest.raises(ParameterError, match="X must be given together with y"):
        canary_audit(PrivateClassifier(), points()[0])


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


def test_models_without_privacy_are_told_apart_from_shadows_and_private_ones_are_not() -> None:
    """Random labels of long rows: whoever learns them by heart tells the members.

    150 against 150: by chance the AUC has a standard deviation of 0.034, so 0.3 to 0.7 is six of them.
    """
    generator = np.random.default_rng(3)
    X, y = generator.uniform(-1, 1, (300, 400)), generator.integers(0, 2, 300)
    like = PrivateClassifier(epsilon=0.5, delta=1e-5, hidden=(), classes=[0, 1], epochs=5, n_public=150)
    model = clone(like).fit(X[:150], y[:150]).model_
    found = membership_inference(model, members=(X[:150], y[:150]), others=(X[150:], y[150:]), like=like, shadows=8)
    assert found.without_noise is not None
    assert found.without_noise.auc > 0.85
    assert 0.3 < found.auc < 0.7
    assert found.shadows == 8
    assert "Without noise and clipping: AUC" in str(found)


def test_an_attack_by_shadows_needs_a_method_that_reads_encoded_rows() -> None:
    frame, label = people(100)
    model = PrivateClassifier(schema=SCHEMA, classes=["no", "yes"], delta=1e-3, epochs=1).fit(frame, label).model_
    like = PrivateClassifier(method="anonymizing-first", schema=SCHEMA, classes=["no", "yes"])
    with pytest.raises(ParameterError, match="like must be a method that reads encoded rows"):
        membership_inference(model, members=(frame, label), others=(frame, label), like=like)
