"""Plain answers about a private table: count, sum, mean, variance, histogram, quantiles, each also by public groups.

A cell is clipped to its public bounds and read off at public marks, so every sum is a whole number and what one person can
change is known exactly. One release answers for all groups.

Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.summaries.count import Count
    from sabun.summaries.histogram import Histogram
    from sabun.summaries.mean import Mean
    from sabun.summaries.plan import SummaryPlan
    from sabun.summaries.quantiles import Quantiles
    from sabun.summaries.total import Sum
    from sabun.summaries.variance import Variance

__all__ = ["Count", "Histogram", "Mean", "Quantiles", "Sum", "SummaryPlan", "Variance"]

_HOMES = {
    "Count": "count",
    "Histogram": "histogram",
    "Mean": "mean",
    "Quantiles": "quantiles",
    "Sum": "total",
    "SummaryPlan": "plan",
    "Variance": "variance",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
