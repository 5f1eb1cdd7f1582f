"""What is wrong with a page, found by parsing it as a browser would."""

from __future__ import annotations

import base64
import itertools
import re
from html.parser import HTMLParser

_EMPTY = {"meta", "br", "img", "link", "hr", "input", "use", "path", "rect", "circle", "line", "stop"}
_ADDRESS = re.compile(r"url\(\s*['\"]?([^)'\"]*)|@import", re.IGNORECASE)


class Page(HTMLParser):
    """A parsed page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self._svg_titles: list[bool] = []
        self.feed(text)
        self.close()
        if self._open:
            self.problems.append(f"not closed: {self._open}")
        self._check_whole()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if tag in {"script", "iframe", "object", "embed", "form", "base", "link", "foreignobject", "animate"}:
            self.problems.append(f"<{tag}>")
        for name, value in given.items():
            self._check_attribute(tag, name, value or "")
        if tag == "img" and not given.get("alt"):
            self.problems.append("an image without alternative text")
        if tag == "svg":
            self._svg_titles.append(False)
        if tag == "title" and "svg" in self._open:
            self._svg_titles[-1] = True
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            self._check_attribute(tag, name, value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in _EMPTY:
            return
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if any(re.fullmatch(r"h[1-6]", tag) for tag in self._open):
            level, words = self.headings[-1]
            self.headings[-1] = (level, words + data)
        if "style" in self._open:
            self._check_style(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def _check_attribute(self, tag: str, name: str, value: str) -> None:
        if name == "id":
            self.ids.append(value)
        if name.startswith("on"):
            self.problems.append(f"{tag} {name}")
        if name in {"src", "href", "xlink:href", "action", "srcset", "data", "poster"}:
            self.links.append(value)
            if not re.match(r"#|data:image/svg\+xml;base64,|[\w./-]+$", value) or value.startswith("/"):
                self.problems.append(f"{tag} {name}={value}")
            if value.startswith("data:") and not _whole_picture(value):
                self.problems.append("a picture that is cut off")
        if name == "style":
            self._check_style(value)

    def _check_style(self, style: str) -> None:
        for match in _ADDRESS.finditer(style):
            if not (match[1] or "x").startswith("#"):
                self.problems.append(f"style loads {match[0]}")

    def _check_whole(self) -> None:
        if [level for level, _ in self.headings].count(1) != 1:
            self.problems.append("not exactly one h1")
        levels = [level for level, _ in self.headings]
        if any(after > before + 1 for before, after in itertools.pairwise(levels)):
            self.problems.append(f"a heading level is skipped: {levels}")
        if not all(words.strip() for _, words in self.headings):
            self.problems.append("an empty heading")
        if not all(self._svg_titles):
            self.problems.append("an svg without a title")
        if len(set(self.ids)) != len(self.ids):
            self.problems.append("an id is used twice")
        if missing := [link for link in self.links if link.startswith("#") and link[1:] not in self.ids]:
            self.problems.append(f"links to nowhere: {missing}")


def _whole_picture(address: str) -> bool:
    try:
        return base64.b64decode(address.partition(",")[2], validate=True).rstrip().endswith(b"</svg>")
    except ValueError:
        return False


def problems(page: str) -> list[str]:
    """Everything that a page of Sabun must not have."""
    return Page(page).problems
