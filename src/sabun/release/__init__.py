"""The only door out: a value leaves with its guarantee, its provenance, its receipt.

Draft ─► publish(...) ─► Release ─► save / sign ─► file ─► load / verify
"""

from __future__ import annotations

from sabun.release.document import MAX_BYTES, Release
from sabun.release.draft import Draft, derived
from sabun.release.outsiders import Statement, state
from sabun.release.provenance import Provenance
from sabun.release.publish import ResultNotKept, publish, recovered, refuse_seeded
from sabun.release.signature import Signature, Signer
from sabun.release.signing_keys import fingerprint, generate_key, load_key, save_key

__all__ = [
    "MAX_BYTES",
    "Draft",
    "Provenance",
    "Release",
    "ResultNotKept",
    "Signature",
    "Signer",
    "Statement",
    "derived",
    "fingerprint",
    "generate_key",
    "load_key",
    "publish",
    "recovered",
    "refuse_seeded",
    "save_key",
    "state",
]
