from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sabun.density.expression import Expression
from sabun.errors import DataError, ParameterError

TABLE = pd.DataFrame(
    {"age": [20, 50, 70], "sex": ["F", "M", "F "], "hours-per-week": [1.0, 2.0, 3.0], "income": [">50K", "<=50K", ">50K"]}
)


@pytest.mark.parametrize(
    ("text", "values", "rows"),
    [
        ("mean(age)", [20, 50, 70], [True] * 3),
        (" mean ( age >= 50 ) ", [0, 1, 1], [True] * 3),
        ("mean(age = 50)", [0, 1, 0], [True] * 3),
        ("share(age > 1970-02-01)", [0, 1, 1], [True] * 3),  # a date column holds days since 1970-01-01
        ("mean(sex = F)", [1, 0, 1], [True] * 3),
        ("mean(sex == 'F')", [1, 0, 1], [True] * 3),
        ("mean(sex != F)", [0, 1, 0], [True] * 3),
        ("mean(income = >50K)", [1, 0, 1], [True] * 3),
        ("mean(hours-per-week where age < 60)", [1, 2, 3], [True, True, False]),
        ("share(age > 40 and sex = F)", [0, 0, 1], [True] * 3),
        ("share(age < 30 or age > 60)", [1, 0, 1], [True] * 3),
        ("share(not age < 30)", [0, 1, 1], [True] * 3),
        ("share(not (age < 30 or sex = M))", [0, 0, 1], [True] * 3),
        ("share(sex = M or age < 30 and sex = F)", [1, 1, 0], [True] * 3),
        ("share((sex = M or age < 30) and sex = F)", [1, 0, 0], [True] * 3),
        ("count(age > 40 where income = '>50K')", [0, 1, 1], [True, False, True]),
        ("count()", [1, 1, 1], [True] * 3),
        ("sum(age where not(sex = F))", [20, 50, 70], [False, True, False]),
        ("median(age where sex = F)", [20, 50, 70], [True, False, True]),
        ("quantile(age, 0.9)", [20, 50, 70], [True] * 3),
    ],
)
def test_questions_are_read_as_they_sound(text: str, values: list[float], rows: list[bool]) -> None:
    read = Expression.read(text)
    assert read.values(TABLE).tolist() == values
    assert read.rows(TABLE).tolist() == rows


@pytest.mark.parametrize("text", ["age", "max(age)", "", "mean(age", "mean(age) of sex", "mean age"])
def test_other_questions_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="a question must look like mean"):
        Expression.read(text)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("mean(height)", DataError, "the table has no column 'height'"),
        ("mean(height > 3)", DataError, "the table has no column 'height'"),
        ("mean(aeg)", DataError, "the table has no column 'aeg'. Did you mean 'age'?"),
        (
            "mean(weight)",
            DataError,
            "the table has no column 'weight'. Choose one of 'age', 'sex', 'hours-per-week', 'income'.",
        ),
        ("mean(sex)", DataError, "column 'sex' must hold numbers.*Choose one of 'age', 'hours-per-week'."),
        ("share(sex = X)", DataError, "no public row has 'sex' = 'X', so that weights say nothing .* Choose one of 'F', 'M'."),
        ("share(sex != X and age > 3)", DataError, "no public row has 'sex' = 'X'.*Names and labels that hold 'and'"),
        ("mean(sex > F)", ParameterError, "'sex' must be compared with = or !="),
        ("mean(age > old)", ParameterError, "a number or a date must stand on the right side"),
        ("mean(age where sex)", ParameterError, "a condition must look like age > 50 or sex = Female; got 'sex'"),
        ("share(age)", ParameterError, "a condition must look like"),
        ("share(sex = F and more)", DataError, "no column 'more'.*Names and labels that hold 'and'"),
        ("share(" + "not " * 300 + "age > 3)", ParameterError, "at most 200 parts"),
        ("share(" + "age > 3 or " * 300 + "age > 3)", ParameterError, "at most 200 parts"),
    ],
)
def test_questions_the_table_cannot_answer_are_refused(text: str, error: type[Exception], message: str) -> None:
    read = Expression.read(text)
    with pytest.raises(error, match=message):
        (read.rows(TABLE), read.values(TABLE))


def test_a_missing_cell_is_no_label() -> None:
    table = pd.DataFrame({"code": pd.Series(["None", None, "NA", "x"], dtype=object)})
    assert Expression.read("mean(code = None)").values(table).tolist() == [1, 0, 0, 0]
    assert Expression.read("mean(code != None)").values(table).tolist() == [0, 1, 1, 1]
    with pytest.raises(DataError, match="no public row has 'code' = 'nan'"):
        Expression.read("mean(code = nan)").values(table)
    assert Expression.read("mean(code = NA)").is_share(table)
    assert not Expression.read("mean(code)").is_share(table)


def test_words_of_the_language_may_stand_in_names_and_quotation_marks() -> None:
    table = pd.DataFrame({"work and rest": [1.0, 2.0], "income (USD)": [5.0, 9.0], "job": ["hook and line", "mother's help"]})
    names = tuple(table.columns)
    assert Expression.read("mean(work and rest)", names).values(table).tolist() == [1, 2]
    assert Expression.read("mean(income (USD) where work and rest > 1)", names).rows(table).tolist() == [False, True]
    assert Expression.read("share(job = 'hook and line' or income (USD) > 7)", names).values(table).tolist() == [1, 1]
    assert Expression.read("share(job = mother's help)", names).values(table).tolist() == [0, 1]
    assert Expression.read("mean(income (USD)) by job", names).by == "job"


@pytest.mark.parametrize(
    "text", ["quantile(age)", "quantile(age, 0)", "quantile(age, 1)", "quantile(age, x)", "quantile(age, nan)"]
)
def test_a_quantile_needs_a_number_between_0_and_1(text: str) -> None:
    with pytest.raises(ParameterError, match="with numbers between 0 and 1"):
        Expression.read(text)


@pytest.mark.parametrize("text", ["mean()", "sum( )", "share(where age > 3)"])
def test_only_a_count_may_be_of_everything(text: str) -> None:
    with pytest.raises(ParameterError, match="between the brackets must stand a column or a condition"):
        Expression.read(text)


@pytest.mark.parametrize(
    ("text", "singles"),
    [
        ("mean(age) by sex", ["mean(age where sex = F)", "mean(age where sex = M)"]),
        ("count() by sex", ["count(sex = F)", "count(sex = M)"]),
        (
            "quantiles(age, 0.25, 0.5) by sex",
            [
                "quantile(age, 0.25 where sex = F)",
                "median(age where sex = F)",
                "quantile(age, 0.25 where sex = M)",
                "median(age where sex = M)",
            ],
        ),
        (
            "share(age > 30 where age > 25 or age < 3) group by sex",
            [
                "share(age > 30 where (age > 25 or age < 3) and sex = F)",
                "share(age > 30 where (age > 25 or age < 3) and sex = M)",
            ],
        ),
    ],
)
def test_each_group_and_quantile_is_a_question_of_its_own(text: str, singles: list[str]) -> None:
    found = Expression.read(text).singles(TABLE)
    assert [str(one) for one in found] == singles
    for one in found:
        again = Expression.read(str(one))
        assert again.values(TABLE).tolist() == one.values(TABLE).tolist()
        assert again.rows(TABLE).tolist() == one.rows(TABLE).tolist()


@pytest.mark.parametrize(
    "cells",
    [
        [1234567.0, 1234568.0, None, 1234567.0],
        [0.1234567, 0.1234568, 0.1234567, float("inf")],
        [True, False, True, True],
        ["'x'", 'it\'s "so"', "a = b", "> 5"],
        ["", "x", "", None],
        pd.to_datetime(["2020-01-01", "2020-02-01", "2020-01-01", None]),
        pd.array([1, None, 3, 1], dtype="Int64"),
        pd.array([True, None, False, True], dtype="boolean"),
        pd.Categorical(["a or b", "b", None, "b"]),
    ],
)
def test_groups_hold_every_row_with_a_label_once(cells: Any) -> None:
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "g": cells})
    named = table["g"].notna()
    for text, found in (("count() by g", Expression.values), ("mean(x) by g", Expression.rows)):
        groups = [found(one, table) for one in Expression.read(text, ("x", "g")).singles(table)]
        assert len(groups) == table["g"].nunique()
        assert sum(map(np.asarray, groups)).tolist() == named.astype(int).tolist()
        assert all(group.any() for group in groups)


def test_missing_cells_and_truths_are_compared() -> None:
    table = pd.DataFrame({"n": pd.array([1, None, 3], dtype="Int64"), "b": [True, False, True]})
    for text, values in (
        ("share(n > 1)", [0, 0, 1]),
        ("share(b = True)", [1, 0, 1]),
        ("share(b != true)", [0, 1, 0]),
        ("share(b = 0)", [0, 1, 0]),
    ):
        assert Expression.read(text).values(table).tolist() == values


def test_groups_must_be_few_and_known() -> None:
    many = pd.DataFrame({"x": range(60)})
    with pytest.raises(ParameterError, match="at most 50 values"):
        Expression.read("mean(x) by x").singles(many)
    with pytest.raises(DataError, match="no column 'y'"):
        Expression.read("mean(x) by y").singles(many)


@pytest.mark.parametrize("text", ["mean(height)", "mean(sex)", "mean(wieght)"])
def test_the_weights_are_not_offered_as_a_column(text: str) -> None:
    with pytest.raises(DataError) as caught:
        Expression.read(text).values(TABLE.assign(weight=1.0))
    assert "Choose one of 'age'" in str(caught.value)
    assert "'weight'" not in str(caught.value)
