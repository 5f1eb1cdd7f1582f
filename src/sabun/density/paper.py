"""The paper's methods: least-squares importance fitting on a noisy h, with the guarantees that really hold.

Notation: H = mean over the public rows of phi phi^T, h = mean over the private rows of phi (eqs. 14-15);
alpha = max(0, (H + lam I)^-1 h) (eqs. 18-19); b the number of basis functions; n the (public) number of private rows. Noise
goes on n h in whole-number units.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sabun.density.basis import NO_MEMORY, BoundedBasis
from sabun.density.features import Features
from sabun.density.kernel import UNIT_BITS, Floats, GaussianKernel
from sabun.density.mechanism import ManhattanNoise
from sabun.density.method import Promise, Target
from sabun.density.statistic import PointSums, Tally
from sabun.errors import DataError, InternalError, ParameterError
from sabun.privacy.certified import exp_down, log_down
from sabun.privacy.noise import Coin, uniform_below

__all__ = ["FixedBasis", "NoisyCentres", "RawCentres", "amplified", "fitted", "normalised"]

_SPAN = 1 << UNIT_BITS
_HUGE = 1e100
_EXAMPLE = 16
_SIZE_KNOWN = "the number of private rows is public"


def fitted(h: Floats, values: Floats, *, penalty: float) -> Floats:
    """alpha from h and the basis at the public rows."""
    with np.errstate(all="ignore"):
        try:
            alpha = np.linalg.solve(_system(values, penalty), h)  # eq. 18
        except np.linalg.LinAlgError:  # a penalty that vanishes beside the basis; the charge is paid, so there is an answer
            alpha = np.zeros(len(h))
    clipped: Floats = np.clip(np.nan_to_num(alpha), 0.0, _HUGE)  # eq. 19
    return clipped


def _system(values: Floats, penalty: float) -> Floats:
    system: Floats = values.T @ values / len(values) + penalty * np.eye(values.shape[1])
    return system


def normalised(raw: Floats) -> Floats:
    """Weights of mean one; all ones where nothing is left of them."""
    scale = _scale(raw)
    return raw * scale if scale else np.ones(len(raw))


def amplified(epsilon: Fraction, *, sampled: int, of: int) -> Fraction:
    """The epsilon a sample may be given so that the whole table gets `epsilon`.

    It is log(1 + (e^epsilon - 1) of / sampled), rounded down, for a fixed number of rows sampled without replacement under
    replace-one neighbours.

    Example:
        >>> [round(float(amplified(Fraction(e), sampled=50, of=2000)), 3) for e in ("0.1", "1", "10")]
        [1.65, 4.245, 13.689]
    """
    return log_down(1 + (exp_down(epsilon) - 1) * Fraction(int(of), int(sampled)))  # proof: amplified


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedBasis:
    """Section 3.1 (a user's bounded basis), or method B (kernels at public centres).

    Guarantee: epsilon-DP under replace-one: noise of scale b C / epsilon on each coordinate of n h, where C is the width of the
    bounds (2C for a basis with values in [-C, C], which the paper's eq. 22 misses).
    """

    basis: BoundedBasis | GaussianKernel
    public: Floats
    penalty: float
    target: Target

    streams = True

    def statistic(self, features: Features, table: str) -> PointSums:
        """Sums of the whole-number basis values."""
        own = self.basis
        ends = (own.factor, 1.0) if isinstance(own, GaussianKernel) else (own.lower, own.upper)
        digest = hashlib.sha256(repr((ends, self.penalty, self.target)).encode())
        # A function cannot be compared across processes; what it does with every public row can.
        digest.update(own.centres.tobytes() if isinstance(own, GaussianKernel) else own.values(self.public).tobytes())
        plan = f"fixed basis {digest.hexdigest()} on {table}"
        return PointSums(plan=plan, size=own.size, measure=own.sums, features=features, example=self.public[:_EXAMPLE])

    def promise(self, size: int) -> Promise:
        """What `draw` keeps; refuses a fit without a solution while that is still free."""
        try:
            np.linalg.solve(_system(self.basis.values(self.public), self.penalty), np.zeros(self.basis.size))
        except np.linalg.LinAlgError:
            raise ParameterError(
                f"regularization must be large enough for a fit on the public table; got {self.penalty!r}. Choose a larger one."
            ) from None
        return Promise(
            epsilon=self.target.epsilon,
            delta=Fraction(0),
            mechanism=f"least-squares fit on a mean with {self._noise().mechanism} noise",
            assumptions=(_SIZE_KNOWN, *((NO_MEMORY,) if isinstance(self.basis, BoundedBasis) else ())),
            facts={"private_rows": size, "basis_functions": self.basis.size},
        )

    def draw(self, seen: Tally | Floats, coin: Coin) -> dict[str, Any]:
        """Noisy h, then alpha, then weights."""
        if not isinstance(seen, Tally):
            raise InternalError("a fixed basis is drawn from a tally.")
        noisy = self._noise().add([int(value) for value in seen.sums], coin=coin)  # proof: noisy-h
        unit = self.basis.unit if isinstance(self.basis, BoundedBasis) else 2.0**-UNIT_BITS
        h = np.array([float(value) for value in noisy]) * unit / max(seen.count, 1)
        values = self.basis.values(self.public)
        alpha = fitted(h, values, penalty=self.penalty)
        raw = values @ alpha
        return {"weights": normalised(raw), "h": h, "alpha": alpha, "scale": _scale(raw)}

    def ratio(self, released: Mapping[str, Any], points: Floats) -> Floats:
        """alpha . phi(x), scaled as the weights are."""
        raw: Floats = np.maximum(0.0, self.basis.values(points) @ np.asarray(released["alpha"]))
        return raw * float(released["scale"]) if released["scale"] else np.ones(len(points))

    def _noise(self) -> ManhattanNoise:
        span = self.basis.span if isinstance(self.basis, BoundedBasis) else _SPAN
        return ManhattanNoise(
            l1=Fraction(self.basis.size * span), epsilon=self.target.epsilon, dimension=self.basis.size
        )  # proof: l1


@dataclass(frozen=True, kw_only=True, eq=False)
class _SampledCentres:
    """What methods A and C share: kernels at rows sampled from the private table."""

    public: Floats
    wanted: int
    bandwidth: float
    penalty: float
    target: Target

    def statistic(self, features: Features, table: str) -> PointSums:
        """Never: centres come from the private rows, so all of them must be there at once."""
        raise InternalError("a method with private centres cannot stream.")

    def ratio(self, released: Mapping[str, Any], points: Floats) -> Floats:
        """The fit at other points."""
        return self._fit(released["centres"], self.target).ratio(released, points)

    def _fit(self, centres: Floats, target: Target) -> FixedBasis:
        kernel = GaussianKernel.of(np.asarray(centres), bandwidth=self.bandwidth)
        return FixedBasis(basis=kernel, public=self.public, penalty=self.penalty, target=target)

    def _fit_and_draw(self, centres: Floats, rows: Floats, target: Target, coin: Coin) -> dict[str, Any]:
        fit = self._fit(centres, target)
        return {"centres": centres, **fit.draw(Tally(sums=fit.basis.sums(rows), count=len(rows)), coin)}

    def _size(self, size: int) -> int:
        if size < self.wanted:
            raise DataError(f"the private table must have at least n_centers = {self.wanted} rows for this method.")
        return size


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCentres(_SampledCentres):
    """Method A, made sound: noisy copies of sampled private rows as centres, then a noisy h.

    Guarantee: epsilon-DP under replace-one; half of epsilon for the centres (with amplification by sampling), half for h. The
    rows are clipped to the public box.
    """

    box: Floats

    streams = False

    def promise(self, size: int) -> Promise:
        """What `draw` keeps."""
        facts = {"private_rows": self._size(size), "basis_functions": self.wanted}
        mechanism = "discrete Laplace noise on sampled rows, then a least-squares fit on a mean with discrete Laplace noise"
        return Promise(
            epsilon=self.target.epsilon, delta=Fraction(0), mechanism=mechanism, assumptions=(_SIZE_KNOWN,), facts=facts
        )

    def draw(self, seen: Tally | Floats, coin: Coin) -> dict[str, Any]:
        """Noisy centres, noisy h, weights."""
        rows = _rows(seen)
        half = Target(epsilon=self.target.epsilon / 2, delta=None, relation=self.target.relation)  # proof: halves
        chosen = rows[_sample(len(rows), self.wanted, coin)]
        return self._fit_and_draw(self._noisy(chosen, len(rows), half.epsilon, coin), rows, half, coin)

    def _noisy(self, chosen: Floats, size: int, epsilon: Fraction, coin: Coin) -> Floats:
        lower, width = self.box[:, 0], self.box[:, 1] - self.box[:, 0]
        columns = self.public.shape[1]
        with np.errstate(all="ignore"):
            share = (chosen - lower) / width
            share = np.where(np.isnan(share), 0.5, share).clip(0.0, 1.0)  # proof: share
        whole = np.rint(share * _SPAN).astype(np.int64).ravel()
        inner = amplified(epsilon, sampled=self.wanted, of=size)
        noise = ManhattanNoise(l1=Fraction(columns * _SPAN), epsilon=inner, dimension=len(whole))  # proof: one-row
        noisy = np.array([float(value) for value in noise.add(whole.tolist(), coin=coin)]).reshape(-1, columns)
        with np.errstate(over="ignore"):
            return np.clip(lower + noisy / _SPAN * width, -_HUGE, _HUGE)


@dataclass(frozen=True, kw_only=True, eq=False)
class RawCentres(_SampledCentres):
    """Method C: private rows themselves as centres, and a noisy h.

    Guarantee: (epsilon, b/n)-DP under replace-one, which is true but weak: b of the n people are published as they are.
    """

    streams = False

    def promise(self, size: int) -> Promise:
        """What `draw` keeps."""
        facts = {"private_rows": self._size(size), "raw_records_published": self.wanted}
        warning = f"{self.wanted} private records are published as they are"
        return Promise(
            epsilon=self.target.epsilon,
            delta=Fraction(self.wanted, size),  # proof: delta
            mechanism="least-squares fit with raw private centres on a mean with discrete Laplace noise",
            assumptions=(_SIZE_KNOWN, warning),
            facts=facts,
        )

    def draw(self, seen: Tally | Floats, coin: Coin) -> dict[str, Any]:
        """Raw centres, noisy h, weights."""
        rows = _rows(seen)
        chosen = rows[_sample(len(rows), self.wanted, coin)]
        centres = np.clip(np.where(np.isnan(chosen), 0.0, chosen), -_HUGE, _HUGE)
        return self._fit_and_draw(centres, rows, self.target, coin)


def _rows(seen: Tally | Floats) -> Floats:
    if isinstance(seen, Tally):
        raise InternalError("private centres are drawn from all rows.")
    return seen


def _scale(raw: Floats) -> float:
    """What makes the mean one; zero where nothing is left to scale."""
    with np.errstate(all="ignore"):
        total = float(raw.mean())
    return 1.0 / total if np.isfinite(total) and total > 1e-150 else 0.0


def _sample(count: int, wanted: int, coin: Coin) -> list[int]:
    """Row numbers, uniform among all ordered samples without repetition."""
    order = dict[int, int]()
    picked = []
    for place in range(wanted):
        other = place + uniform_below(count - place, coin=coin)  # proof: without-replacement
        picked.append(order.get(other, other))
        order[other] = order.get(place, place)
    return picked
