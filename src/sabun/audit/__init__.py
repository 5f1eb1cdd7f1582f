"""Evidence on the installed package: every promise of every room, tried on this machine with these library versions.

    catalogue   what there is to check: the rooms' own checks, and what is laid upon all of them
    named       classes, mechanisms and other parts by room, and what else a name asks for
    running     the checks, one after the other or in several processes ─► Audit (a table of findings)
    questions   laws for every public class: charge first, replayed neighbours, floats
    samplers    the law of each sampler, and whether a wrong one would be noticed
    black_box   `mechanism`: the same for a mechanism that is not ours
    museum      known faults planted in copies of the package: which check notices?
    proofs      the digests in the proofs against the modules that are installed
    resting     on which of them a promise rests, and what it assumes
    in_short    a promise on a few lines

What a room itself shows is in its `evidence.py` (`CHECKS`); networks are audited by what the learning room puts there.

Example:
    >>> from sabun.audit import audit
    >>> found = audit("uniform_below")
    >>> found.passed
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.asking.evidence import Finding
    from sabun.audit.black_box import Verdict, mechanism
    from sabun.audit.running import Audit, audit

__all__ = ["Audit", "Finding", "Verdict", "audit", "mechanism"]

_HOMES = {
    "Audit": "running",
    "Finding": "sabun.asking.evidence",
    "Verdict": "black_box",
    "audit": "running",
    "mechanism": "black_box",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
