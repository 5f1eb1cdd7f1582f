from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sabun.errors import ParameterError
from sabun.regression import mirror as module
from sabun.regression.mirror import best_weights, mirror_weights, stacking_weights, theory_tau


def reference(losses: np.ndarray, tau: float, convention: str) -> list[float]:
    """Eq. (10) with fifty digits."""
    with localcontext() as context:
        context.prec = 50
        count, candidates = losses.shape
        sums, total = [Decimal(0)] * candidates, [Decimal(0)] * candidates
        for t in range(count):
            after = [s + Decimal(float(loss)) for s, loss in zip(sums, losses[t], strict=True)]
            used = after if convention == "paper" else sums
            weights = [(-(s - min(used)) / Decimal(tau)).exp() for s in used]
            total = [a + w / sum(weights) for a, w in zip(total, weights, strict=True)]
            sums = after
        return [float(a / count) for a in total]


@pytest.mark.parametrize("block", [1, 3, 100])
@pytest.mark.parametrize("convention", ["jrt", "paper"])
def test_weights_agree_with_fifty_digits(convention: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    losses = np.random.default_rng(0).exponential(size=(40, 4)) * [1, 1.1, 5, 30]
    assert mirror_weights(losses, tau=2.0, convention=convention) == pytest.approx(
        reference(losses, 2.0, convention), abs=1e-13
    )


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(float, (9, 3), elements=st.floats(0, 1e6)),
    st.floats(1e-6, 1e9),
    st.sampled_from(["jrt", "paper"]),
    st.floats(0, 100),
)
def test_weights_are_weights_and_ignore_a_common_shift(losses: np.ndarray, tau: float, convention: str, shift: float) -> None:
    weights = mirror_weights(losses, tau=tau, convention=convention)
    assert np.all(weights >= 0)
    assert weights.sum() == pytest.approx(1)
    if tau > 1:
        assert mirror_weights(losses + shift, tau=tau, convention=convention) == pytest.approx(weights, abs=1e-6)


def test_a_large_temperature_is_the_plain_average_and_a_small_one_the_best() -> None:
    losses = np.tile([1.0, 2.0, 3.0], (50, 1))
    assert mirror_weights(losses, tau=1e12) == pytest.approx([1 / 3] * 3)
    assert mirror_weights(losses, tau=1e-9, convention="paper") == pytest.approx([1, 0, 0])
    assert best_weights(losses).tolist() == [1, 0, 0]


def test_at_the_temperature_of_the_theory_mirror_averaging_is_nearly_averaging() -> None:
    losses = np.random.default_rng(0).exponential(size=(500, 10)) * 0.1
    assert mirror_weights(losses, tau=theory_tau(1.0)).max() < 0.2


def test_permutations_are_averaged_and_the_same_every_time() -> None:
    losses = np.random.default_rng(1).exponential(size=(30, 3))
    first = mirror_weights(losses, tau=1.0, permutations=4)
    assert np.array_equal(first, mirror_weights(losses, tau=1.0, permutations=4))
    assert not np.array_equal(first, mirror_weights(losses, tau=1.0))


def test_the_oracle_bound_of_the_theory_holds_on_average() -> None:
    """E R(mirror) <= min R + tau log M / n, for bounded data."""
    rng = np.random.default_rng(2)
    candidates = np.array([[0.5], [0.0], [-0.5]])
    excess = []
    for _ in range(200):
        x = rng.uniform(-1, 1, (20, 1))
        y = np.clip(0.4 * x[:, 0] + rng.uniform(-0.5, 0.5, 20), -1, 1)
        weights = mirror_weights((y[:, None] - x @ candidates.T) ** 2, tau=theory_tau(0.5))
        excess.append(((weights @ candidates)[0] - 0.4) ** 2 / 3 - 0.1**2 / 3)
    assert np.mean(excess) <= theory_tau(0.5) * np.log(3) / 20


def test_stacking_finds_the_mixture() -> None:
    rng = np.random.default_rng(0)
    predictions = rng.normal(size=(400, 3))
    assert stacking_weights(predictions, predictions @ [0.2, 0.8, 0.0]) == pytest.approx([0.2, 0.8, 0.0], abs=1e-3)


def test_no_record_gives_equal_weights() -> None:
    assert mirror_weights(np.zeros((0, 4)), tau=1.0).tolist() == [0.25] * 4


def test_bad_parameters_are_refused() -> None:
    losses = np.ones((2, 2))
    with pytest.raises(ParameterError, match="tau must be finite and > 0; got 0"):
        mirror_weights(losses, tau=0)
    with pytest.raises(ParameterError, match="convention must be one of 'jrt', 'paper'"):
        mirror_weights(losses, tau=1, convention="gibbs")
    with pytest.raises(ParameterError, match="permutations must be a whole number >= 1"):
        mirror_weights(losses, tau=1, permutations=0)
