"""How a column is spread: counts in public bins, or of public labels, by public groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.privacy.amounts import AmountLike
from sabun.privacy.pricing import Price
from sabun.records import CategoryColumn, NumberColumn
from sabun.summaries.count import expected_count, with_ends
from sabun.summaries.laws import Noise
from sabun.summaries.sensitivity import of_cells
from sabun.summaries.statistic import CellCounts
from sabun.summaries.summary import Expected, Group, Recipe, Summary, Terms

__all__ = ["Bins", "Histogram"]

_MOST = 10**6
"""More bins than anybody reads, few enough for every computer's memory."""


@final
@dataclass(frozen=True)
class Bins:
    """Public bins: from one edge to the next, the upper one excluded but for the last; labels have edges around their codes."""

    edges: tuple[float, ...]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, column: object, bins: object) -> Self:
        """Bins of a column: its labels, so many of one width, or those with the given edges.

        Raises:
            ParameterError: They make no sense for such a column.
        """
        if isinstance(column, CategoryColumn):
            checks.require(bins is None, "left out for a column of labels", bins=bins)
            return cls(tuple(code - 0.5 for code in range(len(column.categories) + 1)), column.categories)
        assert isinstance(column, NumberColumn)
        if isinstance(bins, list | tuple | np.ndarray):
            good = 1 < len(bins) <= _MOST + 1 and all(checks.is_number(edge) and checks.is_finite(edge) for edge in bins)
            edges = tuple(float(edge) for edge in bins) if good else ()
            good = good and all(low < high for low, high in pairwise(edges))
            checks.require(good, "a whole number, or finite edges that grow", bins=bins)
        else:
            wanted = 10 if bins is None else bins
            checks.whole(minimum=1, bins=wanted)
            checks.require(wanted <= _MOST, f"at most {_MOST}", bins=wanted)  # type: ignore[operator]
            steps = np.arange(int(wanted) + 1) / int(wanted)  # type: ignore[call-overload]
            edges = (column.lower, *(column.lower + (column.upper - column.lower) * steps[1:-1]).tolist(), column.upper)
            checks.require(all(low < high for low, high in pairwise(edges)), "few enough for numbers to tell apart", bins=bins)
        return cls(edges, tuple(f"{low:.12g} to {high:.12g}" for low, high in pairwise(edges)))

    @property
    def count(self) -> int:
        """How many bins there are."""
        return len(self.labels)

    def index(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The bin of each cell, -1 for a cell in none."""
        found = np.searchsorted(np.array(self.edges), values, side="right") - 1
        found = np.where(values == self.edges[-1], self.count - 1, found)
        return np.where(found < self.count, found, -1).astype(np.int64)


@dataclass(kw_only=True, eq=False, repr=False)
class Histogram(Summary):
    """Counts of a column's cells in public bins, or of its labels, by group or under a condition.

    Guarantee: epsilon for all bins of all groups together (with a delta: epsilon and delta), intervals included. A person is in
    one bin of one group, so under add-remove every count has noise for 1, under replace-one for 2.

    Args:
        column: A column of the schema, of numbers or of labels.
        bins: For numbers: how many bins of one width between the bounds (10 when left out), or their edges; the upper edge of a
            bin belongs to the next one, that of the last bin to it. Cells outside the edges are in no bin.
        epsilon: As in `Count`, like all parameters below.
        delta: None or 0 for discrete Laplace noise; above 0 for discrete Gaussian noise.
        schema: What is publicly known about the columns.
        by: A column of labels: one histogram for each that the schema declares.
        where: A public condition.
        relation: `replace-one` or `add-remove`; the ledger's when left out.
        confidence: How often an interval holds the exact count, each by itself.
        ledger: The book to charge, or None.
        retry_key: Name under which the same question gets the same bytes for free.
        random_state: None for a private result; a whole number simulates.

    Attributes:
        histogram_: The private counts, one for each bin; with `by`, lists by label.
        interval_: Bounds for the exact counts, likewise.
        bins_: What the bins are called.
        guarantee_: What is promised.
        release_: The value with its guarantee.

    Example:
        >>> from sabun.records import Schema
        >>> schema = Schema.of_bounds({"age": (0, 100)})
        >>> model = Histogram(column="age", bins=2, epsilon=50, schema=schema, random_state=1).fit([[20], [30], [70]])
        >>> model.bins_, model.histogram_
        (('0 to 50', '50 to 100'), (2, 1))
    """

    word = "histogram"

    column: str
    bins: int | Sequence[float] | None = None
    delta: AmountLike | None = None

    @property
    def bins_(self) -> tuple[str, ...]:
        """What the bins are called."""
        return tuple(self.release_.provenance.parameters["bins"])

    def _recipe(self, terms: Terms) -> Recipe:
        people = terms.people
        checks.require(people.column is not None, "given", column=self.column)
        bins = Bins.of(people.schema[str(people.column)], self.bins)
        change = of_cells(bins.count * len(people.groups), terms.ask.relation)
        return _BinCounts(terms=terms, bins=bins, noise=Noise.of(terms.ask, change))


@final
@dataclass(frozen=True, kw_only=True)
class _BinCounts:
    """A `Recipe`: the number of cells in each bin of each group, with noise."""

    terms: Terms
    bins: Bins
    noise: Noise

    @property
    def sums(self) -> CellCounts:
        return CellCounts(people=self.terms.people, cells=self.bins)

    @property
    def mechanism(self) -> str:
        return self.noise.words

    @property
    def price(self) -> Price | None:
        return self.noise.price(self.terms.ask.relation)

    @property
    def facts(self) -> dict[str, Any]:
        people = self.terms.people
        edges = list(self.bins.edges) if isinstance(people.schema[str(people.column)], NumberColumn) else None
        return {"noise": self.noise.size, "bins": list(self.bins.labels), "edges": edges}

    def draw(self, state: NDArray[np.int64]) -> list[Group]:
        count, top, reach = self.bins.count, self.terms.most(self.sums.rows(state)), self.noise.reach(self.terms.miss)
        noisy = self.noise.added(state[:, :count].ravel().tolist(), self.terms.ask.coin)
        return [Group(*with_ends(noisy[at : at + count], reach, top)) for at in range(0, len(noisy), count)]

    def expected(self, size: int, rows: int) -> Expected:
        return expected_count(self.noise, self.terms, unit="records for each bin", rows=rows)
