"""Each erratum says how it can be checked, and what no block on its page shows is shown here."""

from __future__ import annotations

import csv
import itertools
import re
from fractions import Fraction
from pathlib import Path

import pytest

from sabun.regression.reproduction import bound_at
from sabun.regression.sensitivity import noise_share

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
ENTRIES = {
    found.group(1): found.group(0) for found in re.finditer(r"^### ([A-Z]\d+) · .*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
}


def test_all_entries_are_found() -> None:
    counts = {letter: sum(name.startswith(letter) for name in ENTRIES) for letter in "ODRKL"}
    assert counts == {"O": 9, "D": 10, "R": 10, "K": 9, "L": 11}


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_says_how_it_can_be_checked(name: str) -> None:
    assert re.search(r"\*Test\*:\s`tests/|```python\n|\*By\shand\*\.", ENTRIES[name])


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_says_what_it_is_where_it_is_printed_and_how_sure_we_are(name: str) -> None:
    assert name == "O1" or re.search(r"^\*\*(Privacy|Accuracy|Slip|Note)\.\*\*\s", ENTRIES[name], re.MULTILINE)
    sure = re.search(r"\*Printed\*: \S.*?\. \*Sure\*: (.+?)\.", " ".join(ENTRIES[name].split()))
    assert sure
    assert re.match("counterexample|proof|enumeration|measurement|reading", sure.group(1))


JAPANESE = {"Privacy": "プライバシー", "Accuracy": "精度", "Slip": "誤記", "Note": "注"}


def test_the_japanese_page_has_the_same_entries_and_judges_them_alike() -> None:
    page = (ROOT / "docs" / "errata.ja.md").read_text(encoding="utf-8")
    found = re.findall(r"^### ([A-Z]\d+) · .+\n\n(?:\*\*(.+?)。\*\*)?", page, re.MULTILINE)
    judged = {name: re.search(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) for name, text in ENTRIES.items()}
    assert found == [(name, JAPANESE[kind.group(1)] if kind else "") for name, kind in judged.items()]


def test_theorem_4_of_the_outlier_paper_holds_everywhere_on_small_lines() -> None:
    """LS <= max(OC, IC) + 1: at most OC records leave when one goes, at most IC come in when one comes, and that one itself."""
    places, radius, reached = range(7), 1, 0
    for k, n in itertools.product((1, 2, 3), (3, 4)):
        for points in itertools.combinations_with_replacement(places, n):
            degrees = _degrees(points, radius)
            near = [(place, degree) for place, degree in zip(points, degrees, strict=True)]
            leave = max(sum(abs(x - y) <= radius and degree == k for y, degree in near) for x in points)
            come = max(sum(abs(x - y) <= radius and degree == k - 1 for y, degree in near) for x in places)
            count = sum(degree < k for degree in degrees)
            for i, x in itertools.product(range(n), places):
                other = (*points[:i], x, *points[i + 1 :])
                change = abs(count - sum(degree < k for degree in _degrees(other, radius)))
                assert change <= max(leave, come) + 1
                reached += change == max(leave, come) + 1
    assert reached, "the bound is attained, so a smaller one would have failed here"


def _degrees(points: tuple[int, ...], radius: int) -> list[int]:
    return [sum(abs(a - b) <= radius for j, b in enumerate(points) if j != i) for i, a in enumerate(points)]


def test_a_ridge_that_is_large_already_is_left_as_it_is() -> None:
    needed, left = noise_share(Fraction(1), ridge=Fraction(0), records_per_person=1)
    assert noise_share(Fraction(1), ridge=needed / 2, records_per_person=1) == (needed, left)
    kept, more = noise_share(Fraction(1), ridge=2 * needed, records_per_person=1)
    assert kept == 2 * needed
    assert more > left, "what the ridge does not need is left for less noise"


def test_theorem_3_says_less_than_answering_zero() -> None:
    with (ROOT / "docs" / "results" / "regression" / "regression" / "theorem-3.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    sizes, zero = [int(row["rows each"]) for row in rows], [float(row["risk of beta = 0"]) for row in rows]
    bounds = [bound_at(size).total for size in sizes]
    assert [float(row["right side of (13)"]) for row in rows] == pytest.approx(bounds)
    assert all(bound > risk for bound, risk in zip(bounds, zero, strict=True))
    assert all(float(row["measured risk"]) < 0.001 for row in rows)
    shown = [f"{size:,}" for size in sizes] + [f"{bound:.3f}" for bound in bounds] + [f"{zero[0]:.3f}"]
    assert [number for number in shown if number not in ENTRIES["R9"]] == []
