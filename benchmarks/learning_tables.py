"""Ten public tables for accuracy: five on which designs were compared before, five that nobody had looked at.

The five fresh ones are iris and ionosphere (real), half-moons, Hastie's ten Gaussians and Friedman's first function above its
median (made by scikit-learn). `covtype-like` is made too: seven classes of the shares of the forest cover data.
Bounds are declared, never measured: rounded outwards from the ranges that scikit-learn's guide prints for wine and cancer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.datasets import load_adult, load_ionosphere
from sabun.errors import DataError
from sabun.records import Column, Schema

KNOWN = ("digits", "wine", "cancer", "covtype-like", "adult")
FRESH = ("iris", "ionosphere", "moons", "hastie", "friedman")
COVER = (0.365, 0.488, 0.062, 0.005, 0.016, 0.029, 0.035)

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """A public table; `data` has the schema's columns, `codes` the places of the labels in `classes`."""

    name: str
    data: Any
    codes: NDArray[np.int64]
    schema: Schema
    classes: tuple[Any, ...]

    def split(self, seed: int) -> Split:
        """Four fifths to train on, one fifth to test on."""
        order = np.random.default_rng(1000 + seed).permutation(len(self.codes))
        cut = len(order) * 4 // 5
        return order[:cut], order[cut:]

    @property
    def labels(self) -> NDArray[Any]:
        return np.array(self.classes)[self.codes]

    def rows(self, which: NDArray[np.intp]) -> Any:
        return self.data.iloc[which] if hasattr(self.data, "iloc") else self.data[which]


def numbers(data: NDArray[Any], bounds: Sequence[tuple[float, float]]) -> Schema:
    columns = [Column.number(f"x{at}", lower=low, upper=high) for at, (low, high) in enumerate(bounds)]
    assert len(columns) == data.shape[1]
    return Schema(columns=tuple(columns))


def outwards(data: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Two digits of the printed range, rounded away from its middle."""
    unit = 10.0 ** (np.floor(np.log10(np.abs(data).max(axis=0))) - 1)
    low, high = np.floor(data.min(axis=0) / unit) * unit, np.ceil(data.max(axis=0) / unit) * unit
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def from_scikit(name: str) -> Table:
    from sklearn import datasets

    loader: dict[str, Callable[[], Any]] = {
        "digits": datasets.load_digits,
        "wine": datasets.load_wine,
        "cancer": datasets.load_breast_cancer,
        "iris": datasets.load_iris,
    }
    found = loader[name]()
    declared = {"digits": [(0.0, 16.0)] * 64, "iris": [(0.0, 10.0)] * 4}
    bounds = declared.get(name) or outwards(found.data)
    classes = tuple(range(int(found.target.max()) + 1))
    return Table(name=name, data=found.data, codes=found.target, schema=numbers(found.data, bounds), classes=classes)


def made(name: str) -> Table:
    from sklearn import datasets

    if name == "covtype-like":
        shape = {"n_features": 54, "n_informative": 12, "n_redundant": 10, "n_classes": 7, "n_clusters_per_class": 2}
        data, codes = datasets.make_classification(20_000, weights=list(COVER), class_sep=0.9, random_state=7, **shape)
        bounds = [(-20.0, 20.0)] * 54
    elif name == "moons":
        data, codes = datasets.make_moons(4000, noise=0.25, random_state=7)
        bounds = [(-2.0, 3.0), (-1.5, 2.0)]
    elif name == "hastie":
        data, signs = datasets.make_hastie_10_2(12_000, random_state=7)
        codes, bounds = (signs > 0).astype(np.int64), [(-5.0, 5.0)] * 10
    else:
        data, value = datasets.make_friedman1(3000, noise=1.0, random_state=7)
        codes, bounds = (value > 14.4).astype(np.int64), [(0.0, 1.0)] * 10
    classes = tuple(range(int(codes.max()) + 1))
    return Table(name=name, data=data, codes=codes, schema=numbers(data, bounds), classes=classes)


def adult() -> Any:
    """All 48,842 rows, or where the whole table is out of reach those of its training part."""
    try:
        return load_adult("all")
    except DataError:
        return load_adult()


def bundled(name: str) -> Table:
    found = load_ionosphere() if name == "ionosphere" else adult()
    classes = tuple(sorted({str(label) for label in found.target}))
    codes = np.array([classes.index(str(label)) for label in found.target])
    return Table(name=name, data=found.data, codes=codes, schema=found.schema, classes=classes)


@cache
def table(name: str) -> Table:
    """The table of that name."""
    if name in ("adult", "ionosphere"):
        return bundled(name)
    return from_scikit(name) if name in ("digits", "wine", "cancer", "iris") else made(name)
