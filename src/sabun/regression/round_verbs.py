"""`sabun regression refine`: the second of two rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sabun.errors import ParameterError
from sabun.regression.typed import must_be_free, save_once, signer_of, terms_of
from sabun.telling.terminal.asked import EVERY_ROW, AskedPersons, as_persons
from sabun.telling.terminal.charging import Payment
from sabun.telling.terminal.foretelling import Guess, foretell
from sabun.telling.terminal.options import Json, LedgerFile, PrivateTable, Purpose, Yes, as_written
from sabun.telling.terminal.output import print_json, print_line
from sabun.telling.terminal.progress import busy

__all__ = ["refine"]


@as_written
@as_persons
def refine(
    table: PrivateTable,
    out: Annotated[Path, typer.Option(help="The release file to write; it counts beside that of the first round.")],
    study: Annotated[Path, typer.Option("--study", help="The study file, whose method is rounds.")],
    first: Annotated[Path, typer.Option("--first", help="This organisation's own release of the first round.")],
    around: Annotated[Path, typer.Option("--around", help="The public model that `combine --out` made of all first releases.")],
    organisation: Annotated[str | None, typer.Option(help="Which organisation of the study this is.")] = None,
    signing_key: Annotated[
        Path | None, typer.Option("--signing-key", help="The organisation's private key; the release is signed with it.")
    ] = None,
    persons: AskedPersons = EVERY_ROW,
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    n_records: Guess = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Release the second of two rounds: residuals of a table around the model that all first rounds give.

    Example:

        sabun datasets save ionosphere radar.csv

        sabun regression study init s.json --name s --target a04 --bounds a04=-1:1 --bounds a03=-1:1 --epsilon 5 --method rounds

        sabun regression fit radar.csv --study s.json --organisation north --yes --out north-1.json

        sabun regression combine north-1.json --study s.json --out round-1.json

        sabun regression refine radar.csv --study s.json --organisation north --first north-1.json --around round-1.json --yes --out north-2.json
    """  # noqa: E501 (an example is one line)
    from sabun.regression import PrivateRidge
    from sabun.regression.releasing import request_key

    payment = Payment.of(ledger, purpose)
    terms = terms_of(study, {})
    agreed = terms["study"]
    if agreed.method != "rounds":
        raise ParameterError(f"method of the study must be 'rounds' for a second round; got {agreed.method!r}.")
    signer = signer_of(agreed, organisation, signing_key)
    model = PrivateRidge(**terms, organisation=organisation, signing_key=signer, ledger=payment.book)
    must_be_free(out, request_key(agreed, organisation, second=True), payment.book, signer)
    with payment:
        with busy(f"Reading {table} ..."):
            residuals = model.read_again(persons.table(table), first=first, around=around)
        rows = residuals.state.rows if agreed.relation == "replace-one" else n_records  # otherwise their number is private
        told = foretell(model, n_records=rows, organisations=len(agreed.organisations) or 1, yes=yes, json=json)
        release = model.fit(residuals).release_
        with payment.writing(release):
            save_once(release, out)
    if json:
        print_json({"out": str(out), "study_hash": agreed.hash} | told | payment.facts(release) | model.model_.to_dict())
        return
    print_line(str(model.model_))
    payment.tell(release, out)
