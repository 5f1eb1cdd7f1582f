"""Which file of the project becomes which page of the site, and in which order a reader meets them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sabun.asking import rooms

__all__ = [
    "DOCS",
    "RESULTS",
    "ROOT",
    "SOURCE",
    "api_modules",
    "exported",
    "foreign_pages",
    "module_file",
    "navigation",
    "title_of",
]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sabun"
DOCS = ROOT / "docs"
RESULTS = "results/papers.md"

ROOMS = {room.name: room for room in rooms()}
_AT_THE_ROOT = {
    "README.md": "index.md",
    "README.ja.md": "ja.md",
    "LIMITS.md": "limits.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_HALL = ("", "privacy", "privacy.noise", "ledger", "records", "release", "datasets", "errors")


def foreign_pages() -> dict[str, Path]:
    """Pages whose text lives outside docs/: the address on the site, and the file."""
    pages = {page: ROOT / name for name, page in _AT_THE_ROOT.items() if page != "index.md" and (ROOT / name).is_file()}
    for folder, prefix in ((SOURCE, ""), (ROOT / "examples", "examples/")):
        for proof in sorted(folder.rglob("*.proof.md")):
            pages[f"proofs/{prefix}{proof.relative_to(folder).as_posix().removesuffix('.proof.md')}.md"] = proof
    for note in sorted(path for path in SOURCE.rglob("*.md") if not path.name.endswith((".proof.md", ".LICENCE.md"))):
        pages[f"notes/{note.parent.relative_to(SOURCE).as_posix()}-{note.stem.lower()}.md"] = note
    for notebook in sorted((ROOT / "notebooks").glob("[0-9]*.py")):
        pages[f"notebooks/{notebook.stem}.md"] = notebook
    return pages


def api_modules() -> list[str]:
    """Dotted names of the packages with public names: the hall first, then the rooms, then the rest."""
    folders = [init.parent.relative_to(SOURCE).parts for init in SOURCE.rglob("__init__.py")]
    found = {".".join(parts) for parts in folders if exported(".".join(("sabun", *parts)))}
    found = {name for name in found if not name.startswith("cli")} | {"errors"}
    order = [name for name in (*_HALL, *ROOMS) if name in found]
    rest = sorted(name for name in found if name not in order)
    return [f"sabun.{name}".removesuffix(".") for name in order + rest]


def module_file(name: str) -> Path:
    """Where a dotted name is written."""
    place = SOURCE.joinpath(*name.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def exported(name: str) -> list[str]:
    """The public names of a module, read without running it."""
    for node in ast.parse(module_file(name).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(goal, ast.Name) and goal.id == "__all__" for goal in node.targets):
            return list(ast.literal_eval(node.value))
    return []


def title_of(page: Path) -> str:
    """The first heading of a Markdown page or notebook."""
    heading = r"^# # (.+)$" if page.suffix == ".py" else r"^# (.+)$"
    found = re.search(heading, page.read_text(encoding="utf-8"), re.MULTILINE)
    return re.sub(r"[`*]", "", found[1]).strip() if found else page.stem


def navigation() -> list[dict[str, Any]]:
    """The tree in the margin; only pages that exist."""
    foreign = foreign_pages()
    sections: list[tuple[str, list[Any]]] = [
        (
            "Start here",
            [
                *_own("index.md", "your-table.md", "desk.md", "notebooks.md", "budget.md", "ideas.md", "example.md", "faq.md"),
                *({"日本語": page} for page in foreign if page == "ja.md"),
            ],
        ),
        ("Jobs", [*({title: page} for title, page in _jobs()), *_own("why-joint.md")]),
        ("Notebooks", _taken(foreign, *(page for page in foreign if page.startswith("notebooks/")))),
        (
            "Reference",
            [
                *_own("reference/cli.md", "collector.md", "clients.md", "scale.md"),
                *_own("ledger-on-postgresql.md", "ledger-statement.md"),
                {"Python": _api()},
                {"Formats and notes": _notes(foreign)},
            ],
        ),
        (
            "Evidence",
            [
                *_own(
                    "evidence.md",
                    "audit.md",
                    "museum.md",
                    "threat-model.md",
                    "papers.md",
                    "papers.ja.md",
                    "errata.md",
                    "errata.ja.md",
                    "benchmarks.md",
                ),
                *_results(),
                *_taken(foreign, "limits.md", "security.md"),
                {"Proofs": _proofs(foreign)},
            ],
        ),
        (
            "Project",
            [
                *_own("comparison.md", "references.md"),
                *_taken(foreign, "contributing.md", "changelog.md"),
                {"Decisions": _own(*sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "decisions").glob("*.md")))},
            ],
        ),
    ]
    shown = str(sections)
    others = [
        page for page in sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")) if f"'{page}'" not in shown
    ]
    return [{title: entries} for title, entries in [*sections, ("More", _own(*others))] if entries]


def _own(*pages: str) -> list[dict[str, str]]:
    return [{title_of(DOCS / page): page} for page in pages if (DOCS / page).is_file()]


def _taken(foreign: dict[str, Path], *pages: str) -> list[dict[str, str]]:
    return [{title_of(foreign[page]): page} for page in pages if page in foreign]


def _jobs() -> Iterator[tuple[str, str]]:
    for room in ROOMS:
        for ending in (".md", ".ja.md"):
            if (page := DOCS / "jobs" / f"{room}{ending}").is_file():
                yield (ROOMS[room].title if ending == ".md" else title_of(page)), f"jobs/{room}{ending}"


def _api() -> list[dict[str, str]]:
    return [{"Overview": "reference/api.md"}, *({name: f"reference/{name}.md"} for name in api_modules())]


def _notes(foreign: dict[str, Path]) -> list[dict[str, str]]:
    return _taken(foreign, *(page for page in foreign if page.startswith("notes/")))


def _results() -> list[dict[str, str]]:
    results = DOCS / "results"
    written = _own(*sorted(path.relative_to(DOCS).as_posix() for path in results.rglob("*.md")))
    made = [{"Results": RESULTS}] if any(results.rglob("reproduction.json")) else []
    return made + written


def _proofs(foreign: dict[str, Path]) -> list[dict[str, Any]]:
    groups: dict[str, list[dict[str, str]]] = {}
    for page in foreign:
        if page.startswith("proofs/"):
            groups.setdefault(page.split("/")[1], []).append({title_of(foreign[page]): page})
    return [{"Overview": "proofs/index.md"}, *({room: pages} for room, pages in groups.items())]
