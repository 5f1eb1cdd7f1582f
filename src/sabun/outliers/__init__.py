"""How many outliers a sensitive table has, without exposing who they are.

A record is an outlier when fewer than k others lie within a public radius. `OutlierCount` releases the number of outliers,
`RegionCount` the numbers in public regions, `SubspaceChoice` the public set of columns that has most of them.
`inspect_outliers`, the bounds on sensitivities and what the paper computes from a table (`enumerate_balls`: Algorithm 1,
`local_candidates`: Definition 8 and Theorem 4, `local_sensitivity`: Definition 5) are for the owner's eyes: NOT PRIVATE.

Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.outliers.count import OutlierCount
    from sabun.outliers.diagnostics import OwnerView, inspect_outliers, suggest_radius
    from sabun.outliers.enclosing import Ball, enumerate_balls
    from sabun.outliers.kissing import global_bound
    from sabun.outliers.paper import Candidates, local_candidates, local_sensitivity
    from sabun.outliers.plan import CountPlan
    from sabun.outliers.regions import RegionCount
    from sabun.outliers.sensitivity import local_bound, outlier_degrees, smooth_bound
    from sabun.outliers.subspace import SubspaceChoice

__all__ = [
    "Ball",
    "Candidates",
    "CountPlan",
    "OutlierCount",
    "OwnerView",
    "RegionCount",
    "SubspaceChoice",
    "enumerate_balls",
    "global_bound",
    "inspect_outliers",
    "local_bound",
    "local_candidates",
    "local_sensitivity",
    "outlier_degrees",
    "smooth_bound",
    "suggest_radius",
]

_HOMES = {
    "Ball": "enclosing",
    "Candidates": "paper",
    "CountPlan": "plan",
    "OutlierCount": "count",
    "OwnerView": "diagnostics",
    "RegionCount": "regions",
    "SubspaceChoice": "subspace",
    "enumerate_balls": "enclosing",
    "global_bound": "kissing",
    "inspect_outliers": "diagnostics",
    "local_bound": "sensitivity",
    "local_candidates": "paper",
    "local_sensitivity": "paper",
    "outlier_degrees": "sensitivity",
    "smooth_bound": "sensitivity",
    "suggest_radius": "diagnostics",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
