"""One training run of a torch module, complete before any row is touched; proved in run.proof.md."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from torch import Tensor, nn

from sabun.errors import InternalError
from sabun.learning.accounting import Target, spent_after, training_events
from sabun.learning.crew import LostProcess
from sabun.learning.stream import COUNT, Stream
from sabun.learning.torch_modules.export import described, written
from sabun.learning.torch_modules.identity import identified, tensor_bytes
from sabun.learning.torch_modules.loop import Loop, Training, flat, put
from sabun.learning.torch_modules.paths import Loss
from sabun.learning.torch_modules.rows import Rows
from sabun.learning.training import NOISY_COUNT, Meter, Progress, State, makers
from sabun.privacy import Guarantee
from sabun.privacy.events import Event
from sabun.privacy.noise import discrete_laplace

if TYPE_CHECKING:
    from sabun.learning.crew import Crew

__all__ = ["ModuleRun"]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Where a thing lies in this process's memory, which says nothing about what it is."""

_STOPPED = (
    "training stopped halfway; the reason is not shown, for it may speak of a row. The charge stays. "
    "If memory was short, lower most_rows."
)


@final
@dataclass(frozen=True, kw_only=True)
class ModuleRun:
    """A module with its rows and settings, as `checkpoint` wants it.

    Args:
        module: What is trained, in place.
        loss: One number for each example.
        rows: The private rows.
        loop: Public settings of the steps.
        guarantee: The promise.
        target: The add-remove promise behind it.
        count_epsilon: What the noisy number of records costs; 0 where that number is public.
        n_public: The number of records where it is public.
        settings: Public settings for the release.
        crew: The processes that sum over shards; None where this one does.
    """

    module: nn.Module
    loss: Loss
    rows: Rows = field(repr=False)
    loop: Loop
    guarantee: Guarantee
    target: Target
    count_epsilon: Fraction
    n_public: int | None
    settings: Mapping[str, Any]
    crew: Crew | None = field(default=None, repr=False)

    @property
    def events(self) -> tuple[Event, ...]:
        """What the accountant sees, under add-remove neighbours."""
        return training_events(self.loop.plan, self.loop.multiplier, self.count_epsilon)

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return {
            "rule": "sampled-gaussian",
            "relation": self.guarantee.relation,
            "events": [event.to_dict() for event in self.events],
            "delta": str(self.guarantee.delta),
        }

    @property
    def facts(self) -> Mapping[str, Any]:
        """The public parameters of the release."""
        return {**self.settings, "account": self.account}

    def fingerprint(self) -> Iterable[bytes]:
        """Every setting, what torch computes with, every tensor that is not trained, every row."""
        loss = repr(self.loss) if isinstance(self.loss, nn.Module) else ""
        for part in (repr(self.module), loss, repr(self.loop), repr([(name, p.shape, p.dtype) for name, p in self._named()])):
            yield _ADDRESS.sub("", part).encode()
        for fact in _surroundings(self.rows.x.device):
            yield repr(fact).encode()
        yield makers()
        if self.loop.shards > 1:
            yield f"shards={self.loop.shards}".encode()
        yield from identified(self.loss, name="loss")
        yield str(self.rows.count).encode()
        of_loss = (*self.loss.parameters(), *self.loss.buffers()) if isinstance(self.loss, nn.Module) else ()
        for tensor in (*_fixed(self.module).values(), *of_loss, self.rows.x, self.rows.y):
            yield f"{tensor.dtype} {tuple(tensor.shape)}".encode()
            yield tensor_bytes(tensor)

    def first(self) -> State:
        """The parameters as they were given, which are public."""
        weights = flat([p for _, p in self._named()])
        return State(step=0, weights=weights, velocity=np.zeros_like(weights))

    def states(self, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """The state after each further step."""
        for training in self._steps(stream, progress, start):
            yield State(step=training.step, weights=training.weights, velocity=training.velocity)

    def train(self, stream: Stream, progress: Progress) -> Mapping[str, Any]:
        """All steps, without keeping states in between."""
        for _ in self._steps(stream, progress, None):
            pass
        return self._value(stream)

    def value(self, last: State, stream: Stream) -> Mapping[str, Any]:
        """The digest of the module file; the module holds the last parameters afterwards."""
        put([p for _, p in self._named()], last.weights)
        return self._value(stream)

    def _value(self, stream: Stream) -> Mapping[str, Any]:
        model, count = described(self.module), self._noisy_count(stream)
        value = {
            "model_sha256": hashlib.sha256(written(self.module)).hexdigest(),
            "n_parameters": model["parameters"],
            "model": model,
        }
        return value if count is None else {**value, NOISY_COUNT: count}

    def _named(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, p) for name, p in self.module.named_parameters() if p.requires_grad]

    def _steps(self, stream: Stream, progress: Progress, start: State | None) -> Iterator[Training]:
        plan, fixed = self.loop.plan, _fixed(self.module)
        meter = Meter(
            progress,
            steps=plan.steps,
            spent=lambda step: spent_after(step, self.events, self.target, self.guarantee.relation),
        )
        self.module.train()
        divisor = float(plan.probability) * (self.n_public or self._noisy_count(stream) or 1)
        training = Training(
            self.loop, self.module, self.loss, self.rows.x, self.rows.y, stream=stream, divisor=divisor, crew=self.crew
        )
        if start is not None:
            training.restore(start.step, start.weights, start.velocity)
        try:
            while training.step < plan.steps:
                _quietly(training)
                meter(training.step)
                yield training
        finally:
            _put_back(self.module, fixed)  # proof: put-back

    def _noisy_count(self, stream: Stream) -> int | None:
        """The number of rows with noise, which is released; None where it is public."""
        if self.n_public is not None:
            return None
        noise = stream.once(COUNT, lambda coin: discrete_laplace(1 / self.count_epsilon, coin=coin))
        return max(1, self.rows.count + noise)  # proof: noisy-count


def _quietly(training: Training) -> None:
    """One step; what it raises is dropped with its text, its cause and its context, but that a process is gone."""
    before, lost = training.step, None
    with contextlib.suppress(Exception):  # proof: silent
        try:
            training.advance()
        except LostProcess as error:
            lost = str(error)
    if lost is not None:
        raise LostProcess(lost)
    if training.step == before:
        raise InternalError(_STOPPED)


def _fixed(module: nn.Module) -> dict[str, Tensor]:
    """Copies of everything that training must not change."""
    frozen = {name: p.detach().clone() for name, p in module.named_parameters() if not p.requires_grad}
    return frozen | {name: buffer.detach().clone() for name, buffer in module.named_buffers()}


def _put_back(module: nn.Module, fixed: dict[str, Tensor]) -> None:
    """Writes the copies back, which changes nothing for a module that passed the checks."""
    now = dict(module.named_parameters()) | dict(module.named_buffers())
    changed = [name for name, value in fixed.items() if not torch.equal(value.nan_to_num(), now[name].detach().nan_to_num())]
    with torch.no_grad():
        for name, value in fixed.items():
            now[name].copy_(value)
    if changed:
        raise InternalError("a buffer or frozen parameter changed in training.")


def _surroundings(device: torch.device) -> Iterator[Any]:
    """What decides how torch rounds."""
    yield torch.__version__
    yield torch.__config__.show()
    yield str(device)
    yield torch.get_num_threads()
    yield torch.are_deterministic_algorithms_enabled()
    yield torch.get_float32_matmul_precision()
    yield torch.backends.mkldnn.enabled
    if device.type == "cuda":
        yield torch.cuda.get_device_name(device)
        yield torch.backends.cudnn.version()
        yield torch.backends.cudnn.allow_tf32
