"""The public set of columns in which most records are outliers, chosen privately; proved in subspace.proof.md.

Notation: q_s is the number of outliers in subspace s, U_t its ladder, B(tau) the integral of U from 0 to tau. The dampened
score D_s = B^-1(q_s) moves by at most 1 between neighbours (local dampening, Farias et al. 2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.asking import Ask, renamed
from sabun.errors import DataError
from sabun.outliers.kissing import global_bound
from sabun.outliers.ladder import Bands, Cover
from sabun.outliers.memory import check_memory
from sabun.outliers.plan import ChoicePlan, plan_choice
from sabun.outliers.points import check_columns, check_radius, read_views
from sabun.outliers.question import OutlierQuestion
from sabun.outliers.sensitivity import rungs_of
from sabun.outliers.settings import assumptions_for, load_loops
from sabun.privacy.noise import Coin, bernoulli_exp, uniform_below
from sabun.records.persons import facts_of

__all__ = ["SubspaceChoice", "dampened_score", "permute_and_flip"]

_Floats = NDArray[np.float64]


@renamed(key="retry_key")
@dataclass(kw_only=True, eq=False, repr=False)
class SubspaceChoice(OutlierQuestion):
    """Which of some public sets of columns has most outliers.

    Guarantee: epsilon (pure) under replace-one, for the chosen name alone; nothing else leaves.

    Args:
        subspaces: Names with their columns (numbers or names).
        k: Neighbours an inlier needs, >= 1.
        radius: One public radius, or one for each name.
        epsilon: The whole budget of the release.
        cover: As in `OutlierCount`.
        schema: Public bounds of the columns.
        ledger: The book to charge, or None.
        retry_key: As in `OutlierCount`.
        random_state: None draws from the operating system. A whole number gives a simulation that is NOT PRIVATE.

    Attributes:
        choice_: The chosen name.
        guarantee_: What is promised.
        release_: The value with its guarantee.

    Example:
        >>> table = np.zeros((300, 2))
        >>> table[:60, 1] = 100 * np.arange(60)
        >>> sides = {"first": ["x0"], "second": ["x1"]}
        >>> SubspaceChoice(subspaces=sides, k=5, radius=1, epsilon=50, random_state=1).fit(table).choice_
        'second'
    """

    relations = ("replace-one",)

    subspaces: Mapping[str, Sequence[int | str]]
    radius: float | Mapping[str, float]

    def _checked(self) -> Ask:
        good = isinstance(self.subspaces, Mapping) and len(self.subspaces) > 1
        good = good and all(isinstance(name, str) and name for name in self.subspaces)
        checks.require(good, "a mapping from at least two names to columns", subspaces=self.subspaces)
        for name, columns in self.subspaces.items():
            checks.require(check_columns(columns) is not None, "a list of columns", **{f"subspace {name!r}": columns})
            check_radius(self._radius_of(name))
        return self._terms()

    def _radius_of(self, name: str) -> object:
        return self.radius.get(name) if isinstance(self.radius, Mapping) else self.radius

    def plan(self, *, n_records: int, dimensions: int) -> ChoicePlan:
        """How well the best subspace stands out in a table of that shape, from public facts alone.

        Args:
            n_records: Number of records.
            dimensions: Number of coordinates of the largest subspace.
        """
        ask = self._checked()
        shape = {"n_records": n_records, "dimensions": dimensions, "subspaces": len(self.subspaces)}
        return plan_choice(epsilon=ask.epsilon, k=int(self.k), **shape)

    def fit(self, X: object, y: object = None) -> Self:
        """Charges the ledger, scores every subspace, chooses one.

        Args:
            X: As in `OutlierCount.fit`.
            y: Ignored.

        Raises:
            DataError: X is no table of this kind.
        """
        del y
        ask = self._checked()
        ask.must_be_payable()
        choices = [check_columns(columns) for columns in self.subspaces.values()]
        own, points = read_views(X, schema=self.schema, choices=choices)  # once: a second reading could give another table
        views = dict(zip(self.subspaces, points, strict=True))
        n = len(own.values)
        if not n:
            raise DataError("a table must have at least one row; got none.")
        load_loops()
        for d in {view.shape[1] for view in points}:
            rungs = _public_rungs(n, global_bound(n=n, d=d, k=int(self.k)))
            check_memory(n=n, d=d, limit=int(self.k) + rungs, cover=self.cover)
        self._learned(
            ask.answer(
                lambda: {"choice": self._draw(views, ask.epsilon, ask.coin)},
                kind="outliers.subspace",
                promise=ask.guarantee(
                    "choice of a subspace: local dampening, permute and flip",
                    assumptions=assumptions_for(X, unit=ask.unit, bounded=self.schema is not None),
                ),
                facts={
                    "k": int(self.k),
                    "radius": {name: check_radius(self._radius_of(name)) for name in views},
                    "records": n,
                    "subspaces": {name: [str(column) for column in columns] for name, columns in self.subspaces.items()},
                    "cover": self.cover,
                    **facts_of(X),
                },
                subject=tuple(views),
                schema=self.schema,
            )
        )
        self.choice_: str = self.release_["choice"]
        return self

    def _draw(self, views: dict[str, _Floats], epsilon: Fraction, coin: Coin) -> str:
        scores = [
            dampened_score(points, k=int(self.k), radius=check_radius(self._radius_of(name)), cover=self.cover)
            for name, points in views.items()
        ]
        return list(views)[permute_and_flip(scores, epsilon=epsilon, coin=coin)]


def _public_rungs(n: int, cap: int) -> int:
    """How many rungs sum to n, whatever the table; none where the count is constant."""
    rungs, reached = 0, 0
    while cap and reached < n:
        rungs, reached = rungs + 1, reached + min(cap, rungs + 1)  # proof: public-rungs
    return rungs


@np.errstate(all="ignore")
def dampened_score(points: _Floats, *, k: int, radius: float, cover: str) -> Fraction:
    """D of the number of outliers: how many rungs of the ladder fit under it, exactly. PRIVATE."""
    n, d = points.shape
    cap = global_bound(n=n, d=d, k=k)
    if cap == 0:
        return Fraction(0)  # proof: constant-score
    rungs = _public_rungs(n, cap)
    bands = Bands(points, k=k, radius=radius, rungs=rungs)
    ladder = Cover(cover, points[bands.gained[: bands.gained_ends[-1]]], radius)
    left = bands.count
    for rung in range(rungs):
        height = rungs_of(bands, ladder, cap=cap, relation="replace-one", rung=rung)
        if left <= height:
            return rung + Fraction(left, height)  # proof: inverse-integral
        left -= height
    return Fraction(rungs)


def permute_and_flip(scores: Sequence[Fraction], *, epsilon: Fraction, coin: Coin) -> int:
    """An index, epsilon-privately when every score moves by at most 1: the first in random order that wins a toss.

    Guarantee: McKenna & Sheldon 2020, Theorem 1; each toss is exact.
    """
    best, waiting = max(scores), list(range(len(scores)))
    while True:
        place = waiting.pop(uniform_below(len(waiting), coin=coin))  # proof: permute
        if bernoulli_exp(epsilon * (best - scores[place]) / 2, coin=coin):  # proof: flip
            return place
