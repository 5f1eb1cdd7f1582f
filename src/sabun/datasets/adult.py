"""Adult ("Census Income"): personal records, for the experiments with networks and mixed tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from sabun import checks
from sabun.datasets.adult_full import full_rows
from sabun.datasets.dataset import CC_BY, Dataset, shipped_rows
from sabun.records import CategoryColumn, Column, NumberColumn, Schema

__all__ = ["ADULT_SCHEMA", "load_adult"]

_SOURCE = "Becker and Kohavi (1996), Adult, UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20"
_LABEL = CategoryColumn(name="income", categories=("<=50K", ">50K"))

_WORKCLASS = "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked"
_EDUCATION = (
    "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th Doctorate "
    "5th-6th Preschool"
)
_MARITAL = "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse"
_OCCUPATION = (
    "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners Machine-op-inspct "
    "Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces"
)
_RELATIONSHIP = "Wife Own-child Husband Not-in-family Other-relative Unmarried"
_RACE = "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"
_COUNTRY = (
    "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece South China Cuba "
    "Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador "
    "Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador "
    "Trinadad&Tobago Peru Hong Holand-Netherlands"
)

ADULT_SCHEMA = Schema(
    columns=(
        Column.number("age", lower=17, upper=90),
        Column.category("workclass", _WORKCLASS.split()),
        Column.number("fnlwgt", lower=0, upper=1_500_000),
        Column.category("education", _EDUCATION.split()),
        Column.number("education-num", lower=1, upper=16),
        Column.category("marital-status", _MARITAL.split()),
        Column.category("occupation", _OCCUPATION.split()),
        Column.category("relationship", _RELATIONSHIP.split()),
        Column.category("race", _RACE.split()),
        Column.category("sex", ["Female", "Male"]),
        Column.number("capital-gain", lower=0, upper=99_999, missing=0, log1p=True),
        Column.number("capital-loss", lower=0, upper=5_000, missing=0, log1p=True),
        Column.number("hours-per-week", lower=1, upper=99),
        Column.category("native-country", _COUNTRY.split()),
    )
)
"""Public facts, none read off the rows: categories as the documentation lists them, ranges from its extraction rule (age over
16, hours over 0) and from the codes the census tops out at (90 years, 99 hours, 99,999 dollars), else round numbers."""


def load_adult(part: str = "train") -> Dataset:
    """Loads people of the 1994 US census with 14 attributes and their income class, ``<=50K`` or ``>50K``.

    The training part comes with the package. The other parts are read from ``adult.csv.gz`` in the folder named by the
    environment variable SABUN_DATA, or else downloaded once from OpenML; either way the table must have a known SHA-256.

    Args:
        part: ``train`` (32,561 rows), ``test`` (16,281) or ``all`` (48,842, the training part first).

    Returns:
        The data set. ``?`` in the original is a missing cell; `Dataset.complete` leaves those rows out (45,222 of all remain).

    Raises:
        DataError: The full table is neither in the folder nor within reach, or is not the known one.

    Example:
        >>> load_adult().data.shape
        (32561, 14)
    """
    checks.one_of(("train", "test", "all"), part=part)
    names, *rows = shipped_rows("adult-train.csv.xz")
    if part != "train":
        rest = without(full_rows(names), rows)
        rows = rest if part == "test" else rows + rest
    return Dataset(
        name=f"adult-{part}",
        data=_frame(names, rows),
        target=_series(rows),
        schema=ADULT_SCHEMA,
        label=_LABEL,
        licence=CC_BY,
        source=_SOURCE,
    )


def without(rows: list[list[str]], others: list[list[str]]) -> list[list[str]]:
    """The rows that remain, in order, when each of the others is taken away once."""
    left = Counter(map(tuple, others))
    result = []
    for row in rows:
        if left[tuple(row)]:
            left[tuple(row)] -= 1
        else:
            result.append(row)
    return result


def _frame(names: list[str], rows: list[list[str]]) -> Any:
    import pandas as pd

    columns: dict[str, Any] = {}
    for place, name in enumerate(names[:-1]):
        cells = [row[place] for row in rows]
        if isinstance(ADULT_SCHEMA[name], NumberColumn):
            columns[name] = np.array(cells, dtype=np.int64)
        else:
            columns[name] = [None if cell == "?" else cell for cell in cells]
    return pd.DataFrame(columns)


def _series(rows: list[list[str]]) -> Any:
    import pandas as pd

    return pd.Series([row[-1] for row in rows], name="income")
