"""`sabun learning`: train a network on personal records, hand the model over."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun.errors import ParameterError
from sabun.learning.typed import cells, chosen, declared, inputs_of, layers, must_be_joint
from sabun.records import Schema
from sabun.telling.terminal.charging import LedgerFile, Payment, Purpose, warn_if_large
from sabun.telling.terminal.output import Json, new_file, new_folder, print_json, print_line
from sabun.telling.terminal.progress import progress_bar
from sabun.telling.terminal.releases import private_key, public_key

if TYPE_CHECKING:
    from sabun.learning.audit import CanaryAudit, MembershipAttack

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
_Delta = Annotated[
    str | None, typer.Option(help="When left out: 1e-5 or less for dp-sgd, by the number of records; 0 for the other methods.")
]
_Method = Annotated[
    str,
    typer.Option(help="dp-sgd, laplace-sgd, objective-perturbation, anonymizing-first, learning-first or anonymized-learning."),
]
_Hidden = Annotated[str, typer.Option(help="Hidden layers such as 64,64; '' for a linear model.")]
_Relation = Annotated[str | None, typer.Option(help="add-remove or replace-one; the ledger's when left out.")]
_Records = Annotated[int | None, typer.Option(help="The number of records, if it is public.")]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any further setting as name=value, such as epochs=20; named as in PrivateClassifier."),
]
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
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder to resume from after an interruption; holds a secret.")
    ] = None,
    synthetic: Annotated[
        Path | None, typer.Option(help="With anonymizing-first: also write the table (.csv, .parquet).")
    ] = None,
    settings: _Settings = None,
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
    new_folder(out)
    if synthetic is not None:
        _must_be_writable(synthetic, method)
    if facts.classes is None and not json:
        print_line(
            "Notice: the list of labels is read off the data, so the promise assumes that it is public. Or name it: --classes."
        )
    payment, labels = Payment.of(ledger, purpose, checkpoint=checkpoint), cells(data, target)
    classifier = PrivateClassifier(
        method=method,
        epsilon=epsilon,
        delta=delta,
        hidden=layers(hidden),
        schema=facts.schema,
        classes=facts.classes,
        relation=relation,
        n_public=n_public,
        ledger=payment.book,
        checkpoint=checkpoint,
        **chosen(settings),
    )
    if not allow_per_parameter:
        must_be_joint(classifier, len(labels))
    with payment:
        with progress_bar("training", quiet=json) as progress:
            # Pricing the steps so far takes time that nobody watches without a terminal.
            classifier.set_params(progress=progress if sys.stderr.isatty() and not json else None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the notice above says it, or the card, which is told below
                classifier.fit(data, labels)
        with payment.writing(classifier.release_):
            classifier.save(out, allow_per_parameter=allow_per_parameter)
            if synthetic is not None:
                classifier.synthetic_.save(synthetic)
    if json:
        print_json({"model": str(out), "card": classifier.card_.to_dict()} | payment.facts(classifier.release_))
        return
    print_line(f"Wrote {out}: model.safetensors, card.json, release.json, files.json.", style="bold")
    for words in classifier.card_.warnings:
        print_line(f"Warning: {words}.")
    payment.tell(classifier.release_)


def _must_be_writable(synthetic: Path, method: str) -> None:
    if method != "anonymizing-first":
        raise ParameterError(f"synthetic must be left out unless the method is 'anonymizing-first'; got {method!r}.")
    if synthetic.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"synthetic must end in .csv or .parquet; got {synthetic.name!r}.")
    for written in (synthetic, synthetic.with_name(f"{synthetic.name}.release.json")):
        new_file(written, name="synthetic")


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

    new_file(out)
    _must_be_model(model)
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


def _must_be_model(folder: Path) -> None:
    if not folder.is_dir():
        raise ParameterError(f"model must be a folder that `sabun learning train` wrote; there is none called {str(folder)!r}.")


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
    from sabun.learning.folder import load_card

    _must_be_model(model)
    found = load_card(model)
    if json:
        print_json(found.to_dict())
    else:
        print_line(str(found))


@app.command()
def verify(
    model: _Model,
    key: Annotated[
        list[Path] | None, typer.Option(help="A public key you trust (PEM): it must have signed the folder; repeat it.")
    ] = None,
    json: Json = False,
) -> None:
    """Recompute a model's promise from its card, check that the files belong together.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun learning verify model
    """
    from sabun.learning import verify as check

    _must_be_model(model)
    found = check(model, public_key=[public_key(path) for path in key] if key else None)
    if json:
        print_json({"model": str(model), "ok": True, "found": found})
    else:
        print_line(f"{model}: {found}; weights, card and release belong together.")


@app.command()
def sign(
    model: _Model,
    key: Annotated[Path, typer.Option(help="Your private key (PEM); `sabun regression keygen NAME` makes one.")],
    json: Json = False,
) -> None:
    """Stand behind a model: sign the list of its folder's files, and through it every file.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model

        sabun regression keygen clinic

        sabun learning sign model --key clinic.pem
    """
    from sabun.learning import sign_model

    _must_be_model(model)
    shown = sign_model(model, private_key(key))
    if json:
        print_json({"model": str(model), "signed_by": shown})
    else:
        print_line(f"Signed every file in {model} by {shown}.", style="bold")


@app.command()
def plan(
    records: Annotated[int, typer.Option(help="How many records one expects.")],
    features: Annotated[int | None, typer.Option(help="Inputs of the network, when there is no schema.")] = None,
    schema: _Schema = None,
    target: Annotated[str | None, typer.Option(help="The column of the schema to be predicted; it is no input.")] = None,
    n_classes: Annotated[int | None, typer.Option("--classes", help="How many; 2, or as the schema says.")] = None,
    epsilon: _Epsilon = "1",
    delta: _Delta = None,
    method: _Method = "dp-sgd",
    hidden: _Hidden = "auto",
    relation: _Relation = None,
    n_public: _Records = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that would pay; it is not charged.")] = None,
    settings: _Settings = None,
    json: Json = False,
) -> None:
    """Show what a training run would cost, without any data.

    Example:

        sabun learning plan --features 30 --records 569 --epsilon 1
    """
    from sabun.learning import PrivateClassifier
    from sabun.learning.features import classes_of_target

    payment = Payment.of(ledger, None)
    whole = None if schema is None else Schema.load(schema)
    column = None if whole is None or target not in whole.names else whole[target or ""]
    if n_classes is None:
        n_classes = 2 if column is None else len(classes_of_target(column, None))
    classifier = PrivateClassifier(
        method=method,
        epsilon=epsilon,
        delta=delta,
        hidden=layers(hidden),
        relation=relation,
        n_public=n_public,
        schema=None if whole is None else inputs_of(whole, target),
        ledger=payment.book,
        **chosen(settings),
    )
    found = classifier.plan(n_records=records, n_features=features, n_classes=n_classes)
    if json:
        print_json(found.to_dict())
        return
    print_line(str(found))
    warn_if_large(found.joint_epsilon.replace("infinity", "inf"))
    payment.tell_left()


@app.command()
def audit(
    data: _Data,
    target: _Target,
    attack: Annotated[str, typer.Option(help="canaries (trains once more) or membership (of a model's folder).")] = "canaries",
    schema: _Schema = None,
    bounds: _Bounds = None,
    classes: _Classes = None,
    epsilon: _Epsilon = "1",
    delta: _Delta = None,
    method: _Method = "dp-sgd",
    hidden: _Hidden = "auto",
    relation: _Relation = None,
    n_public: _Records = None,
    settings: _Settings = None,
    canaries: Annotated[int, typer.Option(help="How many strange rows to offer.")] = 500,
    model: Annotated[Path | None, typer.Option(help="With membership: the model's folder, trained on the data.")] = None,
    others: Annotated[Path | None, typer.Option(help="With membership: a like table that was not trained on.")] = None,
    json: Json = False,
) -> None:
    """Attack a model as an adversary would; for the owner of the data.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning audit radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --canaries 100
    """
    from sabun.learning import PrivateClassifier, canary_audit, load_model, membership_inference

    if attack not in ("canaries", "membership"):
        raise ParameterError(f"attack must be 'canaries' or 'membership'; got {attack!r}.")
    if attack == "membership":
        if model is None or others is None:
            raise ParameterError("model and others must be given for the membership attack. Pass --model and --others.")
        _must_be_model(model)
        members = (data, cells(data, target))
        _show_attack(membership_inference(load_model(model), members=members, others=(others, cells(others, target))), json)
        return
    facts = declared(schema, bounds, target, classes)
    classifier = PrivateClassifier(
        method=method,
        epsilon=epsilon,
        delta=delta,
        hidden=layers(hidden),
        schema=facts.schema,
        classes=facts.classes,
        relation=relation,
        n_public=n_public,
        **chosen(settings),
    )
    with progress_bar("training with canaries", quiet=json) as progress:
        heard = progress if sys.stderr.isatty() and not json else None
        found = canary_audit(classifier, data, cells(data, target), canaries=canaries, progress=heard)
    _show_attack(found, json)


def _show_attack(found: CanaryAudit | MembershipAttack, json: bool) -> None:
    if json:
        print_json(found.to_dict())
    else:
        print_line(str(found))
