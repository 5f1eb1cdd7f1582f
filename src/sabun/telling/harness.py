"""How a run is timed and written down: the same for papers that are run again and for benchmarks."""

from __future__ import annotations

import datetime
import gc
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

from sabun.release.files import write_whole
from sabun.release.provenance import installed
from sabun.telling.language import said
from sabun.telling.words import number

__all__ = ["Run", "least_seconds", "machine", "timed", "write_record"]

_Result = TypeVar("_Result")


def timed(job: Callable[[], _Result], *, clock: Callable[[], float] = time.perf_counter) -> tuple[_Result, float]:
    """What a job returns, with the seconds it took."""
    start = clock()
    result = job()
    return result, clock() - start


def least_seconds(job: Callable[[], object], *, clock: Callable[[], float], repeat: int = 3) -> float:
    """The least time of a few runs; the garbage of one is not charged to the next."""
    best = float("inf")
    for _ in range(repeat):
        gc.collect()
        best = min(best, timed(job, clock=clock)[1])
    return best


def machine() -> dict[str, str]:
    """Where and when a run was made: the kind of computer, without its name."""
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "processor": _processor(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def write_record(file: Path, record: Mapping[str, Any]) -> None:
    """Writes a run down as JSON, over that of an earlier run; complete or not at all.

    Raises:
        DataError: It cannot be written.
    """
    write_whole(file, (json.dumps(record, indent=1) + "\n").encode("ascii"), overwrite=True)


@final
@dataclass(frozen=True, kw_only=True)
class Run:
    """When, how long and on what a paper was run.

    Args:
        time: UTC, as in a release.
        seconds: How long it took.
        quick: Whether it was the smaller version.
    """

    time: str
    seconds: float
    quick: bool

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Rows for a table."""
        software = ", ".join(f"{name} {version}" for name, version in installed().items())
        version = said("quick (fewer trials, smaller tables)") if self.quick else said("full")
        when = self.time.replace("T", " ").replace("Z", " UTC")
        place = machine()
        return (
            (said("run"), said("{when}, {seconds} seconds", when=when, seconds=number(round(self.seconds, 1)))),
            (said("version"), version),
            (said("software"), software),
            (said("machine"), ", ".join(filter(None, (place["machine"], place["processor"])))),
        )
