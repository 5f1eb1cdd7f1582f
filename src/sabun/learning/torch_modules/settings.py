"""What a caller can choose about a run of a torch module, by what belongs together; all of it is public."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import torch

from sabun import checks
from sabun.asking.settings import Settings
from sabun.errors import ParameterError
from sabun.learning.poisson import PoissonPlan
from sabun.learning.shards import shards_for
from sabun.learning.torch_modules.loop import MOST_ROWS

__all__ = ["Descent", "Runtime"]


@final
@dataclass(frozen=True, kw_only=True)
class Descent(Settings):
    """How a module is trained: what decides, with epsilon and delta, how much noise there is and what is learned.

    Args:
        sampling_rate: The probability to take part in a step.
        epochs: Expected number of steps each record takes part in.
        clip_norm: To which each example's gradient is cut; from 1e-6 to 1e6.
        learning_rate: Of the mean clipped gradient in units of the clip norm.
        momentum: Share of the last update that is kept.

    Raises:
        ParameterError: One of them breaks its rule.
    """

    sampling_rate: float = 0.05
    epochs: int = 10
    clip_norm: float = 1.0
    learning_rate: float = 0.5
    momentum: float = 0.9

    def __post_init__(self) -> None:
        rate = self.sampling_rate
        checks.require(checks.is_number(rate) and 0 < rate <= 1, "above 0 and at most 1", sampling_rate=rate)
        checks.whole(minimum=1, epochs=self.epochs)
        checks.positive(clip_norm=self.clip_norm, learning_rate=self.learning_rate)
        checks.require(1e-6 <= self.clip_norm <= 1e6, "between 1e-6 and 1e6", clip_norm=self.clip_norm)
        checks.probability(momentum=self.momentum)

    @property
    def plan(self) -> PoissonPlan:
        """Who takes part in which step."""
        return PoissonPlan.of(sampling_rate=float(self.sampling_rate), epochs=int(self.epochs))

    def following(self, plan: PoissonPlan) -> Descent:
        """The same with the sampling rate and the epochs behind a plan.

        Raises:
            ParameterError: There are none.
        """
        exact = plan.probability
        for rate in (exact.limit_denominator(10**6) or exact, exact):  # a rate of few digits was rounded to a grid
            found = replace(self, sampling_rate=float(rate), epochs=max(1, math.floor(plan.steps * rate)))
            if found.plan == plan:
                return found
        raise ParameterError("plan must follow from a sampling rate and epochs; it does not. Make the trainer anew.")


@final
@dataclass(frozen=True, kw_only=True)
class Runtime(Settings):
    """Where the numbers of a run are computed, and in which arithmetic.

    Args:
        device: Where to train; None is the module's own.
        most_rows: Rows worked on at a time, at most 4096; None chooses. A chain of known layers takes the next multiple of 64.
        precision: Of sums of gradients: "double", which the proof covers, or "single", for processors slow at doubles.
        noise: "certified" is an exact Gaussian rounded to a grid, made from AES keystream on the CPU (some seconds a step for a
            hundred million parameters); "torch" is torch's own, made where the module is, which the proof does not cover.
        processes: How many processes of this machine sum gradients, over torch.distributed (gloo, on GPUs nccl with one GPU
            for each); one of them tosses all coins.
        shards: In how many parts the rows are summed, which decides the last bits; None for as many as processes.

    Raises:
        ParameterError: One of them breaks its rule.
    """

    device: str | torch.device | None = None
    most_rows: int | None = None
    precision: str = "double"
    noise: str = "certified"
    processes: int = 1
    shards: int | None = None

    def __post_init__(self) -> None:
        if self.most_rows is not None:
            checks.whole(minimum=1, most_rows=self.most_rows)
            checks.require(self.most_rows <= MOST_ROWS, f"at most {MOST_ROWS}", most_rows=self.most_rows)
        checks.one_of(("double", "single"), precision=self.precision)
        checks.one_of(("certified", "torch"), noise=self.noise)
        shards_for(self)
