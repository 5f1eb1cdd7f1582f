"""The two classics the key-value protocols are made of: randomized response for words, Harmony for numbers.

Both draw from an integer table out of 2**64 whose ratio never exceeds exp(epsilon); proved in classic.proof.md.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from .bounds import exact, exp_down
from .channel import SIGN_BITS, sign_of
from .refusals import ClientError, Undisturbed, require

__all__ = ["Harmony", "RandomizedResponse"]

_BITS = 64
_SIZE = 1 << _BITS


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse:
    """Randomized response over d categories: the truth with probability E/(E+d-1), any other with 1/(E+d-1) each.

    Guarantee: one answer is epsilon-LDP; two categories give Warner's original.

    Args:
        categories: The public list, at least two.
        epsilon: The budget of one answer.

    Example:
        >>> asked = RandomizedResponse(categories=("yes", "no"), epsilon=1)
        >>> asked.answer("yes") in (0, 1)
        True
    """

    categories: tuple[str, ...]
    epsilon: Fraction
    each: int = field(init=False)
    """How often, out of 2**64, one given other category is answered."""

    def __post_init__(self) -> None:
        words = isinstance(self.categories, tuple | list) and all(isinstance(word, str) for word in self.categories)
        good = words and len(set(self.categories)) == len(self.categories) >= 2
        require(good, "categories", "at least two distinct words", self.categories)
        object.__setattr__(self, "categories", tuple(self.categories))
        object.__setattr__(self, "epsilon", _positive(self.epsilon))
        others = len(self.categories) - 1
        each = math.ceil(_SIZE / (exp_down(min(self.epsilon, Fraction(100))) + others))  # proof: each
        object.__setattr__(self, "each", each)
        require(self.keep > each, "epsilon", "large enough to leave a trace", self.epsilon)

    @property
    def keep(self) -> int:
        """How often, out of 2**64, the truth is answered."""
        return _SIZE - (len(self.categories) - 1) * self.each

    def answer(self, category: str) -> int:
        """The position of the category to send.

        Raises:
            ClientError: The category is not in the public list.
        """
        if not isinstance(category, str) or category not in self.categories:
            raise ClientError("category must be one of the public list; it is not.")
        return self.answer_of(self.categories.index(category), secrets.randbits(_BITS))

    def answer_of(self, own: int, word: int) -> int:
        """The answer a fresh word gives; pure."""
        if word < self.keep:
            return own
        other = (word - self.keep) // self.each  # proof: others
        return other if other < own else other + 1

    def frequencies(self, counts: Sequence[int]) -> tuple[float, ...]:
        """Unbiased shares of the categories from how often each was answered: (count/n - q) / (p - q)."""
        total = sum(counts)
        good = len(counts) == len(self.categories) and total > 0 and min(counts) >= 0
        require(good, "counts", "one count >= 0 per category, not all zero", list(counts))
        return tuple(float((Fraction(count, total) * _SIZE - self.each) / (self.keep - self.each)) for count in counts)


@dataclass(frozen=True, kw_only=True)
class Harmony:
    """Harmony: a number in [-1, 1] becomes a sign, the sign is answered by randomized response.

    Guarantee: one answer is epsilon-LDP.

    Args:
        epsilon: The budget of one answer.

    Example:
        >>> Harmony(epsilon=1).answer(0.5) in (1, 2)
        True
    """

    epsilon: Fraction
    keep: int = field(init=False)
    """How often, out of 2**64, the sign is kept."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _positive(self.epsilon))
        growth = exp_down(min(self.epsilon, Fraction(100)))
        object.__setattr__(self, "keep", math.floor(_SIZE * growth / (growth + 1)))  # proof: keep
        require(_SIZE > self.keep > _SIZE // 2, "epsilon", "large enough to leave a trace", self.epsilon)

    def answer(self, value: float) -> int:
        """1 for plus, 2 for minus; a value that is no number in [-1, 1] is answered as 0.0, for silence would be an answer."""
        sign = sign_of(_threshold(value), secrets.randbits(SIGN_BITS))
        return self.answer_of(sign, secrets.randbits(_BITS))

    def answer_of(self, sign: int, word: int) -> int:
        """The answer a fresh word gives; pure."""
        return sign if word < self.keep else 3 - sign

    def mean(self, plus: int, minus: int) -> float:
        """The unbiased mean C (plus - minus) / n with C = 1 / (2p - 1)."""
        require(plus >= 0 and minus >= 0 and plus + minus > 0, "plus", "a count >= 0, with some answers at all", plus)
        return float(Fraction(plus - minus, plus + minus) * _SIZE / (2 * self.keep - _SIZE))


def _threshold(value: object) -> int:
    """Where a value stands in [-1, 1], out of 2**SIGN_BITS; the middle for whatever is no value."""
    with Undisturbed():  # 10**400, or an odd kind of number: an error would be an answer
        number = float(value) if isinstance(value, int | float | Fraction) else 0.0
        inside = Fraction(number) if math.isfinite(number) and -1 <= number <= 1 else Fraction(0)
        return math.floor((1 + inside) / 2 * (1 << SIGN_BITS))
    return 1 << (SIGN_BITS - 1)  # proof: whatever


def _positive(epsilon: Fraction | float | int | str) -> Fraction:
    try:
        number = exact(epsilon)
    except ValueError:
        number = Fraction(0)
    require(number > 0, "epsilon", "finite and > 0", epsilon)
    return number
