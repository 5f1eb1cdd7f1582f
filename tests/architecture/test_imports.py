from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from architecture import layers
from architecture.proofs import SOURCE

PLANTED = {
    "privacy/amounts.py": "ledger",
    "privacy/composition.py": "records",
    "ledger/row.py": "release",
    "records/cells.py": "ledger",
    "records/rows.py": "privacy",
    "release/tree.py": "records",
    "telling/words.py": "outliers",
    "engine/statistic.py": "reports",
    "datasets/wdbc.py": "density",
    "outliers/plan.py": "cli",
    "regression/mirror.py": "learning",
    "toy/__init__.py": "density",
    "keyvalue/client/device.py": "errors",
}
"""Files of a copy with the part they are made to import against the order; `toy` is a sixth room."""


def test_no_import_goes_upward_or_sideways() -> None:
    assert layers.violations(SOURCE) == []


def test_every_part_of_the_house_stands_on_one_floor() -> None:
    floors = [name for floor in layers.layers(SOURCE) for name in floor]
    assert sorted(set(floors)) == sorted(floors)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is found in a copy of the package with every violation planted at once."""
    place = tmp_path_factory.mktemp("copy")
    shutil.copytree(SOURCE, place / "sabun", ignore=shutil.ignore_patterns("__pycache__", "data", "*.md"))
    (place / "sabun" / "toy").mkdir()
    (place / "sabun" / "toy" / "room.py").touch()
    (place / "sabun" / "lost.py").touch()
    for file, imported in PLANTED.items():
        with (place / "sabun" / file).open("a", encoding="utf-8") as opened:
            opened.write(f"\nimport sabun.{imported}.planted\n" if imported != "errors" else "\nimport sabun.errors\n")
        if imported != "errors":
            (place / "sabun" / imported / "planted.py").touch()
    run = subprocess.run(
        [sys.executable, layers.__file__, str(place)], capture_output=True, text=True, check=True, env={"PYTHONPATH": ""}
    )
    return run.stdout


@pytest.mark.parametrize(("file", "imported"), PLANTED.items(), ids=lambda part: part)
def test_a_planted_violation_is_refused(planted: str, file: str, imported: str) -> None:
    importer = "sabun." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    room = importer.split(".")[1]
    direct = f"{importer} -> sabun.{imported}.planted" in planted
    assert direct or f"sabun.{room}.client -> sabun.{imported}" in planted or f"sabun.{room} -> sabun.{imported}\n" in planted


def test_a_part_on_no_floor_is_refused(planted: str) -> None:
    assert "lost stands on no floor" in planted
