"""What the plain answers share: the terms, the people in question, one reading of the table, one release for all groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from sabun import checks
from sabun.asking import Ask, Question, Statistic, state_of
from sabun.errors import DataError
from sabun.privacy.pricing import Price
from sabun.release import Release
from sabun.summaries.people import EVERYBODY, People
from sabun.summaries.plan import SummaryPlan

__all__ = ["LARGEST", "Summary", "named", "of_group"]

LARGEST = 1 << 53
"""Where the size of a table is private, a count is cut off here: a public number that no table reaches."""


class Summary(Question):
    """A question whose answer is worked out from exact sums by group.

    A subclass says what it sums, what noise that needs, and what follows from the noisy sums.
    """

    word: ClassVar[str]
    """The last word of the kind of its releases, and the name of its answer in them."""

    schema: Any
    by: str | None
    where: Mapping[str, Any] | None
    confidence: float

    def _settled(self) -> tuple[Ask, People]:
        """Terms and people, checked."""
        good = checks.is_number(self.confidence) and 0 < self.confidence < 1
        # What is left of 1 is what reaches are worked out from: it too must be told apart from 0 and from 1, before any charge.
        good = good and 0 < self._miss < 1
        checks.require(good, "above 0 and below 1, by 1e-15 or more", confidence=self.confidence)
        ask = self._ask()
        return ask, People.of(self.schema, column=getattr(self, "column", None), by=self.by, where=self.where)

    @property
    def _miss(self) -> float:
        return 1 - float(self.confidence)

    def _released(
        self,
        state: Any,
        rows: int,
        draw: Callable[[Any], Mapping[str, Any]],
        *,
        ask: Ask,
        people: People,
        mechanism: str,
        facts: Mapping[str, Any],
        price: Price | None = None,
    ) -> Self:
        """Charges, draws, hands over; the number of rows is told only where it is public."""
        known = {"records": rows} if ask.relation == "replace-one" else {}
        release = ask.answer(
            lambda: draw(state),
            kind=f"summaries.{self.word}",
            promise=ask.guarantee(f"{self.word}: {mechanism}", assumptions=_assumptions(ask)),
            facts=people.facts() | {"confidence": float(self.confidence), "mechanism": mechanism, **known, **facts},
            subject=people.names,
            schema=self.schema,
            price=price,
        )
        return self._learned(release)

    def _read(self, X: object, statistic: Statistic[Any], ask: Ask, people: People) -> Any:
        """The exact sums of a table.

        Raises:
            DataError: It is no such table, or has no row though the number of rows is public.
        """
        ask.must_be_payable()
        state = state_of(statistic, X)
        if ask.relation == "replace-one" and not _rows(state):
            raise DataError("a table must have at least one row; got none.")
        return state

    def _learned(self, release: Release) -> Self:
        super()._learned(release)
        one = EVERYBODY if self.by is None else None
        setattr(self, f"{self.word}_", of_group(release[_plural(self.word)], one))
        self.interval_ = of_group(release["intervals"], one)
        return self

    def _plan(
        self, *, ask: Ask, people: People, n_records: int, halves: Sequence[float], whole: float, unit: str
    ) -> SummaryPlan:
        """A plan from half the widths of two intervals, the usual one and one that holds half of the time."""
        return SummaryPlan(
            question=self.word,
            epsilon=ask.epsilon,
            delta=ask.delta or ask.epsilon * 0,
            relation=ask.relation,
            n_records=n_records,
            groups=len(people.groups),
            reach=halves[0],
            usual_error=halves[1],
            confidence=float(self.confidence),
            unit=unit,
            useful=4 * halves[0] < whole,
        )

    @staticmethod
    def _per_group(n_records: int, people: People) -> int:
        checks.whole(minimum=1, n_records=n_records)
        return max(int(n_records) // len(people.groups), 1)


def named(people: People, answers: Sequence[Any]) -> dict[str, Any]:
    """Answers by the name of their group."""
    return dict(zip(people.groups, answers, strict=True))


def of_group(answers: Any, one: str | None) -> Any:
    """The answer of the one group there is; all of them by name where there are groups."""
    return answers[one] if one is not None else dict(answers)


def _plural(word: str) -> str:
    return {"quantiles": "quantiles", "histogram": "counts"}.get(word, f"{word}s")


def _rows(state: Any) -> int:
    return int(state.rows if hasattr(state, "rows") else state.sum())


def _assumptions(ask: Ask) -> tuple[str, ...]:
    return (
        f"each {ask.unit} has at most one row",
        "schema, groups, condition and confidence were fixed without looking at the table",
    )
