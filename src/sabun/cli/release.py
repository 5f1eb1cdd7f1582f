"""`sabun release`: looking at a released file."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sabun.cli._output import Json, print_json, print_line
from sabun.release import Release, load_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["app"]

_HELP = """Show or check a released file.

Example:

    sabun demo --job count --folder demo

    sabun release show demo/count.json
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_File = Annotated[Path, typer.Argument(help="A file written by Release.save.")]


@app.command()
def show(file: _File, json: Json = False) -> None:
    """Show a release in plain words; its signature is not checked.

    Example:

        sabun demo --job count --folder demo

        sabun release show demo/count.json
    """
    release = Release.load(file)
    if json:
        print_json(json_format.loads(release.to_json()))
    else:
        print_line(str(release))


@app.command()
def verify(
    file: _File,
    key: Annotated[list[Path], typer.Option(help="A public key you trust (PEM); may be given several times.")],
    json: Json = False,
) -> None:
    """Check that a release is as one of the trusted keys signed it.

    Example:

        sabun demo --job count --folder demo

        sabun release verify demo/count.json --key demo/publisher.pub.pem
    """
    signer = Release.load(file).verify([_public(path) for path in key])
    if json:
        print_json({"file": str(file), "ok": True, "signed_by": signer.fingerprint})
        return
    print_line(f"{str(file)!r} is as it was signed.", style="bold")
    print_line(f"Signed by the trusted key {signer.fingerprint}.")


def _public(path: Path) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = load_key(path)
    return key.public_key() if isinstance(key, Ed25519PrivateKey) else key
