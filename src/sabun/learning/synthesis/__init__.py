"""Synthetic tables: anonymise first, then do as you please with the result.

`bayes_net` is the sound default; `microaggregation` and `histogram` are the two readings of the paper's own step.
"""

from __future__ import annotations

__all__: list[str] = []
