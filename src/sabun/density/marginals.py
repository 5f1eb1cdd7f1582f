"""What the columns of a public table look like with and without released weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabun.density.export import WEIGHT, read_back
from sabun.density.saved import features_from
from sabun.errors import ParameterError, ReleaseError
from sabun.records import Column, FileFormat, NumberColumn, Schema
from sabun.records.forms import PLAIN
from sabun.records.tables import as_table, names_in
from sabun.release import Release
from sabun.telling.charts import overlay, steps
from sabun.telling.language import phrase, said
from sabun.telling.measures import Measure
from sabun.telling.reading import Floats, Unfit, numbers_at
from sabun.telling.story import Chart

__all__ = ["marginals"]

_MOST_COLUMNS = 8
_MOST_LABELS = 12
_BINS = 16
_SERIES = (phrase("weighted"), phrase("unweighted"))


def marginals(release: Release, public: Any) -> tuple[Chart, ...]:
    """One picture for each of the first columns of the public table that a release has weights for.

    Args:
        release: A release of weights.
        public: The public table: a frame, an array, or the name of a CSV or Parquet file.

    Raises:
        ParameterError: The release holds no weights, or they are not for a table of this length.
    """
    try:
        weights = numbers_at(release.value, "weights")
    except Unfit:
        weights = np.empty(0)
    if not len(weights):
        raise ParameterError(
            f"public must be left out for a release without weights; this one is {release.provenance.kind!r:.60}."
        )
    frame, schema = read_back(public, _schema(release))
    table = as_table(frame)
    if len(table) != len(weights):
        raise ParameterError(
            f"public must be the table the weights are for, with {len(weights)} rows; got one with {len(table)} rows."
        )
    pictures: list[Chart] = []
    declared = {column.name: column for column in (() if schema is None else schema.columns)}
    form = PLAIN if schema is None else schema.file
    for place, name in enumerate(names_in(table)):
        if name == WEIGHT or len(pictures) == _MOST_COLUMNS:
            continue
        cells = table[:, place] if isinstance(table, np.ndarray) else table[name].to_list()
        if (picture := _picture(name, cells, weights, declared.get(name), form)) is not None:
            pictures.append(picture)
    return tuple(pictures)


def _schema(release: Release) -> Schema | None:
    """What the weights were made with, where the release says."""
    try:
        return features_from(release).schema
    except ReleaseError:  # of a method that keeps none
        return None


def _picture(name: str, cells: Any, weights: Floats, column: Column | None, form: FileFormat) -> Chart | None:
    """None for a column that most rows have a text of their own in, such as a number of a person."""
    measure = Measure.of(column)
    if isinstance(column, NumberColumn) and measure.dates:
        return _numbers(name, column.encode(list(cells)), weights, measure)
    try:
        numbers = np.asarray(
            column.read(list(cells), form=form) if isinstance(column, NumberColumn) else cells, dtype=np.float64
        )
    except (TypeError, ValueError):
        texts = np.array([str(cell) for cell in cells])
        return _labels(name, texts, weights) if 2 * len(np.unique(texts)) <= len(texts) else None
    good = np.isfinite(numbers) & (np.abs(numbers) < 1e15)
    if len(np.unique(numbers[good])) <= 2:
        return _labels(name, np.array([f"{cell:g}" for cell in numbers]), weights)
    return _numbers(name, numbers[good], weights[good], measure)


def _numbers(name: str, numbers: Floats, weights: Floats, measure: Measure) -> Chart | None:
    edges = np.linspace(numbers.min(), numbers.max(), _BINS + 1)
    heights = [_percent(np.histogram(numbers, bins=edges, weights=given)[0]) for given in (weights, np.ones(len(numbers)))]
    return steps(
        edges,
        list(zip(map(said, _SERIES), heights, strict=True)),
        title=said("Column {name}", name=name),
        x_axis=name,
        y_axis=said("share of rows (%)"),
        measure=measure,
    )


def _labels(name: str, cells: Any, weights: Floats) -> Chart | None:
    labels, codes = np.unique(cells, return_inverse=True)
    plain = np.bincount(codes, minlength=len(labels)).astype(np.float64)
    heavy = np.asarray(np.bincount(codes, weights=weights, minlength=len(labels)), dtype=np.float64)
    order = np.argsort(-plain, kind="stable")[:_MOST_LABELS]
    return overlay(
        [str(labels[place]) for place in order],
        list(zip(map(said, _SERIES), (_percent(heavy)[order], _percent(plain)[order]), strict=True)),
        title=said("Column {name}", name=name),
        axis=said("share of rows (%)"),
        heading=name,
    )


def _percent(parts: Floats) -> Floats:
    return 100 * parts / max(float(parts.sum()), 1e-300)
