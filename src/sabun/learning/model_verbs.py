"""`sabun learning card`, `verify`, `sign`, `predict`, `evaluate`: a model's folder, looked at, stood behind and used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sabun.errors import DataError, ParameterError
from sabun.foreign import one_line
from sabun.learning import typed
from sabun.telling.terminal.asked import EVERY_ROW, AskedPersons, as_persons
from sabun.telling.terminal.options import Json, SigningKey, TrustedKeys, as_written
from sabun.telling.terminal.output import new_file, print_json, print_line, remark
from sabun.telling.terminal.releases import private_key, public_key
from sabun.telling.words import count as counted

if TYPE_CHECKING:
    from sabun.learning.held_out import Evaluation
    from sabun.learning.keyed import Keyed
    from sabun.learning.model import Model as Loaded
    from sabun.records import Column, FilePart

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


def _people(model: Path, loaded: Loaded, table: FilePart, persons: AskedPersons, *others: Column) -> Keyed | None:
    """The persons of a table, put together as they were in training unless options say otherwise; None for single rows.

    Raises:
        DataError: The model has no schema, so that nobody knows what its columns hold.
    """
    from sabun.learning.folder import persons_in
    from sabun.learning.keyed import as_trained, keyed
    from sabun.records import Schema

    trained, known = persons_in(model), loaded.features.schema
    if persons.id is None:
        if trained is not None:  # it must not happen in silence
            remark(
                "This model was trained on one row for each person, made of several: here each row of the table is taken for "
                "a person. Where a person has several, pass --id with the column that tells persons apart."
            )
        return None
    if known is None:
        raise DataError("a model must have a schema to put rows of a person together; this one has none. Leave --id out.")
    whole = Schema(columns=(*known.columns, *(one for one in others if one.name not in known.names)), file=known.file)
    asked = as_trained(persons, trained, whole)
    found = keyed(_as_declared(table, loaded), asked, whole)
    said = [*(f"{name}={rule}" for name, rule in asked.rules), *(f"{name} {value}" for name, value in asked.how)]
    more = f"; {', '.join(said)}" if said else ""
    remark(f"{counted(len(found.ids), 'person')}, one row each: numbers by their mean, labels by the most frequent one{more}.")
    if found.left_out:
        remark(f"Left out: {counted(found.left_out, 'row')} without anything under {one_line(str(asked.id))!r}.")
    return found


@as_written
@as_persons
def predict(
    model: Model,
    table: typed.ToPredict,
    out: Annotated[
        Path, typer.Option(help="The CSV file to write: one class and its probability for each row, or for each --id.")
    ],
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="A column of the table to write beside them, such as an id; repeat it.")
    ] = None,
    persons: AskedPersons = EVERY_ROW,
    json: Json = False,
) -> None:
    """Predict with a model that was handed over; its card is checked first.

    With --id a person's rows become one, by the rules the model was trained with unless options say otherwise.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning predict model radar.csv --keep class --out predictions.csv
    """
    from sabun.learning import load_model
    from sabun.release.files import write_whole

    new_file(out)
    if persons.id is not None and keep:
        raise ParameterError("--keep must be left out with --id: a person may have several cells. The id itself is written.")
    typed.must_be_model(model)
    loaded = load_model(model)
    people = _people(model, loaded, table, persons)
    if people is None:
        kept = list(dict.fromkeys(keep or ()))
        rows, beside = typed.read_beside(_as_declared(table, loaded), loaded.features.names, kept)
        shares = loaded.predict_proba(rows)
    else:
        kept, beside = [str(persons.id)], [(name,) for name in people.ids]
        shares = loaded.of_encoded(people.rows)
    best = shares.argmax(axis=1)
    found = [[loaded.classes[code], f"{share[code]:.6f}"] for code, share in zip(best, shares, strict=True)]
    lines = [",".join(map(typed.quoted, [*kept, "class", "probability"]))]
    lines += [",".join(map(typed.quoted, (*cells, *answer))) for cells, answer in zip(beside, found, strict=True)]
    write_whole(out, ("\n".join(lines) + "\n").encode())
    if json:
        print_json({"out": str(out), "rows": len(best), "classes": [str(label) for label in loaded.classes]})
    else:
        print_line(f"Wrote {out}: {counted(len(best), 'row' if people is None else 'person')}.")


@as_written
@as_persons
def evaluate(
    model: Model,
    table: typed.ToPredict,
    target: Annotated[
        str | None, typer.Option("--target", help="The column with the true classes; the model's own when left out.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", help="Also for each public group: sex=F,M (or sex, where the model's schema lists it)."),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Says that the rows of this table are public.")] = False,
    persons: AskedPersons = EVERY_ROW,
    json: Json = False,
) -> None:
    """Measure a model on a table that it was not trained on. NOT PRIVATE, unless the table is public.

    With --id persons are counted: a person's rows become one, by the rules the model was trained with unless options say
    otherwise.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning evaluate model radar.csv
    """
    from sabun.learning import load_model
    from sabun.learning.held_out import evaluate as measured

    typed.must_be_model(model)
    loaded = load_model(model)
    target = typed.target_of(model, target)
    group, labels = typed.groups_of(by, loaded.features.schema)
    if persons.id is None:
        _people(model, loaded, table, persons)
        others = [target, *([group] if group else [])]
        rows, beside = typed.read_beside(_as_declared(table, loaded), loaded.features.names, others)
        if not beside:
            raise ParameterError("the table must have rows to measure a model on; it has none.")
        groups = [cells[1] for cells in beside] if group else None
        found = measured(loaded, rows, [cells[0] for cells in beside], groups=groups, of_groups=labels, private=not public)
    else:
        found = _of_persons(model, loaded, table, persons, target=target, group=group, labels=labels, private=not public)
    if json:
        print_json(found.to_dict())
    else:
        print_line(str(found))


def _of_persons(
    model: Path,
    loaded: Loaded,
    table: FilePart,
    persons: AskedPersons,
    *,
    target: str,
    group: str,
    labels: tuple[str, ...],
    private: bool,
) -> Evaluation:
    """What a table says about a model, each person counted once."""
    from sabun.learning.features import persons_schema
    from sabun.learning.held_out import compared
    from sabun.records import CategoryColumn, Column

    inputs = loaded.features.schema
    own = [] if inputs is None else [persons_schema(target, schema=inputs, classes=loaded.classes)[target]]
    known = (target, *(() if inputs is None else inputs.names))
    beside = [Column.category(group, labels)] if group and group not in known else []
    people = _people(model, loaded, table, persons, *own, *beside)
    assert inputs is not None  # a model without a schema was refused
    assert people is not None
    columns = [*inputs.columns, *own, *beside]
    place = next((place for place, column in enumerate(columns) if column.name == group), None)
    named: list[object] | None = None
    if place is not None:
        column = columns[place]
        if not isinstance(column, CategoryColumn):
            raise ParameterError(f"by must be a column of labels; the model's schema declares {group!r:.60} a number.")
        named = [column.categories[code] if code >= 0 else "" for code in people.rows[:, place].astype(int)]
    codes = people.rows[:, len(inputs.columns)].astype(int)
    said = loaded.of_encoded(people.rows[:, : len(inputs.columns)])
    return compared(loaded, said, codes, groups=named, of_groups=labels, private=private, persons=True)
