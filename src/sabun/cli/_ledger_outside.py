"""`sabun ledger statement` and `sabun ledger allow`: what a ledger shows to others, and who else may use it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.ledger.address import is_address, shown
from sabun.release import state
from sabun.telling.language import chosen
from sabun.telling.terminal.options import Lang
from sabun.telling.terminal.output import Json, new_file, print_json, print_line
from sabun.telling.terminal.releases import private_key

__all__ = ["allow", "statement"]


def statement(
    path: Annotated[str, typer.Argument(help="The ledger's file, or its address on a server (postgresql://…).")],
    out: Annotated[Path, typer.Option(help="The statement to write (JSON).")],
    html: Annotated[Path | None, typer.Option(help="Also write it as a page to this file.")] = None,
    signing_key: Annotated[
        Path | None, typer.Option("--signing-key", "--key", help="Sign it with this private key (PEM).")
    ] = None,
    entry: Annotated[int | None, typer.Option(help="Only what proves that this charge stands.")] = None,
    head: Annotated[str | None, typer.Option(help="A hash you published: the rows end with it.")] = None,
    lang: Lang = None,
    json: Json = False,
) -> None:
    """Write what was released, when, at what cost, what is left, so that an outsider can check it.

    Example:

        sabun ledger create clinic.ledger --name clinic --epsilon 3

        sabun release keygen clinic

        sabun ledger statement clinic.ledger --out statement.json --html statement.html --signing-key clinic.pem
    """
    from sabun.reports import save_page
    from sabun.reports import statement as page_of

    lang = chosen(lang)
    new_file(out)
    if html is not None:
        new_file(html, name="html")
    signing = None if signing_key is None else private_key(signing_key)
    stated = state(Ledger.open(path), entry=entry, head=head)
    stated = stated if signing is None else stated.sign(signing)
    stated.save(out)
    if html is not None:
        save_page(page_of(stated, lang=lang), html)
    signer = None if stated.signature is None else stated.verify().fingerprint
    if json:
        print_json({"path": shown(path), "out": str(out), "head_hash": stated.head_hash, "signed_by": signer})
        return
    print_line(f"Wrote {str(out)!r}" + ("." if html is None else f" and {str(html)!r}."), style="bold")
    print_line("Not signed: pass --signing-key to stand behind it." if signer is None else f"Signed by {signer}.")
    print_line(f"Publish the newest hash beside it: {stated.head_hash}")


def allow(
    path: Annotated[str, typer.Argument(help="The ledger's address on a server (postgresql://…), as its owner.")],
    user: Annotated[str, typer.Argument(help="A user whom the server knows.")],
    role: Annotated[str, typer.Option("--as", help="analyst (may charge, not change the terms) or reader.")],
    json: Json = False,
) -> None:
    """Let a user of the database charge or read a ledger, and nothing else.

    Example:

        sabun ledger allow --help
    """
    if not is_address(path):
        raise ParameterError(
            "path must be a ledger on a server, for a file knows no users; got a file. Use the file's permissions instead."
        )
    from sabun.ledger.postgres_store import PostgresStore

    PostgresStore(path).allow(user, role)
    if json:
        print_json({"path": shown(path), "user": user, "role": role})
    else:
        print_line(f"{user!r} is {role} of {shown(path)!r} now.", style="bold")
