"""`sabun outliers`: how many records of a sensitive table are unusual."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun.cli._bounds import typed_bounds
from sabun.cli._charging import LedgerFile, Payment, Purpose, warn_if_large
from sabun.cli._output import Json, new_file, print_json, print_line
from sabun.cli._progress import busy
from sabun.errors import DataError, ParameterError
from sabun.foreign import parse_json
from sabun.privacy.amounts import plain

if TYPE_CHECKING:
    from sabun.outliers import OutlierCount
    from sabun.records import Schema
    from sabun.release import Release

__all__ = ["app"]

_HELP = """Count the outliers of a sensitive table, without exposing who they are.

Example:

    sabun outliers plan --records 5000 --dimensions 3 --epsilon 0.5
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_Table = Annotated[Path, typer.Argument(help="The private table (.csv or .parquet).")]
_Epsilon = Annotated[str, typer.Option(help="Privacy loss of the release, exactly as written: 1, 0.1 or 1/3.")]
_Radius = Annotated[float, typer.Option(help="Public distance; columns with bounds span 0 to 1, others keep their units.")]
_K = Annotated[int, typer.Option("--k", help="Neighbours within the radius that an inlier needs.")]
_Columns = Annotated[str | None, typer.Option(help="Names of the columns to measure distances in, separated by commas.")]
_Bounds = Annotated[
    list[str] | None, typer.Option(help="Public bounds of a column, name=low:high; may be given several times.")
]
_SchemaFile = Annotated[Path | None, typer.Option(help="Public bounds and categories of the columns (JSON).")]
_Key = Annotated[str | None, typer.Option(help="A name for this release: a retry with it costs nothing.")]
_Out = Annotated[Path | None, typer.Option(help="Where to save the release (JSON).")]
_Cover = Annotated[str, typer.Option(help="degeneracy (fast) or link-core (tighter, for small tables).")]
_Share = Annotated[str, typer.Option(help="Share of epsilon that pays for the interval; 0 for none.")]


@app.command()
def count(
    table: _Table,
    radius: _Radius,
    epsilon: _Epsilon,
    k: _K = 5,
    columns: _Columns = None,
    bounds: _Bounds = None,
    schema: _SchemaFile = None,
    delta: Annotated[str, typer.Option(help="Above 0 only for laplace, gaussian, global-gaussian.")] = "0",
    mechanism: Annotated[str, typer.Option(help="power, laplace, gaussian, global-laplace, global-gaussian.")] = "power",
    relation: Annotated[str, typer.Option(help="replace-one, or add-remove (hides the number of rows too).")] = "replace-one",
    cover: _Cover = "degeneracy",
    error_bar: _Share = "0.3",
    regions: Annotated[Path | None, typer.Option(help="JSON file of regions: count in each of them instead.")] = None,
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    key: _Key = None,
    out: _Out = None,
    yes: Annotated[bool, typer.Option("--yes", help="Release even if nothing but noise is expected.")] = False,
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
    declared, chosen = _declared(schema, bounds, columns)
    payment = Payment.of(ledger, purpose)
    public: dict[str, Any] = {"k": k, "radius": radius, "epsilon": epsilon, "cover": cover, "error_bar": error_bar}
    public |= {"columns": chosen, "schema": declared, "ledger": payment.book, "key": key}
    if regions is not None:
        if (mechanism, relation, delta) != ("power", "replace-one", "0"):
            raise ParameterError("regions must be counted with mechanism power, relation replace-one, delta 0.")
        by_region = RegionCount(regions=_regions(regions), **public)
        with payment:
            with busy("Counting outliers by region"):
                by_region.fit(table)
            _tell_regions(by_region.release_, payment, out, json=json)
        return
    whole = OutlierCount(delta=delta, mechanism=mechanism, relation=relation, **public)
    if relation == "replace-one" and not yes:  # otherwise the number of rows is private, and so would be a refusal
        _refuse_noise(whole, table, declared if chosen is None else declared.select(chosen))
    with payment:
        with busy("Counting outliers"):
            whole.fit(table)
        _tell_count(whole.release_, payment, out, json=json)


@app.command()
def choose(
    table: _Table,
    subspace: Annotated[list[str], typer.Option(help="name=column,column; give at least two.")],
    radius: _Radius,
    epsilon: _Epsilon,
    k: _K = 5,
    bounds: _Bounds = None,
    schema: _SchemaFile = None,
    cover: _Cover = "degeneracy",
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    key: _Key = None,
    out: _Out = None,
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
    declared, _ = _declared(schema, bounds, ",".join(column for columns in sides.values() for column in columns))
    payment = Payment.of(ledger, purpose)
    choice = SubspaceChoice(
        subspaces=sides, k=k, radius=radius, epsilon=epsilon, cover=cover, schema=declared, ledger=payment.book, key=key
    )
    with payment:
        with busy("Scoring the subspaces"):
            choice.fit(table)
        _save(choice.release_, payment, out)
    if json:
        print_json({"choice": choice.choice_} | _common(choice.release_, payment, out))
        return
    print_line(f"Most outliers: {choice.choice_!r} ({', '.join(sides[choice.choice_])}).", style="bold")
    payment.tell(choice.release_, out)


@app.command()
def plan(
    records: Annotated[int, typer.Option(help="About how many records there are; a public number.")],
    dimensions: Annotated[int, typer.Option(help="How many columns distances are measured in.")],
    epsilon: _Epsilon,
    k: _K = 5,
    delta: Annotated[str, typer.Option(help="Above 0 only for laplace, gaussian, global-gaussian.")] = "0",
    mechanism: Annotated[str, typer.Option(help="power, laplace, gaussian, global-laplace, global-gaussian.")] = "power",
    relation: Annotated[str, typer.Option(help="replace-one or add-remove.")] = "replace-one",
    error_bar: _Share = "0.3",
    json: Json = False,
) -> None:
    """Say what a count will cost and how far off it may be; touches no data.

    Example:

        sabun outliers plan --records 5000 --dimensions 3 --epsilon 0.5
    """
    from sabun.outliers import OutlierCount

    # The radius plays no part in a plan.
    estimator = OutlierCount(
        k=k, radius=1.0, epsilon=epsilon, delta=delta, mechanism=mechanism, relation=relation, error_bar=error_bar
    )
    made = estimator.plan(n=records, d=dimensions)
    if json:
        print_json(made.to_dict())
        return
    print_line(str(made))
    warn_if_large(made.epsilon)


@app.command()
def radius(
    reference: Annotated[Path, typer.Argument(help="A PUBLIC table of the same kind; never the private one.")],
    k: _K = 5,
    share: Annotated[float, typer.Option(help="Share of the reference that should be outliers.")] = 0.01,
    columns: _Columns = None,
    bounds: _Bounds = None,
    schema: _SchemaFile = None,
    json: Json = False,
) -> None:
    """Suggest a radius from a public reference table.

    Example:

        sabun datasets save wdbc public.csv --schema public.schema.json

        sabun outliers radius public.csv --schema public.schema.json --k 5 --share 0.02
    """
    from sabun.outliers import suggest_radius

    declared, chosen = _declared(schema, bounds, columns)
    known = declared if chosen is None else declared.select(chosen)
    found = suggest_radius(reference, k=k, share=share, schema=known)
    if json:
        print_json({"radius": found, "k": k, "share": share})
    else:
        print_line(f"--radius {found:.6g} makes about {share:.2%} of the reference outliers (k = {k}).")


def _declared(schema: Path | None, bounds: list[str] | None, columns: str | None) -> tuple[Schema, list[str] | None]:
    """The public facts about the columns, the columns asked for."""
    from sabun.records import Column, Schema

    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    declared = [] if schema is None else list(Schema.load(schema).columns)
    for text in bounds or []:
        name, ends = typed_bounds(text)
        declared = [column for column in declared if column.name != name] + [Column.number(name, bounds=ends)]
    if not declared:
        raise ParameterError(
            "columns must be declared: pass --schema or --bounds name=low:high. "
            "Bounds never come from the data: with them every cell has a place and every column a public scale."
        )
    known = Schema(columns=tuple(declared))
    for name in chosen or []:
        if name not in known.names:
            raise ParameterError(f"columns must be declared; got {name!r}, which is not. Add --bounds '{name}=low:high'.")
    return known, chosen


def _subspace(text: str) -> tuple[str, list[str]]:
    name, equals, columns = text.partition("=")
    if not (equals and name.strip() and columns.strip()):
        raise ParameterError(f"subspace must look like name=column,column; got {text!r:.60}.")
    return name.strip(), [column.strip() for column in columns.split(",")]


def _regions(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError:
        raise DataError(f"regions file {str(path)!r} cannot be read. Check its name.") from None
    found = parse_json(content, what=f"regions file {str(path)!r}", error=DataError)
    if not isinstance(found, dict):
        raise DataError(f'regions file {str(path)!r} must hold one JSON object such as {{"old": {{"age": [65, null]}}}}.')
    return found


def _refuse_noise(estimator: OutlierCount, table: Path, declared: Schema) -> None:
    """Refuses to take money for an interval that says nothing; from public facts, of which the number of rows is one here."""
    from sabun.records import open_source

    first = declared.select(declared.names[:1])
    rows = sum(len(part) for part in open_source(table, schema=first).partitions())
    if rows and (plan := estimator.plan(n=rows, d=declared.width)).vacuous:
        raise ParameterError(
            f"epsilon must be larger to tell anything about {rows} records; got {plain(plan.epsilon)}: even at best the "
            f"interval would reach {plan.kindest_width} up or down. Nothing was released, nothing was charged. "
            "Raise --epsilon, or pass --yes to release anyway."
        )


def _save(release: Release, payment: Payment, out: Path | None) -> None:
    if out is not None:
        with payment.writing(release):
            release.save(out)


def _tell_count(release: Release, payment: Payment, out: Path | None, *, json: bool) -> None:
    _save(release, payment, out)
    interval = release.value.get("interval")
    if json:
        found = {"count": release["count"], "interval": None if interval is None else list(interval)}
        print_json(found | _common(release, payment, out))
        return
    print_line(f"Outliers: {release['count']}", style="bold")
    if interval is not None:
        level = release.provenance.parameters["confidence"]
        print_line(f"The exact number lies between {interval[0]} and {interval[1]} with probability {level:g} or more.")
    payment.tell(release, out)


def _tell_regions(release: Release, payment: Payment, out: Path | None, *, json: bool) -> None:
    _save(release, payment, out)
    intervals = release.value.get("intervals")
    if json:
        ranges = None if intervals is None else {name: list(interval) for name, interval in intervals.items()}
        print_json({"counts": dict(release["counts"]), "intervals": ranges} | _common(release, payment, out))
        return
    for name, found in release["counts"].items():
        tail = "" if intervals is None else f"   (between {intervals[name][0]} and {intervals[name][1]})"
        print_line(f"{name}: {found}{tail}", style="bold")
    payment.tell(release, out)


def _common(release: Release, payment: Payment, out: Path | None) -> dict[str, Any]:
    return payment.facts(release) | {"out": None if out is None else str(out)}
