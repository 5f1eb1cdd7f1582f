"""What a release will cost and how precise it can be, before any private record is touched."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg

from sabun.asking import Forecast
from sabun.density.crowding import Crowding
from sabun.density.features import chosen_rows
from sabun.density.kernel import Floats
from sabun.density.posterior import Posterior
from sabun.density.smooth import Evidence
from sabun.density.weights import FLATTEST, MOST_OPEN
from sabun.errors import InternalError
from sabun.notebook import Rich
from sabun.privacy.amounts import plain
from sabun.privacy.noise import seeded_coin

if TYPE_CHECKING:
    from sabun.density.method import Method
    from sabun.density.rkhs import Embedding

__all__ = ["DensityPlan", "forecast"]

_ROWS = 1000
"""Public rows that a forecast is worked out on, at most: an error, not a weight, is asked for."""

_WORLDS = 4
"""Log-ratios that are drawn, each as rough as the prior expects."""

_HARDLY = 0.9
_ERROR = "error of a column's mean, in its standard deviations"
_ALIKE = "both tables are drawn from one population"
_UNLIKE = "the private rows differ as much as a smooth ratio is expected to"


@dataclass(frozen=True, kw_only=True)
class DensityPlan(Rich):
    """Cost and expected error of `method="rkhs"`, from public quantities only.

    All errors are distances between mean embeddings, where two tables without any overlap are about 1 apart.

    Attributes:
        epsilon: Cost.
        delta: Cost.
        relation: What the cost protects.
        private_rows: The number of private rows the plan is for.
        public_rows: The number of public rows.
        rank: How many coordinates will be released, beside the share of rows off the public support.
        noise_sd: Standard deviation of the noise in each of them.
        noise_error: Expected length of the noise.
        private_sampling_error: Expected distance between the private table and the population behind it, without any privacy.
        public_sampling_error: The same for the public table.
        forecasts: The error to expect where the private rows are like the public ones, and where they differ.
        told: How much smaller the release makes the error of a column's mean than it is without one, as a ratio.
        crowded: Columns in which many public rows lie so close together that weights hardly tell them apart.
        paper_noise_sd: Noise on each coordinate of h that the paper's Laplace mechanism needs at the same epsilon.
    """

    epsilon: Fraction
    delta: Fraction
    relation: str
    private_rows: int
    public_rows: int
    rank: int
    noise_sd: float
    noise_error: float
    private_sampling_error: float
    public_sampling_error: float
    paper_noise_sd: float
    forecasts: tuple[Forecast, ...]
    told: float
    crowded: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know before the charge, beside the forecasts."""
        advice = Crowding(columns=self.crowded).advice
        known = f"Where the tables differ, a column's mean would stay {self.told:.0%} as uncertain as without a release."
        return (known,) if advice is None else (known, advice)

    @property
    def vacuous(self) -> bool:
        """Whether an answer would be hardly less open than without a release."""
        return self.told >= _HARDLY

    @property
    def because(self) -> str:
        """Why it is vacuous, where it is: no forecast tells, for two tables from one population have means close together."""
        known = f"where the tables differ, a column's mean would stay {self.told:.0%} as uncertain as without a release"
        return known if self.vacuous else ""

    def __str__(self) -> str:
        cost = f"epsilon = {plain(self.epsilon)}" + (f", delta = {plain(self.delta)}" if self.delta else "")
        times = self.noise_error / max(self.private_sampling_error, 1e-300)
        return (
            f"Costs {cost} ({self.relation}) for {self.private_rows} private and {self.public_rows} public rows.\n"
            f"Releases {self.rank} numbers and the uncovered share, "
            f"with noise of standard deviation {self.noise_sd:.3g} each.\n"
            f"The noise is expected to be {times:.2g} times the private table's own sampling error "
            f"({self.noise_error:.3g} against {self.private_sampling_error:.3g}); "
            f"the public table's is {self.public_sampling_error:.3g}.\n"
            + "\n".join(f"{str(one).capitalize()}, if {' and '.join(one.assumed)}." for one in self.forecasts)
            + "".join(f"\n{remark}" for remark in self.remarks)
            + (f"\nepsilon is too small here: from {_HARDLY:.0%} on an answer tells hardly anything." if self.vacuous else "")
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        told = {"epsilon": str(self.epsilon), "delta": str(self.delta), "vacuous": self.vacuous, "crowded": list(self.crowded)}
        return {**dataclasses.asdict(self), **told, "forecasts": [one.to_dict() for one in self.forecasts]}


def forecast(plan: Method, *, n_records: int, crowding: Crowding) -> DensityPlan:
    """What that plan, an embedding, would cost and achieve on a private table of that size."""
    from sabun.density.rkhs import Embedding

    if not isinstance(plan, Embedding):
        raise InternalError("only an embedding has a forecast.")
    rank, noise = plan.rank(n_records), plan.noise_sd(n_records)
    spread = float(plan.variances.sum())
    forecasts, told = _foretold(plan, n_records)
    return DensityPlan(
        epsilon=plan.target.epsilon,
        delta=plan.target.delta or Fraction(0),
        relation=plan.target.relation,
        private_rows=n_records,
        public_rows=len(plan.points),
        rank=rank,
        noise_sd=noise,
        noise_error=noise * math.sqrt(rank),
        private_sampling_error=math.sqrt(spread / n_records),
        public_sampling_error=math.sqrt(spread / len(plan.points)),
        paper_noise_sd=math.sqrt(2) * plan.kernel.size / (n_records * float(plan.target.epsilon)),
        forecasts=forecasts,
        told=told,
        crowded=crowding.columns,
    )


def _foretold(plan: Embedding, n_records: int) -> tuple[tuple[Forecast, Forecast], float]:
    """The error of the columns' means, from the posterior that such a release would leave; with `DensityPlan.told`."""
    kept = chosen_rows(len(plan.points), _ROWS)
    points, smooth = plan.embedded(plan.rank(n_records))[kept], plan.smoothness.features(plan.points[kept])
    columns = plan.points[kept]
    spread = columns.std(axis=0)
    columns = columns[:, spread > 0] / spread[spread > 0]
    if not columns.shape[1]:
        return (_of_errors(np.zeros(1), _ALIKE), _of_errors(np.zeros(1), _UNLIKE)), 1.0
    even = np.full(len(points), 1 / len(points))
    evidence = Evidence(
        mean=even @ points, noise=plan.noise_sd(n_records) ** 2, ratio=plan.ratio_of_noise, rows=float(n_records)
    )
    posterior = Posterior.of(points, smooth, even, evidence)
    found = np.array([np.hypot(*posterior.errors(column)[:2]) for column in columns.T])
    before = np.linalg.norm(columns.T @ posterior.centred, axis=1) / len(points)
    flat = smooth if posterior.spread <= MOST_OPEN else smooth * FLATTEST**0.5  # as the weights will be made
    alike = _at_rest(points, flat, evidence, columns, len(plan.points))
    signs = (seeded_coin(0).words(_WORLDS * smooth.shape[1]) >> np.uint64(63)).astype(float) * 2 - 1  # of variance 1, public
    unlike = [np.maximum(found, alike)]
    for slope in signs.reshape(_WORLDS, -1):
        grown = np.exp(smooth @ slope - (smooth @ slope).max())
        tilted = Posterior.of(points, smooth, grown / grown.sum(), evidence)
        unlike.append(np.maximum([np.hypot(*tilted.errors(column)[:2]) for column in columns.T], alike))
    return (_of_errors(alike, _ALIKE), _of_errors(np.concatenate(unlike), _UNLIKE)), float(np.median(found / before))


def _at_rest(points: Floats, smooth: Floats, evidence: Evidence, columns: Floats, public_rows: int) -> Floats:
    """The standard errors of the columns' means where both tables are samples of one population: less than the posterior's.

    Notation: d, what the tables' means differ by in the released coordinates, with covariance C (1/n + 1/N), and z, the noise.
    The fitted weights answer a (d + z) more than the plain mean, the private table is b d more, with b the regression of the
    values on the coordinates; what that leaves of the values differs by itself.
    """
    share = np.full(len(points), 1 / len(points))
    posterior = Posterior.of(points, smooth, share, evidence)
    values, centred = columns - columns.mean(axis=0), points - points.mean(axis=0)
    tilts = posterior.centred.T @ values / len(points)
    factor = linalg.cholesky(evidence.covariance(points, share), lower=True)
    answered = linalg.solve_triangular(factor, linalg.cho_solve(posterior.root, posterior.pull @ tilts), lower=True, trans="T")
    explained, *_ = np.linalg.lstsq(centred, values, rcond=1e-8)
    missed, left = centred @ (answered - explained), values - centred @ explained
    sampled = (missed**2 + left**2).mean(axis=0) * (1 / evidence.rows + 1 / public_rows)
    found: Floats = np.sqrt(sampled + evidence.noise * (answered**2).sum(axis=0))
    return found


def _of_errors(errors: Floats, assumed: str) -> Forecast:
    """Of a normal error whose standard deviation is one of these."""
    law = NormalDist()

    def exceeds(x: float) -> float:
        return float(np.mean([2 * (1 - law.cdf(x / error)) if error else 0.0 for error in errors]))

    return Forecast.of_tail(_ERROR, exceeds, (assumed,), top=10 * float(errors.max()) + 1e-9)
