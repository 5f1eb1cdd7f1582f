"""Rows that must meet: each piece is parted into buckets by a rule, each bucket is counted whole, the states are merged.

    pieces ─► parted, on disk (one file a piece, in the owner's temporary folder) or through the cluster ─► buckets ─► states

Both halves are guarded as pieces are: a piece or a bucket that is missing, comes twice or changed is refused. What is parted
are rows, so it is PRIVATE.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeVar, final

import numpy as np

from sabun.engine.counting import Report
from sabun.engine.engines import Engine, Step, each_once, gathered
from sabun.engine.pieces import Piece, plan_of
from sabun.engine.scratch import FULL, GONE, scratch
from sabun.engine.statistic import Grouped, Met, none_missing, probe, twice_counted
from sabun.errors import DataError

__all__ = ["Bucket", "Parted", "Shuffle", "buckets_for", "shuffled"]

State = TypeVar("State")

_BUCKET = 1 << 25
"""About how many bytes of files go to a bucket."""

_MOST = 256


class Bucket(NamedTuple):
    """What the second half counts."""

    number: int


class Parted(NamedTuple):
    """What one piece has for one bucket, or for all of them where they share; PRIVATE."""

    plan: str
    piece: int
    bucket: int
    rows: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"<Parted: piece {self.piece} for bucket {self.bucket}>"  # plan and rows are private


@final
@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """A recipe on its way to workers, with the plan and the number of pieces and buckets.

    Args:
        recipe: The `Grouped`, pickled once.
        plan: The plan it is for.
        pieces: How many pieces the plan has.
        buckets: How many buckets are counted.
        everyone: As in `Grouped`.
    """

    recipe: bytes = field(repr=False)
    plan: str = field(repr=False)
    pieces: int
    buckets: int
    everyone: bool = False

    @classmethod
    def of(cls, grouped: Grouped[Any], *, plan: str, pieces: int, buckets: int) -> Self:
        """The task to part the pieces of a plan, and to count the buckets."""
        return cls(recipe=pickle.dumps(grouped), plan=plan, pieces=pieces, buckets=buckets, everyone=grouped.everyone)

    @classmethod
    def of_frame(cls, grouped: Grouped[Any], *, plan: str, pieces: int) -> Self:
        """The same for the partitions of a frame on a cluster.

        Raises:
            DataError: The order of rows matters, and a frame has none.
        """
        if grouped.in_order:
            raise DataError(
                "a table whose rows must meet, such as those of a person, must be files; got a frame. "
                "Write it to Parquet files."
            )
        return cls.of(grouped, plan=plan, pieces=pieces, buckets=grouped.buckets or pieces)

    @property
    def grouped(self) -> Grouped[Any]:
        """The recipe."""
        found: Grouped[Any] = pickle.loads(self.recipe)  # our own bytes, made by the owner's process
        return found

    @property
    def shares(self) -> int:
        """How many things a piece is parted into."""
        return 1 if self.everyone else self.buckets

    def share(self, bucket: int) -> int:
        """Which of them a bucket takes."""
        return 0 if self.everyone else bucket

    def blocks(self, piece: Piece) -> Iterator[Sequence[bytes]]:
        """The rows of a piece by bucket, some at a time.

        Raises:
            DataError: The file does not fit, or is not the one that was cut.
        """
        piece.must_be_unchanged()
        yield from self.grouped.parted(piece.number, piece.part, self.shares)
        piece.must_be_unchanged()  # what was read in between may be of either file

    def parted(self, piece: Piece) -> list[Parted]:
        """The rows of a piece for each bucket, in memory; a bucket without rows is told too, so that none can be missing."""
        return self._held(piece.number, self.blocks(piece))

    def parted_rows(self, number: int, source: Any) -> list[Parted]:
        """The same for a piece that somebody else has cut: a partition of a frame on a cluster."""
        return self._held(number, self.grouped.parted(number, source, self.shares))

    def _held(self, number: int, blocks: Iterable[Sequence[bytes]]) -> list[Parted]:
        held: list[list[bytes]] = [[] for _ in range(self.shares)]
        for block in blocks:
            for rows, more in zip(held, block, strict=True):
                rows += [more] if more else []
        return [Parted(self.plan, number, bucket, tuple(rows)) for bucket, rows in enumerate(held)]

    def joined(self, bucket: int, parts: Iterable[Parted]) -> Report:
        """The report of a bucket, of what all pieces have for it.

        Raises:
            DataError: What a piece has for it is missing, came twice or is of another plan.
        """
        seen, ordered = 0, sorted(parts, key=lambda part: part.piece)
        for part in ordered:
            if (part.plan, part.bucket) != (self.plan, self.share(bucket)) or not 0 <= part.piece < self.pieces:
                raise DataError("every piece must belong to this plan; one came that does not. Nothing was charged.")
            if seen >> part.piece & 1:
                raise twice_counted(part.piece)
            seen |= 1 << part.piece
        none_missing(seen, self.pieces)
        return self.report(bucket, (rows for part in ordered for rows in part.rows))

    def report(self, bucket: int, rows: Iterable[bytes]) -> Report:
        """The report of a bucket, of its rows in order."""
        grouped = self.grouped
        state = grouped.statistic.pack(grouped.state(Met(bucket, rows)))
        return Report(self.plan, bucket, probe(grouped.statistic), state)


def shuffled(
    engine: Engine, grouped: Grouped[State], pieces: Sequence[Piece], *, buckets: int | None = None, step: Step | None = None
) -> State:
    """The state of rows that meet in buckets, each piece and each bucket counted once.

    Args:
        engine: Who parts and counts. A cluster has its own way of bringing rows together (`grouped`); others write them down.
        grouped: The recipe.
        pieces: The pieces.
        buckets: How many buckets, where any number will do; by the size of the files when left out. Cannot change any result.
        step: Called with how much is done, and of how much.

    Raises:
        DataError: As `sabun.engine.engines.gathered`; also where the disk for temporary files is full.
    """
    count = grouped.buckets or buckets or buckets_for(pieces)
    task = Shuffle.of(grouped, plan=plan_of(pieces), pieces=len(pieces), buckets=count)
    if (cluster := getattr(engine, "grouped", None)) is not None:
        return gathered(cluster(task, pieces), grouped.statistic, plan=task.plan, count=task.buckets, step=step)
    if task.buckets == 1:  # little enough to need no disk
        return _at_once(engine, grouped, task, pieces, step)
    with scratch("sabun-") as folder:
        return _through_disk(engine, grouped, task, pieces, folder, step)


def buckets_for(pieces: Sequence[Piece]) -> int:
    """As many buckets as keep each of them small.

    Raises:
        DataError: A file is gone, or may not be looked at.
    """
    sizes = {str(piece.part.path): _size(piece) for piece in pieces}
    wanted = -(-sum(sizes.values()) // _BUCKET)
    return min(1 << max(wanted - 1, 0).bit_length(), _MOST)


def _size(piece: Piece) -> int:
    with suppress(OSError):
        return piece.part.path.stat().st_size
    raise piece.changed()


@final
@dataclass(frozen=True)
class _Held:
    """The first half where all of it fits: what a piece has travels in its report."""

    task: Shuffle

    def counted(self, piece: Piece) -> Report:
        (only,) = self.task.parted(piece)
        return Report(self.task.plan, piece.number, probe(self.task.grouped.statistic), pickle.dumps(only.rows))


@final
@dataclass(frozen=True)
class _Spilling:
    """The first half on disk: one file for each piece, with the sizes of what it has for each bucket at its end."""

    task: Shuffle
    folder: str

    def counted(self, piece: Piece) -> Report:
        name, sizes = "", []
        try:
            # Readable by its owner only; under a name of its own, for an engine may run a piece twice at once.
            handle, name = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                for block in self.task.blocks(piece):
                    sizes.append([len(rows) for rows in block])
                    file.writelines(block)
                np.save(file, np.array(sizes, dtype=np.int64).reshape(-1, self.task.shares))
                file.write((sum(map(sum, sizes))).to_bytes(8, "little"))
        except OSError:
            name = ""
        if not name:
            raise DataError(FULL)
        return Report(self.task.plan, piece.number, probe(self.task.grouped.statistic), os.fsencode(name))


@final
@dataclass(frozen=True)
class _Spilled:
    """The second half: counts a bucket from the files of all pieces."""

    task: Shuffle
    files: tuple[str, ...]

    def counted(self, bucket: Bucket) -> Report:
        return self.task.report(bucket.number, self._rows(self.task.share(bucket.number)))

    def _rows(self, share: int) -> Iterator[bytes]:
        with suppress(OSError):
            yield from self._read(share)
            return
        raise DataError(GONE)

    def _read(self, share: int) -> Iterator[bytes]:
        for name in self.files:
            with open(name, "rb") as file:
                file.seek(-8, os.SEEK_END)
                file.seek(int.from_bytes(file.read(), "little"))
                sizes = np.load(file)
                starts = np.cumsum(sizes) - sizes.ravel()
                for start, size in zip(starts[share :: sizes.shape[1]].tolist(), sizes[:, share].tolist(), strict=True):
                    file.seek(start)
                    if size:
                        yield file.read(size)


def _at_once(engine: Engine, grouped: Grouped[State], task: Shuffle, pieces: Sequence[Piece], step: Step | None) -> State:
    own = probe(grouped.statistic)
    reports = each_once(engine.reports(_Held(task), pieces), plan=task.plan, count=len(pieces), own=own, step=step)
    held = {report.number: pickle.loads(report.state) for report in reports}
    return grouped.state(Met(0, (rows for number in sorted(held) for rows in held[number])))


def _through_disk(
    engine: Engine, grouped: Grouped[State], task: Shuffle, pieces: Sequence[Piece], folder: str, step: Step | None
) -> State:
    total = len(pieces) + task.buckets
    first = None if step is None else lambda done, _: step(done, total)
    reports = engine.reports(_Spilling(task, folder), pieces)
    files = {
        report.number: os.fsdecode(report.state)
        for report in each_once(reports, plan=task.plan, count=len(pieces), own=probe(grouped.statistic), step=first)
    }
    then = None if step is None else lambda done, _: step(len(pieces) + done, total)
    ordered = tuple(files[number] for number in range(len(pieces)))
    reports = engine.reports(_Spilled(task, ordered), [Bucket(number) for number in range(task.buckets)])
    return gathered(reports, grouped.statistic, plan=task.plan, count=task.buckets, step=then)
