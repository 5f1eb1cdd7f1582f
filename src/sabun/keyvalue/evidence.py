"""What the key-value room shows of itself, for whoever checks all rooms: its devices charge no ledger."""

from __future__ import annotations

from sabun.asking.evidence import Command, Specimen
from sabun.keyvalue.client import PROTOCOLS
from sabun.keyvalue.whole_fit import CHECKS

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "SPECIMENS"]

SPECIMENS: tuple[Specimen, ...] = ()
COMMANDS: tuple[Command, ...] = ()
PROMISING = (*PROTOCOLS, "randomized response", "harmony")
"""The mechanisms that promise something."""
