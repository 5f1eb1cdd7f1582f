"""A page that puts several releases side by side: the same figures with their intervals, then each release in full."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sabun import checks
from sabun.privacy.amounts import plain
from sabun.release import Release
from sabun.release.signature import TrustedKeys
from sabun.reports.documents import collection
from sabun.reports.facts import Chapter, Facts, facts
from sabun.telling.charts import dots
from sabun.telling.generic import promised
from sabun.telling.language import said, speaking
from sabun.telling.measures import PLAIN
from sabun.telling.story import Chart, Grid, Quantity
from sabun.telling.words import count, shown, unit_word

__all__ = ["comparison"]

_MOST_CHARTS = 12


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One release of the page, with its figures by name."""

    label: str
    release: Release
    facts: Facts
    figures: Mapping[str, Quantity]


def comparison(releases: Mapping[str, Release], *, trusted_key: TrustedKeys = None, lang: str | None = None) -> str:
    """Several releases as one page, the same figures side by side with their intervals.

    Releases of one kind share their figures; of different kinds only the promises are compared.

    Args:
        releases: What to show, by the names to show it under; two or more.
        trusted_key: Public keys the reader trusts; with them, a release that none of them signed is refused.
        lang: "en" or "ja"; that of the locale when left out.

    Raises:
        ParameterError: There are fewer than two releases.
        ReleaseError: A signature does not fit the content, or is not by a trusted key.
    """
    checks.require(len(releases) >= 2, "two or more", releases=len(releases))
    with speaking(lang) as spoken:
        told = {label: facts(release, trusted_key=trusted_key) for label, release in releases.items()}
        sides = [
            _Side(label=label, release=release, facts=told[label], figures=_by_name(told[label].story.quantities))
            for label, release in releases.items()
        ]
        grids, charts = [_promises(sides)], list[Chart]()
        for group in _groups(sides):
            grid, some = _figures(group)
            grids.append(grid)
            charts += some
        same = said("The same figures of {releases}, side by side.", releases=count(len(sides), "private release"))
        none = said("These releases are of different kinds, and have no figures in common.")
        chapters = [
            Chapter(name=f"r{place}", question=f"{side.label}: {side.facts.story.title}", facts=side.facts)
            for place, side in enumerate(sides, start=1)
        ]
        return collection(
            chapters,
            heading=said("Releases side by side"),
            introduction=(none if len(grids) == 1 else same, *_paid(sides)),
            grids=grids,
            charts=charts[:_MOST_CHARTS],
            lang=spoken,
        )


def _paid(sides: Sequence[_Side]) -> Iterator[str]:
    """What the releases cost together: one that was asked for again was paid for once."""
    charges: dict[str, list[str]] = {}
    for side in sides:
        receipt = side.release.provenance.receipt
        charges.setdefault(side.label if receipt is None else receipt.entry_hash, []).append(side.label)
    for labels in charges.values():
        if len(labels) > 1:
            yield said("{names} are one answer, which was paid for once.", names=shown(labels))
    if len(charges) > 1:
        yield said("Each release was paid for by itself: for people who are in several, the epsilons add up.")


def _by_name(quantities: Sequence[Quantity]) -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}
    for quantity in quantities:
        found.setdefault(quantity.name, quantity)
    return found


def _groups(sides: Sequence[_Side]) -> list[list[_Side]]:
    """Releases that have a figure in common: those of one kind."""
    kinds = dict.fromkeys((side.release.provenance.kind, side.facts.story.title) for side in sides)
    groups = [
        [side for side in sides if (side.release.provenance.kind, side.facts.story.title) == kind and side.figures]
        for kind in kinds
    ]
    return [group for group in groups if len(group) > 1]


def _promises(sides: Sequence[_Side]) -> Grid:
    rows = []
    for side in sides:
        stated, origin = promised(side.release), side.release.provenance
        epsilon, delta = stated.cost
        rows.append(
            (side.label, side.facts.story.title, plain(epsilon), plain(delta), unit_word(stated.unit), origin.time[:10])
        )
    columns = (said("release"), said("kind of result"), said("epsilon"), said("delta"), said("protects"), said("made on"))
    return Grid(title=said("Promises"), columns=columns, rows=tuple(rows))


def _figures(group: Sequence[_Side]) -> tuple[Grid, list[Chart]]:
    """The table of all figures that two releases have, and a picture for each of the first ones."""
    names = [
        name
        for name in dict.fromkeys(name for side in group for name in side.figures)
        if sum(name in side.figures for side in group) > 1
    ]
    rows, charts = [], []
    for name in names:
        found = [side.figures.get(name) for side in group]
        rows.append((name, *map(_cell, found), _difference([one for one in found if one is not None])))
        charts.append(_picture(name, group))
    return Grid(
        title=said("Figures: {title}", title=group[0].facts.story.title),
        columns=(said("of"), *(side.label for side in group), said("difference")),
        rows=tuple(rows),
        note=said(
            "A difference is called clear where two intervals have no number in common; intervals that overlap do not show "
            "that the figures are the same."
        ),
    ), [chart for chart in charts if chart is not None]


def _picture(name: str, group: Sequence[_Side]) -> Chart | None:
    shown = [(side.label, side.figures[name]) for side in group if name in side.figures]
    labels = [label for label, _ in shown]
    value, low, high = (np.array([getattr(one, part) for _, one in shown]) for part in ("value", "low", "high"))
    measures = {one.measure for _, one in shown}
    measure = measures.pop() if len(measures) == 1 else PLAIN
    return dots(labels, value, low, high, title=name, axis=name, heading=said("release"), measure=measure)


def _cell(one: Quantity | None) -> str:
    if one is None or math.isnan(one.value):
        return said("not told")
    if math.isnan(one.low):
        return one.measure.told(one.value, one.value, one.value)
    low, high = one.measure.bare_ends(one.low, one.high)
    return said("{value} ({low} to {high})", value=one.measure.told(one.value, one.low, one.high), low=low, high=high)


def _difference(found: Sequence[Quantity]) -> str:
    known = [one for one in found if not math.isnan(one.low)]
    if len(known) < 2:
        return said("not told")
    apart = any(one.high < other.low or other.high < one.low for one, other in itertools.combinations(known, 2))
    return said("clear") if apart else said("not clear")
