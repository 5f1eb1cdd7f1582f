from __future__ import annotations

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
        ("mean(sex = F)", [1, 0, 1], [True] * 3),
        ("mean(sex == 'F')", [1, 0, 1], [True] * 3),
        ("mean(sex != F)", [0, 1, 0], [True] * 3),
        ("mean(income = >50K)", [1, 0, 1], [True] * 3),
        ("mean(hours-per-week where age < 60)", [1, 2, 3], [True, True, False]),
    ],
)
def test_questions_are_read_as_they_sound(text: str, values: list[float], rows: list[bool]) -> None:
    read = Expression.read(text)
    assert read.values(TABLE).tolist() == values
    assert read.rows(TABLE).tolist() == rows


@pytest.mark.parametrize("text", ["age", "max(age)", "mean()", "", "mean(age"])
def test_other_questions_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="a question must look like mean"):
        Expression.read(text)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("mean(height)", DataError, "the table has no column 'height'"),
        ("mean(height > 3)", DataError, "the table has no column 'height'"),
        ("mean(sex)", DataError, "column 'sex' must hold numbers"),
        ("mean(sex > F)", ParameterError, "'sex' must be compared with = or !="),
        ("mean(age > old)", ParameterError, "a number must stand on the right side"),
        ("mean(age where sex)", ParameterError, "after 'where' must stand a condition"),
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
    assert Expression.read("mean(code = nan)").values(table).tolist() == [0, 0, 0, 0]
    assert Expression.read("mean(code = NA)").is_share(table)
    assert not Expression.read("mean(code)").is_share(table)
