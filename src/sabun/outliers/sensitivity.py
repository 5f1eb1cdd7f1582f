"""How much one record can change the number of outliers of this table. PRIVATE: for the owner, for tests, for mechanisms.

`smooth_bound` is S of the ladder's proof (ladder.proof.md); with `cover="paper"` it is the formula the paper prints, which
is no upper bound and not smooth.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.outliers.kissing import RELATIONS, global_bound, region_bound
from sabun.outliers.ladder import COVERS, Bands, Cover, Discounts, Known, largest_product
from sabun.outliers.paper import local_candidates, printed_bound
from sabun.outliers.points import as_points, check_k, check_radius
from sabun.privacy.amounts import AmountLike, exact_positive

__all__ = [
    "Measured",
    "Near",
    "discounts_for",
    "local_bound",
    "measure",
    "measure_regions",
    "outlier_degrees",
    "region_discounts",
    "rungs_of",
    "smooth_bound",
    "smooth_of",
]

_Floats = NDArray[np.float64]
Measured = tuple[int, Fraction]
"""The exact count with its smooth bound. PRIVATE."""


class Near(NamedTuple):
    """What S needs to know of a table. PRIVATE.

    Attributes:
        outliers: How many there are.
        most: For each rung, the most members of V[k-t, k+t] that one record has within the radius.
        ends: How many records V[k-1-t, k-1+t] has on each rung.
        first: The points of that many of them, in the order in which they join; within a rung in any order.
    """

    outliers: int
    most: NDArray[np.int64]
    ends: NDArray[np.int64]
    first: Callable[[int], _Floats]

    def __repr__(self) -> str:
        return "<Near>"  # what it holds is private


@np.errstate(all="ignore")
def outlier_degrees(X: object, *, radius: float, cap: int | None = None) -> NDArray[np.int64]:
    """How many other records each record has within the radius. PRIVATE: for the owner only.

    The decision is canonical: sum over the coordinates, in their order, of (x_a - y_a)**2 <= radius * radius, in float64.

    Args:
        X: A table of finite numbers.
        radius: The public radius.
        cap: Where counting may stop; None counts all.

    Raises:
        DataError: X is no such table.
        ParameterError: A parameter breaks its rule.

    Example:
        >>> outlier_degrees([[0.0], [1.0], [5.0]], radius=1).tolist()
        [1, 1, 0]
    """
    distance = check_radius(radius)
    if cap is not None:
        checks.whole(minimum=1, cap=cap)
    points = as_points(X)
    from sabun.outliers import tree

    limit = len(points) if cap is None else int(cap)
    return tree.neighbours_within(points, distance * distance, limit, listed=0).counts.astype(np.int64)


def discounts_for(*, n: int | None, d: int, k: int, beta: Fraction, relation: str) -> Discounts:
    """The public discounts of a table's shape."""
    cap = global_bound(n=n, d=d, k=k, relation=relation)
    replace = relation == "replace-one"
    return Discounts.of(beta=beta, cap=cap, slope=1, base=1 if replace else 0)


def region_discounts(*, n: int, d: int, k: int, beta: Fraction) -> Discounts:
    """The public discounts of a table's shape for counts by region."""
    return Discounts.of(beta=beta, cap=region_bound(n=n, d=d, k=k), slope=2, base=2)


def rungs_of(bands: Bands, cover: Cover, *, cap: int, relation: str, rung: int) -> int:
    """U_t of the ladder: a bound on the local sensitivity t steps away."""
    return _rung(bands.most, cap, relation, rung, cover.on(int(bands.gained_ends[rung])))


def _rung(most: NDArray[np.int64], cap: int, relation: str, t: int, held: int) -> int:
    """U_t from R of the band of new neighbours."""
    step = 1 if relation == "replace-one" else 0
    return min(cap, max(1, t + step + max(int(most[t]), held)))  # proof: rung


@np.errstate(all="ignore")  # A squared distance in units of a tiny radius may overflow: it is then simply far.
def measure(points: _Floats, *, k: int, radius: float, beta: Fraction, cover: str, relation: str) -> Measured:
    """The exact count, then S. PRIVATE."""
    n, d = points.shape
    public_n = n if relation == "replace-one" else None
    cap = global_bound(n=public_n, d=d, k=k, relation=relation)
    if cap == 0:
        return n, Fraction(0)
    discounts = discounts_for(n=public_n, d=d, k=k, beta=beta, relation=relation)
    bands = Bands(points, k=k, radius=radius, rungs=discounts.rungs)
    near = Near(outliers=bands.count, most=bands.most, ends=bands.gained_ends, first=lambda size: points[bands.gained[:size]])
    return near.outliers, smooth_of(near, discounts, radius=radius, cover=cover, cap=cap, relation=relation)


@np.errstate(all="ignore")
def smooth_of(near: Near, discounts: Discounts, *, radius: float, cover: str, cap: int, relation: str) -> Fraction:
    """S from what is known of the records whose degree is near k. PRIVATE."""
    sizes = near.ends.tolist()

    def height(t: int, held: int) -> int:
        return _rung(near.most, cap, relation, t, held)

    largest = _largest_useful(discounts, sizes, height)
    known = Known(Cover(cover, near.first(largest), radius), sizes)
    best = largest_product(
        discounts.numerators,
        lambda t: height(t, known.low[t]),
        lambda t: height(t, known.high[t]),
        known.learn,
    )
    return discounts.value(best)  # proof: maximum


def _largest_useful(discounts: Discounts, sizes: list[int], height: Callable[[int, int], int]) -> int:
    """The largest band whose cover may be asked for: the others cannot win whatever it says."""
    best = max(w * height(t, min(1, sizes[t])) for t, w in enumerate(discounts.numerators))
    return max((sizes[t] for t, w in enumerate(discounts.numerators) if w * height(t, sizes[t]) > best), default=0)


@np.errstate(all="ignore")
def measure_regions(
    points: _Floats, *, k: int, radius: float, beta: Fraction, cover: str
) -> tuple[NDArray[np.bool_], Fraction]:
    """Which records are outliers, then S for the vector of counts by region. PRIVATE."""
    n, d = points.shape
    cap = region_bound(n=n, d=d, k=k)
    discounts = region_discounts(n=n, d=d, k=k, beta=beta)
    bands = Bands(points, k=k, radius=radius, rungs=discounts.rungs)
    gained = Known(Cover(cover, points[bands.gained[: bands.gained_ends[-1]]], radius), bands.gained_ends.tolist())
    moved = Known(Cover(cover, points[bands.moved[: bands.moved_ends[-1]]], radius), bands.moved_ends.tolist())

    def height(t: int, new: int, old: int) -> int:
        return min(cap, 2 * t + 2 + max(int(bands.most[t]), old) + new)  # proof: region-rung

    def learn(t: int) -> None:
        gained.learn(t)
        moved.learn(t)

    best = largest_product(
        discounts.numerators,
        lambda t: height(t, gained.low[t], moved.low[t]),
        lambda t: height(t, gained.high[t], moved.high[t]),
        learn,
    )
    return bands.degrees < k, discounts.value(best)


def smooth_bound(
    X: object, *, k: int, radius: float, beta: AmountLike, cover: str = "degeneracy", relation: str = "replace-one"
) -> float:
    """A beta-smooth upper bound on the local sensitivity of the number of outliers. PRIVATE: for the owner only.

    Guarantee: S(X) >= |q(X) - q(X')| and S(X) <= exp(beta) S(X') for all neighbours X, X' (ladder.proof.md). With
    `cover="paper"` neither holds.

    Args:
        X: A table of finite numbers.
        k: Neighbours an inlier needs.
        radius: The public radius.
        beta: How fast the bound may change, > 0.
        cover: How the records one ball can hold are bounded: `degeneracy`, `link-core`, `exact` (exponential time), or `paper`
            for the printed formula.
        relation: `replace-one` or `add-remove`.

    Raises:
        DataError: X is no such table.
        ParameterError: A parameter breaks its rule.

    Example:
        >>> smooth_bound([[0.0], [2.0], [4.0]], k=1, radius=1, beta=1)
        3.0
        >>> round(smooth_bound([[0.0], [2.0], [4.0]], k=1, radius=1, beta=1, cover="paper"), 3)
        2.0
    """
    neighbours, distance, rate = check_k(k), check_radius(radius), exact_positive(beta, name="beta")
    checks.one_of((*COVERS, "paper"), cover=cover)
    checks.one_of(RELATIONS, relation=relation)
    points = as_points(X)
    if cover == "paper":
        checks.require(relation == "replace-one", "'replace-one' with the paper's formula", relation=relation)
        return printed_bound(points, k=neighbours, radius=distance, beta=float(rate))
    _, bound = measure(points, k=neighbours, radius=distance, beta=rate, cover=cover, relation=relation)
    return float(bound)


@np.errstate(all="ignore")
def local_bound(X: object, *, k: int, radius: float, cover: str = "degeneracy", relation: str = "replace-one") -> int:
    """An upper bound on how far one neighbour step from this table moves the number of outliers. PRIVATE.

    Args:
        X: A table of finite numbers.
        k: Neighbours an inlier needs.
        radius: The public radius.
        cover: `degeneracy`, `link-core` or `exact` (exponential time), or `paper` for Theorem 4 as printed, which holds and
            may be larger by one: it counts the record that moves among those it turns (exponential time too).
        relation: `replace-one` or `add-remove`.

    Example:
        >>> local_bound([[0.0], [0.0], [1.0], [2.0]], k=2, radius=1)
        3
    """
    neighbours, distance = check_k(k), check_radius(radius)
    checks.one_of((*COVERS, "paper"), cover=cover)
    checks.one_of(RELATIONS, relation=relation)
    points = as_points(X)
    if cover == "paper":
        checks.require(relation == "replace-one", "'replace-one' with the paper's formula", relation=relation)
        return local_candidates(points, k=neighbours, radius=distance).bound
    cap = global_bound(n=len(points) if relation == "replace-one" else None, d=points.shape[1], k=neighbours, relation=relation)
    if cap == 0:
        return 0
    bands = Bands(points, k=neighbours, radius=distance, rungs=1)
    ladder = Cover(cover, points[bands.gained[: bands.gained_ends[0]]], distance)
    return rungs_of(bands, ladder, cap=cap, relation=relation, rung=0)
