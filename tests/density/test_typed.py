from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sabun import Column, Schema
from sabun.density.features import Features
from sabun.density.typed import basis_of, typed_method
from sabun.errors import ParameterError

SCHEMA = Schema(
    columns=[
        Column.number("age", lower=0, upper=120),
        Column.category("sex", ["F", "M"]),
        Column.number("cost", lower=0, upper=1000, log1p=True),
    ]
)
ROWS = [[50, "F", 10.0], [49, "M", 999.0], [51, "?", 0.0], [130, "F", 5000.0]]


def records() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Rows as a method sees them."""
    features, _ = Features.of(ROWS, schema=SCHEMA, standardize=False)
    return features.points(ROWS)


@pytest.mark.parametrize(
    ("term", "values"),
    [
        ("2.5", [2.5, 2.5, 2.5, 2.5]),
        ("age", [50, 49, 51, 120]),
        ("cost", [10, 999, 0, 1000]),
        ("age > 50", [0, 0, 1, 1]),
        ("age >= 50", [1, 0, 1, 1]),
        ("age = 50", [1, 0, 0, 0]),
        ("cost <= 10", [1, 0, 1, 0]),
        ("sex = F", [1, 0, 0, 1]),
        ("sex == 'M'", [0, 1, 0, 0]),
    ],
)
def test_a_typed_term_means_the_column_in_its_own_units(term: str, values: list[float]) -> None:
    function = basis_of([term], names=(), schema=SCHEMA)
    assert [function(record)[0] for record in records()] == pytest.approx(values, rel=1e-9)


@pytest.mark.parametrize("term", ["age > 130", "sex = X", "sex > F", "nothing", "nothing > 3", "age > old"])
def test_a_term_about_nothing_declared_is_refused(term: str) -> None:
    with pytest.raises(ParameterError):
        basis_of([term], names=(), schema=SCHEMA)


def test_plain_columns_are_taken_as_they_are() -> None:
    function = basis_of(["x1", "x0 < 2", "1"], names=["x0", "x1"], schema=None)
    assert function(np.array([1.0, 7.0])) == [7.0, 1.0, 1.0]
    with pytest.raises(ParameterError, match="a condition such as"):
        basis_of(["x2 > 1"], names=["x0"], schema=None)


def test_settings_are_read_once_each() -> None:
    made = typed_method("ulsif-b", ["bandwidth=0.5", "n_centers=7"], None, (None, None), Path("unread.csv"), accept=False)
    assert (made.method, made.facts()["bandwidth"], made.facts()["n_centers"]) == ("ulsif-b", 0.5, 7)
    with pytest.raises(ParameterError, match="each once"):
        typed_method("ulsif-b", ["n_centers=7", "n_centers=8"], None, (None, None), Path("unread.csv"), accept=False)
