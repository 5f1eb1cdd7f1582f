from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks.measure import Figure, machine  # noqa: E402
from benchmarks.page import PAGE, _short, page  # noqa: E402

FIGURES = [
    Figure(
        room="noise",
        name="a|b",
        ours=2_500_000.0,
        peer=50_000.0,
        peer_name="opendp 0.16",
        unit="samples/s",
        ratio=50.0,
        target=15.0,
    ),
    Figure(room="noise", name="alone", ours=0.00123, note="one vector"),
    Figure(room="noise", name="slow", ours=2.0, peer=1.0, peer_name="peer 1", ratio=0.5, target=2.0),
]


def test_every_figure_is_a_row(tmp_path: Path) -> None:
    record = {"machine": machine(), "quick": True, "figures": [asdict(figure) for figure in FIGURES]}
    (tmp_path / "noise.json").write_text(json.dumps(record))
    text = page([tmp_path / "noise.json"])
    assert r"| a\|b | 2,500,000 samples/s | 50,000 samples/s (opendp 0.16) | **50.0** | 15.0 |" in text
    assert "| alone | 0.00123 s | – | – | – |" in text
    assert "2.00 (missed)" in text
    assert "- alone: one vector" in text
    assert "Smaller sizes" in text


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0.0"), (1234.5, "1,230"), (12.345, "12.3"), (0.5, "0.500"), (1e-9, "1.00e-09")]
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert _short(value) == shown


def test_the_page_in_the_repository_is_the_one_the_files_give() -> None:
    files = sorted((ROOT / "docs" / "results" / "benchmarks").glob("*.json"))
    assert (PAGE.read_text(encoding="utf-8") if PAGE.exists() else None) == (page(files) if files else None)
