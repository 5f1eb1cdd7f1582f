"""The page of an audit: one table for each part of the house."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from sabun.release.provenance import installed
from sabun.reports.page import render
from sabun.reports.proofs import Proof, proof_named
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
            promises=[{**one, "texts": _texts(one["proofs"])} for one in audit.get("summaries", ())],
            failed=[_line(one) for one in audit["findings"] if one["passed"] is False],
            facts=[*audit["machine"].items(), *audit["libraries"].items()],
            version=installed()["sabun"],
        )


def _line(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {**finding, "sign": _SIGNS[finding["passed"]], "look": _LOOKS[finding["passed"]]}


def _texts(files: Iterable[str]) -> list[Proof]:
    """The proofs as they came with this package."""
    return [proof for file in files if (proof := proof_named(f"sabun/{file}")) is not None]
