"""How much one person can change the whole numbers behind an answer, for all groups together; exact, each bound is reached.

Notation: a cell of a person in question is a mark k from 0 to K. Under add-remove one person enters or leaves one group. Under
replace-one a person keeps the group and changes the mark, or leaves one group (or nobody) for another. A group's size is public
only where there is one group of everybody, under replace-one.

    numbers by group                 add-remove       replace-one            replace-one, everybody
                                     L1     L2^2      L1        L2^2         L1        L2^2
    size                             1      1         2 (1)     2 (1)        constant
    sum of a = first + k, |a| <= M   M      M^2       2M        max(K,sqrt2 M)^2   K   K^2
                                                      (one group: max(K, M))
    sum k, sum K-k                   K      K^2       2K        2K^2         (sum k alone) K, K^2
    sum k^2, 2k(K-k), (K-k)^2        K^2    K^4       2K^2      2K^4         (K sum c, sum c^2; c = 2k-K) 9K^2/4, 4K^4

(in brackets: one group). sensitivity.proof.md works them out.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from sabun.summaries.people import People
from sabun.summaries.ruler import Ruler

__all__ = ["Change", "cost_of_ranks", "of_cells", "of_moments", "of_sides", "of_sizes", "of_sums", "public_size"]


class Change(NamedTuple):
    """The most that one person can change: in the L1 norm, and squared in the Euclidean norm."""

    l1: Fraction
    l2_squared: Fraction


def public_size(people: People, relation: str) -> bool:
    """Whether the size of the one group is the public number of rows."""
    return people.everybody and relation == "replace-one"


def of_cells(cells: int, relation: str) -> Change:
    """Counts in that many disjoint cells."""
    moved = 2 if relation == "replace-one" and cells > 1 else 1  # proof: moved-cells
    return Change(Fraction(moved), Fraction(moved))


def of_sizes(people: People, relation: str) -> Change:
    """Sizes of the groups."""
    return of_cells(len(people.groups), relation)


def of_sums(people: People, relation: str, ruler: Ruler) -> Change:
    """Sums of first + k by group; of k alone where the size is public."""
    width, most = Fraction(ruler.steps), Fraction(ruler.largest)
    if relation == "add-remove":
        return Change(most, most**2)
    if public_size(people, relation):
        return Change(width, width**2)  # proof: only-the-mark
    if len(people.groups) == 1:
        return Change(max(width, most), max(width, most) ** 2)
    return Change(2 * most, max(width**2, 2 * most**2))  # proof: two-groups


def of_sides(people: People, relation: str, ruler: Ruler) -> Change:
    """Sums of k and of K - k by group; of k alone where the size is public."""
    width = Fraction(ruler.steps)
    if relation == "add-remove" or public_size(people, relation):
        return Change(width, width**2)  # proof: two-sides
    return Change(2 * width, 2 * width**2)


def of_moments(people: People, relation: str, ruler: Ruler) -> Change:
    """Sums of k^2, 2k(K - k), (K - k)^2 by group; where the size is public, of K c and c^2 with c = 2k - K."""
    square = Fraction(ruler.steps) ** 2
    if relation == "add-remove":
        return Change(square, square**2)
    if public_size(people, relation):
        return Change(Fraction(9, 4) * square, 4 * square**2)  # proof: parabola
    return Change(2 * square, 2 * square**2)


def cost_of_ranks(people: People, relation: str, share: Fraction) -> Fraction:
    """The most by which one person moves the distances between a rank of q n and its candidates, over all groups."""
    joined = max(share, 1 - share)  # proof: joined-rank
    if relation == "add-remove":
        return joined
    return Fraction(1) if len(people.groups) == 1 else max(Fraction(1), 2 * joined)  # proof: two-ranks
