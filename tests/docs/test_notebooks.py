"""Each notebook runs from its first cell to its last, in an empty folder."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from sabun.asking import rooms

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


def test_every_room_with_a_paper_has_a_notebook() -> None:
    assert {room.name for room in rooms() if room.has("reproduction")} <= {path.stem[3:] for path in NOTEBOOKS}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(notebook), run_name="__main__")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_is_a_story_in_cells(notebook: Path) -> None:
    text = notebook.read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# # ")
    assert text.count("\n# %%\n") >= 5


def test_the_page_on_notebooks_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block, names)
    assert "scores" in names
