from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks.__main__ import ROOMS, missed  # noqa: E402
from benchmarks.measure import Figure, machine  # noqa: E402
from benchmarks.page import PAGE, _short, page  # noqa: E402

FILES = sorted((ROOT / "docs" / "results" / "benchmarks").glob("*.json"))
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
    Figure(room="noise", name="slow", ours=2.0, peer=1.0, peer_name="peer 1", ratio=0.5, target=2.5),
]


def test_every_figure_is_a_row(tmp_path: Path) -> None:
    record = {"machine": machine(), "quick": True, "figures": [asdict(figure) for figure in FIGURES]}
    (tmp_path / "noise.json").write_text(json.dumps(record))
    text = page([tmp_path / "noise.json"])
    assert r"| a\|b | 2,500,000 samples/s | 50,000 samples/s (opendp 0.16) | **50.0** | 15.0 |" in text
    assert "| alone | 0.00123 s | – | – | – |" in text
    assert "2.50 (missed)" in text
    assert "- alone: one vector" in text
    assert "Smaller sizes" in text


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0.0"), (1234.5, "1,230"), (12.345, "12.3"), (0.5, "0.500"), (1e-9, "1.00e-09")]
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert _short(value) == shown


def test_a_run_on_another_machine_is_told_with_what_it_had(tmp_path: Path) -> None:
    place = machine() | {"machine": "Linux arm64, 8 cores", "processor": "P", "accelerator": "one G"}
    (tmp_path / "other_room.json").write_text(json.dumps({"machine": place, "figures": [asdict(FIGURES[1])]}))
    text = page([tmp_path / "other_room.json"])
    assert "## other room" in text
    assert "Linux arm64, 8 cores, P, one G.\n" in text


def test_the_page_in_the_repository_is_the_one_the_files_give() -> None:
    assert FILES
    assert PAGE.read_text(encoding="utf-8") == page(FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_published_ratio_is_below_half_of_what_is_stated(file: Path) -> None:
    record = json.loads(file.read_text(encoding="utf-8"))
    assert not record["quick"]
    assert missed([Figure(**figure) for figure in record["figures"]]) == []


def test_a_ratio_far_below_what_is_stated_is_found() -> None:
    assert missed(FIGURES) == [FIGURES[2]]


def test_every_module_that_runs_is_a_room() -> None:
    modules = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "benchmarks").glob("*.py")}
    runs = {
        name for name, tree in modules.items() for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"
    }
    assert runs == set(ROOMS)


@pytest.mark.parametrize(("arguments", "code", "told"), [("['--help']", 0, "keyvalue"), ("['cellar']", 2, "got 'cellar'")])
def test_the_command_line_needs_no_room_to_be_importable(arguments: str, code: int, told: str) -> None:
    blocked = "import sys; sys.modules |= dict.fromkeys(('torch', 'opendp', 'sklearn', 'sabun'))"
    script = f"{blocked}; sys.argv[1:] = {arguments}; from benchmarks.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == code
    assert told in done.stdout + done.stderr
