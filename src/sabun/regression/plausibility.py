"""What a receiver can notice about releases: numbers that cannot be, organisations that pull the model their way.

Everything here is computed from released numbers, so it may be told to anybody.

An honest release is called implausible with probability at most `FALSE_ALARM`, shared equally by the `_TESTS` events below.
J = [[A, t c], [t c', t**2 q]] is a sum of (x, t y)(x, t y)', so without noise it has no negative eigenvalue, and none above
its trace, at most n (|x|**2 + t**2). t is such that the noise N of J has variance at most v on the diagonal and v / 2 above it.
- Mean: more independent noise can only raise E lambda_max (Jensen), so take exactly v and v / 2. Then E (u'Nu - w'Nw)**2 =
  2 v (1 - (u'w)**2) <= 4 v (1 - u'w) = 2 v E (g'u - g'w)**2 for unit u, w and a standard normal g, and by Sudakov-Fernique
  E lambda_max(N) <= sqrt(2 v) E |g| <= sqrt(2 v m) for m rows.
- Tail: u'Nu has variance v (sum u_i**4 + 2 sum_(i<j) u_i**2 u_j**2) = v, so lambda_max is a function of standard normals that
  moves by at most sqrt(v) a unit, and exceeds its mean by sqrt(2 v ln(1 / a)) with probability at most a.
- Discrete noise: let Y be normal noise of two grid units. A discrete Gaussian of at least two units plus Y has a continuous
  normal density up to a factor 1 + 1e-16. Y is symmetric, so u'Yu >= 0 half of the time for the leading u of N, and
  P(lambda_max(N) > x) <= 2 P(lambda_max(N + Y) > x): hence the variance of Y in `_Noise` and the 2 in `_Noise.edge`.
  Single sums need neither: a discrete Gaussian is sub-Gaussian with its own parameter (Canonne, Kamath, Steinke 2020).
- Staged: its noise is continuous and rounded, so the normal laws hold as they are. Residual sums are sums of (x, t)(x, t)' with
  |t| <= 1 beside the same A, so both stages are tested alike.
- Laplace: the spherical vector is scale |M| times a standard normal vector, with M normal of one more coordinate
  (`privacy/noise/spherical.py`). But for one event, |M|**2 is at most its chi-squared quantile; then all of the above holds
  with that variance. Its rounding moves an entry by at most a grid unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from sabun.regression.contribution import Contribution
from sabun.regression.design import UNIT, Design, Floats
from sabun.regression.models import Influence
from sabun.regression.pooling import Posterior
from sabun.regression.stages import staged_design
from sabun.regression.study import STAGED, STATISTICS, Study
from sabun.regression.sums import Sums, own_stages, released_radius

__all__ = ["FALSE_ALARM", "findings", "influences"]

FALSE_ALARM = 1e-6
"""At most this share of honest releases is called implausible."""

_TESTS = 24  # ends of tests of two stages, two of the number of rows among them, and the length of a Laplace vector
_SMOOTH = 2.0  # grid units of normal noise that make a discrete Gaussian a continuous one


def findings(contributions: Sequence[Contribution]) -> tuple[str, ...]:
    """Sentences about releases that honest data with honest noise would hardly give; each names the organisation."""
    return tuple(sentence for contribution in contributions for sentence in _implausible(contribution))


def influences(
    contributions: Sequence[Contribution], whole: Posterior, without: Callable[[int], Posterior]
) -> tuple[Influence, ...]:
    """What leaving each organisation out would change, the most influential first."""
    errors = np.sqrt(np.diag(whole.covariance))
    rows = []
    for place, contribution in enumerate(contributions):
        change = without(place).beta - whole.beta
        shift, distance = float(np.abs(change / errors).max()), float(np.linalg.norm(change))
        rows.append(Influence(organisation=contribution.organisation, largest_shift=shift, distance=distance))
    return tuple(sorted(rows, key=lambda row: -row.largest_shift))


@dataclass(frozen=True, kw_only=True)
class _Noise:
    """Variances of the noise, as large as all but the rarest draws make them, with what rounding adds."""

    gram: float
    moment: float
    square: float
    count: float
    grid: float

    @classmethod
    def of(cls, study: Study, sums: Sums) -> _Noise:
        level, grid = sums.noise, 1 / (UNIT**2 * study.design.shrink**2)
        growth = 1.0
        if study.method == "ssp-laplace":
            # The vector is a normal one times |M|, where M is normal with one more coordinate.
            free = study.width * (study.width + 3) // 2 + 2 + (study.relation == "add-remove")
            growth = float(chdtri(free, FALSE_ALARM / _TESTS)) / free
        smooth = (_SMOOTH * grid) ** 2
        return cls(
            gram=growth * max(level.gram, 2 * level.above) + smooth,
            moment=growth * level.moment + smooth,
            square=growth * level.square + smooth,
            count=growth * level.count,
            grid=grid,
        )

    def edge(self, size: int) -> float:
        """What the largest eigenvalue of the noise of a matrix of that size hardly ever exceeds."""
        return math.sqrt(2 * size * self.gram) + self.reach(self.gram, of=2) + size * self.grid

    def reach(self, variance: float, *, of: int = 1) -> float:
        """What none of that many sub-Gaussian numbers of that variance exceeds but for one event."""
        return math.sqrt(2 * variance * math.log(_TESTS * of / FALSE_ALARM)) + self.grid


def _implausible(contribution: Contribution) -> list[str]:
    name, study = contribution.organisation, contribution.study
    if contribution.is_second:  # residuals can be judged beside the sums of their first round only
        return []
    if study.method in STAGED:
        design = staged_design(study.design, released_radius(study, contribution.value))
        stages = own_stages(study, contribution.value)
        found = [_sums_that_cannot_be(study, design, sums) for sums in stages]
        tests = {what: any(one.get(what, False) for one in found) for what in found[0]}
    elif study.method in STATISTICS:
        tests = _sums_that_cannot_be(study, study.design, contribution.sums())
    else:
        length, bound = float(np.linalg.norm(contribution.beta())), float(study.coef_bound)
        tests = {"coefficients longer than the study's bound": study.method == "objpert" and length > bound * 1.001}
    return [
        f"Implausible: {name!r} sent {what}. Ask that organisation before you use it." for what, bad in tests.items() if bad
    ]


def _sums_that_cannot_be(study: Study, design: Design, sums: Sums) -> dict[str, bool]:
    """What no data can have, each with whether the sums show it beyond their noise."""
    noise, width = _Noise.of(study, sums), study.width
    moved = noise.reach(noise.count) if noise.count else 0.0
    most, least = sums.rows + moved, max(sums.rows - moved, 0.0) if sums.rows > 1 else 0.0
    longest, largest, constant = 1 / design.shrink**2, _largest_square(design), _constant(design)
    joint, scale = _joint(sums, noise)
    low, high = (float(value) for value in np.linalg.eigvalsh(joint)[[0, -1]])
    alone = float(np.linalg.eigvalsh(sums.gram)[0])
    edge = noise.edge(width + 1) + 1e-9 * (abs(low) + abs(high))  # generous to the digits of an eigenvalue
    corner, square = float(sums.gram[-1, -1]), noise.reach(noise.square)
    tests = {
        "products of features that are too large": (
            float(np.diag(sums.gram).max()) > most * largest + noise.reach(noise.gram, of=width)
            or float(np.trace(sums.gram)) > most * longest + noise.reach(width * noise.gram) + width * noise.grid
            or high > most * (longest + scale**2) + edge
        ),
        "products with the target that are too large": (
            float(np.abs(sums.moment).max()) > most * math.sqrt(largest) + noise.reach(noise.moment, of=2 * width)
        ),
        "squares of the target that cannot be": not -square <= sums.square <= most + square,
        "feature products that no data can have": alone < -edge,
    }
    if constant is not None:
        slack = noise.reach(noise.gram)
        fits = least * constant - slack <= corner <= most * constant + slack
        tests["a square of the constant that does not fit the number of rows"] = not fits
    together = "products of features and target that no data can have together"
    return tests | {together: low < -edge and not any(tests.values())}


def _joint(sums: Sums, noise: _Noise) -> tuple[Floats, float]:
    """The matrix of sums of (x, t y)(x, t y)', with t so small that the noise of no entry exceeds that of A; and t."""
    scale = min(math.sqrt(noise.gram / (2 * noise.moment)), (noise.gram / noise.square) ** 0.25)
    side = scale * sums.moment[:, None]
    return np.block([[sums.gram, side], [side.T, np.array([[scale**2 * sums.square]])]]), scale


def _largest_square(design: Design) -> float:
    """Of one coordinate of a row, in row units: it is within its bounds, and the row within the ball, before rounding."""
    return float((min(1 / design.scale, 1.0) + 1 / (UNIT * design.shrink)) ** 2)


def _constant(design: Design) -> float | None:
    """The square of the constant in a row, where no row is shortened."""
    if not design.intercept or design.radius is not None:
        return None
    unit = UNIT * design.shrink
    return float((np.rint(unit / design.scale) / unit) ** 2)
