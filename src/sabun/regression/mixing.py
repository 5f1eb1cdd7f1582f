"""Sums of several organisations as one: A without its negative directions, c mixed of both stages where there are two.

A staged release has c twice: its own, and that of the residuals around a start b, moved back by A b. Both hold the same
sampling noise, so they are mixed, (1 - l) c + l (c2 + A b), never added as if they were independent. The noise of A reaches the
mix through beta - l b, so its variance is (1 - l)**2 v_c + l**2 v_c2 + v_A (1 + 1 / width) / 2 |beta - l b|**2, and l is where
that is least: l = (v_c + g beta'b) / (v_c + v_c2 + g |b|**2) with g = v_A (1 + 1 / width) / 2, summed over organisations.
The estimate divides by A as it is seen, with most of its noise calmed away, so residuals are moved back by that A as well:
moved back by the noisy one, all of its noise would meet b, with nothing in the estimate to take it up.

A start comes from the same noisy A: as far as the noise N of A moved it, and not that of c, it is off by about -N beta / A, and
N meets beta - l b twice over. With v on the diagonal and v / 2 above it, E |N N beta|**2 is (2 w**2 + 5 w + 5) v**2 / 4
|beta|**2 for w coefficients, against (w + 1)**2 v**2 / 4 |beta|**2 if the two N were independent (moments of the Gaussian
orthogonal ensemble). The latter is also the square of its mean, which adds up over organisations with starts of their own.
`meets` holds both, for the share of the start's error that N stands for.

Residuals are cut, and where their tails differ (a few large ones on one side) the c of the residuals is off by what was cut,
however many rows there are. Nothing is cut from the first c. The two differ by that bias d and by noise that is known: each
number of d has the variance D = v_c + v_c2 + g |b|**2. So whoever reads a release can tell a bias that is larger than the noise
of the first sums, and takes the first c there: the share l is multiplied by k D / |d|**2, for the k directions that are looked
at together (James and Stein 1961). Skewed residuals that have nothing to do with the features move c along A's column of the
constant; that direction is looked at by itself. Where noise alone makes d, taking the first c costs D for each direction, which
can be many times what is at stake, so it is taken where |d|**2 / D is above T only: E[|d|**2 / D; |d|**2 / D > T] is
k P(chi2(k + 2) > T), and T is where that costs a twentieth of the error that there is without it. In a large table even D is
little beside that error, and T falls to 0. It is 0 too where squares around the start are clearly larger in the first sums
than in those of the residuals (with what cutting normal ones takes away): then there are tails, and only whether they differ is
open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import chdtri

from sabun.regression.design import Floats
from sabun.regression.sums import Sums

__all__ = ["Axes", "Mixed", "Together", "even", "tails_shown"]

_SPENT = 0.05
"""Which share of the error without it a look for bias may cost where there is none."""
_TAILS = 3.3
"""Squares that are larger by so many deviations of their noise are taken for tails: noise alone does that once in 2,000."""


@dataclass(frozen=True, eq=False)
class Axes:
    """The eigenvalues of the pooled A, none below 0, with their directions: the same whatever the weights; and A as it came."""

    values: Floats
    vectors: Floats
    gram: Floats

    @classmethod
    def of(cls, releases: Sequence[Sums]) -> Axes:
        """Of the sums of all, at least one."""
        gram = np.asarray(sum(one.gram for one in releases))
        values, vectors = np.linalg.eigh(_calmed(gram, sum(one.noise.gram for one in releases)))
        return cls(np.maximum(values, 0.0), vectors, gram)

    @cached_property
    def seen(self) -> Floats:
        """A as the estimate takes it: calmed, without its negative directions."""
        return self.turned(self.values)

    def turned(self, along: Floats) -> Floats:
        """The matrix with these numbers along the directions."""
        return np.asarray((self.vectors * along) @ self.vectors.T)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixed:
    """Sums of several organisations with c as the least noise mixes it, given coefficients.

    Args:
        moment: c.
        noise_gram: Variance of the noise on the diagonal of A.
        noise_moment: Of c by itself, along each direction of A.
        meets: The squared length of the coefficients that the noise of A meets, likewise, on average over organisations.
        shift: How much longer than the coefficients they can be.
    """

    moment: Floats
    noise_gram: float
    noise_moment: Floats
    meets: Floats
    shift: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Together:
    """Sums of several organisations, ready to be mixed for any coefficients.

    Args:
        axes: Their A.
        moment: Their own c.
        back: How the c of the residuals, moved back by A as it is seen, differs from it.
        apart: The same, moved back by A as it came: bias, and noise of known size.
        noise_gram: Variance of the noise on the diagonal of A.
        once: Variance of the noise of c where there are no residuals.
        plain: The same where there are some.
        cut: That of the residuals.
        starts: The starts, each times the noise of its A.
        crossed: Their outer products, likewise.
        longest: The length of the longest.
        different: How many different starts there are.
        tails: Whether squares around the starts are clearly larger in the first sums than in those of the residuals.
    """

    axes: Axes
    moment: Floats
    back: Floats
    apart: Floats
    noise_gram: float
    once: float
    plain: float
    cut: float
    starts: Floats
    crossed: Floats
    longest: float
    different: int
    tails: bool

    @classmethod
    def of(cls, releases: Sequence[Sums], axes: Axes) -> Together:
        """What is the same for all coefficients."""
        twice = [(one, one.refined) for one in releases if one.refined is not None]
        none = np.zeros(len(axes.values))
        apart = sum((again.moment - one.moment for one, again in twice), start=none)
        middle = sum((again.start for _, again in twice), start=none) / max(len(twice), 1)
        return cls(
            axes=axes,
            moment=np.asarray(sum(one.moment for one in releases)),
            back=apart + (axes.seen - axes.gram) @ middle,
            apart=apart,
            noise_gram=max(sum(one.noise.gram for one in releases), 1e-300),
            once=sum(one.noise.moment for one in releases if one.refined is None),
            plain=sum(one.noise.moment for one, _ in twice),
            cut=sum(again.noise[0] for _, again in twice),
            starts=sum((one.noise.gram * again.start for one, again in twice), start=none),
            crossed=sum((one.noise.gram * np.outer(again.start, again.start) for one, again in twice), start=0.0 * axes.gram),
            longest=max((math.sqrt(float(again.start @ again.start)) for _, again in twice), default=0.0),
            different=len({again.start.tobytes() for _, again in twice}),
            tails=tails_shown(releases),
        )

    def mixed(self, beta: Floats, variance: float, norm_squared: float | None = None) -> Mixed:
        """The mix for an estimate and a residual variance; `norm_squared` stands in for its squared length at first."""
        norm, width = float(beta @ beta) if norm_squared is None else norm_squared, len(beta)
        if not self.different:
            return self._unmixed(norm)
        reach, along, long = (1 + 1 / width) / 2, float(beta @ self.starts), self._long
        share = (self.plain + reach * along) / max(self.plain + self.cut + reach * long, 1e-300)
        share = min(max(share, 0.0), 1.0)
        folded = reach * self.noise_gram * norm
        again = (2 * width**2 + 5 * width + 5) / (width + 1) ** 2 - 2 + self.different

        def noise(taken: Any) -> tuple[Any, Any]:  # for one share, or for one along each direction
            square = taken * taken
            own = square * folded / max(folded + self.plain, 1e-300)
            meets = np.maximum(norm + (square * long - 2 * taken * along) / self.noise_gram, 0.0)
            return self.once + (1 - taken) ** 2 * self.plain + square * self.cut, meets * (1 + own * again)

        on_moment, meets = noise(share)
        first, rest = self._kept(float(on_moment + reach * self.noise_gram * meets) + variance * self._typical)
        moved, constant = share * self.back, self._constant
        on_moment, meets = noise(share * (rest + (first - rest) * self._toward_constant))
        return Mixed(
            moment=self.moment + (rest * moved + (first - rest) * (constant @ moved) * constant),
            noise_gram=self.noise_gram,
            noise_moment=on_moment,
            meets=meets,
            shift=share * self.longest,
        )

    def _unmixed(self, norm: float) -> Mixed:
        """Their own c alone, where no start says anything of residuals."""
        width = len(self.moment)
        return Mixed(
            moment=self.moment,
            noise_gram=self.noise_gram,
            noise_moment=np.full(width, float(self.once)),
            meets=np.full(width, norm),
        )

    @cached_property
    def _long(self) -> float:
        return float(self.crossed.trace())

    @cached_property
    def _typical(self) -> float:
        """What is typical of A along a direction."""
        return float(self.axes.values.mean())

    @cached_property
    def _toward_constant(self) -> Floats:
        """Which part of each direction of A is that of the constant."""
        return np.asarray((self._constant @ self.axes.vectors) ** 2)

    @cached_property
    def _constant(self) -> Floats:
        """Where residuals with a mean move c: along the last column of A, that of the constant where there is one."""
        column = self.axes.seen[:, -1]
        length = float(np.linalg.norm(column))
        return np.asarray(column / length) if length > 0 else np.eye(len(column))[-1]

    def _kept(self, error: float) -> tuple[float, float]:
        """Which part of its share the c of the residuals keeps beside the first one: along the constant, elsewhere.

        Args:
            error: The variance of a number of c without looking, sampling included.
        """
        along, elsewhere = self._bias
        borne = math.inf if self.tails else error
        return _kept_of_bias(*along, borne), _kept_of_bias(*elsewhere, borne)

    @cached_property
    def _bias(self) -> tuple[tuple[float, float, int], tuple[float, float, int]]:
        """How far c of the residuals is off the first one along the constant, and elsewhere: squared, noise, directions."""
        constant, width, known = self._constant, len(self.apart), self.plain + self.cut
        here, step = float(constant @ self.crossed @ constant), float(constant @ self.apart)
        spread = (width * self._long - here) / (2 * max(width - 1, 1))
        along = step**2, known + (self._long + here) / 2, 1
        return along, (float(self.apart @ self.apart) - step**2, known + spread, width - 1)


def tails_shown(releases: Sequence[Sums]) -> bool:
    """Whether the releases together say that residuals have tails."""
    larger, noise = (sum(one.tail[place] for one in releases) for place in (0, 1))
    return larger > _TAILS * math.sqrt(noise) > 0


def _kept_of_bias(square: float, noise: float, directions: int, error: float) -> float:
    """Which part is kept of numbers that differ by a squared length from unbiased ones, where noise alone has that variance."""
    if not directions or noise <= 0:
        return 1.0
    bound = float(chdtri(directions + 2, min(_SPENT * error / noise, 1.0)))
    return 1.0 if square <= bound * noise else min(directions * noise / square, 1.0)


def _calmed(gram: Floats, noise: float) -> Floats:
    """The noisy A with its trace and its rest drawn towards 0 as far as their noise asks for (James-Stein, positive part).

    In the coordinates of svec the noise is isotropic. The trace is one number with little noise, the rest are many.
    """
    width = len(gram)
    free = (width - 1) * (width + 2) / 2
    if free <= 2:
        return gram
    middle, ones = float(gram.trace()) / width, np.eye(width)
    rest, level = gram - middle * ones, max(middle, 0.0)
    sure = max(0.0, 1 - noise / width / max(level**2, 1e-300))
    # About as large a share of its noise stays in the estimate.
    kept = max(0.0, 1 - (free - 2) * noise / max(float((rest**2).sum()), 1e-300))
    return np.asarray(level * sure * ones + kept * rest)


def even(matrix: Floats) -> Floats:
    """A symmetric matrix to the last digit."""
    return np.asarray((matrix + matrix.T) / 2)
