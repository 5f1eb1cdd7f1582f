"""Weights on public data that answer questions about private data.

public table ─► features ─► plan ┐
private table ─► tally (whole-number sums) ─► noise ─► weights ─► answers

Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.density.answers import Answer
    from sabun.density.diagnostics import CoverageWarning, Diagnostics
    from sabun.density.plan import DensityPlan
    from sabun.density.ratio import DensityRatio
    from sabun.density.ulsif import ULSIF

__all__ = ["ULSIF", "Answer", "CoverageWarning", "DensityPlan", "DensityRatio", "Diagnostics"]

_HOMES = {
    "Answer": "answers",
    "CoverageWarning": "diagnostics",
    "DensityPlan": "plan",
    "DensityRatio": "ratio",
    "Diagnostics": "diagnostics",
    "ULSIF": "ulsif",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
