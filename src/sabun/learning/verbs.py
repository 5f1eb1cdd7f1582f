"""`sabun learning`: train a network on personal records, hand the model over."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun import checks
from sabun.errors import ParameterError
from sabun.learning import typed
from sabun.learning.model_verbs import card, evaluate, predict, sign, verify
from sabun.telling.terminal.asked import EVERY_ROW, AskedPersons, as_persons
from sabun.telling.terminal.charging import Payment, asked_name, warn_if_large
from sabun.telling.terminal.columns import declared
from sabun.telling.terminal.foretelling import Guess, foretell
from sabun.telling.terminal.options import (
    Again,
    Bounds,
    Columns,
    Epsilon,
    Json,
    Label,
    LedgerFile,
    NRecords,
    PrivateTable,
    Purpose,
    Relation,
    RetryKey,
    SchemaFile,
    Yes,
    as_written,
)
from sabun.telling.terminal.output import new_folder, print_json, print_line
from sabun.telling.terminal.progress import progress_bar, watched

if TYPE_CHECKING:
    from sabun.learning import PrivateClassifier
    from sabun.learning.audit import CanaryAudit
    from sabun.learning.membership_attack import MembershipAttack

__all__ = ["app"]

_HELP = """Train a network on personal records, hand the model to a third party.

Example:

    sabun learning plan --n-features 30 --n-records 569 --epsilon 1
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column to be predicted.")]
_Classes = Annotated[str | None, typer.Option(help="The public list of labels, separated by commas.")]
_Delta = Annotated[
    str | None, typer.Option(help="When left out: 1e-5 or less for dp-adam and dp-sgd, 0 for the other methods.")
]
_METHODS = (
    *("dp-adam", "dp-sgd", "noisy-centroids", "laplace-sgd", "objective-perturbation"),
    *("anonymizing-first", "learning-first", "anonymized-learning"),
)
_Method = Annotated[
    str, typer.Option(metavar="|".join(_METHODS), help="How it is trained; dp-adam unless there is a reason for another.")
]
_Hidden = Annotated[str, typer.Option(help="Hidden layers such as 64,64; '' for a linear model.")]
_Public = Annotated[int | None, typer.Option(help="The number of records, if it is public.")]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any further setting of the method as name=value, such as epochs=20; repeat it."),
]


@app.command()
@as_written
@as_persons
def train(
    table: PrivateTable,
    target: _Target,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write: weights, privacy card, release.")],
    schema: SchemaFile = None,
    bounds: Bounds = None,
    columns: Columns = None,
    classes: _Classes = None,
    persons: AskedPersons = EVERY_ROW,
    epsilon: Epsilon = "1",
    delta: _Delta = None,
    method: _Method = "dp-adam",
    hidden: _Hidden = "auto",
    relation: Relation = None,
    n_public: _Public = None,
    n_records: Guess = None,
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    retry_key: RetryKey = None,
    label: Label = None,
    again: Again = False,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder to resume from after an interruption; holds a secret.")
    ] = None,
    synthetic: Annotated[
        Path | None, typer.Option(help="With anonymizing-first: also write the table (.csv, .parquet).")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="With dp-adam and dp-sgd: processes that sum gradients side by side (needs torch).")
    ] = None,
    settings: _Settings = None,
    allow_per_parameter: Annotated[
        bool, typer.Option(help="Hand over a model whose promise bounds each weight only by itself.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Train a classifier, write it with its privacy card.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json

        sabun learning train radar.csv --target class --classes b,g --schema radar.schema.json --epsilon 2 --out model
    """
    new_folder(out)
    if processes is not None:
        settings = [*(settings or ()), f"processes={processes}"]
    whole = declared(schema, bounds)
    inputs, labels = typed.inputs_of(whole, columns, target), typed.classes_for(whole, target, classes)
    if persons.id is None:
        typed.must_hold(table.written(inputs.file), target)
    if synthetic is not None:
        typed.must_be_new_table(synthetic, method)
    if labels is None and persons.id is not None:
        advice = checks.meant(target, whole.names) or "Declare it, or pass --classes."
        checks.require(False, "declared, or its labels listed, where a person may have several rows", advice, target=target)
    if labels is None and not json:
        print_line(
            "Notice: the list of labels is read off the data, so the promise assumes that it is public. Or name it: --classes."
        )
    payment = Payment.of(ledger, purpose, table=asked_name(table, label, again), checkpoint=checkpoint)
    classifier = _classifier(
        method,
        settings,
        hidden,
        epsilon=epsilon,
        delta=delta,
        schema=inputs,
        classes=labels,
        relation=relation,
        n_public=n_public,
        ledger=payment.book,
        retry_key=retry_key,
        checkpoint=checkpoint,
    )
    rows, answers, count = typed.read_asked(table.written(inputs.file), persons, classifier, target)
    n_classes = typed.number_of_classes(labels, answers)
    if not allow_per_parameter:
        typed.must_be_joint(classifier, count, n_classes)
    with payment:
        # Under add-remove the number of rows is private: a plan takes the declared one, else a guess, else there is none.
        guess = count if typed.counted(classifier) else n_public or n_records
        told = foretell(classifier, n_records=guess, n_classes=n_classes, yes=yes, json=json)
        with progress_bar("training", quiet=json) as progress:
            # Pricing the steps so far takes time that nobody watches without a terminal.
            classifier.set_params(progress=progress if watched(quiet=json) else None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the notice above says it, or the card, which is told below
                classifier.fit(rows, answers)
        with payment.writing(classifier.release_):
            classifier.save(out, allow_per_parameter=allow_per_parameter)
            if synthetic is not None:
                classifier.synthetic_.save(synthetic)
    if json:
        found = {"out": str(out), "model": str(out), "card": classifier.card_.to_dict()}
        print_json(found | told | payment.facts(classifier.release_))
        return
    print_line(f"Wrote {out}: model.safetensors, card.json, release.json, files.json.", style="bold")
    for words in classifier.card_.warnings:
        print_line(f"Warning: {words}.")
    print_line(
        "How often it is right was not measured. With a table that it was not trained on: sabun learning evaluate "
        f"{shlex.quote(str(out))} OTHERS. What that says is as private as its rows."
    )
    payment.tell(classifier.release_)


def _classifier(method: str, settings: list[str] | None, hidden: str, **more: Any) -> PrivateClassifier:
    """What the options that train, plan and audit share come to."""
    from sabun.learning import PrivateClassifier

    return PrivateClassifier(hidden=typed.layers(hidden), **typed.chosen(method, settings), **more)


for verb in (card, verify, sign, predict, evaluate):
    app.command()(verb)


@app.command()
def plan(
    n_records: NRecords,
    n_features: Annotated[
        int | None, typer.Option("--n-features", "--features", help="Inputs of the network, when there is no schema.")
    ] = None,
    schema: SchemaFile = None,
    bounds: Bounds = None,
    columns: Columns = None,
    target: Annotated[str | None, typer.Option(help="The declared column to be predicted; it is no input.")] = None,
    n_classes: Annotated[
        int | None, typer.Option("--n-classes", "--classes", help="How many classes; 2, or as the schema says.")
    ] = None,
    epsilon: Epsilon = "1",
    delta: _Delta = None,
    method: _Method = "dp-adam",
    hidden: _Hidden = "auto",
    relation: Relation = None,
    n_public: _Public = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that would pay; it is not charged.")] = None,
    settings: _Settings = None,
    json: Json = False,
) -> None:
    """Show what a training run would cost, without any data.

    Example:

        sabun learning plan --n-features 30 --n-records 569 --epsilon 1
    """
    payment = Payment.of(ledger, None)
    whole = declared(schema, bounds) if schema is not None or bounds else None
    if whole is not None and target is not None:
        typed.must_be_declared(target, whole)
    if n_classes is None:
        n_classes = len((whole and target and typed.classes_for(whole, target, None)) or ("one", "other"))
    classifier = _classifier(
        method,
        settings,
        hidden,
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        n_public=n_public,
        schema=None if whole is None else typed.inputs_of(whole, columns, target),
        ledger=payment.book,
    )
    found = classifier.plan(n_records=n_records, n_features=n_features, n_classes=n_classes)
    if json:
        print_json(found.to_dict())
        return
    print_line(str(found))
    warn_if_large(found.joint_epsilon.replace("infinity", "inf"))
    payment.tell_left()


@app.command()
@as_written
def audit(
    table: typed.Audited = None,
    target: Annotated[str | None, typer.Option(help="The column to be predicted; with a table.")] = None,
    attack: Annotated[str, typer.Option(help="canaries (trains once more) or membership (of a model's folder).")] = "canaries",
    schema: SchemaFile = None,
    bounds: Bounds = None,
    columns: Columns = None,
    classes: _Classes = None,
    epsilon: Epsilon = "1",
    delta: _Delta = None,
    method: _Method = "dp-adam",
    hidden: _Hidden = "auto",
    relation: Relation = None,
    n_public: _Public = None,
    settings: _Settings = None,
    canaries: Annotated[int, typer.Option(help="How many canaries to offer.")] = 300,
    model: Annotated[Path | None, typer.Option(help="With membership: the model's folder, trained on the data.")] = None,
    others: typed.Others = None,
    shadows: Annotated[
        int, typer.Option(help="With membership: train so many other models by these settings to compare losses with (LiRA).")
    ] = 0,
    json: Json = False,
) -> None:
    """Attack a way of training as an adversary would; without a table the result may be published.

    Example:

        sabun learning audit --epsilon 8 --delta 1e-5 --canaries 100
    """
    from sabun.learning import canary_audit, load_model, membership_inference

    if attack not in ("canaries", "membership"):
        raise ParameterError(f"attack must be 'canaries' or 'membership'; got {attack!r}.")
    if attack == "membership" and model is not None and table is not None:
        typed.must_be_model(model)
        target = typed.target_of(model, target)
    if (table is None) != (target is None) and (table is not None or attack == "membership"):
        raise ParameterError("table and target must be given together. Pass a table and --target.")
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "relation": relation, "n_public": n_public}
    if attack == "membership":
        if model is None or others is None or table is None or target is None:
            raise ParameterError(
                "model and others must be given for the membership attack. Pass --model and --others, with a table."
            )
        loaded = load_model(model)
        members, strangers = (typed.read_once(one, loaded.features.names, target) for one in (table, others))
        like = None
        if shadows:
            asked |= {"schema": loaded.features.schema, "classes": loaded.classes}
            like = _classifier(method, settings, hidden, **asked)
        attacked = membership_inference(loaded, members=members, others=strangers, like=like, shadows=shadows)
        _show_attack(attacked, json)
        return
    whole = None if table is None and schema is None and not bounds else declared(schema, bounds)
    inputs = None if whole is None else typed.inputs_of(whole, columns, target)
    asked |= {"schema": inputs, "classes": typed.classes_for(whole, target, classes)}
    classifier = _classifier(method, settings, hidden, **asked)
    rows: tuple[Any, Any] = (None, None)
    if table is not None and target is not None and inputs is not None:
        rows = typed.read_once(table.written(inputs.file), inputs.names, target)
    with progress_bar("training with canaries", quiet=json) as progress:
        shown = progress if watched(quiet=json) else None
        found = canary_audit(classifier, *rows, canaries=canaries, progress=shown)
    _show_attack(found, json)


def _show_attack(found: CanaryAudit | MembershipAttack, json: bool) -> None:
    if json:
        print_json(found.to_dict())
    else:
        print_line(str(found))
