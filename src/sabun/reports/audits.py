"""The page of an audit: one table for each part of the house."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from sabun.release.provenance import installed
from sabun.reports.page import render
from sabun.telling.language import speaking

__all__ = ["audit_page"]

_SIGNS = {True: "✓", False: "✗", None: "–"}
_LOOKS = {True: "good", False: "bad", None: "open"}


def audit_page(audit: Mapping[str, Any], *, lang: str | None = None) -> str:
    """An audit as a page that stands alone.

    Args:
        audit: What `sabun audit --json` prints.
        lang: "en" or "ja"; that of the locale when left out. What was found stays in English.
    """
    rooms = [
        (room, [_line(one) for one in rows]) for room, rows in groupby(audit["findings"], key=lambda one: str(one["room"]))
    ]
    with speaking(lang):
        return render(
            "audit.html",
            audit=audit,
            rooms=rooms,
            failed=[_line(one) for one in audit["findings"] if one["passed"] is False],
            facts=[*audit["machine"].items(), *audit["libraries"].items()],
            version=installed()["sabun"],
        )


def _line(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {**finding, "sign": _SIGNS[finding["passed"]], "look": _LOOKS[finding["passed"]]}
