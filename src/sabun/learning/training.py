"""What every way of training is given, and what it hands back."""

from __future__ import annotations

import base64
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sabun.learning.features import Features, Labels
from sabun.learning.model import described
from sabun.learning.network import Floats, Network
from sabun.learning.stream import Stream
from sabun.privacy import Guarantee
from sabun.privacy.noise import Coin
from sabun.records import Persons
from sabun.records.persons import assumptions_of, facts_of

if TYPE_CHECKING:
    from sabun.learning.crew import Crew

__all__ = [
    "KEYSTREAM",
    "NOISY_COUNT",
    "Counting",
    "Data",
    "Meter",
    "Method",
    "Problem",
    "Progress",
    "Run",
    "State",
    "Stepping",
    "makers",
    "one_thread",
    "priced",
    "promise",
    "train",
    "unheard",
]

KEYSTREAM = "the noise is a function of AES-256 keystream under a key from the operating system, which nobody else knows"

NOISY_COUNT = "noisy_count"
"""The name in a release of the noisy number of records."""

_PRICED = 10

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share done (0 to 1) and a few words."""


def unheard(share: float, words: str) -> None:
    """A progress that nobody watches."""
    del share, words


def priced(progress: Progress, price: str) -> Progress:
    """Adds to the words what the noise drawn so far costs."""
    return lambda share, words: progress(share, f"{words}, epsilon so far at most {price}")


@final
class Meter:
    """Tells how many steps are done, with a bound on what they cost by themselves.

    The whole run is charged before its first step all the same. Pricing takes a moment, so only tenths of a run are priced:
    what is shown is the price of the tenth that is under way.

    Args:
        progress: Whom to tell.
        steps: Of the whole run.
        spent: The price of the first so many steps, in words.
    """

    def __init__(self, progress: Progress, *, steps: int, spent: Callable[[int], str]) -> None:
        self._progress, self._steps, self._spent = progress, steps, spent
        self._until, self._price = 0, ""

    def __call__(self, step: int) -> None:
        """So many steps are done now."""
        if self._progress is unheard:
            return
        if step > self._until:
            tenth = -(-_PRICED * step // self._steps)
            self._until = -(-tenth * self._steps // _PRICED)
            self._price = self._spent(self._until)
        priced(self._progress, self._price)(step / self._steps, f"step {step} of {self._steps}")


@final
@dataclass(frozen=True, kw_only=True)
class State:
    """Where a run stands after so many steps; all arrays are flat."""

    step: int
    weights: Floats
    velocity: Floats

    @property
    def bits(self) -> tuple[int, bytes, bytes]:
        """Equal where two states are the same to the last bit, signs of zeros and kinds of NaN included."""
        return self.step, self.weights.tobytes(), self.velocity.tobytes()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        parts = {"weights": self.weights, "velocity": self.velocity}
        return {"step": self.step} | {name: base64.b64encode(part.tobytes()).decode() for name, part in parts.items()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], *, like: State) -> State:
        """Reads what `to_dict` wrote of a state with arrays of the same shapes.

        Raises:
            ValueError: The shapes are others.
        """
        parts = {name: np.frombuffer(base64.b64decode(record[name]), dtype=np.float64) for name in ("weights", "velocity")}
        if any(part.shape != getattr(like, name).shape for name, part in parts.items()):
            raise ValueError
        return cls(step=int(record["step"]), **parts)


@final
@dataclass(frozen=True, kw_only=True)
class Data:
    """The private rows.

    Args:
        rows: Encoded inputs.
        labels: Positions in the list of classes; -1 for a label outside it.
        table: The table as `Schema.encode` gives it, where a method needs it; else None.
        crew: The processes that sum over parts of the rows; None where this one does.
    """

    rows: Floats = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    table: Floats | None = field(default=None, repr=False)
    crew: Crew | None = field(default=None, repr=False)

    def labelled(self) -> Data:
        """Only the rows whose label is in the list; each row is kept or left out by itself."""
        known = self.labels >= 0
        return self if known.all() else self.where(known)

    def where(self, chosen: NDArray[np.bool_]) -> Data:
        """Only the chosen rows."""
        table = None if self.table is None else self.table[chosen]
        return Data(rows=self.rows[chosen], labels=self.labels[chosen], table=table, crew=self.crew)


@final
@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is public about one training run.

    Args:
        features: How rows become inputs.
        labels: The classes.
        epsilon: As asked for.
        delta: As asked for; 0 for pure methods.
        relation: Under which the promise is made.
        unit: Whose data one neighbour step changes.
        n_public: The number of records where that is public, else None.
        persons: How the records were made of several rows each, if they were.
    """

    features: Features
    labels: Labels
    epsilon: Fraction
    delta: Fraction
    relation: str
    unit: str
    n_public: int | None
    persons: Persons | None = field(default=None, repr=False)

    def network(self, hidden: tuple[int, ...]) -> Network:
        """The network between these inputs and classes."""
        return Network(sizes=(self.features.width, *hidden, len(self.labels.classes)))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What every promise about this run rests on."""
        words = [
            *assumptions_of(self.persons, unit=self.unit),
            "the schema and all training settings were chosen without looking at the data",
        ]
        if not self.labels.declared:
            words.append("the list of class labels is public (it was taken from y, since classes was not given)")
        if self.n_public is not None:
            each = self.persons is None
            words.append("the number of records is public" if each else "the number of persons is public")
        return tuple(words)


class Method(Protocol):
    """One way of training: complete before any private row is touched."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise about everything `train` returns."""

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise; see `sabun.learning.recompute`."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings, for the release."""

    def first(self) -> State:
        """Before the first step; public."""

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """The state after each further step, one at least: a function of the data, the stream and the start alone."""

    def value(self, last: State) -> Mapping[str, Any]:
        """What is released, `weights` among it; `sizes` too where a noisy number decided them."""


@runtime_checkable
class Counting(Protocol):
    """A way of training that pays for a noisy number of records where the true one is private."""

    @property
    def count_epsilon(self) -> Fraction:
        """What that number costs; 0 where it is public."""

    def noisy_count(self, data: Data, stream: Stream) -> int | None:
        """At least 1, the same each time it is asked of one stream; None where the number is public."""


@runtime_checkable
class Stepping(Protocol):
    """A way of training whose steps are made by compiled passes, of so many rows at a time."""

    @property
    def piece(self) -> int:
        """How many rows."""


def makers() -> bytes:
    """What makes compiled passes: other versions may round them otherwise."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in ("sabun", "numba", "llvmlite")).encode()


def train(method: Method, data: Data, *, coin: Coin, progress: Progress) -> Mapping[str, Any]:
    """All steps under a fresh key; what the method releases."""
    return method.value(_last(method, data, Stream.fresh(coin), progress))


def _last(method: Method, data: Data, stream: Stream, progress: Progress) -> State:
    with one_thread():
        *_, last = method.states(data, stream, progress=progress, start=method.first())
    return last


def one_thread() -> AbstractContextManager[Any]:
    """Holds the matrix library to one thread: its products are too small here to share out, and waiting threads cost more."""
    limits: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
    return limits


@lru_cache(maxsize=1)
def _libraries(imported: int) -> Any:
    """The matrix libraries of this process; to find them takes longer than a short training, and only imports add to them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@final
@dataclass(frozen=True, kw_only=True)
class Run:
    """One way of training on one table, as `checkpoint` wants it."""

    name: str
    method: Method
    data: Data
    problem: Problem

    @property
    def guarantee(self) -> Guarantee:
        """The method's."""
        return self.method.guarantee

    @property
    def facts(self) -> Mapping[str, Any]:
        """The public parameters of the release; labels that were read off y stay out."""
        about: dict[str, Any] = {"columns": list(self.problem.features.names)}
        if self.problem.labels.declared:
            about["classes"] = list(self.problem.labels.classes)
        about |= facts_of(self.problem.persons)
        return {"method": self.name, **about, **self.method.parameters, "account": self.method.account}

    def fingerprint(self) -> Iterable[bytes]:
        """Every setting and every row."""
        yield repr(self.method).encode()
        yield from _later(self.method)
        if isinstance(self.method, Stepping):
            yield makers()
        for part in (self.data.rows, self.data.labels, self.data.table):
            yield b"none" if part is None else f"{part.dtype} {part.shape}".encode()
            yield b"" if part is None else part.tobytes()

    def first(self) -> State:
        """The method's."""
        return self.method.first()

    def states(self, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """The method's, on this table."""
        return self.method.states(self.data, stream, progress=progress, start=start)

    def train(self, stream: Stream, progress: Progress) -> Mapping[str, Any]:
        """All steps, without keeping states in between."""
        return self.value(_last(self.method, self.data, stream, progress), stream)

    def value(self, last: State, stream: Stream) -> Mapping[str, Any]:
        """The method's, with all else that decides a prediction, and the noisy number of records where one was paid for."""
        found, labels = dict(self.method.value(last)), self.problem.labels
        sizes = found.pop("sizes", self.method.parameters["sizes"])
        value = {**found, "model": described(sizes, self.problem.features, labels.classes)}
        count = self.method.noisy_count(self.data, stream) if isinstance(self.method, Counting) else None
        return value if count is None else {**value, NOISY_COUNT: count}


def _later(setting: Any) -> Iterator[bytes]:
    """Settings that came after checkpoints were written: not shown, and told only where they are not as they always were."""
    if isinstance(setting, tuple):
        yield from itertools.chain.from_iterable(map(_later, setting))
    if not is_dataclass(setting):
        return
    for part in fields(setting):
        value = getattr(setting, part.name)
        if part.repr:
            yield from _later(value)
        elif value != part.default:
            yield f"{part.name}={value!r}".encode()


def promise(problem: Problem, *, mechanism: str, more: tuple[str, ...] = (), **amounts: Any) -> Guarantee:
    """A guarantee for a run of that problem."""
    return Guarantee(
        relation=problem.relation, unit=problem.unit, mechanism=mechanism, assumptions=(*problem.assumptions, *more), **amounts
    )
