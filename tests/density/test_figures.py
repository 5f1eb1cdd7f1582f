"""Counts, sums, quantiles and groups: what they are about, and how often their intervals hold."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sabun import Column, Schema
from sabun.density import Answer, CoverageWarning, DensityRatio
from sabun.density.figures import figure
from sabun.errors import DataError, ParameterError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.density_coverage import block

SCHEMA = Schema(columns=[Column.number("age", lower=0, upper=120), Column.category("sex", ["F", "M"])])


def people(rng: np.random.Generator, rows: int, mean: float, women: float) -> pd.DataFrame:
    return pd.DataFrame({"age": rng.normal(mean, 10, rows), "sex": rng.choice(["F", "M"], rows, p=[women, 1 - women])})


@pytest.fixture(scope="module")
def private() -> pd.DataFrame:
    return people(np.random.default_rng(1), 4000, 45, 0.5)


@pytest.fixture(scope="module")
def fitted(private: pd.DataFrame) -> DensityRatio:
    public = people(np.random.default_rng(2), 500, 40, 0.3)
    return DensityRatio(epsilon=1, random_state=3, schema=SCHEMA).fit(private=private, public=public)


def alone(ratio: DensityRatio, question: str, **how: object) -> Answer:
    [found] = ratio.ask(question, **how).values()  # type: ignore[arg-type]
    return found


def test_a_count_is_a_share_times_the_public_number_of_rows(fitted: DensityRatio, private: pd.DataFrame) -> None:
    count, share = alone(fitted, "count(age > 50 and sex = F)"), alone(fitted, "share(age > 50 and sex = F)")
    assert count.estimate == pytest.approx(4000 * share.estimate)
    assert count.interval == pytest.approx(tuple(4000 * end for end in share.interval or ()))
    assert (count.target, share.target) == ("whole table", "whole table")
    assert count.interval[0] <= ((private["age"] > 50) & (private["sex"] == "F")).sum() <= count.interval[1]
    everybody = alone(fitted, "count()")
    assert (everybody.estimate, everybody.interval) == (4000, (4000, 4000))


def test_where_in_a_count_is_and(fitted: DensityRatio) -> None:
    """So a count stays one of the whole table, whatever its condition."""
    assert alone(fitted, "count(age > 50 where sex = F)") == alone(fitted, "count(age > 50 and sex = F)")


def test_a_sum_needs_bounds_for_its_interval(fitted: DensityRatio, private: pd.DataFrame) -> None:
    free, bound = alone(fitted, "sum(age)"), alone(fitted, "sum(age)", bounds={"age": (0, 120)})
    assert free.estimate == bound.estimate == pytest.approx(4000 * alone(fitted, "mean(age)").estimate)
    assert free.interval is None
    assert "declare bounds" in str(free.reason)
    assert bound.interval[0] <= private["age"].sum() <= bound.interval[1]
    women = alone(fitted, "sum(age where sex = F)", bounds={"age": (0, 120)})
    assert women.target == "whole table"
    assert women.interval[0] <= private["age"][private["sex"] == "F"].sum() <= women.interval[1]


def test_quantiles_hold_the_private_ones_and_are_public_values(fitted: DensityRatio, private: pd.DataFrame) -> None:
    found = fitted.ask("quantiles(age, 0.25, 0.5, 0.75)")
    assert list(found) == ["quantile(age, 0.25)", "median(age)", "quantile(age, 0.75)"]
    for level, answer in zip((0.25, 0.5, 0.75), found.values(), strict=True):
        low, high = answer.interval
        assert low <= answer.estimate <= high
        assert low <= np.quantile(private["age"], level, method="inverted_cdf") <= high
        assert answer.estimate in set(fitted.to_frame()["age"])
        assert answer.target == "whole table"
    assert alone(fitted, "median(age where sex = F)").target == "covered rows"


def test_an_open_end_of_a_quantile_is_told_or_takes_the_bounds(fitted: DensityRatio) -> None:
    extreme = alone(fitted, "quantile(age, 0.999)")
    assert extreme.interval is None
    assert "declare bounds" in str(extreme.reason)
    assert alone(fitted, "quantile(age, 0.999)", bounds={"age": (0, 120)}).interval[1] == 120


def test_groups_are_the_labels_of_the_public_table(fitted: DensityRatio) -> None:
    found = fitted.ask("count() by sex")
    assert list(found) == ["count(sex = F)", "count(sex = M)"]
    assert sum(answer.estimate for answer in found.values()) == pytest.approx(4000)
    assert fitted.ask("mean(age) by sex")["mean(age where sex = F)"] == alone(fitted, "mean(age where sex = F)")


def test_a_program_asks_with_the_same_names(fitted: DensityRatio) -> None:
    women = fitted.to_frame()["sex"] == "F"
    assert fitted.query(women, kind="count") == alone(fitted, "count(sex = F)")
    assert fitted.query(women, kind="share") == alone(fitted, "share(sex = F)")
    assert fitted.query("age", kind="sum", bounds=(0, 120)) == alone(fitted, "sum(age)", bounds={"age": (0, 120)})
    assert fitted.query("age", kind="median", where=women) == alone(fitted, "median(age where sex = F)")
    assert fitted.query("age", kind="quantile", at=0.9) == alone(fitted, "quantile(age, 0.9)")
    for kind in ("count", "share", "sum", "median"):  # without an interval, the same estimate
        assert fitted.query(women, kind=kind, ci=False) == fitted.query(women, kind=kind).estimate


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"kind": "mode"}, "kind must be one of"),
        ({"kind": "quantile"}, "at must be above 0 and below 1"),
        ({"kind": "quantile", "at": 1.0}, "at must be above 0 and below 1"),
        ({"kind": "count"}, "f must be a condition"),
    ],
)
def test_figures_nobody_knows_are_refused(fitted: DensityRatio, how: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fitted.query("age", **how)  # type: ignore[arg-type]


def test_an_empty_public_cell_matters_only_where_it_counts() -> None:
    rng = np.random.default_rng(4)
    public = people(rng, 300, 40, 0.3).assign(pay=rng.normal(size=300))
    public.loc[public["sex"] == "F", "pay"] = np.nan
    ratio = DensityRatio(epsilon=1, random_state=3, schema=SCHEMA).fit(private=people(rng, 2000, 45, 0.5), public=public)
    assert np.isfinite(alone(ratio, "mean(pay where sex = M)").estimate)
    with pytest.raises(DataError, match="'pay' must be a number in every public row that counts"):
        ratio.ask("mean(pay)")


def test_a_private_number_of_rows_widens_a_count() -> None:
    """Under add-remove the number of rows is noisy too, and the interval of a count has to hold all the same."""
    rng, hits, everybody, runs = np.random.default_rng(6), 0, 0, 24
    public = people(rng, 300, 40, 0.3)
    for run in range(runs):
        private = people(rng, 1000, 45, 0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            ratio = DensityRatio(epsilon=1, relation="add-remove", n_public=900, random_state=run, schema=SCHEMA, n_centers=60)
            ratio.fit(private=private, public=public)
        found, size = alone(ratio, "count(sex = F)"), alone(ratio, "count()")
        assert found.interval is not None
        hits += found.interval[0] <= (private["sex"] == "F").sum() <= found.interval[1]
        everybody += size.interval[0] <= 1000 <= size.interval[1]
    # Seeds are fixed; with a true cover of 95 % fewer than 18 of 24 hits have a chance below one in a thousand.
    assert hits >= stats.binom.ppf(0.001, runs, 0.95)
    assert everybody >= stats.binom.ppf(0.001, runs, 0.95)


def test_quantile_intervals_hold_as_often_as_they_say() -> None:
    """A few cells of `benchmarks.density_coverage`, which has the whole grid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        lines = [line for run in range(5) for line in block(2, run, ["mean", "skew", "selection"], [1000], ["1"])]
    found = [one[0] for line in lines for one in line["quantiles"] if one[0] is not None]
    assert len(found) >= 30
    assert sum(found) >= stats.binom.ppf(0.001, len(found), 0.95)


class Told:
    """Means that are known to lie so far around what the public rows say, and a number of rows; notes the levels asked for."""

    def __init__(self, around: float, rows: tuple[float, float]) -> None:
        self.around, self.rows, self.levels = around, rows, dict[str, float]()

    def answer(self, values: Any, rows: Any, *, confidence: float, bounds: Any, worst: bool) -> Answer:
        del bounds, worst
        self.levels["mean"] = confidence
        middle = float(values[rows].mean())
        return Answer(estimate=middle, interval=(middle - self.around, middle + self.around), confidence=confidence)

    def size(self, confidence: float) -> tuple[float, tuple[float, float]]:
        self.levels["size"] = confidence
        return sum(self.rows) / 2, self.rows


@pytest.mark.parametrize("middle", [-3.0, -0.5, 0.0, 0.5, 3.0])
@pytest.mark.parametrize("rows", [(100.0, 100.0), (80.0, 120.0)])
def test_a_total_holds_every_mean_times_every_number_of_rows(middle: float, rows: tuple[float, float]) -> None:
    """Whatever their signs; and what may go wrong with one and with the other is no more than what may go wrong at all."""
    means = Told(1.0, rows)
    found = figure(means, np.full(9, middle), np.ones(9, dtype=bool), kind="sum", confidence=0.9, bounds=(-9, 9))
    corners = [size * mean for size in rows for mean in (middle - 1, middle + 1)]
    assert found.interval == (min(corners), max(corners))
    assert found.confidence == 0.9
    missed = (1 - means.levels["mean"]) + (1 - means.levels["size"] if rows[0] < rows[1] else 0.0)
    assert missed == pytest.approx(0.1)


@pytest.mark.parametrize("level", [0.31, 0.5, 0.72])
def test_a_quantile_holds_whatever_the_shares_below_its_marks_allow(level: float) -> None:
    """Private rows lie between public ones: from the last mark that is surely too low to the first that is surely enough."""
    marks = np.arange(20.0)
    found = figure(Told(0.12, (1, 1)), marks, np.ones(20, dtype=bool), kind="quantile", at=level, confidence=0.9, bounds=None)
    below = (np.arange(20) + 1) / 20
    assert found.interval == (marks[below + 0.12 < level].max(), marks[below - 0.12 >= level].min())
