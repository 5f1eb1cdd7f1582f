"""Ledgers: what is spent on what, a new one, and the answers they kept."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Any

from starlette.responses import Response

from sabun.desk.exported import command_of, python_of
from sabun.desk.fields import as_typed, fields_of, helped, misfit, on_page, plainly
from sabun.desk.picture import spent_on
from sabun.desk.visitor import Visitor
from sabun.errors import ParameterError, SabunError
from sabun.ledger import Ledger
from sabun.ledger.wording import at_least, at_most, percent
from sabun.release import Release, recovered
from sabun.reports import facts, report
from sabun.reports.purposes import in_short
from sabun.telling.language import phrase, said
from sabun.telling.terminal.output import heard

__all__ = ["answer", "download", "ledger", "ledgers", "new_ledger", "report_page"]

_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A report stands alone: its style is inside. It has no script, and nothing else may be loaded."""

_USES = {
    "density": phrase(
        "The column weight goes with every calculation: averages weighted with it are about the private table. "
        "In a terminal, `sabun density query {out} 'mean(COLUMN)'` answers with intervals, for nothing."
    ),
    "learning": phrase(
        "In a terminal, `sabun learning predict {out} TABLE --out predictions.csv` uses the model, for nothing "
        "(with --id and its column where a person has several rows)."
    ),
}
"""What can be done with what was written."""

_LISTED = 50
_DIGITS = 18


def ledgers(visitor: Visitor) -> Response:
    """The folder's ledgers."""
    rows = []
    for item in visitor.desk.shelf.ledgers():
        try:
            with Ledger.open(item.path) as book:
                rows.append((item, book.name, percent(book.share_used), float(book.share_used), ""))
        except SabunError as error:
            rows.append((item, item.name, "", 0.0, on_page(str(error))))
    return visitor.page("ledgers.html", here="ledgers", rows=rows)


def new_ledger(visitor: Visitor) -> Response:
    """A form of `sabun ledger create`."""
    command = visitor.desk.command().commands["ledger"].commands["create"]
    fields = [one for one in fields_of(command) if one.option]
    wrong: dict[str, str] = {}
    filled = plainly(fields, visitor.filled) if visitor.posts else {one.name: [one.usual] for one in fields if one.usual}
    if visitor.posts:
        name = "".join(letter if letter.isalnum() else "-" for letter in visitor.field("name").strip()[:40]).strip("-")
        path = visitor.desk.shelf.fresh(name or "budget", ".ledger")
        with heard() as hears:
            visitor.desk.errands.run(["ledger", "create", str(path), *as_typed(fields, filled, {}), "--json"])
        if not hears.complaint:
            made = next(one for one in visitor.desk.shelf.ledgers() if one.path == path)
            return visitor.to(f"ledgers/{made.handle}")
        wrong[misfit(fields, hears.complaint, hears.error)] = on_page(hears.complaint, fields, hears.error)
    status = 400 if wrong else 200
    shown: dict[str, Any] = {"fields": fields, "helped": partial(helped, fields), "filled": filled, "wrong": wrong}
    return visitor.page("new_ledger.html", status=status, here="ledgers", **shown)


def ledger(visitor: Visitor) -> Response:
    """What is spent on what, and what is left."""
    item = visitor.ledger()
    with Ledger.open(item.path) as book:
        entries = [(one, in_short(one.purpose), at_least(one.epsilon)) for one in reversed(book.entries(last=_LISTED))]
        content: dict[str, Any] = {
            "item": item,
            "book": book,
            "uses": [(words, percent(share), float(share)) for words, share in spent_on(book).items()],
            "entries": entries,
            "used": (percent(book.share_used), float(book.share_used)),
            "whole": [at_most(amount) for amount in book.budget],
            "left": [at_most(amount) for amount in book.remaining],
        }
        return visitor.page("ledger.html", here="ledgers", **content)


def _number(visitor: Visitor) -> int:
    """The entry that the path names."""
    text = visitor.named("entry")
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise ParameterError("the entry must be a whole number; it is not. Look for it in the ledger.")
    return int(text)


def _kept(visitor: Visitor) -> Release:
    """The release of an entry: as the ledger kept it, else from the file it was written to."""
    number, item = _number(visitor), visitor.ledger()
    with Ledger.open(item.path) as book:
        try:
            return recovered(book, number)
        except ParameterError:
            found = _written(visitor, number, book.name)
            if found is None:
                raise
            return found


def _written(visitor: Visitor, number: int, name: str) -> Release | None:
    """A release too large for the ledger, in a file of the folder that says it is this entry's."""
    shelf = visitor.desk.shelf
    folders = [one for one in shelf.folder.iterdir() if one.is_dir() and not one.is_symlink()]
    places: list[Path] = [one.path for one in shelf.items() if one.path.suffix == ".json"]
    inner = [one / "release.json" for one in folders]
    for file in [*places, *(one for one in inner if one.is_file() and not one.is_symlink())]:
        try:
            found = Release.load(file)
        except SabunError:
            continue
        receipt = found.provenance.receipt
        if receipt is not None and (receipt.ledger_name, receipt.entry) == (name, number):
            return found
    return None


def answer(visitor: Visitor) -> Response:
    """An answer in short: what it says, what it cost, the way to its report, and how to ask it elsewhere."""
    item, number = visitor.ledger(), _number(visitor)
    release = _kept(visitor)
    with Ledger.open(item.path) as book:
        entry = book.entry(number)
    name = visitor.request.query_params.get("sent", "")
    errand = visitor.desk.errands.sent(name) if name else None
    out = "" if errand is None else Path(str(errand.hears.record.get("out") or "")).name
    return visitor.page(
        "answer.html",
        here="ledgers",
        item=item,
        number=number,
        entry=entry,
        facts=facts(release),
        cost=", ".join(
            f"{sign} {at_least(amount)}" for sign, amount in zip("εδ", release.guarantee.cost, strict=True) if amount
        ),
        free=errand is not None and bool(errand.hears.record.get("already_paid")),
        record=None if errand is None else errand.hears.record,
        out=out,
        use=said(_USES.get(release.provenance.kind.partition(".")[0], ""), out=shlex.quote(out)),
        command="" if errand is None else command_of(errand, visitor.desk.shelf),
        python="" if errand is None else python_of(errand, errand.about["files"]["schema"]),
        like=""
        if errand is None
        else f"tables/{errand.about['table'].handle}/jobs/{'/'.join(errand.about['job'].words)}?tried={name}",
        said_beside=() if errand is None else [on_page(line, errand.about["job"].fields) for line in errand.hears.remarks],
    )


def report_page(visitor: Visitor) -> Response:
    """The report as `sabun report` writes it."""
    headers = {"Content-Security-Policy": _REPORT_POLICY}
    return Response(report(_kept(visitor), lang=visitor.lang), media_type="text/html", headers=headers)


def download(visitor: Visitor) -> Response:
    """The release file."""
    headers = {"Content-Disposition": f'attachment; filename="entry-{_number(visitor)}.json"'}
    return Response(_kept(visitor).to_json(), media_type="application/json", headers=headers)
