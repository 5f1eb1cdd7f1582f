"""`sabun summaries`: the plain answers about a private table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from sabun import checks
from sabun.errors import ParameterError
from sabun.records import NumberColumn
from sabun.summaries.kinds import ANSWERS, PARTS, condition_in, drowned, measured, parts_in
from sabun.summaries.typed import typed_bins, typed_shares, typed_where
from sabun.telling.measures import Measure
from sabun.telling.terminal.asked import EVERY_ROW, AskedPersons, as_persons, asked_table, reading
from sabun.telling.terminal.charging import Payment, asked_name, warn_if_large
from sabun.telling.terminal.columns import declared
from sabun.telling.terminal.foretelling import Guess, foretell
from sabun.telling.terminal.options import (
    LABEL_COLUMN,
    NUMBER_COLUMN,
    Again,
    Bounds,
    Confidence,
    EngineName,
    Epsilon,
    Json,
    Label,
    LedgerFile,
    NRecords,
    Out,
    PrivateTable,
    Purpose,
    Relation,
    RetryKey,
    SchemaFile,
    Yes,
    as_written,
    followed_by,
)
from sabun.telling.terminal.output import new_file, print_json, print_line

if TYPE_CHECKING:
    from sabun.records import Schema
    from sabun.release import Release

__all__ = ["app"]

_HELP = """Count, sum, mean, variance, histogram, quantiles of a private table, by public groups.

Example:

    sabun summaries plan mean --column age --bounds age=0:120 --n-records 5000 --epsilon 0.5
"""

_SINGLE = (
    "the {word} is one person's own value, and noise that hides one person hides it. Ask for quantiles with --shares {share}"
)
_INSTEAD = {
    "median": "the median is a quantile. Use: sabun summaries quantiles --shares 0.5",
    "quantile": "the command is called quantiles. Use: sabun summaries quantiles --shares 0.9",
    "share": "a share is a count by the number of rows, which is public. Use: sabun summaries count --where CONDITION",
    "top": "the most frequent labels are seen in all their counts. Use: sabun summaries histogram --column NAME",
    "mode": "the most frequent label is seen in all counts. Use: sabun summaries histogram --column NAME",
    "std": "the standard deviation is the root of the variance. Use: sabun summaries variance",
    "average": "the average is the mean. Use: sabun summaries mean",
    "total": "the total is the sum. Use: sabun summaries sum",
    "min": _SINGLE.format(word="least value", share="0.01"),
    "max": _SINGLE.format(word="largest value", share="0.99"),
    "correlation": "two columns together are asked of a model (sabun regression fit) or of weights (sabun density weights)",
}
"""Plain questions by other words, and what answers them here."""


class _Questions(TyperGroup):
    """The commands, with an answer for words that are none of them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0].lower() if args else ""
        if word in _INSTEAD and word not in self.commands:
            raise ParameterError(f"a question must be one of {', '.join(ANSWERS)}; got {word!r}: {_INSTEAD[word]}.")
        return super().resolve_command(ctx, args)


app = typer.Typer(help=_HELP, no_args_is_help=True, cls=_Questions)

_Column = Annotated[str, typer.Option("--column", metavar="COLUMN", help="The column in question.")]
_Numbers = Annotated[str, typer.Option("--column", metavar=NUMBER_COLUMN, help="The column in question.")]
_By = Annotated[
    str | None,
    typer.Option("--by", metavar=LABEL_COLUMN, help="A column of labels: one answer for each that the schema declares."),
]
_Where = Annotated[
    list[str] | None, typer.Option("--where", help="A public condition: age=18:65, age=65: or sex=F,M; all of them must hold.")
]
_Delta = Annotated[str | None, typer.Option("--delta", help="Above 0 for Gaussian noise; Laplace noise when left out.")]
_Bins = Annotated[str | None, typer.Option("--bins", help="How many bins (10), or their edges: 0,18,65,120.")]
_Shares = Annotated[str, typer.Option("--shares", help="Which quantiles, separated by commas; 0.5 is the median.")]
_Resolution = Annotated[
    float | None,
    typer.Option("--resolution", help="How finely to look: 1 for whole numbers; as finely as possible by default."),
]
_Bar = Annotated[str, typer.Option("--error-bar", help="Share of epsilon that pays for the intervals; 0 for none.")]


_Asked = tuple[str, dict[str, Any]]
"""A question's word, with the parameters that are its own."""


@as_written
@as_persons
def _ask(
    asked: _Asked,
    table: PrivateTable,
    epsilon: Epsilon,
    by: _By = None,
    where: _Where = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    persons: AskedPersons = EVERY_ROW,
    engine: EngineName = None,
    relation: Relation = None,
    confidence: Confidence = 0.95,
    n_records: Guess = None,
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    retry_key: RetryKey = None,
    label: Label = None,
    again: Again = False,
    out: Out = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Asks, saves, tells: the same for every question."""
    word, own = asked
    if out is not None:
        new_file(out)
    payment = Payment.of(ledger, purpose, table=asked_name(table, label, again))
    how = own | {"epsilon": epsilon, "by": by, "relation": relation, "confidence": confidence}
    known = declared(schema, bounds)
    question = _question(word, how, where, known, ledger=payment.book, retry_key=retry_key)
    with payment:
        with asked_table(table, engine=engine, persons=persons, quiet=json) as asked_of, reading(asked_of):
            read = question.read(asked_of)
        told = foretell(question, n_records=n_records if read.rows is None else read.rows, yes=yes, json=json)
        release: Release = question.fit(read).release_
        payment.save(release, out)
    if json:
        print_json(_plain(release.value) | told | payment.record(release, out))
        return
    if condition := condition_in(release):
        print_line(f"Only rows with {condition}:")
    for line in _lines(word, release):
        print_line(line, style="bold")
    level = release.provenance.parameters["confidence"]
    without = word == "quantiles" and set(release.provenance.parameters["ranks_off"]) == {None}
    print_line(
        "No intervals were paid for."
        if without
        else f"Each interval holds the exact answer with probability {level:g} or more."
    )
    if told_missing := _as_read(own.get("column"), known, persons):
        print_line(told_missing)
    payment.tell(release, out)


@app.command()
@followed_by(_ask)
def count(delta: _Delta = None) -> _Asked:
    """Release how many rows there are, by group or under a condition.

    Example:

        sabun datasets save adult people.csv --schema people.schema.json

        sabun summaries count people.csv --schema people.schema.json --by sex --where age=65: --epsilon 0.5
    """
    return "count", {"delta": delta}


@app.command(name="sum")
@followed_by(_ask)
def total(column: _Numbers, delta: _Delta = None) -> _Asked:
    """Release the sum of a column.

    Example:

        sabun datasets save adult people.csv --schema people.schema.json

        sabun summaries sum people.csv --schema people.schema.json --column hours-per-week --epsilon 0.5
    """
    return "sum", {"column": column, "delta": delta}


@app.command()
@followed_by(_ask)
def mean(column: _Numbers, delta: _Delta = None) -> _Asked:
    """Release the mean of a column.

    Example:

        sabun datasets save adult people.csv --schema people.schema.json

        sabun summaries mean people.csv --schema people.schema.json --column age --by sex --epsilon 0.5
    """
    return "mean", {"column": column, "delta": delta}


@app.command()
@followed_by(_ask)
def variance(column: _Numbers, delta: _Delta = None) -> _Asked:
    """Release the variance of a column.

    Example:

        sabun datasets save adult people.csv --schema people.schema.json

        sabun summaries variance people.csv --schema people.schema.json --column age --epsilon 0.5
    """
    return "variance", {"column": column, "delta": delta}


@app.command()
@followed_by(_ask)
def histogram(column: _Column, bins: _Bins = None, delta: _Delta = None) -> _Asked:
    """Release how many rows are in each bin of a column, or have each label.

    Example:

        sabun datasets save adult people.csv --schema people.schema.json

        sabun summaries histogram people.csv --schema people.schema.json --column age --bins 18,30,45,65,90 --epsilon 0.5
    """
    return "histogram", {"column": column, "bins": typed_bins(bins), "delta": delta}


@app.command()
@followed_by(_ask)
def quantiles(
    column: _Numbers, shares: _Shares = "0.25,0.5,0.75", error_bar: _Bar = "0.5", resolution: _Resolution = None
) -> _Asked:
    """Release quantiles of a column, such as its median.

    Example:

        sabun datasets save adult people.csv --schema people.schema.json

        sabun summaries quantiles people.csv --schema people.schema.json --column age --resolution 1 --epsilon 1
    """
    return "quantiles", {"column": column, **_ranks(shares, error_bar, resolution)}


@app.command()
def plan(
    question: Annotated[str, typer.Argument(help=f"One of {', '.join(ANSWERS)}.")],
    n_records: NRecords,
    epsilon: Epsilon,
    column: Annotated[str | None, typer.Option("--column", help="The column in question; a count has none.")] = None,
    by: _By = None,
    where: _Where = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    delta: _Delta = None,
    bins: _Bins = None,
    shares: _Shares = "0.25,0.5,0.75",
    error_bar: _Bar = "0.5",
    resolution: _Resolution = None,
    relation: Relation = None,
    confidence: Confidence = 0.95,
    json: Json = False,
) -> None:
    """Say what an answer will cost and how far off it may be; touches no data.

    Example:

        sabun summaries plan mean --column age --bounds age=0:120 --n-records 5000 --epsilon 0.5
    """
    checks.one_of(tuple(ANSWERS), question=question)
    own: dict[str, Any] = {} if question == "count" else {"column": _given(column)}
    own |= _ranks(shares, error_bar, resolution) if question == "quantiles" else {"delta": delta}
    own |= {"bins": typed_bins(bins)} if question == "histogram" else {}
    how = own | {"epsilon": epsilon, "by": by, "relation": relation, "confidence": confidence}
    made = _question(question, how, where, declared(schema, bounds)).plan(n_records=n_records)
    if json:
        print_json(made.to_dict())
        return
    print_line(str(made))
    warn_if_large(made.epsilon)


def _as_read(name: str | None, known: Schema, persons: AskedPersons) -> str:
    """What cells without a number count as, in a question about numbers; public, as the schema is."""
    column = None if name is None else known[name]
    if not isinstance(column, NumberColumn):
        return ""
    which = "an empty or unreadable one" if persons.id is None else "a person without any that can be read"
    return f"The answer is of the cells as they are read; {which} counts as {column.told_missing}."


def _given(column: str | None) -> str:
    if column is None:
        raise ParameterError("column must be given; got none. Pass --column.")
    return column


def _ranks(shares: str, error_bar: str, resolution: float | None) -> dict[str, Any]:
    return {"shares": typed_shares(shares), "error_bar": error_bar, "resolution": resolution}


def _question(word: str, how: dict[str, Any], where: list[str] | None, known: Schema, **paid: Any) -> Any:
    from sabun import summaries

    return getattr(summaries, word.capitalize())(**how, where=typed_where(where, known), schema=known, **paid)


def _plain(value: Any) -> dict[str, Any]:
    """The value in plain JSON types."""
    return {name: _plain(part) if hasattr(part, "items") else _listed(part) for name, part in value.items()}


def _listed(part: Any) -> Any:
    return [_listed(item) for item in part] if isinstance(part, list | tuple) else part


def _lines(word: str, release: Release) -> list[str]:
    """One line for each answer."""
    facts, value = release.provenance.parameters, release.value
    answers = value[ANSWERS[word]]
    parts = parts_in(word, release) if word in PARTS else None
    lines, measure = [], measured(word, release)
    without = "too noisy to tell" if drowned(word, release) else "too few to tell"
    what = word if facts["column"] is None else f"{word} of {facts['column']}"
    for group in facts["groups"]:
        start = what if facts["by"] is None else f"{what}, {facts['by']} {group}"
        if parts is None:
            lines.append(f"{start}: {_told(answers[group], value['intervals'][group], measure, without)}")
            continue
        triples = zip(parts, answers[group], value["intervals"][group], strict=True)
        lines += [f"{start}, {part}: {_told(found, ends, measure, without)}" for part, found, ends in triples]
    return lines


def _told(found: Any, ends: Any, measure: Measure, without: str) -> str:
    if ends is None:
        return without if found is None else measure.exactly(found)
    low, high = measure.ends(*ends)
    answer = without if found is None else measure.told(found, *ends)
    return f"{answer}   (between {low} and {high})"
