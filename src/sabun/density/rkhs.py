"""The default method: one noisy mean embedding of the private table, then weights that agree with it."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sabun.density.embedding import Lattice, lattice, rounded, whitening
from sabun.density.features import Features
from sabun.density.kernel import Floats, GaussianKernel
from sabun.density.mechanism import EuclideanNoise
from sabun.density.method import Promise, Target
from sabun.density.smooth import Evidence, Smoothness
from sabun.density.statistic import PointSums, Tally
from sabun.density.support import Support
from sabun.density.weights import best_rank, chosen
from sabun.errors import InternalError
from sabun.privacy.noise import Coin

__all__ = ["Embedding"]

_BLOCK = 4096
_FEW = 1024
_EXAMPLE = 16
_HIGHEST = 700.0
_LEAST_NOISE = 1e-14


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
        support: Which records the public rows can speak for.
        target: The privacy asked for.
        size: Public guess of the number of private rows; used under add-remove only.
        tau2: Variance of a query outside the feature space.
    """

    kernel: GaussianKernel
    white: Floats
    axes: Floats
    variances: Floats
    points: Floats
    support: Support
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
            support=Support.of(points, kernel),
            target=target,
            size=len(points) if size is None else size,
            tau2=tau2,
        )

    def statistic(self, features: Features, table: str) -> PointSums:
        """Sums of whole-number kernel values over the covered records, then the number of the others."""
        digest = hashlib.sha256(repr((self.kernel.factor, self.target, self.size, self.tau2, self.support.nearest)).encode())
        for array in (self.kernel.centres, self.support.lowest, self.support.highest):
            digest.update(array.tobytes())
        plan = f"rkhs {digest.hexdigest()} on {table}"
        return PointSums(
            plan=plan, size=self.kernel.size + 1, measure=self.sums, features=features, example=self.points[:_EXAMPLE]
        )

    def sums(self, points: Floats) -> NDArray[Any]:
        """What some records add to a tally, each by itself."""
        total = np.zeros(self.kernel.size + 1, dtype=object)
        for start in range(0, len(points), _FEW):
            part = points[start : start + _FEW]
            # Whole numbers up to 2**30, 1024 at a time: their sum fits in 64 bits, and Python's integers take it from there.
            whole = self.kernel.whole(part)
            off = self.support.off(part, whole)
            whole[off] = 0  # proof: off-is-zero
            total[:-1] += whole.sum(axis=0, dtype=np.int64)
            total[-1] += int(off.sum())
        return total

    def off(self, points: Floats) -> NDArray[np.bool_]:
        """Which of some points the public table cannot speak for."""
        parts = [points[start : start + _FEW] for start in range(0, len(points), _FEW)]
        return np.concatenate(
            [np.zeros(0, dtype=np.bool_), *(self.support.off(part, self.kernel.whole(part)) for part in parts)]
        )

    def rank(self, size: int) -> int:
        """How many coordinates are released; from public numbers only."""
        # More coordinates describe the table better, but each brings its noise, which (if pure) also grows with their number.
        # Where the two balance must not depend on a private row: the public variances stand in for what the private ones say.
        noise = [float(self._nominal(rank).variance) / self._known(size) ** 2 for rank in range(1, len(self.variances) + 1)]
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
            events=self._noise(self._lattice(size)).events if self.target.delta else (),
        )

    def draw(self, seen: Tally | Floats, coin: Coin) -> dict[str, Any]:
        """The noisy embedding with the uncovered share, then everything that follows from it."""
        if not isinstance(seen, Tally):
            raise InternalError("the embedding is drawn from a tally.")
        grid, vector, noise = self.protected(seen)
        noisy = [float(Fraction(value, 1 << grid.bits)) for value in noise.add(vector, coin=coin)]  # proof: only-access
        # A noisy count may be zero or less; a table of one row is the smallest that has a mean.
        size = max(noisy.pop(), 1.0) if self._counts else float(max(seen.count, 1))
        released = {
            "embedding": np.array(noisy[:-1]) / size,
            "uncovered": noisy[-1] / size,
            "noise_sd": float(noise.variance) ** 0.5 / 2.0**grid.bits / size,
            "private_rows": size,
        }
        return released | self._weighted(released)

    def protected(self, seen: Tally) -> tuple[Lattice, list[int], EuclideanNoise]:
        """The exact vector that is released with noise, in units of its lattice, with that noise. NOT PRIVATE."""
        grid = self._lattice(seen.count)  # proof: public-plan
        counts = [int(seen.sums[-1]), *([seen.count] if self._counts else [])]
        vector = grid.embed(seen.sums[:-1]) + [count << grid.bits for count in counts]  # proof: off-column
        return grid, vector, self._noise(grid)

    def ratio(self, released: Mapping[str, Any], points: Floats) -> Floats:
        """The ratio at any points, from what was released."""
        if "slope" in released:  # written before the ratio was smooth
            embedded = _mapped(self.kernel, points, self._coordinates(len(released["slope"])))
            ratio: Floats = np.maximum(0.0, float(released["intercept"]) + embedded @ np.asarray(released["slope"]))
            return ratio
        logs = self.smoothness.log_ratio(points, np.asarray(released["tilt"])) + float(released["level"])
        return np.exp(np.minimum(logs, _HIGHEST))

    def embedded(self, rank: int) -> Floats:
        """The public rows in the first coordinates of the feature space."""
        return _mapped(self.kernel, self.points, self._coordinates(rank))

    def support_score(self, points: Floats) -> Floats:
        """The squared length of each point in the feature space: 1 near the centres, 0 far away."""
        embedded = _mapped(self.kernel, points, self.white)
        score: Floats = np.minimum(1.0, (embedded**2).sum(axis=1))
        return score

    @functools.cached_property
    def smoothness(self) -> Smoothness:
        """What the log-ratio is expected to look like."""
        return Smoothness.of(self.points, tau2=self.tau2)

    @functools.cached_property
    def features(self) -> Floats:
        """The public rows in the features of the log-ratio."""
        return self.smoothness.features(self.points)

    def evidence(self, released: Mapping[str, Any]) -> Evidence:
        """The mean embedding of the covered rows, made of the released one."""
        noise, size = float(released["noise_sd"]), float(released["private_rows"])
        # The sums are of the covered rows alone, the divisor so far is the number of all rows. The share may be noise only:
        # below the noise, or less than one row, it would blow the mean up.
        covered = min(1.0, max(1.0 - float(released["uncovered"]), noise, 1.0 / size))
        mean = np.asarray(released["embedding"], dtype=np.float64) / covered
        return Evidence(
            mean=mean / max(1.0, float(np.linalg.norm(mean))),  # a mean of vectors of length at most 1
            noise=max((noise / covered) ** 2, _LEAST_NOISE),
            ratio=self.ratio_of_noise,
            rows=size * covered,
        )

    @property
    def ratio_of_noise(self) -> float:
        """Dividing by a noisy number moves a mean along itself, by one noisy number or two."""
        return 2.0 if self._counts else 1.0

    def _weighted(self, released: Mapping[str, Any]) -> dict[str, Any]:
        rank = len(released["embedding"])
        found, opened = chosen(self.embedded(rank), self.features, self.evidence(released))
        weights = found.share * len(found.share)
        tilt, constant = self.smoothness.tilt(found.slope)
        logs = self.features @ found.slope
        highest = float(logs.max())  # taken out before exp, so that it cannot overflow
        return {
            "weights": weights,
            "tilt": tilt,
            "level": constant - highest - math.log(float(np.exp(logs - highest).mean())),
            "converged": found.converged,
            "open": opened,
            "centres": self.kernel.centres,
            "factor": self.kernel.factor,
            "coordinates": self._coordinates(rank),
        }

    @property
    def _counts(self) -> bool:
        """Whether the number of private rows is released with noise."""
        return self.target.relation == "add-remove"

    def _known(self, size: int) -> int:
        return max(self.size if self._counts else size, 1)

    def _noise(self, grid: Lattice) -> EuclideanNoise:
        """What is added to the vector in units of its lattice."""
        return self._euclidean(grid.joint(), grid.rank)

    def _nominal(self, rank: int) -> EuclideanNoise:
        """The noise before the lattice is known: its sensitivity is the square root of two but for rounding."""
        return self._euclidean(Fraction(2**0.5), rank)

    def _euclidean(self, l2: Fraction, rank: int) -> EuclideanNoise:
        dimension = rank + (2 if self._counts else 1)
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
