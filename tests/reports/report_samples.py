"""Releases to make pages of."""

from __future__ import annotations

from typing import Any

from sabun import Guarantee
from sabun.ledger import Receipt
from sabun.release import Provenance, Release

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&--><!--]]>${x}$\\frac{\u202e"


def release_of(value: dict[str, Any] | None = None, **changes: Any) -> Release:
    """A release with whatever a test wants changed."""
    promise = {"epsilon": 0.5, "unit": "patient", "mechanism": "discrete Laplace"} | changes.pop("guarantee", {})
    origin = {"kind": "private count", "mechanism": promise["mechanism"]} | changes.pop("provenance", {})
    assert not changes
    return Release(
        value={"count": 42} if value is None else value, guarantee=Guarantee(**promise), provenance=Provenance(**origin)
    )


def evil_release(kind: str = EVIL) -> Release:
    """A release that tries to be markup wherever a text may stand."""
    receipt = Receipt(
        ledger_name=EVIL,
        entry=1,
        entry_hash="0" * 64,
        epsilon=1,  # type: ignore[arg-type]
        delta=0,  # type: ignore[arg-type]
        relation="replace-one",
        unit=EVIL,
        note=EVIL,
        time="2026-01-31T12:00:00Z",
    )
    return release_of(
        {EVIL: 1.5, "text": EVIL, "list": [1.0, 2.0], "deep": {EVIL: [EVIL, EVIL], "x": {EVIL: [1.0, 3.0]}}},
        guarantee={"epsilon": 1, "unit": EVIL, "mechanism": EVIL, "assumptions": (EVIL,)},
        provenance={
            "kind": kind,
            "parameters": {EVIL: EVIL},
            "software": {EVIL: EVIL},
            "schema_hash": EVIL,
            "notes": (EVIL,),
            "receipt": receipt,
        },
    )
