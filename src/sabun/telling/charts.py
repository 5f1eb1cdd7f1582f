"""The pictures a report needs: dots with intervals, bars, histograms, a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sabun.telling.drawing import ACCENT, GRID, INK, SECOND, SOFT, drawn, label
from sabun.telling.language import phrase, said
from sabun.telling.measures import PLAIN, Measure
from sabun.telling.reading import Floats
from sabun.telling.rounding import day
from sabun.telling.story import Chart, Grid
from sabun.telling.words import count, number, plural, sentences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST_ROWS", "bars", "dots", "histogram", "line", "overlay", "steps"]

MOST_ROWS = 60
"""Rows a picture of dots or bars shows at most."""

_LARGEST = 1e15  # beyond this, ticks are no longer readable and float arithmetic on them overflows
_MOST_BINS = 40
_MOST_DATES = 3
_MOST_TICKS, _LONG = 5, 1000


def dots(
    names: Sequence[str],
    values: Floats,
    low: Floats | None = None,
    high: Floats | None = None,
    *,
    title: str,
    axis: str,
    zero: bool = False,
    heading: str | None = None,
    note: str = "",
    measure: Measure = PLAIN,
) -> Chart | None:
    """One dot for each name, with its interval; None when nothing can be drawn."""
    axis = measure.named(axis)
    low = values if low is None else low
    high = values if high is None else high
    good = [place for place in range(len(names)) if _drawable(values[place])][:MOST_ROWS]
    if not good:
        return None
    places = np.arange(len(good))[::-1]
    centre = values[good]
    below = np.maximum(centre - _near(low[good], centre), 0.0)
    above = np.maximum(_near(high[good], centre) - centre, 0.0)

    def draw(axes: Axes) -> None:
        if zero:
            axes.axvline(0.0, color=SOFT, linewidth=1.0)
        axes.errorbar(centre, places, xerr=[below, above], fmt="o", color=ACCENT, markersize=5, capsize=3, linewidth=1.6)
        _name_rows(axes, [names[place] for place in good], axis)
        _mark(axes, measure)

    triples = [(names[place], float(values[place]), float(low[place]), float(high[place])) for place in good]
    rows = tuple((name, measure.bare(*found), *measure.bare_ends(*found[1:])) for name, *found in triples)
    left_out = len(names) - len(good)
    more = said("Not drawn: {rows} of the release file.", rows=count(left_out, "more row")) if left_out else ""
    alt = said("{values} with intervals; the numbers are in the table below the picture.", values=count(len(good), "value"))
    return Chart(
        title=title,
        svg=drawn(draw, title=_titled(title, alt), height=min(0.9 + 0.27 * len(good), 14)),
        note=sentences(note, more),
        data=Grid(title=title, columns=(_heading(heading), axis, said("from"), said("to")), rows=rows),
    )


def bars(
    names: Sequence[str], values: Floats, *, title: str, axis: str, heading: str | None = None, note: str = ""
) -> Chart | None:
    """One bar for each name; None when nothing can be drawn."""
    good = [place for place in range(len(names)) if _drawable(values[place])][:MOST_ROWS]
    if not good:
        return None
    places = np.arange(len(good))[::-1]

    def draw(axes: Axes) -> None:
        axes.barh(places, values[good], color=ACCENT, height=0.7)
        _name_rows(axes, [names[place] for place in good], axis)

    alt = said("{bars}; the numbers are in the table below the picture.", bars=count(len(good), "bar"))
    return Chart(
        title=title,
        svg=drawn(draw, title=_titled(title, alt), height=min(0.9 + 0.27 * len(good), 14)),
        note=note,
        data=Grid(
            title=title,
            columns=(_heading(heading), axis),
            rows=tuple((names[place], number(float(values[place]))) for place in good),
        ),
    )


def histogram(values: Floats, *, title: str, axis: str, things: str = phrase("value"), note: str = "") -> Chart | None:
    """How often values of each size occur; None when nothing can be drawn."""
    good = values[np.isfinite(values) & (np.abs(values) < _LARGEST)]
    if not len(good):
        return None
    edges = _edges(good)
    heights, _ = np.histogram(good, bins=edges)

    def draw(axes: Axes) -> None:
        axes.bar(edges[:-1], heights, width=np.diff(edges), align="edge", color=ACCENT, edgecolor=GRID, linewidth=0.5)
        axes.set_xlabel(axis)
        axes.set_ylabel(said("number of {things}", things=plural(said(things))))
        axes.grid(axis="y")
        axes.set_axisbelow(True)

    quantiles = np.quantile(good, [0, 0.25, 0.5, 0.75, 1])
    names = (said("smallest"), said("lower quarter"), said("median"), said("upper quarter"), said("largest"))
    rows = tuple((name, number(float(value))) for name, value in zip(names, quantiles, strict=True))
    low, high = number(float(quantiles[0])), number(float(quantiles[-1]))
    alt = said("Histogram of {things} from {low} to {high}.", things=count(len(good), things), low=low, high=high)
    whole = said("of all {things}", things=plural(said(things)))
    return Chart(
        title=title,
        svg=drawn(draw, title=_titled(title, alt), height=2.6),
        note=note,
        data=Grid(title=title, columns=(whole, axis), rows=(*rows, (said("mean"), number(float(good.mean()))))),
    )


def line(x: Floats, y: Floats, *, title: str, x_axis: str, y_axis: str, note: str = "") -> Chart | None:
    """One curve; None when nothing can be drawn."""
    good = np.array([_drawable(a) and _drawable(b) for a, b in zip(x, y, strict=True)], dtype=bool)
    if good.sum() < 2:
        return None

    def draw(axes: Axes) -> None:
        axes.plot(x[good], y[good], color=ACCENT, linewidth=1.8)
        axes.set_xlabel(x_axis)
        axes.set_ylabel(y_axis)
        axes.grid()
        axes.set_axisbelow(True)

    few = np.unique(np.linspace(0, good.sum() - 1, 12).astype(int))
    rows = tuple((number(float(x[good][place])), number(float(y[good][place]))) for place in few)
    (first, start), (last, end) = rows[0], rows[-1]
    alt = said("A curve from {start} at {first} to {end} at {last}.", start=start, first=first, end=end, last=last)
    return Chart(
        title=title,
        svg=drawn(draw, title=_titled(title, alt), height=2.8),
        note=note,
        data=Grid(title=title, columns=(x_axis, y_axis), rows=rows),
    )


def overlay(
    names: Sequence[str],
    series: Sequence[tuple[str, Floats]],
    *,
    title: str,
    axis: str,
    heading: str | None = None,
    note: str = "",
) -> Chart | None:
    """Up to three sets of dots over the same names, for comparing; None when nothing can be drawn."""
    shapes = ((ACCENT, "o"), (SECOND, "D"), (INK, "x"))
    good = [place for place in range(len(names)) if all(_drawable(values[place]) for _, values in series)][:MOST_ROWS]
    if not good:
        return None
    places = np.arange(len(good))[::-1]

    def draw(axes: Axes) -> None:
        for (name, values), (colour, shape) in zip(series, shapes, strict=False):
            axes.plot(values[good], places, shape, color=colour, label=label(name), markersize=6)
        _name_rows(axes, [names[place] for place in good], axis)
        axes.figure.legend(loc="outside upper left", ncols=3, frameon=False)

    rows = tuple((names[place], *(number(float(values[place])) for _, values in series)) for place in good)
    together = said(", ").join(name for name, _ in series)
    alt = said("{names} side by side; the numbers are in the table below the picture.", names=together)
    return Chart(
        title=title,
        svg=drawn(draw, title=_titled(title, alt), height=min(1.3 + 0.27 * len(good), 14)),
        note=note,
        data=Grid(title=title, columns=(_heading(heading), *(name for name, _ in series)), rows=rows),
    )


def steps(
    edges: Floats,
    series: Sequence[tuple[str, Floats]],
    *,
    title: str,
    x_axis: str,
    y_axis: str,
    note: str = "",
    measure: Measure = PLAIN,
) -> Chart | None:
    """Two histograms over the same bins, for comparing; None when nothing can be drawn."""
    looks = ((ACCENT, "-"), (SECOND, "--"))
    if not all(_drawable(value) for values in (edges, *(heights for _, heights in series)) for value in values):
        return None

    def draw(axes: Axes) -> None:
        for (name, heights), (colour, dashes) in zip(series, looks, strict=False):
            axes.stairs(heights, edges, color=colour, linestyle=dashes, linewidth=1.8, label=label(name))
        axes.set_xlabel(measure.named(label(x_axis)))
        axes.set_ylabel(y_axis)
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        _mark(axes, measure)
        axes.figure.legend(loc="outside upper left", ncols=3, frameon=False)

    rows = tuple(
        (
            said("{low} to {high}", low=measure.bare_exactly(float(low)), high=measure.bare_exactly(float(high))),
            *(number(float(heights[place]), 3) for _, heights in series),
        )
        for place, (low, high) in enumerate(pairwise(edges))
    )
    names = [name for name, _ in series]
    alt = said(
        "Histograms of {column}, {names}; the numbers are in the table below the picture.",
        column=label(x_axis),
        names=said(" and ").join(names),
    )
    return Chart(
        title=title,
        svg=drawn(draw, title=_titled(title, alt), height=2.8),
        note=note,
        data=Grid(title=title, columns=(measure.named(x_axis), *names), rows=rows),
    )


def _titled(title: str, alt: str) -> str:
    """What a screen reader says of a picture."""
    return sentences(said("{title}.", title=title), alt)


def _heading(given: str | None) -> str:
    return said("name") if given is None else given


def _name_rows(axes: Axes, names: Sequence[str], axis: str) -> None:
    """Writes the names down the left side, the first at the top."""
    axes.set_yticks(range(len(names))[::-1], [label(name) for name in names])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlabel(axis)
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def _mark(axes: Axes, measure: Measure) -> None:
    """Numbers as they are written elsewhere, or dates along an axis that counts days: few, for some are as wide as a word."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if not measure.dates:
        low, high = axes.get_xlim()
        largest = max(abs(low), abs(high))
        axes.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS))
        if _LONG <= largest < 10 * _LONG**2 and high - low >= largest / _LONG:  # others have an exponent, or more digits
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.7g}"))
        return
    axes.xaxis.set_major_locator(MaxNLocator(_MOST_DATES, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: day(value)))
    for one in axes.get_xticklabels():  # beside long names there is little room
        one.set(rotation=20, ha="right", rotation_mode="anchor")


def _edges(good: Floats) -> Floats:
    low, high = float(good.min()), float(good.max())
    if low == high:
        return np.array([low - 0.5, high + 0.5])
    bins = int(min(_MOST_BINS, max(8, math.ceil(2 * len(good) ** (1 / 3)))))
    return np.linspace(low, high, bins + 1)


def _drawable(value: float) -> bool:
    return math.isfinite(value) and abs(value) < _LARGEST


def _near(ends: Floats, centre: Floats) -> Floats:
    """Ends of intervals, replaced by the centre where they cannot be drawn."""
    return np.where(np.isfinite(ends) & (np.abs(ends) < _LARGEST), ends, centre)
