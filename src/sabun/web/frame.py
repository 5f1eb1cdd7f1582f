"""The frame of a page: brand, places to go to, heading, language; filled from templates with the words of `said`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, final

from sabun.reports.page import environment
from sabun.telling.language import retold
from sabun.web.marks import dot, gauge

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Frame", "Place", "framed"]


@final
@dataclass(frozen=True, kw_only=True)
class Place:
    """Somewhere to go.

    Args:
        name: What it is called.
        address: Where it is.
        here: Whether this is the page.
        act: Whether going there changes something: then it is a form's button.
    """

    name: str
    address: str
    here: bool = False
    act: bool = False


@final
@dataclass(frozen=True, kw_only=True)
class Frame:
    """What stands around a page.

    Args:
        brand: Whose page it is.
        home: Where the brand leads.
        root: Under which path the pages are.
        places: Where one can go.
        token: What forms send along.
        other: The other language and the address of this page in it.
        scripts: Scripts of the page's own, by name.
    """

    brand: str
    home: str = "/"
    root: str = "/"
    places: tuple[Place, ...] = ()
    token: str = ""
    other: tuple[str, str] | None = None
    scripts: tuple[str, ...] = ()


def framed(package: str, template: str, frame: Frame, **content: Any) -> str:
    """Fills a template of a package; those of this one and of reports are there to build on."""
    return _environment(package).get_template(template).render(frame=frame, **content)


@cache
def _environment(package: str) -> Environment:
    made = environment(package, "sabun.web", "sabun.reports")
    made.globals.update(dot=dot, gauge=gauge, retold=retold)
    return made
