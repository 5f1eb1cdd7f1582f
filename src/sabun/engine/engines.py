"""Who counts the pieces: this process, several, a Dask cluster, a Spark session.

An engine may run a piece twice, late, in any order or not at all: nothing here trusts it. `gathered` takes each piece once and
misses none, or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, final

from sabun import checks
from sabun.engine.counting import Report, Task
from sabun.engine.pieces import Piece
from sabun.engine.statistic import Part, Statistic, probe
from sabun.errors import DataError, ParameterError

__all__ = ["Engine", "Processes", "Serial", "engine_named", "gathered"]

State = TypeVar("State")

_RULE = "serial, processes:N, dask, dask://host:port, spark or spark://host:port (sc://host:port for Spark Connect)"


class Engine(Protocol):
    """Something that counts pieces."""

    def reports(self, task: Task, pieces: Sequence[Piece]) -> Iterator[Report]:
        """The report of each piece, in any order, as they come.

        Raises:
            DataError: A piece could not be counted.
        """
        ...


@final
@dataclass(frozen=True)
class Serial:
    """One piece after the other, in this process."""

    def reports(self, task: Task, pieces: Sequence[Piece]) -> Iterator[Report]:
        """Counts them in order."""
        return (task.counted(piece) for piece in pieces)


@final
@dataclass(frozen=True)
class Processes:
    """Several processes on this machine.

    Args:
        count: How many.
        tries: How often a piece is tried when its process dies.
    """

    count: int
    tries: int = 3

    def reports(self, task: Task, pieces: Sequence[Piece]) -> Iterator[Report]:
        """Counts them side by side; a process that dies is replaced."""
        left = {piece.number: piece for piece in pieces}
        for _ in range(self.tries):
            for report in self._round(task, list(left.values())):
                del left[report.number]
                yield report
            if not left:
                return
        raise DataError(
            f"every piece must be counted; piece {min(left)} was not, its process died {self.tries} times. Nothing was charged."
        )

    def _round(self, task: Task, pieces: Sequence[Piece]) -> Iterator[Report]:
        """What can be had until a process dies."""
        import multiprocessing
        from concurrent.futures import Future, ProcessPoolExecutor, as_completed
        from concurrent.futures.process import BrokenProcessPool

        # Started afresh, not forked: a fork would take along the owner's ledger, locks and whatever keys are in memory.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(max_workers=min(self.count, len(pieces)), mp_context=context) as pool:
            waiting: list[Future[Report]] = []
            try:
                waiting += [pool.submit(task.counted, piece) for piece in pieces]
                for done in as_completed(waiting):
                    yield done.result()
            except BrokenProcessPool:
                return
            finally:
                for each in waiting:
                    each.cancel()


def gathered(
    reports: Iterable[Report],
    statistic: Statistic[State],
    *,
    plan: str,
    count: int,
    step: Callable[[int, int], None] | None = None,
) -> State:
    """The state of all pieces of a plan, each counted once by a machine that rounds as this one does.

    Args:
        reports: What the workers hand back, in any order.
        statistic: The recipe.
        plan: The plan's digest.
        count: How many pieces it has.
        step: Called with how many pieces are done and how many there are.

    Raises:
        DataError: A piece is missing, came twice, changed while it was read, or was counted by a machine that rounds
            differently. Nothing was charged: that comes after this.
    """
    own, whole = probe(statistic), Part.empty(statistic, pieces=count)
    for done, report in enumerate(reports, 1):
        if report.plan != plan or not 0 <= report.number < count:
            raise DataError("every piece must belong to this plan; one came that does not. Nothing was charged.")
        if report.probe != own:
            raise DataError(
                f"every machine must round as this one does; the one that counted piece {report.number} does not. Nothing was "
                "charged. Use the same versions of Python, numpy and Sabun on all machines."
            )
        state = statistic.unpack(report.state)
        whole = whole.merged(Part(statistic=statistic, state=state, seen=1 << report.number, pieces=count))
        if step is not None:
            step(done, count)
    return whole.whole()


def engine_named(engine: Any) -> Engine:
    """An engine from its name, a Dask client or a Spark session; an engine is taken as it is.

    Raises:
        ParameterError: There is no such engine, or its extra is not installed.

    Example:
        >>> engine_named("processes:4")
        Processes(count=4, tries=3)
    """
    if hasattr(engine, "reports"):
        found: Engine = engine
        return found
    home = type(engine).__module__.partition(".")[0]
    if home == "distributed" or (isinstance(engine, str) and engine.startswith("dask")):
        from sabun.engine.dask_engine import Dask

        return Dask.of(engine)
    if home == "pyspark" or (isinstance(engine, str) and engine.startswith(("spark", "sc://"))):
        from sabun.engine.spark_engine import Spark

        return Spark.of(engine)
    checks.require(isinstance(engine, str), _RULE, engine=engine)
    name, _, count = engine.partition(":")
    if engine == "serial":
        return Serial()
    if name == "processes" and count.isascii() and count.isdigit() and 1 <= int(count) <= 1024:
        return Processes(int(count))
    raise ParameterError(f"engine must be {_RULE}; got {engine!r}.")
