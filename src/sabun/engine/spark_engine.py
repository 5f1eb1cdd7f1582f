"""Pieces counted by the executors of a Spark session, classic or Connect, and frames that lie there already.

Only the DataFrame API is used, for Spark Connect has no other.
"""

from __future__ import annotations

import importlib
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, final

from sabun.engine.counting import Counting, Numbered, Report, Task
from sabun.engine.dealing import Deal, Dealing
from sabun.engine.engines import address_of, gathered
from sabun.engine.pieces import Piece
from sabun.engine.shuffle import Shuffle
from sabun.engine.statistic import Elsewhere, Statistic
from sabun.errors import DataError, ParameterError
from sabun.records import chunks

__all__ = ["Spark", "SparkFrame"]

State = TypeVar("State")

_REPORT = "plan string, number int, probe string, state binary"
_PACKET = "hand int, piece int, packet binary"
_PARTITIONS = 16
"""Into how many partitions a DataFrame is cut: as many as its rows are shuffled into, so that none can be missing unseen."""


@final
@dataclass(frozen=True)
class Spark:
    """A Spark session.

    Args:
        session: A `SparkSession`, or the address to start or find one at; None for whatever Spark finds by itself.
    """

    session: Any = None

    @classmethod
    def of(cls, engine: Any) -> Self:
        """From ``spark``, ``spark://host:port``, ``sc://host:port`` or a session.

        Raises:
            ParameterError: The name makes no sense, or Spark is not installed.
        """
        if isinstance(engine, str) and engine != "spark":
            address_of(engine)
        try:
            import pyspark  # noqa: F401
        except ImportError:
            raise ParameterError("engine spark needs an extra and Java; pip install 'sabun[spark]'.") from None
        return cls(None if engine == "spark" else engine)

    def reports(self, task: Counting, pieces: Sequence[Numbered]) -> Iterator[Report]:
        """Counts them wherever Spark likes."""

        def count(batches: Iterable[Any]) -> Iterator[Any]:
            for batch in batches:
                for raw in batch.column("piece").to_pylist():
                    yield _batch(task.counted(pickle.loads(raw)))

        return iter(_collected(self._of(pieces).mapInArrow(count, _REPORT)))

    def grouped(self, task: Shuffle, pieces: Sequence[Piece]) -> Iterator[Report]:
        """Brings rows together by one shuffle of Spark's, and counts them there."""
        import pyarrow as pa

        def part(batches: Iterable[Any]) -> Iterator[Any]:
            for batch in batches:
                for raw in batch.column("piece").to_pylist():
                    for found in task.parted(pickle.loads(raw)):
                        yield pa.RecordBatch.from_pydict(
                            {"bucket": pa.array([found.bucket], pa.int32()), "part": [pickle.dumps(found)]}
                        )

        def join(table: Any) -> Any:
            parts = [pickle.loads(raw) for raw in table.column("part").to_pylist()]
            return pa.Table.from_batches([_batch(task.joined(parts[0].bucket, parts))])

        parted = self._of(pieces).mapInArrow(part, "bucket int, part binary")
        return iter(_collected(parted.groupBy("bucket").applyInArrow(join, _REPORT)))

    def _of(self, pieces: Sequence[Numbered]) -> Any:
        """One piece a partition."""
        rows = [(pickle.dumps(piece),) for piece in pieces]
        with suppress(*_failures()):
            return self._session().createDataFrame(rows, "piece binary").repartition(len(rows))
        where = f" at {self.session.partition(';')[0]}" if isinstance(self.session, str) else ""
        raise DataError(f"a Spark session must start or answer{where}; none does. Nothing was charged. Spark needs Java.")

    def dealt(self, task: Dealing, pieces: Sequence[Piece]) -> Iterator[Report]:
        """Deals them and counts the hands wherever Spark likes."""

        def give(batches: Iterable[Any]) -> Iterator[Any]:
            for batch in batches:
                for raw in batch.column("piece").to_pylist():
                    piece = pickle.loads(raw)
                    yield from _packets(task, piece.number, task.packets(piece))

        return iter(_collected(_hands(task, self._of(pieces).mapInArrow(give, _PACKET))))

    def frame(self, frame: Any, progress: Callable[[int, int], None] | None) -> SparkFrame:
        """A Spark DataFrame whose partitions, after one shuffle, are the pieces."""
        return SparkFrame(frame=frame, progress=progress)

    def _session(self) -> Any:
        from pyspark.sql import SparkSession

        if self.session is not None and not isinstance(self.session, str):
            return self.session
        builder: Any = SparkSession.builder
        if not isinstance(self.session, str) or not self.session.startswith("sc://"):
            return (builder if self.session is None else builder.master(self.session)).getOrCreate()
        try:
            importlib.import_module("grpc")  # without it pyspark may end the process instead of raising
            return builder.remote(self.session).getOrCreate()
        except ImportError:
            pass
        raise ParameterError("engine sc://host:port needs Spark Connect; pip install 'pyspark[connect]'.")


@final
@dataclass(frozen=True, kw_only=True)
class SparkFrame(Elsewhere):
    """A Spark DataFrame, counted partition by partition where it lies."""

    frame: Any = field(repr=False)
    progress: Callable[[int, int], None] | None = field(default=None, repr=False)

    def counted(self, statistic: Statistic[State]) -> State:
        """The state of all partitions, each counted once.

        Raises:
            DataError: As `sabun.engine.engines.gathered`.
        """
        task = Task.of(statistic, f"spark frame of {_PARTITIONS} partitions")

        def count(batches: Iterable[Any]) -> Iterator[Any]:
            yield _batch(task.counted_rows(*_partition(batches)))

        reports = _collected(self.frame.repartition(_PARTITIONS).mapInArrow(count, _REPORT))
        if not reports and _no_rows(self.frame):
            reports = [task.counted_rows(number, chunks([])) for number in range(_PARTITIONS)]
        return gathered(reports, statistic, plan=task.plan, count=_PARTITIONS, step=self.progress)

    @property
    def parts(self) -> int:
        """How many partitions there are."""
        return _PARTITIONS

    def dealt(self, deal: Deal, statistic: Statistic[State]) -> State:
        """The state of all hands, each counted once.

        Raises:
            DataError: As `sabun.engine.engines.gathered`.
        """
        plan = f"spark frame of {_PARTITIONS} partitions"
        task = Dealing.of(deal, statistic, plan=plan, pieces=_PARTITIONS)

        def give(batches: Iterable[Any]) -> Iterator[Any]:
            number, rows = _partition(batches)
            yield from _packets(task, number, task.packets(rows))

        reports = _collected(_hands(task, self.frame.repartition(_PARTITIONS).mapInArrow(give, _PACKET)))
        if not reports and _no_rows(self.frame):
            packets = task.packets(chunks([]))
            reports = [task.counted_hand(hand, [packets[task.share(hand)]] * _PARTITIONS) for hand in range(task.hands)]
        return gathered(reports, statistic, plan=task.plan, count=task.hands, step=self.progress)


def _no_rows(frame: Any) -> bool:
    """Whether Spark says that a frame has no rows; it then runs nothing, and silence alone is not taken for that."""
    with suppress(*_failures()):
        return bool(frame.isEmpty())
    return False


def _partition(batches: Iterable[Any]) -> tuple[int, Any]:
    """The number of the partition that is worked on, with its rows."""
    import pyarrow as pa
    from pyspark import TaskContext

    held = list(batches)
    context = TaskContext.get()
    assert context is not None
    # An empty partition reports too: silence must not be taken for "no rows".
    return context.partitionId(), pa.Table.from_batches(held) if held else chunks([])


def _packets(task: Dealing, piece: int, packets: Sequence[bytes]) -> Iterator[Any]:
    """One row for each hand."""
    import pyarrow as pa

    for hand in range(task.hands):
        cells = [
            pa.array([hand], pa.int32()),
            pa.array([piece], pa.int32()),
            pa.array([packets[task.share(hand)]], pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(cells, names=["hand", "piece", "packet"])


def _hands(task: Dealing, dealt: Any) -> Any:
    """The hands' reports, from a frame of packets, after Spark has brought each hand's packets together."""

    def count(packets: Any) -> Any:
        import pyarrow as pa

        number = packets.column("hand")[0].as_py()
        pieces, contents = packets.column("piece").to_pylist(), packets.column("packet").to_pylist()
        return pa.Table.from_batches([_batch(task.counted_numbered(number, pieces, contents))])

    # As many partitions as hands: Spark's usual number has nothing to do with ours.
    return dealt.repartition(task.hands, "hand").groupBy("hand").applyInArrow(count, _REPORT)


def _batch(report: Report) -> Any:
    import pyarrow as pa

    types = [pa.string(), pa.int32(), pa.string(), pa.binary()]
    columns = [pa.array([value], kind) for value, kind in zip(report, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=list(Report._fields))


def _failures() -> tuple[type[Exception], ...]:
    """What Spark raises when it cannot be reached or does not start."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    grpc = sys.modules.get("grpc")  # Spark Connect has loaded it, where it is used
    return PySparkException, Py4JError, OSError, *(() if grpc is None else (grpc.RpcError,))


def _collected(frame: Any) -> list[Report]:
    """The reports of all executors; what Spark says of a failure is not passed on, for it may quote a cell."""
    from pyspark.errors import PySparkException

    words = ""
    try:
        return [Report(row.plan, row.number, row.probe, bytes(row.state)) for row in frame.collect()]
    except PySparkException as error:
        words = str(error)
    except _failures():  # an executor is lost
        pass
    ours = re.search(r"sabun\.errors\.DataError: (.+)", words)
    if ours:
        raise DataError(ours.group(1).strip())
    raise DataError("every piece must be counted; Spark failed or lost an executor too often. Nothing was charged.")
