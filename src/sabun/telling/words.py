"""Numbers and promises in words a person reads."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from sabun.privacy.amounts import Amount, plain
from sabun.privacy.guarantee import Guarantee
from sabun.telling.language import known, language, phrase, retold, said

__all__ = [
    "cited",
    "count",
    "guess",
    "guess_sentence",
    "listed",
    "number",
    "plural",
    "promise",
    "sentences",
    "shown",
    "tidy",
    "unit_word",
]

_LONGEST_TEXT = 240
_LONGEST_LIST = 12
_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_DIGITS = 4
_LARGE_DELTA = Fraction(1, 1000)
_STRENGTHS = (
    (Fraction(1, 10), phrase("Very strong protection: next to nothing about a single {unit} can be learned from this result.")),
    (Fraction(1, 2), phrase("Strong protection: little about a single {unit} can be learned from this result.")),
    (Fraction(1), phrase("Moderate protection: somebody who knows a lot already may learn something about a single {unit}.")),
    (Fraction(3), phrase("Weak protection: somebody who knows a lot already may learn a good deal about a single {unit}.")),
)
"""The largest epsilon for which each sentence stands; the best guesser is right 52.5, 62.3, 73.2 or 95.3 % of the time."""
_NONE = phrase("Hardly any protection: somebody who knows a lot already may learn nearly everything about a single {unit}.")
_PLACES = {
    "section": "{n} 節",
    "appendix": "付録 {n}",
    "definition": "定義 {n}",
    "theorem": "定理 {n}",
    "lemma": "補題 {n}",
    "corollary": "系 {n}",
    "proposition": "命題 {n}",
    "algorithm": "アルゴリズム {n}",
    "example": "例 {n}",
    "table": "表 {n}",
    "figure": "図 {n}",
    "eq.": "式 {n}",
    "eqs.": "式 {n}",
    "equation": "式 {n}",
}
_KINDS = "|".join(map(re.escape, sorted(_PLACES, key=len, reverse=True)))
_PLACE = re.compile(rf"(?:(?P<kind>{_KINDS})s? )?(?P<n>\(?\d[\d().–\-]*(?:(?: and| to)? \(?\d[\d().–\-]*)*)", re.IGNORECASE)
_BETWEEN_PLACES = re.compile(r", | and (?=[A-Za-z])")
_UNITS = tuple(map(phrase, ("person", "record", "patient", "user", "customer", "household", "account", "device", "row")))
"""Units that pages in other languages have a word for; any other stays as the owner of the data wrote it."""


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
        >>> number(1234567.0), number(2098.4), number(0.123456), number(float("nan")), number(1e-9), number(41)
        ('1,234,567', '2,098', '0.1235', '–', '1e-09', '41')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == round(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 10**digits and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def count(amount: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> count(1, "row"), count(2000, "row")
        ('1 row', '2,000 rows')
    """
    if (words := known(f"{{n}} {noun}")) is not None:
        return words.format(n=f"{amount:,}")
    return f"{amount:,} {noun if amount == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Several of a unit.

    Example:
        >>> plural("patient"), plural("person"), plural("患者")
        ('patients', 'people', '患者')
    """
    if language() != "en":
        return unit_word(noun)
    if not noun[-1:].isascii() or not noun[-1:].isalpha():  # another language, or no word: English endings are not for it
        return noun
    if noun.endswith("person"):
        return f"{noun[: -len('person')]}people"
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def unit_word(unit: str) -> str:
    """What a guarantee protects, as a word of the page's language where there is one.

    Example:
        >>> unit_word("patient")
        'patient'
    """
    return said(unit) if unit in _UNITS else unit


def listed(names: Iterable[str]) -> str:
    """Names one after the other, each in quotation marks.

    Example:
        >>> listed(["age", "sex"])
        '“age”, “sex”'
    """
    return said(", ").join(said("“{name}”", name=name) for name in names)


def cited(place: str) -> str:
    """A place in a paper as the page's language writes it, with what is said of it after a colon or in brackets.

    Example:
        >>> from sabun.telling.language import speaking
        >>> with speaking("ja"):
        ...     cited("Theorem 4, section 3.1"), cited("4.2.1, tables 2 to 4"), cited("Definition 1, (1): outliers")
        ('定理 4、3.1 節', '4.2.1 節、表 2～4', '定義 1、式 (1)：外れ値')
    """
    if language() == "en":
        return place
    if (words := known(place)) is not None:
        return words
    for where, what in _described(place):
        if (told := _places(where)) is not None:
            return f"{told}：{retold(what)}" if what else told
    return retold(place)


def _described(place: str) -> Iterator[tuple[str, str]]:
    """The ways to part a place from what is said of it."""
    yield place, ""
    where, _, what = place.partition(": ")
    yield where, what
    for found in re.finditer(r" \(", place):
        inside = place[found.end() : -1]
        if place.endswith(")") and all(inside[:end].count(")") <= inside[:end].count("(") for end in range(len(inside) + 1)):
            yield place[: found.start()], inside


def _places(text: str) -> str | None:
    """Places alone, one after the other; None where there is more."""
    parts = [_PLACE.fullmatch(part) for part in _BETWEEN_PLACES.split(text)]
    return None if None in parts else "、".join(_place(part["kind"], part["n"]) for part in parts if part is not None)


def _place(kind: str | None, n: str) -> str:
    kind = kind or ("eq." if n.startswith("(") else "section")
    return _PLACES[kind.lower()].format(n=n.replace(" to ", "～").replace(")-(", ")–(").replace(" and ", "、"))


def shown(tree: Any) -> str:
    """Any part of a release in few words."""
    words = _words(tree)
    return words if len(words) <= _LONGEST_TEXT else f"{words[:_LONGEST_TEXT]}…"


def _words(tree: Any) -> str:
    if tree is None:
        return said("none")
    if isinstance(tree, bool):
        return said("yes") if tree else said("no")
    if isinstance(tree, Fraction) and tree.denominator == 1:
        return number(int(tree))
    if isinstance(tree, Fraction):
        return plain(tree) if tree >= 0 else f"−{plain(-tree)}"
    if isinstance(tree, int | float):
        return number(tree)
    if isinstance(tree, str):
        return tree
    if isinstance(tree, np.ndarray):
        size = " × ".join(map(str, tree.shape))
        return shown(tree.tolist()) if tree.size <= _LONGEST_LIST and tree.ndim <= 1 else said("array of {size}", size=size)
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
    rest = between + said("… ({size:,} in all)", size=size) if size > len(taken) else ""
    return between.join(taken) + rest if taken else said("nothing")


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
        return said("There is no limit on what somebody could learn from this result about one person.")
    unit = unit_word(guarantee.unit)
    game = {
        "replace-one": said(
            "Put as a game: somebody who knows everything else, and that one {unit}'s data are one of two possibilities, "
            "guesses which it is.",
            unit=unit,
        ),
        "add-remove": said(
            "Put as a game: somebody who knows everything else guesses whether one {unit}'s data were used at all.", unit=unit
        ),
        "local": said(
            "Put as a game: somebody who sees one {unit}'s own answers, and knows two possibilities for what is behind them, "
            "guesses which it is.",
            unit=unit,
        ),
    }[guarantee.relation]
    if percent >= 100:
        right = said("They may be right nearly every time; without this result, half of the time.")
    else:
        right = said(
            "They are right at most {percent:.1f} % of the time (rounded up); without this result, half of the time.",
            percent=percent,
        )
    return sentences(game, right)


def promise(guarantee: Guarantee) -> tuple[str, ...]:
    """The guarantee as sentences for somebody who has never heard of differential privacy."""
    unit = unit_word(guarantee.unit)
    epsilon, delta = guarantee.cost
    if math.isinf(epsilon):
        return (
            said(
                "No finite bound holds for all that was released together: this result may expose a single {unit}.", unit=unit
            ),
            said("Do not publish it as a private result."),
        )
    lines = [said(_strength(epsilon, delta), unit=unit), _in_numbers(guarantee, unit)]
    if guarantee.model == "local":
        lines.append(
            said("The data were randomised before they left each device, so this holds against the collector as well.")
        )
    lines.append(guess_sentence(guarantee))
    if guarantee.scope == "per-parameter":
        lines.append(
            said(
                "Each released number by itself has epsilon {epsilon}; the figures above are about all of them together.",
                epsilon=plain(guarantee.epsilon),
            )
        )
    if guarantee.model == "local":
        lines.append(
            said("Each further answer of the same {unit} adds to this; the {unit}'s own device keeps the sum.", unit=unit)
        )
    else:
        several = plural(guarantee.unit)
        lines.append(said("Each further result about the same {units} adds to this; a ledger keeps the sum.", units=several))
    return tuple(lines)


def _in_numbers(guarantee: Guarantee, unit: str) -> str:
    epsilon, delta = guarantee.cost
    change = {
        "replace-one": said("if any one {unit}'s data were replaced by other data", unit=unit),
        "add-remove": said("if any one {unit}'s data were left out or added", unit=unit),
        "local": said("if the {unit} held entirely different data", unit=unit),
    }[guarantee.relation]
    factor = said("{factor} (rounded up)", factor=_up(math.exp(float(epsilon)))) if epsilon < 20 else f"e^{plain(epsilon)}"
    if not delta:
        return said(
            "In numbers, and whatever else is known: no outcome would be more than {factor} times as likely or as unlikely "
            "{change}.",
            factor=factor,
            change=change,
        )
    return said(
        "In numbers, and whatever else is known: no outcome would be more than {factor} times as likely or as unlikely "
        "{change}, apart from an added probability of at most {delta} (1 in {times:,}).",
        factor=factor,
        change=change,
        delta=plain(delta),
        times=int(1 / delta),
    )


def sentences(*parts: str) -> str:
    """Sentences in one line, with a blank between them where the language puts one."""
    return ("" if language() == "ja" else " ").join(filter(None, parts))


def _strength(epsilon: Amount, delta: Amount) -> str:
    """The promise in one sentence; with a delta at which whole records may come out, at most a weak one.

    A weak one is none where the best guesser, wrong with probability (1 - delta) / (1 + e^epsilon), is wrong less often than
    at the largest epsilon that is called weak.
    """
    weakest, weak = _STRENGTHS[-1]
    fitting = [words for most, words in _STRENGTHS if epsilon <= most] or [_NONE]
    if delta < _LARGE_DELTA or fitting[0] == _NONE:
        return fitting[0]
    return _NONE if (1 - delta) * (1 + math.exp(weakest)) < 1 + math.exp(epsilon) else weak


def _up(value: float) -> str:
    """Three significant digits, never below the value.

    Example:
        >>> _up(1.0052), _up(1.64872), _up(2.718281828), _up(148.4), _up(1.0)
        ('1.01', '1.65', '2.72', '149', '1')
    """
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return number(round(math.ceil(value / step) * step, 6))
