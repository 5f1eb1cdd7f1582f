"""Small changes a page needs on its way from the repository to the site."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

__all__ = [
    "from_notebook",
    "outside_fences",
    "tagged_lines",
    "with_lists",
    "with_paragraphs",
    "with_proof_links",
    "with_site_links",
]

_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*([-*+]|\d+[.)]) ")
_LINK = re.compile(r"(?P<mark>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
_STEP = re.compile(r"^(\*{1,2}[^*\s][^*]*\*{1,2}|\([0-9ivx]+\)|`[^`]+`:) ?")
_ENDED = (".", ":", "∎")
_PROOF = re.compile(r"(?<!\[)`(?P<name>[\w/]+\.proof\.md)`(?!\])")
_TAG = re.compile(r"\s*# proof: (?P<tag>[a-z0-9-]+)\s*$")


def outside_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is prose (True) or code between fences (False)."""
    inside = False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
            yield line, False
        else:
            yield line, not inside


def with_lists(text: str) -> str:
    """A blank line before each list: the renderer wants one where other readers of Markdown do not."""
    lines: list[str] = []
    for line, prose in outside_fences(text):
        before = lines[-1] if lines else ""
        in_list = _ITEM.match(before) is not None or before.startswith("  ")
        if prose and _ITEM.match(line) and before.strip() and not in_list:
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def with_paragraphs(text: str) -> str:
    """A paragraph of its own for each step of a proof: a line that opens with *Rounding.*, (2) or `name`:."""
    lines: list[str] = []
    for line, prose in outside_fences(text):
        before = lines[-1] if lines else ""
        if prose and _STEP.match(line) and before.rstrip().endswith(_ENDED):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def with_site_links(text: str, *, page: str, file: Path, pages: Mapping[Path, str], docs: Path) -> str:
    """Turns links between files of the repository into links between pages, pictures in docs/ included.

    A link to a file that is no page (a module, a test) becomes plain text with the file's name.
    """

    def rewritten(match: re.Match[str]) -> str:
        target, _, anchor = match["target"].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        goal = Path(os.path.normpath(file.parent / target))
        inside = goal.relative_to(docs).as_posix() if goal.is_relative_to(docs) and goal.is_file() else None
        home = pages.get(goal, inside)
        if home is not None:
            link = os.path.relpath(home, Path(page).parent).replace(os.sep, "/")
            return f"{match['mark']}[{match['text']}]({link}{'#' + anchor if anchor else ''})"
        return match[0] if match["mark"] else match["text"]

    return _map_prose(text, lambda line: _LINK.sub(rewritten, line))


def with_proof_links(text: str, *, page: str, file: Path, pages: Mapping[Path, str]) -> str:
    """Links a proof that is named in passing, as `ledger.proof.md`: the one beside this file, or the only one of that name."""

    def linked(match: re.Match[str]) -> str:
        named = match["name"].split("/")[-1]
        found = [path for path in pages if path.name == named]
        beside = file.parent / named
        goal = beside if beside in found else found[0] if len(found) == 1 else None
        if goal is None or goal == file:
            return match[0]
        return f"[{match[0]}]({os.path.relpath(pages[goal], Path(page).parent).replace(os.sep, '/')})"

    return _map_prose(text, lambda run: _PROOF.sub(linked, run))


def _map_prose(text: str, change: Callable[[str], str]) -> str:
    """Applies a change to each run of prose as a whole: a link may be broken over two lines."""
    parts = []
    for prose, lines in groupby(outside_fences(text), key=lambda found: found[1]):
        run = "\n".join(line for line, _ in lines)
        parts.append(change(run) if prose else run)
    return "\n".join(parts) + "\n"


def tagged_lines(module: Path, shown: str) -> str:
    """The lines of code that a proof leans on, as a section at its end; empty where there are none."""
    found = []
    for number, line in enumerate(module.read_text(encoding="utf-8").splitlines(), start=1):
        match = _TAG.search(line)
        if match:
            found.append((match["tag"], number, line[: match.start()].strip()))
    if not found:
        return ""
    rows = [f"| `{tag}` | {number} | {_code(line)} |" for tag, number, line in sorted(found)]
    head = f"\n## The lines it leans on\n\nIn `{shown}`:\n\n| tag | line | code |\n|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _code(line: str) -> str:
    return "``" + line.replace("|", r"\|") + "``" if "`" in line else "`" + line.replace("|", r"\|") + "`"


def from_notebook(text: str) -> str:
    """A py:percent script as a page: text cells as text, code cells as code."""
    parts: list[str] = []
    for cell in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, body = cell.partition("\n")
        if head.strip() == "[markdown]":
            parts.append("\n".join(re.sub(r"^# ?", "", line) for line in body.strip().splitlines()))
        elif body.strip():
            parts.append(f"```python\n{body.strip()}\n```")
    return "\n\n".join(parts) + "\n"
