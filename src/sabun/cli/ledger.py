"""`sabun ledger`: the book of what was spent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from sabun.cli._ledger_outside import allow, statement
from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.ledger.address import is_address, shown
from sabun.ledger.wording import at_most
from sabun.privacy.amounts import Amount, exact
from sabun.release import recovered
from sabun.telling.terminal.charging import warn_if_large
from sabun.telling.terminal.output import Json, new_file, print_json, print_line
from sabun.telling.terminal.progress import progress_bar

__all__ = ["app"]

_HELP = """Create, show or check the book of privacy charges.

Example:

    sabun ledger create clinic.ledger --name clinic --epsilon 3
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

# An exponent of more than three digits would make a number too long to hold.
_AMOUNT = re.compile(r"[0-9./]{1,80}([eE][+-]?[0-9]{1,3})?", re.ASCII)

_LISTED = 20

_Path = Annotated[str, typer.Argument(help="The ledger's file, or its address on a server (postgresql://…).")]


@app.command()
def create(
    path: _Path,
    name: Annotated[str, typer.Option(help="What the budget is for.")],
    epsilon: Annotated[str, typer.Option(help="The whole budget, exactly as written: 3, 0.1 or 1/3.")],
    delta: Annotated[str, typer.Option(help="The same for delta, such as 1e-6.")] = "0",
    unit: Annotated[str, typer.Option(help="Whose data is protected: record, patient, ...")] = "record",
    relation: Annotated[str, typer.Option(help="replace-one, add-remove or local.")] = "replace-one",
    json: Json = False,
) -> None:
    """Create a ledger with a budget that can never grow.

    Example:

        sabun ledger create clinic.ledger --name clinic --unit patient --epsilon 3
    """
    if not is_address(path):
        new_file(Path(path), name="path")
    budget = {"epsilon": _amount(epsilon, "epsilon"), "delta": _amount(delta, "delta")}
    ledger = Ledger.create(path, name=name, unit=unit, relation=relation, **budget)
    if json:
        print_json(_record(path, ledger))
        return
    print_line(f"Created {shown(path)!r}.", style="bold")
    print_line(_summary(ledger))
    warn_if_large(ledger.budget.epsilon)


@app.command()
def show(
    path: _Path,
    last: Annotated[
        int | None, typer.Option(min=0, help="How many of the newest charges to list; 20 unless told, with --json all.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="List every charge.")] = False,
    json: Json = False,
) -> None:
    """Show the budget, what is left of it, the newest charges.

    Example:

        sabun ledger create clinic.ledger --name clinic --epsilon 3

        sabun ledger show clinic.ledger
    """
    if everything and last is not None:
        raise ParameterError("last must be left out with --all; got both. Choose one.")
    ledger = Ledger.open(path)
    if json:
        print_json(_record(path, ledger, last=last))
    else:
        print_line(ledger.show(last=None if everything else _LISTED if last is None else last))


@app.command()
def verify(
    path: _Path,
    head: Annotated[str | None, typer.Option(help="A hash you kept: the newest one, or the one on a receipt.")] = None,
    json: Json = False,
) -> None:
    """Check that no row was changed, removed or added by hand.

    Example:

        sabun ledger create clinic.ledger --name clinic --epsilon 3

        sabun ledger verify clinic.ledger
    """
    ledger = Ledger.open(path)
    with progress_bar("Reading every row", quiet=json) as progress:
        found = ledger.verify(expect_head=head, progress=progress)
    if json:
        record = {
            "path": shown(path),
            "ok": True,
            "entries": found.entries,
            "head_hash": found.head_hash,
            "head_checked": head is not None,
        }
        print_json(record)
        return
    print_line(f"Nothing was changed: {found.entries} charges, each row follows the one before it.", style="bold")
    print_line(f"Newest hash: {found.head_hash}")
    if head is None:
        print_line("Keep this hash elsewhere. With --head it also finds rows cut off the end.")


@app.command()
def recover(
    path: _Path,
    entry: Annotated[int, typer.Argument(help="The number of the charge, as `sabun ledger show` lists it.")],
    out: Annotated[Path, typer.Option(help="The release file to write (JSON).")],
    json: Json = False,
) -> None:
    """Write a result again that was paid for, when its file was lost; costs nothing.

    Example:

        sabun datasets save wdbc tumours.csv --schema tumours.schema.json

        sabun ledger create clinic.ledger --name clinic --epsilon 3

        sabun outliers count tumours.csv --schema tumours.schema.json --radius 0.9 --epsilon 1 --ledger clinic.ledger

        sabun ledger recover clinic.ledger 1 --out count.json
    """
    new_file(out)
    found = recovered(Ledger.open(path), entry)
    found.save(out)
    if json:
        print_json({"path": shown(path), "entry": entry, "out": str(out), "kind": found.provenance.kind})
    else:
        print_line(f"Wrote {str(out)!r}: {found.provenance.kind}, {found.provenance.charge}.", style="bold")


app.command()(statement)
app.command()(allow)


def _amount(text: str, name: str) -> Amount:
    if not _AMOUNT.fullmatch(text):
        raise ParameterError(f"{name} must be a number such as 0.5, 1/3 or 1e-6; got {text!r:.60}.")
    return exact(text, name=name)


def _record(path: str, ledger: Ledger, *, last: int | None = None) -> dict[str, Any]:
    return {"path": shown(path)} | ledger.to_dict(last=last)


def _summary(ledger: Ledger) -> str:
    epsilon, delta = ledger.budget
    return f"{ledger.name!r}: epsilon {at_most(epsilon)}, delta {at_most(delta)} for each {ledger.unit} ({ledger.relation})."
