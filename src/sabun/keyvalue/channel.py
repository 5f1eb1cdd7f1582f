"""The ternary channel every protocol is, seen from one key: what the estimators know.

Notation: Q(a, b, p) has the rows '+' (ap, a(1-p), 1-a), '-' (a(1-p), ap, 1-a) and absent (b/2, b/2, 1-b); f is a key's
frequency, m its holders' mean in [-1, 1], g = f m, kappa = a(2p-1), N the number of reports about the key.

A padded protocol picks a present key with probability 1/ell only. Mixing that into the rows gives a channel of the same shape
(a' = a/ell + (1-1/ell) b, and so on) whose simplex is exactly the constraint theta+ + theta- <= 1/ell, so nothing below has to
know about padding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sabun.errors import ParameterError
from sabun.keyvalue.client.probabilities import Table

__all__ = ["Channel", "Counts", "Floats", "channel_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Channel:
    """The probabilities (a, b, p) of one key's channel.

    Raises:
        ParameterError: The channel carries no information (a <= b or p <= 1/2).

    Example:
        >>> Channel(a=0.8, b=0.2, p=0.9).rows[0]
        array([0.72, 0.08, 0.2 ])
    """

    a: float
    b: float
    p: float

    def __post_init__(self) -> None:
        if not (0 < self.b < self.a < 1 and 0.5 < self.p < 1):
            raise ParameterError(f"a channel must have 0 < b < a < 1 and 1/2 < p < 1; got a={self.a}, b={self.b}, p={self.p}.")

    @property
    def rows(self) -> Floats:
        """The 3 x 3 matrix: states +, -, absent by symbols +, -, nothing."""
        a, b, p = self.a, self.b, self.p
        return np.array([[a * p, a * (1 - p), 1 - a], [a * (1 - p), a * p, 1 - a], [b / 2, b / 2, 1 - b]])

    @property
    def gap(self) -> float:
        """a - b: how much a present key shows."""
        return self.a - self.b

    @property
    def kappa(self) -> float:
        """a (2p - 1): how much a sign shows."""
        return self.a * (2 * self.p - 1)

    def frequency_variance(self, f: Floats | float, n: Floats | float) -> Floats:
        """Variance of the unbiased frequency from n reports."""
        some = f * self.a + (1 - np.asarray(f)) * self.b
        return np.asarray(some * (1 - some) / (n * self.gap**2))

    def product_variance(self, f: Floats | float, m: Floats | float, n: Floats | float) -> Floats:
        """Variance of the unbiased g = f m."""
        some = f * self.a + (1 - np.asarray(f)) * self.b
        return np.asarray((some - (self.kappa * f * m) ** 2) / (n * self.kappa**2))

    def covariance(self, f: Floats | float, m: Floats | float, n: Floats | float) -> Floats:
        """Covariance of the two."""
        some = f * self.a + (1 - np.asarray(f)) * self.b
        return np.asarray(f * m * (1 - some) / (n * self.gap))


def channel_of(table: Table, padding: int = 1) -> Channel:
    """The channel of an integer table, with a padding length mixed in; exact up to the last rounding to float."""
    share = Fraction(1, padding)
    mixed = table.a * share + (1 - share) * table.b
    kept = Fraction(table.keep, table.size) * share + (1 - share) * table.b / 2
    # At very large epsilon the shares differ from 1 by less than a float can show.
    most = math.nextafter(1.0, 0.0)
    return Channel(a=min(float(mixed), most), b=float(table.b), p=min(float(kept / mixed), most))


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts:
    """How often each symbol was reported about each key.

    Args:
        plus: Reports of '+', one entry per key.
        minus: Reports of '-'.
        total: Reports about the key, whatever they say.

    Raises:
        ParameterError: The arrays are not whole numbers >= 0 of one length, or plus + minus exceeds total.
    """

    plus: NDArray[np.int64]
    minus: NDArray[np.int64]
    total: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("plus", "minus", "total"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        if not (self.plus.shape == self.minus.shape == self.total.shape and self.plus.ndim == 1):
            raise ParameterError("counts must be three lists of one length; they are not.")
        if np.any(self.plus > self.total - self.minus):
            raise ParameterError("counts must have plus + minus <= total for every key; they do not.")

    @property
    def shares(self) -> tuple[Floats, Floats]:
        """(plus + minus) / total and (plus - minus) / total; NaN without reports."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (self.plus + self.minus) / self.total, (self.plus - self.minus) / self.total


def _whole(name: str, values: object) -> NDArray[np.int64]:
    array = np.asarray(values)
    good = array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool(np.all(array == np.floor(array))))
    if array.size == 0 and array.dtype.kind == "f":
        good = True
    # 2**53: sums and shares of larger counts would be rounded.
    if not good or (array.size and (array.min() < 0 or array.max() > 2**53)):
        raise ParameterError(f"{name} must be whole numbers from 0 to 2**53; they are not.")
    return array.astype(np.int64)
