from __future__ import annotations

import pytest


def test_the_reproduction_runs_and_shows_what_it_claims() -> None:
    from sabun.regression.reproduction import reproduce

    said = []
    found = reproduce(quick=True, progress=lambda share, words: said.append((share, words)))
    tables = {table.name: table for table in found.tables}
    assert tables["eq-8"].rows[2][2] == pytest.approx(0.0226, abs=1e-4)
    narrow = next(row for row in tables["methods"].rows if row[:3] == ("narrow", 1000, "1"))
    assert narrow[7] < 0.05 * narrow[5]
    assert all(row[4] > row[5] > row[6] for row in tables["theorem-3"].rows)
    assert len(found.figures) == 2
    assert said[-1] == (1.0, "done")
