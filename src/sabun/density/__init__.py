"""Weights on public data that answer questions about private data.

public table ─► features ─► plan ┐
private table ─► statistic (whole-number sums) ─► noise ─► weights ─► answers

Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.density.answers import Answer
    from sabun.density.crowding import CrowdedWarning
    from sabun.density.diagnostics import CoverageWarning, Diagnostics
    from sabun.density.plan import DensityPlan
    from sabun.density.ratio import DensityRatio
    from sabun.density.settings import (
        DensitySettings,
        JiElkanSettings,
        RkhsSettings,
        UlsifASettings,
        UlsifBSettings,
        UlsifCSettings,
        UlsifParametricSettings,
    )
    from sabun.density.ulsif import ULSIF

__all__ = [
    "ULSIF",
    "Answer",
    "CoverageWarning",
    "CrowdedWarning",
    "DensityPlan",
    "DensityRatio",
    "DensitySettings",
    "Diagnostics",
    "JiElkanSettings",
    "RkhsSettings",
    "UlsifASettings",
    "UlsifBSettings",
    "UlsifCSettings",
    "UlsifParametricSettings",
]

_HOMES = {
    "Answer": "answers",
    "CoverageWarning": "diagnostics",
    "CrowdedWarning": "crowding",
    "DensityPlan": "plan",
    "DensityRatio": "ratio",
    "DensitySettings": "settings",
    "Diagnostics": "diagnostics",
    "JiElkanSettings": "settings",
    "RkhsSettings": "settings",
    "ULSIF": "ulsif",
    "UlsifASettings": "settings",
    "UlsifBSettings": "settings",
    "UlsifCSettings": "settings",
    "UlsifParametricSettings": "settings",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
