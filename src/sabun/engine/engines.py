"""Who counts the pieces: this process, several, a Dask cluster, a Spark session.

An engine may run a piece twice, late, in any order or not at all: nothing here trusts it. `gathered` takes each piece once and
misses none, or refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, final

from sabun import checks
from sabun.engine.counting import Counting, Numbered, Report
from sabun.engine.statistic import Statistic, none_missing, probe, twice_counted
from sabun.errors import DataError, ParameterError

__all__ = ["NOT_STARTED", "Engine", "Serial", "Step", "address_of", "each_once", "engine_named", "gathered"]

State = TypeVar("State")
Step = Callable[[int, int], None]
"""Called with how much is done, and of how much."""

_RULE = "serial, processes:N, dask, dask://host:port, spark or spark://host:port (sc://host:port for Spark Connect)"


_HOST = r"(?:\[[0-9a-fA-F:.]+\]|[^\s/@?#;,:\[\]]+)"
_PORT = r":([1-9][0-9]{0,4})"
_ADDRESSES = {"dask": _HOST + _PORT, "spark": f"{_HOST}{_PORT}(?:,{_HOST}{_PORT})*", "sc": f"{_HOST}(?:{_PORT})?(?:/.*)?"}
"""What stands after ``dask://``; Spark takes several masters, Spark Connect settings at the end."""

NOT_STARTED = f"the processes of an engine must start; none did. Nothing was charged. {checks.MAIN}"


class Engine(Protocol):
    """Something that counts pieces."""

    def reports(self, task: Counting, pieces: Sequence[Numbered]) -> Iterator[Report]:
        """The report of each piece, in any order, as they come.

        Raises:
            DataError: A piece could not be counted.
        """
        ...


@final
@dataclass(frozen=True)
class Serial:
    """One piece after the other, in this process."""

    def reports(self, task: Counting, pieces: Sequence[Numbered]) -> Iterator[Report]:
        """Counts them in order."""
        return (task.counted(piece) for piece in pieces)


def gathered(
    reports: Iterable[Report],
    statistic: Statistic[State],
    *,
    plan: str,
    count: int,
    step: Step | None = None,
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
    state = statistic.zero()
    for report in each_once(reports, plan=plan, count=count, own=probe(statistic), step=step):
        state = statistic.merge(state, statistic.unpack(report.state))
    return state


def each_once(reports: Iterable[Report], *, plan: str, count: int, own: str, step: Step | None = None) -> Iterator[Report]:
    """The reports as they come, one of each piece, and all of them, or an error; see `gathered`."""
    seen = 0
    for done, report in enumerate(reports, 1):
        if report.plan != plan or not 0 <= report.number < count:
            raise DataError("every piece must belong to this plan; one came that does not. Nothing was charged.")
        if report.probe != own:
            raise DataError(
                f"every machine must round as this one does; the one that counted piece {report.number} does not. Nothing was "
                "charged. Use the same versions of Python, numpy and Sabun on all machines."
            )
        if seen >> report.number & 1:
            raise twice_counted(report.number)
        seen |= 1 << report.number
        yield report
        if step is not None:
            step(done, count)
    none_missing(seen, count)


def address_of(engine: str) -> str:
    """The host and port in an engine's name, of which only the shape is looked at: nothing is started.

    Raises:
        ParameterError: It has another shape.
    """
    scheme, _, address = engine.partition("://")
    found = re.fullmatch(_ADDRESSES.get(scheme, "(?!)"), address)
    fits = found is not None and all(int(port) < 1 << 16 for port in found.groups() if port)
    checks.require(fits, _RULE, engine=engine)
    return address


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
        from sabun.engine.process_engine import Processes

        return Processes(int(count))
    raise ParameterError(f"engine must be {_RULE}; got {engine!r}.")
