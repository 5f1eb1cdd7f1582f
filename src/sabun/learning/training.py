"""What every way of training is given, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun.learning.features import Features, Labels
from sabun.learning.network import Floats, Network
from sabun.privacy import Guarantee
from sabun.privacy.noise import Coin

__all__ = ["Data", "Method", "Problem", "Progress", "promise", "unheard"]

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share done (0 to 1) and a few words."""


def unheard(share: float, words: str) -> None:
    """A progress that nobody watches."""
    del share, words


@final
@dataclass(frozen=True, kw_only=True)
class Data:
    """The private rows.

    Args:
        rows: Encoded inputs.
        labels: Positions in the list of classes; -1 for a label outside it.
        table: The table as `Schema.encode` gives it, where a method needs it; else None.
    """

    rows: Floats = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    table: Floats | None = field(default=None, repr=False)

    def labelled(self) -> Data:
        """Only the rows whose label is in the list; each row is kept or left out by itself."""
        known = self.labels >= 0
        if known.all():
            return self
        return Data(rows=self.rows[known], labels=self.labels[known], table=None if self.table is None else self.table[known])


@final
@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is public about one training run.

    Args:
        features: How rows become inputs.
        labels: The classes.
        epsilon: As asked for.
        delta: As asked for; 0 for pure methods.
        relation: Under which the promise is made.
        unit: Whose data one neighbour step changes.
        n_public: The number of records where that is public, else None.
    """

    features: Features
    labels: Labels
    epsilon: Fraction
    delta: Fraction
    relation: str
    unit: str
    n_public: int | None

    def network(self, hidden: tuple[int, ...]) -> Network:
        """The network between these inputs and classes."""
        return Network(sizes=(self.features.width, *hidden, len(self.labels.classes)))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What every promise about this run rests on."""
        words = [
            f"each {self.unit} has at most one row",
            "the schema and all training settings were chosen without looking at the data",
        ]
        if not self.labels.declared:
            words.append("the list of class labels is public (it was taken from y, since classes was not given)")
        if self.n_public is not None:
            words.append("the number of records is public")
        return tuple(words)


class Method(Protocol):
    """One way of training: complete before any private row is touched."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise about everything `train` returns."""

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise; see `account.recompute`."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings, for the release."""

    def train(self, data: Data, *, coin: Coin, progress: Progress) -> Mapping[str, Any]:
        """Tosses the coin; returns the released values, `weights` among them."""


def promise(problem: Problem, *, mechanism: str, more: tuple[str, ...] = (), **amounts: Any) -> Guarantee:
    """A guarantee for a run of that problem."""
    return Guarantee(
        relation=problem.relation, unit=problem.unit, mechanism=mechanism, assumptions=(*problem.assumptions, *more), **amounts
    )
