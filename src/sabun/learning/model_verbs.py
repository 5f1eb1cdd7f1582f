"""`sabun learning card`, `verify`, `sign`: a model's folder, looked at and stood behind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from sabun.learning import typed
from sabun.telling.terminal.options import Json, SigningKey, TrustedKeys
from sabun.telling.terminal.output import print_json, print_line
from sabun.telling.terminal.releases import private_key, public_key

__all__ = ["Model", "card", "sign", "verify"]

Model: TypeAlias = Annotated[Path, typer.Argument(help="A model's folder.")]


def card(model: Model, json: Json = False) -> None:
    """Show a model's privacy card.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning card model
    """
    from sabun.learning import load_card

    typed.must_be_model(model)
    found = load_card(model)
    if json:
        print_json(found.to_dict())
    else:
        print_line(str(found))


def verify(
    model: Model,
    trusted_key: TrustedKeys = None,
    json: Json = False,
) -> None:
    """Recompute a model's promise from its card, check that the files belong together.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning verify model
    """
    from sabun.learning import verify as check

    typed.must_be_model(model)
    found = check(model, trusted_key=[public_key(path) for path in trusted_key or ()] or None)
    if json:
        print_json({"model": str(model), "ok": True, "found": found})
    else:
        print_line(f"{model}: {found}; weights, card and release belong together.")


def sign(
    model: Model,
    signing_key: SigningKey,
    json: Json = False,
) -> None:
    """Stand behind a model: sign the list of its folder's files, and through it every file.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun regression keygen clinic

        sabun learning sign model --signing-key clinic.pem
    """
    from sabun.learning import sign_model

    typed.must_be_model(model)
    shown = sign_model(model, private_key(signing_key))
    if json:
        print_json({"model": str(model), "signed_by": shown})
    else:
        print_line(f"Signed every file in {model} by {shown}.", style="bold")
