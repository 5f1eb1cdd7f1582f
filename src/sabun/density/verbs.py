"""`sabun density`: weights on a public table that answer questions about a private one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun import checks
from sabun.density.typed import Accept, Basis, Method, MethodSettings, interval_told, read_columns, typed_method
from sabun.density.weighting import weighted
from sabun.errors import DataError, ParameterError
from sabun.ledger.address import is_address
from sabun.records import FilePart
from sabun.release.files import write_whole
from sabun.telling.language import chosen, speaking
from sabun.telling.terminal.asked import EVERY_ROW, AskedPersons, as_persons, asked_files, asked_table
from sabun.telling.terminal.charging import Payment, asked_name, warn_if_large
from sabun.telling.terminal.columns import typed_ends
from sabun.telling.terminal.foretelling import at_least_one
from sabun.telling.terminal.options import (
    Again,
    Bounds,
    Confidence,
    EngineName,
    Epsilon,
    Json,
    Label,
    Lang,
    LedgerFile,
    Overwrite,
    Purpose,
    Relation,
    RetryKey,
    SchemaFile,
    Yes,
    as_written,
)
from sabun.telling.terminal.output import new_file, print_json, print_line
from sabun.telling.terminal.written import typed_table

if TYPE_CHECKING:
    from sabun.density import Answer, DensityRatio
    from sabun.records import Schema
    from sabun.release import Release

__all__ = ["app"]

_HELP = """Publish weights for a public table, so that anyone can answer questions about a private one.

Example:

    sabun density weights --help
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_Public = Annotated[FilePart, typer.Option(parser=typed_table, metavar="TABLE", help="The public table.")]
_Delta = Annotated[str | None, typer.Option(help="For (epsilon, delta)-privacy, such as 1e-6; pure epsilon when left out.")]
_Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="COLUMN,COLUMN", help="Names of columns to compare, separated by commas; labels need a schema."
    ),
]
_ROWS = ("--n-records", "--private-rows")


@app.command()
@as_written
@as_persons
def weights(
    private: Annotated[FilePart, typer.Option(parser=typed_table, metavar="TABLE", help="The private table.")],
    public: _Public,
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option(metavar="FILE.csv", help="Where the weighted public table goes (.csv or .parquet).")],
    delta: _Delta = None,
    method: Method = "rkhs",
    setting: MethodSettings = None,
    basis: Basis = None,
    accept_publishing_raw_records: Accept = False,
    columns: _Columns = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    persons: AskedPersons = EVERY_ROW,
    relation: Relation = None,
    engine: EngineName = None,
    n_records: Annotated[
        int | None,
        typer.Option(*_ROWS, callback=at_least_one, help="Public guess of the number of private rows, for add-remove."),
    ] = None,
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    retry_key: RetryKey = None,
    label: Label = None,
    again: Again = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw marginals and weights (.svg).")] = None,
    owner_only: Annotated[bool, typer.Option("--owner-only", help="Draw the private table too. NOT PRIVATE.")] = False,
    lang: Lang = None,
    overwrite: Overwrite = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Weight the public table; the release with its guarantee goes beside what is written.

    Example:

        sabun datasets save wdbc patients.csv --rows 0:300

        sabun datasets save wdbc volunteers.csv --rows 300:569

        sabun density weights --private patients.csv --public volunteers.csv --columns 'mean area' --epsilon 1 --out new.csv

        sabun density weights --private patients.csv --public volunteers.csv --columns 'mean area' --epsilon 1 \
--method ulsif-b --setting n_centers=20 --out method-b.csv
    """
    from sabun.density.export import must_take_weights, refuse_one_for_both, table_of
    from sabun.records import open_unbounded

    chosen(lang)  # while nothing is charged
    if owner_only and plot is None:
        raise ParameterError(
            "plot must be given beside --owner-only, which is about the picture; got none. Add --plot FILE.svg."
        )
    if owner_only and engine is not None:
        raise ParameterError("--engine must be left out with --owner-only, which draws the table itself.")
    files = asked_files(private, engine=engine)
    for file in files:
        refuse_one_for_both(file, public)
    written = [out, Path(f"{out}.release.json"), *([] if plot is None else [plot])]
    for made, option in zip(written, ("out", "out", "plot"), strict=False):
        new_file(made, name=option, overwrite=overwrite)
    book = None if ledger is None or is_address(ledger) else Path(ledger)
    _refuse_shared(written, [file for file in (*files, public, schema, book) if isinstance(file, os.PathLike)])
    if out.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"out must end in .csv or .parquet; got {str(out)!r}.")
    payment = Payment.of(ledger, purpose, table=asked_name(private, label, again))
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "relation": relation, "n_public": n_records}
    about = read_columns(columns, bounds, schema)
    asked["method"] = typed_method(method, setting, basis, about, public, accept=accept_publishing_raw_records)
    ratio = _ratio(about, **asked, ledger=payment.book, retry_key=retry_key)
    for table in (public, *files):
        _must_have(table, ratio)
    must_take_weights(
        open_unbounded(_as_declared(public, ratio)).names
    )  # while nothing is charged: the weights could not be written
    if owner_only and persons.id is not None:
        raise ParameterError("--owner-only must be left out with --id: a picture of rows is none of persons.")
    drawn = table_of(private, ratio.schema) if owner_only else None  # one reading serves the release and the owner's picture
    with payment, asked_table(private, engine=engine, persons=persons, quiet=json) as rows:
        told = weighted(ratio, rows if drawn is None else drawn, public, yes=yes, json=json)
        with payment.writing(ratio.release_):
            (ratio.to_csv if out.suffix == ".csv" else ratio.to_parquet)(out, overwrite=overwrite)
            if plot is not None:
                with speaking(lang):
                    write_whole(plot, _picture(ratio, drawn).encode(), overwrite=overwrite)
    record = {"out": str(out), "release": f"{out}.release.json", "diagnostics": ratio.diagnostics_.to_dict()}
    if json:
        print_json(record | told | payment.facts(ratio.release_))
        return
    print_line(f"{str(out)!r}: {len(ratio.weights_)} public rows with a column 'weight' of mean 1.", style="bold")
    print_line(f"They are worth {ratio.diagnostics_.effective_size:.0f} unweighted rows.")
    print_line(f"Published as they are: every row and every column of {str(public)!r}. It must hold no private record.")
    if ratio.diagnostics_.uncovered_interval is not None:
        low, high = ratio.diagnostics_.uncovered_interval
        print_line(f"{low:.1%} to {high:.1%} of the private rows are unlike any public row (95%).")
    for note in ratio.diagnostics_.notes:
        print_line(f"Careful: {note}.", style="yellow")
    payment.tell(ratio.release_)
    print_line(f"Next, try: {shlex.join(['sabun', 'density', 'query', str(out), _first_question(ratio)])}")


@app.command()
def query(
    table: Annotated[Path, typer.Argument(help="A weighted table that `sabun density weights` wrote.")],
    questions: Annotated[
        list[str], typer.Argument(help="mean, share, count, sum, median or quantile of a column or a condition, as below.")
    ],
    confidence: Confidence = 0.95,
    bounds: Annotated[
        list[str] | None,
        typer.Option(help="Public bounds of a column, name=low:high, for an interval about the whole table; several times."),
    ] = None,
    worst_case: Annotated[
        bool, typer.Option("--worst-case", help="Also search for intervals that assume nothing about the ratio; slower.")
    ] = False,
    json: Json = False,
) -> None:
    """Answer questions about the private table from the weighted public one; costs no privacy.

    The release beside the table (TABLE.release.json) says how far the answers may be off. An interval is about the private rows
    that the public table covers; with bounds (a share always has them) it is about all. Where none can be given, the reason is.
    A question that cannot be answered is told on stderr, with exit code 2; the others are answered all the same.

    mean(age), sum(age), median(age), quantile(age, 0.9), quantiles(age, 0.25, 0.75): figures of a column.
    share(age > 50), count(age > 50), count(): of the rows that meet a condition, or of all.
    where CONDITION, at the end of the brackets, takes only some rows. Conditions are joined with and, or, not and brackets.
    by COLUMN, after the brackets, answers for each of its labels in the public table.

    Example:

        sabun datasets save wdbc patients.csv --rows 0:300

        sabun datasets save wdbc volunteers.csv --rows 300:569

        sabun density weights --private patients.csv --public volunteers.csv --columns 'mean area' --epsilon 1 --out new.csv

        sabun density query new.csv 'mean(mean area)' 'share(mean area > 700)' --bounds 'mean area=0:3000'

        sabun density query new.csv 'count(mean area > 700 or mean area < 300)' 'quantiles(mean area, 0.25, 0.5, 0.75)' \
'median(mean area where not (diagnosis = malignant))' 'mean(mean area) by diagnosis'
    """
    from sabun.density.known import Known

    checks.require(0 < confidence < 1, "above 0 and below 1", confidence=confidence)
    limits = dict(typed_ends(text) for text in bounds or ())
    known = Known.of(table, _release_beside(table), missing=_beside(table).name)
    known.must_have(limits)
    answers: dict[str, Answer] = {}
    refused: dict[str, str] = {}
    named: set[str] = set()
    for question in questions:
        try:
            answers |= known.answer(question, confidence=confidence, worst=worst_case, limits=limits)
            named |= known.named(question)
        except (ParameterError, DataError) as error:
            refused[question] = str(error)
    trusted = None if known.others is None else [name for name in known.others if name in named]
    if json:
        shown = {question: found.to_dict() for question, found in answers.items()}
        told = {"answers": shown, "refused": refused, "not_compared": trusted}
        print_json(told | {"intervals_cover_noise": known.noisy})
    else:
        for question, found in answers.items():
            _tell(question, found)
        _tell_uncovered([found for found in answers.values() if found.uncovered_interval is not None])
        for name in trusted or ():
            print_line(f"{name!r} was not compared: it is taken to go with what was as it does in the public table.")
    if refused:
        rest = ["The other questions are answered."] if answers else []
        raise ParameterError("\n".join([*(f"{question!r} has no answer: {why}" for question, why in refused.items()), *rest]))


def _beside(table: Path) -> Path:
    return Path(f"{table}.release.json")


def _release_beside(table: Path) -> Release | None:
    from sabun.release import Release

    return Release.load(_beside(table)) if _beside(table).exists() else None


def _tell(question: str, found: Answer) -> None:
    print_line(f"{question} = {found.shown}   ({interval_told(found)})")
    if found.weighted not in (None, found.estimate):
        weighted = found.measure.exactly(float(found.weighted))
        print_line(f"   the plain mean: the weights say nothing about it (weighted: {weighted})")
    if found.worst_case is not None:
        low, high = found.measure.ends(*found.worst_case)
        print_line(f"   whatever the ratio: {low} to {high}")


def _tell_uncovered(answers: list[Answer]) -> None:
    if answers and answers[0].uncovered_interval is not None:
        low, high = answers[0].uncovered_interval
        print_line(f"{low:.1%} to {high:.1%} of the private rows are unlike any public row; covered rows are the others.")


@app.command()
def plan(
    public: _Public,
    n_records: Annotated[int, typer.Option(*_ROWS, help="About how many private rows there are; a public number.")],
    epsilon: Epsilon,
    delta: _Delta = None,
    method: Method = "rkhs",
    setting: MethodSettings = None,
    basis: Basis = None,
    accept_publishing_raw_records: Accept = False,
    columns: _Columns = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    relation: Relation = None,
    json: Json = False,
) -> None:
    """Tell what a release would cost and how precise it could be; touches no private record.

    Example:

        sabun datasets save wdbc volunteers.csv

        sabun density plan --public volunteers.csv --columns 'mean area' --n-records 5000 --epsilon 0.5
    """
    about = read_columns(columns, bounds, schema)
    chosen = typed_method(method, setting, basis, about, public, accept=accept_publishing_raw_records)
    ratio = _ratio(about, epsilon=epsilon, delta=delta, relation=relation, method=chosen)
    _must_have(public, ratio)
    found = ratio.plan(public=public, n_records=n_records)
    if json:
        print_json(found.to_dict())
        return
    print_line(str(found))
    warn_if_large(epsilon)


def _ratio(about: tuple[list[str] | None, Schema | None], **asked: Any) -> DensityRatio:
    """The estimator for columns as they were typed."""
    from sabun.density import DensityRatio

    names, known = about
    return DensityRatio(columns=names, schema=known, **asked)


def _must_have(table: FilePart, ratio: DensityRatio) -> None:
    """Looks for the columns by the name of the file: "the table" would leave open which of the two."""
    names = ratio.columns or () if ratio.schema is None else ratio.schema.names
    _as_declared(table, ratio).check(names)


def _as_declared(table: FilePart, ratio: DensityRatio) -> FilePart:
    """The table, written as the schema says."""
    return table if ratio.schema is None else table.written(ratio.schema.file)


def _first_question(ratio: DensityRatio) -> str:
    from sabun.density.expression import first_question

    return first_question(ratio.to_frame(), ratio.release_.provenance.parameters["columns"], ratio.schema)


def _refuse_shared(written: list[Path], read: Sequence[os.PathLike[str]]) -> None:
    """A file that is written must not be another one that is written, nor (with --overwrite too) one that is read."""
    from sabun.density.export import same_file

    for place, file in enumerate(written):
        for other in written[:place]:
            if same_file(file, other):
                raise ParameterError(f"{file} must be another file than {other}; got one for both. Choose two names.")
        for source in read:
            if same_file(file, source):
                raise ParameterError(f"{file} must not be a file that is read; got the name of {source}. Choose another name.")


def _picture(ratio: DensityRatio, private: Any | None) -> str:
    from sabun.density.picture import weights_svg

    names = list(ratio.release_.provenance.parameters["columns"])
    public = ratio.to_frame()
    columns = [(name, _drawn(public[name], name, ratio.schema)) for name in names]
    raw = None if private is None else [_drawn(private[name], name, ratio.schema) for name in names]
    return weights_svg(columns, ratio.weights_, private=raw)


def _drawn(cells: Any, name: str, schema: Schema | None) -> Any:
    """The cells as the weights were made with them: declared numbers and dates, whatever else a cell holds."""
    from sabun.records import NumberColumn

    column = schema[name] if schema is not None and name in schema.names else None
    if schema is None or not isinstance(column, NumberColumn):
        return cells.to_numpy()
    numbers = column.encode(cells.tolist(), form=schema.file)
    return numbers.astype("datetime64[D]") if column.dates else numbers
