"""A whole run of the torch trainer: is the noise that is drawn what the promise needs, does one record move the sum by one?"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from sabun.asking.evidence import Bench, Checklist
from sabun.asking.evidence.needed import gaussian_sigma

__all__ = ["CHECKS"]

CHECKS = Checklist()
ROWS, LABELS = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32), np.arange(12) % 2


def _sums_of(bench: Bench) -> list[tuple[float, Any]]:
    """(sigma, the sum it was added to) of each step, in units of the clip norm."""
    import torch

    from sabun.learning.gaussian import rounded_gaussian
    from sabun.learning.torch_modules import loop

    found: list[tuple[float, Any]] = []
    gaussian, normal = rounded_gaussian, torch.Tensor.normal_

    def certified(centre: Any, *, sigma: float, **how: Any) -> Any:
        found.append((float(sigma), centre.copy()))
        return gaussian(centre, sigma=sigma, **how)

    def plain(self: Any, mean: float = 0.0, sigma: float = 1.0, **how: Any) -> Any:
        if "generator" in how and how["generator"] is not None:  # the first weights of a layer come without one
            bench.must(mean == 0.0, "noise was drawn around another number than nought.")
            found.append((float(sigma), None))
        return normal(self, mean, sigma, **how)

    bench.replace(loop, "rounded_gaussian", certified)
    bench.replace(torch.Tensor, "normal_", plain)
    return found


@CHECKS("torch-modules", needs="learning", noise=["certified", "torch"], relation=["add-remove", "replace-one"])
def _training_a_module_on_everybody_is_gaussian_noise(bench: Bench, noise: str, relation: str) -> None:
    from torch import nn

    from sabun.learning import TorchTrainer

    sums = _sums_of(bench)
    n_public = 12 if relation == "add-remove" else None
    facts: dict[str, Any] = {"delta": 1e-3, "sampling_rate": 1.0, "epochs": 3, "noise": noise}
    trainer = TorchTrainer(nn.Linear(3, 2), relation=relation, n_public=n_public, **facts).fit(ROWS, LABELS)
    bench.must(len(sums) == 3, "there is not one noisy sum for each step.")
    share = (1.0, 1e-3) if relation == "add-remove" else (0.5, 1e-3 / (1 + math.exp(0.5)))
    for sigma, _ in sums:
        bench.enough(sigma, gaussian_sigma(*share) * math.sqrt(3), waste=1.01)
    bench.must(
        (trainer.guarantee_.epsilon, trainer.guarantee_.delta) == (1, Fraction(1, 1000)),
        "the promise is not what was asked for.",
    )


@CHECKS("torch-modules", needs="learning")
def _a_private_number_of_records_is_paid_for_under_torch(bench: Bench) -> None:
    from torch import nn

    from sabun.learning import TorchTrainer

    sums = _sums_of(bench)
    heard = bench.heard
    facts: dict[str, Any] = {"delta": 1e-3, "sampling_rate": 1.0, "epochs": 1, "relation": "add-remove"}
    TorchTrainer(nn.Linear(3, 2), **facts).fit(ROWS, LABELS)
    for_count = 1 / heard.only("discrete_laplace").parameter
    bench.enough(0.02, for_count, waste=1.01)
    [(sigma, _)] = sums
    bench.must(
        gaussian_sigma(1.0, 1e-3) < sigma <= gaussian_sigma(1.0 - for_count, 1e-3) * 1.01,
        "the noise is not that of what the count leaves of epsilon.",
    )


@CHECKS("torch-modules", needs="learning", clip_norm=[0.01, 0.7])
def _one_record_moves_the_sum_of_a_module_by_one(bench: Bench, clip_norm: float) -> None:
    from torch import nn

    from sabun.learning import TorchTrainer

    sums = _sums_of(bench)
    module = nn.Linear(3, 2)
    nn.init.zeros_(module.weight)  # both classes are as likely, so the gradient is as long as the row
    facts: dict[str, Any] = {"sampling_rate": 1.0, "epochs": 1, "clip_norm": clip_norm, "relation": "add-remove", "n_public": 1}
    TorchTrainer(module, **facts).fit(1000 * np.ones((1, 3), dtype=np.float32), np.array([1]))
    [(_, centre)] = sums
    bench.must(0.999 < np.linalg.norm(centre) <= 1 + 1e-12, "a gradient is not cut to the clip norm.")


@CHECKS("torch-modules", needs="learning", fallback=[False, True], kind=["float32", "float64"])
def _rounding_never_makes_a_summand_longer_than_the_clip_norm(bench: Bench, fallback: bool, kind: str) -> None:
    """Squares are added up exactly: a norm that was found too small by its last digit would show in one of these rows."""
    import torch
    from torch import nn

    from sabun.learning.torch_modules.ghost import clipped_gradients

    loss, long = nn.CrossEntropyLoss(reduction="none"), 0
    module = nn.Linear(3, 2).to(getattr(torch, kind))
    with torch.no_grad():
        for part, value in zip(module.parameters(), (0.3, 0.1), strict=True):
            part.copy_(value * torch.arange(1, part.numel() + 1).reshape(part.shape).sin())
    for row in torch.as_tensor(np.random.default_rng(0).normal(size=(60, 1, 3)), dtype=getattr(torch, kind)):
        parts = clipped_gradients(module, loss, row, torch.tensor([1]), clip_norm=1e-3, fallback=fallback)
        length = sum(Fraction(value) ** 2 for part in parts.values() for value in part.double().reshape(-1).tolist())
        bench.must(length <= 1, "a clipped gradient is longer than the clip norm.")
        long += length > Fraction(99, 100)
    bench.must(long > 50, "hardly any gradient had to be clipped, so that nothing shows.")


@CHECKS("torch-modules", needs="learning")
def _equal_sums_in_two_steps_or_two_runs_get_different_noise_of_every_kind(bench: Bench) -> str:
    """Sums are made to be nothing, so that what is added to the weights is the noise itself."""
    import torch
    from torch import nn

    from sabun.learning import TorchTrainer
    from sabun.learning.torch_modules import loop, trainer

    kinds, noisy = tuple(trainer._NOISE), loop.Training._noisy
    for noise in kinds:
        found: list[Any] = []

        def noted(self: Any, total: Any, found: list[Any] = found) -> Any:
            found.append(noisy(self, torch.zeros_like(total)))
            return found[-1]

        bench.replace(loop.Training, "_noisy", noted)
        facts: dict[str, Any] = {"delta": 1e-3, "sampling_rate": 1.0, "epochs": 3, "noise": noise, "relation": "replace-one"}
        for _ in range(2):
            TorchTrainer(nn.Linear(3, 2), **facts).fit(ROWS, LABELS)
        steps = [tuple(one.reshape(-1).tolist()) for one in found]  # on a grid, a single number may come twice by chance
        bench.must(len(set(steps)) == 6, f"{noise}: the noise of one step came again.")
        bench.must(all(len(set(step)) > len(step) // 2 for step in steps), f"{noise}: one number came in many places.")
    return ", ".join(kinds)
