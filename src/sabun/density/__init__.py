"""Weights on public data that answer questions about private data.

public table ─► features ─► plan ┐
private table ─► tally (whole-number sums) ─► noise ─► weights ─► answers
"""

from sabun.density.answers import Answer
from sabun.density.diagnostics import CoverageWarning, Diagnostics
from sabun.density.plan import DensityPlan
from sabun.density.ratio import DensityRatio
from sabun.density.ulsif import ULSIF

__all__ = ["ULSIF", "Answer", "CoverageWarning", "DensityPlan", "DensityRatio", "Diagnostics"]
