"""Pictures as inline SVG whose colours follow the page, light or dark.

matplotlib draws with stand-in colours; afterwards each becomes a CSS variable of the page. What comes out holds no address, no
script, no style sheet, and its ids are its own, so several fit on one page.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from sabun.foreign import fitted
from sabun.telling.words import tidy

__all__ = [
    "ACCENT",
    "GRID",
    "INK",
    "JAPANESE",
    "SECOND",
    "SOFT",
    "drawn",
    "embeddable",
    "fonts",
    "label",
    "scoped",
    "with_families",
    "without_glyph_warnings",
]

INK, ACCENT, SECOND, SOFT, GRID = "#010203", "#020304", "#030405", "#040506", "#050607"
_VARIABLES = {INK: "--ink", ACCENT: "--accent", SECOND: "--second", SOFT: "--soft", GRID: "--line"}

JAPANESE = (
    "Noto Sans CJK JP",
    "Noto Sans JP",
    "Hiragino Sans",
    "Hiragino Kaku Gothic ProN",
    "Yu Gothic",
    "Meiryo",
    "IPAexGothic",
    "IPAGothic",
    "TakaoGothic",
    "VL Gothic",
    "MS Gothic",
)
"""Families with Japanese letters on the common systems, the most even ones first."""

_WIDTH = 3.9
_LONGEST_LABEL = 24
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name such as "$x" from a file is text, not a formula
    "font.size": 10.5,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


def drawn(draw: Callable[[Axes], None], *, title: str, height: float) -> str:
    """Markup of one picture; equal input gives equal bytes.

    Args:
        draw: Draws on the one Axes.
        title: Read out by a screen reader.
        height: In inches, for a width of 3.9.
    """
    import matplotlib
    from matplotlib.figure import Figure

    salt = hashlib.sha256(title.encode("utf-8", "replace")).hexdigest()[:8]
    text = io.StringIO()
    with matplotlib.rc_context(_SETTINGS | {"font.family": fonts(), "svg.hashsalt": salt}), without_glyph_warnings():
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return embeddable(text.getvalue(), title=title)


@cache
def fonts() -> list[str]:
    """matplotlib's own font, then the installed ones that have Japanese letters; where there is none, the viewer's does."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in JAPANESE if name in installed)]


def with_families(svg: str) -> str:
    """The picture with the same families for its letters wherever it was drawn; whoever shows it takes the first it has."""
    families = ", ".join(f"'{name}'" for name in ("DejaVu Sans", *JAPANESE))
    return re.sub(r"'DejaVu Sans'(?:, '[^']*')*", f"{families}, sans-serif", svg)


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Inside, a letter without a glyph is no news: text in an SVG stays text, so whoever shows it has the font to choose."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


def embeddable(svg: str, *, title: str) -> str:
    """An SVG file as an element of a page: its own ids, a title, the page's colours and letters."""
    body = tidy(svg[svg.index("<svg") :])
    body = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    prefix = "c" + hashlib.sha256((title + body).encode("utf-8", "replace")).hexdigest()[:10]
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'\b(?:xlink:)?href="#', f'href="#{prefix}-', body)
    body = body.replace("url(#", f"url(#{prefix}-")
    body = re.sub(r"(font:[^;\"]*?\d(?:px|pt)) [^;\"]*", r"\1 var(--letters)", body)
    body = re.sub(r"font-family: [^;\"]*", "font-family: var(--letters)", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var({variable})")
    size = re.search(r'viewBox="[^"]*"', body)
    opening = f'<svg role="img" aria-labelledby="{prefix}-t" {size[0] if size else ""} preserveAspectRatio="xMidYMid meet">'
    named = f'{opening}<title id="{prefix}-t">{html.escape(tidy(title))}</title>'
    return re.sub(r"<svg[^>]*>", lambda _: named, body, count=1).strip()


def scoped(svg: str, scope: str) -> str:
    """The same picture with ids that belong to one part of a page, so that equal pictures may stand in several."""
    known = re.search(r'aria-labelledby="(c[0-9a-f]{10})-t"', svg)
    return svg if known is None or not scope else svg.replace(f"{known[1]}-", f"{known[1]}-{scope}-")


def label(text: str) -> str:
    """A name short enough to stand beside an axis; a letter of double width counts twice."""
    return fitted(tidy(" ".join(text.split())), _LONGEST_LABEL)
