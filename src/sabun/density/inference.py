"""How far an answer may be off: what a release tells, and what it leaves open."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sabun.density.answers import COVERED, WHOLE, Answer, Interval
from sabun.density.kernel import Floats
from sabun.density.law import NoiseLaw
from sabun.density.posterior import Posterior
from sabun.density.rkhs import Embedding
from sabun.density.settling import Settling
from sabun.density.smooth import Evidence
from sabun.density.weights import MOST_OPEN
from sabun.density.worst import worst_case

__all__ = ["Inference", "Interval", "uncovered_interval"]

_WIDEN = 1.5
"""The posterior's standard deviation is multiplied with it: a log-ratio may be less smooth than the prior says."""

_EVEN = 0.5
"""Share of the plain standard error of a weighted mean that is added: rows carry a weight that is itself estimated."""

_CLEAR = 3.0

_FAR = 1.25
"""Intervals end where the released embedding lies this many times as far from the weights' as noise and sampling explain: the
ratio is rougher or steeper than the prior can follow. Of 891 releases of the grid in `benchmarks/density_coverage.py` that
had intervals 4 at most lose them."""

_CONSTANT = (
    "every public row that counts has the same number: they do not show how far the private rows between them are from it"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Inference:
    """Answers with intervals from one release of the default method.

    Attributes:
        released: What was released.
        points: The public rows in the released coordinates.
        evidence: The released embedding of the covered rows.
        posterior: The error of weighted means.
        law: Of the noise.
        counts: Whether the number of private rows is released with noise.
    """

    released: Mapping[str, Any]
    points: Floats
    evidence: Evidence
    posterior: Posterior
    law: NoiseLaw
    counts: bool

    @classmethod
    def of(cls, plan: Embedding, released: Mapping[str, Any]) -> Self:
        """Takes up a release that has the uncovered share."""
        rank = len(released["embedding"])
        points, evidence = plan.embedded(rank), plan.evidence(released)
        weights = np.asarray(released["weights"], dtype=np.float64)
        posterior = Posterior.of(points, plan.features, weights / weights.sum(), evidence)
        counts = plan.target.relation == "add-remove"
        law = NoiseLaw(sd=float(released["noise_sd"]), dimension=rank + 1 + counts, pure=plan.target.delta is None)
        return cls(released=released, points=points, evidence=evidence, posterior=posterior, law=law, counts=counts)

    def uncovered(self, level: float) -> Interval:
        """Where the share of uncovered private rows lies: that of a counting query."""
        return uncovered_interval(float(self.released["uncovered"]), self.law.reach(level), counts=self.counts)

    def size(self, confidence: float) -> tuple[float, Interval]:
        """The number of private rows, and where it lies: at itself where it is public."""
        records = float(self.released["private_rows"])
        reach = records * self.law.reach(confidence) if self.counts else 0.0
        return records, (max(0.0, records - reach), records + reach) if self.counts else (records, records)

    def misfit(self) -> tuple[float, float]:
        """How far the weighted public embedding lies from that of the covered rows, and how far one would expect."""
        share, evidence = self.posterior.share, self.evidence
        spread = float(share @ ((self.points - share @ self.points) ** 2).sum(axis=1))
        noise = evidence.noise * (len(evidence.mean) + evidence.ratio * float(evidence.mean @ evidence.mean))
        explained = math.sqrt(noise + spread * (1 / evidence.rows + float(share @ share)))
        return float(np.linalg.norm(self.points.T @ share - evidence.mean)), explained

    @functools.cached_property
    def settling(self) -> Settling:
        """What decides between the weighted mean and the plain one."""
        return Settling(share=self.posterior.share, points=self.points)

    @functools.cached_property
    def reason(self) -> str | None:
        """Why no answer from this release can have an interval; None when it can."""
        covered = 1.0 - float(self.released["uncovered"])
        if covered < _CLEAR * self.law.sd:
            return "the number of private rows that the public table covers is lost in the noise"
        if not self.released["converged"]:
            return "the fit of the weights did not converge"
        if float(self.released["open"]) > MOST_OPEN:
            factor = math.exp(min(float(self.released["open"]), 10.0))
            return (
                f"the release leaves the ratio open by a factor of {factor:.2g} on typical rows: too few private rows or too "
                "small an epsilon for so many columns"
            )
        found, explained = self.misfit()
        if found > _FAR * explained:
            return (
                f"the weighted public rows lie {found / explained:.2g} times as far from what was released as chance explains: "
                "the ratio is steeper or rougher than an interval allows for, as where a shift parts columns that go together"
            )
        return None

    def answer(
        self, values: Floats, rows: NDArray[np.bool_], *, confidence: float, bounds: Interval | None, worst: bool
    ) -> Answer:
        """The mean of one number for each public row over the rows that count, with all that can be said about it."""
        estimate, weighted = self.settling.means(values, rows)
        # A mean over some rows is a quotient; this is its linear part, with mean zero.
        linear = (values - weighted) * rows / float(self.posterior.share @ rows)
        # The share of uncovered rows among those that meet a condition is not known.
        whole = bounds is not None and bool(rows.all())
        each = (1 + confidence) / 2 if whole else confidence  # two intervals that hold together
        noise, sampling, plain = self.posterior.errors(linear)
        below, above = self._reach(linear, each)
        around = min(weighted - below, estimate), max(weighted + above, estimate)
        told = _told(around, bounds, self.uncovered(each)[1] * whole)
        far = self._worst(values, bounds, confidence, whole) if worst and rows.all() else None
        reason = self.reason or (_CONSTANT if np.ptp(values[rows]) == 0 else None)
        return Answer(
            estimate=estimate,
            weighted=weighted,
            interval=None if reason else told,
            reason=reason,
            target=WHOLE if whole else COVERED,
            uncovered=min(1.0, max(0.0, float(self.released["uncovered"]))),
            uncovered_interval=self.uncovered(confidence),
            worst_case=far,
            sampling_error=math.hypot(sampling, _EVEN * plain),
            noise_error=noise,
            confidence=confidence,
        )

    def _reach(self, values: Floats, level: float) -> Interval:
        """How far below and above the answer of a question with mean zero the interval goes."""
        steps = NormalDist().inv_cdf((1 + level) / 2)
        _, sampling, plain = self.posterior.errors(values)
        beside = steps * math.hypot(_WIDEN * sampling, _EVEN * plain)
        low, high = self.posterior.tilted(values, _WIDEN * steps)
        return math.hypot(low, beside), math.hypot(high, beside)

    def _worst(self, values: Floats, bounds: Interval | None, level: float, whole: bool) -> Interval | None:
        radius = self.law.radius(level)
        found = worst_case(
            self.points,
            values,
            embedding=np.asarray(self.released["embedding"], dtype=np.float64),
            covered=1.0 - float(self.released["uncovered"]),
            radius=radius,
            counts=self.counts,
        )
        if found is None:
            return None
        most = uncovered_interval(float(self.released["uncovered"]), radius, counts=self.counts)[1]
        return _told(found, bounds, most * whole)


def uncovered_interval(share: float, reach: float, *, counts: bool) -> Interval:
    """All shares u with |share - u| within reach; when the number of rows is noisy too, within reach * sqrt(1 + u^2)."""
    if not counts:
        low, high = share - reach, share + reach
    elif reach >= 1:
        low, high = 0.0, 1.0
    else:  # Fieller's quotient: (1 - reach^2) u^2 - 2 share u + share^2 - reach^2 <= 0
        lead, half = 1 - reach**2, reach * math.sqrt(max(0.0, share**2 + 1 - reach**2))
        low, high = (share - half) / lead, (share + half) / lead
    return min(1.0, max(0.0, low)), min(1.0, max(0.0, high))


def _told(covered: Interval, bounds: Interval | None, uncovered: float) -> Interval:
    """An interval for the covered rows, within declared bounds, widened by the uncovered rows' share of those bounds."""
    if bounds is None:
        return covered
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in covered)
    return (1 - uncovered) * low + uncovered * bounds[0], (1 - uncovered) * high + uncovered * bounds[1]
