"""A whole run of the torch trainer: is the noise that is drawn what the promise needs, does one record move the sum by one?"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from contracts.laws import enough, gaussian_sigma
from contracts.watch import Heard

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")

from sabun.learning.torch_modules import TorchTrainer, loop  # noqa: E402
from sabun.learning.torch_modules.ghost import clipped_gradients  # noqa: E402

ROWS, LABELS = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32), np.arange(12) % 2


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Any]]:
    """(sigma, the sum it was added to) of each step, in units of the clip norm."""
    found: list[tuple[float, Any]] = []
    gaussian, normal = loop.rounded_gaussian, torch.Tensor.normal_

    def certified(centre: Any, *, sigma: float, **how: Any) -> Any:
        found.append((float(sigma), centre.copy()))
        return gaussian(centre, sigma=sigma, **how)

    def plain(self: Any, mean: float = 0.0, sigma: float = 1.0, **how: Any) -> Any:
        if "generator" in how and how["generator"] is not None:  # the first weights of a layer come without one
            assert mean == 0.0
            found.append((float(sigma), None))
        return normal(self, mean, sigma, **how)

    monkeypatch.setattr(loop, "rounded_gaussian", certified)
    monkeypatch.setattr(torch.Tensor, "normal_", plain)
    return found


@pytest.mark.parametrize("noise", ["certified", "torch"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_training_a_module_on_everybody_is_gaussian_noise(noise: str, relation: str, sums: list[tuple[float, Any]]) -> None:
    n_public = 12 if relation == "add-remove" else None
    facts: dict[str, Any] = {"delta": 1e-3, "sampling_rate": 1.0, "epochs": 3, "noise": noise}
    trainer = TorchTrainer(torch.nn.Linear(3, 2), relation=relation, n_public=n_public, **facts).fit(ROWS, LABELS)
    assert len(sums) == 3
    share = (1.0, 1e-3) if relation == "add-remove" else (0.5, 1e-3 / (1 + math.exp(0.5)))
    assert all(enough(sigma, gaussian_sigma(*share) * math.sqrt(3), waste=1.01) for sigma, _ in sums)
    assert (trainer.guarantee_.epsilon, trainer.guarantee_.delta) == (1, Fraction(1, 1000))


def test_a_private_number_of_records_is_paid_for_under_torch(heard: Heard, sums: list[tuple[float, Any]]) -> None:
    facts: dict[str, Any] = {"delta": 1e-3, "sampling_rate": 1.0, "epochs": 1, "relation": "add-remove"}
    TorchTrainer(torch.nn.Linear(3, 2), **facts).fit(ROWS, LABELS)
    for_count = 1 / heard.only("discrete_laplace").parameter
    assert enough(0.02, for_count, waste=1.01)
    [(sigma, _)] = sums
    assert gaussian_sigma(1.0, 1e-3) < sigma <= gaussian_sigma(1.0 - for_count, 1e-3) * 1.01


@pytest.mark.parametrize("clip_norm", [0.01, 0.7])
def test_one_record_moves_the_sum_of_a_module_by_one(clip_norm: float, sums: list[tuple[float, Any]]) -> None:
    module = torch.nn.Linear(3, 2)
    torch.nn.init.zeros_(module.weight)  # both classes are as likely, so the gradient is as long as the row
    facts: dict[str, Any] = {"sampling_rate": 1.0, "epochs": 1, "clip_norm": clip_norm, "relation": "add-remove", "n_public": 1}
    TorchTrainer(module, **facts).fit(1000 * np.ones((1, 3), dtype=np.float32), np.array([1]))
    [(_, centre)] = sums
    assert 0.999 < np.linalg.norm(centre) <= 1 + 1e-12


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_rounding_never_makes_a_summand_longer_than_the_clip_norm(fallback: bool, kind: Any) -> None:
    """Squares are added up exactly: a norm that was found too small by its last digit would show in one of these rows."""
    torch.manual_seed(0)
    module, loss, long = torch.nn.Linear(3, 2).to(kind), torch.nn.CrossEntropyLoss(reduction="none"), 0
    for row in torch.randn(60, 1, 3, dtype=kind):
        parts = clipped_gradients(module, loss, row, torch.tensor([1]), clip_norm=1e-3, fallback=fallback)
        length = sum(Fraction(value) ** 2 for part in parts.values() for value in part.double().reshape(-1).tolist())
        assert length <= 1
        long += length > Fraction(99, 100)
    assert long > 50
