"""A caller may let numpy raise on every rounding: no private cell may then decide whether a release raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.registry import CASES, Entry
from sabun.asking.evidence import ROWS
from sabun.density import DensityRatio
from sabun.learning import PrivateClassifier
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge
from sabun.release import publish

TINY = (5e-324, 1e-310, 1e-307, 1e-200)
SCHEMA = Schema(columns=(Column.number("a", lower=0, upper=100), Column.number("b", lower=0, upper=1e300, log1p=True)))
BOUNDS = [(0.0, 100.0), (0.0, 100.0)]
PUBLIC = np.random.default_rng(0).uniform(0, 100, (50, 2))


def table(cell: float) -> Any:
    rows = np.random.default_rng(1).uniform(0, 100, (40, 2))
    rows[0] = cell
    rows[1] = -cell, 100.0
    return rows


def labels(rows: Any) -> Any:
    return np.where(rows[:, 0] > 50, "yes", "no")


ROOMS: dict[str, Callable[[Any], Any]] = {
    "count": lambda rows: OutlierCount(k=2, radius=1, epsilon=1).fit(rows),
    "count, schema": lambda rows: OutlierCount(k=2, radius=0.1, epsilon=1, schema=SCHEMA).fit(rows),
    "count, gaussian": lambda rows: OutlierCount(k=2, radius=1e-150, epsilon=1, delta=1e-6, mechanism="gaussian").fit(rows),
    "count, long double": lambda rows: OutlierCount(k=2, radius=1, epsilon=1).fit(
        rows.astype(np.longdouble) * np.longdouble(1e-30)
    ),
    "count, list": lambda rows: OutlierCount(k=2, radius=1, epsilon=1).fit(rows.tolist()),
    "regions": lambda rows: RegionCount(regions={"l": {"x0": (None, 1)}, "r": {"x0": (1, None)}}, radius=1, epsilon=1).fit(
        rows
    ),
    "subspace": lambda rows: SubspaceChoice(subspaces={"p": [0], "q": [1]}, radius=1, epsilon=1).fit(rows),
    "density": lambda rows: DensityRatio(epsilon=1, schema=SCHEMA, n_centers=5).fit(private=rows, public=PUBLIC),
    "density, no schema": lambda rows: DensityRatio(epsilon=1, n_centers=5).fit(private=rows, public=PUBLIC),
    "density, ulsif": lambda rows: DensityRatio(epsilon=1, method="ulsif-b", n_centers=5).fit(private=rows, public=PUBLIC),
    "density, basis": lambda rows: DensityRatio(
        epsilon=1, method="ulsif-parametric", basis=lambda row: [row[0] * 1e30, 1.0], basis_bounds=(-1e90, 1e90)
    ).fit(private=rows, public=PUBLIC),
    "density, logistic": lambda rows: DensityRatio(epsilon=1, method="ji-elkan").fit(private=rows, public=PUBLIC),
    "regression": lambda rows: PrivateRidge(epsilon=1, delta=1e-6, x_bounds=BOUNDS, y_bounds=(0.0, 100.0), coef_bound=2.0).fit(
        rows, rows[:, 1]
    ),
    "learning": lambda rows: PrivateClassifier(
        epsilon=1, delta=1e-3, hidden=(), epochs=1, classes=["no", "yes"], n_public=40, schema=SCHEMA
    ).fit(rows, labels(rows)),
}


@pytest.mark.parametrize("cell", TINY)
@pytest.mark.parametrize("room", ROOMS)
def test_no_room_raises_because_of_a_tiny_cell(room: str, cell: float) -> None:
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("ignore")  # what is said about public tables and coverage is not the point here
        ROOMS[room](table(cell))


@pytest.mark.parametrize("cell", [TINY[0], TINY[-1]])
@pytest.mark.parametrize("entry", CASES)
def test_no_public_class_raises_because_of_a_tiny_cell(entry: Entry, cell: float) -> None:
    rows = ROWS.copy()
    rows[0], rows[1] = cell, (1 - cell, cell)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("ignore")
        entry.specimen.fit(entry.make(), rows)


def test_a_draw_is_quiet_and_the_callers_wish_comes_back(tmp_path: Path) -> None:
    from sabun.privacy.guarantee import Guarantee
    from sabun.privacy.noise import os_coin

    with np.errstate(all="raise"):
        release = publish(
            kind="test",
            guarantee=Guarantee(epsilon=1),
            parameters={},
            draw=lambda: {"value": float(np.float64(1e-200) * np.float64(1e-200))},
            ledger=None,
            coin=os_coin(),
        )
        assert release["value"] == 0.0
        with pytest.raises(FloatingPointError):
            np.float64(1e-200) * np.float64(1e-200)
