from __future__ import annotations

import pytest

from sabun.regression.reproduction import reproduce
from sabun.reproduction import unmade


def test_the_reproduction_runs_and_shows_what_it_claims() -> None:
    said = []
    found = reproduce(quick=True, progress=lambda share, words: said.append((share, words)))
    assert unmade(found) == []
    tables = {table.name: table for table in found.tables}
    assert tables["eq-8"].rows[2][2] == pytest.approx(0.0226, abs=1e-4)
    narrow = next(row for row in tables["methods"].rows if row[:3] == ("narrow", 1000, "1"))
    assert narrow[7] < 0.05 * narrow[5]
    assert all(row[4] > row[5] > row[6] for row in tables["theorem-3"].rows)
    assert len(found.figures) == 2
    claims = {claim.where: claim for claim in found.claims}
    assert len(found.claims) == 8
    assert claims["3.1.1, (8)"].verdict == "does not hold"
    assert f"{tables['eq-8'].rows[2][2]:.3g}" in claims["3.1.1, (8)"].found
    assert (claims["3.2, Theorem 3"].verdict, claims["3.1.2, (9) and (10)"].verdict) == ("holds", "holds")
    assert claims["1 and 4"].verdict == "holds in part"
    assert "times smaller" in found.default
    assert said[-1] == (1.0, "done")


def test_every_item_of_the_paper_is_said_to_be_somewhere() -> None:
    from sabun.regression.reproduction import ITEMS

    names = " ".join(item.item for item in ITEMS)
    for thing in ("Definition 1", "Assumption 2", "Theorem 3", "Figure 1", "(8)", "(10)", "(12)", "(13)", "Wang 15"):
        assert thing in names
    for section in ("1", "2.1", "2.2", "2.3", "3.1", "3.1.1", "3.1.2", "3.2", "4"):
        assert f"Section {section}" in names
