"""Plans as forecasts: in order, with what they assume, and right about as often as they say."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sabun.asking import Forecast, Planned, rooms
from sabun.density import DensityRatio
from sabun.errors import InternalError
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice
from sabun.records import Schema
from sabun.summaries import Count, Mean, Quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.forecasts import LEAST, Case, checked, known, share

ROWS = np.random.default_rng(0).normal(size=(300, 2))
SCHEMA = Schema.of_bounds({"x": (0, 1)})


def plans(epsilon: float) -> dict[str, Any]:
    """A plan of every kind for three hundred records."""
    halves = {"low": {"x0": (None, 0)}, "high": {"x0": (0, None)}}
    shape = {"n_records": 300, "dimensions": 2}
    terms: dict[str, Any] = {"radius": 1.0, "epsilon": epsilon}
    return {
        "outliers count": OutlierCount(**terms).plan(**shape),
        "outliers count, no bar": OutlierCount(**terms, error_bar=0).plan(**shape),
        "outliers count, global": OutlierCount(**terms, method="global-laplace").plan(**shape),
        "outliers count, like": OutlierCount(**terms).plan(n_records=300, like=ROWS),
        "outliers regions": RegionCount(regions=halves, **terms).plan(**shape),
        "outliers choose": SubspaceChoice(subspaces={"a": ["x0"], "b": ["x1"]}, **terms).plan(**shape),
        "density": DensityRatio(epsilon=epsilon).plan(public=ROWS, n_records=300),
        "count": Count(epsilon=epsilon, schema=SCHEMA, relation="add-remove").plan(n_records=300),
        "mean": Mean(column="x", epsilon=epsilon, schema=SCHEMA).plan(n_records=300),
        "quantiles": Quantiles(column="x", epsilon=epsilon, schema=SCHEMA, error_bar=0).plan(n_records=300),
    }


def test_a_forecast_of_a_known_law_has_its_quantiles() -> None:
    found = Forecast.of_tail("error", lambda x: math.exp(-x / 5), ("nothing",), top=1e6)
    assert (found.low, found.middle, found.high) == (0.527, 3.47, 11.5)
    assert str(found) == "error: about 3.47, in eight of ten runs from 0.527 to 11.5"
    never = Forecast.of_tail("error", lambda x: 0.0, (), top=1.0)
    assert (never.low, never.high) == (0.0, 0.0)
    cut = Forecast.of_tail("error", lambda x: float(x < 7), (), top=7.0)
    assert (cut.low, cut.middle, cut.high) == (7.0, 7.0, 7.0)
    assert str(cut) == "error: about 7 in eight of ten runs", "a range whose ends read alike is none"
    with pytest.raises(InternalError, match="in order"):
        Forecast(quantity="error", low=2, middle=1, high=3, assumed=())
    written = str(Forecast(quantity="error", low=0.01234, middle=3114.5, high=2e7, assumed=()))
    assert written == "error: about 3,110, in eight of ten runs from 0.0123 to 20,000,000"


def test_every_plan_is_a_forecast_and_only_noise_is_vacuous() -> None:
    for name, plan in plans(5.0).items():
        assert isinstance(plan, Planned), name
        assert not plan.vacuous, name
        told = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
        assert told["vacuous"] is False
        assert [one["middle"] for one in told["forecasts"]] == [one.middle for one in plan.forecasts], name
        assert plan.forecasts[0].middle <= plan.forecasts[-1].middle, name
        if len(plan.forecasts) > 1:  # nobody told what the table is like: what is assumed instead is said
            assert all(one.assumed for one in plan.forecasts), name
    for name, plan in plans(0.002).items():
        assert plan.vacuous, name


def test_more_epsilon_means_less_error_in_every_forecast() -> None:
    little, much = plans(0.5), plans(5.0)
    for name, plan in much.items():
        others = little[name].forecasts
        assert plan.forecasts[-1].middle <= others[-1].middle, name
        if len(plan.forecasts) == len(others):  # a pair may become one where noise no longer reaches the number of outliers
            assert plan.forecasts[0].middle <= others[0].middle, name


def test_a_case_holds_between_a_third_and_three_times_what_was_foretold() -> None:
    def case(realised: float) -> Case:
        return Case(room="r", name="n", real=False, low=3.0, high=6.0, realised=realised)

    assert [case(error).holds for error in (0.9, 1.1, 17.0, 19.0)] == [False, True, True, False]
    assert share([case(1.1), case(19.0)]) == 0.5


def test_whoever_is_checked_is_a_room() -> None:
    assert {"outliers", "density", "summaries"} <= set(known()) <= {room.name for room in rooms()}


@pytest.mark.parametrize("room", known())
def test_forecasts_hold_in_a_small_part_of_the_grid(room: str) -> None:
    """All of it: python -m benchmarks.forecasts. What is drawn is seeded, so this part always gives the same."""
    cases = checked(room, quick=True)
    assert share(cases) >= LEAST, [case for case in cases if not case.holds]
