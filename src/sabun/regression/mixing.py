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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sabun.regression.design import Floats
from sabun.regression.sums import Sums

__all__ = ["Axes", "Mixed", "Together", "even"]


@dataclass(frozen=True, eq=False)
class Axes:
    """The eigenvalues of the pooled A, none below 0, with their directions: the same whatever the weights; and A as it came."""

    values: Floats
    vectors: Floats
    gram: Floats

    @classmethod
    def of(cls, releases: Sequence[Sums]) -> Axes | None:
        """Of the sums of all; None without any."""
        if not releases:
            return None
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
        noise_moment: Of c by itself.
        meets: The squared length of the coefficients that the noise of A meets, on average over organisations.
        shift: How much longer than the coefficients they can be.
    """

    moment: Floats
    noise_gram: float
    noise_moment: float
    meets: float
    shift: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Together:
    """Sums of several organisations, ready to be mixed for any coefficients.

    Args:
        moment: Their own c.
        back: How the c of the residuals, moved back, differs from it.
        noise_gram: Variance of the noise on the diagonal of A.
        once: Variance of the noise of c where there are no residuals.
        plain: The same where there are some.
        cut: That of the residuals.
        starts: The starts, each times the noise of its A.
        long: Their squared lengths, likewise.
        longest: The length of the longest.
        apart: How many different starts there are.
    """

    moment: Floats
    back: Floats | float
    noise_gram: float
    once: float
    plain: float
    cut: float
    starts: Floats | float
    long: float
    longest: float
    apart: int

    @classmethod
    def of(cls, releases: Sequence[Sums], axes: Axes) -> Together:
        """What is the same for all coefficients."""
        twice = [(one, one.refined) for one in releases if one.refined is not None]
        back: Floats | float = 0.0
        if twice:
            middle = sum(again.start for _, again in twice) / len(twice)
            back = sum(again.moment - one.moment for one, again in twice) + (axes.seen - axes.gram) @ middle
        return cls(
            moment=np.asarray(sum(one.moment for one in releases)),
            back=back,
            noise_gram=max(sum(one.noise.gram for one in releases), 1e-300),
            once=sum(one.noise.moment for one in releases if one.refined is None),
            plain=sum(one.noise.moment for one, _ in twice),
            cut=sum(again.noise[0] for _, again in twice),
            starts=sum((one.noise.gram * again.start for one, again in twice), start=0.0),
            long=sum(one.noise.gram * float(again.start @ again.start) for one, again in twice),
            longest=max((math.sqrt(float(again.start @ again.start)) for _, again in twice), default=0.0),
            apart=len({again.start.tobytes() for _, again in twice}),
        )

    def mixed(self, beta: Floats, norm_squared: float | None = None) -> Mixed:
        """The mix for an estimate; `norm_squared` stands in for its squared length before there is one."""
        norm = float(beta @ beta) if norm_squared is None else norm_squared
        reach, along = (1 + 1 / len(beta)) / 2, float((beta * self.starts).sum())
        share = (self.plain + reach * along) / max(self.plain + self.cut + reach * self.long, 1e-300)
        share = min(max(share, 0.0), 1.0)
        width, folded = len(beta), reach * self.noise_gram * norm
        own = share**2 * folded / max(folded + self.plain, 1e-300) if self.apart else 0.0
        again = (2 * width**2 + 5 * width + 5) / (width + 1) ** 2 - 2 + self.apart
        return Mixed(
            moment=self.moment + share * self.back,
            noise_gram=self.noise_gram,
            noise_moment=self.once + (1 - share) ** 2 * self.plain + share**2 * self.cut,
            meets=max(norm + (share**2 * self.long - 2 * share * along) / self.noise_gram, 0.0) * (1 + own * again),
            shift=share * self.longest,
        )


def _calmed(gram: Floats, noise: float) -> Floats:
    """The noisy A with its trace and its rest drawn towards 0 as far as their noise asks for (James-Stein, positive part).

    In the coordinates of svec the noise is isotropic. The trace is one number with little noise, the rest are many.
    """
    width = len(gram)
    level = max(float(np.trace(gram)) / width, 0.0)
    if _free(width) <= 2:
        return gram
    sure = max(0.0, 1 - noise / width / max(level**2, 1e-300))
    return np.asarray(level * sure * np.eye(width) + _kept_of(gram, noise) * _rest(gram))


def _kept_of(gram: Floats, noise: float) -> float:
    """Which share of a noisy A is kept of what is not its trace; about as large a share of its noise stays in the estimate."""
    free = _free(len(gram))
    return 1.0 if free <= 2 else max(0.0, 1 - (free - 2) * noise / max(float(np.sum(_rest(gram) ** 2)), 1e-300))


def _rest(gram: Floats) -> Floats:
    return np.asarray(gram - np.trace(gram) / len(gram) * np.eye(len(gram)))


def _free(width: int) -> float:
    return (width - 1) * (width + 2) / 2


def even(matrix: Floats) -> Floats:
    """A symmetric matrix to the last digit."""
    return np.asarray((matrix + matrix.T) / 2)
