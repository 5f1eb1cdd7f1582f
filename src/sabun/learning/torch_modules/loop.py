"""The private training loop for torch modules: needs torch, numpy and cryptography, on a CPU numba; proved in loop.proof.md."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sabun.learning.gaussian import rounded_gaussian
from sabun.learning.network import Floats
from sabun.learning.poisson import PoissonPlan
from sabun.learning.shards import Sums, bounds
from sabun.learning.stream import NOISE, Stream
from sabun.learning.torch_modules.by_hand import Laid
from sabun.learning.torch_modules.ghost import Clipper, Loss

if TYPE_CHECKING:
    from sabun.learning.crew import Crew

__all__ = ["MOST_ROWS", "Loop", "ModuleShard", "Training", "flat", "plain_step", "put"]

_TOGETHER = 256
"""Pieces added up before they are added to the rest: rounding grows with the longest row of additions, not with all."""
MOST_ROWS = 4096
"""Rows worked on at a time at most; the bound on the rounding of sums needs it."""
_KEPT = 31 << 20
"""Bytes: just below the largest block from which the GNU library learns how much to keep."""


@final
@dataclass(frozen=True, kw_only=True)
class Loop:
    """Settings of one run; all public.

    Args:
        plan: Who takes part in which step.
        multiplier: Standard deviation of the noise in units of the clip norm.
        clip_norm: To which each example's gradient is cut.
        learning_rate: Of the mean clipped gradient in units of the clip norm; falls along a cosine.
        momentum: Share of the last update that is kept.
        most_rows: Rows worked on at a time, about; None chooses. A matter of memory and speed only.
        precision: Of the sums, "double" or "single".
        noise: "certified" is that of `gaussian`; "torch" is that of torch's generator, made where the module is.
        fallback: Write out per-example gradients also where that is not needed.
        shards: In how many parts, one after the other or side by side, a batch is summed.
    """

    plan: PoissonPlan
    multiplier: Fraction
    clip_norm: float
    learning_rate: float
    momentum: float = 0.9
    most_rows: int | None = None
    precision: str = "double"
    noise: str = "certified"
    fallback: bool = False
    shards: int = field(default=1, repr=False)


@final
class Training:
    """One run on one module, which is trained in place.

    Args:
        loop: The settings.
        module: What is trained.
        loss: One number for each example.
        x: Inputs.
        y: Targets.
        stream: Where batches and noise come from.
        divisor: By which sums become means: a public constant, or a noisy one that was paid for.
        crew: The processes that sum over shards; None where this one does.
    """

    def __init__(
        self,
        loop: Loop,
        module: nn.Module,
        loss: Loss,
        x: Tensor,
        y: Tensor,
        *,
        stream: Stream,
        divisor: float,
        crew: Crew | None = None,
    ) -> None:
        self._loop, self._x, self._y, self._stream, self._divisor = loop, x, y, stream, divisor
        self._trained = [p for p in module.parameters() if p.requires_grad]
        self._sizes = [p.numel() for p in self._trained]
        self._names = [name for name, p in module.named_parameters() if p.requires_grad]
        self._clipper = Clipper(module, loss, clip_norm=loop.clip_norm, precision=loop.precision, fallback=loop.fallback)
        # A row's arithmetic must not depend on how many rows are beside it, so there are always exactly so many.
        most, share = loop.most_rows or MOST_ROWS, float(loop.plan.probability)
        self._piece = self._clipper.piece(x, expected=divisor, probability=share, most=most)
        self._rows = self._clipper.laid(x, self._piece)
        self._velocity = torch.zeros(sum(self._sizes), dtype=torch.float64, device=x.device)
        self.step = 0
        self._sums = None if loop.shards == 1 else module_sums(loop, module, loss, x, y, divisor=divisor, crew=crew)
        # Taking a large block and giving it back makes a C library keep memory from one step to the next: the GNU one learns
        # from the size of a freed block up to which size it need not return memory, and pages once touched stay.
        torch.empty(_KEPT, dtype=torch.uint8)

    def advance(self) -> None:
        """One step."""
        loop, step = self._loop, self.step
        noisy = self._noisy(self._total(loop.plan.batch(len(self._x), self._stream, step)))
        rate = loop.learning_rate * 0.5 * (1 + math.cos(math.pi * step / loop.plan.steps))
        with torch.no_grad():
            self._velocity.mul_(loop.momentum).add_(noisy, alpha=1 / self._divisor)
            for parameter, part in zip(self._trained, self._velocity.split(self._sizes), strict=True):
                parameter.sub_(part.view_as(parameter), alpha=rate)
        self.step = step + 1

    def _noisy(self, total: Tensor) -> Tensor:
        loop = self._loop
        if loop.noise == "certified":
            # The stream is keyed by the run and the step: a step that is computed again after a crash has the same noise, so
            # that nobody gets a second look at one sum.
            centre = total.cpu().numpy()
            drawn = rounded_gaussian(centre, sigma=float(loop.multiplier), stream=self._stream, step=self.step)  # proof: noise
            return torch.from_numpy(drawn).to(total.device)
        generator = torch.Generator(device=total.device)
        generator.manual_seed(int(self._stream.words(NOISE, self.step, 1)[0] >> 1))  # proof: step-seed
        noise = torch.empty_like(total).normal_(0.0, float(loop.multiplier), generator=generator)  # proof: torch-noise
        return total + noise

    def _total(self, batch: NDArray[np.intp]) -> Tensor:
        """The clipped sum over a batch, in one go or shard by shard."""
        if self._sums is None:
            return self._sum(batch)
        return torch.from_numpy(self._sums(self.weights, batch)).to(self._x.device)  # proof: shards

    def _sum(self, batch: NDArray[np.intp]) -> Tensor:
        """The clipped sum over a batch, always the same number of rows at a time."""
        # Two levels: 256 pieces together, then what they give. One by one, the sum of n pieces would round n times; so it
        # rounds 256 + n / 256 times, which the bound on the rounding of sums counts on.
        total, pieces = None, self._pieces(batch)
        for _ in range(0, len(batch), self._piece * _TOGETHER):
            found = self._clipper.over(itertools.islice(pieces, _TOGETHER))  # proof: pieces
            some = self._flat(found)
            total = some if total is None else total.add_(some)
        return torch.zeros_like(self._velocity) if total is None else total

    def _flat(self, found: Mapping[str, Tensor]) -> Tensor:
        """What was found for each parameter, in one vector."""
        vector = torch.empty_like(self._velocity)
        for name, place in zip(self._names, vector.split(self._sizes), strict=True):
            place.view_as(found[name]).copy_(found[name])
        return vector

    def _pieces(self, batch: NDArray[np.intp]) -> Iterator[tuple[Tensor | Laid, Tensor, int]]:
        """The rows of a batch with their targets, so many at a time; how many of them count."""
        members, size = torch.from_numpy(batch).to(self._x.device), self._piece
        for at in range(0, len(batch), size):
            some = members[at : at + size]

            def taken(rows: Tensor, at: int = at, some: Tensor = some) -> Tensor:
                # A batch has no row twice, so one as long as the table is the table, and nothing need be copied.
                whole = len(batch) == len(self._x) and len(some) == size
                return rows[at : at + size] if whole else _taken(rows, some, size)  # proof: in-place

            x = self._rows.map(taken) if isinstance(self._rows, Laid) else taken(self._rows)
            yield x, taken(self._y), len(some)

    @property
    def weights(self) -> Floats:
        """The trained parameters now."""
        return flat(self._trained)

    @property
    def velocity(self) -> Floats:
        """What is left of the last updates."""
        return flat([self._velocity]).copy()

    def restore(self, step: int, weights: Floats, velocity: Floats) -> None:
        """Goes on from there."""
        put(self._trained, weights)
        put([self._velocity], velocity)
        self.step = step


def flat(parameters: Sequence[Tensor]) -> Floats:
    """The parameters as one vector of doubles."""
    vector: Floats = torch.cat([p.detach().double().reshape(-1) for p in parameters]).cpu().numpy()
    return vector


def put(parameters: Sequence[Tensor], weights: Floats) -> None:
    """Writes one flat vector into the parameters; numbers that came from them fit exactly."""
    parts = torch.from_numpy(weights.copy()).split([p.numel() for p in parameters])
    with torch.no_grad():
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.copy_(part.view_as(parameter))


def _taken(rows: Tensor, members: Tensor, size: int) -> Tensor:
    """The members' rows, with zeros up to so many."""
    # A batch of another size may be computed by other code, which rounds otherwise: then one person who joins a batch would
    # change everybody's numbers by a little. Zeros keep the shape; their sums are left out again (`count` of the clipper).
    taken = rows.new_empty(size, *rows.shape[1:])  # proof: same-shape
    torch.index_select(rows, 0, members, out=taken[: len(members)])
    taken[len(members) :] = 0
    return taken


@final
@dataclass(frozen=True, kw_only=True)
class ModuleShard:
    """Rows with the module that reads them, to be summed here or in another process; a `Shard`."""

    loop: Loop
    module: nn.Module
    loss: Loss
    x: Tensor = field(repr=False)
    y: Tensor = field(repr=False)
    divisor: float

    def __call__(self, weights: Floats, members: NDArray[np.intp] | None) -> Floats:
        """The clipped sum at these weights over some of the rows."""
        training = self._training
        put(training._trained, weights)
        found: Floats = training._sum(np.arange(len(self.x)) if members is None else members).double().cpu().numpy()
        return found

    @cached_property
    def _training(self) -> Training:
        self.module.train()
        return Training(self.loop, self.module, self.loss, self.x, self.y, stream=Stream(bytes(32)), divisor=self.divisor)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs: numbers that a machine without this one's GPU can read, and nothing computed here."""
        here = self.x.device.type
        held = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        module = copy.deepcopy(self.module).cpu()
        return held | {"module": module, "x": self.x.cpu(), "y": self.y.cpu(), "_device": here}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """On the same kind of device there."""
        device = state.pop("_device")
        for name in ("module", "x", "y"):
            state[name] = state[name].to(device)
        if isinstance(state["loss"], nn.Module):
            state["loss"].to(device)
        vars(self).update(state)


def module_sums(loop: Loop, module: nn.Module, loss: Loss, x: Tensor, y: Tensor, *, divisor: float, crew: Crew | None) -> Sums:
    """Sums over the rows of a module's run in its shards, each worked on as a table of its own."""
    own, count = replace(loop, shards=1), loop.shards
    cut = [
        ModuleShard(loop=own, module=module, loss=loss, x=x[low:high], y=y[low:high], divisor=divisor / count)
        for low, high in bounds(len(x), count)
    ]
    return Sums(cut, rows=len(x), crew=crew)


def plain_step(module: nn.Module, loss: Loss, x: Tensor, y: Tensor, *, learning_rate: float) -> None:
    """One ordinary SGD step, for comparison. NOT PRIVATE."""
    names = [p for p in module.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(loss(module(x), y).mean(), names)
    with torch.no_grad():
        for parameter, gradient in zip(names, gradients, strict=True):
            parameter.sub_(learning_rate * gradient)
