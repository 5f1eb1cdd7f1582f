from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sabun import Ledger, Release
from sabun.errors import DataError, ParameterError
from sabun.privacy import rho_of
from sabun.privacy.renyi import pure_cost
from sabun.records import Column, Schema
from sabun.reports import facts
from sabun.summaries import Count, Histogram, Mean, Quantiles, Sum, Variance
from sabun.summaries.typed import typed_where

SCHEMA = Schema(
    columns=[
        Column.number("age", bounds=(0, 120)),
        Column.category("sex", ["F", "M"]),
        Column.category("area", ["north", "south"], missing="north"),
    ]
)
ROWS = [[20 + i % 60, "FM?"[i % 3], "north" if i % 2 else None] for i in range(300)]
NUMBERS = (Sum, Mean, Variance, Histogram, Quantiles)
EVERY: list[tuple[Any, dict[str, Any]]] = [(Count, {"by": "sex"}), *((asked, {"column": "age"}) for asked in NUMBERS)]


def test_a_count_of_all_rows_needs_a_private_number_of_rows() -> None:
    with pytest.raises(ParameterError, match="a count of all rows must be asked under add-remove; got replace-one"):
        Count(epsilon=1, schema=SCHEMA)
    found = Count(epsilon=50, schema=SCHEMA, relation="add-remove", random_state=1).fit(ROWS)
    assert found.count_ == 300
    assert "records" not in found.release_.provenance.parameters


def test_a_ledger_says_which_neighbours_are_meant(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b", name="b", unit="person", relation="add-remove", epsilon=3)
    model = Count(epsilon=1, schema=SCHEMA, ledger=book, retry_key="monday").fit(ROWS)
    assert model.guarantee_.relation == "add-remove"
    again = Count(epsilon=1, schema=SCHEMA, ledger=book, retry_key="monday").fit(ROWS)
    assert again.release_ == model.release_
    assert book.spent.epsilon == 1


def test_groups_come_from_the_schema_never_from_the_data() -> None:
    found = Count(epsilon=50, schema=SCHEMA, by="sex", random_state=1).fit(ROWS).count_
    assert found == {"F": 100, "M": 100}  # the label ? is nobody's
    found = Count(epsilon=50, schema=SCHEMA, by="area", random_state=1).fit(ROWS).count_
    assert found == {"north": 300, "south": 0}  # a missing cell has a declared place
    assert Count(epsilon=50, schema=SCHEMA, by="sex", random_state=1).fit([[1, "X", "X"]]).count_ == {"F": 0, "M": 0}


def test_a_condition_holds_its_lower_end_and_joins_with_groups() -> None:
    whole: dict[str, Any] = {"epsilon": 50, "schema": SCHEMA, "random_state": 1}
    table = [[30, "F", "north"], [65, "F", "south"], [999, "M", "south"], [64.99, "M", "south"], [None, "F", "south"]]
    assert Count(where={"age": (65, None)}, **whole).fit(table).count_ == 2
    assert Count(where={"age": (60, 65)}, **whole).fit(table).count_ == 2  # the unreadable cell counts as 60
    assert Count(where={"age": (60, None), "area": ["south"]}, by="sex", **whole).fit(table).count_ == {"F": 2, "M": 2}
    assert Count(where={"sex": "F"}, **whole).fit(table).count_ == 3


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"x": (0, 1)},
        {"age": 5},
        {"age": (5, 5)},
        {"age": (math.nan, 9)},
        {"age": ("a", 2)},
        {"sex": []},
        {"sex": "X"},
        "age",
        {"sex": ["F", "F"]},
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(where: Any) -> None:
    with pytest.raises(ParameterError, match="where must be"):
        Count(epsilon=1, schema=SCHEMA, where=where)


def test_a_condition_on_a_label_that_is_none_is_told_which_there_are() -> None:
    with pytest.raises(
        ParameterError, match=r"where must be labels of column 'sex', each once; got 'X'. Choose one of 'F', 'M'."
    ):
        Count(epsilon=1, schema=SCHEMA, where={"sex": "X"})
    assert typed_where(["sex=F、M"], SCHEMA) == {"sex": ["F", "M"]}


def test_columns_must_be_declared_and_of_the_right_kind() -> None:
    with pytest.raises(ParameterError, match=r"by must be a column of labels; got 'age'.*Choose one of 'sex'"):
        Count(epsilon=1, schema=SCHEMA, by="age")
    with pytest.raises(ParameterError, match="column must be a declared column"):
        Mean(column="weight", epsilon=1, schema=SCHEMA)
    for asked in (Sum, Mean, Variance, Quantiles):
        with pytest.raises(ParameterError, match=r"column must be a column of numbers; got 'sex'. Choose one of 'age'"):
            asked(column="sex", epsilon=1, schema=SCHEMA)
    with pytest.raises(ParameterError, match="schema must be a Schema"):
        Mean(column="age", epsilon=1, schema=None)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="column must be"):
        Histogram(column=None, epsilon=1, schema=SCHEMA)  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", [0, 1, 1.5, math.nan, "0.9", None])
def test_a_bad_confidence_is_refused(confidence: Any) -> None:
    with pytest.raises(ParameterError, match="confidence must be"):
        Mean(column="age", epsilon=1, schema=SCHEMA, confidence=confidence)


@pytest.mark.parametrize("bins", [0, -1, 1.5, [1], [2, 1], [0, math.inf], "many", True])
def test_bad_bins_are_refused(bins: Any) -> None:
    with pytest.raises(ParameterError, match="bins must be"):
        Histogram(column="age", bins=bins, epsilon=1, schema=SCHEMA)
    with pytest.raises(ParameterError, match="bins must be left out"):
        Histogram(column="sex", bins=2, epsilon=1, schema=SCHEMA)


@pytest.mark.parametrize(("asked", "how"), EVERY)
def test_an_empty_table_is_refused_only_where_its_size_is_public(asked: Any, how: Any) -> None:
    empty = np.empty((0, 3), dtype=object)
    with pytest.raises(DataError, match="at least one row"):
        asked(epsilon=1, schema=SCHEMA, **how).fit(empty)
    model = asked(epsilon=1, schema=SCHEMA, relation="add-remove", **how).fit(empty)
    assert model.release_.guarantee.relation == "add-remove"


def test_too_few_rows_are_said_in_words() -> None:
    table = [[40, "F", "north"]] * 500 + [[50, "M", "north"]]
    for asked, word in ((Mean, "mean_"), (Variance, "variance_")):
        fits = [asked(column="age", epsilon=0.5, schema=SCHEMA, by="sex", random_state=seed).fit(table) for seed in range(30)]
        told = [getattr(fit, word)["M"] is not None for fit in fits]
        assert sum(told) <= 5  # of which about one in forty are expected
        model = fits[told.index(False)]
        assert getattr(model, word)["F"] is not None
        whole = (0, 120) if asked is Mean else (0, 3600)
        assert model.interval_["M"] == pytest.approx(whole)
        assert abs(model.release_["sizes"]["F"] - 500) < 60


@pytest.mark.parametrize(("asked", "how"), EVERY)
@pytest.mark.parametrize("terms", [{}, {"by": "sex"}, {"by": "sex", "relation": "add-remove"}])
def test_a_plan_says_what_the_interval_will_be(asked: Any, how: Any, terms: Any) -> None:
    question = asked(**({"epsilon": 1, "schema": SCHEMA, "random_state": 3} | how | terms))
    plan = question.plan(n_records=300)
    assert plan.n_records == 300
    assert 0 <= plan.usual_error <= plan.reach
    assert f"{plan.question} over 300 records" in str(plan)
    assert plan.to_dict()["epsilon"] == "1"
    poor = asked(**({"epsilon": "1e-6", "schema": SCHEMA} | how | terms)).plan(n_records=300)
    good = asked(**({"epsilon": 500, "schema": SCHEMA} | how | terms)).plan(n_records=30_000)
    for one, noise in ((poor, True), (good, False)):
        assert one.vacuous is ("epsilon is too small" in str(one)) is noise
    assert all(str(one).partition(": ")[2] in str(plan) for one in plan.forecasts), "what the charge shows, and no other figure"
    with pytest.raises(ParameterError, match="n_records must be"):
        question.plan(n_records=0)


@pytest.mark.parametrize("asked", [Mean, Variance])
def test_a_forecast_says_how_large_it_takes_groups_to_be_and_what_half_the_size_does(asked: Any) -> None:
    """With groups of 40, 30, 20 and 10 % one error in five was above what nine of ten should stay below."""
    halved = "half as many records have twice the error"
    question = asked(column="age", epsilon=1, schema=SCHEMA, by="sex")
    whole, half = (question.plan(n_records=n).forecasts[0] for n in (6000, 3000))
    assert whole.assumed[:2] == ("groups have about 3000 records each", halved)
    for end in ("middle", "high"):
        assert getattr(half, end) == pytest.approx(2 * getattr(whole, end), rel=0.05)
    where = {"area": "north"}
    both = question.set_params(where=where).plan(n_records=6000).forecasts[0]
    assert both.assumed[:3] == ("all records meet the condition", "groups have about 3000 records each", halved)
    alone = asked(column="age", epsilon=1, schema=SCHEMA, where=where).plan(n_records=6000).forecasts[0]
    assert alone.assumed[:2] == ("all records meet the condition", halved)
    everybody = asked(column="age", epsilon=1, schema=SCHEMA).plan(n_records=6000).forecasts[0]
    assert not any("half" in one for one in everybody.assumed)


def test_a_forecast_that_groups_of_any_size_share_says_nothing_of_their_size() -> None:
    for asked, how in ((Sum, {"column": "age"}), (Count, {}), (Histogram, {"column": "age"})):
        question = asked(epsilon=1, schema=SCHEMA, by="sex", **how)
        [whole], [half] = (question.plan(n_records=n).forecasts for n in (6000, 3000))
        assert whole.middle == half.middle
        assert not any("half" in one for one in whole.assumed)
    ranks = Quantiles(column="age", epsilon=1, schema=SCHEMA, by="sex").plan(n_records=6000)
    told = ("groups have about 3000 records each", "among half as many records the same error in ranks reaches twice as far")
    assert [one.assumed[:2] for one in ranks.forecasts] == [told, told]


def test_a_plan_matches_what_comes() -> None:
    rng = np.random.default_rng(0)
    evenly, at_a_bound = rng.uniform(0, 120, 4000), 120.0 * (np.arange(4000) % 20 == 0)
    for asked, cells in ((Sum, evenly), (Mean, evenly), (Variance, at_a_bound)):
        table = np.column_stack([cells.astype(object), rng.choice(["F", "M"], 4000), ["north"] * 4000])
        question = asked(column="age", epsilon=1, schema=SCHEMA, by="sex", random_state=3)
        low, high = question.fit(table).interval_["F"]
        assert (high - low) / 2 == pytest.approx(question.plan(n_records=4000).reach, rel=0.2)


@pytest.mark.parametrize("bounds", [(0, 1.7e308), (-8e307, 8e307), (0, 5e-324), (1e15, 1e15 + 2)])
@pytest.mark.parametrize("asked", NUMBERS)
def test_extreme_bounds_give_finite_answers(asked: Any, bounds: Any) -> None:
    schema = Schema.of_bounds({"x": bounds})
    table = [[bounds[1]]] * 40 + [[math.inf], [-math.inf], [math.nan], [1e308], [-0.0]]
    for relation in ("replace-one", "add-remove"):
        bins = {"bins": 1} if asked is Histogram else {}
        model = asked(column="x", epsilon=1, schema=schema, relation=relation, random_state=1, **bins).fit(table)
        assert model.release_["intervals"]["all"] is not None
        numbers = np.array([model.interval_], dtype=float)
        assert np.isfinite(numbers).all()


@pytest.mark.parametrize("epsilon", ["1e-300", 10**9])
@pytest.mark.parametrize(("asked", "how"), EVERY)
def test_extreme_budgets_give_answers(asked: Any, how: Any, epsilon: Any) -> None:
    model = asked(epsilon=epsilon, schema=SCHEMA, by="sex", random_state=1, **{k: v for k, v in how.items() if k != "by"})
    assert model.fit(ROWS).interval_ is not None


@pytest.mark.parametrize(("asked", "how"), EVERY)
@pytest.mark.parametrize("terms", [{}, {"by": "sex"}, {"where": {"age": (30, None), "sex": ["F"]}}])
def test_a_page_tells_every_release(asked: Any, how: Any, terms: Any, tmp_path: Path) -> None:
    model = asked(**({"epsilon": 1, "schema": SCHEMA} | how | terms)).fit(ROWS)
    model.release_.save(tmp_path / "r.json")
    told = facts(Release.load(tmp_path / "r.json")).story
    assert told.title.startswith(f"Private {model.word}")
    assert told.grids[0].title == "Answers"
    if "where" in terms:
        assert "age at least 30 and sex" in told.answer.sentence


def test_a_page_says_too_few() -> None:
    model = Mean(column="age", epsilon=1, schema=SCHEMA, where={"age": (119, None)}).fit(ROWS)
    told = facts(model.release_).story
    assert told.answer.big == "Too few to tell"
    assert "Too few rows" in told.cautions[0]


@pytest.mark.parametrize("cell", [5e-324, 1e-310, -1e-200, math.nan, math.inf, 1e308])
def test_no_cell_raises_though_numpy_may(cell: float) -> None:
    schema = Schema.of_bounds({"age": (-1e-300, 1e300)})
    with np.errstate(all="raise"):
        for asked in NUMBERS:
            asked(column="age", epsilon=1, schema=schema, where={"age": (0, None)}).fit([[cell], [-cell], [1.0]])


@pytest.mark.parametrize(("asked", "how"), EVERY)
@pytest.mark.parametrize("confidence", [1e-17, 1e-300, Fraction(1, 10**20), 1 - Fraction(1, 10**40), math.nan, "0.9", True])
def test_a_confidence_that_no_reach_can_keep_is_refused_before_any_charge(
    asked: Any, how: dict[str, Any], confidence: Any
) -> None:
    with pytest.raises(ParameterError, match="confidence must be above 0 and below 1"):
        asked(epsilon=1, schema=SCHEMA, confidence=confidence, **how)


@pytest.mark.parametrize(("asked", "how"), EVERY)
@pytest.mark.parametrize("confidence", [1e-15, 1 - 1e-15, Fraction(1, 3)])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_every_other_confidence_is_kept(asked: Any, how: dict[str, Any], confidence: Any, delta: Any) -> None:
    how = how if asked is Quantiles else how | {"delta": delta}
    for more in ({}, {"where": {"area": "north"}}):
        model = asked(epsilon=1, schema=SCHEMA, confidence=confidence, random_state=1, **how, **more)
        assert model.fit(ROWS).interval_


@pytest.mark.parametrize(("asked", "how"), EVERY)
def test_a_plan_takes_any_number_of_records(asked: Any, how: dict[str, Any]) -> None:
    assert not asked(epsilon=1, schema=SCHEMA, **how).plan(n_records=10**400).vacuous


@pytest.mark.parametrize("bins", [10**6 + 1, 10**12, 10**400, [0, 10**400], [2**53, 2**53 + 1], [0, math.inf]])
def test_bins_beyond_numbers_or_memory_are_refused(bins: Any) -> None:
    with pytest.raises(ParameterError, match="bins must be"):
        Histogram(column="age", bins=bins, epsilon=1, schema=SCHEMA)


@pytest.mark.parametrize("ends", [(10**400, None), (None, 10**400), (-(10**400), 10**400), (2**53, 2**53 + 1)])
def test_ends_of_a_condition_are_floats_that_differ(ends: Any) -> None:
    with pytest.raises(ParameterError, match="where must be a pair"):
        Count(where={"age": ends}, epsilon=1, schema=SCHEMA)
    assert Count(where={"age": (-math.inf, math.inf)}, epsilon=50, schema=SCHEMA, random_state=1).fit(ROWS).count_ == 300


@pytest.mark.parametrize(("asked", "how"), EVERY[:-1], ids=lambda one: getattr(one, "__name__", ""))
def test_gaussian_noise_states_its_price_to_a_ledger_with_an_order(asked: Any, how: dict[str, Any], tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b", name="b", unit="person", epsilon=3, delta="1e-6")
    found = asked(epsilon=0.5, delta="1e-7", schema=SCHEMA, ledger=book, **how).fit(ROWS)
    [entry] = book.entries()
    assert entry.form == "curve"
    [noise] = entry.price["events"]
    assert noise["kind"] == "discrete-gaussian"
    assert Fraction(noise["sigma_squared"]) == Fraction(found.release_.provenance.parameters["noise"])
    spent = Fraction(noise["l2_squared"]) / (2 * Fraction(noise["sigma_squared"]))
    assert entry.tau == pytest.approx(9 * spent)
    assert spent <= rho_of("1/2", "1e-7")
    assert spent > rho_of("1/2", "1e-7") * Fraction(99, 100)


@pytest.mark.parametrize("bar", [0, "3/10"])
def test_quantiles_state_their_choices_to_a_ledger_with_an_order(bar: Any, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "b", name="b", unit="person", epsilon=3, delta="1e-6")
    shares = (0.25, 0.5, 0.75)
    Quantiles(epsilon=0.6, shares=shares, error_bar=bar, column="age", schema=SCHEMA, ledger=book).fit(ROWS)
    [entry] = book.entries()
    events = entry.price["events"]
    assert {event["kind"] for event in events} == {"bounded-range"}
    assert sum(event["count"] * Fraction(event["epsilon"]) for event in events) == Fraction(3, 5)
    assert entry.form == "curve"
    assert entry.tau < pure_cost(Fraction(3, 5), order=9) / 4


def test_a_table_is_read_once_for_the_plan_and_the_answer() -> None:
    asked = Mean(column="age", epsilon=1, schema=SCHEMA, random_state=1)
    read = asked.read(ROWS)
    assert read.rows == 300
    assert asked.fit(read).mean_ == asked.fit(ROWS).mean_
    hidden = Mean(column="age", epsilon=1, schema=SCHEMA, relation="add-remove", random_state=1)
    assert hidden.read(ROWS).rows is None
    assert hidden.fit(hidden.read(ROWS)).release_.provenance.parameters == hidden.fit(ROWS).release_.provenance.parameters
    with pytest.raises(ParameterError, match="X must be read with the parameters it is asked with"):
        Mean(column="age", by="sex", epsilon=1, schema=SCHEMA).fit(read)


def test_a_table_is_read_for_one_question_alone() -> None:
    """Whatever else it was read with that changes what is added up: bounds, groups, condition, bins, how finely, the class."""
    wide = Schema(columns=[Column.number(one.name, bounds=(-5, 500)) if one.name == "age" else one for one in SCHEMA.columns])
    ways: list[dict[str, Any]] = [
        {},
        {"schema": wide},
        {"by": "sex"},
        {"where": {"age": (20, None)}},
        {"where": {"age": (30, None)}},
    ]
    asked: list[Any] = []
    for kind, own in ((Mean, [{}]), (Histogram, [{}, {"bins": 3}]), (Quantiles, [{}, {"resolution": 10.0}])):
        asked += [kind(**({"column": "age", "epsilon": 1, "schema": SCHEMA} | way | more)) for way in ways for more in own]
    for one, other in itertools.permutations(asked, 2):
        with pytest.raises(ParameterError, match="X must be read with the parameters it is asked with"):
            one.fit(other.read(ROWS))


@pytest.mark.parametrize(("asked", "how"), EVERY)
def test_a_plan_is_vacuous_where_its_error_up_and_down_spans_all_there_is(asked: Any, how: dict[str, Any]) -> None:
    plan = asked(epsilon=1, schema=SCHEMA, **how).plan(n_records=300)
    span = 2 * min(one.high for one in plan.forecasts)
    assert dataclasses.replace(plan, most=span).vacuous
    assert not dataclasses.replace(plan, most=span * 1.001).vacuous
