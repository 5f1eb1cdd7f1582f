"""The table of docs/evidence.md is what an audit printed, and that audit was about every check there is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "docs"))
import evidence  # noqa: E402


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert evidence.main(["--check"]) == 0, capsys.readouterr().out


def test_a_check_that_came_or_went_is_named() -> None:
    kept = json.loads(evidence.KEPT.read_text(encoding="utf-8"))
    assert kept["passed"]
    gone = kept | {"findings": [*kept["findings"][1:], kept["findings"][0] | {"claim": "another"}]}
    assert len(evidence.stale(gone)) == 2
    failed = kept | {"passed": False, "findings": [kept["findings"][0] | {"passed": False}]}
    assert "SOMETHING FAILED" in evidence.table(failed)
    assert "**FAILED**" in evidence.table(failed)
