"""What sum, mean and variance share: one column of numbers, read off at public marks and summed by group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

from sabun.asking import Ask
from sabun.ledger import Ledger
from sabun.privacy.amounts import AmountLike
from sabun.records import Schema
from sabun.summaries.laws import Noise
from sabun.summaries.people import People, Where
from sabun.summaries.plan import SummaryPlan
from sabun.summaries.ruler import Ruler, number
from sabun.summaries.sensitivity import Change, public_size
from sabun.summaries.statistic import Moments, PowerSums, Tally
from sabun.summaries.summary import Summary, named

__all__ = ["Moment", "Settled"]

Group = tuple[float | None, list[float], int | None]
"""The answer for a group, its interval, its noisy size where that is private."""


class Settled:
    """The public choices of one question about one column."""

    def __init__(self, ask: Ask, people: People, change: Change, ruler: Ruler) -> None:
        self.ask, self.people, self.ruler = ask, people, ruler
        self.public = public_size(people, ask.relation)
        self.noise = Noise.of(ask, change)


class Moment(Summary):
    """A question about the sums of one column; see `Sum`, `Mean` and `Variance`."""

    def __init__(
        self,
        *,
        column: str,
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

    @abstractmethod
    def _change(self, people: People, relation: str, ruler: Ruler) -> Change:
        """What one person can change in `_numbers`, over all groups."""

    @abstractmethod
    def _numbers(self, moments: Moments, how: Settled) -> list[int]:
        """The whole numbers of a group that get noise; as many whatever the group."""

    @abstractmethod
    def _answer(self, noisy: Sequence[int], rows: int, how: Settled, miss: float) -> Group:
        """What the noisy numbers of a group say; `rows` is used only where it is public."""

    @abstractmethod
    def _extent(self, size: int, how: Settled) -> Fraction:
        """How far apart two answers about a group of that size can be."""

    def _checked(self) -> Settled:
        ask, people = self._settled()
        ruler = Ruler.of(people.summed)
        return Settled(ask, people, self._change(people, ask.relation, ruler), ruler)

    def plan(self, *, n_records: int) -> SummaryPlan:
        """What to expect of a table of so many rows, from public facts alone; groups are taken to be of one size."""
        how = self._checked()
        size, width = self._per_group(n_records, how.people), how.ruler.steps
        spread_evenly = self._numbers((size, size * width // 2, size * width * width // 3), how)
        ends = [self._answer(spread_evenly, n_records, how, miss)[1] for miss in (self._miss, 0.5)]
        return self._plan(
            ask=how.ask,
            people=how.people,
            n_records=n_records,
            halves=[high / 2 - low / 2 for low, high in ends],
            whole=number(self._extent(size, how)),
            unit=f"units of {self.column!r}" + (", squared" if self.word == "variance" else ""),
        )

    def fit(self, X: object, y: object = None) -> Self:
        """Charges the ledger, sums, adds noise.

        Args:
            X: As in `Count.fit`.
            y: Ignored.

        Raises:
            DataError: X is no table of this kind.
            BudgetExceeded: The ledger refuses; nothing was released.
            SimulatedError: `random_state` was given with a ledger.
        """
        del y
        how = self._checked()
        state = self._read(X, PowerSums(people=how.people, ruler=how.ruler), how.ask, how.people)

        def draw(state: Tally) -> dict[str, Any]:
            return self._drawn(state, how)

        facts = {"noise": how.noise.size, "step": how.ruler.step}
        price, words = how.noise.price(how.ask.relation), how.noise.words
        return self._released(
            state, state.rows, draw, ask=how.ask, people=how.people, mechanism=words, facts=facts, price=price
        )

    def _drawn(self, state: Tally, how: Settled) -> dict[str, Any]:
        by_group = [self._numbers(moments, how) for moments in state.groups]
        noisy = how.noise.added([each for group in by_group for each in group], how.ask.coin)
        count = len(by_group[0])
        parts = [noisy[start : start + count] for start in range(0, len(noisy), count)]
        found = [self._answer(part, state.rows, how, self._miss) for part in parts]
        value = {f"{self.word}s": named(how.people, [group[0] for group in found])}
        value["intervals"] = named(how.people, [group[1] for group in found])
        if found[0][2] is not None:
            value["sizes"] = named(how.people, [group[2] for group in found])
        return value
