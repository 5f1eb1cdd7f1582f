"""The baseline of Ji and Elkan: weights from a private logistic regression that tells private rows from public ones.

Notation: f(x) a feature vector of length at most R; beta minimises the mean over private rows of log(1 + e^(-beta f)) plus the
mean over public rows of log(1 + e^(beta f)) plus lam |beta|^2 / 2; the weight is e^(beta f).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sabun.density.basis import NO_MEMORY, BoundedBasis
from sabun.density.kernel import Floats
from sabun.density.mechanism import EuclideanNoise
from sabun.density.method import Promise, Target
from sabun.density.paper import normalised
from sabun.density.tally import Tally
from sabun.errors import InternalError
from sabun.privacy.certified import sqrt_up
from sabun.privacy.noise import Coin

__all__ = ["Logistic"]

_BITS = 40
_GRADIENT = 1e-8
"""The solver stops when the gradient is no longer than this times R; the sensitivity allows for twice as much."""

_NEWTON_STEPS = 100


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

    def start(self) -> Tally:
        """Never: the fit needs all rows at once."""
        raise InternalError("a logistic regression cannot stream.")

    def promise(self, size: int) -> Promise:
        """What `draw` keeps."""
        facts = {"private_rows": size, "features": self._features(self.public[:1]).shape[1], "clip_norm": self.clip_norm}
        return Promise(
            epsilon=self.target.epsilon,
            delta=self.target.delta or Fraction(0),
            mechanism=f"logistic regression with {self._noise(size).mechanism} noise",
            assumptions=("the number of private rows is public", *(() if self.basis is None else (NO_MEMORY,))),
            facts=facts,
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

    def _noise(self, size: int) -> EuclideanNoise:
        dimension = self.public.shape[1] + 1 if self.basis is None else self.basis.size
        radius, penalty = Fraction(self.clip_norm), Fraction(self.penalty)
        change = radius * (Fraction(2, max(size, 1)) + 4 * Fraction(_GRADIENT)) / penalty  # proof: strong-convexity
        l2 = change * 2**_BITS + sqrt_up(Fraction(dimension))  # proof: rounded-beta
        return EuclideanNoise(l2=l2, epsilon=self.target.epsilon, delta=self.target.delta, dimension=dimension)

    def _features(self, points: Floats) -> Floats:
        """(1, x) or the user's basis, shortened to the clip norm; zeros for a row that is not finite."""
        plain = np.hstack([np.ones((len(points), 1)), points]) if self.basis is None else self.basis.values(points)
        finite = np.isfinite(plain).all(axis=1, keepdims=True)
        plain = np.where(finite, plain, 0.0)
        largest = np.maximum(np.abs(plain).max(axis=1, keepdims=True), 1e-300)
        length = largest * np.sqrt(((plain / largest) ** 2).sum(axis=1, keepdims=True))
        with np.errstate(all="ignore"):
            # A little shorter than the bound, so that rounding cannot make it longer.
            clipped: Floats = plain * np.minimum(1.0, self.clip_norm * (1 - 2.0**-40) / length)  # proof: clipped-features
        return clipped

    def _minimiser(self, private: Floats, public: Floats) -> Floats:
        """Newton's method with halved steps, then plain descent, which cannot fail to arrive."""
        beta = np.zeros(private.shape[1])
        for _ in range(_NEWTON_STEPS):
            gradient, curvature = self._slopes(beta, private, public)
            if float(np.linalg.norm(gradient)) <= _GRADIENT * self.clip_norm:
                return beta
            step = np.linalg.solve(curvature, gradient)
            size, here = 1.0, self._objective(beta, private, public)
            while size > 1e-6 and self._objective(beta - size * step, private, public) > here:
                size /= 2
            beta = beta - size * step
        rate = 1.0 / (self.clip_norm**2 / 2 + self.penalty)
        while float(np.linalg.norm(gradient := self._slopes(beta, private, public)[0])) > _GRADIENT * self.clip_norm:
            beta = beta - rate * gradient  # proof: always-arrives
        return beta

    def _objective(self, beta: Floats, private: Floats, public: Floats) -> float:
        losses = np.logaddexp(0.0, -private @ beta).mean() + np.logaddexp(0.0, public @ beta).mean()
        return float(losses) + self.penalty / 2 * float(beta @ beta)

    def _slopes(self, beta: Floats, private: Floats, public: Floats) -> tuple[Floats, Floats]:
        p, q = _sigmoid(-private @ beta), _sigmoid(public @ beta)
        gradient = -(p @ private) / len(private) + (q @ public) / len(public) + self.penalty * beta
        curvature = (private * (p * (1 - p))[:, None]).T @ private / len(private)
        curvature += (public * (q * (1 - q))[:, None]).T @ public / len(public) + self.penalty * np.eye(len(beta))
        return gradient, curvature


def _sigmoid(x: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -x))
