"""`sabun release`: looking at a released file, standing behind it."""

from __future__ import annotations

import dataclasses
import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.release.booking import booked
from sabun.telling.terminal.options import Json, Overwrite, SigningKey, TrustedKeys
from sabun.telling.terminal.output import new_file, print_json, print_line
from sabun.telling.terminal.releases import load_release, new_keys, private_key, public_key

__all__ = ["app"]

_HELP = """Show, sign or check a released file.

Example:

    sabun demo --job count --folder demo

    sabun release show demo/count.json
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_BYTES_KEPT = "The ledger kept its bytes, and they are these."
_NO_BYTES_KEPT = (
    "The ledger kept no bytes of the result: it vouches for the charge and the promise, not for the value. "
    "Check the signature with --trusted-key for that."
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
def keygen(
    name: Annotated[str, typer.Argument(help="Who signs; the files are called after it.")],
    folder: Annotated[Path, typer.Option(help="Where to write them.")] = Path(),
    json: Json = False,
) -> None:
    """Make a signing key: NAME.pem stays secret, NAME.pub.pem goes to whoever is to trust it.

    Example:

        sabun release keygen clinic
    """
    made = new_keys(name, folder)
    if json:
        print_json({"private_key": str(made.secret), "public_key": str(made.public), "fingerprint": made.fingerprint})
        return
    print_line(f"Wrote {str(made.secret)!r} (keep it secret) and {str(made.public)!r} (give it away).", style="bold")
    print_line(f"Fingerprint: {made.fingerprint}")


@app.command()
def sign(
    file: _File,
    signing_key: SigningKey,
    out: Annotated[Path, typer.Option(help="The signed file to write.")],
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Stand behind a release: write it again with a signature over everything in it.

    Example:

        sabun datasets save wdbc tumours.csv --schema tumours.schema.json

        sabun outliers count tumours.csv --schema tumours.schema.json --radius 0.9 --epsilon 1 --out count.json

        sabun release keygen clinic

        sabun release sign count.json --signing-key clinic.pem --out count.signed.json
    """
    new_file(out, overwrite=overwrite)
    signed = load_release(file).sign(private_key(signing_key))
    signed.save(out, overwrite=overwrite)
    shown = signed.verify().fingerprint
    if json:
        print_json({"file": str(file), "out": str(out), "signed_by": shown})
    else:
        print_line(f"Wrote {str(out)!r}, signed by {shown}.", style="bold")


@app.command()
def verify(
    file: _File,
    trusted_key: TrustedKeys = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger in which its charge must stand.")] = None,
    json: Json = False,
) -> None:
    """Check that a trusted key signed a release, that its charge stands in a ledger, or both.

    Example:

        sabun demo --job count --folder demo

        sabun release verify demo/count.json --trusted-key demo/publisher.pub.pem
    """
    if not trusted_key and ledger is None:
        raise ParameterError("--trusted-key or --ledger must be given, for a file cannot vouch for itself; got neither.")
    release = load_release(file)
    signer = release.verify([public_key(path) for path in trusted_key]) if trusted_key else None
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
