"""`sabun release`: looking at a released file."""

from __future__ import annotations

import dataclasses
import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.release.booking import booked
from sabun.telling.terminal.output import Json, new_file, print_json, print_line
from sabun.telling.terminal.releases import load_release, private_key, public_key

__all__ = ["app"]

_HELP = """Show or check a released file.

Example:

    sabun demo --job count --folder demo

    sabun release show demo/count.json
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_BYTES_KEPT = "The ledger kept its bytes, and they are these."
_NO_BYTES_KEPT = (
    "The ledger kept no bytes of the result: it vouches for the charge and the promise, not for the value. "
    "Check the signature with --key for that."
)

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
    ledger: Annotated[str | None, typer.Option(help="The ledger in which its charge must stand.")] = None,
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
    booking = None if ledger is None else booked(release, Ledger.open(ledger))
    if json:
        found: dict[str, object] = {"signed_by": None if signer is None else signer.fingerprint}
        found |= {"entry": None, "bytes_compared": None} if booking is None else dataclasses.asdict(booking)
        print_json({"file": str(file), "ok": True} | found)
        return
    if signer is not None:
        print_line(f"{str(file)!r} is as it was signed.", style="bold")
        print_line(f"Signed by the trusted key {signer.fingerprint}.")
    if booking is not None:
        print_line(f"Its charge stands in the ledger as entry {booking.entry}, for the guarantee it states.")
        print_line(_BYTES_KEPT if booking.bytes_compared else _NO_BYTES_KEPT)
