"""`sabun regression`: one linear model from organisations that cannot share data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sabun.errors import DataError, ParameterError
from sabun.records import FilePart, Persons
from sabun.regression.round_verbs import refine
from sabun.regression.study_verbs import risk_bound, study_app
from sabun.regression.typed import (
    Delta,
    Epsilon,
    Method,
    Target,
    must_be_free,
    number,
    own_release,
    predict_to,
    quiet_warnings,
    save_once,
    shape_of,
    signer_of,
    tell_model,
    terms_of,
)
from sabun.telling.terminal.asked import EVERY_ROW, AskedPersons, as_persons, asked_table, reading
from sabun.telling.terminal.charging import Payment, asked_name, warn_if_large
from sabun.telling.terminal.foretelling import Guess, foretell
from sabun.telling.terminal.options import (
    Again,
    Bounds,
    Columns,
    EngineName,
    Json,
    Label,
    LedgerFile,
    NRecords,
    PrivateTable,
    Purpose,
    Relation,
    SchemaFile,
    Yes,
    as_written,
)
from sabun.telling.terminal.output import new_file, print_json, print_line, remark
from sabun.telling.terminal.progress import busy
from sabun.telling.terminal.releases import new_keys
from sabun.telling.terminal.written import typed_table

__all__ = ["app"]

app = typer.Typer(
    help="Fit one linear model over organisations that cannot share data.\n\nExample:\n\n    sabun regression keygen north",
    no_args_is_help=True,
)
app.add_typer(study_app, name="study")
app.command("risk-bound")(risk_bound)
app.command("refine")(refine)

_StudyFile = Annotated[Path | None, typer.Option("--study", help="The study file that the organisations agreed on.")]
_RetryKey = Annotated[str | None, typer.Option("--retry-key", help="A name for this release: a retry with it costs nothing.")]
_SigningKey = Annotated[
    Path | None, typer.Option("--signing-key", "--key", help="The organisation's private key; the release is signed with it.")
]
_Files = Annotated[list[Path], typer.Argument(help="Release files.")]
_File = Annotated[Path, typer.Argument(help="A release file.")]


@app.command()
def keygen(
    name: Annotated[str, typer.Argument(help="The organisation; files are called after it.")],
    folder: Annotated[Path, typer.Option(help="Where to write them.")] = Path(),
    json: Json = False,
) -> None:
    """Make a signing key: NAME.pem stays secret, NAME.pub.pem goes into the study.

    Example:

        sabun regression keygen north
    """
    made = new_keys(name, folder)
    if json:
        print_json({"private_key": str(made.secret), "public_key": str(made.public), "fingerprint": made.fingerprint})
        return
    print_line(f"Wrote {str(made.secret)!r} (keep it secret) and {str(made.public)!r} (give it to the study).", style="bold")
    print_line(f"Fingerprint: {made.fingerprint}")


@app.command()
@as_written
@as_persons
def fit(
    table: PrivateTable,
    out: Annotated[Path, typer.Option(help="The release file to write.")],
    study: _StudyFile = None,
    organisation: Annotated[str | None, typer.Option(help="Which organisation of the study this is.")] = None,
    signing_key: _SigningKey = None,
    target: Target = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    columns: Columns = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    persons: AskedPersons = EVERY_ROW,
    method: Method = None,
    relation: Relation = None,
    engine: EngineName = None,
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    retry_key: _RetryKey = None,
    label: Label = None,
    again: Again = False,
    n_records: Guess = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Release private numbers about a table, with the model they give by themselves.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.json

        sabun regression fit radar.csv --schema radar.json --columns a03,a05 --target a04 --epsilon 2 --yes --out one.json
    """
    from sabun.regression import PrivateRidge
    from sabun.regression.releasing import request_key

    payment = Payment.of(ledger, purpose, table=asked_name(table, label, again))
    said = {"schema": schema, "bounds": bounds, "columns": columns, "target": target}
    terms = terms_of(study, said | {"epsilon": epsilon, "delta": delta, "method": method, "relation": relation})
    agreed = terms.get("study")
    signer = signer_of(agreed, organisation, signing_key)
    model = PrivateRidge(**terms, organisation=organisation, signing_key=signer, ledger=payment.book, retry_key=retry_key)
    request = retry_key or (None if agreed is None else request_key(agreed, organisation))
    must_be_free(out, request, payment.book, signer)
    with payment, asked_table(table, engine=engine, persons=persons, quiet=json) as asked:
        with reading(asked, f"Reading {table} ..."):
            sums = model.read(asked)
        together = len(agreed.organisations) or 1 if agreed else 1
        stated = agreed.relation if agreed else payment.relation(relation)
        counted = sums.count if isinstance(sums, Persons) else sums.state.rows
        rows = counted if stated == "replace-one" else n_records  # otherwise their number is private
        told = foretell(model, n_records=rows, organisations=together, yes=yes, json=json)
        release = model.fit(sums).release_
        with payment.writing(release):
            save_once(release, out)
    if json:
        print_json({"out": str(out), "study_hash": model.study_.hash} | told | payment.facts(release) | model.model_.to_dict())
        return
    print_line(str(model.model_))
    payment.tell(release, out)


@app.command()
def plan(
    n_records: NRecords,
    organisations: Annotated[int, typer.Option(help="How many organisations release, each with that many records.")] = 1,
    study: _StudyFile = None,
    target: Target = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    columns: Columns = None,
    bounds: Bounds = None,
    schema: SchemaFile = None,
    method: Method = None,
    relation: Relation = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="KEY=VALUE",
            help="What tables are like, a public guess: spread, centre, correlation, r_squared, deviation, between or tail, in "
            "half ranges of the bounds around their middle; repeat it.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say what a release will cost and how far off its model may be; touches no data, and says what it assumes instead.

    Example:

        sabun regression plan --n-records 3000 --organisations 5 --bounds age=0:99 --bounds dose=0:60 --target dose --epsilon 1

        sabun regression plan --n-records 3000 --bounds age=0:99 --bounds dose=0:60 --target dose --epsilon 1 --shape spread=0.3 --shape r_squared=0.4
    """  # noqa: E501 (an example is one line)
    from sabun.regression import PrivateRidge

    said = {"schema": schema, "bounds": bounds, "columns": columns, "target": target}
    terms = terms_of(study, said | {"epsilon": epsilon, "delta": delta, "method": method, "relation": relation})
    agreed = terms.get("study")
    anybody = next(iter(agreed.organisations), None) if agreed is not None else None
    model = PrivateRidge(**terms, organisation=anybody)
    made = model.plan(n_records=n_records, organisations=organisations, shape=shape_of(shape or ()))
    if json:
        print_json(made.to_dict())
        return
    print_line(str(made))
    warn_if_large(made.epsilon)


@app.command()
def verify(file: _File, study: Annotated[Path, typer.Option(help="The study you trust.")], json: Json = False) -> None:
    """Check that a release belongs to the study, that its organisation signed it, that its numbers can be.

    Example:

        sabun datasets save ionosphere radar.csv

        sabun regression keygen north

        sabun regression study init s.json --name s --target a04 --bounds a04=-1:1 --bounds a03=-1:1 --epsilon 5 --organisation north=north.pub.pem

        sabun regression fit radar.csv --study s.json --organisation north --signing-key north.pem --yes --out north.json

        sabun regression verify north.json --study s.json
    """  # noqa: E501 (an example is one line)
    from sabun.regression import Study
    from sabun.regression.contribution import read_one
    from sabun.regression.plausibility import findings

    contribution = read_one(file, Study.load(study))
    notes = findings([contribution])
    if json:
        print_json({"file": str(file), "ok": True, "organisation": contribution.organisation, "findings": list(notes)})
        return
    print_line(
        f"{str(file)!r} is a release of {contribution.organisation!r} for study {contribution.study.hash[:12]}.", style="bold"
    )
    for note in notes:
        print_line(note)


@app.command()
@as_written
def combine(
    files: _Files,
    study: _StudyFile = None,
    home: Annotated[
        FilePart | None,
        typer.Option(parser=typed_table, metavar="TABLE", help="The home organisation's own table; it stays at home."),
    ] = None,
    own: Annotated[
        str | None,
        typer.Option(help="Which release was made of the --home table (its organisation, or the hash of its ledger row)."),
    ] = None,
    own_ledger: Annotated[
        str | None, typer.Option(help="The home organisation's ledger: releases it paid for were made of the --home table.")
    ] = None,
    method: Annotated[str, typer.Option(help="pool, guard, mirror, average, stack or best.")] = "pool",
    tau: Annotated[str, typer.Option(help="Temperature of mirror: theory, or a number.")] = "theory",
    convention: Annotated[str, typer.Option(help="Convention of mirror: jrt or paper.")] = "jrt",
    out: Annotated[Path | None, typer.Option(help="Where to write the public model; not with --home.")] = None,
    release: Annotated[
        Path | None, typer.Option(help="Where to write it as a release for `sabun report`; not with --home.")
    ] = None,
    predict: Annotated[
        FilePart | None, typer.Option(parser=typed_table, metavar="TABLE", help="A table to predict for.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Where to write the predictions, with 95 % intervals where there are any (CSV).")
    ] = None,
    json: Json = False,
) -> None:
    """Join releases into one model.

    Written with --release, it promises what each organisation promises if a --study names them with their keys; otherwise the
    sum, for one table may stand behind all releases, as below: epsilon 10.

    A release made of the --home table itself is left out when --own or --own-ledger tells which one it is: its rows would count
    twice.

    Example:

        sabun datasets save ionosphere radar.csv

        sabun regression fit radar.csv --target a04 --bounds a04=-1:1 --bounds a03=-1:1 --epsilon 5 --yes --out one.json

        sabun regression fit radar.csv --target a04 --bounds a04=-1:1 --bounds a03=-1:1 --epsilon 5 --yes --out two.json

        sabun regression combine one.json two.json --out model.json --release joined.json
    """
    from sabun.regression import PublicModel, Study
    from sabun.regression import combine as join

    for name, file in (("--out", out), ("--release", release)):
        if home is not None and file is not None:
            raise ParameterError(
                f"{name} must be left out with --home: a model that used raw data stays at home. Drop one of them."
            )
    if (predict is None) != (predictions is None):
        raise ParameterError("--predict and --predictions must be given together.")
    trusted = None if study is None else Study.load(study)
    for name, file in (("out", out), ("release", release), ("predictions", predictions)):
        if file is not None:
            new_file(file, name=name)
    temperature: float | str = tau if tau == "theory" else number(tau, "tau")
    mine = own_release(own, own_ledger)
    with quiet_warnings():
        model = join(files, home, method=method, study=trusted, tau=temperature, convention=convention, own=mine)
    if isinstance(model, PublicModel) and out is not None:
        model.save(out)
    if isinstance(model, PublicModel) and release is not None:
        model.release().save(release)
    if predict is not None and predictions is not None:
        predict_to(model, predict, predictions)
    tell_model(model, out, json=json)
    for file in (out, release, predictions):
        if file is not None and not json:
            print_line(f"Wrote {str(file)!r}.")
    if isinstance(model, PublicModel) and release is None and out is not None and not json:
        remark("For a page (sabun report) or a signature: the same with --release FILE writes the model as a release.")


@app.command()
def simulate(
    n_records: NRecords,
    features: Annotated[int, typer.Option(help="Number of features.")],
    organisations: Annotated[int, typer.Option(help="How many organisations release.")],
    epsilon: Annotated[str, typer.Option(help="Privacy of each release.")],
    delta: Delta = None,
    method: Method = None,
    setting: Annotated[
        str, typer.Option(help="iid (all alike), narrow (each its own corner) or collinear (features nearly equal).")
    ] = "iid",
    repeats: Annotated[int, typer.Option(help="How many made-up worlds.")] = 10,
    json: Json = False,
) -> None:
    """Tell what accuracy to expect, from made-up data, before anything is spent.

    Example:

        sabun regression simulate --n-records 500 --features 4 --organisations 5 --epsilon 1 --setting narrow --repeats 3
    """
    from sabun.regression.simulation import simulate as run

    with busy("Simulating ..."):
        found = run(
            n_records=n_records,
            features=features,
            organisations=organisations,
            epsilon=epsilon,
            delta=delta,
            method=method or "staged",
            setting=setting,
            repeats=repeats,
        )
    if json:
        print_json({"setting": setting, "method": method or "staged", "relative_errors": found})
        return
    print_line(f"Median relative error over {repeats} made-up worlds (1 = predicting with all coefficients 0):", style="bold")
    for name, error in found.items():
        print_line(f"  {name:<14} {error:10.4g}")


@app.command()
def explain(file: _File, json: Json = False) -> None:
    """Tell in plain words what a release promises; its signature is not checked.

    Example:

        sabun datasets save ionosphere radar.csv

        sabun regression fit radar.csv --target a04 --bounds a04=-1:1 --bounds a03=-1:1 --epsilon 5 --yes --out one.json

        sabun regression explain one.json
    """
    from sabun.regression.contribution import KIND
    from sabun.release import Release

    release = Release.load(file)
    if not release.provenance.kind.startswith(KIND):
        raise DataError(f"{file} must be a regression release; it is something else.")
    facts = release.provenance.parameters
    maker, terms = str(facts.get("organisation") or "")[:200] or None, str(facts.get("study_hash"))[:64]
    if json:
        print_json({"guarantee": release.guarantee.to_dict(), "organisation": maker, "study_hash": terms})
        return
    print_line(str(release.guarantee))
    print_line(f"Made by {maker or 'an unnamed organisation'} for study {terms[:12]}.")
    print_line("Whoever holds this file may compute anything from it; the promise stays.")
