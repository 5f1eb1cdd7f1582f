"""Where a rule begins: at the very number, not one beside it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sabun.density import DensityRatio
from sabun.errors import ParameterError
from sabun.regression import PrivateRidge
from sabun.regression.study import PURE, STATISTICS

ROWS = np.random.default_rng(0).random((64, 2))


def weights(delta: Fraction) -> None:
    DensityRatio(epsilon=1, delta=delta).fit(private=ROWS, public=ROWS[::2])


def planned(delta: Fraction) -> None:
    DensityRatio(epsilon=1, delta=delta).plan(n_records=64, public=ROWS)


def declared(delta: Fraction) -> None:
    DensityRatio(epsilon=1, delta=delta, relation="add-remove", n_public=64).fit(private=ROWS, public=ROWS[::2])


def ridge(method: str) -> Any:
    def fit(delta: Fraction) -> None:
        PrivateRidge(epsilon=1, delta=delta, method=method, x_bounds=[(0, 1)] * 2, y_bounds=(0, 1)).fit(ROWS, ROWS[:, 0])

    return fit


ASKED = {"weights": weights, "a plan of weights": planned, "weights of a declared number": declared} | {
    method: ridge(method) for method in STATISTICS if method not in PURE
}


@pytest.mark.parametrize("name", ASKED)
def test_a_delta_that_may_publish_one_of_the_rows_is_refused(name: str) -> None:
    """One over the number of rows is too much: whoever publishes a row at random keeps to it."""
    with pytest.raises(ParameterError, match="delta must be below 1"):
        ASKED[name](Fraction(1, 64))
    ASKED[name](Fraction(1, 65))
