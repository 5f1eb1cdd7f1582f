"""Pure epsilon for small tables: noisy means of each class, a linear discriminant between them; proved in centroids.proof.md.

Notation: z in [-1, 1] is an input by its public bounds. First the pooled sums of z, of 2z^2 - 1 (numbers only) and of 1: a
record moves no coordinate by more than 1; means and spreads follow from them. Then, with t = (z - mean) / spread cut
to plus or minus 1, for each class the sums of (t, 1), in which a record moves one class's vector, no coordinate by more than 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np

from sabun.learning.network import Floats, Network
from sabun.learning.standardizing import folded
from sabun.learning.stream import NOISE, Stream
from sabun.learning.training import KEYSTREAM, Data, Problem, Progress, State, priced, promise
from sabun.privacy import Guarantee, plain
from sabun.privacy.noise import cubical_laplace

__all__ = ["NoisyCentroids"]

_SCALING_SHARE = Fraction(3, 10)
_STEP, _FINER = 1 << 12, 12
"""Grid steps to one, halved at most so many times; squares are counted in steps of its square."""
_LEAST_SQUARE = 0.0025
_WITHIN = 0.516
"""Variance of a standard normal cut to plus or minus 1."""
_LEAST_WITHIN = 0.1


class _Sums(NamedTuple):
    """What the noise is added to, in whole steps of a grid, with the number of steps to one."""

    places: np.ndarray[Any, np.dtype[np.int64]]
    unit: int


@final
@dataclass(frozen=True, kw_only=True)
class NoisyCentroids:
    """One run, calibrated: everything here is public.

    Args:
        problem: What the promise is about; its features have a schema.
        network: A network without hidden layers, in which the result is handed over.
    """

    problem: Problem
    network: Network

    @property
    def moved(self) -> int:
        """How many rows a neighbour step takes out or puts in."""
        return 1 if self.problem.relation == "add-remove" else 2  # proof: two-rows

    @property
    def epsilons(self) -> tuple[Fraction, Fraction]:
        """What the pooled sums cost, then those of the classes."""
        first = _SCALING_SHARE * self.problem.epsilon
        return first, self.problem.epsilon - first  # proof: shares

    def noise_for(self, n_records: int) -> float:
        """Standard deviation of the noise on a class mean in units of a column's spread, for equal classes."""
        inputs, classes = self.network.sizes
        return self.moved * classes * _deviation(inputs + 1) / (float(self.epsilons[1]) * n_records)

    def noise_of_scaling(self, n_records: int) -> float:
        """Standard deviation of the noise on a pooled mean, in units of half a column's bounds."""
        sums = len(self.problem.features.bounded) + sum(self.problem.features.bounded) + 1
        return self.moved * _deviation(sums) / (float(self.epsilons[0]) * n_records)

    @property
    def steps_to_one(self) -> int:
        """Of the grid of the classes' sums: so fine that the noise's scale is no less than its dimension, or most draws of a
        wide table would be thrown away."""
        times = math.ceil((self.network.sizes[0] + 1) * self.epsilons[1] / (_STEP * self.moved))
        return _STEP << min(max(times - 1, 0).bit_length(), _FINER)

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return {"rule": "parts", "pure": [str(part) for part in self.epsilons], "rho": "0", "delta": "0"}

    @property
    def guarantee(self) -> Guarantee:
        """The joint promise about all weights together; delta is zero."""
        return promise(
            self.problem,
            mechanism="noisy means of classes with noise from a cube (pure)",
            more=(KEYSTREAM,),
            epsilon=self.problem.epsilon,
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings."""
        return {"sizes": list(self.network.sizes), "n_public": self.problem.n_public}

    def first(self) -> State:
        """A model that knows nothing."""
        return State(step=0, weights=np.zeros(self.network.n_weights), velocity=np.empty(0))

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """One step: pooled sums with noise, sums of the classes with noise, the discriminant."""
        if start.step == 1:
            return
        data = data.labelled()
        heard = priced(progress, plain(self.problem.epsilon))
        heard(0.1, "adding up")
        z = np.clip(2.0 * data.rows - 1.0, -1.0, 1.0)
        scale, classes = self.epsilons
        means, spreads = self._scaling(self._noisy(self._pooled(z), scale, stream, 0))
        t = np.clip((z - means) / spreads, -1.0, 1.0)
        blocks = [
            self._noisy(self._of_class(t[data.labels == place]), classes, stream, 1 + place)  # proof: own-block
            for place in range(self.network.sizes[1])
        ]
        weights = self._discriminant(np.array(blocks))
        heard(0.9, "added up")
        folds = folded(self.network, weights, 2.0 / spreads, -(1.0 + means) / spreads)
        yield State(step=1, weights=folds, velocity=start.velocity)

    def value(self, last: State) -> Mapping[str, Any]:
        """The weights."""
        return {"weights": last.weights}

    def _pooled(self, z: Floats) -> _Sums:
        """Sums of (z, 2z^2 - 1 of numbers, 1) in steps of the square of the grid: whole numbers, exactly."""
        places, numbers = np.rint(z * _STEP).astype(np.int64), self.problem.features.bounded
        squares = 2 * places[:, numbers] ** 2 - _STEP**2
        ones = np.full((len(z), 1), _STEP**2)
        return _Sums(np.concatenate([places * _STEP, squares, ones], axis=1).sum(axis=0), _STEP**2)  # proof: pooled

    def _of_class(self, t: Floats) -> _Sums:
        unit = self.steps_to_one
        places = np.rint(t * unit).astype(np.int64)
        return _Sums(np.concatenate([places, np.full((len(t), 1), unit)], axis=1).sum(axis=0), unit)  # proof: of-class

    def _noisy(self, sums: _Sums, epsilon: Fraction, stream: Stream, step: int) -> Floats:
        scale = self.moved * sums.unit / epsilon  # proof: scale
        noise = cubical_laplace(scale, dimension=len(sums.places), coin=stream.coin(NOISE, step))  # proof: noise
        return np.asarray((sums.places + noise).astype(np.float64) / sums.unit)

    def _scaling(self, noisy: Floats) -> tuple[Floats, Floats]:
        """Means and spreads of all inputs; a label's spread follows from its mean. A function of what was released."""
        numbers = self.problem.features.bounded
        inputs = len(numbers)
        tau = self.moved * _deviation(len(noisy)) / float(self.epsilons[0])
        count = max(noisy[-1], 2 * tau, 10.0)
        noise = tau / count
        means = np.clip(noisy[:inputs] / count, -1.0, 1.0)
        squares = np.ones(inputs)
        squares[numbers] = (noisy[inputs:-1] / count + 1.0) / 2.0
        least = min(1.0, max(_LEAST_SQUARE, noise))
        return means * 0.25 / (0.25 + noise**2), np.sqrt(np.clip(squares - means**2, least, 1.0))

    def _discriminant(self, blocks: Floats) -> Floats:
        """Class means drawn together by what noise alone would part them by; a diagonal linear discriminant between them."""
        tau = self.moved * _deviation(blocks.shape[1]) / float(self.epsilons[1])
        counts = np.maximum(blocks[:, -1], max(tau, 1.0))
        shares = counts / counts.sum()
        noise = (tau / counts[:, None]) ** 2
        middle = np.clip(blocks[:, :-1].sum(axis=0) / counts.sum(), -1.0, 1.0)
        apart = np.clip(blocks[:, :-1] / counts[:, None], -1.0, 1.0) - middle
        signal = np.maximum(shares @ (apart**2 - noise), 0.0)
        signal = (signal + max(float((shares @ (apart**2 - noise)).mean()), 0.0)) / 2
        centres = middle + apart * signal / (signal + noise)
        within = np.maximum(_WITHIN - shares @ (centres - shares @ centres) ** 2, _LEAST_WITHIN)
        weights = np.zeros(self.network.n_weights)
        [(matrix, bias)] = self.network.layers(weights)
        matrix[:] = (centres / within).T
        bias[:] = np.log(shares) - (centres**2 / within).sum(axis=1) / 2
        return weights


def _deviation(dimension: int) -> float:
    """Standard deviation of one coordinate of noise from a cube with epsilon 1."""
    return math.sqrt((dimension + 1) * (dimension + 2) / 3)
