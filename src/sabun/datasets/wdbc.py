"""Breast Cancer Wisconsin (Diagnostic): measured cell nuclei, for the experiments with outliers."""

from __future__ import annotations

from sabun.datasets.dataset import CC_BY, Dataset
from sabun.records import CategoryColumn, Column, Schema

__all__ = ["load_wdbc"]

_SOURCE = (
    "Wolberg et al. (1993), Breast Cancer Wisconsin (Diagnostic), UCI Machine Learning Repository, "
    "https://doi.org/10.24432/C5DW2B, as shipped with scikit-learn"
)

# Smallest and largest value as printed in the description that scikit-learn publishes with the data; three decimals there, so a
# few cells lie outside by less than half of the last one.
_BOUNDS = {
    "radius": ((6.981, 28.11), (0.112, 2.873), (7.93, 36.04)),
    "texture": ((9.71, 39.28), (0.36, 4.885), (12.02, 49.54)),
    "perimeter": ((43.79, 188.5), (0.757, 21.98), (50.41, 251.2)),
    "area": ((143.5, 2501.0), (6.802, 542.2), (185.2, 4254.0)),
    "smoothness": ((0.053, 0.163), (0.002, 0.031), (0.071, 0.223)),
    "compactness": ((0.019, 0.345), (0.002, 0.135), (0.027, 1.058)),
    "concavity": ((0.0, 0.427), (0.0, 0.396), (0.0, 1.252)),
    "concave points": ((0.0, 0.201), (0.0, 0.053), (0.0, 0.291)),
    "symmetry": ((0.106, 0.304), (0.008, 0.079), (0.156, 0.664)),
    "fractal dimension": ((0.05, 0.097), (0.001, 0.03), (0.055, 0.208)),
}


def load_wdbc() -> Dataset:
    """Loads 569 tumours with 30 numbers each, labelled ``malignant`` (212) or ``benign`` (357); comes with scikit-learn.

    The bounds are the smallest and largest values printed in the data set's public description, so that `Schema.scaled` is
    min-max scaling without a look at the rows. They are public here because that page is; for a table of your own, do not
    take bounds from its rows: the smallest and the largest belong to two people.

    Example:
        >>> load_wdbc().data.shape
        (569, 30)
    """
    import pandas as pd
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    schema = Schema(columns=tuple(Column.number(name, bounds=pair) for name, pair in _named_bounds().items()))
    return Dataset(
        name="wdbc",
        data=pd.DataFrame(found.data, columns=[str(name) for name in found.feature_names])[list(schema.names)],
        target=pd.Series([str(found.target_names[code]) for code in found.target], name="diagnosis"),
        schema=schema,
        label=CategoryColumn(name="diagnosis", categories=("benign", "malignant")),
        licence=CC_BY,
        source=_SOURCE,
    )


def _named_bounds() -> dict[str, tuple[float, float]]:
    """Bounds by scikit-learn's names, in its order: all means, all standard errors, all worst values."""
    shapes = ("mean {}", "{} error", "worst {}")
    return {shape.format(name): _BOUNDS[name][place] for place, shape in enumerate(shapes) for name in _BOUNDS}
