"""The integer probability tables every protocol draws from, with the epsilon they really have.

Notation: M = 2**bits; E = a rational not above exp(epsilon); ell = padding length; d = number of keys. All entries are out of
M. Everything that is uncertain is rounded towards more noise, so the ratio of two entries never exceeds E; proved in
probabilities.proof.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .bounds import exp_down, log_up
from .refusals import ClientError
from .subsets import LONGEST, Subset, subset_for

__all__ = [
    "JOINT",
    "PADDED",
    "PER_KEY",
    "PROTOCOLS",
    "SAMPLED",
    "SETS",
    "VALUELESS",
    "Table",
    "certified_epsilon",
    "later_round",
    "subsets_of",
    "table_for",
]

SAMPLED = ("kv3", "privkv", "privkv-tight", "privkvm", "rr-f")
"""Protocols that ask each person about one key."""

JOINT = ("pckv-grr", "pckv-grr+")
"""Protocols whose report is one symbol over all keys."""

SETS = ("set", "set-f")
"""Protocols whose report is a subset of all symbols."""

PER_KEY = ("pckv-ue", *SETS)
"""Protocols whose report is one symbol per key."""

PADDED = ("pckv-ue", *JOINT, *SETS)
"""Protocols that pad what a person holds; sets report all of it at once, the others one pair that is picked."""

VALUELESS = ("rr-f", "set-f")
"""Protocols that ask whether a person holds a key, and for no value."""

PROTOCOLS = (*SAMPLED, *PADDED)

_LARGEST_EXPONENT = 100


@dataclass(frozen=True, kw_only=True)
class Table:
    """One channel of three symbols, or of two where no values are asked, in whole numbers out of 2**bits.

    Attributes:
        bits: The table's resolution.
        keep: Present with a sign: that sign is reported about its key.
        opposite: The other sign is reported about that key.
        each: One sign is reported about a key that is absent or was not picked.
        none_present: Nothing is reported, although a pair was picked.
        none_absent: Nothing is reported, and no pair was picked.
        signs: How many signs there are: 1 where a report says yes or nothing, and then `opposite` is 0.
    """

    bits: int
    keep: int
    opposite: int
    each: int
    none_present: int
    none_absent: int
    signs: int = 2

    def __post_init__(self) -> None:
        if not (self.keep > self.opposite >= self.signs - 1 and self.keep > self.each >= 1 and self.a > self.b):
            raise ClientError(
                f"epsilon must be large enough to leave a trace in a table of {self.bits} bits; it is not. "
                "Choose a larger epsilon, fewer keys or more table_bits."
            )

    @property
    def size(self) -> int:
        """What the entries are out of."""
        return 1 << self.bits

    @property
    def a(self) -> Fraction:
        """The probability that a picked key is reported with some sign."""
        return Fraction(self.keep + self.opposite, self.size)

    @property
    def b(self) -> Fraction:
        """The probability that any other key is reported with some sign."""
        return Fraction(self.signs * self.each, self.size)

    @property
    def p(self) -> Fraction:
        """The probability that a reported sign is the true one."""
        return Fraction(self.keep, self.keep + self.opposite)


def table_for(*, protocol: str, epsilon: Fraction, keys: int, padding: int = 1, rounds: int = 1, bits: int = 64) -> Table:
    """The table a protocol draws from (its first round, where it has several).

    Example:
        >>> table = table_for(protocol="kv3", epsilon=Fraction(2), keys=50, bits=16)
        >>> table.keep, table.each
        (51574, 6981)
    """
    size = 1 << bits
    growth = _growth(epsilon)
    if protocol == "kv3":
        other = _ceil(size / (growth + 2))  # proof: kv3
        return _single(bits, size - 2 * other, other, other)
    if protocol == "rr-f":
        other = _ceil(size / (growth + 1))  # proof: yes-no
        return _single(bits, size - other, 0, other, signs=1)
    if protocol == "privkv-tight":
        other = _ceil(size / (growth + 3))  # proof: tight
        return _single(bits, size - 3 * other, other, other)
    if protocol in ("privkv", "privkvm"):
        return _privkv(bits, _growth(epsilon / 2), _growth(epsilon / 2 / (rounds if protocol == "privkvm" else 1)))
    if protocol == "pckv-ue":
        keep = _floor(size // 2 * growth / (growth + 1))  # proof: ue
        return _single(bits, keep, size // 2 - keep, _ceil(size / (growth + 3)))
    if protocol in SETS:
        return _seen_from_one_key(subsets_of(protocol=protocol, epsilon=epsilon, keys=keys, padding=padding, bits=bits))
    return _joint(protocol, bits, growth, keys, padding)


def subsets_of(*, protocol: str = "set", epsilon: Fraction, keys: int, padding: int, bits: int = 64) -> Subset:
    """How a device of a `set` protocol draws."""
    if padding > LONGEST:
        raise ClientError(f"padding_length must be at most {LONGEST} for {protocol!r}; got {padding}. Name keys_per_user.")
    signs = 1 if protocol in VALUELESS else 2
    return subset_for(growth=_growth(epsilon), keys=keys, padding=padding, bits=bits, signs=signs)


def _seen_from_one_key(subset: Subset) -> Table:
    """What reports of `set` say of one key, rounded to 64 bits for the estimators; nothing is drawn from it."""
    keep, opposite, each = (max(1, _floor(share * (1 << 64))) if share else 0 for share in subset.law)
    return _single(64, keep, opposite, each, signs=subset.signs)


def later_round(*, epsilon: Fraction, rounds: int, bits: int = 64) -> tuple[int, int]:
    """PrivKVM after its first round: how often, out of 2**bits, a sign is kept or turned; otherwise nothing is reported."""
    half, growth = 1 << (bits - 1), _growth(epsilon / 2 / rounds)
    keep = _floor(half * growth / (growth + 1))  # proof: later-round
    return keep, half - keep


def certified_epsilon(
    *, protocol: str, epsilon: Fraction, keys: int, padding: int = 1, rounds: int = 1, bits: int = 64
) -> Fraction:
    """The epsilon of one person's whole participation, from the entries of the table that is drawn from, rounded up.

    Example:
        >>> facts = dict(epsilon=Fraction(2), keys=50)
        >>> [round(float(certified_epsilon(protocol=name, **facts)), 6) for name in ("kv3", "privkv")]
        [2.0, 1.379885]
    """
    table = table_for(protocol=protocol, epsilon=epsilon, keys=keys, padding=padding, rounds=rounds, bits=bits)
    if protocol in SETS:
        subset = subsets_of(protocol=protocol, epsilon=epsilon, keys=keys, padding=padding, bits=bits)
        ratio = subset.ratio  # proof: subsets
    else:
        ratio = _ratio(protocol, table, padding)
    if protocol == "privkvm":
        keep, turned = later_round(epsilon=epsilon, rounds=rounds, bits=bits)
        total = log_up(ratio) + (rounds - 1) * log_up(Fraction(keep, turned))  # proof: composition
        return _admitted(total <= epsilon, _rounded(total), epsilon, bits)
    return _admitted(ratio <= _growth(epsilon), _rounded(log_up(ratio)), epsilon, bits)  # proof: never-above


def _admitted(holds: bool, certified: Fraction, epsilon: Fraction, bits: int) -> Fraction:
    if not holds:
        raise ClientError(f"epsilon must be large enough for a table of {bits} bits; it is not. Choose a larger epsilon.")
    return min(certified, epsilon)


def _ratio(protocol: str, table: Table, padding: int) -> Fraction:
    """The largest ratio of the probabilities of one report under two people's data."""
    if protocol in JOINT:
        sign = 1 + (Fraction(table.keep, table.each) - 1) / padding  # proof: amplified
        return max(sign, Fraction(table.none_absent, table.none_present))
    if table.signs == 1:
        return max(Fraction(table.keep, table.each), Fraction(table.none_absent, table.none_present))  # proof: two-rows
    present = (table.keep, table.opposite, table.none_present)
    turned = (table.opposite, table.keep, table.none_present)
    absent = (table.each, table.each, table.none_absent)
    if protocol == "pckv-ue":
        likelihoods = [Fraction(x, y) for x, y in zip(present, absent, strict=True)]
        return max(*likelihoods, Fraction(1)) / min(*likelihoods, Fraction(1))  # proof: two-coordinates
    rows = (present, turned, absent)
    return max(Fraction(x, y) for first in rows for second in rows for x, y in zip(first, second, strict=True))  # proof: rows


def _single(bits: int, keep: int, opposite: int, each: int, signs: int = 2) -> Table:
    size = 1 << bits
    silent = {"none_present": size - keep - opposite, "none_absent": size - signs * each}
    return Table(bits=bits, keep=keep, opposite=opposite, each=each, **silent, signs=signs)


def _privkv(bits: int, key_growth: Fraction, value_growth: Fraction) -> Table:
    size = 1 << bits
    each = _ceil(size / (2 * (key_growth + 1)))  # proof: privkv
    some = size - 2 * each
    keep = _floor(some * value_growth / (value_growth + 1))
    return _single(bits, keep, some - keep, each)


def _joint(protocol: str, bits: int, growth: Fraction, keys: int, padding: int) -> Table:
    size = 1 << bits
    if protocol == "pckv-grr":
        each = _ceil(size / (padding * (growth - 1) + 2 * (keys + padding)))  # proof: grr
        dummies = 2 * padding
    else:
        each = _ceil(size / (padding * growth + 2 * keys))  # proof: grr-plus
        dummies = padding
    keep = size - (2 * keys - 1 + dummies) * each
    none_absent = size - 2 * keys * each
    return Table(bits=bits, keep=keep, opposite=each, each=each, none_present=dummies * each, none_absent=none_absent)


def _growth(epsilon: Fraction) -> Fraction:
    """A rational not above exp(epsilon), above 1; beyond what a table can hold anyway, a smaller one."""
    return exp_down(min(epsilon, Fraction(_LARGEST_EXPONENT)))


def _rounded(value: Fraction) -> Fraction:
    """The next larger number of 15 decimals: a guarantee that people can read."""
    return Fraction(_ceil(value * 10**15), 10**15)


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator
