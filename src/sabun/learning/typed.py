"""Reading what `sabun learning` is given: tables, labels, settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from sabun.errors import BoundsError, ParameterError
from sabun.records import Schema
from sabun.records.files import file_column, file_names
from sabun.telling.terminal.columns import typed_bounds

if TYPE_CHECKING:
    from sabun.learning import PrivateClassifier

__all__ = ["Declared", "cells", "chosen", "declared", "inputs_of", "layers", "must_be_joint", "numbers"]

_WHOLE = ("epochs", "batch_size", "n_synthetic", "bins", "group_size")
_DECIMAL = ("sampling_rate", "clip_norm", "learning_rate", "momentum", "threshold", "weight_bound")
_AS_WRITTEN = ("regularisation", "joint_epsilon", "synthesis", "precision")


@final
@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the caller says about a table beforehand."""

    schema: Schema
    classes: tuple[str, ...] | None


def declared(schema: Path | None, bounds: list[str] | None, target: str, classes: str | None) -> Declared:
    """The schema of the inputs with the classes of the target.

    Raises:
        BoundsError: There is neither a schema nor bounds.
        ParameterError: The target, as declared, cannot hold the classes.
    """
    if schema is None and not bounds:
        raise BoundsError(
            "the columns must be declared. Bounds must not come from the data: pass --schema or --bounds name=low:high."
        )
    if schema is not None and bounds:
        raise ParameterError("bounds must be left out when there is a schema; got both --schema and --bounds.")
    whole = Schema.of_bounds(dict(map(typed_bounds, bounds or []))) if schema is None else Schema.load(schema)
    listed = None if classes is None else tuple(part.strip() for part in classes.split(","))
    if target in whole.names:
        from sabun.learning.features import classes_of_target

        listed = classes_of_target(whole[target], listed)
    return Declared(schema=inputs_of(whole, target), classes=listed)


def inputs_of(schema: Schema, target: str | None) -> Schema:
    """The columns that a network reads: all but the target."""
    return schema.select([name for name in schema.names if name != target])


def cells(data: Path, column: str, *, name: str = "target") -> list[Any]:
    """One column of a file as text; only for the owner of the data."""
    if column not in file_names(data):
        raise ParameterError(f"{name} must be a column of {data.name}; got {column!r}.")
    return file_column(data, column)


def layers(text: str) -> tuple[int, ...] | str:
    """Hidden layers such as "64,64", "" for none, "auto"."""
    if text == "auto":
        return text
    return tuple(numbers(text, "hidden"))


def numbers(text: str, name: str) -> list[int]:
    """Whole numbers separated by commas."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ParameterError(f"{name} must be whole numbers separated by commas; got {text!r}.") from None


def chosen(settings: list[str] | None) -> dict[str, Any]:
    """Further settings given as name=value."""
    found: dict[str, Any] = {}
    for text in settings or []:
        name, _, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in (*_WHOLE, *_DECIMAL, *_AS_WRITTEN):
            raise ParameterError(f"set must be one of {', '.join((*_WHOLE, *_DECIMAL, *_AS_WRITTEN))}; got {name!r}.")
        try:
            found[name] = int(value) if name in _WHOLE else float(value) if name in _DECIMAL else value.strip()
        except ValueError:
            raise ParameterError(f"{name} must be a number; got {value!r}.") from None
    return found


def must_be_joint(classifier: PrivateClassifier, n_records: int) -> None:
    """Refuses, before anything is charged, a model that could not be handed over as it is.

    Raises:
        ParameterError: The promise would bound each weight only by itself.
    """
    if classifier.method not in ("learning-first", "anonymized-learning"):
        return
    plan = classifier.plan(n_records=max(1, n_records))
    if plan.scope != "joint":
        raise ParameterError(
            "allow-per-parameter must be given to hand over a model whose promise bounds each weight only by itself. "
            f"All weights together are bounded by epsilon {plan.joint_epsilon}: say so to whoever gets the model."
        )
