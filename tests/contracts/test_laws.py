"""The laws of the house on every mechanism of every room, on ledger, release and composition.

Here each law is tried on the first and the last setting of a mechanism; `sabun audit` tries them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sabun.asking.evidence import Bench, Check, Inapplicable, installed
from sabun.audit import catalogue as parts
from sabun.audit import samplers
from sabun.audit.catalogue import catalogue

ELSEWHERE = {"proofs", "commands"}
"""Digests are tested with the proofs, commands in test_charging_verbs.py."""

HALL = tuple(check for lists in parts.HALL.values() for checks in lists if checks is not samplers.CHECKS for check in checks)
"""Samplers have tests of their own."""


def _chosen(check: Check) -> list[tuple[int, Mapping[str, Any]]]:
    cases = list(enumerate(check.cases))
    return cases if any(check is one for one in HALL) else cases[:1] + cases[1:][-1:]


def _is_law(check: Check) -> bool:
    laid = any("specimen" in case for case in check.cases)
    return laid or any(check is one for one in HALL)


CHOOSING = {"Quantiles", "SubspaceChoice"}
"""Classes that draw a choice: there are no two numbers of which one could be the other's."""

CASES = [
    pytest.param(
        one.check,
        case,
        id=f"{one.room}: {one.check.name}: {one.check.claim} {number}",
        marks=pytest.mark.skipif(
            not installed(one.check.needs), reason=f"needs the extra: pip install 'sabun[{one.check.needs}]'"
        ),
    )
    for one in catalogue()
    if _is_law(one.check) and not one.check.thorough and not ELSEWHERE & set(one.check.mechanisms)
    for number, case in _chosen(one.check)
]


@pytest.mark.parametrize(("check", "case"), CASES)
def test_a_law_holds(check: Check, case: Mapping[str, Any]) -> None:
    try:
        check.try_case(Bench(), case)
    except Inapplicable:
        assert CHOOSING & set(check.mechanisms), "a law that does not apply shows nothing"
