"""`sabun learning card`, `verify`, `sign`, `predict`, `evaluate`: a model's folder, looked at, stood behind and used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sabun.errors import ParameterError
from sabun.learning import typed
from sabun.telling.terminal.options import Json, SigningKey, TrustedKeys, as_written
from sabun.telling.terminal.output import new_file, print_json, print_line, remark
from sabun.telling.terminal.releases import private_key, public_key

if TYPE_CHECKING:
    from sabun.learning.model import Model as Loaded
    from sabun.records import FilePart

__all__ = ["Model", "card", "evaluate", "predict", "sign", "verify"]

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


def _as_declared(table: FilePart, loaded: Loaded) -> FilePart:
    """The table, written as the model's schema says unless an option said otherwise."""
    schema = loaded.features.schema
    return table if schema is None else table.written(schema.file)


def _tell_of_persons(model: Path) -> None:
    """A model of persons knows one row for each; nobody puts rows together here, so it must not happen in silence."""
    from sabun.learning.folder import made_of_persons

    if made_of_persons(model):
        remark(
            "This model was trained on one row for each person, made of several: here each row of the table is taken for a "
            "person. Give it a table with one row for each."
        )


@as_written
def predict(
    model: Model,
    table: typed.ToPredict,
    out: Annotated[Path, typer.Option(help="The CSV file to write: one class and its probability for each row.")],
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="A column of the table to write beside them, such as an id; repeat it.")
    ] = None,
    json: Json = False,
) -> None:
    """Predict with a model that was handed over; its card is checked first.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning predict model radar.csv --keep class --out predictions.csv
    """
    from sabun.learning import load_model
    from sabun.release.files import write_whole

    new_file(out)
    typed.must_be_model(model)
    loaded = load_model(model)
    _tell_of_persons(model)
    kept = list(dict.fromkeys(keep or ()))
    rows, beside = typed.read_beside(_as_declared(table, loaded), loaded.features.names, kept)
    shares = loaded.predict_proba(rows)
    best = shares.argmax(axis=1)
    found = [[loaded.classes[code], f"{share[code]:.6f}"] for code, share in zip(best, shares, strict=True)]
    lines = [",".join(map(typed.quoted, [*kept, "class", "probability"]))]
    lines += [",".join(map(typed.quoted, (*cells, *answer))) for cells, answer in zip(beside, found, strict=True)]
    write_whole(out, ("\n".join(lines) + "\n").encode())
    if json:
        print_json({"out": str(out), "rows": len(best), "classes": [str(label) for label in loaded.classes]})
    else:
        print_line(f"Wrote {out}: {len(best)} rows.")


@as_written
def evaluate(
    model: Model,
    table: typed.ToPredict,
    target: Annotated[str, typer.Option("--target", help="The column with the true classes.")],
    by: Annotated[
        str | None,
        typer.Option("--by", help="Also for each public group: sex=F,M (or sex, where the model's schema lists it)."),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Says that the rows of this table are public.")] = False,
    json: Json = False,
) -> None:
    """Measure a model on a table that it was not trained on. NOT PRIVATE, unless the table is public.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning evaluate model radar.csv --target class
    """
    from sabun.learning import load_model
    from sabun.learning.held_out import evaluate as measured

    typed.must_be_model(model)
    loaded = load_model(model)
    _tell_of_persons(model)
    group, labels = typed.groups_of(by, loaded.features.schema)
    rows, beside = typed.read_beside(_as_declared(table, loaded), loaded.features.names, [target, *([group] if group else [])])
    if not beside:
        raise ParameterError("the table must have rows to measure a model on; it has none.")
    groups = [cells[1] for cells in beside] if group else None
    found = measured(loaded, rows, [cells[0] for cells in beside], groups=groups, of_groups=labels, private=not public)
    if json:
        print_json(found.to_dict())
    else:
        print_line(str(found))
