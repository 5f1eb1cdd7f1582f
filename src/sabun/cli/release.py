"""`sabun release`: looking at a released file."""

from __future__ import annotations

import dataclasses
import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from sabun.errors import ParameterError, ReleaseError
from sabun.ledger import Ledger
from sabun.release import Release
from sabun.release.publish import kept
from sabun.telling.terminal.output import Json, new_file, print_json, print_line
from sabun.telling.terminal.releases import load_release, private_key, public_key

__all__ = ["app"]

_HELP = """Show or check a released file.

Example:

    sabun demo --job count --folder demo

    sabun release show demo/count.json
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_File = Annotated[Path, typer.Argument(help="A released file (JSON).")]


@app.command()
def show(file: _File, json: Json = False) -> None:
    """Show a release in plain words; its signature is not checked.

    Example:

        sabun demo --job count --folder demo

        sabun release show demo/count.json
    """
    release = load_release(file)
    if json:
        print_json(json_format.loads(release.to_json()))
    else:
        print_line(str(release))


@app.command()
def sign(
    file: _File,
    key: Annotated[Path, typer.Option(help="Your private key (PEM); `sabun regression keygen NAME` makes one.")],
    out: Annotated[Path, typer.Option(help="The signed file to write.")],
    overwrite: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
    json: Json = False,
) -> None:
    """Stand behind a release: write it again with a signature over everything in it.

    Example:

        sabun datasets save wdbc tumours.csv --schema tumours.schema.json

        sabun outliers count tumours.csv --schema tumours.schema.json --radius 0.9 --epsilon 1 --out count.json

        sabun regression keygen clinic

        sabun release sign count.json --key clinic.pem --out count.signed.json
    """
    new_file(out, overwrite=overwrite)
    signed = load_release(file).sign(private_key(key))
    signed.save(out, overwrite=overwrite)
    shown = signed.verify().fingerprint
    if json:
        print_json({"file": str(file), "out": str(out), "signed_by": shown})
    else:
        print_line(f"Wrote {str(out)!r}, signed by {shown}.", style="bold")


@app.command()
def verify(
    file: _File,
    key: Annotated[list[Path] | None, typer.Option(help="A public key you trust (PEM); may be given several times.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger in which its charge must stand.")] = None,
    json: Json = False,
) -> None:
    """Check that a trusted key signed a release, that its charge stands in a ledger, or both.

    Example:

        sabun demo --job count --folder demo

        sabun release verify demo/count.json --key demo/publisher.pub.pem
    """
    if not key and ledger is None:
        raise ParameterError("key or ledger must be given, for a file cannot vouch for itself; got neither.")
    release = load_release(file)
    signer = release.verify([public_key(path) for path in key]) if key else None
    entry = None if ledger is None else _booked(release, Ledger.open(ledger))
    if json:
        found = {"signed_by": None if signer is None else signer.fingerprint, "entry": entry}
        print_json({"file": str(file), "ok": True} | found)
        return
    if signer is not None:
        print_line(f"{str(file)!r} is as it was signed.", style="bold")
        print_line(f"Signed by the trusted key {signer.fingerprint}.")
    if entry is not None:
        print_line(f"Its charge stands in the ledger as entry {entry}.")


def _booked(release: Release, book: Ledger) -> int:
    """The entry that paid for a release.

    Raises:
        ReleaseError: The release has no receipt, or the ledger holds no such charge, or another result for it.
    """
    receipt = release.provenance.receipt
    if receipt is None:
        raise ReleaseError("the release must have been charged to a ledger; it was not.")
    book.verify()
    entry = {known.entry_hash: known for known in book.entries()}.get(receipt.entry_hash)
    if entry is None or entry.state == "voided":
        raise ReleaseError(f"ledger {book.name!r} must hold the charge of this release; it does not.")
    # A run that was interrupted keeps its result elsewhere: then the charge is all there is to compare.
    if entry.payload_size and book.kept(entry.entry) != kept(dataclasses.replace(release, signature=None).to_json()):
        raise ReleaseError(f"ledger {book.name!r} must hold this release as it was paid for; the file says something else.")
    return entry.entry
