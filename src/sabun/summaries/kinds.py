"""The six questions: the word of each, with what its answers are called in a release."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["ANSWERS", "PARTS", "is_date"]

ANSWERS: Mapping[str, str] = MappingProxyType(
    {
        "count": "counts",
        "sum": "sums",
        "mean": "means",
        "variance": "variances",
        "histogram": "counts",
        "quantiles": "quantiles",
    }
)

PARTS: Mapping[str, str] = MappingProxyType({"histogram": "bins", "quantiles": "shares"})
"""Questions with several answers for each group, with the fact that names them."""


def is_date(what: str, facts: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether an answer is the number of a day, counted from 1970-01-01: a mean or a quantile of dates is."""
    return what in ("mean", "quantiles") and facts.get("column") in value.get("dates", ())
