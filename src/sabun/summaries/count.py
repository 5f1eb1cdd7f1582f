"""How many rows there are: in public groups, under a public condition, or in a table whose size is private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from sabun.errors import ParameterError
from sabun.privacy.amounts import AmountLike
from sabun.privacy.pricing import Price
from sabun.summaries.laws import Noise
from sabun.summaries.sensitivity import of_sizes, public_size
from sabun.summaries.statistic import PowerSums, Tally
from sabun.summaries.summary import LARGEST, Expected, Group, Recipe, Summary, Terms

__all__ = ["Count", "expected_count", "with_ends"]


@dataclass(kw_only=True, eq=False, repr=False)
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
        >>> from sabun.records import Schema
        >>> schema = Schema.of_bounds({"age": (0, 120)})
        >>> old = Count(epsilon=50, schema=schema, where={"age": (65, None)}, random_state=1)
        >>> old.fit([[30], [70], [80]]).count_
        2
    """

    word = "count"

    delta: AmountLike | None = None

    def _recipe(self, terms: Terms) -> Recipe:
        if public_size(terms.people, terms.ask.relation):
            raise ParameterError(
                "a count of all rows must be asked under add-remove; got replace-one, where the number of rows is public. "
                "Give by or where, or relation='add-remove'."
            )
        return _Sizes(terms=terms, noise=Noise.of(terms.ask, of_sizes(terms.people, terms.ask.relation)))


@final
@dataclass(frozen=True, kw_only=True)
class _Sizes:
    """A `Recipe`: the size of each group, with noise."""

    terms: Terms
    noise: Noise

    @property
    def sums(self) -> PowerSums:
        return PowerSums(people=self.terms.people, ruler=None)

    @property
    def mechanism(self) -> str:
        return self.noise.words

    @property
    def price(self) -> Price | None:
        return self.noise.price(self.terms.ask.relation)

    @property
    def facts(self) -> dict[str, Any]:
        return {"noise": self.noise.size}

    def draw(self, state: Tally) -> list[Group]:
        noisy = self.noise.added([size for size, _, _ in state.groups], self.terms.ask.coin)
        ends = with_ends(noisy, self.noise.reach(self.terms.miss), self.terms.most(state.rows))
        return [Group(*pair) for pair in zip(*ends, strict=True)]

    def expected(self, size: int, rows: int) -> Expected:
        return expected_count(self.noise, self.terms, unit="rows", rows=rows)


def expected_count(noise: Noise, terms: Terms, *, unit: str, rows: int) -> Expected:
    """What to expect of one noisy count; in a kind table it is one of all rows."""
    reach, low, usual, high = (float(min(noise.reach(miss), LARGEST)) for miss in (terms.miss, 0.9, 0.5, 0.1))
    return Expected(reach, unit, (((low, usual, high), ()),), rows)


def with_ends(noisy: Sequence[int], reach: int, top: int) -> tuple[list[int], list[list[int]]]:
    """Counts moved to the nearest possible ones, each with the interval around what was drawn."""

    def possible(count: int) -> int:
        return min(max(count, 0), top)

    return [possible(count) for count in noisy], [[possible(count - reach), possible(count + reach)] for count in noisy]
