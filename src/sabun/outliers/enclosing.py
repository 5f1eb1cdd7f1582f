"""Smallest enclosing balls: the exact number of points one ball can hold, for small sets.

`densest_ball` answers by branch and bound, on decisions that are those of exact arithmetic; `enumerate_balls` is Algorithm 1 of
the paper in floating point, for the owner of a small table and a reference for tests. The time of both grows exponentially.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import DataError
from sabun.outliers.points import as_points, check_radius

__all__ = ["Ball", "densest_ball", "enumerate_balls", "fits", "smallest_ball"]

_Floats = NDArray[np.float64]
_Numbers = NDArray[Any]
_TOUCH = (1.0 + 1e-9) ** 2
_MOST_RECORDS = 20
"""A million subsets: with every further record they double."""


class Ball(NamedTuple):
    """A ball; `members` says which points it was drawn around."""

    centre: _Floats
    squared_radius: float
    members: tuple[int, ...]


class _Field(NamedTuple):
    """The numbers to compute with: how to solve for the centre, how far outside a ball counts as outside."""

    solve: Callable[[_Numbers, _Numbers], _Numbers]
    slack: Any
    least: Any


def _least_squares(gram: _Numbers, right: _Numbers) -> _Numbers:
    return np.asarray(np.linalg.lstsq(gram, right, rcond=None)[0])


def _eliminated(gram: _Numbers, right: _Numbers) -> _Numbers:
    """The exact solution; a Gram matrix of independent vectors needs no pivots."""
    rows = [[*row, value] for row, value in zip(gram.tolist(), right.tolist(), strict=True)]
    for i, pivot in enumerate(rows):
        for j, row in enumerate(rows):
            if j != i:
                rows[j] = [x - row[i] / pivot[i] * y for x, y in zip(row, pivot, strict=True)]
    return np.array([row[-1] / row[i] for i, row in enumerate(rows)], dtype=object)


_FLOATS = _Field(_least_squares, 1.0 + 1e-12, 1e-300)
_RATIONALS = _Field(_eliminated, Fraction(1), Fraction(0))


def smallest_ball(points: _Floats) -> tuple[_Floats, float]:
    """Centre with squared radius of the smallest ball around some points (Welzl's move to front).

    Example:
        >>> centre, squared = smallest_ball(np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]]))
        >>> centre.tolist(), squared
        ([1.0, 0.0], 1.0)
    """
    centre, squared, _ = _around(points - points[0], list(range(len(points))), len(points), [], _FLOATS)
    return points[0] + centre, float(squared)


def _around(
    points: _Numbers, rows: list[int], count: int, support: list[int], field: _Field
) -> tuple[_Numbers, Any, list[int]]:
    """The smallest ball around the first rows with the support on its surface, then the points that hold it."""
    held = support
    centre, squared = _through(points, support, field)
    if len(support) == points.shape[1] + 1:
        return centre, squared, held
    for place in range(count):
        row = rows[place]
        gap = points[row] - centre
        if squared < 0 or gap @ gap > squared * field.slack + field.least:
            centre, squared, held = _around(points, rows, place, [*support, row], field)
            rows.insert(0, rows.pop(place))
    return centre, squared, held


def _through(points: _Numbers, support: list[int], field: _Field) -> tuple[_Numbers, Any]:
    """The smallest ball with all of the support on its surface; squared radius -1 for no support."""
    if not support:
        return points[0], -1
    origin = points[support[0]]
    if len(support) == 1:
        return origin, field.slack * 0
    edges = points[support[1:]] - origin
    gram = edges @ edges.T
    arm = field.solve(gram, gram.diagonal() / 2) @ edges
    return origin + arm, arm @ arm


@np.errstate(all="ignore")
def fits(points: _Floats, radius: float) -> bool:
    """Whether the smallest ball around some points has a radius of at most (1 + 1e-9) times the given one.

    Guarantee: the answer is that of exact arithmetic. Floating point decides only with a certificate; what it leaves open is
    decided by rational numbers.
    """
    gaps = points - points[0]
    margin = 1e-13 * (sum(points.shape) + 10)
    if not (gaps * gaps).sum(axis=1).max() <= 4.0 * (radius * radius) * _TOUCH * (1.0 + margin):
        return False
    verdict = _certified(gaps / radius, margin)
    return _fits_exactly(points, radius) if verdict is None else verdict


def _certified(units: _Floats, margin: float) -> bool | None:
    """The answer for points within a few radii of the origin, None where rounding could matter.

    A centre that is near enough to all points proves that they fit. Weights w_i >= 0 of sum 1 prove that they do not: no ball
    has a smaller squared radius than the weighted variance sum w_i |u_i|**2 - |sum w_i u_i|**2.
    """
    try:
        centre, _, support = _around(units, list(range(len(units))), len(units), [], _FLOATS)
        edges = units[support[1:]] - units[support[0]]
        gram = edges @ edges.T
        others = _least_squares(gram, gram.diagonal() / 2) if len(edges) else np.zeros(0)
    except np.linalg.LinAlgError:
        return None
    reach = units - centre
    if (reach * reach).sum(axis=1).max() <= _TOUCH * (1.0 - margin):
        return True
    weights = np.maximum(np.append(1.0 - others.sum(), others), 0.0)
    held, weights = units[support], weights / weights.sum()
    middle = weights @ held
    return False if weights @ (held * held).sum(axis=1) - middle @ middle > _TOUCH * (1.0 + margin) else None


def _fits_exactly(points: _Floats, radius: float) -> bool:
    exact = np.array([[Fraction(x) for x in row] for row in points.tolist()], dtype=object)
    _, squared, _ = _around(exact - exact[0], list(range(len(exact))), len(exact), [], _RATIONALS)
    return bool(squared <= Fraction(_TOUCH) * Fraction(radius) ** 2)


def densest_ball(points: _Floats, radius: float) -> int:
    """The most points that one closed ball of the radius (with the tolerance of `fits`) can hold.

    Example:
        >>> densest_ball(np.array([[0.0], [1.5], [9.0]]), 1.0)
        2
    """
    rows = np.asarray(points, dtype=np.float64)
    best = min(1, len(rows))
    waiting: list[tuple[list[int], list[int]]] = [([], list(range(len(rows))))]
    while waiting:
        chosen, fitting = waiting.pop()
        if len(chosen) + len(fitting) <= best:
            continue
        longer, rest = [*chosen, fitting[0]], fitting[1:]
        best = max(best, len(longer))
        waiting.append((chosen, rest))
        waiting.append((longer, [row for row in rest if fits(rows[[*longer, row]], radius)]))
    return best


def enumerate_balls(X: object, radius: float, *, as_printed: bool = False) -> list[Ball]:
    """Every set of records that one ball of the radius can hold, each with its smallest ball: Algorithm 1. NOT PRIVATE.

    As printed the algorithm stops before it looks at a set with one of the last two records, and keeps a set only where no
    larger one was found; the repaired one, which is the default, tries every set.

    Args:
        X: A table of finite numbers with at most 20 records; the time doubles with each.
        radius: The radius.
        as_printed: Whether to follow the printed lines instead. The ball around no record, which they admit, is left out.

    Raises:
        DataError: X is no such table.
        ParameterError: A parameter breaks its rule.

    Example:
        >>> [ball.members for ball in enumerate_balls([[0.0], [1.5]], 1.0)]
        [(0,), (0, 1), (1,)]
        >>> enumerate_balls([[0.0], [1.5]], 1.0, as_printed=True)
        []
    """
    checks.boolean(as_printed=as_printed)
    distance, rows = check_radius(radius), as_points(X)
    if len(rows) > _MOST_RECORDS:
        raise DataError(f"X must have at most {_MOST_RECORDS} records, for their sets are counted one by one; it has more.")
    scaled = (rows - rows[:1]) / distance

    def around(members: tuple[int, ...]) -> list[Ball]:
        if not members:
            return []
        centre, squared = smallest_ball(scaled[list(members)])
        return [Ball(rows[0] + centre * distance, squared * distance * distance, members)] if squared <= _TOUCH else []

    return _as_printed((), 1, len(rows), around) if as_printed else _every((), 0, len(rows), around)


_Around = Callable[[tuple[int, ...]], list[Ball]]


def _every(chosen: tuple[int, ...], place: int, count: int, around: _Around) -> list[Ball]:
    if place == count:
        return []
    longer = (*chosen, place)
    return [*around(longer), *_every(longer, place + 1, count, around), *_every(chosen, place + 1, count, around)]


def _as_printed(chosen: tuple[int, ...], index: int, count: int, around: _Around) -> list[Ball]:
    """Lines 2 to 17 of Algorithm 1; `index` counts from 1, as there."""
    if index >= count:  # line 3, which comes before the ball of line 6
        return []
    with_it = _as_printed((*chosen, index - 1), index + 1, count, around)
    without = _as_printed(chosen, index + 1, count, around)
    return with_it + without if with_it else without + around(chosen)
