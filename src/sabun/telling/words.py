"""Numbers and promises in words a person reads."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from sabun.privacy.amounts import Amount, plain
from sabun.privacy.guarantee import Guarantee

__all__ = ["count", "guess", "guess_sentence", "number", "plural", "promise", "shown", "tidy"]

_LONGEST_TEXT = 240
_LONGEST_LIST = 12
_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_DIGITS = 4
_LARGE_DELTA = Fraction(1, 1000)
_STRENGTHS = (
    (Fraction(1, 10), "Very strong protection: next to nothing about a single {unit} can be learned from this result"),
    (Fraction(1), "Strong protection: little about a single {unit} can be learned from this result"),
    (Fraction(3), "Moderate protection: somebody who knows a lot already may learn something about a single {unit}"),
    (Fraction(10), "Weak protection: somebody who knows a lot already may learn a good deal about a single {unit}"),
)
"""The largest epsilon for which each sentence stands, with what it says."""
_NONE = "Hardly any protection: somebody who knows a lot already may learn nearly everything about a single {unit}"


def tidy(text: str) -> str:
    """The text without letters that turn a line around or mean nothing on a page.

    Example:
        >>> tidy("a\\u202eb")
        'a\\ufffdb'
    """
    return "".join(
        "\ufffd" if letter in _TURNING or (unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t") else letter
        for letter in text
    )


def number(value: float, digits: int = _DIGITS) -> str:
    """A number with a few significant digits, and commas in thousands.

    Example:
        >>> number(1234567.0), number(0.123456), number(float("nan")), number(1e-9), number(41)
        ('1,234,567', '0.1235', '–', '1e-09', '41')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == round(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 10**digits and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def count(amount: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> count(1, "row"), count(2000, "row")
        ('1 row', '2,000 rows')
    """
    return f"{amount:,} {noun if amount == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Several of a unit.

    Example:
        >>> plural("patient"), plural("person")
        ('patients', 'people')
    """
    if noun.endswith("person"):
        return f"{noun[: -len('person')]}people"
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def shown(tree: Any) -> str:
    """Any part of a release in few words."""
    words = _words(tree)
    return words if len(words) <= _LONGEST_TEXT else f"{words[:_LONGEST_TEXT]}…"


def _words(tree: Any) -> str:
    if tree is None:
        return "none"
    if isinstance(tree, bool):
        return "yes" if tree else "no"
    if isinstance(tree, Fraction):
        return plain(tree) if tree >= 0 else f"−{plain(-tree)}"
    if isinstance(tree, int | float):
        return number(tree)
    if isinstance(tree, str):
        return tree
    if isinstance(tree, np.ndarray):
        size = " × ".join(map(str, tree.shape)) or "one number"
        return shown(tree.tolist()) if tree.size <= _LONGEST_LIST and tree.ndim <= 1 else f"array of {size}"
    if isinstance(tree, Mapping):
        return _joined((f"{name}: {shown(tree[name])}" for name in tree), "; ", len(tree))
    if isinstance(tree, list | tuple):
        return _joined((shown(item) for item in tree), ", ", len(tree))
    return type(tree).__name__


def _joined(parts: Iterator[str], between: str, size: int) -> str:
    """The first parts in one line, with how many there are; stops early, for a file may hold millions."""
    taken: list[str] = []
    for part in islice(parts, _LONGEST_LIST):
        taken.append(part)
        if sum(map(len, taken)) > _LONGEST_TEXT:
            break
    rest = f"{between}… ({size:,} in all)" if size > len(taken) else ""
    return between.join(taken) + rest if taken else "nothing"


def guess(epsilon: Amount, delta: Amount) -> float | None:
    """How often somebody who knows all but one fact can guess it right at most, in per cent, rounded up; None for no limit.

    Guarantee: two neighbouring inputs chosen by a fair coin are told apart with probability at most
    (e^epsilon + delta) / (e^epsilon + 1), whatever the rule (Kairouz, Oh, Viswanath 2015, Theorem 2.1).

    Example:
        >>> guess(Fraction(0), Fraction(0)), guess(Fraction(1, 2), Fraction(0))
        (50.0, 62.3)
    """
    if math.isinf(epsilon):
        return None
    ratio = math.exp(-min(float(epsilon), 700.0))
    right = (1 + float(delta) * ratio) / (1 + ratio)
    percent = math.ceil(right * 1000 - 1e-9) / 10  # without the tiny step back, 50 % would become 50.1 % by float error alone
    return None if percent >= 100 and float(epsilon) > 700 else min(percent, 100.0)


def guess_sentence(guarantee: Guarantee) -> str:
    """What the best possible guesser reaches, for a whole release."""
    percent = guess(*guarantee.cost)
    if percent is None:
        return "There is no limit on what somebody could learn from this result about one person."
    unit = guarantee.unit
    what = {
        "replace-one": f"knows everything else, and that one {unit}'s data are one of two possibilities, guesses which it is",
        "add-remove": f"knows everything else guesses whether one {unit}'s data were used at all",
        "local": f"sees one {unit}'s own answers, and knows two possibilities for what is behind them, guesses which it is",
    }[guarantee.relation]
    right = (
        "may be right nearly every time" if percent >= 100 else f"are right at most {percent:.1f} % of the time (rounded up)"
    )
    return f"Put as a game: somebody who {what}. They {right}; without this result, half of the time."


def promise(guarantee: Guarantee) -> tuple[str, ...]:
    """The guarantee as sentences for somebody who has never heard of differential privacy."""
    unit = guarantee.unit
    epsilon, delta = guarantee.cost
    if math.isinf(epsilon):
        return (
            f"No finite bound holds for all that was released together: this result may expose a single {unit}.",
            "Do not publish it as a private result.",
        )
    change = {
        "replace-one": f"if any one {unit}'s data were replaced by other data",
        "add-remove": f"if any one {unit}'s data were left out or added",
        "local": f"if the {unit} held entirely different data",
    }[guarantee.relation]
    factor = f"{_up(math.exp(float(epsilon)))} (rounded up)" if epsilon < 20 else f"e^{plain(epsilon)}"
    tail = "" if not delta else f", apart from an added probability of at most {plain(delta)} (1 in {int(1 / delta):,})"
    lines = [
        f"{_strength(epsilon, delta).format(unit=unit)}.",
        f"In numbers, and whatever else is known: no outcome would be more than {factor} times as likely or as unlikely "
        f"{change}{tail}.",
    ]
    if guarantee.model == "local":
        lines.append("The data were randomised before they left each device, so this holds against the collector as well.")
    lines.append(guess_sentence(guarantee))
    if guarantee.scope == "per-parameter":
        lines.append(
            f"Each released number by itself has epsilon {plain(guarantee.epsilon)}; the figures above are about all of them "
            "together."
        )
    if guarantee.model == "local":
        lines.append(f"Each further answer of the same {unit} adds to this; the {unit}'s own device keeps the sum.")
    else:
        lines.append(f"Each further result about the same {plural(unit)} adds to this; a ledger keeps the sum.")
    return tuple(lines)


def _strength(epsilon: Amount, delta: Amount) -> str:
    """The promise in one sentence; with a delta at which whole records may come out, at most a weak one."""
    fitting = [words for most, words in _STRENGTHS if epsilon <= most] or [_NONE]
    return _STRENGTHS[-1][1] if delta >= _LARGE_DELTA and fitting[0] != _NONE else fitting[0]


def _up(value: float) -> str:
    """Three significant digits, never below the value.

    Example:
        >>> _up(1.0052), _up(1.64872), _up(2.718281828), _up(148.4), _up(1.0)
        ('1.01', '1.65', '2.72', '149', '1')
    """
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return number(round(math.ceil(value / step) * step, 6))
