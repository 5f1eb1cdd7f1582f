"""The default method: one noisy mean embedding of the private table, then weights that agree with it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sabun.density.embedding import Lattice, lattice, rounded, whitening
from sabun.density.kernel import Floats, GaussianKernel
from sabun.density.mechanism import EuclideanNoise
from sabun.density.method import Promise, Target
from sabun.density.tally import Tally
from sabun.density.weights import Calibration, best_rank, tuned
from sabun.errors import InternalError
from sabun.privacy.noise import Coin

__all__ = ["Embedding"]

_BLOCK = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Embedding:
    """The public plan of `method="rkhs"`.

    Guarantee: `draw` is epsilon-DP, or (epsilon, delta)-DP when delta was asked for, whatever the records are: no bounds are
    needed. Under add-remove the number of records is private too. See `embedding.proof.md` and `mechanism.proof.md`.

    Attributes:
        kernel: The kernel with its public centres.
        white: A matrix that whitens the kernel, b x r.
        axes: Whitened principal axes of the public points, b x r.
        variances: Variances of the public points along them, falling.
        points: The public rows.
        target: The privacy asked for.
        size: Public guess of the number of private rows; used under add-remove only.
        tau2: Variance of a query outside the feature space.
    """

    kernel: GaussianKernel
    white: Floats
    axes: Floats
    variances: Floats
    points: Floats
    target: Target
    size: int
    tau2: float

    streams = True

    @classmethod
    def of(cls, points: Floats, centres: Floats, *, bandwidth: float, target: Target, size: int | None, tau2: float) -> Self:
        """Makes the plan from public points."""
        kernel = GaussianKernel.of(centres, bandwidth=bandwidth)
        white = whitening(kernel)
        variances, turn = np.linalg.eigh(_covariance(kernel, points, white))
        return cls(
            kernel=kernel,
            white=white,
            axes=white @ turn[:, ::-1],
            variances=variances[::-1].clip(0.0),
            points=points,
            target=target,
            size=len(points) if size is None else size,
            tau2=tau2,
        )

    def start(self) -> Tally:
        """Sums of whole-number kernel values."""
        digest = hashlib.sha256(repr((self.kernel.factor, self.target, self.size, self.tau2)).encode())
        digest.update(self.kernel.centres.tobytes())
        return Tally(self.kernel.sums, size=self.kernel.size, plan=f"rkhs {digest.hexdigest()}")

    def rank(self, size: int) -> int:
        """How many coordinates are released; from public numbers only."""
        ranks = np.arange(1, len(self.variances) + 1)
        noise = [float(self._nominal(int(rank)).variance) / self._known(size) ** 2 for rank in ranks]
        return best_rank(self.variances, np.array(noise))

    def noise_sd(self, size: int) -> float:
        """The standard deviation of the noise in each coordinate of the mean embedding."""
        return math.sqrt(self._nominal(self.rank(size)).variance) / self._known(size)

    def promise(self, size: int) -> Promise:
        """What `draw` keeps."""
        assumptions = () if self._counts else ("the number of private rows is public",)
        facts = {"rank": self.rank(size), "noise_sd": self.noise_sd(size)}
        return Promise(
            epsilon=self.target.epsilon,
            delta=self.target.delta or Fraction(0),
            mechanism=f"kernel mean embedding with {self._nominal(1).mechanism} noise",
            assumptions=assumptions,
            facts=facts if self._counts else {**facts, "private_rows": size},
        )

    def draw(self, seen: Tally | Floats, coin: Coin) -> dict[str, Any]:
        """The noisy embedding, then everything that follows from it."""
        if not isinstance(seen, Tally):
            raise InternalError("the embedding is drawn from a tally.")
        grid = self._lattice(seen.count)  # proof: public-plan
        vector = grid.embed(seen.sums) + ([seen.count << grid.bits] if self._counts else [])
        noise = self._noise(grid)
        noisy = [float(Fraction(value, 1 << grid.bits)) for value in noise.add(vector, coin=coin)]  # proof: only-access
        # A noisy count may be zero or less; a table of one row is the smallest that has a mean.
        size = max(noisy.pop(), 1.0) if self._counts else float(max(seen.count, 1))
        return self._weighted(grid, np.array(noisy) / size, float(noise.variance) / 4.0**grid.bits / size**2, size)

    def ratio(self, released: Mapping[str, Any], points: Floats) -> Floats:
        """max(0, intercept + slope . psi(x))."""
        embedded = _mapped(self.kernel, points, self._coordinates(len(released["slope"])))
        ratio: Floats = np.maximum(0.0, float(released["intercept"]) + embedded @ np.asarray(released["slope"]))
        return ratio

    def embedded(self, rank: int) -> Floats:
        """The public rows in the first coordinates of the feature space."""
        return _mapped(self.kernel, self.points, self._coordinates(rank))

    def support(self, points: Floats) -> Floats:
        """The squared length of each point in the feature space: 1 near the centres, 0 far away."""
        embedded = _mapped(self.kernel, points, self.white)
        score: Floats = np.minimum(1.0, (embedded**2).sum(axis=1))
        return score

    def _weighted(self, grid: Lattice, mean: Floats, variance: float, size: float) -> dict[str, Any]:
        mean = mean / max(1.0, float(np.linalg.norm(mean)))  # a mean of vectors of length at most 1
        found: Calibration = tuned(self.embedded(grid.rank), mean, noise=variance, tau2=self.tau2)
        return {
            "weights": found.weights,
            "embedding": mean,
            "noise_sd": variance**0.5,
            "slope": found.slope,
            "intercept": found.intercept,
            "penalty": found.penalty,
            "private_rows": size,
            "centres": self.kernel.centres,
            "factor": self.kernel.factor,
            "coordinates": self._coordinates(grid.rank),
        }

    @property
    def _counts(self) -> bool:
        """Whether the number of private rows is released with noise."""
        return self.target.relation == "add-remove"

    def _known(self, size: int) -> int:
        return max(self.size if self._counts else size, 1)

    def _nominal(self, rank: int) -> EuclideanNoise:
        """The noise before the lattice is known: its sensitivity is the square root of two but for rounding."""
        return self._euclidean(Fraction(2**0.5), rank)

    def _noise(self, grid: Lattice) -> EuclideanNoise:
        return self._euclidean(grid.joint() if self._counts else grid.replace, grid.rank)

    def _euclidean(self, l2: Fraction, rank: int) -> EuclideanNoise:
        dimension = rank + 1 if self._counts else rank
        return EuclideanNoise(l2=l2, epsilon=self.target.epsilon, delta=self.target.delta, dimension=dimension)

    def _lattice(self, size: int) -> Lattice:
        return lattice(self.kernel, self.axes[:, : self.rank(size)])

    def _coordinates(self, rank: int) -> Floats:
        return rounded(self.axes[:, :rank])


def _mapped(kernel: GaussianKernel, points: Floats, matrix: Floats) -> Floats:
    """Kernel values times a matrix, a block of rows at a time so that the kernel values never lie in memory together."""
    result = np.empty((len(points), matrix.shape[1]))
    for start in range(0, len(points), _BLOCK):
        result[start : start + _BLOCK] = kernel.values(points[start : start + _BLOCK]) @ matrix
    return result


def _covariance(kernel: GaussianKernel, points: Floats, white: Floats) -> Floats:
    """The covariance of the public points in the whitened feature space."""
    total, second = np.zeros(white.shape[1]), np.zeros((white.shape[1], white.shape[1]))
    for start in range(0, len(points), _BLOCK):
        part = _mapped(kernel, points[start : start + _BLOCK], white)
        total += part.sum(axis=0)
        second += part.T @ part
    mean = total / len(points)
    return second / len(points) - np.outer(mean, mean)
