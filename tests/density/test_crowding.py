"""Columns whose public rows lie close together are named before the charge, and no interval about them is stated."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli.terminal import exit_code
from sabun import Column, Schema
from sabun.datasets import load_adult, load_ionosphere, load_wdbc
from sabun.density import Answer, CrowdedWarning, DensityRatio
from sabun.density.crowding import Crowding
from sabun.density.features import Features

SKEWED = ("x", "z")


def crowded(table: Any, schema: Schema | None = None) -> tuple[str, ...]:
    return Crowding.of(*Features.of(table, schema=schema, columns=None, standardize=True)).columns


def tables(seed: int, *, sigma: float = 1.5) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A log-normal column around 100 that the private rows have lower, beside a normal one."""
    rng = np.random.default_rng(seed)
    private, public = (
        pd.DataFrame({"x": 100 * rng.lognormal(shift * sigma, sigma, rows), "z": rng.normal(size=rows)})
        for shift, rows in ((-0.7, 8000), (0.0, 1000))
    )
    return private, public


@pytest.mark.parametrize(
    ("law", "named"),
    [
        (lambda rng: rng.lognormal(0, 1.5, 1000), True),
        (lambda rng: rng.lognormal(0, 2, 1000), True),
        (lambda rng: rng.lognormal(0, 3, 1000), True),
        (lambda rng: np.round(rng.lognormal(2, 2, 1000)), True),
        (lambda rng: np.where(rng.random(1000) < 0.7, 0, rng.lognormal(0, 2, 1000)), True),
        (lambda rng: rng.lognormal(0, 1, 1000), False),
        (lambda rng: rng.lognormal(0, 0.5, 1000), False),
        (lambda rng: rng.gamma(0.5, 1, 1000), True),
        (lambda rng: rng.normal(size=1000) ** 2, True),
        (lambda rng: np.log1p(100 * rng.gamma(0.5, 1, 1000)), False),
        (lambda rng: rng.exponential(size=1000), False),
        (lambda rng: rng.normal(size=1000), False),
        (lambda rng: rng.random(1000), False),
        (lambda rng: (rng.random(1000) < 0.5) * 1.0, False),
        (lambda rng: (rng.random(1000) < 0.01) * 1.0, False),
        (lambda rng: np.where(rng.random(1000) < 0.7, 0, rng.normal(5, 1, 1000)), False),
        (lambda rng: rng.poisson(0.1, 1000) * 1.0, False),
        (lambda rng: rng.poisson(30, 1000) * 1.0, False),
        (lambda rng: rng.integers(0, 5, 1000) * 1.0, False),
        (lambda rng: rng.choice([1990.0, 2000.0, 2020.0], 1000), False),
        (lambda rng: rng.integers(1, 4, 1000) * 0.1 + rng.integers(0, 2, 1000) * 1e-16, False),
        (lambda rng: np.round(np.clip(rng.normal(45, 15, 1000), 18, 95)), False),
        (lambda rng: np.where(rng.random(1000) < 0.5, 10, 1) * np.round(rng.integers(1, 8, 1000)), False),
        (lambda rng: np.log1p(100 * rng.lognormal(0, 2, 1000)), False),
    ],
)
def test_columns_with_a_long_tail_or_piled_up_at_one_end_are_named_and_others_are_not(law: Any, named: bool) -> None:
    """Nine tables of ten at least: one with a single row far off may look like the other kind."""
    found = [bool(crowded(np.c_[law(rng), rng.normal(size=1000)])) for rng in map(np.random.default_rng, range(10))]
    assert sum(found) >= 9 if named else sum(found) <= 1


def in_groups(rng: np.random.Generator, *, groups: int, within: float, uneven: bool = False) -> np.ndarray:
    """Groups at equal distances, with that part of the whole column's standard deviation each; uneven, the first is half."""
    weights = np.ones(groups) / groups if not uneven else np.r_[0.5, np.full(groups - 1, 0.5 / (groups - 1))]
    middles = np.arange(groups) - weights @ np.arange(groups)
    return rng.choice(middles, 1000, p=weights) + within * np.sqrt(weights @ middles**2) * rng.normal(size=1000)


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize(
    ("groups", "within", "named"),
    [(2, 0.02, True), (2, 0.1, True), (2, 0.3, False), (3, 0.05, True), (3, 0.08, True), (5, 0.04, True), (5, 0.3, False)],
)
def test_columns_of_tight_groups_are_named(groups: int, within: float, named: bool, uneven: bool) -> None:
    for rng in map(np.random.default_rng, range(5)):
        column = in_groups(rng, groups=groups, within=within, uneven=uneven)
        assert bool(crowded(np.c_[column, rng.normal(size=1000)])) is named


@pytest.mark.parametrize("rows", [2, 5, 10, 20, 40])
def test_a_small_public_table_is_not_named_because_two_rows_are_close_by_chance(rows: int) -> None:
    found = [crowded(rng.normal(size=(rows, 2))) for rng in map(np.random.default_rng, range(50))]
    assert sum(map(bool, found)) <= 1


CITIES = {"Naha": 26.2, "Tokyo": 35.7, "Sapporo": 43.1}


def people(rng: np.random.Generator, rows: int, north: float) -> pd.DataFrame:
    """Who live around the middle of their city, so much further north."""
    city, offset = rng.choice(list(CITIES), rows), rng.normal(north, 0.1, rows)
    return pd.DataFrame({"city": city, "offset": offset, "latitude": pd.Series(city).map(CITIES) + offset})


def test_of_groups_the_distance_to_their_middle_has_intervals_that_hold_and_the_column_itself_has_none() -> None:
    city = Column.category("city", list(CITIES))
    given = held = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        private, public = people(rng, 8000, 0.07), people(rng, 1000, 0.0)
        whole = Schema(columns=[city, Column.number("latitude", bounds=(22, 48))])
        with pytest.warns(CrowdedWarning, match=r"'latitude'.*distance to the middle of its group"):
            ratio = DensityRatio(epsilon=1, schema=whole, random_state=seed).fit(private=private, public=public)
        for asked in (
            "share(latitude > 35.7)",
            "mean(latitude where city = Tokyo)",
            "share(latitude > 35.7 where city = Tokyo)",
        ):
            (answer,) = ratio.ask(asked).values()
            assert answer.interval is None
        apart = Schema(columns=[city, Column.number("offset", bounds=(-1, 1))])
        ratio = DensityRatio(epsilon=1, schema=apart, random_state=seed).fit(private=private, public=public)
        for name in CITIES:
            (answer,) = ratio.ask(f"share(offset > 0 where city = {name})").values()
            exact = (private["offset"][private["city"] == name] > 0).mean()
            if answer.interval is not None:
                given, held = given + 1, held + (answer.interval[0] <= exact <= answer.interval[1])
    assert (given, held) == (12, 12)


@pytest.mark.parametrize("load", [load_adult, load_wdbc, load_ionosphere])
def test_no_column_of_the_tables_that_come_with_sabun_is_named(load: Any) -> None:
    found = load()
    assert crowded(found.data[list(found.schema.names)], found.schema) == ()


@pytest.mark.parametrize("log1p", [False, True])
def test_a_column_that_is_declared_on_a_log_scale_has_intervals_and_they_hold(log1p: bool) -> None:
    columns = [Column.number("x", lower=0, upper=1e5, missing=0, log1p=log1p), Column.number("z", lower=-6, upper=6)]
    given = held = 0
    for seed in range(4):
        private, public = tables(seed)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ratio = DensityRatio(epsilon=1, schema=Schema(columns=columns), random_state=seed).fit(
                private=private, public=public
            )
        assert [one.category for one in told] == ([] if log1p else [CrowdedWarning])
        for cut in public["x"].quantile([0.1, 0.25, 0.5]):
            (answer,) = ratio.ask(f"share(x > {cut})").values()
            if answer.interval is not None:
                given, held = given + 1, held + (answer.interval[0] <= (private["x"] > cut).mean() <= answer.interval[1])
    assert (given, held) == ((12, 12) if log1p else (0, 0))


def test_only_questions_that_may_be_about_such_a_column_lose_their_interval() -> None:
    private, public = tables(7)
    public["other"] = np.log(public["x"])
    with pytest.warns(CrowdedWarning, match=r"close together in 'x'.*log1p=True"):
        ratio = DensityRatio(epsilon=1, columns=SKEWED, random_state=0).fit(private=private, public=public)
    for kept in ("mean(z)", "share(z > 1)", "median(z where z < 1)", "count()"):
        assert ratio.ask(kept)[kept].interval is not None, kept
    for lost in ("mean(x)", "share(x > 50)", "median(x)", "mean(z where x > 50)", "share(z > 0 or x > 9)", "mean(other)"):
        (answer,) = ratio.ask(lost).values()
        assert answer.interval is None, lost
        assert str(answer.reason).startswith("many public rows lie close together in 'x'")
    assert isinstance(about := ratio.query("z"), Answer)
    assert about.interval is not None
    for asked in ("x", "other", lambda table: table["z"] > 0):
        assert isinstance(found := ratio.query(asked), Answer)
        assert found.interval is None
    assert any("close together in 'x'" in note for note in ratio.diagnostics_.notes)


def test_columns_of_an_array_are_known_by_their_numbers() -> None:
    private, public = (table.to_numpy() for table in tables(8))
    with pytest.warns(CrowdedWarning):
        ratio = DensityRatio(epsilon=1, random_state=0).fit(private=private, public=public)
    assert isinstance(first := ratio.query(0), Answer)
    assert isinstance(second := ratio.query(1), Answer)
    assert first.interval is None
    assert second.interval is not None


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_command_line_says_so_before_it_charges(
    relation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, table in zip(("private", "public"), tables(9), strict=True):
        table.to_csv(f"{name}.csv", index=False)
    about = ("--public", "public.csv", "--epsilon", "1", "--relation", relation)
    assert exit_code("density", "plan", *about, "--n-records", "8000") == 0
    assert "Many public rows lie close together in 'x'" in capsys.readouterr().out
    assert exit_code("density", "plan", *about, "--n-records", "8000", "--json") == 0
    assert json.loads(capsys.readouterr().out)["crowded"] == ["x"]
    assert exit_code("density", "weights", "--private", "private.csv", *about, "--out", "w.csv") == 0
    told = capsys.readouterr()
    assert told.err.count("Many public rows lie close together in 'x'") == 1
    assert "CrowdedWarning" not in told.err
    assert exit_code("density", "query", "w.csv", "share(x > 50)", "share(z > 0)") == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert "no interval: many public rows lie close together in 'x'" in first
    assert "(95%, whole table:" in second
