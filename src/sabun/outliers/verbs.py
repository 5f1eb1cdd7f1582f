"""`sabun outliers`: how many records of a sensitive table are unusual."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun.errors import DataError, ParameterError
from sabun.foreign import parse_json
from sabun.outliers.owner import sensitivity
from sabun.records import FilePart
from sabun.telling.terminal.asked import EVERY_ROW, AskedPersons, as_persons, asked_table, reading
from sabun.telling.terminal.charging import Payment, asked_name, warn_if_large
from sabun.telling.terminal.columns import declared, listed, parted
from sabun.telling.terminal.foretelling import Guess, foretell
from sabun.telling.terminal.options import (
    Again,
    Bounds,
    Columns,
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
)
from sabun.telling.terminal.output import new_file, print_json, print_line
from sabun.telling.terminal.progress import busy
from sabun.telling.terminal.written import same_table, typed_table

if TYPE_CHECKING:
    from sabun.records import Schema
    from sabun.release import Release

__all__ = ["app"]

_HELP = """Count the outliers of a sensitive table, without exposing who they are.

Example:

    sabun outliers plan --n-records 5000 --dimensions 3 --epsilon 0.5
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_Radius = Annotated[float, typer.Option(help="Public distance; columns with bounds span 0 to 1, others keep their units.")]
_K = Annotated[int, typer.Option("--k", help="Neighbours within the radius that an inlier needs.")]
_Method = Annotated[
    str,
    typer.Option(
        "--method",
        "--mechanism",
        metavar="power|global-laplace|laplace|gaussian|global-gaussian|paper",
        help="power or global-laplace: epsilon; laplace, gaussian or global-gaussian: epsilon and delta; paper: the printed "
        "formula (24), to compare with, which promises NOTHING and which no ledger pays for. Older name: --mechanism.",
    ),
]
_Cover = Annotated[
    str, typer.Option(metavar="degeneracy|link-core", help="degeneracy (fast) or link-core (tighter, for small tables).")
]
_Like = Annotated[
    FilePart | None,
    typer.Option(
        "--like",
        parser=typed_table,
        metavar="TABLE",
        help="A PUBLIC table of the same kind, never the private one: tells the error to expect in such.",
    ),
]
_Share = Annotated[str, typer.Option(help="Share of epsilon that pays for the interval; 0 for none.")]


@app.command()
@as_written
@as_persons
def count(
    table: PrivateTable,
    radius: _Radius,
    epsilon: Epsilon,
    k: _K = 5,
    columns: Columns = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    persons: AskedPersons = EVERY_ROW,
    delta: Annotated[str, typer.Option(help="Above 0 only for laplace, gaussian, global-gaussian.")] = "0",
    method: _Method = "power",
    relation: Relation = None,
    cover: _Cover = "degeneracy",
    error_bar: _Share = "0.3",
    confidence: Confidence = 0.95,
    regions: Annotated[Path | None, typer.Option(help="JSON file of regions: count in each of them instead.")] = None,
    like: _Like = None,
    n_records: Guess = None,
    engine: EngineName = None,
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    retry_key: RetryKey = None,
    label: Label = None,
    again: Again = False,
    out: Out = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Release the private number of outliers, with an interval.

    Example:

        sabun datasets save wdbc tumours.csv --schema tumours.schema.json

        sabun outliers count tumours.csv --schema tumours.schema.json --k 5 --radius 0.9 --epsilon 1 --out count.json
    """
    from sabun.outliers import OutlierCount, RegionCount

    if out is not None:
        new_file(out)
    known = declared(schema, bounds)
    chosen = listed(columns, known)
    payment = Payment.of(ledger, purpose, table=asked_name(table, label, again))
    public: dict[str, Any] = {"k": k, "radius": radius, "epsilon": epsilon, "cover": cover, "error_bar": error_bar}
    public |= {"confidence": confidence, "columns": chosen, "schema": known, "ledger": payment.book, "retry_key": retry_key}
    if regions is not None:
        if engine is not None:
            raise ParameterError("engine must be left out with --regions, which take the table itself. Drop one of them.")
        if (method, relation or "replace-one", delta) != ("power", "replace-one", "0"):
            raise ParameterError("regions must be counted with method power, relation replace-one, delta 0.")
        if like is not None:
            raise ParameterError("like must be left out with --regions, whose plan it cannot tell. Drop one of them.")
        by_region = RegionCount(regions=_regions(regions), **public)
        with payment, asked_table(table, engine=None, persons=persons) as asked:
            read, rows = _held(asked, known)
            told = foretell(by_region, n_records=rows, dimensions=_width(known, chosen), yes=yes, json=json)
            with busy("Counting outliers by region"):
                by_region.fit(read)
            _tell_regions(by_region.release_, payment, out, told, json=json)
        return
    if like is not None and same_table(like, table):
        raise ParameterError("like must be another table than the private one; got the same file. Name a public one.")
    alike = None if like is None else persons.table(like)
    whole = OutlierCount(delta=delta, method=method, relation=relation, **public)
    with payment, asked_table(table, engine=engine, persons=persons, quiet=json) as asked:
        in_pieces = engine is not None and persons.id is None  # persons are put together first, and counted here
        held: tuple[Any, int | None] = (asked, n_records) if in_pieces else _held(asked, known)
        read, known_rows = held
        with busy("Planning"):
            guess = (
                known_rows if payment.relation(relation) == "replace-one" else n_records
            )  # otherwise the number of rows is private, as is a refusal
            told = foretell(whole, n_records=guess, dimensions=_width(known, chosen), like=alike, yes=yes, json=json)
        with nullcontext() if in_pieces else busy("Counting outliers"):  # pieces have a bar of their own
            whole.fit(read)
        _tell_count(whole.release_, payment, out, told, json=json)


@app.command()
@as_written
@as_persons
def choose(
    table: PrivateTable,
    subspace: Annotated[list[str], typer.Option(help="name=column,column; give at least two.")],
    radius: _Radius,
    epsilon: Epsilon,
    k: _K = 5,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    persons: AskedPersons = EVERY_ROW,
    cover: _Cover = "degeneracy",
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    retry_key: RetryKey = None,
    label: Label = None,
    again: Again = False,
    out: Out = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Choose privately the set of columns in which most records are outliers.

    Example:

        sabun datasets save wdbc tumours.csv --schema tumours.schema.json

        sabun outliers choose tumours.csv --schema tumours.schema.json --radius 0.1 --epsilon 1 \
--subspace 'size=mean radius,mean area' --subspace 'shape=mean symmetry,mean concavity'
    """
    from sabun.outliers import SubspaceChoice

    if out is not None:
        new_file(out)
    sides = dict(_subspace(text) for text in subspace)
    if len(sides) < len(subspace):
        raise ParameterError("subspace must have another name in each place; one name stands there twice.")
    if len(sides) < 2:
        raise ParameterError(f"subspace must be given for at least two names to choose from; got {len(sides)}.")
    known = declared(schema, bounds)
    listed(",".join(column for columns in sides.values() for column in columns), known, option="subspace")
    payment = Payment.of(ledger, purpose, table=asked_name(table, label, again))
    choice = SubspaceChoice(
        subspaces=sides,
        k=k,
        radius=radius,
        epsilon=epsilon,
        cover=cover,
        schema=known,
        ledger=payment.book,
        retry_key=retry_key,
    )
    with payment, asked_table(table, engine=None, persons=persons) as asked:
        read, rows = _held(asked, known)
        widest = max(_width(known, side) for side in sides.values())
        told = foretell(choice, n_records=rows, dimensions=widest, yes=yes, json=json)
        with busy("Scoring the subspaces"):
            choice.fit(read)
        payment.save(choice.release_, out)
    if json:
        print_json({"choice": choice.choice_} | told | payment.record(choice.release_, out))
        return
    print_line(f"Most outliers: {choice.choice_!r} ({', '.join(sides[choice.choice_])}).", style="bold")
    payment.tell(choice.release_, out)


@app.command()
def plan(
    n_records: NRecords,
    epsilon: Epsilon,
    dimensions: Annotated[
        int | None, typer.Option(help="How many columns distances are measured in; --schema or --like tells it too.")
    ] = None,
    like: _Like = None,
    radius: Annotated[float | None, typer.Option(help="With --like: the public distance, as in count.")] = None,
    columns: Columns = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    k: _K = 5,
    delta: Annotated[str, typer.Option(help="Above 0 only for laplace, gaussian, global-gaussian.")] = "0",
    method: _Method = "power",
    relation: Relation = None,
    error_bar: _Share = "0.3",
    confidence: Confidence = 0.95,
    json: Json = False,
) -> None:
    """Say what a count will cost and how far off it may be; touches no private data.

    A public table of the same kind tells how far off it will be in such a table.

    Example:

        sabun outliers plan --n-records 5000 --dimensions 3 --epsilon 0.5

        sabun datasets save wdbc public.csv --schema public.schema.json

        sabun outliers plan --n-records 500 --epsilon 1 --like public.csv --schema public.schema.json --radius 0.9
    """
    from sabun.outliers import OutlierCount

    if like is not None and radius is None:
        raise ParameterError("like and radius must come together: what is far depends on the radius. Pass --like and --radius.")
    known = declared(schema, bounds) if schema is not None or bounds else None
    chosen = None if known is None else listed(columns, known)
    if known is not None and like is None and dimensions is None:
        dimensions = (known if chosen is None else known.select(chosen)).width
    estimator = OutlierCount(
        k=k,
        radius=1.0 if radius is None else radius,  # without a reference it plays no part in a plan
        columns=chosen,
        schema=known,
        epsilon=epsilon,
        delta=delta,
        method=method,
        relation=relation,
        error_bar=error_bar,
        confidence=confidence,
    )
    made = estimator.plan(n_records=n_records, dimensions=dimensions, like=like)
    if json:
        print_json(made.to_dict())
        return
    print_line(str(made))
    warn_if_large(made.epsilon)


@app.command()
@as_written
def radius(
    reference: Annotated[
        FilePart,
        typer.Argument(parser=typed_table, metavar="TABLE", help="A PUBLIC table of this kind; never the private one."),
    ],
    k: _K = 5,
    share: Annotated[float, typer.Option(help="Share of the reference that should be outliers.")] = 0.01,
    columns: Columns = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    json: Json = False,
) -> None:
    """Suggest a radius from a public reference table.

    Example:

        sabun datasets save wdbc public.csv --schema public.schema.json

        sabun outliers radius public.csv --schema public.schema.json --k 5 --share 0.02
    """
    from sabun.outliers import suggest_radius

    known = declared(schema, bounds)
    chosen = listed(columns, known)
    known = known if chosen is None else known.select(chosen)
    found = suggest_radius(reference, k=k, share=share, schema=known)
    if json:
        print_json({"radius": found, "k": k, "share": share})
    else:
        print_line(f"--radius {found:.6g} makes about {share:.2%} of the reference outliers (k = {k}).")


app.command()(sensitivity)


def _subspace(text: str) -> tuple[str, list[str]]:
    name, equals, columns = text.partition("=")
    if not (equals and name.strip() and columns.strip()):
        raise ParameterError(f"subspace must look like name=column,column; got {text!r:.60}.")
    return name.strip(), parted(columns)


def _regions(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError:
        raise DataError(f"regions file {str(path)!r} cannot be read. Check its name.") from None
    found = parse_json(content, what=f"regions file {str(path)!r}", error=DataError)
    if not isinstance(found, dict):
        raise DataError(f'regions file {str(path)!r} must hold one JSON object such as {{"old": {{"age": [65, null]}}}}.')
    return found


def _held(asked: Any, known: Schema) -> tuple[Any, int]:
    """A table or its persons, read once, with how many there are: what is counted is what the plan was for."""
    from sabun.engine.by_person import here
    from sabun.records import open_source

    with reading(asked):
        return open_source(here(asked, schema=known), schema=known, by_person=True).held()


def _width(known: Schema, chosen: Sequence[str] | None) -> int:
    return (known if chosen is None else known.select(chosen)).width


def _tell_count(release: Release, payment: Payment, out: Path | None, told: dict[str, Any], *, json: bool) -> None:
    payment.save(release, out)
    interval = release.value.get("interval")
    if json:
        found = {"count": release["count"], "interval": None if interval is None else list(interval)}
        print_json(found | told | payment.record(release, out))
        return
    print_line(f"Outliers: {release['count']}", style="bold")
    if interval is not None:
        level = release.provenance.parameters["confidence"]
        print_line(f"The exact number lies between {interval[0]} and {interval[1]} with probability {level:g} or more.")
    else:
        print_line(_without_interval(release))
    payment.tell(release, out)


def _tell_regions(release: Release, payment: Payment, out: Path | None, told: dict[str, Any], *, json: bool) -> None:
    payment.save(release, out)
    intervals = release.value.get("intervals")
    if json:
        ranges = None if intervals is None else {name: list(interval) for name, interval in intervals.items()}
        print_json({"counts": dict(release["counts"]), "intervals": ranges} | told | payment.record(release, out))
        return
    for name, found in release["counts"].items():
        tail = "" if intervals is None else f"   (between {intervals[name][0]} and {intervals[name][1]})"
        print_line(f"{name}: {found}{tail}", style="bold")
    if intervals is None:
        print_line(_without_interval(release))
    payment.tell(release, out)


def _without_interval(release: Release) -> str:
    """Why a release has no interval: the noise is scaled by the table, so its size is private unless that is paid for."""
    if release.provenance.parameters.get("mechanism") == "paper":
        return "There is no interval: the formula as printed promises nothing."
    return (
        "There is no interval: the error bar got no share of epsilon, and how much noise was added depends on the table, "
        "so it is private. Pass --error-bar 0.3 next time."
    )
