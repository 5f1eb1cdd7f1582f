"""Rows that nobody else resembles: each canary has a column of its own, and so weights of its own.

Other rows are zero in that column, so that a canary's weights hear of the canary, of noise and of nothing else. Weights are
frozen (the promise does not depend on the learning rate): each step's noisy sum can be read off the states, and what a
canary adds to it is the same in every step.

Notation: m canaries, k weights to each (the outputs of the first layer), T steps, q the share of the rows in a step.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun.learning.dpadam import DpAdam
from sabun.learning.dpsgd import DpSgd
from sabun.learning.features import Features
from sabun.learning.laplace_sgd import LaplaceSgd
from sabun.learning.network import Floats, Network
from sabun.learning.stream import Stream
from sabun.learning.training import Data, Progress, one_thread

__all__ = ["FROZEN", "Adam", "Canaries", "Law", "Rule", "Seen", "Sgd", "Stepwise", "simulated", "size_for", "watched"]

Stepwise: TypeAlias = DpSgd | DpAdam | LaplaceSgd
"""Ways of training by noisy sums that can be read off their states."""

FROZEN = 1e-9
"""A learning rate at which the weights stay where they start."""
_SIZE = 100.0
"""What stands in a canary's column: beside it the rest of its gradient is small, and a gradient that is not cut stands out."""


@final
@dataclass(frozen=True, kw_only=True)
class Law:
    """What is declared of one noisy sum, in units of the clip norm.

    Args:
        share: The probability with which a row takes part in a step.
        scale: Of the noise: standard deviation, or the scale of Laplace's law.
        steps: How many there are.
        laplace: Which of the two.
    """

    share: float
    scale: float
    steps: int
    laplace: bool = False

    @property
    def variance(self) -> float:
        """Of the noise."""
        return self.scale**2 * (2 if self.laplace else 1)

    def ratio(self, sums: Floats, added: Floats, scale: float) -> Floats:
        """The logarithm of how much likelier sums are when that was added than when nothing was, by step and canary."""
        if self.laplace:
            return np.asarray((np.abs(sums) - np.abs(sums - added)).sum(axis=-1) / scale)
        return np.asarray(((2 * sums - added) * added).sum(axis=-1) / (2 * scale**2))


@final
@dataclass(frozen=True, kw_only=True)
class Canaries:
    """What each canary adds to its own weights, in units of the clip norm; arrays of m x k.

    Args:
        added: When it is in.
        instead: When it is not: nothing, or what the row in its place adds.
        uncut: As `added`, had nobody clipped it.
        uncut_instead: As `instead`.
    """

    added: Floats
    instead: Floats
    uncut: Floats
    uncut_instead: Floats

    def scores(self, sums: Floats, law: Law) -> tuple[Floats, ...]:
        """How much sums (T x m x k) speak for each canary, three ways; above 0 for "it is in", thresholds fixed beforehand."""
        found = [self._likelihood(sums, law, share * law.scale) for share in (1.0, 0.5)]
        across = self.added - self.instead
        middle = law.share * (self.added + self.instead) / 2
        plain = ((sums - middle) * across).sum(axis=(0, 2))
        # The first one ranks the canaries. Likelihoods of Laplace's law stop growing where a gradient was not clipped.
        return (plain, *found) if law.laplace else (*found, plain)

    def _likelihood(self, sums: Floats, law: Law, scale: float) -> Floats:
        sides = (law.ratio(sums, added, scale) for added in (self.added, self.instead))
        with np.errstate(divide="ignore"):
            out, into = np.log1p(-law.share), math.log(law.share)
        inside, outside = (np.logaddexp(out, into + side).sum(axis=0) for side in sides)
        return np.asarray(inside - outside)


class Rule(Protocol):
    """How noisy sums become weights."""

    def sums(self, before: Floats, after: Floats) -> Floats:
        """The noisy sum between two velocities."""

    def moved(self, sums: Floats) -> Floats:
        """How far all steps together move weights, given their sums (T x m x k)."""

    def expected(self, mean: Floats) -> Floats:
        """About the same for sums that have this mean."""


@final
@dataclass(frozen=True, kw_only=True)
class Sgd:
    """Momentum, and a rate that falls along a cosine."""

    momentum: float
    rate: float
    steps: int
    divisor: float

    def sums(self, before: Floats, after: Floats) -> Floats:
        """Velocities are sums of noisy means."""
        return (after - self.momentum * before) * self.divisor

    def moved(self, sums: Floats) -> Floats:
        """The same steps again, on these sums."""
        velocity = weights = np.zeros(sums.shape[1:])
        for step, one in enumerate(sums):
            velocity = self.momentum * velocity + one / self.divisor
            weights = weights - self.rate * 0.5 * (1 + math.cos(math.pi * step / self.steps)) * velocity
        return weights

    def expected(self, mean: Floats) -> Floats:
        """Exactly, for steps are linear."""
        return self.moved(np.broadcast_to(mean, (self.steps, *mean.shape)))


@final
@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam on sums in units of their noise."""

    rate: float
    steps: int
    multiplier: float
    first: float = 0.9
    second: float = 0.999

    def sums(self, before: Floats, after: Floats) -> Floats:
        """Velocities begin with the mean of the gradients."""
        return (after - self.first * before) / (1 - self.first) * self.multiplier

    def moved(self, sums: Floats) -> Floats:
        """The same steps again, on these sums."""
        mean = square = weights = np.zeros(sums.shape[1:])
        for step, one in enumerate(sums / self.multiplier, start=1):
            mean = self.first * mean + (1 - self.first) * one
            square = self.second * square + (1 - self.second) * one**2
            weights = weights - self.rate * (mean / (1 - self.first**step)) / (np.sqrt(square / (1 - self.second**step)) + 1e-8)
        return weights

    def expected(self, mean: Floats) -> Floats:
        """As if squares were those of the noise alone."""
        return -self.rate * self.steps * mean / self.multiplier


@final
@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one run shows of the canaries' own weights.

    Args:
        canaries: What each adds.
        law: What is declared.
        rule: How sums became weights.
        sums: The noisy sums, T x m x k.
        moved: Last weights less the first, m x k.
    """

    canaries: Canaries
    law: Law
    rule: Rule
    sums: Floats
    moved: Floats

    def scores(self) -> tuple[Floats, ...]:
        """What all noisy sums say."""
        return self.canaries.scores(self.sums, self.law)

    def noise(self, inside: NDArray[np.bool_]) -> float | None:
        """The size of the noise over the declared one, from the canaries in whose place was nothing; None without any."""
        quiet = ~inside & ~self.canaries.instead.any(axis=1)
        if not quiet.any():
            return None
        return float(np.sqrt((self.sums[:, quiet] ** 2).mean() / self.law.variance))

    def last_scores(self) -> tuple[Floats, ...]:
        """What the last weights alone say, which is what a recipient has."""
        sides = [self.rule.expected(self.law.share * side) for side in (self.canaries.added, self.canaries.instead)]
        return (((self.moved - (sides[0] + sides[1]) / 2) * (sides[0] - sides[1])).sum(axis=1),)


def simulated(
    seen: Seen, inside: NDArray[np.bool_], generator: np.random.Generator, *, noise: bool = True, clipping: bool = True
) -> Seen:
    """The same run as a formula: the declared mechanism, or one whose noise or clipping was forgotten."""
    law, plants = seen.law, seen.canaries
    sides = (plants.added, plants.instead) if clipping else (plants.uncut, plants.uncut_instead)
    took = generator.random((law.steps, len(inside), 1)) < law.share
    sums: Floats = np.where(took, np.where(inside[:, None], *sides), 0.0)
    if noise:
        draw = generator.laplace if law.laplace else generator.normal
        sums = sums + draw(0.0, law.scale, sums.shape)
    return dataclasses.replace(seen, sums=sums, moved=seen.rule.moved(sums))


def size_for(clip_norm: float) -> float:
    """What to put into a canary's column, given the norm to which its gradient will be cut."""
    return _SIZE * max(1.0, clip_norm)


def watched(
    method: Stepwise, real: Data, inside: NDArray[np.bool_], *, replaced: bool, stream: Stream, progress: Progress
) -> Seen:
    """One run with frozen weights on these rows and the canaries that are in; only the canaries' own weights are kept.

    Args:
        method: Calibrated for as many rows.
        real: Rows of the method's own columns; none are needed.
        inside: Which canaries are in.
        replaced: Whether an opposite row takes the place of one that is not.
        stream: Where batches and noise come from.
        progress: Told what is done.
    """
    width, count = real.rows.shape[1], len(inside)
    if isinstance(method, DpAdam):
        method = dataclasses.replace(method, layered=None)
    network = Network(sizes=(width + count, *method.network.sizes[1:]))
    features = Features(schema=None, names=tuple(f"x{i}" for i in range(width + count)))
    frozen = dataclasses.replace(
        method,
        network=network,
        problem=dataclasses.replace(method.problem, features=features),
        learning_rate=FROZEN,
    )
    size = size_for(method.clip_norm)
    rows, labels = _worst(network, size * np.eye(count, width + count, width))
    others = _worst(network, -rows)
    canaries = _canaries(frozen, network, (rows, labels), others, replaced=replaced)
    kept = [(rows[inside], labels[inside])] + ([(others[0][~inside], others[1][~inside])] if replaced else [])
    wide = np.hstack([real.rows, np.zeros((len(real.rows), count))])
    data = Data(
        rows=np.concatenate([wide, *(part for part, _ in kept)]),
        labels=np.concatenate([real.labels, *(part for _, part in kept)]),
    )
    outputs = network.sizes[1]
    own = slice(width * outputs, (width + count) * outputs)
    rule = _rule(frozen, data, stream)
    start = frozen.first()
    before, sums, last = start.velocity[own], [], start.weights
    first = network.initial()[own]
    with one_thread():
        for state in frozen.states(data, stream, progress=progress, start=start):
            after = state.velocity[own]
            sums.append(rule.sums(before, after).reshape(count, outputs))
            before, last = after, state.weights
    return Seen(
        canaries=canaries,
        law=_law(frozen),
        rule=rule,
        sums=np.array(sums),
        moved=(last[own] - first).reshape(count, outputs),
    )


def _worst(network: Network, rows: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Each row with the label that the first weights find least likely: its gradient does not vanish."""
    return rows, network.probabilities(network.initial(), rows).argmin(axis=1)


def _canaries(
    method: Stepwise,
    network: Network,
    planted: tuple[Floats, NDArray[np.int64]],
    others: tuple[Floats, NDArray[np.int64]],
    *,
    replaced: bool,
) -> Canaries:
    (cut, uncut), (other, uncut_other) = (_gradients(method, network, *rows) for rows in (planted, others))
    nothing = np.zeros_like(cut)
    return Canaries(
        added=cut,
        instead=other if replaced else nothing,
        uncut=uncut,
        uncut_instead=uncut_other if replaced else nothing,
    )


def _gradients(method: Stepwise, network: Network, rows: Floats, labels: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """What each row adds to its own weights, clipped and not, in units of the clip norm."""
    activity = network.activity(network.initial(), rows, labels)
    norms = network.l1_norms(activity) if isinstance(method, LaplaceSgd) else np.sqrt(network.squared_norms(activity))
    own = (activity.errors[0] * rows.sum(axis=1)).T
    return own / np.maximum(norms, method.clip_norm)[:, None], own / method.clip_norm


def _law(method: Stepwise) -> Law:
    if isinstance(method, DpAdam):
        return Law(share=1.0, scale=float(method.multiplier), steps=method.steps)
    share, steps = float(method.plan.probability), method.plan.steps
    if isinstance(method, DpSgd):
        return Law(share=share, scale=float(method.multiplier), steps=steps)
    return Law(share=share, scale=method.parameters["noise_scale"], steps=steps, laplace=True)


def _rule(method: Stepwise, data: Data, stream: Stream) -> Rule:
    if isinstance(method, DpAdam):
        return Adam(rate=FROZEN, steps=method.steps, multiplier=float(method.multiplier))
    # The number that sums are divided by is public, or noisy and released.
    return Sgd(momentum=method.momentum, rate=FROZEN, steps=method.plan.steps, divisor=method._divisor(data, stream))
