"""How many outliers a sensitive table has, without exposing who they are.

A record is an outlier when fewer than k others lie within a public radius. `OutlierCount` releases the number of outliers,
`RegionCount` the numbers in public regions, `SubspaceChoice` the public set of columns that has most of them.
`inspect_outliers` is for the owner's eyes: NOT PRIVATE.

Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.outliers.count import OutlierCount
    from sabun.outliers.diagnostics import OwnerView, inspect_outliers, suggest_radius
    from sabun.outliers.kissing import global_bound
    from sabun.outliers.plan import CountPlan
    from sabun.outliers.regions import RegionCount
    from sabun.outliers.sensitivity import local_bound, outlier_degrees, smooth_bound
    from sabun.outliers.subspace import SubspaceChoice

__all__ = [
    "CountPlan",
    "OutlierCount",
    "OwnerView",
    "RegionCount",
    "SubspaceChoice",
    "global_bound",
    "inspect_outliers",
    "local_bound",
    "outlier_degrees",
    "smooth_bound",
    "suggest_radius",
]

_HOMES = {
    "CountPlan": "plan",
    "OutlierCount": "count",
    "OwnerView": "diagnostics",
    "RegionCount": "regions",
    "SubspaceChoice": "subspace",
    "global_bound": "kissing",
    "inspect_outliers": "diagnostics",
    "local_bound": "sensitivity",
    "outlier_degrees": "sensitivity",
    "smooth_bound": "sensitivity",
    "suggest_radius": "diagnostics",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
