"""How many rows there are: in public groups, under a public condition, or in a table whose size is private."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sabun.asking import Ask
from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.privacy.amounts import AmountLike
from sabun.records import Schema
from sabun.summaries.laws import Noise
from sabun.summaries.people import People, Where
from sabun.summaries.plan import SummaryPlan
from sabun.summaries.sensitivity import of_sizes, public_size
from sabun.summaries.statistic import PowerSums, Tally
from sabun.summaries.summary import LARGEST, Summary, named

__all__ = ["Count", "with_ends"]


class Count(Summary):
    """How many rows there are, by group or under a condition.

    Guarantee: epsilon for all groups together (with a delta: epsilon and delta), intervals included. Under add-remove a person
    is in one group, so every count has noise for 1 (parallel composition); under replace-one a person may leave one group for
    another, so with two groups or more it has noise for 2.

    Edge cases: under replace-one the number of rows is public, so a count needs `by` or `where`. A row whose label is not
    declared is in no group, unless the column declares what stands for it. A condition sees cells as the schema reads them:
    clipped to their bounds, unreadable ones as `missing`.

    Args:
        epsilon: The whole budget of the release.
        delta: None or 0 for discrete Laplace noise; above 0 for discrete Gaussian noise, which is smaller with many groups.
        schema: What is publicly known about the columns.
        by: A column of labels: one count for each that the schema declares.
        where: Columns with a range (low, high), low included, high not, None for no limit; or with labels.
        relation: `replace-one` (the number of rows is public) or `add-remove` (it is private); the ledger's when left out.
        confidence: How often an interval holds the exact count, each by itself.
        ledger: The book to charge, or None.
        retry_key: Name under which the same question gets the same bytes for free; only with a ledger.
        random_state: None draws from the operating system. A whole number gives a simulation that is NOT PRIVATE.

    Attributes:
        count_: The private count; with `by`, counts by label.
        interval_: Bounds for the exact count, likewise.
        guarantee_: What is promised.
        release_: The value with its guarantee.

    Raises:
        ParameterError: A parameter breaks its rule.

    Example:
        >>> schema = Schema.of_bounds({"age": (0, 120)})
        >>> old = Count(epsilon=50, schema=schema, where={"age": (65, None)}, random_state=1)
        >>> old.fit([[30], [70], [80]]).count_
        2
    """

    word = "count"

    def __init__(
        self,
        *,
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

    def _checked(self) -> tuple[Ask, People, Noise]:
        ask, people = self._settled()
        if public_size(people, ask.relation):
            raise ParameterError(
                "a count of all rows must be asked under add-remove; got replace-one, where the number of rows is public. "
                "Give by or where, or relation='add-remove'."
            )
        return ask, people, Noise.of(ask, of_sizes(people, ask.relation))

    def plan(self, *, n_records: int) -> SummaryPlan:
        """What to expect of a table of so many rows, from public facts alone."""
        ask, people, noise = self._checked()
        halves = [float(min(noise.reach(miss), LARGEST)) for miss in (self._miss, 0.5)]
        size = self._per_group(n_records, people)
        return self._plan(ask=ask, people=people, n_records=n_records, halves=halves, whole=size, unit="rows")

    def fit(self, X: object, y: object = None) -> Self:
        """Charges the ledger, counts, adds noise.

        Args:
            X: A 2-D array or list of rows (columns in the schema's order), a frame, the name of a CSV or Parquet file, or a
                stream of these.
            y: Ignored.

        Raises:
            DataError: X is no table of this kind.
            BudgetExceeded: The ledger refuses; nothing was released.
            SimulatedError: `random_state` was given with a ledger.
        """
        del y
        ask, people, noise = self._checked()
        state = self._read(X, PowerSums(people=people, ruler=None), ask, people)
        top = state.rows if ask.relation == "replace-one" else LARGEST
        reach = noise.reach(self._miss)

        def draw(state: Tally) -> dict[str, Any]:
            noisy = noise.added([size for size, _, _ in state.groups], ask.coin)
            counts, intervals = with_ends(noisy, reach, top)
            return {"counts": named(people, counts), "intervals": named(people, intervals)}

        facts = {"noise": noise.size}
        price = noise.price(ask.relation)
        return self._released(state, state.rows, draw, ask=ask, people=people, mechanism=noise.words, facts=facts, price=price)


def with_ends(noisy: Sequence[int], reach: int, top: int) -> tuple[list[int], list[list[int]]]:
    """Counts moved to the nearest possible ones, each with the interval around what was drawn."""

    def possible(count: int) -> int:
        return min(max(count, 0), top)

    return [possible(count) for count in noisy], [[possible(count - reach), possible(count + reach)] for count in noisy]
