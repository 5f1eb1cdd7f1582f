"""How a column is spread: counts in public bins, or of public labels, by public groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.asking import Ask
from sabun.ledger import Ledger
from sabun.privacy.amounts import AmountLike
from sabun.records import CategoryColumn, NumberColumn, Schema
from sabun.summaries.count import with_ends
from sabun.summaries.laws import Noise
from sabun.summaries.people import People, Where
from sabun.summaries.plan import SummaryPlan
from sabun.summaries.sensitivity import of_cells
from sabun.summaries.statistic import CellCounts
from sabun.summaries.summary import LARGEST, Summary, named

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
        >>> schema = Schema.of_bounds({"age": (0, 100)})
        >>> model = Histogram(column="age", bins=2, epsilon=50, schema=schema, random_state=1).fit([[20], [30], [70]])
        >>> model.bins_, model.histogram_
        (('0 to 50', '50 to 100'), (2, 1))
    """

    word = "histogram"

    def __init__(
        self,
        *,
        column: str,
        bins: int | Sequence[float] | None = None,
        epsilon: AmountLike,
        delta: AmountLike | None = None,
        schema: Schema,
        by: str | None = None,
        where: Where | None = None,
        relation: str | None = None,
        confidence: float = 0.95,
        ledger: Ledger | None = None,
        retry_key: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.column = column
        self.bins = bins
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.by = by
        self.where = where
        self.relation = relation
        self.confidence = confidence
        self.ledger = ledger
        self.retry_key = retry_key
        self.random_state = random_state
        self._checked()

    def _checked(self) -> tuple[Ask, People, Bins, Noise]:
        ask, people = self._settled()
        checks.require(people.column is not None, "given", column=self.column)
        bins = Bins.of(people.schema[str(people.column)], self.bins)
        return ask, people, bins, Noise.of(ask, of_cells(bins.count * len(people.groups), ask.relation))

    def plan(self, *, n_records: int) -> SummaryPlan:
        """What to expect of one bin of a table of so many rows, from public facts alone."""
        ask, people, bins, noise = self._checked()
        halves = [float(min(noise.reach(miss), LARGEST)) for miss in (self._miss, 0.5)]
        size = max(self._per_group(n_records, people) // bins.count, 1)
        return self._plan(ask=ask, people=people, n_records=n_records, halves=halves, whole=size, unit="rows for each bin")

    def fit(self, X: object, y: object = None) -> Self:
        """Charges the ledger, counts, adds noise.

        Args:
            X: As in `Count.fit`.
            y: Ignored.

        Raises:
            DataError: X is no table of this kind.
            BudgetExceeded: The ledger refuses; nothing was released.
            SimulatedError: `random_state` was given with a ledger.
        """
        del y
        ask, people, bins, noise = self._checked()
        state = self._read(X, CellCounts(people=people, cells=bins), ask, people)
        rows = int(state.sum())
        top, reach = rows if ask.relation == "replace-one" else LARGEST, noise.reach(self._miss)

        def draw(state: NDArray[np.int64]) -> dict[str, Any]:
            noisy = noise.added(state[:, : bins.count].ravel().tolist(), ask.coin)
            lines = [with_ends(noisy[at : at + bins.count], reach, top) for at in range(0, len(noisy), bins.count)]
            counts, intervals = ([line[part] for line in lines] for part in (0, 1))
            return {"counts": named(people, counts), "intervals": named(people, intervals)}

        edges = list(bins.edges) if isinstance(self.schema[str(people.column)], NumberColumn) else None
        facts = {"noise": noise.size, "bins": list(bins.labels), "edges": edges}
        price = noise.price(ask.relation)
        self._released(state, rows, draw, ask=ask, people=people, mechanism=noise.words, facts=facts, price=price)
        self.bins_ = bins.labels
        return self
