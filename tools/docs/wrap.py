"""Wraps the prose of Markdown pages, so that a change of one sentence is a change of a few lines.

Code, tables, headings, comments, link definitions and pictures stay as they are; so do words that belong together: what stands
between backquotes, a link's address, a figure that the benchmarks fill in.

    python tools/docs/wrap.py             every page in PAGES
    python tools/docs/wrap.py --check     only name those that are not wrapped
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["PAGES", "WIDTH", "wrapped"]

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 128

_MADE = ("docs/benchmarks.md", "docs/museum.md", "docs/papers.md", "docs/results")
"""Written by tools."""

_NO_BLANKS = (".ja.md",)
"""Languages that put no blanks between words: a line break there would show as one."""


def _pages() -> tuple[Path, ...]:
    own = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "LIMITS.md", "SECURITY.md")]
    found = [*own, *sorted((ROOT / "docs").rglob("*.md"))]
    names = {page: page.relative_to(ROOT).as_posix() for page in found}
    return tuple(page for page, name in names.items() if not name.startswith(_MADE) and not name.endswith(_NO_BLANKS))


PAGES = _pages()

_ITEM = re.compile(r"(?P<indent> *)(?P<mark>[-*+] |\d+[.)] )")
_FIXED = re.compile(r" *(\||#|>|<|!\[|\[[^\]]+\]:|    |:::|---|===|\$ )|$")
_WORD = re.compile(r"(?:`[^`]*`|<!--.*?-->[^<]*<!-- / -->|<!--.*?-->|\]\([^)]*\)|\S)+")
_MEANS_MORE = re.compile(r"([-*+<>|#=:]|\d+[.)])")
"""At the start of a line such a word would begin a list, a quotation, a table, a heading or a block of HTML."""


def wrapped(text: str) -> str:
    """The page with its prose wrapped.

    Example:
        >>> wrapped("- " + "word " * 30 + "end" + chr(10)).count(chr(10))
        2
    """
    lines: list[str] = []
    prose: list[str] = []
    fence = ""
    for line in [*text.splitlines(), ""]:
        opened = re.match(r" *(```+|~~~+)", line)
        if fence or opened or _FIXED.match(line):
            lines += _filled(prose)
            prose = []
            lines.append(line)
            if opened:
                fence = "" if fence and opened[1].startswith(fence) else fence or opened[1]
            continue
        if _ITEM.match(line):
            lines += _filled(prose)
            prose = []
        prose.append(line)
    return "\n".join(lines[:-1]) + "\n"


def _filled(prose: list[str]) -> list[str]:
    """One paragraph or one item of a list."""
    if not prose:
        return []
    item = _ITEM.match(prose[0])
    start = item[0] if item else re.match(r" *", prose[0])[0]  # type: ignore[index]
    indent = " " * len(start)
    text = " ".join([prose[0][len(start) :], *(line.strip() for line in prose[1:])])
    lines, current = [], start
    for word in _WORD.findall(text):
        begun = current.strip() and current not in (start, indent)
        if begun and len(current) + 1 + len(word) > WIDTH and not _MEANS_MORE.match(word):
            lines.append(current)
            current = indent + word
        else:
            current += f" {word}" if begun else word
    return [*lines, current]


def main() -> int:
    """Writes the pages, or names those that would change."""
    late = [page for page in PAGES if wrapped(page.read_text(encoding="utf-8")) != page.read_text(encoding="utf-8")]
    for page in late:
        if "--check" in sys.argv[1:]:
            print(f"{page.relative_to(ROOT)}: its prose is not wrapped; run python tools/docs/wrap.py")
        else:
            page.write_text(wrapped(page.read_text(encoding="utf-8")), encoding="utf-8")
    return int(bool(late) and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
