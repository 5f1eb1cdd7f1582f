"""The most one record can ever change the count, from public facts alone; proved in kissing.proof.md.

Notation: kappa(d) is an upper bound on how many points within a radius of one place can be pairwise farther apart than it, both
decided in floating point. The kissing number bounds those that have a direction; one more may sit on the place itself.
"""

from __future__ import annotations

from sabun import checks
from sabun.outliers.points import check_k

__all__ = ["RELATIONS", "global_bound", "kissing_bound", "region_bound"]

RELATIONS = ("replace-one", "add-remove")

# Upper bounds for d = 1 .. 24: exact for 1, 2, 3, 4, 8, 24; the others from Mittelmann & Vallentin 2010, table 1, rounded down
# (their bounds are not within 1e-3 below a whole number, so distances rounded in the last digit cannot lift them over it).
_KISSING = (
    *(2, 6, 12, 24, 44, 78, 134, 240, 364, 554, 870, 1357),
    *(2069, 3183, 4866, 7355, 11072, 16572, 24812, 36764, 54584, 82340, 124416, 196560),
)  # proof: kissing-table


def kissing_bound(d: int) -> int:
    """At least as many as points within a radius of one place in R^d can be, pairwise farther apart than that radius.

    From three dimensions on it is one more than the kissing number: distances are rounded, so a point within a rounding of the
    place can be "farther" from all points around it than the place is.

    Args:
        d: Number of dimensions, at least 1.

    Example:
        >>> [kissing_bound(d) for d in (1, 2, 3, 8)]
        [2, 6, 13, 241]
    """
    checks.whole(minimum=1, d=d)
    dimensions = int(d)
    if dimensions <= len(_KISSING):
        return _KISSING[dimensions - 1] + (dimensions > 2)  # proof: one-in-the-middle
    return (dimensions - 1) << dimensions  # proof: thirty-degree-caps


def global_bound(*, n: int | None, d: int, k: int, relation: str = "replace-one") -> int:
    """How far one neighbour step can move the number of outliers, over all tables.

    Args:
        n: Number of records, public under replace-one; None under add-remove, where it is private.
        d: Number of dimensions.
        k: Neighbours an inlier needs.
        relation: `replace-one` or `add-remove`.

    Example:
        >>> global_bound(n=1000, d=2, k=5), global_bound(n=5, d=2, k=5), global_bound(n=None, d=2, k=5, relation="add-remove")
        (31, 0, 30)
    """
    neighbours = check_k(k)
    checks.one_of(RELATIONS, relation=relation)
    if relation == "add-remove":
        checks.require(n is None, "None under add-remove, where the number of records is private", n=n)
        return neighbours * kissing_bound(d)  # proof: cap-add-remove
    checks.whole(minimum=1, n=n)
    assert n is not None
    return 0 if n <= neighbours else min(int(n), neighbours * kissing_bound(d) + 1)  # proof: cap-replace-one


def region_bound(*, n: int, d: int, k: int) -> int:
    """How far one replacement can move the vector of counts by region, in the sum of absolute changes.

    Example:
        >>> region_bound(n=1000, d=1, k=2), region_bound(n=2, d=1, k=2)
        (10, 2)
    """
    neighbours = check_k(k)
    checks.whole(minimum=1, n=n)
    return 2 if n <= neighbours else min(int(n) + 1, 2 * neighbours * kissing_bound(d) + 2)  # proof: cap-regions
