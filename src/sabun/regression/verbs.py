"""`sabun regression`: one linear model from organisations that cannot share data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sabun.errors import DataError, ParameterError
from sabun.regression.typed import (
    ask,
    features_of,
    given,
    keys_of,
    must_be_free,
    number,
    own_release,
    predict_to,
    quiet_warnings,
    save_once,
    signing_key,
    tell_model,
    tell_study,
    terms_of,
)
from sabun.telling.terminal.charging import LedgerFile, Payment, Purpose
from sabun.telling.terminal.output import Json, new_file, print_json, print_line
from sabun.telling.terminal.progress import busy

__all__ = ["app"]

app = typer.Typer(
    help="Fit one linear model over organisations that cannot share data.\n\nExample:\n\n    sabun regression keygen north",
    no_args_is_help=True,
)
study_app = typer.Typer(
    help="Write or check the terms that organisations agree on.\n\nExample:\n\n    sabun regression study init --help",
    no_args_is_help=True,
)
app.add_typer(study_app, name="study")

_SchemaFile = Annotated[Path | None, typer.Option("--schema", help="A schema file with columns and their public bounds.")]
_Bounds = Annotated[list[str] | None, typer.Option("--bounds", help="Public bounds of a column: name=low:high; repeat it.")]
_Columns = Annotated[
    str | None, typer.Option("--columns", help="Features, separated by commas; all but the target by default.")
]
_Target = Annotated[str | None, typer.Option("--target", help="The column to predict.")]
_Epsilon = Annotated[str | None, typer.Option("--epsilon", help="Privacy of each release, exactly as written: 1, 0.1 or 1/3.")]
_Delta = Annotated[str | None, typer.Option("--delta", help="The same for delta; 1e-6 by default where one is needed.")]
_Mechanism = Annotated[str, typer.Option("--mechanism", help="ssp-gauss, ssp-laplace, objpert, paper or auto.")]
_Relation = Annotated[str, typer.Option("--relation", help="replace-one (number of rows is public) or add-remove.")]
_Unit = Annotated[str, typer.Option("--unit", help="Whom a row speaks of: record, patient, ...")]
_StudyFile = Annotated[Path | None, typer.Option("--study", help="The study file that the organisations agreed on.")]
_Files = Annotated[list[Path], typer.Argument(help="Release files.")]
_File = Annotated[Path, typer.Argument(help="A release file.")]


@study_app.command("init")
def study_init(
    path: Annotated[Path, typer.Argument(help="The study file to write.")],
    name: Annotated[str, typer.Option(help="What people call the study.")],
    target: _Target = None,
    epsilon: _Epsilon = None,
    delta: _Delta = None,
    schema: _SchemaFile = None,
    bounds: _Bounds = None,
    columns: _Columns = None,
    organisation: Annotated[list[str] | None, typer.Option(help="name=public-key.pem; repeat it.")] = None,
    mechanism: _Mechanism = "ssp-gauss",
    relation: _Relation = "replace-one",
    unit: _Unit = "record",
    clip_radius: Annotated[str | None, typer.Option(help="Rows longer than this in scaled units are shortened.")] = None,
    coef_bound: Annotated[str, typer.Option(help="Public guess of the length of the coefficients, scaled.")] = "2",
    records_per_person: Annotated[int, typer.Option(help="The most rows of one unit.")] = 1,
    intercept: Annotated[bool, typer.Option(help="Whether the model has a constant.")] = True,
    json: Json = False,
) -> None:
    """Write a study file.

    Example:

        sabun regression study init study.json --name dose --target dose --bounds dose=0:100 --bounds age=0:120 --epsilon 1
    """
    from sabun.regression import Study

    new_file(path, name="path")
    features, goal = features_of(schema, bounds, columns, target)
    made = Study(
        features=features,
        target=goal,
        epsilon=given(epsilon, "epsilon"),
        delta=delta,
        mechanism=mechanism,
        relation=relation,
        unit=unit,
        clip_radius=clip_radius,
        coef_bound=coef_bound,
        records_per_person=records_per_person,
        fit_intercept=intercept,
        name=name,
        organisations=keys_of(organisation or []),
    )
    made.save(path)
    tell_study(made, path, json=json)


@study_app.command("check")
def study_check(path: Annotated[Path, typer.Argument(help="A study file.")], json: Json = False) -> None:
    """Check a study file; tell its terms in plain words, with the hash to compare by telephone.

    Example:

        sabun regression study init study.json --name dose --target dose --bounds dose=0:100 --bounds age=0:120 --epsilon 1

        sabun regression study check study.json
    """
    from sabun.regression import Study

    tell_study(Study.load(path), path, json=json)


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
    from sabun.release import fingerprint, generate_key, save_key

    if not name or Path(name).name != name:
        raise ParameterError(f"name must be a plain file name; got {name!r:.60}.")
    key = generate_key()
    secret, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    for file in (secret, public):
        new_file(file, name="folder and name")
    save_key(key, secret)
    save_key(key.public_key(), public)
    shown = fingerprint(key.public_key().public_bytes_raw())
    if json:
        print_json({"private_key": str(secret), "public_key": str(public), "fingerprint": shown})
        return
    print_line(f"Wrote {str(secret)!r} (keep it secret) and {str(public)!r} (give it to the study).", style="bold")
    print_line(f"Fingerprint: {shown}")


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="A .csv, .csv.gz or .parquet file, or a folder of .parquet files.")],
    out: Annotated[Path, typer.Option(help="The release file to write.")],
    ledger: LedgerFile = None,
    purpose: Purpose = None,
    study: _StudyFile = None,
    organisation: Annotated[str | None, typer.Option(help="Which organisation of the study this is.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key; the release is signed with it.")] = None,
    target: _Target = None,
    epsilon: _Epsilon = None,
    delta: _Delta = None,
    schema: _SchemaFile = None,
    bounds: _Bounds = None,
    columns: _Columns = None,
    mechanism: Annotated[
        str | None, typer.Option(help="ssp-gauss, ssp-laplace, objpert, paper or auto; ssp-gauss by default.")
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="replace-one (number of rows is public) or add-remove; the ledger's when left out.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Release even if mostly noise is expected.")] = False,
    json: Json = False,
) -> None:
    """Release private numbers about a table, with the model they give by themselves.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.json

        sabun regression fit radar.csv --schema radar.json --columns a03,a05 --target a04 --epsilon 2 --yes --out one.json
    """
    from sabun.asking import Ask
    from sabun.regression.combining import own_model
    from sabun.regression.moments import Moments
    from sabun.regression.planning import plan_of
    from sabun.regression.releasing import release_moments, request_key

    payment = Payment.of(ledger, purpose)
    book = payment.book
    if study is None and relation is None and book is not None:
        relation = book.relation
    terms = terms_of(
        study, schema, bounds, columns, target, epsilon, delta, mechanism, relation, book.unit if book else "record"
    )
    private_key = signing_key(terms, organisation, key)
    must_be_free(out, request_key(terms, organisation), book)
    with payment:
        with busy(f"Reading {data} ..."):
            moments = Moments.of_source(terms.design, data)
        # The number of rows may be told only where it is public.
        if terms.relation == "replace-one":
            ask(plan_of(terms, rows=max(moments.rows, 1), organisations=max(len(terms.organisations), 1)), yes=yes, quiet=json)
        asked = Ask.of(
            epsilon=terms.epsilon,
            delta=terms.delta,
            relation=terms.relation,
            ledger=book,
            retry_key=None if book is None else request_key(terms, organisation),
        )
        drawn = release_moments(terms, moments, asked, organisation=organisation)
        release = drawn if private_key is None else drawn.sign(private_key)
        with payment.writing(release):
            save_once(release, out)
    model = own_model(terms, release)
    if json:
        print_json({"file": str(out), "study_hash": terms.hash} | payment.facts(release) | model.to_dict())
        return
    print_line(str(model))
    payment.tell(release, out)


@app.command()
def verify(file: _File, study: Annotated[Path, typer.Option(help="The study you trust.")], json: Json = False) -> None:
    """Check that a release belongs to the study, that its organisation signed it, that its numbers can be.

    Example:

        sabun datasets save ionosphere radar.csv

        sabun regression keygen north

        sabun regression study init s.json --name s --target a04 --bounds a04=-1:1 --bounds a03=-1:1 --epsilon 5 --organisation north=north.pub.pem

        sabun regression fit radar.csv --study s.json --organisation north --key north.pem --yes --out north.json

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
def combine(
    files: _Files,
    study: _StudyFile = None,
    home: Annotated[Path | None, typer.Option(help="The home organisation's own table; it stays at home.")] = None,
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
    predict: Annotated[Path | None, typer.Option(help="A table to predict for.")] = None,
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
    from sabun.regression import HomeModel, PublicModel, Study
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
    tell_model(model, json=json, is_home=isinstance(model, HomeModel))
    for file in (out, release, predictions):
        if file is not None and not json:
            print_line(f"Wrote {str(file)!r}.")


@app.command()
def simulate(
    rows: Annotated[int, typer.Option(help="Rows of each organisation.")],
    features: Annotated[int, typer.Option(help="Number of features.")],
    organisations: Annotated[int, typer.Option(help="How many organisations release.")],
    epsilon: Annotated[str, typer.Option(help="Privacy of each release.")],
    delta: _Delta = None,
    mechanism: _Mechanism = "ssp-gauss",
    setting: Annotated[
        str, typer.Option(help="iid (all alike), narrow (each its own corner) or collinear (features nearly equal).")
    ] = "iid",
    repeats: Annotated[int, typer.Option(help="How many made-up worlds.")] = 10,
    json: Json = False,
) -> None:
    """Tell what accuracy to expect, from made-up data, before anything is spent.

    Example:

        sabun regression simulate --rows 500 --features 4 --organisations 5 --epsilon 1 --setting narrow --repeats 3
    """
    from sabun.regression.simulation import simulate as run

    with busy("Simulating ..."):
        found = run(
            rows=rows,
            features=features,
            organisations=organisations,
            epsilon=epsilon,
            delta=delta,
            mechanism=mechanism,
            setting=setting,
            repeats=repeats,
        )
    if json:
        print_json({"setting": setting, "mechanism": mechanism, "relative_errors": found})
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
