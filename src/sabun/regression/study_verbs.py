"""`sabun regression study`: the terms that organisations agree on, and what the paper's theorem says about them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sabun.regression.typed import Delta, Epsilon, Method, Target, features_of, given, keys_of, tell_study
from sabun.telling.terminal.options import Bounds, Columns, Confidence, Json, NRecords, SchemaFile
from sabun.telling.terminal.output import new_file, print_json, print_line

__all__ = ["risk_bound", "study_app"]

study_app = typer.Typer(
    help="Write or check the terms that organisations agree on.\n\nExample:\n\n    sabun regression study init --help",
    no_args_is_help=True,
)

_Unit = Annotated[str, typer.Option("--unit", help="Whom a row speaks of: record, patient, ...")]


@study_app.command("init")
def study_init(
    path: Annotated[Path, typer.Argument(help="The study file to write.")],
    name: Annotated[str, typer.Option(help="What people call the study.")],
    target: Target = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    schema: SchemaFile = None,
    bounds: Bounds = None,
    columns: Columns = None,
    organisation: Annotated[list[str] | None, typer.Option(help="name=public-key.pem; repeat it.")] = None,
    method: Method = None,
    relation: Annotated[str, typer.Option(help="replace-one (number of rows is public) or add-remove.")] = "replace-one",
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
        method=method or "staged",
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
    tell_study(made, path, json=json, wrote=True)


@study_app.command("check")
def study_check(path: Annotated[Path, typer.Argument(help="A study file.")], json: Json = False) -> None:
    """Check a study file; tell its terms in plain words, with the hash to compare by telephone.

    Example:

        sabun regression study init study.json --name dose --target dose --bounds dose=0:100 --bounds age=0:120 --epsilon 1

        sabun regression study check study.json
    """
    from sabun.regression import Study

    tell_study(Study.load(path), path, json=json)


@study_app.command("narrow")
def study_narrow(
    path: Annotated[Path, typer.Argument(help="The study that the pilots were made for.")],
    pilots: Annotated[list[Path], typer.Argument(help="Pilot releases, one of each organisation.")],
    out: Annotated[Path, typer.Option(help="The new study file to write.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    method: Method = None,
    name: Annotated[str | None, typer.Option(help="What people call the new study; as before by default.")] = None,
    json: Json = False,
) -> None:
    """Write a study with bounds drawn in around the centres and spreads that pilot releases show; costs no privacy.

    A person is promised the sum of the pilot's epsilon and the new one.

    Example:

        sabun datasets save ionosphere radar.csv

        sabun regression study init p.json --name p --target a04 --bounds a04=-1:1 --bounds a03=-9:9 --epsilon 3

        sabun regression fit radar.csv --study p.json --organisation north --yes --out north-p.json

        sabun regression study narrow p.json north-p.json --epsilon 5 --out s.json
    """
    from sabun.regression import Study, narrowed

    new_file(out)
    made = narrowed(Study.load(path), pilots, epsilon=given(epsilon, "epsilon"), delta=delta, method=method, name=name)
    made.save(out)
    tell_study(made, out, json=json, wrote=True)
    if not json:
        for column in made.features.columns:
            print_line(f"  {column}")


def risk_bound(
    n_records: NRecords,
    study: Annotated[Path | None, typer.Option("--study", help="A study file; or say --features and --epsilon.")] = None,
    organisations: Annotated[int | None, typer.Option(help="How many release; those of the study by default.")] = None,
    features: Annotated[int | None, typer.Option(help="How many features, the constant included.")] = None,
    epsilon: Epsilon = None,
    home_records: Annotated[int | None, typer.Option(help="Rows at home; as many as elsewhere by default.")] = None,
    coef_bound: Annotated[float | None, typer.Option(help="Public bound on the length of the coefficients, scaled.")] = None,
    coef_length: Annotated[float | None, typer.Option(help="A guess of their length.")] = None,
    residual: Annotated[float, typer.Option(help="A guess of the noise in the scaled target.")] = 0.2,
    confidence: Confidence = 0.95,
    json: Json = False,
) -> None:
    """Say what Theorem 3 of the paper bounds the error of mirror averaging by; from public figures, touches no data.

    Example:

        sabun regression risk-bound --n-records 100000 --organisations 10 --features 5 --epsilon 1
    """
    from sabun.privacy.amounts import exact_positive
    from sabun.regression import Study
    from sabun.regression.theorem_three import bound_of_study
    from sabun.regression.theorem_three import risk_bound as bound

    said: dict[str, Any] = {
        "organisations": organisations,
        "features": features,
        "epsilon": None if epsilon is None else float(exact_positive(epsilon, name="epsilon")),
        "home_records": home_records,
        "coef_bound": coef_bound,
        "coef_length": coef_length,
    }
    more = {name: value for name, value in said.items() if value is not None} | {"residual": residual, "confidence": confidence}
    if study is not None:
        found = bound_of_study(Study.load(study), n_records=n_records, **more)
    else:
        for name in ("organisations", "features", "epsilon"):
            given(str(more.get(name) or ""), name)
        found = bound(n_records=n_records, **more)
    if json:
        print_json(found.to_dict())
        return
    print_line(str(found))
    print_line("The constants are those of the theorems it cites; it assumes one law everywhere, rows evenly in their ball.")
