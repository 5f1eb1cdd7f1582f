"""The site builds without a warning, without the network, and holds every public name and command."""

from __future__ import annotations

import html
import importlib
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
import typer

from sabun.asking import rooms
from sabun.cli import build

ROOT = Path(__file__).resolve().parents[2]
ROOMS = tuple(room.name for room in rooms())
HALL = ("privacy", "privacy.noise", "ledger", "records", "release", "datasets", "errors")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run = mkdocs(ROOT, folder)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def mkdocs(project: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=project,
        capture_output=True,
        text=True,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
    )


def test_a_lost_link_would_stop_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n")
    (tmp_path / "docs" / "index.md").write_text("[lost](lost.md)\n")
    assert mkdocs(tmp_path, tmp_path / "site").returncode != 0


def pages(site: Path) -> list[Path]:
    found = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    assert len(found) > 30
    return found


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def anchors(page: Path) -> set[str]:
    return {html.unescape(found) for found in re.findall(r"""\b(?:id|name)=["']?([^"'\s>]+)""", text(page))}


@cache
def place_of(folder: Path, target: str) -> Path | None:
    """The page that a link leads to, looked for once: most links of a page stand on every page."""
    goal = (folder / target).resolve()
    goal = goal / "index.html" if goal.is_dir() else goal
    return goal if goal.is_file() else None


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    lost = []
    for page in pages(site):
        for link in re.findall(r"""<a\b[^>]*?\bhref=["']?([^"'\s>]*)""", text(page)):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = unquote(html.unescape(link)).partition("#")
            goal = place_of(page.parent, target) if target else page
            if goal is None or (anchor and not anchor.startswith("__") and anchor not in anchors(goal)):
                lost.append(f"{page.relative_to(site)} -> {link}")
    assert lost == []


def test_every_picture_is_there(site: Path) -> None:
    lost = []
    for page in pages(site):
        for source in re.findall(r"""<img\b[^>]*?\bsrc=["']?([^"'\s>]+)""", text(page)):
            if not source.startswith("data:") and not (page.parent / unquote(source)).resolve().is_file():
                lost.append(f"{page.relative_to(site)} -> {source}")
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loading = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^"'\s>]+""")
    outside = [found for page in pages(site) for found in loading.findall(text(page))]
    outside += [
        found
        for sheet in site.rglob("*.css")
        for found in re.findall(r"""(?:@import|url\()\s*["']?(?:https?:)?//[^"')]+""", text(sheet))
    ]
    assert outside == []


@pytest.mark.parametrize("room", [*ROOMS, *HALL])
def test_every_public_name_is_in_the_reference(site: Path, room: str) -> None:
    names = importlib.import_module(f"sabun.{room}").__all__
    known = anchors(site / "reference" / f"sabun.{room}.html")
    assert [name for name in names if not {f"sabun.{room}.{name}", f"sabun.{room}.{name}.{name}"} & known] == []


def test_every_command_is_in_the_reference(site: Path) -> None:
    headings = re.findall(r"<h[23] id=[^>]*>(sabun[^<]*)<", text(site / "reference" / "cli.html"))
    assert sorted(headings) == sorted(_commands(typer.main.get_command(build()), "sabun"))


def _commands(command: object, name: str) -> list[str]:
    inner = getattr(command, "commands", {})
    return [name, *(line for part, one in inner.items() for line in _commands(one, f"{name} {part}"))]


def test_every_proof_is_a_page_with_the_lines_it_leans_on(site: Path) -> None:
    proofs = sorted((ROOT / "src" / "sabun").rglob("*.proof.md"))
    assert proofs
    for proof in proofs:
        page = site / "proofs" / proof.relative_to(ROOT / "src" / "sabun").as_posix().replace(".proof.md", ".html")
        tags = re.findall(r"# proof: ([a-z0-9-]+)", text(proof.with_name(proof.name.replace(".proof.md", ".py"))))
        assert "<h2" in text(page)
        assert [tag for tag in tags if f"<code>{tag}</code>" not in text(page)] == []


def test_the_overviews_lead_to_every_proof_and_every_package(site: Path) -> None:
    for overview, folder in (("proofs/index.html", "proofs"), ("reference/api.html", "reference")):
        article = text(site / overview).partition("<article")[2].partition("</article>")[0]
        linked = {(site / overview).parent / unquote(link) for link in re.findall(r"""href=["']?([^"'#\s>]+\.html)""", article)}
        wanted = {page for page in (site / folder).rglob("*.html") if page.name not in {"index.html", "api.html", "cli.html"}}
        assert wanted <= {page.resolve() for page in linked}


def test_the_evidence_leads_to_every_proof(site: Path) -> None:
    linked = set(re.findall(r"""href=["']?(proofs/[^"'#\s>]+\.html)""", text(site / "evidence.html")))
    wanted = {page.relative_to(site).as_posix() for page in (site / "proofs").rglob("*.html") if page.name != "index.html"}
    assert wanted <= linked


def test_every_page_in_the_folder_is_on_the_site(site: Path) -> None:
    docs = ROOT / "docs"
    missing = [page for page in docs.rglob("*.md") if not (site / page.relative_to(docs).with_suffix(".html")).is_file()]
    assert missing == []
