from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from sabun.asking import Forecast
from sabun.errors import ParameterError
from sabun.outliers import OutlierCount, inspect_outliers, outlier_degrees, smooth_bound, suggest_radius
from sabun.outliers.reference import Reference, Seen
from sabun.outliers.sensitivity import measure
from sabun.privacy.guarantee import Guarantee
from sabun.privacy.noise import seeded_coin
from sabun.release import Release
from sabun.release.provenance import Provenance

TABLE = [[0.0], [0.5], [0.7], [9.0]]


def test_the_owner_sees_exact_facts_with_a_warning() -> None:
    view = inspect_outliers(TABLE, k=2, radius=1)
    assert view.count == 1
    assert view.outliers.tolist() == [3]
    assert view.degrees.tolist() == [2, 2, 2, 0]
    assert view.local_bound == 3
    assert "NOT PRIVATE" in repr(view)
    assert "NOT PRIVATE" in str(view)
    assert "NOT PRIVATE" in view.plot().axes[0].get_title()


def test_the_owners_view_cannot_be_stored_or_released() -> None:
    view = inspect_outliers(TABLE, k=2, radius=1)
    for store in (pickle.dumps, copy.deepcopy):
        with pytest.raises(ParameterError, match="NOT PRIVATE"):
            store(view)
    with pytest.raises(ParameterError):
        Release(
            value={"view": view},
            guarantee=Guarantee(epsilon=1, mechanism="none"),
            provenance=Provenance(kind="x", mechanism="none"),
        )


def test_a_radius_from_a_public_table_gives_about_the_wanted_share() -> None:
    reference = np.random.default_rng(0).normal(size=(2000, 3))
    radius = suggest_radius(reference, k=5, share=0.02)
    assert (outlier_degrees(reference, radius=radius * (1 + 1e-12)) < 5).mean() == pytest.approx(0.02, abs=0.002)


def test_bad_references_are_refused() -> None:
    with pytest.raises(ParameterError, match="share must be above 0"):
        suggest_radius(TABLE, k=1, share=0)
    with pytest.raises(ParameterError, match="more than k rows"):
        suggest_radius(TABLE, k=4)


def test_the_plan_says_what_it_costs_and_when_it_is_useless() -> None:
    good = OutlierCount(radius=1, epsilon=1).plan(n_records=20_000, dimensions=3)
    assert good.useful
    assert 0 < good.kindest_error <= good.kindest_reach
    assert good.kindest_error <= good.worst_error
    poor = OutlierCount(radius=1, epsilon=0.05).plan(n_records=300, dimensions=30)
    assert not poor.useful
    assert "too small to be useful" in str(poor)
    assert poor.to_dict()["epsilon"] == "1/20"
    for mechanism, delta in [("global-laplace", 0), ("global-gaussian", 1e-6), ("gaussian", 1e-6), ("laplace", 1e-6)]:
        assert (
            OutlierCount(radius=1, epsilon=1, delta=delta, mechanism=mechanism).plan(n_records=500, dimensions=2).worst_error
            > 0
        )
    assert OutlierCount(radius=1, epsilon=1, relation="add-remove").plan(n_records=500, dimensions=40).worst_error == 500
    assert OutlierCount(radius=1, epsilon=1).plan(n_records=3, dimensions=2).worst_error == 0


def test_a_plan_says_when_the_interval_would_say_nothing() -> None:
    blind, clear = (
        OutlierCount(k=5, radius=1.0, epsilon=epsilon).plan(n_records=500, dimensions=2) for epsilon in ("0.05", "2")
    )
    assert blind.vacuous
    assert "the interval would cover about everything that is possible" in str(blind)
    assert not clear.vacuous
    assert clear.kindest_reach < clear.kindest_width < 25
    assert f"The interval reaches about {clear.kindest_width} up or down at best, about {clear.worst_width} at worst." in str(
        clear
    )


def test_a_plan_without_an_interval_promises_none() -> None:
    plan = OutlierCount(k=5, radius=1.0, epsilon="0.05", error_bar=0).plan(n_records=500, dimensions=2)
    assert plan.kindest_width is None
    assert plan.vacuous, "half of the records can be missed even at best"
    assert "interval" not in str(plan)
    public = OutlierCount(k=5, radius=1.0, epsilon=1, mechanism="global-laplace").plan(n_records=5000, dimensions=2)
    assert public.kindest_width == public.worst_width == public.kindest_reach
    assert public.swing is None


def test_noise_of_one_size_has_one_error_and_one_interval() -> None:
    plan = OutlierCount(k=5, radius=1.0, epsilon=1, mechanism="global-laplace").plan(n_records=5000, dimensions=2)
    told = str(plan)
    assert f"Median error: {plan.kindest_error}, whatever the table holds." in told
    assert f"The interval reaches about {plan.kindest_width} up or down." in told
    assert "at best" not in told.lower()
    assert "at worst" not in told


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_intervals_of_ordinary_tables_lie_between_the_two_ends_and_swing_as_planned(relation: str) -> None:
    rng = np.random.default_rng(5)
    count = OutlierCount(k=5, radius=0.4, epsilon=2, relation=relation)
    _, amounts = count._checked()
    for points in (rng.standard_t(3, size=(1500, 2)), rng.normal(size=(1500, 3))):
        plan = count.plan(n_records=len(points), dimensions=points.shape[1])
        bound = measure(points, k=5, radius=0.4, beta=amounts.law.beta, cover="degeneracy", relation=relation)[1]
        coin, how = seeded_coin(3), {"tail": amounts.law.tail, "miss": 0.05, "cap": 10**6}
        widths = [amounts.bar.width(amounts.bar.draw(bound, coin=coin), **how) for _ in range(400)]
        low, usual, high = np.quantile(widths, [0.1, 0.5, 0.9])
        assert plan.kindest_width < usual < plan.worst_width
        assert 0.8 * plan.swing < high / usual < 1.25 * plan.swing
        assert 0.8 * plan.swing < usual / low < 1.25 * plan.swing
    assert plan.remarks[1].endswith("in eight of ten runs it is 0.47 to 2.1 times the usual one of that table.")
    assert {"worst_width": plan.worst_width, "swing": plan.swing}.items() <= plan.to_dict().items()


def test_the_planned_interval_is_the_usual_one_on_a_kind_table() -> None:
    points = np.zeros((400, 2))
    counter = OutlierCount(k=2, radius=1.0, epsilon=2, random_state=0)
    widths = [np.diff(counter.set_params(random_state=seed, confidence=0.9).fit(points).interval_)[0] for seed in range(41)]
    planned = counter.plan(n_records=400, dimensions=2).kindest_width
    assert planned is not None
    assert 0.5 * planned <= np.median(widths) <= 2 * planned  # the count is near 0, so only the upper half shows


def test_a_public_table_of_the_same_kind_tells_the_error_to_expect() -> None:
    """From the shape alone a plan said 32 where the interval in such a table reaches 444."""
    rng = np.random.default_rng(0)
    # Pairs of records that stand alone: each decides about its twin, and one newcomer about several.
    places = rng.random((150, 8)) * 3
    reference, private = (np.vstack([places + rng.normal(scale=0.4, size=places.shape) for _ in range(4)]) for _ in range(2))
    asked = OutlierCount(k=5, radius=1.2, epsilon=1)
    blind, plan = asked.plan(n_records=600, dimensions=8), asked.plan(n_records=600, like=reference)
    assert plan.expected_width is not None
    assert plan.expected_width > 2 * (blind.kindest_width or 0)
    assert plan.dimensions == 8
    assert len(plan.forecasts) == 1
    assert blind.forecasts[0].middle < plan.forecasts[0].middle < blind.forecasts[1].middle
    assert plan.forecasts[0].assumed == ("the table is like the reference of 600 records",)
    assert "In a table like the reference, error of the count" in str(plan)
    beta = asked._checked()[1].law.beta
    bounds = [smooth_bound(table, k=5, radius=1.2, beta=beta) for table in (reference, private)]
    assert 0.5 < bounds[0] / bounds[1] < 2


def test_a_reference_of_another_size_is_drawn_from_and_always_gives_the_same_plan() -> None:
    reference = np.random.default_rng(1).normal(size=(200, 2))
    asked = OutlierCount(k=5, radius=0.4, epsilon=1)
    for n, words in ((100, "of which 100 were drawn"), (900, "of which 900 were drawn with repetition"), (210, "200 records")):
        plan = asked.plan(n_records=n, like=reference)
        assert plan == asked.plan(n_records=n, like=reference)
        assert plan.forecasts[0].assumed[0].endswith(words)
    with pytest.raises(ParameterError, match="dimensions must be 2, as the reference has"):
        asked.plan(n_records=100, dimensions=3, like=reference)
    with pytest.raises(ParameterError, match="dimensions must be given where there is no reference"):
        asked.plan(n_records=100)


def test_how_many_outliers_a_larger_table_has_is_foretold_from_neighbours_and_not_from_twins() -> None:
    """Three times as many records: the levels of their number, over 20 references.

    All is seeded. Levels are widened by a factor of two for what a reference of 100 records cannot know.
    """
    held = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        reference, private = rng.standard_t(4, size=(100, 2)), rng.standard_t(4, size=(300, 2))
        made = Reference(points=reference, radius=1.0, cover="degeneracy")
        levels, true = made._outliers(300, 5), int((outlier_degrees(private, radius=1.0) < 5).sum())
        assert list(levels) == sorted(levels)
        held += levels[0] / 2 <= true <= 2 * levels[-1]
    assert held >= 15
    same = Reference(points=reference, radius=1.0, cover="degeneracy")._outliers(100, 5)
    assert same[0] < (outlier_degrees(reference, radius=1.0) < 5).sum() < same[-1], "as many as the reference, give or take"


def test_where_the_number_of_outliers_decides_and_is_not_known_there_are_two_forecasts() -> None:
    """Noise of some 20 records in either direction is cut off at none: the median error is the number of outliers."""

    def forecasts(*counts: int) -> tuple[Forecast, ...]:
        return Seen(counts=counts, bounds=(20.0,), assumed=("like it",)).forecasts("error", lambda x: np.exp(-x), 300)

    few, many = forecasts(0, 1, 3, 6, 10)
    assert (few.middle, many.middle) == (0.0, 10.0)
    assert few.assumed == ("like it", "it has only 0 outliers")
    assert many.assumed == ("like it", "it has as many as 10 outliers")
    for known in ((9, 9, 10, 11, 12), (100, 120, 150, 200, 290)):
        (one,) = forecasts(*known)
        assert one.assumed == ("like it",)
    plan = OutlierCount(k=5, radius=1.0, epsilon=1).plan(n_records=20, like=np.zeros((20, 1)))
    told = str(dataclasses.replace(plan, forecasts=(few, many)))
    assert "In a table like the reference, error: about 0" in told
    assert "; or, with the most outliers it may have, error: about 10" in told


def test_a_plan_is_vacuous_by_the_interval_that_is_told() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    plan = OutlierCount(k=5, radius=1.0, epsilon=2).plan(n_records=300, like=rows)
    assert not plan.vacuous
    assert dataclasses.replace(plan, expected_width=150).vacuous, "in tables like the reference it covers everything"
    assert not dataclasses.replace(plan, kindest_width=150).vacuous, "a reference is known: the kindest table is not asked for"


@pytest.mark.parametrize("epsilon", [1, 3])
def test_a_table_far_larger_than_its_reference_has_no_narrow_forecast(epsilon: int) -> None:
    """4,000 rows foretold by 80: nearly all that is drawn is repetition, and twins keep each other company."""
    rng = np.random.default_rng(200)
    table = rng.standard_t(2, size=(4080, 3))
    reference, private = table[:80], table[80:]
    radius = float(np.quantile(np.sort(np.linalg.norm(reference[:, None] - reference, axis=2), axis=1)[:, 4], 0.85))
    count = OutlierCount(k=4, radius=radius, epsilon=epsilon)
    true = int((outlier_degrees(private, radius=radius) < 4).sum())
    errors = [abs(count.set_params(random_state=seed).fit(private).count_ - true) for seed in range(9)]
    few, many = count.plan(n_records=4000, like=reference).forecasts
    assert few.middle == 0.0
    assert np.median(errors) <= 3 * many.middle + 0.5
    assert many.assumed[-1] == "its records sit together as among 800 drawn with repetition"
    assert "its records sit together" not in str(count.plan(n_records=800, like=reference))
