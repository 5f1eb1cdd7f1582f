"""Several rows per person: each person's rows become one row, by a public rule for each column.

Here are the public choices; `collapsing` carries them out. Replacing a person then replaces one row, so that every promise for
one row becomes one for the person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

from sabun import checks
from sabun.records.cells import Floats
from sabun.records.columns import Column, NumberColumn
from sabun.records.ids import SPELLINGS
from sabun.records.schema import Schema

__all__ = ["LABEL_RULES", "NUMBER_RULES", "Collapsed", "Persons", "assumptions_of", "facts_of", "persons", "terms_of"]

NUMBER_RULES = ("mean", "min", "max", "first", "last", "count")
LABEL_RULES = ("mode", "any", "first", "last")
_NO_TOTAL = (
    "Nothing that is declared bounds a total: make a table of totals, a row for each person, and declare bounds for those."
)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Collapsed:
    """One row for each person, read once and kept in the order that was drawn for them; made by `Source.held`. PRIVATE."""

    schema: Schema
    rows: Floats = field(repr=False)


@final
@dataclass(frozen=True, kw_only=True)
class Persons:
    """A table with several rows per person; made by `persons`.

    Attributes:
        table: Where the rows are; PRIVATE.
        id: The column that tells persons apart.
        rules: Rules by column; the others have `mean` (numbers) or `mode` (labels).
        spelling: How ids are read.
        order: The column that says what is first and last; None for the order of the rows.
        memory: About how many bytes persons may take while they are put together; cannot change any result.
    """

    table: Any = field(repr=False)
    id: str
    rules: tuple[tuple[str, str], ...]
    spelling: str
    order: str | None
    memory: int = field(default=1 << 30, repr=False)

    def facts(self) -> dict[str, Any]:
        """The public choices, as a release keeps them."""
        return {"id": self.id, "rules": dict(self.rules), "spelling": self.spelling, "order": self.order}

    @property
    def terms(self) -> Self:
        """The public choices alone, without the table."""
        return replace(self, table=None)

    @property
    def count(self) -> int | None:
        """How many persons there are, once they were read. PRIVATE where the number of records is."""
        return len(self.table.rows) if isinstance(self.table, Collapsed) else None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a promise made for persons takes for granted."""
        carry = f"all rows of a person carry one {self.id!r}, and no two persons share one"
        if self.spelling == "caseless":
            carry = f"all rows of a person carry one {self.id!r}, whatever its case, and no two persons share one"
        return (
            carry,
            f"rows without a {self.id!r} are left out",
        )

    def rule(self, column: Column) -> str:
        """The rule of a column.

        Raises:
            ParameterError: It has one that does not fit its kind.
        """
        known, usual = (NUMBER_RULES, "mean") if isinstance(column, NumberColumn) else (LABEL_RULES, "mode")
        found = dict(self.rules).get(column.name, usual)
        checks.require(found in known, f"one of {', '.join(known)} for column {column.name!r}", rule=found)
        return found

    def by_order(self, schema: Schema) -> bool:
        """Whether some column's rule looks for what comes first or last."""
        return any(self.rule(column) in ("first", "last") for column in schema.columns)

    def check(self, names: Sequence[str], declared: Sequence[str] = ()) -> None:
        """Refuses a rule about a column that the table lacks, and suggests a declared one; what is counted need not be there.

        Raises:
            ParameterError: There is one.
        """
        unknown = [name for name, rule in self.rules if rule != "count" and name not in names]
        advice = checks.meant(unknown[0], declared) if unknown else ""
        checks.require(not unknown, "about columns of the table", advice, rules=unknown[:1])

    def read(self, schema: Schema) -> tuple[str, ...]:
        """The columns of the table that are needed: a count of rows needs none of its own."""
        asked = [column.name for column in schema.columns if self.rule(column) != "count"]
        return tuple(dict.fromkeys([self.id, *asked, *([] if self.order is None else [self.order])]))


def persons(
    table: object,
    *,
    id: str,
    rules: Mapping[str, str] | None = None,
    spelling: str = "text",
    order: str | None = None,
    memory: int = 1 << 30,
) -> Persons:
    """A table with several rows per person, to be given to `fit` in the place of a table with one row each.

    The number of rows becomes private; the number of persons takes its place. Wherever a whole private table is taken under a
    schema, this is; labels and targets stand in it as columns. What sets other rows beside it, or takes pieces, refuses it.

    Args:
        table: As in `sabun.records.open_source`, with column names.
        id: The column that tells persons apart. Rows without an id are left out.
        rules: How a person's cells of a column become one: ``mean``, ``min``, ``max``, ``first``, ``last`` or ``count`` (how
            many rows the person has) for numbers, ``mode`` (the earliest declared among the most frequent), ``any`` (the last
            declared label that occurs), ``first`` or ``last`` for labels. ``mean`` and ``mode`` when left out. Cells that hold
            nothing are passed over; where a person has no other, the column's `missing` stands for them.
        spelling: ``text``: ids are equal when their text is, apart from blanks around it and wide characters; ``number``: when
            they are the same whole number (``007`` is ``7``), and anything else is no id; ``caseless``: as text, and upper and
            lower case are one (``A12`` is ``a12``).
        order: A column of numbers or dates that says which row is first; the order of the rows when left out, and among rows of
            the same number or day. A row without either counts only where a person has no other. Rows of a database have no
            order of their own: there it must be given, and of rows of the same number or day the smallest cell is first.
        memory: About how many bytes persons may take while they are put together. Rows of those beyond it wait in temporary
            files that have no name and that nobody else can open; see `LIMITS.md`.

    Raises:
        ParameterError: A rule or spelling is not known, or the limit of memory is no whole number.

    Example:
        >>> import pyarrow as pa
        >>> from sabun.records import open_source
        >>> visits = pa.table({"patient": ["a", "b", "a"], "cost": [10.0, 40.0, 30.0]})
        >>> schema = Schema.of_bounds({"cost": (0, 100)})
        >>> source = open_source(persons(visits, id="patient"), schema=schema, by_person=True)
        >>> sorted(source.matrix().ravel().tolist())
        [20.0, 40.0]
    """
    checks.require(isinstance(id, str) and id != "", "the name of a column", id=id)
    checks.one_of(SPELLINGS, spelling=spelling)
    checks.require(order is None or (isinstance(order, str) and order != ""), "the name of a column", order=order)
    checks.require(rules is None or isinstance(rules, Mapping), "a mapping from columns to rules", rules=rules)
    checks.whole(minimum=1, memory=memory)
    given = dict(rules or {})
    known = tuple(dict.fromkeys(NUMBER_RULES + LABEL_RULES))
    for rule in given.values():
        advice = _NO_TOTAL if rule in ("sum", "total") else ""
        checks.require(rule in known, f"one of {', '.join(map(repr, known))}", advice, rule=rule)
    checks.require(id not in given, "about other columns than the id", rules=id)
    return Persons(table=table, id=id, rules=tuple(sorted(given.items())), spelling=spelling, order=order, memory=int(memory))


def terms_of(table: object) -> Persons | None:
    """The public choices behind a table with several rows per person; None for any other."""
    return table.terms if isinstance(table, Persons) else None


def facts_of(table: object) -> dict[str, Any]:
    """What a release says of how persons were made of rows; nothing where a table has one row each."""
    return {"persons": table.facts()} if isinstance(table, Persons) else {}


def assumptions_of(table: object, *, unit: str) -> tuple[str, ...]:
    """Whose row is whose, as a promise takes it for granted."""
    return table.assumptions if isinstance(table, Persons) else (f"each {unit} has at most one row",)
