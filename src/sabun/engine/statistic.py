"""Exact sums that add up: whatever pieces a table is cut into, the whole comes out the same to the bit.

A `Statistic` is the public recipe; it can be pickled and sent anywhere. Its state is plain data that the recipe alone reads.
Who has counted which piece is not the recipe's business: `Part` wraps a state with one bit for each piece, or, for rows
that come without a number, with random names that copies keep.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, final

from sabun import checks
from sabun.errors import DataError, ParameterError
from sabun.records import FileFormat, Persons

__all__ = ["Elsewhere", "Grouped", "Met", "Part", "Statistic", "none_missing", "probe", "state_of", "twice_counted"]

State = TypeVar("State")


class Statistic(Protocol[State]):
    """A sum over rows that is exact: adding in any order, in any pieces, gives the same state.

    Implementations are frozen dataclasses of public values. A state is PRIVATE: it holds exact sums.
    """

    @property
    def name(self) -> str:
        """What is summed, for messages and file headers."""
        ...

    def blocks(self, source: Any) -> Iterable[Any]:
        """A source cut into blocks of bounded size, encoded by public facts; no cell may raise."""
        ...

    def zero(self) -> State:
        """The state of no rows."""
        ...

    def add(self, state: State, block: Any) -> State:
        """The state with one more block; the old one is not used again."""
        ...

    def merge(self, left: State, right: State) -> State:
        """The state of both; neither is used again."""
        ...

    def pack(self, state: State) -> bytes:
        """The state as bytes: equal states give equal bytes."""
        ...

    def unpack(self, content: bytes) -> State:
        """The state from its bytes."""
        ...

    def sample(self) -> Any:
        """A public block that exercises the arithmetic, for `probe`."""
        ...


class Elsewhere(ABC):
    """A source that is counted where it lies, in pieces: see `sabun.engine.spread`.

    Told by its class: a frame may have a column of any name.
    """

    @property
    def parts(self) -> int:
        """How many pieces there are."""
        return 1

    @property
    def form(self) -> FileFormat | None:
        """How texts in it are written; None for as the schema says."""
        return None

    def names(self, form: FileFormat) -> tuple[str, ...] | None:
        """The columns of its files, whose texts are in that form unless they say so themselves; None where it has no files."""
        del form
        return None

    @abstractmethod
    def counted(self, statistic: Statistic[State]) -> State:
        """The state of all its pieces, each counted once."""

    def grouped(self, grouped: Grouped[State]) -> State:
        """The state of rows that must meet before they are counted, wherever they lie.

        Raises:
            DataError: Rows of this source cannot meet.
        """
        del grouped
        raise DataError("a table whose rows must meet must be files or a frame of the engine; those of this one cannot.")


class Met(NamedTuple):
    """What one bucket is counted from; PRIVATE.

    Attributes:
        bucket: Its number.
        rows: What the pieces have for it, in the order of the pieces and of the rows in them.
    """

    bucket: int
    rows: Iterable[bytes]

    def __repr__(self) -> str:
        return f"<Met in bucket {self.bucket}>"


class Grouped(Protocol[State]):
    """Rows that must meet before they can be counted, such as all those of one person, or neighbours in space.

    What belongs together is put into one bucket, by the same rule for every piece; buckets are then counted apart. Where the
    rule was chosen by the data it is PRIVATE: it goes to workers and nowhere else.
    """

    @property
    def statistic(self) -> Statistic[State]:
        """What their states are merged with."""
        ...

    @property
    def buckets(self) -> int | None:
        """How many buckets there must be; None where any number will do."""
        ...

    @property
    def everyone(self) -> bool:
        """Whether every bucket gets all rows: they are then parted into one, which all share."""
        ...

    @property
    def in_order(self) -> bool:
        """Whether the order of rows matters, which files have and frames on a cluster have not."""
        ...

    def parted(self, number: int, source: Any, buckets: int) -> Iterator[Sequence[bytes]]:
        """The rows of a piece, some at a time: bytes for each bucket, empty where there are none; no cell may raise."""
        ...

    def state(self, met: Met) -> State:
        """The state of one bucket."""
        ...


def state_of(statistic: Statistic[State], source: Any) -> State:
    """The state of a whole source."""
    if isinstance(source, Elsewhere):
        return source.counted(statistic)
    if isinstance(source, Persons) and isinstance(source.table, Elsewhere):
        from sabun.engine.by_person import by_person

        return source.table.grouped(by_person(statistic, source, form=source.table.form))
    state = statistic.zero()
    for block in statistic.blocks(source):
        state = statistic.add(state, block)
    return state


def probe(statistic: Statistic[Any]) -> str:
    """A digest of what this machine's arithmetic makes of a public sample; machines whose sums may be merged agree on it."""
    return hashlib.sha256(statistic.pack(statistic.add(statistic.zero(), statistic.sample()))).hexdigest()


@final
@dataclass(frozen=True, kw_only=True)
class Part(Generic[State]):
    """A state with the pieces it has seen; PRIVATE.

    Args:
        statistic: The recipe.
        state: Its sums so far.
        seen: One bit for each piece of the plan, as a whole number.
        pieces: How many pieces the plan has; 0 where pieces are not numbered beforehand.
        names: Random names of parts whose rows came without a number; a copy keeps them, so it is not counted again.
    """

    statistic: Statistic[State]
    state: State = field(repr=False)  # exact sums: a part that is printed or logged shows none
    seen: int = 0
    pieces: int = 0
    names: frozenset[bytes] = frozenset()

    @classmethod
    def empty(cls, statistic: Statistic[State], *, pieces: int) -> Self:
        """Nothing seen yet of so many pieces."""
        checks.whole(minimum=1, pieces=pieces)
        return cls(statistic=statistic, state=statistic.zero(), pieces=pieces)

    @classmethod
    def unnumbered(cls, statistic: Statistic[State]) -> Self:
        """Nothing seen yet, of rows that nobody numbers."""
        return cls(statistic=statistic, state=statistic.zero())

    def with_rows(self, source: Any) -> Self:
        """This part with more rows that have no number: all of them, or (when the source fails) none."""
        checks.require(not self.pieces, f"from 0 to {self.pieces - 1}, for the pieces have numbers", piece=None)
        state = self.statistic.merge(self.state, state_of(self.statistic, source))
        # An empty part may be copied to many places, each of which adds rows of its own: the name comes with the first rows.
        return replace(self, state=state, names=self.names or frozenset((os.urandom(16),)))

    def with_piece(self, number: int, source: Any) -> Self:
        """This part with one more piece.

        Raises:
            DataError: That piece was counted before.
        """
        checks.require(self.pieces > 0, "left out, for the pieces have no numbers", piece=number)
        checks.whole(minimum=0, piece=number)
        checks.require(number < self.pieces, f"from 0 to {self.pieces - 1}", piece=number)
        one = replace(self, state=state_of(self.statistic, source), seen=1 << int(number))
        return self.merged(one)

    def merged(self, other: Self) -> Self:
        """Both parts together.

        Raises:
            ParameterError: They belong to different plans, or one is a copy of what the other holds.
            DataError: Some piece would be counted twice.
        """
        if self.statistic != other.statistic or self.pieces != other.pieces:
            raise ParameterError("two parts must have the same statistic and the same pieces; they do not.")
        if twice := self.seen & other.seen:
            raise twice_counted((twice & -twice).bit_length() - 1)
        if self.names & other.names:
            raise ParameterError(
                "both parts must hold different records; got a copy of a part that is counted already. "
                "Merge each part once, and copy a part only before records were added."
            )
        state = self.statistic.merge(self.state, other.state)
        return replace(self, state=state, seen=self.seen | other.seen, names=self.names | other.names)

    def whole(self) -> State:
        """The state, once every piece was seen.

        Raises:
            DataError: A piece is missing.
        """
        none_missing(self.seen, self.pieces)
        return self.state


def twice_counted(number: int) -> DataError:
    """What is said of a piece that came twice."""
    return DataError(f"every piece must be counted once; piece {number} was counted twice. Nothing was charged.")


def none_missing(seen: int, pieces: int) -> None:
    """Refuses to go on while a piece was not seen.

    Raises:
        DataError: One is missing.
    """
    absent = ~seen & ((1 << pieces) - 1)
    if absent:
        number = (absent & -absent).bit_length() - 1
        raise DataError(f"every piece must be counted once; piece {number} is missing. Nothing was charged.")
