"""`sabun outliers`: how many records of a sensitive table are unusual."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from sabun.cli._output import Json, print_json, print_line
from sabun.errors import DataError, ParameterError
from sabun.privacy.amounts import plain

if TYPE_CHECKING:
    from sabun.ledger import Ledger
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
_Ledger = Annotated[Path | None, typer.Option(help="The ledger to charge.")]
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
    ledger: _Ledger = None,
    key: _Key = None,
    out: _Out = None,
    json: Json = False,
) -> None:
    """Release the private number of outliers, with an interval.

    Example:

        sabun datasets save wdbc tumours.csv --schema tumours.schema.json

        sabun outliers count tumours.csv --schema tumours.schema.json --k 5 --radius 0.9 --epsilon 1 --out count.json
    """
    from sabun.outliers import OutlierCount, RegionCount

    _refuse_existing(out)
    declared, chosen = _declared(schema, bounds, columns)
    book = _opened(ledger)
    public: dict[str, Any] = {"k": k, "radius": radius, "epsilon": epsilon, "cover": cover, "error_bar": error_bar}
    public |= {"columns": chosen, "schema": declared, "ledger": book, "key": key}
    if regions is not None:
        if (mechanism, relation, delta) != ("power", "replace-one", "0"):
            raise ParameterError("regions must be counted with mechanism power, relation replace-one, delta 0.")
        by_region = RegionCount(regions=_regions(regions), **public)
        with _busy("Counting outliers by region"):
            by_region.fit(table)
        _tell_regions(by_region.release_, book, out, json=json)
        return
    whole = OutlierCount(delta=delta, mechanism=mechanism, relation=relation, **public)
    with _busy("Counting outliers"):
        whole.fit(table)
    _tell_count(whole.release_, book, out, json=json)


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
    ledger: _Ledger = None,
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

    _refuse_existing(out)
    declared, _ = _declared(schema, bounds, None)
    book = _opened(ledger)
    sides = dict(_subspace(text) for text in subspace)
    choice = SubspaceChoice(
        subspaces=sides, k=k, radius=radius, epsilon=epsilon, cover=cover, schema=declared, ledger=book, key=key
    )
    with _busy("Scoring the subspaces"):
        choice.fit(table)
    if out is not None:
        choice.release_.save(out)
    if json:
        print_json({"choice": choice.choice_} | _common(choice.release_, book, out))
        return
    print_line(f"Most outliers: {choice.choice_!r} ({', '.join(sides[choice.choice_])}).", style="bold")
    _close(choice.release_, book, out)


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
    else:
        print_line(str(made))


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
    if declared is None:
        raise ParameterError(
            "columns must be declared: pass --schema or --bounds name=low:high. Bounds never come from the data."
        )
    known = declared if chosen is None else declared.select(chosen)
    found = suggest_radius(reference, k=k, share=share, schema=known)
    if json:
        print_json({"radius": found, "k": k, "share": share})
    else:
        print_line(f"--radius {found:.6g} makes about {share:.2%} of the reference outliers (k = {k}).")


def _declared(schema: Path | None, bounds: list[str] | None, columns: str | None) -> tuple[Schema | None, list[str] | None]:
    """The public facts about the columns, the columns asked for."""
    from sabun.records import Column, Schema

    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    declared = [] if schema is None else list(Schema.load(schema).columns)
    for text in bounds or []:
        name, low, high = _bound(text)
        declared = [column for column in declared if column.name != name] + [Column.number(name, lower=low, upper=high)]
    if not declared:
        raise ParameterError(
            "columns must be declared: pass --schema or --bounds name=low:high. "
            "Bounds never come from the data: with them every cell has a place and every column a public scale."
        )
    return Schema(columns=tuple(declared)), chosen


def _bound(text: str) -> tuple[str, float, float]:
    name, equals, limits = text.rpartition("=")
    low, colon, high = limits.partition(":")
    try:
        if not (equals and colon and name.strip()):
            raise ValueError
        return name.strip(), float(low), float(high)
    except ValueError:
        raise ParameterError(f"bounds must look like name=low:high, such as age=0:120; got {text!r:.60}.") from None


def _subspace(text: str) -> tuple[str, list[str]]:
    name, equals, columns = text.partition("=")
    if not (equals and name.strip() and columns.strip()):
        raise ParameterError(f"subspace must look like name=column,column; got {text!r:.60}.")
    return name.strip(), [column.strip() for column in columns.split(",")]


def _regions(path: Path) -> dict[str, Any]:
    try:
        found = json_module.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise DataError(f"regions file {str(path)!r} cannot be read. Check its name.") from None
    except ValueError:
        raise DataError(f'regions file {str(path)!r} must be JSON such as {{"old": {{"age": [65, null]}}}}.') from None
    if not isinstance(found, dict):
        raise DataError(f"regions file {str(path)!r} must hold one JSON object.")
    return found


def _opened(ledger: Path | None) -> Ledger | None:
    from sabun.ledger import Ledger

    return None if ledger is None else Ledger.open(ledger)


def _refuse_existing(out: Path | None) -> None:
    if out is not None and out.exists():
        raise ParameterError(f"out must be a new file; {str(out)!r} exists. Nothing was released, nothing was charged.")


@contextmanager
def _busy(words: str) -> Iterator[None]:
    """A moving sign on a terminal's stderr while the work lasts."""
    console = Console(file=sys.stderr, emoji=False, highlight=False)
    if not console.is_terminal:
        yield
        return
    with console.status(words):
        yield


def _tell_count(release: Release, book: Ledger | None, out: Path | None, *, json: bool) -> None:
    if out is not None:
        release.save(out)
    interval = release.value.get("interval")
    if json:
        found = {"count": release["count"], "interval": None if interval is None else list(interval)}
        print_json(found | _common(release, book, out))
        return
    print_line(f"Outliers: {release['count']}", style="bold")
    if interval is not None:
        level = release.provenance.parameters["confidence"]
        print_line(f"The exact number lies between {interval[0]} and {interval[1]} with probability {level:g} or more.")
    _close(release, book, out)


def _tell_regions(release: Release, book: Ledger | None, out: Path | None, *, json: bool) -> None:
    if out is not None:
        release.save(out)
    intervals = release.value.get("intervals")
    if json:
        ranges = None if intervals is None else {name: list(interval) for name, interval in intervals.items()}
        print_json({"counts": dict(release["counts"]), "intervals": ranges} | _common(release, book, out))
        return
    for name, found in release["counts"].items():
        tail = "" if intervals is None else f"   (between {intervals[name][0]} and {intervals[name][1]})"
        print_line(f"{name}: {found}{tail}", style="bold")
    _close(release, book, out)


def _common(release: Release, book: Ledger | None, out: Path | None) -> dict[str, Any]:
    return {
        "guarantee": release.guarantee.to_dict(),
        "out": None if out is None else str(out),
        "remaining": None if book is None else book.remaining.to_dict(),
    }


def _close(release: Release, book: Ledger | None, out: Path | None) -> None:
    print_line(str(release.guarantee))
    print_line(f"Ledger: {release.provenance.charge}.")
    if out is not None:
        print_line(f"Saved as {str(out)!r}.", style="green")
    if book is not None:
        print_line(f"{book.name!r} has epsilon {plain(book.remaining.epsilon)} of {plain(book.budget.epsilon)} left.")
