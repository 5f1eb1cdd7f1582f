"""Pieces counted by the executors of a Spark session, classic or Connect, and frames that lie there already.

Only the DataFrame API is used, for Spark Connect has no other.
"""

from __future__ import annotations

import importlib
import pickle
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, final

from sabun.engine.counting import Counting, Numbered, Report, Task
from sabun.engine.engines import Step, address_of, gathered
from sabun.engine.pieces import Piece
from sabun.engine.shuffle import Parted, Shuffle
from sabun.engine.statistic import Elsewhere, Grouped, Statistic
from sabun.errors import DataError, ParameterError
from sabun.records import chunks

__all__ = ["Spark", "SparkFrame"]

State = TypeVar("State")

_REPORT = "plan string, number int, probe string, state binary"
_PARTED = "bucket int, part binary"
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

        def part(batches: Iterable[Any]) -> Iterator[Any]:
            for batch in batches:
                for raw in batch.column("piece").to_pylist():
                    yield from _parted(task, task.parted(pickle.loads(raw)))

        return iter(_collected(_met(task, self._of(pieces).mapInArrow(part, _PARTED))))

    def _of(self, pieces: Sequence[Numbered]) -> Any:
        """One piece a partition."""
        rows = [(pickle.dumps(piece),) for piece in pieces]
        with suppress(*_failures()):
            return self._session().createDataFrame(rows, "piece binary").repartition(len(rows))
        where = f" at {self.session.partition(';')[0]}" if isinstance(self.session, str) else ""
        raise DataError(f"a Spark session must start or answer{where}; none does. Nothing was charged. Spark needs Java.")

    def frame(self, frame: Any, progress: Step | None) -> SparkFrame:
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
    progress: Step | None = field(default=None, repr=False)

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

    def grouped(self, grouped: Grouped[State]) -> State:
        """The state of rows that must meet, wherever they lie.

        Raises:
            DataError: As `sabun.engine.engines.gathered`; or the order of rows matters, and a frame has none.
        """
        task = Shuffle.of_frame(grouped, plan=f"spark frame of {_PARTITIONS} partitions", pieces=_PARTITIONS)

        def part(batches: Iterable[Any]) -> Iterator[Any]:
            yield from _parted(task, task.parted_rows(*_partition(batches)))

        reports = _collected(_met(task, self.frame.repartition(_PARTITIONS).mapInArrow(part, _PARTED)))
        if not reports and _no_rows(self.frame):
            reports = [task.report(bucket, ()) for bucket in range(task.buckets)]
        return gathered(reports, grouped.statistic, plan=task.plan, count=task.buckets, step=self.progress)


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


def _parted(task: Shuffle, parts: Sequence[Parted]) -> Iterator[Any]:
    """One row for each bucket."""
    import pyarrow as pa

    for bucket in range(task.buckets):
        cells = [pa.array([bucket], pa.int32()), pa.array([pickle.dumps(parts[task.share(bucket)])], pa.binary())]
        yield pa.RecordBatch.from_arrays(cells, names=["bucket", "part"])


def _met(task: Shuffle, parted: Any) -> Any:
    """The buckets' reports, after Spark has brought together what each of them is counted from."""

    def join(table: Any) -> Any:
        import pyarrow as pa

        parts = [pickle.loads(raw) for raw in table.column("part").to_pylist()]
        return pa.Table.from_batches([_batch(task.joined(table.column("bucket")[0].as_py(), parts))])

    # As many partitions as buckets: Spark's usual number has nothing to do with ours.
    return parted.repartition(task.buckets, "bucket").groupBy("bucket").applyInArrow(join, _REPORT)


def _batch(report: Report) -> Any:
    import pyarrow as pa

    types = [pa.string(), pa.int32(), pa.string(), pa.binary()]
    columns = [pa.array([value], kind) for value, kind in zip(report, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=list(Report._fields))


def _failures() -> tuple[type[Exception], ...]:
    """What Spark raises when it cannot be reached or does not start."""
    from pyspark.errors import PySparkException

    # Loaded where they are used: the one by classic sessions, which a client of Spark Connect alone may lack, the other by it.
    gateway, grpc = sys.modules.get("py4j.protocol"), sys.modules.get("grpc")
    others = *(() if gateway is None else (gateway.Py4JError,)), *(() if grpc is None else (grpc.RpcError,))
    return PySparkException, OSError, *others


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
