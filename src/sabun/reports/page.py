"""From facts to HTML: one file, no script, no network."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from sabun.telling.drawing import scoped
from sabun.telling.language import language, said
from sabun.telling.words import count, tidy, unit_word

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["environment", "render"]

_LONGEST = 5000
_LONGEST_FIGURE = 34


def render(template: str, **content: Any) -> str:
    """Fills a template of this package; everything is escaped except pictures made by `sabun.telling.drawing`."""
    return environment("sabun.reports").get_template(template).render(**content)


@cache
def environment(*packages: str) -> Environment:
    """Templates of some packages, the first one that has a name first; they speak the page's language."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.globals.update(said=said, language=language, count=count, unit_word=unit_word)
    environment.filters["code"] = _code
    environment.filters["short"] = _short
    environment.filters["scoped"] = scoped
    environment.filters["figure"] = _is_figure
    return environment


def _finalize(value: Any) -> Any:
    """No text from a file may turn the page's lines around or flood it; markup of our own passes."""
    if hasattr(value, "__html__") or not isinstance(value, str):
        return value
    return tidy(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…")


def _short(text: str) -> Any:
    """Escaped text in which digests stand by their first digits, with the whole of each where the pointer rests."""
    from markupsafe import Markup

    parts = re.split(r"\b([0-9a-f]{64})\b", tidy(text[:_LONGEST]))
    pieces = [
        Markup('<span title="{}">{}…</span>').format(part, part[:12]) if place % 2 else Markup("{}").format(part)
        for place, part in enumerate(parts)
    ]
    return Markup("").join(pieces)


def _is_figure(cell: str) -> bool:
    """Whether a cell is a number, an interval or a number with its unit, which must stand in one line."""
    return len(cell) <= _LONGEST_FIGURE and re.search(r"\d", cell) is not None


def _code(text: str) -> Any:
    """Escaped text in which `words between backticks` are set as code."""
    from markupsafe import Markup

    parts = re.split(r"`([^`]*)`", tidy(text))
    pieces = [
        Markup("<code>{}</code>").format(part) if place % 2 else Markup("{}").format(part) for place, part in enumerate(parts)
    ]
    return Markup("").join(pieces)
