"""Checks plans as one checks a weather forecast: the realised error lies between a third and three times what was foretold.

    python -m benchmarks.forecasts [--quick] [--held-out] [--json docs/results/forecasts.json] [ROOM ...]

A room is checked by a module `forecasts_ROOM.py` here. It has `cases(quick)`, a grid that was looked at while the forecasts
were made, and `held_out(quick)`, written afterwards: no forecast was changed once it had been run. Where a plan has an
optimistic and a pessimistic forecast, the error must lie between a third of the one and three times the other. Fails when fewer
than nine in ten cases of a grid do. With --json, what the file has about other rooms, and about the other grid, stays.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking import Forecast, Planned, rooms
from sabun.telling.harness import machine, write_record

__all__ = ["GRIDS", "LEAST", "Case", "checked", "in_unit", "other_tables", "real_tables", "share"]

LEAST = 0.9
GRIDS = {"looked at": "cases", "held out": "held_out"}
"""What a room's module calls each grid."""
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
        step: The smallest error that is told from none: 1 where what is released is a whole number. Half of it is granted both
            ways.
    """

    room: str
    name: str
    real: bool
    low: float
    high: float
    realised: float
    step: float = 0.0

    @classmethod
    def of(
        cls, room: str, name: str, plan: object, errors: Sequence[float], *, real: bool, step: float = 0.0, about: str = ""
    ) -> Case:
        """What a plan foretold (of quantities with those words in their name) beside the errors of some runs."""
        if not isinstance(plan, Planned):
            raise TypeError(f"a plan of {room} must be Planned; got {type(plan).__name__}.")
        found: tuple[Forecast, ...] = plan.forecasts
        middles = sorted(one.middle for one in found if about in one.quantity)
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
    yield from ((name, in_unit(table)) for name, table in found.items())


def other_tables(*, most: int = 3000) -> Iterator[tuple[str, Floats]]:
    """Real tables for what is held out: pixels of two photographs, and other rows or columns of three that are looked at."""
    from sklearn import datasets as bundled

    from sabun import datasets

    rng = np.random.default_rng(11)
    adult = datasets.load_adult().data
    women = adult[adult["sex"] == "Female"][["age", "education-num", "hours-per-week"]].to_numpy(dtype=float)
    found: dict[str, Any] = {}
    for name in ("china", "flower"):
        pixels = bundled.load_sample_image(f"{name}.jpg").reshape(-1, 3).astype(float)
        found[f"{name}, pixels"] = pixels[rng.permutation(len(pixels))[:most]]
    found["adult, women"] = women[rng.permutation(len(women))[:most]]
    found["wdbc, worst"] = bundled.load_breast_cancer().data[:, 20:]
    found["wine, five columns"] = bundled.load_wine().data[:, 8:]
    yield from ((name, in_unit(table)) for name, table in found.items())


def in_unit(table: Floats) -> Floats:
    """A table with each column from 0 to 1; columns that do not vary are left out."""
    low, high = table.min(axis=0), table.max(axis=0)
    varies = high > low
    found: Floats = (table[:, varies] - low[varies]) / (high - low)[varies]
    return found


def checked(room: str, *, quick: bool, grid: str = "looked at") -> list[Case]:
    """Every case of a room's grid."""
    return list(_cases(room, grid, quick=quick))


def _cases(room: str, grid: str, *, quick: bool) -> Iterator[Case]:
    cases: Callable[[bool], Iterator[Case]] = getattr(importlib.import_module(f"benchmarks.forecasts_{room}"), GRIDS[grid])
    return cases(quick)


def share(cases: Sequence[Case]) -> float:
    """How many of some cases hold."""
    return sum(case.holds for case in cases) / len(cases)


def known() -> list[str]:
    """The rooms whose forecasts are checked."""
    return [room.name for room in rooms() if (Path(__file__).parent / f"forecasts_{room.name}.py").is_file()]


def _record(cases: Sequence[Case]) -> dict[str, Any]:
    parts = {"all": cases, "real tables": [case for case in cases if case.real]}
    counted = {name: [sum(case.holds for case in part), len(part)] for name, part in parts.items()}
    return {"machine": machine(), "held": counted, "cases": [asdict(case) | {"holds": case.holds} for case in cases]}


def _kept(file: Path) -> dict[str, Any]:
    """What an earlier run wrote, by room and grid."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["rooms"] if file.is_file() else {}
    return found


def _run(room: str, grid: str, *, quick: bool) -> list[Case]:
    found = []
    for case in _cases(room, grid, quick=quick):
        mark = "  " if case.holds else "✗ "
        foretold = f"{case.low:.3g}" + ("" if case.low == case.high else f" to {case.high:.3g}")
        print(f"{mark}{room:<10} {case.name:<64} foretold {foretold}, came {case.realised:.3g}", flush=True)
        found.append(case)
    print(f"{room}, {grid}: {sum(case.holds for case in found)} of {len(found)}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Is the error about what the plan foretold?")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"one or more of: {', '.join(known())}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer cases")
    parser.add_argument("--held-out", action="store_true", help="the grid that nobody looked at while the forecasts were made")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every case to this file")
    options = parser.parse_args()
    for room in options.rooms:
        if room not in known():
            parser.error(f"ROOM must be one of {', '.join(known())}; got {room!r}.")
    grid, shares = "held out" if options.held_out else "looked at", []
    for room in options.rooms or known():
        cases = _run(room, grid, quick=options.quick)
        shares.append(share(cases))
        if options.json:
            kept = _kept(options.json)
            kept.setdefault(room, {})[grid] = {"quick": options.quick} | _record(cases)
            write_record(options.json, {"rooms": kept})
    return int(any(part < LEAST for part in shares))


if __name__ == "__main__":
    sys.exit(main())
