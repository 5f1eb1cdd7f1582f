"""`sabun ledger`: the book of what was spent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from sabun.cli._ledger_outside import allow, statement
from sabun.errors import ParameterError
from sabun.ledger import Ledger, together
from sabun.ledger.address import is_address, shown, with_account
from sabun.ledger.wording import at_most
from sabun.privacy.amounts import Amount, exact
from sabun.release import recovered
from sabun.telling.language import chosen
from sabun.telling.terminal.charging import warn_if_large
from sabun.telling.terminal.options import Lang
from sabun.telling.terminal.output import Json, new_file, print_json, print_line
from sabun.telling.terminal.progress import progress_bar

__all__ = ["app"]

_HELP = """Create, show, check or change the book of privacy charges.

Example:

    sabun ledger create clinic.ledger --name clinic --epsilon 3
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

# An exponent of more than three digits would make a number too long to hold.
_AMOUNT = re.compile(r"[+-]?[0-9./]{1,80}([eE][+-]?[0-9]{1,3})?", re.ASCII)

_LISTED = 20

_Path = Annotated[str, typer.Argument(help="The ledger's file, or its address on a server (postgresql://…).")]
_Through = Annotated[str, typer.Argument(help="The ledger's file or address, with ::ACCOUNT for what is left to an account.")]


@app.command()
def create(
    path: _Path,
    name: Annotated[str, typer.Option(help="What the budget is for.")],
    epsilon: Annotated[str, typer.Option(help="The whole budget, exactly as written: 3, 0.1 or 1/3.")],
    delta: Annotated[str, typer.Option(help="The same for delta, such as 1e-6; regression and learning need some.")] = "0",
    unit: Annotated[str, typer.Option(help="Whose data is protected: record, patient, ...")] = "record",
    relation: Annotated[
        str, typer.Option(metavar="replace-one|add-remove|local", help="replace-one, add-remove or local.")
    ] = "replace-one",
    ceiling: Annotated[str | None, typer.Option(help="What epsilon may be raised to later; promises are made for it.")] = None,
    account: Annotated[list[str] | None, typer.Option(help="A part of the whole with a name: cardiology=1/3.")] = None,
    group: Annotated[int, typer.Option(help="How many units one change may concern together.")] = 1,
    accounting: Annotated[
        str, typer.Option(metavar="shares|sums", help="shares (sums or a Rényi order, whichever admits) or sums.")
    ] = "shares",
    order: Annotated[int | None, typer.Option(help="The Rényi order; chosen from the budget when left out.")] = None,
    shares: Annotated[str | None, typer.Option(help="Parts of delta: for sums, stated deltas, the order.")] = None,
    json: Json = False,
) -> None:
    """Create a ledger; its budget grows at most to a ceiling declared now.

    With a delta it counts two ways at once, by sums and by a Rényi order: many small questions cost less than their sum.

    Example:

        sabun ledger create clinic.ledger --name clinic --unit patient --epsilon 3 --delta 1e-6
    """
    if not is_address(path):
        new_file(Path(path), name="path")
    ledger = Ledger.create(
        path,
        name=name,
        unit=unit,
        relation=relation,
        epsilon=_amount(epsilon, "epsilon"),
        delta=_amount(delta, "delta"),
        ceiling=None if ceiling is None else _amount(ceiling, "ceiling"),
        accounts=dict(map(_account, account or ())),
        group=group,
        accounting=accounting,
        order=order,
        shares=None if shares is None else [_amount(part, "shares") for part in shares.split(",")],
    )
    if json:
        print_json(_record(path, ledger))
        return
    print_line(f"Created {shown(path)!r}.", style="bold")
    print_line(_summary(ledger))
    warn_if_large(ledger.budget.epsilon)


@app.command()
def show(
    path: _Through,
    last: Annotated[
        int | None, typer.Option(min=0, help="How many of the newest charges to list; 20 unless told, with --json all.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="List every charge.")] = False,
    epsilon: Annotated[str | None, typer.Option(help="A size of question to tell the cost of.")] = None,
    html: Annotated[Path | None, typer.Option(help="Also draw it as a page in this file.")] = None,
    lang: Lang = None,
    json: Json = False,
) -> None:
    """Show how much of the budget is used, how many questions are left, the newest charges.

    Example:

        sabun ledger create clinic.ledger --name clinic --epsilon 3

        sabun ledger show clinic.ledger --html clinic.html
    """
    if everything and last is not None:
        raise ParameterError("last must be left out with --all; got both. Choose one.")
    lang, listed = chosen(lang), None if everything else _LISTED if last is None else last
    ledger, size = _through(path), None if epsilon is None else _amount(epsilon, "epsilon")
    if html is not None:
        from sabun.reports import budget, save_page

        new_file(html, name="html")
        save_page(budget(ledger, epsilon=size, last=listed, lang=lang), html)
    if json:
        more = {} if size is None else {"forecast": ledger.forecast(size).to_dict()}
        print_json(_record(path, ledger, last=last) | more)
    else:
        print_line(ledger.show(last=listed, epsilon=size))
        if html is not None:
            print_line(f"Wrote {str(html)!r}.", style="bold")


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


@app.command()
def rest(
    path: _Through,
    delta: Annotated[str | None, typer.Option(help="The delta the release is to state.")] = None,
    json: Json = False,
) -> None:
    """Say what to ask for in one last Gaussian release that takes all that is left; costs nothing.

    Example:

        sabun ledger create clinic.ledger --name clinic --epsilon 3 --delta 1e-6

        sabun ledger rest clinic.ledger --delta 1e-7
    """
    found = _through(path).rest(delta=None if delta is None else _amount(delta, "delta"))
    if json:
        print_json({"path": shown(path)} | found.to_dict())
        return
    print_line(f"One last release with Gaussian noise may take it all: rho {at_most(found.rho)}.", style="bold")
    asked = f"--epsilon {at_most(found.epsilon)} --delta {at_most(found.delta)}"
    print_line(f"Ask for it with {asked}, of a method that states its noise to the ledger.")


@app.command("raise")
def raise_(
    path: _Path,
    epsilon: Annotated[str, typer.Option(help="The new budget, at most the ceiling.")],
    reason: Annotated[str, typer.Option(help="Why; public, like all of the ledger.")],
    json: Json = False,
) -> None:
    """Raise the budget, at most to the ceiling declared at creation; the reason is chained like a charge.

    Example:

        sabun ledger create clinic.ledger --name clinic --epsilon 3 --ceiling 5

        sabun ledger raise clinic.ledger --epsilon 4 --reason "board of 12 May"
    """
    ledger = Ledger.open(path)
    ledger.raise_to(_amount(epsilon, "epsilon"), reason=reason)
    _tell(path, ledger, f"{ledger.name!r} may spend epsilon {at_most(ledger.budget.epsilon)} now.", json=json)


@app.command()
def account(
    path: _Path,
    name: Annotated[str, typer.Argument(help="The name of the new account.")],
    part: Annotated[str, typer.Option(help="Its limit as a part of the whole: 1/3 or 0.25.")],
    reason: Annotated[str, typer.Option(help="Why; public, like all of the ledger.")],
    json: Json = False,
) -> None:
    """Open an account with a limit of its own inside the whole; charge it with --ledger FILE::NAME.

    Example:

        sabun ledger create clinic.ledger --name clinic --epsilon 3

        sabun ledger account clinic.ledger cardiology --part 1/3 --reason "project of 2026"
    """
    ledger = Ledger.open(path)
    ledger.open_account(name, _amount(part, "part"), reason=reason)
    _tell(path, ledger, f"{ledger.name!r} has the account {name!r} now.", json=json)


@app.command()
def convert(
    path: _Path,
    reason: Annotated[str, typer.Option(help="Why; public, like all of the ledger.")],
    order: Annotated[int | None, typer.Option(help="The Rényi order; chosen from the budget when left out.")] = None,
    json: Json = False,
) -> None:
    """Let a ledger that counts by sums count by a Rényi order too; earlier charges keep their epsilon.

    Example:

        sabun ledger create clinic.ledger --name clinic --epsilon 3 --delta 1e-6 --accounting sums

        sabun ledger convert clinic.ledger --reason "many small questions from now on"
    """
    ledger = Ledger.open(path)
    ledger.convert(reason=reason, order=order)
    _tell(path, ledger, f"{ledger.name!r} counts by sums or by a Rényi order now, whichever has more left.", json=json)


@app.command("sum")
def sum_(
    paths: Annotated[list[str], typer.Argument(help="The ledgers' files or addresses.")],
    json: Json = False,
) -> None:
    """Say what several ledgers promise together to somebody who is in all of them.

    Example:

        sabun ledger create clinic.ledger --name clinic --epsilon 3

        sabun ledger create lab.ledger --name lab --epsilon 1

        sabun ledger sum clinic.ledger lab.ledger
    """
    found = together([Ledger.open(path) for path in paths])
    if json:
        print_json({"paths": [shown(path) for path in paths], "guarantee": found.to_dict()})
    else:
        print_line(str(found))


app.command()(statement)
app.command()(allow)


def _through(path: str) -> Ledger:
    """The ledger that was typed, FILE or FILE::ACCOUNT."""
    place, account = with_account(path)
    return Ledger.open(place, account=account)


def _tell(path: str, ledger: Ledger, sentence: str, *, json: bool) -> None:
    if json:
        print_json(_record(path, ledger, last=0))
    else:
        print_line(sentence, style="bold")


def _account(text: str) -> tuple[str, Amount]:
    name, found, part = text.rpartition("=")
    if not found:
        raise ParameterError(f"account must be a name and a part of the whole, such as cardiology=1/3; got {text!r:.60}.")
    return name, _amount(part, "account")


def _amount(text: str, name: str) -> Amount:
    if not _AMOUNT.fullmatch(text):
        raise ParameterError(f"{name} must be a number such as 0.5, 1/3 or 1e-6; got {text!r:.60}.")
    return exact(text, name=name)


def _record(path: str, ledger: Ledger, *, last: int | None = None) -> dict[str, Any]:
    return {"path": shown(path)} | ledger.to_dict(last=last)


def _summary(ledger: Ledger) -> str:
    epsilon, delta = ledger.budget
    return f"{ledger.name!r}: epsilon {at_most(epsilon)}, delta {at_most(delta)} for each {ledger.unit} ({ledger.relation})."
