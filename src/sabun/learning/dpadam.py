"""Full-batch steps with Adam on noisy sums of clipped gradients, inputs standardised first; proved in dpadam.proof.md.

Notation: u in [0, 1] is a number column by its public bounds, z = 2u - 1; inputs are (z - m) / (s c) with noisy means m and
spreads s, and c, the size of the constant beside them, by the noisy length of rows; a label's input is (0 or 1, less its noisy
share) / c. What is released is the same network on u and labels: the first layer takes all of that in.

Nothing here divides by the number of records: Adam's updates do not change when all sums are multiplied by one number.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np

from sabun.learning.accounting import Target, spent_after, whole_events, whole_multiplier
from sabun.learning.clipping import expected_piece
from sabun.learning.gaussian import rounded_gaussian
from sabun.learning.network import Floats, Network
from sabun.learning.shards import row_sums
from sabun.learning.shrinkage import shrunk
from sabun.learning.standardizing import Standardizing, folded
from sabun.learning.stream import COUNT, Stream
from sabun.learning.training import KEYSTREAM, Data, Meter, Problem, Progress, State, promise
from sabun.privacy import Guarantee
from sabun.privacy.events import Event
from sabun.privacy.noise import discrete_laplace

__all__ = ["MOST_ROWS", "DpAdam"]

_COUNT_SHARE = Fraction(1, 200)
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8
"""Adam's usual shares of what is kept of a mean and of a mean square."""
_RATE = 0.35
"""Divided by the root of a number of inputs: all weights of a unit together then move by about so much in a step."""
_COLUMNS = 32.0
"""Beside rows longer than those of so many columns with a spread of one, a linear model's constant is made longer: its part of
a gradient that is cut falls no further, and a class that nearly everybody has is still learned."""
_LATE = 0.5
"""Of the rate, after weights were drawn towards zero: their noise comes back more slowly."""
_LEFT, _LONG = 0.6, 0.015
"""Of the noise of all steps, what is still in the weights after them where noise is long beside the number of records: at least
so many times. Elsewhere steps pull back what noise did, and the root of that ratio is left of it."""

_PLENTY = 80.0
"""A hidden layer pays where records / (noise of all steps together) / sqrt(weights) is at least this,"""
_FOR_EACH = 3
"""and there are so many records for each of its weights: with fewer it costs straight classes more than it gives bent ones."""

MOST_ROWS = 6_000_000
"""Rows of a full batch whose sums round by less than the margin in the sensitivity."""

_WHOLE = (
    "sums of gradients are computed in 64-bit floating point; their rounding stays below one part in a million of the clip "
    f"norm for tables of up to {MOST_ROWS:,} rows, provided that whatever is computed of a row before rows are added "
    "up (products, squares and scaled numbers by compiled code, maxima, exponentials, sums and lengths by NumPy) comes out the "
    "same wherever the row stands, whatever the other rows hold (tried before each run on made-up rows of its shapes)"
)
_SINGLE = (
    "sums of gradients are computed in 32-bit floating point; the proof does not cover their rounding, nor compiled code or "
    "NumPy computing a row differently by its place (tried before each run on made-up rows of its shapes)"
)


@final
@dataclass(frozen=True, kw_only=True)
class DpAdam:
    """One run, calibrated: everything here is public.

    Args:
        problem: What the promise is about.
        network: What is trained, or the first choice where there are two.
        layered: What is trained instead where the noisy number of records says that there is plenty; None where the number is
            public, or the layers were chosen.
        steps: How many, each over all records.
        clip_norm: The norm C to which each example's gradient is cut.
        learning_rate: Adam's; None for the usual one, by the number of inputs.
        standardize: Whether a tenth of the budget goes into means and spreads of numbers and shares of labels.
        precision: "double", which the proof covers, or "single".
        shards: In how many parts, one after the other or side by side, the rows are summed.
    """

    problem: Problem
    network: Network
    layered: Network | None
    steps: int
    clip_norm: float
    learning_rate: float | None
    standardize: bool
    precision: str = "double"
    shards: int = field(default=1, repr=False)

    @property
    def kind(self) -> np.dtype[Any]:
        """The type of number to sum gradients in."""
        return np.dtype(np.float64 if self.precision == "double" else np.float32)

    @property
    def piece(self) -> int:
        """Rows worked on at a time, from public numbers."""
        return expected_piece(Fraction(1), self.problem.n_public, shards=self.shards)

    @property
    def networks(self) -> tuple[Network, ...]:
        """All that may be trained."""
        return (self.network,) if self.layered is None else (self.network, self.layered)

    @property
    def target(self) -> Target:
        """The promise, under its own relation."""
        return Target(epsilon=self.problem.epsilon, delta=self.problem.delta)

    @property
    def moved(self) -> int:
        """How many rows a neighbour step takes out or puts in."""
        return 1 if self.problem.relation == "add-remove" else 2  # proof: two-rows

    @property
    def count_epsilon(self) -> Fraction:
        """What the noisy number of records costs where the true one is private."""
        return Fraction(0) if self.problem.n_public is not None else _COUNT_SHARE * self.problem.epsilon

    @property
    def standardizing(self) -> Standardizing:
        """How inputs are scaled."""
        return Standardizing(features=self.problem.features, paid=self.standardize)

    @property
    def multiplier(self) -> Fraction:
        """Standard deviation of the noise in units of the clip norm."""
        return whole_multiplier(
            self.steps, self.target, moved=self.moved, count_epsilon=self.count_epsilon, scaled=self.standardizing.releases
        )

    @property
    def events(self) -> tuple[Event, ...]:
        """What the accountant sees, under the relation of the promise."""
        return whole_events(
            self.multiplier,
            self.steps,
            moved=self.moved,
            count_epsilon=self.count_epsilon,
            scaled=self.standardizing.releases,
        )

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return {
            "rule": "gaussian",
            "relation": self.problem.relation,
            "events": [event.to_dict() for event in self.events],
            "delta": str(self.problem.delta),
        }

    @property
    def guarantee(self) -> Guarantee:
        """The joint promise about all weights together."""
        return promise(
            self.problem,
            mechanism="DP-Adam (full batches, Gaussian noise rounded to a grid)",
            more=(_WHOLE if self.precision == "double" else _SINGLE, KEYSTREAM),
            epsilon=self.problem.epsilon,
            delta=self.problem.delta,
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings."""
        choice: dict[str, Any] = {}
        if self.layered is not None:
            sizes, rate = list(self.layered.sizes), self.rate_of(self.layered)
            choice = {"layered_sizes": sizes, "layered_from": self.plenty, "layered_learning_rate": rate}
        return {
            "sizes": list(self.network.sizes),
            **choice,
            "steps": self.steps,
            "noise_multiplier": self.multiplier,
            "clip_norm": self.clip_norm,
            "learning_rate": self.rate_of(self.network),
            "standardize": int(self.standardizing.releases),
            "precision": self.precision,
            "n_public": self.problem.n_public,
            **({"shards": self.shards} if self.shards > 1 else {}),
        }

    @property
    def plenty(self) -> int:
        """From how many records on the larger network is worth its noise."""
        largest = self.networks[-1]
        return max(math.ceil(_PLENTY * self.noise_on(largest)), _FOR_EACH * largest.n_weights)

    def first(self) -> State:
        """Public starting weights of the largest network, nothing remembered, nothing scaled."""
        largest, columns = self.networks[-1].n_weights, len(self.standardizing.first())
        return State(step=0, weights=np.zeros(largest), velocity=np.zeros(2 * largest + columns + 2))

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """The state after each further step."""
        data, multiplier = data.labelled(), float(self.multiplier)
        memory = _Memory.read(start, self) if start.step else self._begun(data, stream)
        network = self.networks[memory.choice]
        constant = self.constant_of(network, memory.scaling)
        rows = self.standardizing.applied(data.rows, memory.scaling, constant)
        summed = row_sums(
            network,
            rows,
            data.labels,
            clip_norm=self.clip_norm,
            piece=self.piece,
            kind=self.kind,
            shards=self.shards,
            crew=data.crew,
        )
        meter = Meter(progress, steps=self.steps, spent=self.spent_after)
        turn, rate = self.turn_of(network), self.rate_of(network) * constant
        for step in range(start.step, self.steps):
            total = summed(memory.weights, None)
            noisy = rounded_gaussian(total, sigma=multiplier, stream=stream, step=step)  # proof: noise
            memory = memory.after(noisy / multiplier, step=step + 1, rate=rate * (_LATE if 0 < turn <= step else 1.0))
            if step + 1 == turn:
                noise = rate * self.noise_left(network, memory.count)
                memory = dataclasses.replace(memory, weights=shrunk(network, memory.weights, noise=noise))
            meter(step + 1)
            yield memory.written(step + 1, like=self.first())

    def _begun(self, data: Data, stream: Stream) -> _Memory:
        """What is decided once: for how many records, the network, and how inputs are scaled."""
        count = self.noisy_count(data, stream) or self.problem.n_public or 1
        choice = int(self.layered is not None and count >= self.plenty)  # proof: noisy-choice
        scaling = self.standardizing.drawn(data.rows, self.multiplier, self.steps, stream=stream)
        weights = self.networks[choice].initial()
        none = np.zeros(len(weights))
        return _Memory(weights=weights, first=none, second=none, scaling=scaling, count=count, choice=choice)

    def value(self, last: State) -> Mapping[str, Any]:
        """The weights of a network on inputs between 0 and 1, with its sizes; what Adam remembers stays behind."""
        memory = _Memory.read(last, self)
        network = self.networks[memory.choice]
        inner, outer = self.standardizing.affine(memory.scaling, self.constant_of(network, memory.scaling))
        return {"weights": folded(network, memory.weights, inner, outer), "sizes": list(network.sizes)}

    def rate_of(self, network: Network) -> float:
        """How far a step moves a weight, at the usual rate by the number of its inputs.

        A row has one label of each category, so that a linear model's weights move by the geometric mean of columns and inputs.
        """
        if self.learning_rate is not None:
            return self.learning_rate
        inputs = network.sizes[0]
        met = math.sqrt(self.standardizing.columns * inputs) if _linear(network) else inputs
        return _RATE / math.sqrt(met + 1)

    def turn_of(self, network: Network) -> int:
        """After how many steps weights are drawn towards zero; 0 for never.

        Only where inputs are around zero: elsewhere many small weights together may be what a constant says. The other steps
        bring back what many columns say together and none by itself.
        """
        return self.steps * 3 // 4 if _linear(network) and self.standardizing.releases else 0

    def noise_left(self, network: Network, count: int) -> float:
        """The standard deviation of the noise that so many records leave in a weight until the turn, in steps of the rate."""
        left = min(1.0, math.sqrt(self.noise_on(network) / (_LONG * count)))
        return _LEFT * left * math.sqrt(self.turn_of(network))

    def noise_on(self, network: Network) -> float:
        """The length of the noise of all steps together, in clip norms."""
        return math.sqrt(network.n_weights / self.steps) * float(self.multiplier)

    def constant_of(self, network: Network, scaling: Floats) -> float:
        """How large a linear model's constant input is beside the others, by the noisy length of rows: at least 1.

        Inputs are divided by it and the rate is multiplied, so that constants alone learn faster. Gradients of rows about which
        the model is nearly sure are then cut less than others, which keeps it from learning the noise of a sample by heart.
        """
        return max(1.0, math.sqrt(float(scaling[-1]) / _COLUMNS)) if _linear(network) else 1.0

    def noisy_count(self, data: Data, stream: Stream) -> int | None:
        """The number of labelled rows with noise, which is released; None where the number of records is public."""
        if self.problem.n_public is not None:
            return None
        noise = stream.once(COUNT, lambda coin: discrete_laplace(1 / self.count_epsilon, coin=coin))
        return max(1, int((data.labels >= 0).sum()) + noise)  # proof: noisy-count

    def spent_after(self, step: int) -> str:
        """What the first steps cost by themselves, in words; the whole is charged before the first step all the same."""
        return spent_after(step, self.events, self.target, "add-remove")


def _linear(network: Network) -> bool:
    return len(network.sizes) == 2


@final
@dataclass(frozen=True, kw_only=True)
class _Memory:
    """What a run carries from step to step; arrays as long as the chosen network has weights."""

    weights: Floats
    first: Floats
    second: Floats
    scaling: Floats
    count: int
    choice: int

    def after(self, gradient: Floats, *, step: int, rate: float) -> _Memory:
        """One update of Adam (Kingma-Ba 2015); a function of the noisy gradient and of what was."""
        first = _FIRST * self.first + (1 - _FIRST) * gradient
        second = _SECOND * self.second + (1 - _SECOND) * gradient**2
        moved = (first / (1 - _FIRST**step)) / (np.sqrt(second / (1 - _SECOND**step)) + _TINY)
        return dataclasses.replace(self, weights=self.weights - rate * moved, first=first, second=second)

    def written(self, step: int, *, like: State) -> State:
        """As a state of the largest network, with zeros behind what a smaller one has."""
        short = np.zeros(len(like.weights) - len(self.weights))
        parts = (self.first, short, self.second, short, self.scaling, [float(self.count), float(self.choice)])
        return State(step=step, weights=np.concatenate([self.weights, short]), velocity=np.concatenate(parts))

    @classmethod
    def read(cls, state: State, method: DpAdam) -> _Memory:
        """What `written` wrote."""
        largest, choice = len(state.weights), int(state.velocity[-1])
        size = method.networks[choice].n_weights
        return cls(
            weights=state.weights[:size],
            first=state.velocity[:size],
            second=state.velocity[largest : largest + size],
            scaling=state.velocity[2 * largest : -2],
            count=int(state.velocity[-2]),
            choice=choice,
        )
