"""What a room shows so that the laws of the house can be tried on it: each public class, each command, each mechanism.

A room's `evidence.py` holds

    SPECIMENS   each public class with a table to try it on
    VARIANTS    the same in every way it can be asked: mechanisms, relations, delta, groups
    COMMANDS    each command that charges
    RUNS        each mechanism that has no class, run once: gives the assumptions of its promise
    PROMISING   the names of its mechanisms
    CHECKS      what shows that each of them keeps its promise: a `Checklist`

Whoever checks all rooms finds them there: `sabun audit` on an installed package, the contract tests in the source tree.

    specimens   classes and commands          needed      what noise is needed, from the definitions alone
    checklist   Check, Checklist, Finding     listening   what the samplers are asked while a whole fit runs
    bench       what a check works with
"""

from __future__ import annotations

from sabun.asking.evidence.bench import Bench, Inapplicable, Refuted, near
from sabun.asking.evidence.checklist import Check, Checklist, Finding, Shown, each
from sabun.asking.evidence.listening import Draw, Heard, zeros
from sabun.asking.evidence.specimens import ROWS, Command, Specimen, commands, installed, specimens

__all__ = [
    "ROWS",
    "Bench",
    "Check",
    "Checklist",
    "Command",
    "Draw",
    "Finding",
    "Heard",
    "Inapplicable",
    "Refuted",
    "Shown",
    "Specimen",
    "commands",
    "each",
    "installed",
    "near",
    "specimens",
    "zeros",
]
