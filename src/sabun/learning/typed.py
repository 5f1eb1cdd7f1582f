"""Reading what `sabun learning` is given: tables, labels, settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, final

import typer

from sabun import checks
from sabun.asking import settings_of
from sabun.errors import ParameterError
from sabun.learning.settings import KINDS
from sabun.records import CategoryColumn, Chunks, Schema, chunks, open_source, open_unbounded
from sabun.records.files import FilePart, objects_of
from sabun.telling.terminal.asked import AskedPersons
from sabun.telling.terminal.columns import listed
from sabun.telling.terminal.output import new_file
from sabun.telling.terminal.progress import busy
from sabun.telling.terminal.written import typed_table

if TYPE_CHECKING:
    from sabun.learning import PrivateClassifier

__all__ = [
    "Audited",
    "Others",
    "ToPredict",
    "chosen",
    "classes_for",
    "counted",
    "groups_of",
    "inputs_of",
    "layers",
    "must_be_declared",
    "must_be_joint",
    "must_be_model",
    "must_be_new_table",
    "must_hold",
    "number_of_classes",
    "quoted",
    "read_asked",
    "read_beside",
    "read_once",
]

ToPredict: TypeAlias = Annotated[
    FilePart, typer.Argument(parser=typed_table, metavar="TABLE", help="The table to predict for, with the same columns.")
]
Audited: TypeAlias = Annotated[
    FilePart | None,
    typer.Argument(
        parser=typed_table,
        metavar="[TABLE]",
        help="The private table; not needed for canaries of dp-adam, dp-sgd and laplace-sgd, which can then be published.",
    ),
]
Others: TypeAlias = Annotated[
    FilePart | None,
    typer.Option(parser=typed_table, metavar="TABLE", help="With membership: a like table that was not trained on."),
]

_SHARED = ("epochs", "learning_rate")
_YES_OR_NO, _SAID = ("standardize",), {"true": True, "false": False}
_WHOLE = ("epochs", "batch_size", "n_synthetic", "bins", "group_size", "processes", "shards")
_DECIMAL = ("sampling_rate", "clip_norm", "learning_rate", "momentum", "threshold", "weight_bound", "weight_decay")
_RANGES = ("weight_range", "bias_range", "update_range", "bias_update_range")
_OLDER = {"regularisation": "regularization"}


def inputs_of(whole: Schema, columns: str | None, target: str | None) -> Schema:
    """The columns that a network reads: those listed, or all but the target.

    Raises:
        ParameterError: A column is not declared, or the target is listed among them.
    """
    chosen = listed(columns, whole)
    checks.require(target not in (chosen or ()), "no input", "Leave it out of --columns.", target=target)
    return whole.select(chosen or [name for name in whole.names if name != target])


def must_be_declared(target: str, whole: Schema) -> None:
    """Refuses the target of a plan that its schema does not have.

    Raises:
        ParameterError: It has none of that name.
    """
    advice = checks.meant(target, whole.names) or "Leave --target out: what is not declared is no input anyway."
    checks.require(target in whole.names, "declared", advice, target=target)


def must_hold(table: FilePart, target: str) -> None:
    """Refuses a target that is no column of the table.

    Raises:
        ParameterError: There is no such column.
    """
    if target not in table.names():
        raise ParameterError(f"target must be a column of {table.name}; got {target!r}.")


def classes_for(whole: Schema | None, target: str | None, classes: str | None) -> tuple[Any, ...] | None:
    """The public list of labels: the given one, or the categories of a target that was declared.

    Raises:
        ParameterError: The target, as declared, cannot hold the classes.
    """
    from sabun.learning.features import classes_of_target

    labels = None if classes is None else tuple(part.strip() for part in classes.split(","))
    known = whole is not None and target is not None and target in whole.names
    return classes_of_target(whole[target], labels) if known else labels  # type: ignore[index]


@final
class Answers(list[Any]):
    """The cells of the column to be predicted, with its name, as a frame's column has one."""

    def __init__(self, cells: Iterable[Any], *, name: str) -> None:
        super().__init__(cells)
        self.name = name


def read_once(table: FilePart, names: Sequence[str], target: str) -> tuple[Chunks, list[Any]]:
    """The inputs as they stand in a file, with the labels beside them; for the owner of the data.

    Both come out of one reading: a large table takes its time, and a file that changes in between must not mix two states.

    Raises:
        ParameterError: There is no such target.
        DataError: The file cannot be read, or lacks an input.
    """
    must_hold(table, target)
    rows, beside = read_beside(table, names, [target])
    return rows, Answers((label for (label,) in beside), name=target)


def read_asked(table: FilePart, persons: AskedPersons, classifier: PrivateClassifier, target: str) -> tuple[Any, Any, int]:
    """What `fit` is given of a file as `--id` and its like say, read once, with how many records that is; for the owner.

    Raises:
        ParameterError: There is no such target; for persons also: nobody lists the labels, or a rule cannot be read.
        DataError: The file cannot be read, or lacks an input.
    """
    from sabun.learning.features import persons_schema

    assert classifier.schema is not None
    with busy("Reading the table"):
        if persons.id is None:
            rows, answers = read_once(table, classifier.schema.names, target)
            return rows, answers, len(answers)
        whole = persons_schema(target, schema=classifier.schema, classes=classifier.classes)
        people, count = open_source(persons.table(table), schema=whole, by_person=True).held()
        return people, target, count


def read_beside(table: FilePart, names: Sequence[str], others: Sequence[str]) -> tuple[Chunks, list[tuple[Any, ...]]]:
    """The inputs as they stand in a file, with the cells of other columns beside them; one reading, as in `read_once`.

    Raises:
        ParameterError: There is no such column.
        DataError: The file cannot be read, or lacks an input.
    """
    there = table.names()
    for name in others:
        if name not in there:
            raise ParameterError(f"the table must have a column {name!r}; {table.name} has none.")
    pieces = list(open_unbounded(table, columns=list(dict.fromkeys([*names, *others]))).tables())
    cells = list[tuple[Any, ...]]()
    for piece in pieces:
        beside = [objects_of(piece.column(name)) for name in others]
        cells += zip(*beside, strict=True) if others else [()] * piece.num_rows
    return replace(chunks([piece.select(list(names)) for piece in pieces]), form=table.form), cells


def groups_of(by: str | None, schema: Schema | None) -> tuple[str, tuple[str, ...]]:
    """The column of groups and its public labels: as listed, else as the model's schema declares them.

    Raises:
        ParameterError: Nobody lists the labels.
    """
    if by is None:
        return "", ()
    name, listed, labels = by.partition("=")
    if listed:
        return name.strip(), tuple(label.strip() for label in labels.split(",") if label.strip())
    column = None if schema is None or name not in schema.names else schema.select([name]).columns[0]
    if not isinstance(column, CategoryColumn):
        raise ParameterError(f"by must list the public labels of the groups, such as {name}=F,M; got {by!r:.60}.")
    return name, column.categories


def layers(text: str) -> tuple[int, ...] | str:
    """Hidden layers such as "64,64", "" for none, "auto"."""
    if text == "auto":
        return text
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ParameterError(f"hidden must be whole numbers separated by commas; got {text!r}.") from None


def chosen(method: str, settings: Sequence[str] | None) -> dict[str, Any]:
    """The method with its settings, and what every method can be told, from name=value.

    Raises:
        ParameterError: The method is unknown, or has no such setting, or a number is none.
    """
    usual = settings_of(method, KINDS)
    known = (*_SHARED, *usual.get_params())
    found: dict[str, Any] = {}
    for text in settings or ():
        typed, _, value = text.partition("=")
        name = typed.strip().replace("-", "_")
        name = _OLDER.get(name, name)
        if name not in known:
            raise ParameterError(f"set must be one of {', '.join(known)} for the method {method!r}; got {name!r}.")
        try:
            found[name] = _read(name, value)
        except ValueError:
            rule = "low:high, two numbers" if name in _RANGES else "a number"
            raise ParameterError(f"{name} must be {rule}; got {value!r}.") from None
    shared = {name: found.pop(name) for name in _SHARED if name in found}
    return {"method": replace(usual, **found)} | shared  # type: ignore[type-var]


def _read(name: str, value: str) -> Any:
    if name in _RANGES:
        low, high = value.split(":")
        return float(low), float(high)
    if name in _YES_OR_NO:
        return _SAID.get(value.strip().lower(), value.strip())
    return int(value) if name in _WHOLE else float(value) if name in _DECIMAL else value.strip()


def number_of_classes(labels: Sequence[Any] | None, answers: Any) -> int:
    """How many classes the model will have: as many as are listed, else as many as `fit` will read, and publish.

    Raises:
        DataError: Nobody lists them, and what was read cannot be classes.
    """
    from sabun.learning.features import Labels

    return len(Labels.of(answers, labels).classes)


def must_be_joint(classifier: PrivateClassifier, n_records: int, n_classes: int) -> None:
    """Refuses, before anything is charged, a model that could not be handed over as it is.

    Raises:
        ParameterError: The promise would bound each weight only by itself.
    """
    if str(classifier.method) not in ("learning-first", "anonymized-learning"):
        return
    plan = classifier.plan(n_records=max(1, n_records), n_classes=n_classes)
    if plan.scope != "joint":
        raise ParameterError(
            "allow-per-parameter must be given to hand over a model whose promise bounds each weight only by itself. "
            f"All weights together are bounded by epsilon {plan.joint_epsilon}: say so to whoever gets the model."
        )


def counted(classifier: PrivateClassifier) -> bool:
    """Whether the number of records is public, as the promise stands."""
    return classifier._checked().ask.relation == "replace-one"


def quoted(label: Any) -> str:
    """A label as a cell of a CSV file."""
    text = str(label)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def target_of(model: Path, target: str | None) -> str:
    """The column that a model predicts: the one that was named, else what its card says.

    Raises:
        ParameterError: Neither says it.
    """
    from sabun.learning.folder import load_card

    known = load_card(model).parameters.get("target") if target is None else target
    if not isinstance(known, str):
        raise ParameterError(
            "target must be named for a model whose card does not say which column it predicts; got none. Pass --target."
        )
    return known


def must_be_model(folder: Path) -> None:
    """Refuses what is no folder, before anything in it is missed."""
    if not folder.is_dir():
        raise ParameterError(f"model must be a folder that `sabun learning train` wrote; there is none called {str(folder)!r}.")


def must_be_new_table(synthetic: Path, method: str) -> None:
    """Refuses a synthetic table that there will not be, or that could not be written later."""
    if method != "anonymizing-first":
        raise ParameterError(f"synthetic must be left out unless the method is 'anonymizing-first'; got {method!r}.")
    if synthetic.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"synthetic must end in .csv or .parquet; got {synthetic.name!r}.")
    for written in (synthetic, synthetic.with_name(f"{synthetic.name}.release.json")):
        new_file(written, name="synthetic")
