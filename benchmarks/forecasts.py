"""Checks plans as one checks a weather forecast: the realised error lies between a third and three times what was foretold.

    python -m benchmarks.forecasts [--quick] [--json docs/results/forecasts.json] [ROOM ...]

A room is checked by a module `forecasts_ROOM.py` here, which has `cases(quick)`. Where a plan has an optimistic and a
pessimistic forecast, the error must lie between a third of the one and three times the other. Fails when fewer than nine in ten
cases of a room do.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking import Forecast, Planned, rooms
from sabun.telling.harness import machine, write_record

__all__ = ["LEAST", "Case", "checked", "real_tables", "share"]

LEAST = 0.9
_FACTOR = 3.0
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One table with what was foretold of it and what came.

    Args:
        room: Whose plan.
        name: Table, sizes and amounts.
        real: Whether the table is a real one.
        low: The middle of the (optimistic) forecast.
        high: The middle of the (pessimistic) forecast; the same where there is one forecast.
        realised: The median error over runs.
        step: The smallest error but none: 1 where what is released is a whole number. Half of it is granted both ways.
    """

    room: str
    name: str
    real: bool
    low: float
    high: float
    realised: float
    step: float = 0.0

    @classmethod
    def of(cls, room: str, name: str, plan: object, errors: Sequence[float], *, real: bool, step: float = 0.0) -> Case:
        """What a plan foretold beside the errors of some runs."""
        if not isinstance(plan, Planned):
            raise TypeError(f"a plan of {room} must be Planned; got {type(plan).__name__}.")
        found: tuple[Forecast, ...] = plan.forecasts
        middles = sorted(one.middle for one in found)
        ends = {"low": middles[0], "high": middles[-1]}
        return cls(room=room, name=name, real=real, **ends, realised=float(np.median(errors)), step=step)

    @property
    def holds(self) -> bool:
        """Whether the realised error lies between a third and three times the forecast."""
        return self.low / _FACTOR - self.step / 2 <= self.realised <= _FACTOR * self.high + self.step / 2


def real_tables(*, most: int = 3000) -> Iterator[tuple[str, Floats]]:
    """Seven real tables of numbers that come with scikit-learn or with this package, each column from 0 to 1."""
    from sklearn import datasets as bundled

    from sabun import datasets

    adult = datasets.load_adult().data.select_dtypes("number").to_numpy(dtype=float)
    found = {
        "iris": bundled.load_iris().data,
        "wine": bundled.load_wine().data,
        "wdbc": bundled.load_breast_cancer().data,
        "diabetes": bundled.load_diabetes().data,
        "digits": bundled.load_digits().data[:most],
        "ionosphere": datasets.load_ionosphere().data.select_dtypes("number").to_numpy(dtype=float),
        "adult": adult[np.random.default_rng(0).permutation(len(adult))[:most]],
    }
    for name, table in found.items():
        low, high = table.min(axis=0), table.max(axis=0)
        table = table[:, high > low]
        yield name, (table - low[high > low]) / (high - low)[high > low]


def checked(room: str, *, quick: bool) -> list[Case]:
    """Every case of a room."""
    return list(_cases(room, quick=quick))


def _cases(room: str, *, quick: bool) -> Iterator[Case]:
    cases: Callable[[bool], Iterator[Case]] = importlib.import_module(f"benchmarks.forecasts_{room}").cases
    return cases(quick)


def share(cases: Sequence[Case]) -> float:
    """How many of some cases hold."""
    return sum(case.holds for case in cases) / len(cases)


def known() -> list[str]:
    """The rooms whose forecasts are checked."""
    return [room.name for room in rooms() if (Path(__file__).parent / f"forecasts_{room.name}.py").is_file()]


def _record(found: dict[str, list[Case]], *, quick: bool) -> dict[str, Any]:
    told = {}
    for room, cases in found.items():
        parts = {"all": cases, "real tables": [case for case in cases if case.real]}
        counted = {name: [sum(case.holds for case in part), len(part)] for name, part in parts.items()}
        told[room] = {"held": counted, "cases": [asdict(case) | {"holds": case.holds} for case in cases]}
    return {"quick": quick, "machine": machine(), "rooms": told}


def main() -> int:
    parser = argparse.ArgumentParser(description="Is the error about what the plan foretold?")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"one or more of: {', '.join(known())}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer cases")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every case to this file")
    options = parser.parse_args()
    for room in options.rooms:
        if room not in known():
            parser.error(f"ROOM must be one of {', '.join(known())}; got {room!r}.")
    found: dict[str, list[Case]] = {}
    for room in options.rooms or known():
        found[room] = cases = []
        for case in _cases(room, quick=options.quick):
            mark = "  " if case.holds else "✗ "
            foretold = f"{case.low:.3g}" + ("" if case.low == case.high else f" to {case.high:.3g}")
            print(f"{mark}{room:<10} {case.name:<64} foretold {foretold}, came {case.realised:.3g}", flush=True)
            cases.append(case)
        print(f"{room}: {sum(case.holds for case in cases)} of {len(cases)}", flush=True)
    if options.json:
        write_record(options.json, _record(found, quick=options.quick))
    return int(any(share(cases) < LEAST for cases in found.values()))


if __name__ == "__main__":
    sys.exit(main())
