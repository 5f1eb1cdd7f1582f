from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples.pages import blocks, commands, plain, run_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = [page for page in [ROOT / "README.md", ROOT / "README.ja.md", *sorted((ROOT / "docs").rglob("*.md"))] if page.is_file()]
TRANSLATED = [page for page in PAGES if page.name.endswith(".ja.md")]
RUNNABLE = [
    page for page in PAGES if page not in TRANSLATED and any(block.kind in {"python", "console"} for block in blocks(page))
]


@pytest.mark.parametrize("page", RUNNABLE, ids=[str(page.relative_to(ROOT)) for page in RUNNABLE])
def test_every_block_on_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(page, tmp_path) > 0


@pytest.mark.parametrize("page", TRANSLATED, ids=[str(page.relative_to(ROOT)) for page in TRANSLATED])
def test_what_a_translated_page_shows_to_be_typed_is_what_runs(page: Path) -> None:
    """Its blocks are not run again: each of their lines stands on the English page, whose blocks are."""
    english = page.with_name(page.name.replace(".ja.md", ".md"))
    lines = english.read_text(encoding="utf-8").splitlines()
    shown = [line for block in blocks(page) for line in block.body.splitlines()]
    assert [line for line in shown if line not in lines] == []
    assert f"]({page.name})" in "\n".join(lines[:4]), "the two pages lead to each other"
    assert f"]({english.name})" in "\n".join(page.read_text(encoding="utf-8").splitlines()[:4])


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", link)]
    assert [link for link in links if link and not (page.parent / link).exists()] == []


def test_continued_lines_are_one_command() -> None:
    assert commands("$ sabun a \\\n    --b 1\noutput\n$ sabun c\n") == ["sabun a  --b 1", "sabun c"]


def test_what_a_shell_has_to_do_is_left_to_it() -> None:
    assert plain("sabun learning train census.csv --classes '<=50K,>50K' --epsilon 1")
    for command in ("sabun a > b", "sabun a $HOME", "sabun a *.csv", "sabun a && sabun b", "A=1 sabun a", "ls", "sabun a ~/b"):
        assert not plain(command)


def test_a_failing_block_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nassert 1 == 2\n```\n")
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)
    for command in ("false", "sabun nothing-of-that-name", "sabun nothing-of-that-name > file"):
        page.write_text(f"```console\n$ {command}\n```\n")
        with pytest.raises(AssertionError):
            run_page(page, tmp_path)
