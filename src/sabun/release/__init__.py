"""The only door out: a value leaves with its guarantee, its provenance, its receipt.

publish(...) ─► Release ─► save / sign ─► file ─► load / verify
"""

from __future__ import annotations

from sabun.release.document import MAX_BYTES, Release
from sabun.release.keys import fingerprint, generate_key, load_key, save_key
from sabun.release.provenance import Provenance
from sabun.release.publish import ResultNotKept, publish, recovered
from sabun.release.signature import Signature, Signer

__all__ = [
    "MAX_BYTES",
    "Provenance",
    "Release",
    "ResultNotKept",
    "Signature",
    "Signer",
    "fingerprint",
    "generate_key",
    "load_key",
    "publish",
    "recovered",
    "save_key",
]
