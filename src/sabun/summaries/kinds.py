"""The six questions: the word of each, with what its answers are called in a release."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["ANSWERS", "PARTS"]

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
