"""Small pictures, one to a row: a dot with its interval, a bar, a row of columns.

Coordinates are in per cent, so a picture takes the width it is given and the page's letters stay as large as they are. Colours
are classes of the style sheet; nothing is written as `style=`, which the page's policy would not allow.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

__all__ = ["columns", "dot", "gauge"]


def dot(
    value: float | None, low: float | None, high: float | None, *, least: float, most: float, line: float | None = None
) -> Markup:
    """An estimate as a dot on a line from `least` to `most`, with its interval, and a mark where the truth is, if it is known.

    The numbers stand beside it: whoever listens to the page is not told twice.
    """
    parts = [Markup('<line class="axis" x1="0%" x2="100%" y1="50%" y2="50%"/>')]
    if low is not None and high is not None:
        left, right = _percent(low, least, most), _percent(high, least, most)
        parts.append(
            Markup('<rect class="range" x="{}%" width="{}%" y="35%" height="30%" rx="2"/>').format(
                _short(left), _short(max(right - left, 0.6))
            )
        )
    if line is not None:
        place = _short(_percent(line, least, most))
        parts.append(Markup('<line class="truth" x1="{0}%" x2="{0}%" y1="5%" y2="95%"/>').format(place))
    if value is not None:
        parts.append(Markup('<circle cx="{}%" cy="50%" r="4.5"/>').format(_short(_percent(value, least, most))))
    return Markup('<svg class="mark" aria-hidden="true">{}</svg>').format(Markup("").join(parts))


def gauge(share: float, *, label: str, line: float | None = None) -> Markup:
    """A share of a whole as a bar, with a mark at another share."""
    mark = (
        "" if line is None else Markup('<line class="truth" x1="{0}%" x2="{0}%" y1="0%" y2="100%"/>').format(_short(100 * line))
    )
    width = _short(100 * min(max(share, 0.0), 1.0))
    return Markup(
        '<svg class="mark gauge" role="img" aria-label="{}"><rect class="whole" width="100%" height="100%" rx="4"/>'
        '<rect class="part" width="{}%" height="100%" rx="4"/>{}</svg>'
    ).format(label, width, mark)


def columns(heights: Sequence[int], *, label: str, open_end: bool = False) -> Markup:
    """Numbers side by side, from a ground line; the last one paler where it is not over yet."""
    top, each = max([1, *heights]), 100 / max(len(heights), 1)
    bars = [
        Markup('<rect class="{}" x="{}%" width="{}%" y="{}%" height="{}%"/>').format(
            "range" if open_end and place == len(heights) - 1 else "part",
            *(_short(place * each + each * 0.08), _short(each * 0.84)),
            *(_short(100 - 100 * height / top), _short(100 * height / top)),
        )
        for place, height in enumerate(heights)
    ]
    return Markup('<svg class="columns" role="img" aria-label="{}">{}</svg>').format(label, Markup("").join(bars))


def _percent(value: float, least: float, most: float) -> float:
    return 100 * min(max((value - least) / (most - least), 0.0), 1.0) if most > least else 50.0


def _short(number: float) -> str:
    return f"{number:.2f}"
