"""What a second review broke: features a little longer than their bound, rounding that raises."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sabun.density.basis import BoundedBasis
from sabun.density.logistic import Logistic
from sabun.density.method import Target

TARGET = Target(epsilon=Fraction(1), delta=None, relation="replace-one")


@pytest.mark.parametrize("radius", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("columns", [1, 3, 20])
def test_no_feature_vector_is_longer_than_the_clip_norm(columns: int, radius: float) -> None:
    """In exact arithmetic, for sizes up to the largest float."""
    rng = np.random.default_rng(0)
    plan = Logistic(public=rng.normal(size=(5, columns)), basis=None, clip_norm=radius, penalty=1e8, target=TARGET)
    sizes = 10.0 ** np.concatenate([rng.uniform(306, 308.2, 300), rng.uniform(-320, 306, 100)])
    points = rng.uniform(-1, 1, (400, columns)) * sizes[:, None]
    features = plan._features(points)
    assert all(sum(Fraction(value) ** 2 for value in row) <= Fraction(radius) ** 2 for row in features.tolist())
    assert (np.abs(features[:300]).max(axis=1) > radius / (2 * columns)).all(), "a long row keeps its direction, at full length"


def test_a_short_row_keeps_its_numbers() -> None:
    plan = Logistic(public=np.zeros((5, 2)), basis=None, clip_norm=10.0, penalty=1e8, target=TARGET)
    assert plan._features(np.array([[3.0, -4.0], [5e-324, 0.0]])).tolist() == [[1.0, 3.0, -4.0], [1.0, 5e-324, 0.0]]


def test_a_basis_of_tiny_values_is_summed_where_numpy_raises() -> None:
    basis = BoundedBasis.of(lambda row: [row[0]], (-1e90, 1e90), example=np.array([1.0]))
    with np.errstate(all="raise"):
        assert basis.sums(np.array([[1e-307], [5e-324], [1e90]])).tolist() == [2**30]
