"""Release → one HTML file: the answer, the promise, the evidence, the origin.

    Release ─► facts (story of its kind, guarantee in words, proofs, provenance) ─► page

A page is made from a release alone and never from private data. It has no script, loads nothing, and escapes every text.
"""

from __future__ import annotations

from sabun.reports.comparing import comparison
from sabun.reports.documents import budget, collection, report, save_page, statement
from sabun.reports.facts import Chapter, Facts, facts
from sabun.telling.story import Answer, Chart, Grid, Story

__all__ = [
    "Answer",
    "Chapter",
    "Chart",
    "Facts",
    "Grid",
    "Story",
    "budget",
    "collection",
    "comparison",
    "facts",
    "report",
    "save_page",
    "statement",
]
