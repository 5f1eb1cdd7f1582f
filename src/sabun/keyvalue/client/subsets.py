"""The `set` protocols: a report is a random subset of all signed keys, likelier when it meets what the person holds.

Notation: d keys; ell = padding length; D = 2d + ell symbols (both signs of each key, and ell dummies; d + ell where no values
are asked, `set-f`, and a key has one symbol); S the ell symbols that a person holds, padded with dummies or cut at random to
exactly ell; w the size of a report y. y is drawn evenly among all subsets of w symbols and kept if it meets S; if it misses S
it is kept with probability r = accept / 2**bits, otherwise drawn again. Dummies, and keys of which both signs are in y, say
nothing; proved in subsets.proof.md. Subset selection for sets of keys is PrivSet (Wang et al., 2018); signs, and the merging of
both into nothing, were added here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

__all__ = ["LONGEST", "Subset", "drawn_symbols", "is_kept", "subset_for", "symbols_of"]

LONGEST = 256
"""The largest padding length: the width of a report is found in rationals, whose length grows with it."""


@dataclass(frozen=True, kw_only=True)
class Subset:
    """How subsets are drawn.

    Attributes:
        keys: d.
        padding: ell.
        bits: The resolution of the one probability.
        accept: r 2**bits: how often a subset is kept that misses everything.
        width: w.
        signs: Symbols of a key: 2, or 1 where no values are asked.
    """

    keys: int
    padding: int
    bits: int
    accept: int
    width: int
    signs: int = 2

    @property
    def symbols(self) -> int:
        """D."""
        return self.signs * self.keys + self.padding

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of a report's probabilities under two people's data."""
        return Fraction(1 << self.bits, self.accept)  # proof: one-ratio

    @property
    def law(self) -> tuple[Fraction, Fraction, Fraction]:
        """What a report says of one key: the held sign alone, the other sign alone, and one given sign of a key not held."""
        size, width, less = self.symbols, self.width, 1 - Fraction(self.accept, 1 << self.bits)
        misses = _misses(self.padding, size - width, size)
        if self.signs == 1:
            share = Fraction(width, size) / (1 - misses * less)
            return share, Fraction(0), share * (1 - _misses(self.padding, size - width, size - 1) * less)  # proof: one-symbol
        other = _misses(self.padding - 1, size - 1 - width, size - 2)
        absent = other * Fraction(size - width - self.padding, size - 1 - self.padding)
        # One sign without the other: w (D - w) / (D (D - 1)) of all subsets.
        scale = Fraction(width * (size - width), size * (size - 1)) / (1 - misses * less)
        return scale, scale * (1 - other * less), scale * (1 - absent * less)  # proof: one-key


@lru_cache(maxsize=64)
def subset_for(*, growth: Fraction, keys: int, padding: int, bits: int, signs: int = 2) -> Subset:
    """The subsets of a study: `growth` is a rational not above exp(epsilon).

    Example:
        >>> found = subset_for(growth=Fraction(2), keys=100, padding=4, bits=64)
        >>> found.width, found.ratio <= 2
        (14, True)
    """
    accept = math.ceil((1 << bits) / growth)  # proof: accept

    def of(width: int) -> Subset:
        return Subset(keys=keys, padding=padding, bits=bits, accept=accept, width=width, signs=signs)

    low, high = 1, keys
    while low < high:  # the noise falls, then rises: the first width that is not better with one more symbol
        middle = (low + high) // 2
        low, high = (low, middle) if _noise(of(middle)) <= _noise(of(middle + 1)) else (middle + 1, high)
    return of(low)


def symbols_of(subset: Subset, held: Iterable[tuple[int, int]]) -> frozenset[int]:
    """S: plus of key k is 2k, minus 2k + 1 (k itself without signs); dummies fill it up to ell. At most ell pairs are given."""
    first = subset.signs * subset.keys
    own = [subset.signs * key + state - 1 for key, state in held]
    return frozenset([*own, *range(first, first + subset.padding - len(own))])  # proof: exactly-ell


def is_kept(subset: Subset, own: frozenset[int], drawn: Iterable[int], word: int) -> bool:
    """Whether a drawn subset is the report; `word` is fresh and uniform below 2**bits."""
    meets = not own.isdisjoint(drawn)
    return meets or word < subset.accept  # proof: kept


def drawn_symbols(subset: Subset, drawn: Iterable[int]) -> tuple[int, ...]:
    """What a subset says of each key: 1 plus, 2 minus, 0 nothing or both."""
    found = [0] * subset.keys
    for symbol in drawn:
        if symbol < subset.signs * subset.keys:
            found[symbol // subset.signs] += 1 + symbol % subset.signs
    return tuple(said % 3 for said in found)  # proof: both-is-nothing


def _misses(held: int, rest: int, all_: int) -> Fraction:
    """The chance that `held` given symbols of `all_` lie among the `rest` that were not drawn."""
    return Fraction(math.prod(max(rest - i, 0) for i in range(held)), math.prod(all_ - i for i in range(held)))


def _noise(subset: Subset) -> Fraction:
    """n times the variances of frequency and, with signs, of frequency times mean, of a key that nobody holds; together."""
    keep, opposite, each = subset.law
    gap = keep + opposite - subset.signs * each
    if gap <= 0:
        return Fraction(10**30)
    if subset.signs == 1:
        return each * (1 - each) / gap**2
    return 2 * each * (1 - 2 * each) / gap**2 + 2 * each / (keep - opposite) ** 2
