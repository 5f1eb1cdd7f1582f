"""Huge noise drowns everything: whatever still tells two tables apart has no noise on it.

Two quite different tables are fitted with the same noise, a million times what is asked for. A released number, a fact or a
word that depends on the table by way of its noise alone is then the same but for a millionth. One that was left exact
(a count, a size, a divisor, an interval's end, a weight) is as different as the tables are; two numbers that share one draw
differ by an exact number.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.asking.evidence import ROWS, Bench, Draw, Specimen
from sabun.asking.evidence.listening import room_modules
from sabun.audit.objects import held
from sabun.privacy.noise import coin

__all__ = ["drowned"]

TIMES = 10**6
_CLOSE = 1e-2
"""Sixty rows against a million times the noise of one: what is drowned is closer by far."""
_VARIANCES = ("discrete_gaussian", "rounded_gaussian")
_DIGEST = re.compile(r"[0-9a-f]{32,}")
_NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")


def _other(relation: str) -> NDArray[np.float64]:
    """A table as unlike as can be: all near one corner; under add-remove of another length."""
    bent = 1 - ROWS**4 / 2
    return bent if relation == "replace-one" else bent[:41]


@final
class _Flood:
    """Noise that comes out a million times too large, and the same for every table."""

    def __init__(self, bench: Bench, specimen: Specimen) -> None:
        specimen.fit(specimen.make(random_state=1), ROWS)  # everything it loads on the way is there now, to be listened to
        self._heard, self._seed, self._asked, self._drawn, self._only = bench.heard, 0, 0, 0, -1
        self._heard.instead = self._instead
        bench.replace(coin._OsCoin, "words", lambda _, count: self._words(count))
        for law in specimen.smooth:
            bench.replace(law, "draw", self._times(vars(law)["draw"]))
        for module in room_modules():
            self._listen(bench, module)

    def _listen(self, bench: Bench, module: Any) -> None:
        here = vars(module)
        if getattr(here.get("rounded_gaussian"), "__module__", "") == "sabun.learning.gaussian":
            bench.replace(module, "rounded_gaussian", _added(here["rounded_gaussian"]))
        if "exponential_choice" in here:
            bench.replace(module, "exponential_choice", self._choice)
        if "bernoulli_exp" in here:
            bench.replace(module, "bernoulli_exp", _always(here["bernoulli_exp"]))

    def begin(self, seed: int, *, only: int = -1) -> int:
        """The same flood again, or another one, or one draw only; how many draws the last one had."""
        before = self._drawn
        self._seed, self._asked, self._drawn, self._only = seed, 0, 0, only
        return before

    def _words(self, count: int) -> NDArray[np.uint64]:
        self._asked += 1
        seed = hashlib.sha256(f"{self._seed}/{self._asked}".encode()).digest()
        return np.frombuffer(hashlib.shake_256(seed).digest(8 * int(count)), dtype="<u8")

    def _instead(self, draw: Draw) -> Any:
        """Numbers of either sign, none of them small, no two of them alike."""
        self._drawn += 1
        size = math.sqrt(draw.parameter) if draw.law in _VARIANCES else draw.parameter
        if self._only not in (-1, self._drawn):
            return np.zeros(draw.count, dtype=object)
        noise = np.empty(draw.count, dtype=object)
        for place in range(draw.count):
            word = int.from_bytes(hashlib.sha256(f"{self._seed}/{self._drawn}/{place}".encode()).digest()[:6], "big")
            noise[place] = (1 if word & 1 else -1) * math.ceil(size * TIMES * (1 + word / 2**48))
        return noise

    def _times(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def flooded(law: Any, *given: Any, **how: Any) -> Any:
            drawn = original(law, *given, **how)
            several = isinstance(drawn, list | tuple | np.ndarray)
            huge = self._instead(Draw(law="smooth", parameter=TIMES, count=len(drawn) if several else 1))
            # Its size is private, so it is not told by how much: huge wherever there was noise at all.
            noise = [wide if number else 0 for wide, number in zip(huge, drawn if several else [drawn], strict=True)]
            return noise if several else noise[0]

        return flooded

    def _choice(self, costs: Any, *, rate: Any, coin: Any) -> int:
        """With no budget every one is as likely."""
        del rate, coin
        self._drawn += 1
        return (7 * self._drawn + self._seed) % len(list(costs))


def _added(original: Callable[..., Any]) -> Callable[..., Any]:
    def flooded(centre: Any, **how: Any) -> Any:
        known = np.array(centre, dtype=np.float64)
        return known + TIMES * (np.asarray(original(centre, **how), dtype=np.float64) - known)

    return flooded


def _always(original: Callable[..., Any]) -> Callable[..., Any]:
    """A toss with no budget: whoever comes first is taken."""

    def flooded(gamma: Any, **how: Any) -> Any:
        return original(gamma, **how) if "size" in how else True

    return flooded


def drowned(bench: Bench, specimen: Specimen) -> str:
    """Floods two tables; raises where something is left dry."""
    flood, numbers, outcomes = _Flood(bench, specimen), 0, list[str]()
    for seed in range(1, 4 if bench.thorough else 3):
        found = []
        for rows in (ROWS, _other(_relation(specimen))):
            flood.begin(seed)
            model = specimen.fit(specimen.make(), rows)
            found.append(dict(_numbers(specimen.released(model))))
        one, other = found
        bench.must(one.keys() == other.keys(), f"other things are there: {_first(one.keys() ^ other.keys())}.")
        for way, number in one.items():
            bench.must(
                _close(number, other[way]),
                f"{way} has no noise on it: it tells two tables apart under {TIMES} times the noise.",
            )
        _must_not_share(bench, one, other)
        numbers = len(one)
        outcomes.append(repr(one))
    for seed in range(4, 20):  # a choice between two may come out alike some times, not every time
        if len(set(outcomes)) > 1:
            break
        flood.begin(seed)
        outcomes.append(repr(dict(_numbers(specimen.released(specimen.fit(specimen.make(), ROWS))))))
    bench.must(len(set(outcomes)) > 1, "no noise, however large, moves anything that is released.")
    if specimen.untraced:
        _must_each_arrive(bench, specimen, flood)
    return f"{numbers} numbers and words, each drowned by {TIMES} times its noise"


def _must_each_arrive(bench: Bench, specimen: Specimen, flood: _Flood) -> None:
    """Where no draw can be followed: each of them, alone, must move what is released."""
    draws, found = flood.begin(1, only=0), []
    for only in range(draws + 1):
        flood.begin(1, only=only)
        found.append(dict(_numbers(specimen.released(specimen.fit(specimen.make(), ROWS)))))
        moved = only == 0 or any(not _close(number, found[only].get(way)) for way, number in found[0].items())
        bench.must(moved, f"draw {only} of {draws} moves nothing that is released.")


def _relation(specimen: Specimen) -> str:
    return str(specimen.fit(specimen.make(), ROWS).guarantee_.relation)


def _first(ways: Any) -> str:
    return ", ".join(sorted(ways)[:3])


def _numbers(model: Any) -> Iterator[tuple[str, Any]]:
    """Every number that is released, those inside words as well."""
    for way, thing in held(model).items():
        digest = isinstance(thing, str) and _DIGEST.fullmatch(thing)
        if way.endswith(".provenance.time") or digest or isinstance(thing, bool):
            continue  # the clock; what follows from the rest, which a replay compares to the last bit
        if isinstance(thing, np.ndarray) and thing.dtype.kind in "iufb":
            yield from ((f"{way}[{place}]", cell) for place, cell in enumerate(thing.ravel().tolist()))
            yield f"{way} has", str(thing.shape)
        elif isinstance(thing, str):
            yield from (
                (f"{way}: number {place}", float(part.replace(",", ""))) for place, part in enumerate(_NUMBER.findall(thing))
            )
            yield f"{way} says", _NUMBER.sub("#", thing)
        else:
            yield way, thing.tolist() if isinstance(thing, np.ndarray) else thing


def _close(one: Any, other: Any) -> bool:
    if not _is_number(one) or not _is_number(other):
        return bool(one == other or (one != one and other != other))
    return (
        one == other
        or (one != one and other != other)
        or _apart(one, other) <= _CLOSE * max(abs(float(one)), abs(float(other)))
    )


def _apart(one: Any, other: Any) -> float:
    exact = isinstance(one, int | Fraction) and isinstance(other, int | Fraction)
    return float(abs(one - other)) if exact else abs(float(one) - float(other))


def _is_number(thing: Any) -> bool:
    return isinstance(thing, int | float | Fraction | np.number) and not isinstance(thing, bool)


def _must_not_share(bench: Bench, one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two noisy numbers close together whose difference tells the tables apart: they have one draw between them."""
    moved = [way for way, number in one.items() if _is_number(number) and math.isfinite(number) and number != other[way]]
    moved.sort(key=lambda way: float(one[way]))
    for first, second in itertools.pairwise(moved):
        size = abs(float(one[first]))
        here, there = _difference(one, first, second), _difference(other, first, second)
        if abs(here) > _CLOSE * size or max(abs(here), abs(there)) <= 1e-9 * size:
            continue  # apart, or the same but for rounding
        alike = abs(here - there) <= max(abs(here), abs(there)) / 4
        bench.must(alike, f"{first} and {second} share their noise: they are {here:.6g} or {there:.6g} apart.")


def _difference(table: dict[str, Any], first: str, second: str) -> float:
    exact = isinstance(table[first], int | Fraction) and isinstance(table[second], int | Fraction)
    return float(table[first] - table[second]) if exact else float(table[first]) - float(table[second])
