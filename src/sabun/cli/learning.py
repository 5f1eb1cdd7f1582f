"""`sabun learning`: train a network on personal records, hand the model over."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sabun.cli._learning import cells, declared, layers
from sabun.cli._output import Json, print_json, print_line
from sabun.cli._progress import progress_bar
from sabun.errors import ParameterError
from sabun.ledger import Ledger

__all__ = ["app"]

_HELP = """Train a network on personal records, hand the model to a third party.

Example:

    sabun learning plan --features 30 --records 569 --epsilon 1
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_Data = Annotated[Path, typer.Argument(help="The private table: .csv, .csv.gz or .parquet.")]
_Target = Annotated[str, typer.Option(help="The column to be predicted.")]
_Schema = Annotated[Path | None, typer.Option(help="Public bounds and categories of the columns, as JSON.")]
_Bounds = Annotated[list[str] | None, typer.Option(help="Instead of a schema: name=low:high, once for each column.")]
_Classes = Annotated[str | None, typer.Option(help="The public list of labels, separated by commas.")]
_Epsilon = Annotated[str, typer.Option(help="The price, exactly as written: 1, 0.1 or 1/3.")]
_Delta = Annotated[str | None, typer.Option(help="1e-5 for dp-sgd when left out, 0 for the other methods.")]
_Method = Annotated[
    str,
    typer.Option(help="dp-sgd, laplace-sgd, objective-perturbation, anonymizing-first, learning-first or anonymized-learning."),
]
_Hidden = Annotated[str, typer.Option(help="Hidden layers such as 64,64; '' for a linear model.")]
_Relation = Annotated[str | None, typer.Option(help="add-remove or replace-one; the ledger's when left out.")]
_Records = Annotated[int | None, typer.Option(help="The number of records, if it is public.")]
_Model = Annotated[Path, typer.Argument(help="A model's folder.")]


@app.command()
def train(
    data: _Data,
    target: _Target,
    out: Annotated[Path, typer.Option(help="The folder to write: weights, privacy card, release.")],
    schema: _Schema = None,
    bounds: _Bounds = None,
    classes: _Classes = None,
    epsilon: _Epsilon = "1",
    delta: _Delta = None,
    method: _Method = "dp-sgd",
    hidden: _Hidden = "auto",
    relation: _Relation = None,
    n_public: _Records = None,
    ledger: Annotated[Path | None, typer.Option(help="The book to charge.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder to resume from after an interruption; holds a secret.")
    ] = None,
    synthetic: Annotated[
        Path | None, typer.Option(help="With anonymizing-first: also write the table (.csv, .parquet).")
    ] = None,
    allow_per_parameter: Annotated[
        bool, typer.Option(help="Hand over a model whose promise bounds each weight only by itself.")
    ] = False,
    json: Json = False,
) -> None:
    """Train a classifier, write it with its privacy card.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model
    """
    from sabun.learning import PrivateClassifier

    facts = declared(schema, bounds, target, classes)
    _must_be_new(out)
    if synthetic is not None and method != "anonymizing-first":
        raise ParameterError(f"synthetic must be left out unless the method is 'anonymizing-first'; got {method!r}.")
    if facts.classes is None and not json:
        print_line(
            "Notice: the list of labels is read off the data, so the promise assumes that it is public. Or name it: --classes."
        )
    with progress_bar("training", quiet=json) as progress:
        classifier = PrivateClassifier(
            method=method,
            epsilon=epsilon,
            delta=delta,
            hidden=layers(hidden),
            schema=facts.schema,
            classes=facts.classes,
            relation=relation,
            n_public=n_public,
            ledger=None if ledger is None else Ledger.open(ledger),
            checkpoint=checkpoint,
            # Pricing the steps so far takes time that nobody watches without a terminal.
            progress=progress if sys.stderr.isatty() and not json else None,
        )
        classifier.fit(data, cells(data, target))
    classifier.save(out, allow_per_parameter=allow_per_parameter)
    if synthetic is not None:
        classifier.synthetic_.save(synthetic)
    if json:
        print_json({"model": str(out), "card": classifier.card_.to_dict()})
        return
    print_line(f"Wrote {out}: model.safetensors, card.json, release.json.", style="bold")
    print_line(str(classifier.guarantee_))


def _must_be_new(out: Path) -> None:
    """Refuses before anything is charged: a model that cannot be written would be paid for in vain."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ParameterError(f"out must be a new or empty folder; got {str(out)!r}. Choose another name.")


@app.command()
def predict(
    model: _Model,
    data: Annotated[Path, typer.Argument(help="The table to predict for, with the same columns.")],
    out: Annotated[Path, typer.Option(help="The CSV file to write: one class and its probability for each row.")],
    json: Json = False,
) -> None:
    """Predict with a model that was handed over; its card is checked first.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning predict model radar.csv --out predictions.csv
    """
    from sabun.learning import load_model
    from sabun.release.files import write_whole

    loaded = load_model(model)
    shares = loaded.predict_proba(data)
    best = shares.argmax(axis=1)
    lines = ["class,probability"]
    lines += [f"{_quoted(loaded.classes[code])},{share[code]:.6f}" for code, share in zip(best, shares, strict=True)]
    write_whole(out, ("\n".join(lines) + "\n").encode())
    if json:
        print_json({"out": str(out), "rows": len(best), "classes": [str(label) for label in loaded.classes]})
    else:
        print_line(f"Wrote {out}: {len(best)} rows.")


def _quoted(label: Any) -> str:
    text = str(label)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


@app.command()
def card(model: _Model, json: Json = False) -> None:
    """Show a model's privacy card.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning card model
    """
    from sabun.learning import Card
    from sabun.release.files import read_whole

    found = Card.from_json(read_whole(model / "card.json", max_bytes=1 << 26))
    if json:
        print_json(found.to_dict())
    else:
        print_line(str(found))


@app.command()
def verify(model: _Model, json: Json = False) -> None:
    """Recompute a model's promise from its card, check that the files belong together.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning verify model
    """
    from sabun.learning import verify as check

    found = check(model)
    if json:
        print_json({"model": str(model), "ok": True, "found": found})
    else:
        print_line(f"{model}: {found}; weights, card and release belong together.")


@app.command()
def plan(
    records: Annotated[int, typer.Option(help="How many records one expects.")],
    features: Annotated[int | None, typer.Option(help="Inputs of the network, when there is no schema.")] = None,
    schema: _Schema = None,
    n_classes: Annotated[int, typer.Option("--classes", help="How many classes.")] = 2,
    epsilon: _Epsilon = "1",
    delta: _Delta = None,
    method: _Method = "dp-sgd",
    hidden: _Hidden = "auto",
    relation: _Relation = None,
    n_public: _Records = None,
    json: Json = False,
) -> None:
    """Show what a training run would cost, without any data.

    Example:

        sabun learning plan --features 30 --records 569 --epsilon 1
    """
    from sabun.learning import PrivateClassifier
    from sabun.records import Schema

    classifier = PrivateClassifier(
        method=method,
        epsilon=epsilon,
        delta=delta,
        hidden=layers(hidden),
        relation=relation,
        n_public=n_public,
        schema=None if schema is None else Schema.load(schema),
    )
    found = classifier.plan(n_records=records, n_features=features, n_classes=n_classes)
    if json:
        print_json(found.to_dict())
    else:
        print_line(str(found))


@app.command()
def audit(
    data: _Data,
    target: _Target,
    schema: _Schema = None,
    bounds: _Bounds = None,
    classes: _Classes = None,
    epsilon: _Epsilon = "1",
    delta: _Delta = None,
    method: _Method = "dp-sgd",
    hidden: _Hidden = "auto",
    canaries: Annotated[int, typer.Option(help="How many strange rows to offer.")] = 500,
    json: Json = False,
) -> None:
    """Train once more with canaries among the rows, then attack the model; for the owner of the data.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning audit radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --canaries 100
    """
    from sabun.learning import PrivateClassifier
    from sabun.learning.audit import canary_audit

    facts = declared(schema, bounds, target, classes)
    classifier = PrivateClassifier(
        method=method, epsilon=epsilon, delta=delta, hidden=layers(hidden), schema=facts.schema, classes=facts.classes
    )
    found = canary_audit(classifier, data, cells(data, target), canaries=canaries)
    if json:
        print_json(found.to_dict())
    else:
        print_line("NOT PRIVATE: for the owner of the data; the audited model was thrown away.")
        print_line(str(found))
