"""How plans, guarantees and releases look in a notebook, and a progress bar that works there.

    clf = PrivateClassifier(epsilon=1, progress=sabun.notebook.progress_bar()).fit(X, y)

Nothing here knows a room: whatever has lines of text (and forecasts, if it has them) is drawn from those.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

__all__ = ["Rich", "progress_bar"]

_WIDTH = 40


class Rich:
    """Something whose text is worth reading: a notebook shows it as a page would, first line first."""

    def _repr_html_(self) -> str:
        head, *rest = str(self).splitlines() or [""]
        body = "".join(f"<div>{_indented(line)}</div>" for line in rest)
        return f'<div style="line-height:1.5"><strong>{_indented(head)}</strong>{body}{_bars(self)}</div>'


def _indented(line: str) -> str:
    """One line as HTML; the blanks before it stay."""
    text = line.lstrip(" ")
    return "&nbsp;" * (len(line) - len(text)) + escape(text)


def _bars(plan: object) -> str:
    """A bar from low to high with a mark at the middle for each forecast, all on one scale."""
    forecasts: Sequence[Any] = getattr(plan, "forecasts", ())
    top = max((one.high for one in forecasts), default=0.0)
    if not 0 < top < float("inf"):
        return ""
    return "".join(_bar(one, top) for one in forecasts)


def _bar(forecast: Any, top: float) -> str:
    low, middle, high = (100 * value / top for value in (forecast.low, forecast.middle, forecast.high))
    words = f"from {forecast.low:.2g} to {forecast.high:.2g}, about {forecast.middle:.2g}"
    return (
        f'<div><svg width="100%" height="14" role="img" aria-label="{escape(words)}">'
        f'<rect x="{low:.1f}%" y="5" width="{high - low:.1f}%" height="4" fill="currentColor" opacity=".35"/>'
        f'<rect x="{min(middle, 99.5):.1f}%" y="1" width="3" height="12" fill="currentColor"/></svg>'
        f"<small>{escape(forecast.quantity)}: {escape(words)}</small></div>"
    )


def progress_bar() -> Callable[[float, str], None]:
    """Something to pass as `progress`: a bar that is drawn over in a notebook, a line that is written over in a terminal."""
    shell = sys.modules.get("IPython")
    kernel = None if shell is None else shell.get_ipython()
    if kernel is None or not hasattr(kernel, "kernel"):
        return _line
    shown: Any = importlib.import_module("IPython.display")
    handle = shown.display(shown.HTML(_drawn(0.0, "")), display_id=True)
    return lambda share, words: handle.update(shown.HTML(_drawn(share, words)))


def _drawn(share: float, words: str) -> str:
    return f'<progress value="{share:.3f}" max="1">{share:.0%}</progress> {share:.0%} {escape(words)}'


def _line(share: float, words: str) -> None:
    done = round(_WIDTH * share)
    end = "\n" if share >= 1 else ""
    sys.stderr.write(f"\r[{'#' * done}{' ' * (_WIDTH - done)}] {share:4.0%} {words:40.40}{end}")
    sys.stderr.flush()
