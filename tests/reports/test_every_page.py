"""What every page keeps, whichever it is: whose file it shows, and the promise about all of it together."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.html_checks import Page
from reports.report_samples import release_of
from sabun import Guarantee, Ledger, Release, reports
from sabun.errors import ReleaseError
from sabun.privacy.amounts import plain
from sabun.release import generate_key
from sabun.release.outsiders import Statement, state
from sabun.reports import comparison, facts, report, statement
from sabun.telling.generic import vacuous
from sabun.telling.words import guess

SHOWING: dict[str, Callable[[Any, Any], object]] = {
    "report": lambda release, keys: report(release, trusted_key=keys, lang="en"),
    "facts": lambda release, keys: facts(release, trusted_key=keys, lang="en"),
    "comparison": lambda release, keys: comparison({"one": release, "other": release}, trusted_key=keys, lang="en"),
    "statement": lambda stated, keys: statement(stated, trusted=keys, lang="en"),
}


def _takes_keys(name: str) -> bool:
    thing = getattr(reports, name)
    return inspect.isfunction(thing) and any(word.startswith("trusted") for word in inspect.signature(thing).parameters)


def test_every_page_that_takes_keys_is_among_them() -> None:
    assert {name for name in reports.__all__ if _takes_keys(name)} == set(SHOWING)


def _unsigned(page: str, tmp_path: Path) -> Release | Statement:
    if page != "statement":
        return release_of()
    ledger = Ledger.create(tmp_path / "book", name="book", unit="patient", epsilon=1)
    ledger.charge(Guarantee(epsilon="0.1", unit="patient"), purpose="p")
    return state(ledger)


@pytest.mark.parametrize("page", SHOWING)
def test_whoever_names_keys_is_shown_nothing_that_none_of_them_signed(page: str, tmp_path: Path) -> None:
    key, unsigned = generate_key(), _unsigned(page, tmp_path)
    signed, trusted = unsigned.sign(key), key.public_key()
    assert SHOWING[page](signed, trusted)
    assert SHOWING[page](unsigned, None), "who names none sees that nobody signed"
    other = "words" if isinstance(unsigned, Statement) else "value"
    forged = dataclasses.replace(signed, **{other: ("more",) if other == "words" else {"count": 43}})  # type: ignore[arg-type]
    for shown, keys in ((unsigned, trusted), (unsigned, []), (signed, generate_key().public_key()), (signed, [])):
        with pytest.raises(ReleaseError, match="must be signed"):
            SHOWING[page](shown, keys)
    for keys in (None, trusted):
        with pytest.raises(ReleaseError, match="changed or forged"):
            SHOWING[page](forged, keys)


ONE, TOGETHER = "0.137", 4
ALONE = "Each released number by itself has epsilon 0.137"


@pytest.mark.parametrize("joint", [TOGETHER, math.inf])
@pytest.mark.parametrize("page", [name for name in SHOWING if name not in ("statement", "facts")])
def test_the_amounts_that_are_told_are_those_of_all_numbers_together(page: str, joint: float) -> None:
    terms = {"epsilon": ONE, "delta": "1e-7", "scope": "per-parameter", "joint_epsilon": joint, "joint_delta": "1e-5"}
    release = release_of(guarantee=terms)
    text = Page(str(SHOWING[page](release, None))).text
    assert plain(release.guarantee.cost[0]) in text
    assert ("NO GUARANTEE" in text) == math.isinf(joint)
    assert re.search(r"(?<![\d.])0\.137(?!\d)", text.replace(ALONE, "")) is None
    right = guess(release.guarantee.epsilon, release.guarantee.delta)
    assert f"{right:.1f} %" not in text
    assert "strong protection" not in text.lower()
    if math.isfinite(joint):
        assert f"{guess(*release.guarantee.cost):.1f} %" in text
    for words in (str(release), str(release.guarantee)):
        assert f"all of them together: epsilon = {plain(release.guarantee.cost[0])}" in words


def test_an_interval_is_vacuous_from_nine_tenths_of_what_is_possible_on() -> None:
    for width, called in ((0, False), (89, False), (90, True), (99, True), (100, True), (200, True)):
        assert vacuous(5, 5 + width, 100) == called
    assert not vacuous(0, 9, 0), "nothing is said where nothing is possible"
