"""What the plain answers share: the terms, the people in question, one reading of the table, one release for all groups."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self, final

from sabun import checks
from sabun.asking import Ask, Forecast, Question, state_of
from sabun.errors import DataError, ParameterError
from sabun.ledger import Ledger
from sabun.privacy.amounts import AmountLike
from sabun.privacy.pricing import Price
from sabun.records import Persons, Schema
from sabun.records.persons import assumptions_of, facts_of, terms_of
from sabun.summaries.kinds import ANSWERS
from sabun.summaries.people import EVERYBODY, People, Where
from sabun.summaries.plan import SummaryPlan
from sabun.summaries.statistic import Sums

__all__ = ["LARGEST", "Expected", "Group", "Read", "Recipe", "Summary", "Terms"]

LARGEST = 1 << 53
"""Where the size of a table is private, a count is cut off here: a public number that no table reaches."""


@final
@dataclass(frozen=True, kw_only=True)
class Terms:
    """What every question settles before its own parameters; public.

    Args:
        ask: The terms of the release.
        people: Groups and condition.
        miss: How often an interval may leave the exact answer out.
    """

    ask: Ask
    people: People
    miss: float

    @property
    def counted(self) -> bool:
        """Whether the number of rows is public."""
        return self.ask.relation == "replace-one"

    def most(self, rows: int) -> int:
        """The largest possible size of a group."""
        return rows if self.counted else LARGEST


class Group(NamedTuple):
    """What a release says of one group; public once drawn.

    Args:
        found: The answer, or several.
        interval: Its bounds, or those of each.
        size: The noisy size of the group, where the answer came with one.
    """

    found: Any
    interval: Any
    size: int | None = None


class Expected(NamedTuple):
    """What a plan says of a group, all in one unit.

    Args:
        reach: Half the width of its interval.
        unit: What all of it is measured in.
        errors: Errors that are exceeded in nine, five and one of ten runs, with what is assumed about the table: once, or at
            best and at worst.
        most: How far apart two answers about the group can be, in a table that is as kind as can be.
        fewer: What comes of half as many records, in words; empty where errors do not depend on how many there are.
    """

    reach: float
    unit: str
    errors: tuple[tuple[tuple[float, float, float], tuple[str, ...]], ...]
    most: float
    fewer: str = ""


class Read(NamedTuple):
    """A table summed up, for whoever looks at a plan before `fit` charges for it. PRIVATE.

    Args:
        sums: What was summed up.
        state: The exact sums.
        rows: How many rows there are; None where that is private.
        persons: Several rows per person, if the table was one of these.
    """

    sums: Sums
    state: Any
    rows: int | None
    persons: Persons | None

    def __repr__(self) -> str:
        return "<Read>"  # what it holds is private


class Recipe(Protocol):
    """How one question is answered, all settled; public."""

    @property
    def terms(self) -> Terms:
        """The terms."""
        ...

    @property
    def sums(self) -> Sums:
        """What is summed up; a `Statistic`."""
        ...

    @property
    def mechanism(self) -> str:
        """The noise, in words."""
        ...

    @property
    def price(self) -> Price | None:
        """What is drawn, for a ledger with a Rényi order; None where epsilon and delta tell it as well."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """The public choices of this question alone."""
        ...

    def draw(self, state: Any) -> list[Group]:
        """The noisy answers, one for each group."""
        ...

    def expected(self, size: int, rows: int) -> Expected:
        """What to expect of a group of that size in a table of so many rows."""
        ...


@dataclass(kw_only=True, eq=False, repr=False)
class Summary(Question):
    """A question whose answer is worked out from exact sums by group: terms and people, with a recipe inside.

    A subclass writes down what it asks beyond the parameters below, and makes its recipe.
    """

    word: ClassVar[str]
    """The last word of the kind of its releases, and the name of its answer."""

    epsilon: AmountLike
    schema: Schema
    by: str | None = None
    where: Where | None = None
    relation: str | None = None
    confidence: float = 0.95
    ledger: Ledger | None = None
    retry_key: str | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        self._settled()

    @abstractmethod
    def _recipe(self, terms: Terms) -> Recipe:
        """How this question is answered on these terms; checks what it asks beyond them."""

    def _settled(self) -> Recipe:
        good = checks.is_number(self.confidence) and 0 < self.confidence < 1
        # What is left of 1 is what reaches are worked out from: it too must be told apart from 0 and from 1, before any charge.
        miss = 1 - float(self.confidence) if good else 0.0
        checks.require(0 < miss < 1, "above 0 and below 1, by 1e-15 or more", confidence=self.confidence)
        ask = self._ask()
        people = People.of(self.schema, column=getattr(self, "column", None), by=self.by, where=self.where)
        return self._recipe(Terms(ask=ask, people=people, miss=miss))

    def plan(self, *, n_records: int) -> SummaryPlan:
        """What to expect of a table of so many rows, from public facts alone.

        Groups are taken to be of one size, a condition to hold for all records; what is foretold says so where it matters.
        """
        recipe = self._settled()
        ask, groups = recipe.terms.ask, len(recipe.terms.people.groups)
        checks.whole(minimum=1, n_records=n_records)
        size = max(int(n_records) // groups, 1)
        expected = recipe.expected(size, n_records)
        sized = _sized(recipe.terms.people, size, expected.fewer)
        return SummaryPlan(
            question=self.word,
            epsilon=ask.epsilon,
            delta=ask.delta or ask.epsilon * 0,
            relation=ask.relation,
            n_records=n_records,
            groups=groups,
            reach=expected.reach,
            confidence=float(self.confidence),
            unit=expected.unit,
            forecasts=tuple(
                Forecast(
                    quantity=f"error of the {self.word}, in {expected.unit}",
                    low=low,
                    middle=middle,
                    high=high,
                    assumed=(*sized, *of),
                )
                for (low, middle, high), of in expected.errors
            ),
            most=expected.most,
        )

    def read(self, X: object) -> Read:
        """The exact sums of a table, read once: for whoever looks at a plan before `fit` charges for them. PRIVATE.

        Raises:
            DataError: X is no table of this kind.
        """
        recipe = self._settled()
        recipe.terms.ask.must_be_payable()
        state = state_of(recipe.sums, X)
        # The number of rows is looked at only where it is public.
        rows = recipe.sums.rows(state) if recipe.terms.counted else None
        if rows == 0:
            raise DataError("a table must have at least one row; got none.")
        return Read(recipe.sums, state, rows, terms_of(X))

    def fit(self, X: object, y: object = None) -> Self:
        """Sums the table up, charges the ledger, adds noise.

        Args:
            X: A 2-D array or list of rows (columns in the schema's order), a frame, the name of a CSV or Parquet file, a
                stream of these, files to `spread` over an engine, `persons` with several rows each, or what `read` gave.
            y: Ignored.

        Raises:
            DataError: X is no table of this kind.
            BudgetExceeded: The ledger refuses; nothing was released.
            SimulatedError: `random_state` was given with a ledger.
        """
        del y
        recipe = self._settled()
        ask, people = recipe.terms.ask, recipe.terms.people
        read = X if isinstance(X, Read) else self.read(X)
        if read.sums != recipe.sums:
            raise ParameterError("X must be read with the parameters it is asked with; it was read with others. Read it again.")
        known = {} if read.rows is None else {"records": read.rows}
        chosen = {"confidence": float(self.confidence), "mechanism": recipe.mechanism, **known, **recipe.facts}
        chosen |= facts_of(read.persons)
        release = ask.answer(
            lambda: self._value(recipe.draw(read.state), people),
            kind=f"summaries.{self.word}",
            promise=ask.guarantee(f"{self.word}: {recipe.mechanism}", assumptions=_assumptions(ask, read.persons)),
            facts=people.facts() | chosen,
            subject=people.names,
            schema=self.schema,
            price=recipe.price,
        )
        setattr(self, f"{self.word}_", self._own(release[ANSWERS[self.word]]))
        self.interval_ = self._own(release["intervals"])
        return self._learned(release)

    def _value(self, found: Sequence[Group], people: People) -> dict[str, Any]:
        """The answers by the names of their groups."""
        by_name = dict(zip(people.groups, found, strict=True))
        value: dict[str, Any] = {ANSWERS[self.word]: {name: group.found for name, group in by_name.items()}}
        value["intervals"] = {name: group.interval for name, group in by_name.items()}
        if found[0].size is not None:
            value["sizes"] = {name: group.size for name, group in by_name.items()}
        return value | people.dates | people.labels

    def _own(self, answers: Any) -> Any:
        """The answer of the one group there is; all of them by name where there are groups."""
        return answers[EVERYBODY] if self.by is None else dict(answers)


def _sized(people: People, size: int, fewer: str) -> tuple[str, ...]:
    """What is assumed about how many records an answer is about, and what comes of fewer."""
    if not fewer or not (people.by is not None or people.where):
        return ()
    met = ("all records meet the condition",) if people.where else ()
    shared = () if people.by is None else (f"groups have about {size} records each",)
    return (*met, *shared, fewer)


def _assumptions(ask: Ask, persons: Persons | None) -> tuple[str, ...]:
    return (
        *assumptions_of(persons, unit=ask.unit),
        "schema, groups, condition and confidence were fixed without looking at the table",
    )
