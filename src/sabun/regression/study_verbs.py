"""`sabun regression study`: the terms that organisations agree on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sabun.regression.typed import Delta, Epsilon, Method, Target, features_of, given, keys_of, tell_study
from sabun.telling.terminal.options import Bounds, Columns, Json, SchemaFile
from sabun.telling.terminal.output import new_file

__all__ = ["study_app"]

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
