"""Writes docs/papers.md and docs/papers.ja.md: what each paper describes, where Sabun has it, the test that runs it.

python tools/docs/papers.py             write both pages
python tools/docs/papers.py --check     only say whether they are up to date
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from sabun.asking import room_named
from sabun.reproduction import Item, items, papers
from sabun.telling.language import LANGUAGES, phrase, retold, said, speaking
from sabun.telling.words import cited

__all__ = ["PAGES", "main", "page"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = {lang: ROOT / "docs" / ("papers.md" if lang == "en" else f"papers.{lang}.md") for lang in LANGUAGES}

_OTHER = {"en": "[日本語](papers.ja.md)", "ja": "[English](papers.md)"}
_TITLE = phrase("The papers, item by item")
_HEAD = phrase(
    "Everything the five papers describe, in their order, with where Sabun has it and the test that runs it. Where a cell is "
    "empty, the reason stands in its place. The page is written by `python tools/docs/papers.py` from the lists beside each "
    "paper's code, and the suite checks that every name, command and test on it exists. `sabun reproduce ROOM --items` prints "
    "the same; what is wrong in the papers is in the [errata](errata.md), and how their claims came out in the "
    "[results](results)."
)
_COLUMNS = (phrase("in the paper"), phrase("in Sabun"), phrase("test"))


def page(found: dict[str, Sequence[Item]], lang: str) -> str:
    """The whole page in one language.

    Args:
        found: The items of each paper, by room.
        lang: "en" or "ja".
    """
    with speaking(lang):
        parts = [f"# {said(_TITLE)}", _OTHER[lang], said(_HEAD)]
        for room, listed in found.items():
            known = room_named(room)
            parts += [f"## {said(known.title) if known else room}", *_paper(room), _table(listed)]
        return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Writes the pages, or checks them; 1 where one is out of date."""
    found = {room: listed for room in papers() if (listed := items(room))}
    made = {path: page(found, lang) for lang, path in PAGES.items()}
    if "--check" not in arguments:
        for path, text in made.items():
            path.write_text(text, encoding="utf-8")
        return 0
    old = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in old:
        print(f"{path.relative_to(ROOT)} is out of date: run python tools/docs/papers.py")
    return 1 if old else 0


def _paper(room: str) -> list[str]:
    """The paper's title, from the run that is kept in the documentation."""
    for file in sorted((ROOT / "docs" / "results").glob("*/reproduction.json")):
        kept = json.loads(file.read_text(encoding="utf-8"))["papers"]
        if room in kept:
            return [f"*{retold(kept[room]['paper'])}*"]
    return []


def _table(listed: Sequence[Item]) -> str:
    rows = [f"| {' | '.join(map(said, _COLUMNS))} |", "|---|---|---|"]
    for item in listed:
        reason = _cell(retold(item.reason)) if item.reason else ""
        place, test = _code(item.places) or reason, _code(item.tests) or (reason if item.place else "–")
        rows.append(f"| {_cell(cited(item.item))} | {place} | {test} |")
    return "\n".join(rows)


def _code(parts: Sequence[str]) -> str:
    return "<br>".join(f"`{_cell(part)}`" for part in parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
