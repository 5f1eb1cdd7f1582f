"""A whole fit recorded, then replayed on neighbouring tables: whatever is released must come from noisy numbers alone.

While a table is fitted, the coin is frozen and every noisy number is written on a tape: the statistic, the noise it asks for,
what came out. A neighbour is then fitted with the *outcomes* of the tape: each noisy number is made to come out as before.
If nothing but noisy numbers decides what is done and what is released, the two releases are the same to the last bit; and
what the neighbour's statistics would have had to draw instead tells the exact loss at this outcome.
"""

from __future__ import annotations

import builtins
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.asking.evidence import ROWS, Bench, Draw, Refuted, Specimen
from sabun.asking.evidence.listening import room_modules
from sabun.asking.evidence.needed import gaussian_delta
from sabun.audit.objects import held
from sabun.privacy.noise import coin

__all__ = ["Tape", "neighbours", "replayed"]

_PURE = {"discrete_laplace": 1, "spherical_laplace": 2, "cubical_laplace": np.inf}
"""The norm in which each law of pure noise pays for a change."""
_SMOOTH = "smooth"
_LEFT_OUT = {"replace-one": (2, 6), "add-remove": (0, 2, 4, 6, 7)}
"""Neighbours for whoever has more time."""
_CLOCK = ".provenance.time"
"""The one thing in an object that may differ: when it was made."""


class _Numbered(int):
    """A draw on its way to the number it protects: whoever adds it to a number writes that number on the tape."""

    tape: Tape
    place: tuple[int, int]

    def __add__(self, other: Any) -> Any:
        return self.tape.outcome(self.place, other)

    __radd__ = __add__


class _Keeping(type(int)):  # type: ignore[misc]
    """`int` for modules that make whole numbers of their draws: a draw stays what it is."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        return given[0] if given and isinstance(given[0], _Numbered) else builtins.int(*given, **named)

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, builtins.int)


class _Whole(int, metaclass=_Keeping):
    """Stands for `int` while a fit is recorded."""


@final
@dataclass
class Tape:
    """What one fit drew, for which numbers, and what came out."""

    outcomes: dict[tuple[int, int], Any] = field(default_factory=dict)
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    draws: list[Draw] = field(default_factory=list)
    centres: list[tuple[NDArray[np.float64], float]] = field(default_factory=list)
    steps: list[NDArray[np.float64]] = field(default_factory=list)
    choices: list[tuple[tuple[float, ...], float]] = field(default_factory=list)
    asked: int = 0
    chosen: list[int] = field(default_factory=list)
    tossed: list[bool] = field(default_factory=list)

    def again(self) -> Tape:
        """An empty tape with the same outcomes, to replay another table by."""
        return Tape(outcomes=dict(self.outcomes), steps=list(self.steps), chosen=list(self.chosen), tossed=list(self.tossed))

    def instead(self, draw: Draw) -> Any:
        """Draws that write down what they are added to."""
        number, noise = len(self.draws), np.empty(draw.count, dtype=object)
        self.draws.append(draw)
        for place in range(draw.count):
            noise[place] = _Numbered(0)
            noise[place].tape, noise[place].place = self, (number, place)
        return noise

    def outcome(self, place: tuple[int, int], number: Any) -> int:
        """What comes out where noise meets a number: what the tape has, or the number with a little noise of no secret."""
        if self.numbers.get(place, builtins.int(number)) != builtins.int(number):
            raise Refuted(
                f"noise number {place[1]} of draw {place[0]} was added to two numbers: their difference comes out exact."
            )
        self.numbers[place] = builtins.int(number)
        return builtins.int(self.outcomes.setdefault(place, builtins.int(number) + (7 * place[0] + 3 * place[1]) % 11 - 5))

    @property
    def unmet(self) -> list[str]:
        """Draws that met no number in sight of the tape."""
        every = [(number, place, draw.law) for number, draw in enumerate(self.draws) for place in range(draw.count)]
        return [
            f"number {place} of draw {number} ({law})" for number, place, law in every if (number, place) not in self.numbers
        ]

    def loss(self, other: Tape) -> tuple[float, float]:
        """What the outcomes tell of which of two tables it was: epsilon of pure noise, and mu of Gaussian noise."""
        pure, mu = 0.0, 0.0
        for number, draw in enumerate(self.draws):
            moved = np.array([float(self.numbers[number, place] - other.numbers[number, place]) for place in range(draw.count)])
            if draw.law == _SMOOTH:
                continue  # its size is private, and its loss is the room's to show
            if draw.law in _PURE:
                pure += float(np.linalg.norm(moved, _PURE[draw.law])) / draw.parameter
            else:
                mu += float(moved @ moved) / draw.parameter
        for (centre, sigma), (there, _) in zip(self.centres, other.centres, strict=True):
            mu += float(np.sum((centre - there) ** 2)) / sigma**2
        for place, (costs, rate), (others, _) in zip(self.chosen, self.choices, other.choices, strict=True):
            pure += abs(_log_chance(costs, rate, place) - _log_chance(others, rate, place))
        return pure, math.sqrt(mu)


def _log_chance(costs: tuple[float, ...], rate: float, place: int) -> float:
    weights = -rate * (np.array(costs) - min(costs))
    return float(weights[place] - np.log(np.exp(weights).sum()))


def neighbours(
    relation: str, rows: NDArray[np.float64] = ROWS, *, every: bool = True
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Tables that differ in one row: corners, cells that are no numbers, extremes, twins; under add-remove one more or less."""
    if relation == "add-remove":
        yield "first row gone", rows[1:]
        yield "last row gone", rows[:-1]
    wild = (0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (np.nan, np.nan), (np.inf, -np.inf), (1e308, -1e308), (5e-324, -0.0), rows[5]
    for number, row in enumerate(wild):
        if not every and number in _LEFT_OUT[relation]:
            continue
        if relation == "add-remove":
            yield f"with row {tuple(float(cell) for cell in row)}", np.vstack([rows, row])
            continue
        changed = rows.copy()
        changed[(7 * number) % len(rows)] = row
        yield f"row {tuple(float(cell) for cell in row)}", changed


@final
class _Session:
    """Records and replays fits of one specimen on a bench."""

    def __init__(self, bench: Bench, specimen: Specimen) -> None:
        self._bench, self._specimen = bench, specimen
        specimen.fit(specimen.make(random_state=1), ROWS)  # everything it loads on the way is there now, to be listened to
        self._heard = bench.heard
        bench.replace(coin._OsCoin, "words", lambda _, count: self._words(count))
        for law in specimen.smooth:
            bench.replace(law, "draw", self._smooth(vars(law)["draw"]))
        for module in room_modules():
            self._listen(module)
        self._tape, self._asked = Tape(), 0

    def _listen(self, module: Any) -> None:
        here = vars(module)
        if any(name in here for name in ("discrete_laplace", "discrete_gaussian", "spherical_laplace", "rounded_gaussian")):
            self._bench.replace(module, "int", _Whole)
        if getattr(here.get("rounded_gaussian"), "__module__", "") == "sabun.learning.gaussian":
            self._bench.replace(module, "rounded_gaussian", self._gaussian(here["rounded_gaussian"]))
        if "exponential_choice" in here:
            self._bench.replace(module, "exponential_choice", self._choice)
        if "bernoulli_exp" in here:
            self._bench.replace(module, "bernoulli_exp", self._toss(here["bernoulli_exp"]))

    def _words(self, count: int) -> NDArray[np.uint64]:
        """The frozen coin: the same words for every table, as often as they are asked for in the same order."""
        self._asked += 1
        seed = hashlib.sha256(f"{self._asked}".encode()).digest()
        return np.frombuffer(hashlib.shake_256(seed).digest(8 * builtins.int(count)), dtype="<u8")

    def _gaussian(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def listener(centre: Any, *, sigma: float, **how: Any) -> Any:
            tape = self._tape
            tape.centres.append((np.array(centre, dtype=np.float64), float(sigma)))
            if len(tape.steps) < len(tape.centres):
                tape.steps.append(original(centre, sigma=sigma, **how))
            return tape.steps[len(tape.centres) - 1].copy()

        return listener

    def _choice(self, costs: Any, *, rate: Any, coin: Any) -> int:
        del coin
        tape = self._tape
        tape.choices.append((tuple(float(cost) for cost in costs), float(rate)))
        if len(tape.chosen) < len(tape.choices):
            tape.chosen.append(builtins.int(np.argmin([float(cost) for cost in costs])))
        return tape.chosen[len(tape.choices) - 1]

    def _smooth(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def listener(law: Any, *given: Any, **how: Any) -> Any:
            drawn = original(law, *given, **how)
            several = isinstance(drawn, list | tuple | np.ndarray)
            noise = self._tape.instead(Draw(law=_SMOOTH, parameter=0.0, count=len(drawn) if several else 1))
            return list(noise) if several else noise[0]

        return listener

    def _toss(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A rejection's tosses: the same heads and tails for every table, where one at a time is asked for."""

        def listener(gamma: Any, **how: Any) -> Any:
            tape = self._tape
            if "size" in how:
                return original(gamma, **how)
            tape.asked += 1
            if len(tape.tossed) < tape.asked:
                tape.tossed.append(bool(original(gamma, **how)))
            return tape.tossed[tape.asked - 1]

        return listener

    def fitted(self, rows: NDArray[np.float64], tape: Tape) -> Any:
        """The specimen fitted to rows by that tape."""
        self._tape, self._asked, self._heard.instead = tape, 0, tape.instead
        return self._specimen.fit(self._specimen.make(), rows)


def replayed(bench: Bench, specimen: Specimen) -> str:
    """Records the specimen, replays its neighbours; raises where one of them shows, or where noise reaches no number."""
    session = _Session(bench, specimen)
    first = Tape()
    model = session.fitted(ROWS, first)
    traced = not specimen.untraced
    bench.must(first.draws or first.centres or first.choices or first.asked, "nothing random was asked for.")
    if traced:
        bench.must(not first.unmet, f"noise was drawn and met no number: {', '.join(first.unmet[:3])}.")
    kept, losses = held(model), [(0.0, 0.0)]
    for words, rows in (found := list(neighbours(model.guarantee_.relation, every=bench.thorough))):
        tape = first.again()
        try:
            other = session.fitted(rows, tape)
        except Refuted:
            raise
        except Exception as error:  # no private row may decide whether a fit fails
            raise Refuted(f"{words}: {type(error).__name__}: {error}") from error
        bench.must(tape.draws == first.draws, f"{words}: other noise was asked for.")
        bench.must(other.guarantee_ == model.guarantee_, f"{words}: another guarantee.")
        bench.must(_shape(_facts(other)) == _shape(_facts(model)), f"{words}: a release of another shape.")
        if traced:
            bench.must(
                _same(_facts(other), _facts(model)), f"{words}: the release is another, though every noisy number is the same."
            )
            _must_hold_the_same(bench, words, kept, held(other))
            losses.append(first.loss(tape))
    if not traced:
        return f"{len(found)} neighbours: the same draws and a release of the same shape ({specimen.untraced})"
    pure, mu = (max(amounts) for amounts in zip(*losses, strict=True))
    alike = f"{len(found)} neighbours: the same release and the same object bit for bit"
    if specimen.secret_batches:
        return f"{alike}; what secret batches lose is another check"
    _must_cover(bench, model.guarantee_, pure, mu)
    lost = f"; largest loss {_lost(model.guarantee_, pure, mu)}" if pure or mu else ""
    smooth = first.asked or any(draw.law == _SMOOTH for draw in first.draws)
    return f"{alike}{lost}{'; what choices and smooth noise lose is another check' if smooth else ''}"


def _epsilon(guarantee: Any) -> Any:
    """What is promised about everything that is released together."""
    return guarantee.epsilon if guarantee.joint_epsilon is None else max(guarantee.epsilon, guarantee.joint_epsilon)


def _lost(guarantee: Any, pure: float, mu: float) -> str:
    """The loss in the unit of the promise: where noise is Gaussian, the least epsilon that has no more than its delta."""
    promised, delta = _epsilon(guarantee), float(guarantee.delta)
    if not mu:
        return f"epsilon {pure:.4f} of epsilon {promised}"
    low, high = 0.0, float(promised)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(middle, pure, mu) <= delta else (middle, high)
    return f"epsilon {high:.4f} of epsilon {promised}, at delta {delta:g} (mu {mu:.4f})"


def _must_hold_the_same(bench: Bench, words: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """The finished object, however deep: what survives in it reaches whoever gets a pickle of it."""
    for way, thing in one.items():
        if way.endswith(_CLOCK):
            continue
        bench.must(way in other and _same(thing, other[way]), f"{words}: something private is left in the object: {way}.")
    bench.must(
        one.keys() == other.keys(), f"{words}: the object holds more: {', '.join(sorted(other.keys() - one.keys())[:3])}."
    )


def _must_cover(bench: Bench, guarantee: Any, pure: float, mu: float) -> None:
    epsilon, delta = float(_epsilon(guarantee)), float(guarantee.delta)
    bench.must(epsilon - pure >= -1e-9, f"pure noise alone loses epsilon {pure:.6f} where {epsilon:g} is promised.")
    if mu > 0:
        found = _delta(epsilon, pure, mu)
        bench.must(
            found <= delta * (1 + 1e-4),
            f"noise that loses mu {mu:.6f} has delta {found:.4g} at epsilon {epsilon:g} where {delta:.4g} is promised.",
        )


def _delta(epsilon: float, pure: float, mu: float) -> float:
    """Pure noise loses no more than one toss with odds e^pure; with Gaussian noise beside it, delta is a mean of two."""
    heads = 1 / (1 + math.exp(-pure))
    return heads * gaussian_delta(1 / mu, epsilon - pure) + (1 - heads) * gaussian_delta(1 / mu, epsilon + pure)


def _facts(model: Any) -> Mapping[str, Any]:
    """What leaves: the released value and the public facts beside it."""
    release = model.release_
    return {"value": dict(release.value), "parameters": dict(release.provenance.parameters), "kind": release.provenance.kind}


def _shape(thing: Any) -> Any:
    """Names, kinds and sizes, without the numbers; words are facts."""
    if isinstance(thing, Mapping):
        return {name: _shape(part) for name, part in thing.items()}
    if isinstance(thing, list | tuple):
        return [_shape(part) for part in thing]
    if isinstance(thing, np.ndarray):
        return thing.dtype.str, thing.shape
    return thing if isinstance(thing, str) else type(thing).__name__


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(part, other[name]) for name, part in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    return bool(one == other or one != one)
