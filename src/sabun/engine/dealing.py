"""Rows dealt to hands: for statistics that need rows from everywhere side by side, such as neighbours in space.

    pieces ─► each dealt by the same rule ─► hands: each counted once all its packets are there ─► the state, with the owner

A packet holds rows, so it is PRIVATE: it travels by the engine's own means (Dask, Spark) or through a scratch folder that is
removed afterwards. A hand that lacks a piece's packet, or has one twice, is refused by whoever counts it.
"""

from __future__ import annotations

import io
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun.engine.counting import Report
from sabun.engine.pieces import Piece
from sabun.engine.scratch import FULL, GONE, scratch
from sabun.engine.statistic import Statistic, probe, state_of
from sabun.errors import DataError

__all__ = ["Deal", "Dealing", "Hand", "dealt_here", "packed", "unpacked"]

_LOST = "every hand must hold one packet of each piece; one does not. Nothing was charged."


class Deal(Protocol):
    """Which rows go to which hands. Where it was chosen by the data it is PRIVATE: it goes to workers and nowhere else."""

    @property
    def hands(self) -> int:
        """How many hands there are."""
        ...

    @property
    def everyone(self) -> bool:
        """Whether every hand gets all rows; they are then dealt to hand 0 and shared."""
        ...

    def dealt(self, source: Any) -> Iterator[tuple[int, bytes]]:
        """Numbers of hands with rows for them, as they come; no cell may raise."""
        ...


class Hand(NamedTuple):
    """What one hand holds: its number and the packets of all pieces, in the pieces' order; PRIVATE."""

    number: int
    packets: Sequence[bytes]

    def __repr__(self) -> str:
        return f"<Hand {self.number}>"  # packets hold rows


@final
@dataclass(frozen=True, kw_only=True)
class Dealing:
    """A rule for dealing and a recipe for counting hands, on their way to workers.

    Args:
        recipe: Both, pickled once.
        plan: The plan it is for.
        pieces: How many pieces the plan has.
        hands: How many hands there are.
        everyone: As in `Deal`.
    """

    recipe: bytes = field(repr=False)
    plan: str = field(repr=False)
    pieces: int
    hands: int
    everyone: bool

    @classmethod
    def of(cls, deal: Deal, statistic: Statistic[Any], *, plan: str, pieces: int) -> Self:
        """The task to deal the pieces of a plan and count the hands."""
        recipe = pickle.dumps((deal, statistic))
        return cls(recipe=recipe, plan=plan, pieces=pieces, hands=deal.hands, everyone=deal.everyone)

    def share(self, hand: int) -> int:
        """Which packet of a piece a hand takes."""
        return 0 if self.everyone else hand

    def packets(self, source: Any) -> tuple[bytes, ...]:
        """What each hand gets of a piece; one packet where everyone gets the same."""
        found: list[list[bytes]] = [[] for _ in range(1 if self.everyone else self.hands)]
        if isinstance(source, Piece):
            source.must_be_unchanged()
        for hand, content in self._deal.dealt(source.part if isinstance(source, Piece) else source):
            found[hand].append(content)
        if isinstance(source, Piece):
            source.must_be_unchanged()  # what was read in between may be of either file
        return tuple(b"".join(contents) for contents in found)

    def counted_hand(self, hand: int, packets: Sequence[bytes]) -> Report:
        """Counts a hand whose packets are all there, in the pieces' order.

        Raises:
            DataError: There are more or fewer packets than pieces.
        """
        if len(packets) != self.pieces:
            raise DataError(_LOST)
        statistic: Statistic[Any] = pickle.loads(self.recipe)[1]  # our own bytes, made by the owner's process
        state = statistic.pack(state_of(statistic, Hand(hand, packets)))
        return Report(self.plan, hand, probe(statistic), state)

    def counted_numbered(self, hand: int, numbers: Sequence[int], packets: Sequence[bytes]) -> Report:
        """The same for packets that come in any order, with the numbers of their pieces.

        Raises:
            DataError: A piece is missing or came twice.
        """
        if sorted(numbers) != list(range(self.pieces)):
            raise DataError(_LOST)
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        return self.counted_hand(hand, [packets[place] for place in order])

    @property
    def _deal(self) -> Deal:
        deal: Deal = pickle.loads(self.recipe)[0]
        return deal


@final
@dataclass(frozen=True)
class _Writing:
    """A worker's task: the packets of a piece into one file, block by block, so that no piece need fit into memory."""

    task: Dealing
    folder: str

    def counted(self, piece: Piece) -> Report:
        """Where in the file the rows of each hand stand."""
        piece.must_be_unchanged()
        places: list[tuple[int, int, int]] = []
        name = ""
        with suppress(OSError):
            handle, name = tempfile.mkstemp(dir=self.folder)  # a name of its own: an engine may run a piece twice at once
            with os.fdopen(handle, "wb") as out:
                for hand, content in self.task._deal.dealt(piece.part):
                    places.append((hand, out.tell(), len(content)))
                    out.write(content)
                out.flush()
            return self._report(piece, name, places)
        raise DataError(FULL)

    def _report(self, piece: Piece, name: str, places: list[tuple[int, int, int]]) -> Report:
        piece.must_be_unchanged()  # what was read in between may be of either file
        where = np.array(places, dtype=np.int64).reshape(-1, 3)
        return Report(self.task.plan, piece.number, "", packed(where, np.frombuffer(os.fsencode(name), dtype=np.uint8)))


class _Stack(NamedTuple):
    """A hand's places in the files of all pieces."""

    number: int
    places: tuple[tuple[str, NDArray[np.int64]], ...]

    def __repr__(self) -> str:
        return f"<Stack of hand {self.number}>"  # sizes tell how many rows there are


@final
@dataclass(frozen=True)
class _Reading:
    """A worker's task: count a hand from the files."""

    task: Dealing

    def counted(self, stack: _Stack) -> Report:
        """The report of the hand."""
        return self.task.counted_hand(stack.number, [_read(name, places) for name, places in stack.places])


def dealt_here(engine: Any, task: Dealing, pieces: Sequence[Piece]) -> Iterator[Report]:
    """Deals by the processes of this machine, through a scratch folder that nobody else can read and that is removed.

    Raises:
        DataError: A piece could not be read or a hand not counted.
    """
    with scratch("sabun-dealt-") as folder:
        written = sorted(engine.reports(_Writing(task, folder), pieces), key=lambda report: report.number)
        if [report.number for report in written] != list(range(task.pieces)):
            raise DataError(_LOST)
        files = [(places, os.fsdecode(name.tobytes())) for places, name in (unpacked(report.state) for report in written)]
        stacks = [
            _Stack(hand, tuple((name, places[places[:, 0] == task.share(hand), 1:]) for places, name in files))
            for hand in range(task.hands)
        ]
        yield from engine.reports(_Reading(task), stacks)


def packed(*arrays: NDArray[Any]) -> bytes:
    """Arrays of numbers as bytes; equal arrays give equal bytes."""
    out = io.BytesIO()
    for array in arrays:
        np.lib.format.write_array(out, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return out.getvalue()


def unpacked(content: bytes) -> list[NDArray[Any]]:
    """The arrays again.

    Raises:
        DataError: They are not such bytes.
    """
    source, arrays = io.BytesIO(content), []
    try:
        while source.tell() < len(content):
            arrays.append(np.lib.format.read_array(source, allow_pickle=False))
    except (ValueError, OSError, EOFError):
        raise DataError("sums must be bytes that the same statistic packed; they are not.") from None
    return arrays


def _read(name: str, places: NDArray[np.int64]) -> bytes:
    found = []
    with suppress(OSError), open(name, "rb") as opened:
        for start, length in places.tolist():
            opened.seek(start)
            found.append(opened.read(length))
        return b"".join(found)
    raise DataError(GONE)
