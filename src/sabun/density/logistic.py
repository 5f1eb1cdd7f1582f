"""The baseline of Ji and Elkan: weights from a private logistic regression that tells private rows from public ones.

Notation: f(x) a feature vector of length at most R; beta minimises the mean over private rows of log(1 + e^(-beta f)) plus the
mean over public rows of log(1 + e^(beta f)) plus lam |beta|^2 / 2; the weight is e^(beta f).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sabun import checks
from sabun.density.basis import NO_MEMORY, BoundedBasis
from sabun.density.features import Features
from sabun.density.kernel import Floats
from sabun.density.mechanism import EuclideanNoise
from sabun.density.method import Promise, Target
from sabun.density.paper import normalised
from sabun.density.statistic import PointSums, Tally
from sabun.errors import DataError, InternalError
from sabun.privacy.certified import sqrt_up
from sabun.privacy.noise import Coin

__all__ = ["Logistic"]

_BITS = 40
_GRADIENT = 1e-8
"""Newton's method ends when the gradient is no longer than this times R; the sensitivity allows for twice as much."""

_NEWTON_STEPS = 100
_HALVINGS = 30
_LOGARITHM = 19
"""Plain descent shortens the distance to the minimiser by e^-19 < 6e-9."""

_SHORTEST, _LONGEST = 1e-6, 1e6
_MOST_FEATURES = 4096
_MOST_ROWS = 2**25
_STEEPEST = 1e5
"""Largest R^2 / lam: bounds the steps of plain descent, and how rounding in beta f is magnified."""

_STEEPEST_WIDE = 4e7
"""Largest (features + 1) R^2 / lam: each feature adds a rounding error to beta f."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Logistic:
    """The plan of `method="ji-elkan"`: output perturbation.

    Guarantee: epsilon-DP (or (epsilon, delta)-DP) under replace-one; see `logistic.proof.md`.
    """

    public: Floats
    basis: BoundedBasis | None
    clip_norm: float
    penalty: float
    target: Target

    streams = False

    def __post_init__(self) -> None:
        """Refuses, by public numbers, what the error bounds of the solver do not cover."""
        radius, features = self.clip_norm, self._dimension
        advice = "Rescale the columns, or leave standardize=True."
        checks.require(_SHORTEST <= radius <= _LONGEST, f"from {_SHORTEST:g} to {_LONGEST:g}", advice, clip_norm=radius)
        checks.require(features <= _MOST_FEATURES, f"at most {_MOST_FEATURES}", features=features)
        least = radius**2 * max(1 / _STEEPEST, (features + 1) / _STEEPEST_WIDE)  # proof: public-range
        rule = f"from {least:.3g} (which grows with clip_norm squared) to 1e9"
        checks.require(least <= self.penalty <= 1e9, rule, "Choose a smaller clip_norm.", regularization=self.penalty)

    def statistic(self, features: Features, table: str) -> PointSums:
        """Never: the fit needs all rows at once."""
        raise InternalError("a logistic regression cannot stream.")

    def promise(self, size: int) -> Promise:
        """What `draw` keeps; refuses more rows than its error bounds cover."""
        if size + len(self.public) > _MOST_ROWS:
            raise DataError(f"both tables must have at most {_MOST_ROWS} rows together for this method; they have more.")
        facts = {"private_rows": size, "features": self._dimension, "clip_norm": self.clip_norm}
        return Promise(
            epsilon=self.target.epsilon,
            delta=self.target.delta or Fraction(0),
            mechanism=f"logistic regression with {self._noise(size).mechanism} noise",
            assumptions=("the number of private rows is public", *(() if self.basis is None else (NO_MEMORY,))),
            facts=facts,
            events=self._noise(size).events,
        )

    def draw(self, seen: Tally | Floats, coin: Coin) -> dict[str, Any]:
        """Noisy beta, then weights."""
        if isinstance(seen, Tally):
            raise InternalError("a logistic regression is drawn from all rows.")
        beta = self._minimiser(self._features(seen), self._features(self.public))
        whole = [round(Fraction(float(value)) * 2**_BITS) for value in beta]
        noisy = self._noise(len(seen)).add(whole, coin=coin)  # proof: noisy-beta
        released = np.array([float(Fraction(value, 2**_BITS)) for value in noisy])
        exponents = self._features(self.public) @ released
        top = float(exponents.max())
        raw = np.exp(exponents - top)
        return {"weights": normalised(raw), "beta": released, "log_scale": -top - float(np.log(raw.mean()))}

    def ratio(self, released: Mapping[str, Any], points: Floats) -> Floats:
        """e^(beta f), scaled as the weights are."""
        exponents = self._features(points) @ np.asarray(released["beta"]) + float(released["log_scale"])
        ratio: Floats = np.exp(np.minimum(exponents, 700.0))
        return ratio

    @property
    def _dimension(self) -> int:
        return int(self.public.shape[1]) + 1 if self.basis is None else self.basis.size

    def _noise(self, size: int) -> EuclideanNoise:
        dimension = self._dimension
        radius, penalty = Fraction(self.clip_norm), Fraction(self.penalty)
        change = radius * (Fraction(2, max(size, 1)) + 4 * Fraction(_GRADIENT)) / penalty  # proof: strong-convexity
        l2 = change * 2**_BITS + sqrt_up(Fraction(dimension))  # proof: rounded-beta
        return EuclideanNoise(l2=l2, epsilon=self.target.epsilon, delta=self.target.delta, dimension=dimension)

    def _features(self, points: Floats) -> Floats:
        """(1, x) or the user's basis, shortened to the clip norm; zeros for a row that is not finite."""
        plain = np.hstack([np.ones((len(points), 1)), points]) if self.basis is None else self.basis.values(points)
        finite = np.isfinite(plain).all(axis=1, keepdims=True)
        plain = np.where(finite, plain, 0.0)
        with np.errstate(all="ignore"):  # a warning about an overflow would speak of a private row
            largest = np.maximum(np.abs(plain).max(axis=1, keepdims=True), 1e-300)
            shape = plain / largest
            ratio = np.sqrt((shape**2).sum(axis=1, keepdims=True))
            # A little shorter than the bound, so that rounding cannot make it longer; from the shape, since a factor for the
            # numbers themselves could be too small for a float with all its digits.
            room = self.clip_norm * (1 - 2.0**-40)
            clipped: Floats = np.where(largest * ratio <= room, plain, shape * (room / ratio))  # proof: clipped-features
        return clipped

    def _minimiser(self, private: Floats, public: Floats) -> Floats:
        """A point within 2e-8 R / lam of the minimiser: Newton's, if its gradient proves it, otherwise plain descent's."""
        with np.errstate(all="ignore"):
            found = self._newton(private, public)
            return self._descended(private, public) if found is None else found

    def _newton(self, private: Floats, public: Floats) -> Floats | None:
        """Newton's method with steps halved until the gradient is shorter; None where it does not arrive."""
        beta = np.zeros(private.shape[1])
        gradient, curvature = self._slopes(beta, private, public)
        for _ in range(_NEWTON_STEPS):
            length = float(np.linalg.norm(gradient))
            if length <= _GRADIENT * self.clip_norm:
                return beta  # proof: short-gradient
            try:
                step = np.linalg.solve(curvature, gradient)
            except np.linalg.LinAlgError:
                return None
            for halvings in range(_HALVINGS):
                trial = beta - step / 2.0**halvings
                gradient, curvature = self._slopes(trial, private, public)
                if float(np.linalg.norm(gradient)) < length:
                    break
            else:
                return None
            beta = trial
        return None

    def _descended(self, private: Floats, public: Floats) -> Floats:
        """Gradient descent from zero, a public number of steps: its distance from the minimiser is known beforehand."""
        beta = np.zeros(private.shape[1])
        smooth = self.clip_norm**2 / 2 + self.penalty
        for _ in range(math.ceil(_LOGARITHM * smooth / self.penalty)):
            beta = beta - self._gradient(beta, private, public) / smooth  # proof: contraction
        return beta

    def _gradient(self, beta: Floats, private: Floats, public: Floats) -> Floats:
        p, q = _sigmoid(-private @ beta), _sigmoid(public @ beta)
        gradient: Floats = -(p @ private) / len(private) + (q @ public) / len(public) + self.penalty * beta
        return gradient

    def _slopes(self, beta: Floats, private: Floats, public: Floats) -> tuple[Floats, Floats]:
        p, q = _sigmoid(-private @ beta), _sigmoid(public @ beta)
        curvature = (private * (p * (1 - p))[:, None]).T @ private / len(private)
        curvature += (public * (q * (1 - q))[:, None]).T @ public / len(public) + self.penalty * np.eye(len(beta))
        return self._gradient(beta, private, public), curvature


def _sigmoid(x: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -x))
