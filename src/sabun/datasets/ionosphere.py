"""Ionosphere: radar returns, for the experiments with outliers."""

from __future__ import annotations

import numpy as np

from sabun.datasets.dataset import CC_BY, Dataset, shipped_rows
from sabun.records import CategoryColumn, Column, Schema

__all__ = ["load_ionosphere"]

_SOURCE = "Sigillito et al. (1989), Ionosphere, UCI Machine Learning Repository, https://doi.org/10.24432/C5W01B"


def load_ionosphere() -> Dataset:
    """Loads 351 radar returns with 33 numbers each, labelled ``g`` (225) or ``b`` (126); the file comes with the package.

    Columns are a01, a03, …, a34: the constant a02 is left out. By the documentation a01 is 0 or 1, the others lie in
    [-1, 1].

    Example:
        >>> load_ionosphere().data.shape
        (351, 33)
    """
    import pandas as pd

    header, *rows = shipped_rows("ionosphere.csv.xz")
    names = header[:-1]
    numbers = np.array([row[:-1] for row in rows], dtype=np.float64)
    columns = [Column.number(name, bounds=(0, 1) if name == "a01" else (-1, 1)) for name in names]
    return Dataset(
        name="ionosphere",
        data=pd.DataFrame(numbers, columns=names),
        target=pd.Series([row[-1] for row in rows], name="class"),
        schema=Schema(columns=tuple(columns)),
        label=CategoryColumn(name="class", categories=("b", "g")),
        licence=CC_BY,
        source=_SOURCE,
    )
