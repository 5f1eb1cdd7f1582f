"""`sabun density`: weights on a public table that answer questions about a private one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun.errors import DataError, ParameterError
from sabun.ledger.address import is_address
from sabun.records.files import check_file
from sabun.release.files import write_whole
from sabun.telling.terminal.charging import LedgerFile, Payment, Purpose, warn_if_large
from sabun.telling.terminal.columns import typed_bounds
from sabun.telling.terminal.output import Json, new_file, print_json, print_line
from sabun.telling.terminal.progress import busy

if TYPE_CHECKING:
    from sabun.density import Answer, DensityRatio

__all__ = ["app"]

_HELP = """Publish weights for a public table, so that anyone can answer questions about a private one.

Example:

    sabun density weights --help
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_Public = Annotated[Path, typer.Option(help="The public table (.csv or .parquet).")]
_Epsilon = Annotated[str, typer.Option(help="Privacy loss, exactly as written: 1, 0.1 or 1/3.")]
_Delta = Annotated[str | None, typer.Option(help="For (epsilon, delta)-privacy, such as 1e-6; pure epsilon when left out.")]
_Columns = Annotated[str | None, typer.Option(help="Names of columns to compare, separated by commas; labels need a schema.")]
_Bounds = Annotated[
    list[str] | None, typer.Option(help="Public bounds of a column, name=low:high; may be given several times.")
]
_SchemaFile = Annotated[Path | None, typer.Option(help="Public bounds and categories (JSON); needed for labels.")]
_Relation = Annotated[str | None, typer.Option(help="replace-one (default) or add-remove (hides the number of rows too).")]


@app.command()
def weights(
    private: Annotated[Path, typer.Option(help="The private table (.csv or .parquet).")],
    public: _Public,
    epsilon: _Epsilon,
    out: Annotated[Path, typer.Option(help="Where the weighted public table goes (.csv or .parquet).")],
    delta: _Delta = None,
    columns: _Columns = None,
    bounds: _Bounds = None,
    schema: _SchemaFile = None,
    relation: _Relation = None,
    private_rows: Annotated[
        int | None, typer.Option(help="Public guess of the number of private rows, for add-remove.")
    ] = None,
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw marginals and weights (.svg).")] = None,
    owner_only: Annotated[bool, typer.Option("--owner-only", help="Draw the private table too. NOT PRIVATE.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
    json: Json = False,
) -> None:
    """Weight the public table; the release with its guarantee goes beside it (OUT.release.json).

    Example:

        sabun datasets save wdbc patients.csv --rows 0:300

        sabun datasets save wdbc volunteers.csv --rows 300:569

        sabun density weights --private patients.csv --public volunteers.csv --columns 'mean area' --epsilon 1 --out new.csv
    """
    if owner_only and plot is None:
        raise ParameterError(
            "plot must be given beside --owner-only, which is about the picture; got none. Add --plot FILE.svg."
        )
    if _same(private, public):
        raise ParameterError(
            f"private and public must be two files; got {str(private)!r} for both. The rows of the public table are published "
            "as they are, with a weight each: it must hold no private record."
        )
    written = [out, Path(f"{out}.release.json"), *([] if plot is None else [plot])]
    for file, option in zip(written, ("out", "out", "plot"), strict=False):
        new_file(file, name=option, overwrite=overwrite)
    book = None if ledger is None or is_address(ledger) else Path(ledger)
    _refuse_shared(written, [file for file in (private, public, schema, book) if file is not None])
    if out.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"out must end in .csv or .parquet; got {str(out)!r}.")
    payment = Payment.of(ledger, purpose)
    ratio = _estimator(epsilon, delta, relation, columns, bounds, schema, payment.book).set_params(n_public=private_rows)
    for table in (public, private):
        _must_have(table, ratio)
    with payment:
        _fit(ratio, private, public)
        with payment.writing(ratio.release_):
            (ratio.to_csv if out.suffix == ".csv" else ratio.to_parquet)(out, overwrite=overwrite)
            if plot is not None:
                write_whole(plot, _picture(ratio, private if owner_only else None).encode(), overwrite=overwrite)
    record = {"out": str(out), "release": f"{out}.release.json", "diagnostics": ratio.diagnostics_.to_dict()}
    if json:
        print_json(record | payment.facts(ratio.release_))
        return
    print_line(f"{str(out)!r}: {len(ratio.weights_)} public rows with a column 'weight' of mean 1.", style="bold")
    print_line(f"They are worth {ratio.diagnostics_.effective_size:.0f} unweighted rows.")
    print_line(f"Published as they are: every row and every column of {str(public)!r}. It must hold no private record.")
    low, high = ratio.diagnostics_.uncovered_interval or (0.0, 1.0)
    print_line(f"{low:.1%} to {high:.1%} of the private rows are unlike any public row (95%).")
    for note in ratio.diagnostics_.notes:
        print_line(f"Careful: {note}.", style="yellow")
    payment.tell(ratio.release_)
    print_line(f"Next, try: sabun density query {out} 'mean({ratio.release_.provenance.parameters['columns'][0]})'")


@app.command()
def query(
    table: Annotated[Path, typer.Argument(help="A weighted table that `sabun density weights` wrote.")],
    questions: Annotated[list[str], typer.Argument(help="mean(age), mean(age > 50), mean(sex = F), mean(hours where sex = F)")],
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
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

    Example:

        sabun datasets save wdbc patients.csv --rows 0:300

        sabun datasets save wdbc volunteers.csv --rows 300:569

        sabun density weights --private patients.csv --public volunteers.csv --columns 'mean area' --epsilon 1 --out new.csv

        sabun density query new.csv 'mean(mean area)' 'mean(mean area > 700)' --bounds 'mean area=0:3000'
    """
    from sabun.density.export import WEIGHT, table_of
    from sabun.density.expression import Expression
    from sabun.records import NumberColumn

    beside = Path(f"{table}.release.json")
    schema = _schema_beside(beside)
    frame = table_of(table, schema)
    if WEIGHT not in frame.columns:
        raise DataError(f"{table.name} has no column {WEIGHT!r}. Use a table that `sabun density weights` wrote.")
    # The cells mean what they meant when the weights were made: numbers inside their bounds, whatever else a cell holds.
    for column in () if schema is None else schema.columns:
        if isinstance(column, NumberColumn) and column.name in frame.columns:
            frame[column.name] = column.encode(frame[column.name].tolist())
    declared = dict(typed_bounds(text) for text in bounds or ())
    ask = _asker(beside, frame, level)
    answers: dict[str, Answer] = {}
    for question in questions:
        read = Expression.read(question)
        rows, values = read.rows(frame), read.values(frame)
        if not frame[WEIGHT].to_numpy(dtype=float)[rows].sum() > 0:
            raise DataError(f"no public row with weight meets the condition of {question!r}.")
        limits = (0.0, 1.0) if read.is_share(frame) else declared.get(read.what)
        answers[question] = ask(values, where=rows, bounds=limits, worst_case=worst_case)
    if json:
        shown = {question: found.to_dict() for question, found in answers.items()}
        print_json({"answers": shown, "intervals_cover_noise": beside.exists()})
        return
    for question, found in answers.items():
        _tell(question, found)
    _tell_uncovered([found for found in answers.values() if found.uncovered_interval is not None])


def _asker(beside: Path, frame: Any, level: float) -> Callable[..., Any]:
    """What answers a question: the release, or (without one) the weights alone, which know nothing of their error."""
    from sabun.density import Answer, DensityRatio
    from sabun.density.export import WEIGHT

    if beside.exists():
        return functools.partial(DensityRatio.restore(beside, public=frame).query, level=level)
    mass = frame[WEIGHT].to_numpy(dtype=float)
    reason = f"there is no {beside.name}, which holds the noise and the share of uncovered rows"

    def alone(values: Any, *, where: Any, **_: Any) -> Answer:
        return Answer(
            estimate=float(mass[where] @ values[where] / mass[where].sum()), interval=None, reason=reason, level=level
        )

    return alone


def _schema_beside(beside: Path) -> Any:
    from sabun.density.saved import features_from
    from sabun.release import Release

    return features_from(Release.load(beside)).schema if beside.exists() else None


def _tell(question: str, found: Answer) -> None:
    print_line(f"{question} = {found.estimate:.6g}   ({_interval(found)})")
    if found.worst_case is not None:
        low, high = found.worst_case
        print_line(f"   whatever the ratio: {low:.6g} to {high:.6g}")


def _interval(found: Answer) -> str:
    if found.interval is None:
        return f"no interval: {found.reason}"
    low, high = found.interval
    return f"{found.level:.0%}, {found.target}: {low:.6g} to {high:.6g}"


def _tell_uncovered(answers: list[Answer]) -> None:
    if answers and answers[0].uncovered_interval is not None:
        low, high = answers[0].uncovered_interval
        print_line(f"{low:.1%} to {high:.1%} of the private rows are unlike any public row; covered rows are the others.")


@app.command()
def plan(
    public: _Public,
    private_rows: Annotated[int, typer.Option(help="About how many private rows there are; a public number.")],
    epsilon: _Epsilon,
    delta: _Delta = None,
    columns: _Columns = None,
    bounds: _Bounds = None,
    schema: _SchemaFile = None,
    relation: _Relation = None,
    json: Json = False,
) -> None:
    """Tell what a release would cost and how precise it could be; touches no private record.

    Example:

        sabun datasets save wdbc volunteers.csv

        sabun density plan --public volunteers.csv --columns 'mean area' --private-rows 5000 --epsilon 0.5
    """
    ratio = _estimator(epsilon, delta, relation, columns, bounds, schema, None)
    _must_have(public, ratio)
    found = ratio.plan(public=public, private_size=private_rows)
    if json:
        print_json(found.to_dict())
        return
    print_line(str(found))
    warn_if_large(epsilon)


def _estimator(
    epsilon: str,
    delta: str | None,
    relation: str | None,
    columns: str | None,
    bounds: list[str] | None,
    schema: Path | None,
    ledger: Any,
) -> DensityRatio:
    from sabun.density import DensityRatio
    from sabun.records import Schema

    names = None if columns is None else [name.strip() for name in columns.split(",")]
    declared = None if schema is None else Schema.load(schema)
    if bounds:
        if declared is not None:
            raise ParameterError("bounds must be in the schema when one is given; got both. Leave one out.")
        declared = Schema.of_bounds(dict(typed_bounds(text) for text in bounds))
    if declared is not None and names is not None:
        for name in names:
            if name not in declared.names:
                raise ParameterError(f"columns must be declared; got {name!r}, which is not. Add it to --schema or --bounds.")
        declared, names = declared.select(names), None
    return DensityRatio(epsilon=epsilon, delta=delta, relation=relation, ledger=ledger, schema=declared, columns=names)


def _must_have(table: Path, ratio: DensityRatio) -> None:
    """Looks for the columns by the name of the file: "the table" would leave open which of the two."""
    check_file(table, ratio.columns or () if ratio.schema is None else ratio.schema.names)


def _same(one: Path, other: Path) -> bool:
    """Whether two names stand for one file, through links too."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def _refuse_shared(written: list[Path], read: list[Path]) -> None:
    """A file that is written must not be another one that is written, nor (with --overwrite too) one that is read."""
    for place, file in enumerate(written):
        for other in written[:place]:
            if _same(file, other):
                raise ParameterError(f"{file} must be another file than {other}; got one for both. Choose two names.")
        for other in read:
            if _same(file, other):
                raise ParameterError(f"{file} must not be a file that is read; got the name of {other}. Choose another name.")


def _fit(ratio: DensityRatio, private: Path, public: Path) -> None:
    import warnings

    from sabun.density import CoverageWarning

    with busy("Reading the private table, drawing noise, weighting the public table"), warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)  # said in the result
        ratio.fit(private=private, public=public)


def _picture(ratio: DensityRatio, private: Path | None) -> str:
    from sabun.density.export import table_of
    from sabun.density.picture import weights_svg

    names = list(ratio.release_.provenance.parameters["columns"])
    public = ratio.to_frame()
    columns = [(name, public[name].to_numpy()) for name in names]
    raw = None if private is None else [table_of(private, ratio.schema)[name].to_numpy() for name in names]
    return weights_svg(columns, ratio.weights_, private=raw)
