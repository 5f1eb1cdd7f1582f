"""What the key-value room shows of itself, for whoever checks all rooms: its devices charge no ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from sabun.asking.evidence import Command, Specimen
from sabun.keyvalue.client import PROTOCOLS, Client, Diary, Harmony, RandomizedResponse
from sabun.keyvalue.study import Study
from sabun.keyvalue.whole_fit import CHECKS

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "RUNS", "SPECIMENS"]

SPECIMENS: tuple[Specimen, ...] = ()
COMMANDS: tuple[Command, ...] = ()
PROMISING = (*PROTOCOLS, "randomized response", "harmony")
"""The mechanisms that promise something."""


def _reported(protocol: str) -> Sequence[str]:
    """One report of one device."""
    study = Study(keys=("a", "b"), epsilon=1, protocol=protocol)
    Client(study.terms, diary=Diary.in_memory(), credential=b"0123456789abcdef").report({"a": 0.3})
    return study.guarantee.assumptions


def _randomized() -> Sequence[str]:
    RandomizedResponse(categories=("a", "b"), epsilon=Fraction(1)).answer("a")
    return Study(keys=("a",), epsilon=1).guarantee.assumptions


def _harmony() -> Sequence[str]:
    Harmony(epsilon=Fraction(1)).answer(0.5)
    return Study(keys=("a",), epsilon=1).guarantee.assumptions


RUNS: dict[str, Callable[[], Sequence[str]]] = {
    **{name: partial(_reported, name) for name in PROTOCOLS},
    "randomized response": _randomized,
    "harmony": _harmony,
}
"""Runs each mechanism once and gives the assumptions of its promise."""
