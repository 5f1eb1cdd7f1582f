"""The exact law of whole draws on tiny tables: no neighbour makes an outcome more than e**epsilon times as likely."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.summaries import Quantiles, quantiles
from sabun.summaries.quantiles import Rank

SCHEMA = Schema(columns=[Column.number("x", bounds=(0, 4)), Column.category("g", ["a", "b"])])
MARKS = 5


def logs(cells: np.ndarray, rank: Rank) -> list[np.ndarray]:
    """Log probabilities of each mark, for each draw about one group."""
    upto = np.cumsum(cells)
    found = []
    for off, rate in ((0, rank.rate), (-rank.off, rank.end_rate), (rank.off, rank.end_rate)):
        if rate is None:
            continue
        costs = rank.costs(upto - cells, upto, off=off) / rank.share.denominator
        weights = -float(rate) * costs
        found.append(weights - np.log(np.exp(weights).sum()))
    return found


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("share", ["1/2", "1/10"])
@pytest.mark.parametrize("bar", [0, 0.5])
def test_no_neighbour_makes_a_mark_too_likely(relation: str, groups: int, share: str, bar: float) -> None:
    asked = Quantiles(
        column="x",
        shares=[share],
        epsilon=2,
        error_bar=bar,
        resolution=1,
        schema=SCHEMA,
        by="g" if groups > 1 else None,
        where={"x": (0, None)},
        relation=relation,
    )
    recipe = asked._settled()
    ruler, [rank] = recipe.ruler, recipe.ranks
    assert ruler.count == MARKS
    rank = Rank(share=rank.share, rate=rank.rate, end_rate=rank.end_rate, off=1)  # so that the ends aim inside
    rows = list(itertools.product(range(-1, groups), range(MARKS)))
    tables = list(itertools.combinations_with_replacement(rows, 2))

    def law(table: tuple[Any, ...]) -> list[list[np.ndarray]]:
        cells = np.array([[sum(row == (group, mark) for row in table) for mark in range(MARKS)] for group in range(groups)])
        return [logs(line, rank) for line in cells]

    laws = {table: law(table) for table in tables}
    worst = 0.0
    for table in tables:
        rest = table[1:]
        for other in [tuple(sorted((row, *rest))) for row in rows] if relation == "replace-one" else [rest]:
            there = laws.get(other) or law(other)
            loss = sum(
                float(np.abs(one - two).max())
                for a, b in zip(laws[table], there, strict=True)
                for one, two in zip(a, b, strict=True)
            )
            worst = max(worst, loss)
    assert worst <= 2 + 1e-9
    assert worst > 0.5


def test_shares_divide_the_budget() -> None:
    one = Quantiles(column="x", shares=["1/2"], epsilon=3, schema=SCHEMA, resolution=1)._settled().ranks
    three = Quantiles(column="x", shares=["1/4", "1/2", "3/4"], epsilon=9, schema=SCHEMA, resolution=1)._settled().ranks
    assert three[1] == one[0]
    assert one[0].rate + 2 * one[0].end_rate == Fraction(3, 2)  # type: ignore[operator]  # 2 rate is the loss


def test_an_end_lies_outside_whenever_its_draw_is_no_farther_off_than_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst draws that the tail bound admits: every exact quantile is still inside."""
    rng = np.random.default_rng(0)
    asked = Quantiles(column="x", shares=["1/3"], epsilon=40, resolution=0.125, schema=SCHEMA)
    rank = asked._settled().ranks[0]
    limit = (rank.off - 1) * rank.share.denominator
    for _ in range(200):
        cells = rng.integers(0, 3, 33) * rng.integers(0, 2, 33) * rng.integers(1, 40)
        n, upto = int(cells.sum()), np.cumsum(cells)
        exact = [v for v in range(33) if upto[v] - cells[v] <= n / 3 <= upto[v]]
        allowed: list[list[int]] = []

        def worst(costs: Any, *, rate: Any, coin: Any, allowed: list[list[int]] = allowed) -> int:
            del rate, coin
            good = [int(i) for i in np.flatnonzero(np.asarray(costs) <= limit)]
            allowed.append(good)
            return good[-1] if len(allowed) == 2 else good[0]  # the middle, the lower end, the upper end

        monkeypatch.setattr(quantiles, "exponential_choice", worst)
        _, low, high = rank.draw(cells, seeded_coin(1))
        assert low <= exact[0]
        assert exact[-1] <= high


def test_an_empty_group_and_a_hopeless_budget_say_nothing() -> None:
    empty = Quantiles(column="x", epsilon=1, schema=SCHEMA, by="g", relation="add-remove", random_state=1)
    empty.fit(np.empty((0, 2), dtype=object))
    assert empty.interval_["a"].count((0.0, 4.0)) + empty.interval_["b"].count((0.0, 4.0)) >= 4  # each with 0.95 or more
    tiny = Quantiles(column="x", epsilon="1e-30", schema=SCHEMA, random_state=1).fit([[1, "a"], [2, "b"]])
    assert tiny.interval_ == ((0.0, 4.0),) * 3


def test_quantiles_come_in_order_inside_their_intervals() -> None:
    table = [[value, "a"] for value in np.linspace(0, 4, 200)]
    for seed in range(8):
        model = Quantiles(
            column="x", shares=[0.1, 0.2, 0.5, 0.9], epsilon=2, resolution=0.01, schema=SCHEMA, random_state=seed
        ).fit(table)
        assert list(model.quantiles_) == sorted(model.quantiles_)
        assert all(low <= found <= high for found, (low, high) in zip(model.quantiles_, model.interval_, strict=True))


def test_without_an_error_bar_there_is_no_interval() -> None:
    model = Quantiles(column="x", epsilon=2, error_bar=0, schema=SCHEMA, random_state=1).fit([[1, "a"]] * 2000)
    assert model.interval_ == (None, None, None)
    assert model.quantiles_ == pytest.approx((1, 1, 1), abs=0.1)


@pytest.mark.parametrize("shares", [[], [0], [1], [0.5, 0.5], [0.6, 0.4], "0.5", None, [math.nan], ["1/7000000"]])
def test_bad_shares_are_refused(shares: object) -> None:
    with pytest.raises(ParameterError, match="shares must be"):
        Quantiles(column="x", shares=shares, epsilon=1, schema=SCHEMA)  # type: ignore[arg-type]


@pytest.mark.parametrize("resolution", [0, -1, 5, math.inf, math.nan, "1", Fraction(1, 10**400), 10**400])
def test_a_bad_resolution_is_refused(resolution: Any) -> None:
    with pytest.raises(ParameterError, match="resolution must be"):
        Quantiles(column="x", resolution=resolution, epsilon=1, schema=SCHEMA)
