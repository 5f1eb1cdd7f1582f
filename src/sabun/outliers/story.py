"""How releases of the outliers room are told: a count, counts by region, a choice of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sabun.release import Release
from sabun.telling.charts import dots
from sabun.telling.generic import level_of, results, spread, stages, vacuous, wide
from sabun.telling.reading import Floats, Unfit, has, number_at, pair_at, text_at, whole_at
from sabun.telling.story import Answer, Chart, Grid, Story
from sabun.telling.words import number, plural, shown

__all__ = ["story"]

_LAWS = {
    "power": "whole-number noise with a power tail",
    "laplace": "Laplace noise",
    "gaussian": "Gaussian noise",
    "paper": "the noise the paper prints",
}


def story(release: Release) -> Story:
    """Tells the three kinds of the room."""
    what = release.provenance.kind.partition(".")[2]
    tellers = {"count": _count, "regions": _regions, "subspace": _subspace}
    if what not in tellers:
        raise Unfit(what)
    return tellers[what](release)


def _count(release: Release) -> Story:
    value, facts = release.value, release.provenance.parameters
    found = whole_at(value, "count")
    k, radius = whole_at(facts, "k"), number_at(facts, "radius")
    low, high = pair_at(value, "interval") if has(value, "interval") else (float(found), float(found))
    known = has(value, "interval") and bool(level_of(facts))
    records = whole_at(facts, "records") if has(facts, "records") else 0
    empty = known and vacuous(low, high, records)
    of_all = f" of the {records:,}" if records else ""
    meaning = f"outliers: fewer than {k:,} others lie within {number(radius)} of each."
    people = plural(release.guarantee.unit)
    charts = [_interval(found, low, high, facts)] if known else []
    return Story(
        title="Private number of outliers",
        answer=Answer(
            big=f"{number(low)} to {number(high)}" if empty else number(found),
            spread=spread(found, low, high, level=level_of(facts)) if known and not empty else "",
            sentence=(
                f"{'Nothing can be said about how many' if empty else f'About {found:,}'}{of_all} {people} are {meaning}"
                + (f" The interval holds the exact count with {level_of(facts)} confidence." if known else "")
            ),
        ),
        stages=stages(release, _steps(facts, known)),
        charts=tuple(chart for chart in charts if chart is not None),
        grids=(results(release),),
        cautions=_cautions(found, low, high, known=known, empty=empty),
    )


def _steps(facts: Mapping[str, Any], known: bool) -> tuple[str, ...]:
    mechanism = text_at(facts, "mechanism")
    steps = ["The neighbours of each row within the radius were counted, and from them the exact number of outliers."]
    if mechanism.startswith("global"):
        steps.append("Noise was drawn for the worst table of this shape, and added.")
    else:
        law = _LAWS.get(mechanism, mechanism)
        steps.append("How much one row could change that number was bounded for this very table; this bound stays private.")
        steps.append(f"To the number, {law} fitted to that bound was added.")
    if known and has(facts, "error_bar_epsilon"):
        steps.append(f"The error bar was paid for as well: epsilon {shown(facts['error_bar_epsilon'])} of the whole.")
    return (*steps, "A result outside the possible range was moved to its end.")


def _cautions(found: int, low: float, high: float, *, known: bool, empty: bool) -> tuple[str, ...]:
    if not known:
        return ("No error bar was paid for, so this answer has no interval.",)
    if empty:
        return (
            f"This release says nothing: its interval holds nearly every possible number, and the {found:,} in the file may be "
            "noise alone. It takes a larger table, fewer columns or a larger epsilon; ask “plan” before paying again.",
        )
    return wide(found, low, high)


def _interval(found: int, low: float, high: float, facts: Mapping[str, Any]) -> Chart | None:
    return dots(
        ["outliers"],
        np.array([float(found)]),
        np.array([low]),
        np.array([high]),
        title="The count with its interval",
        axis="number of outliers",
        heading="",
        note=f"The bar is the {level_of(facts)} interval.",
    )


def _regions(release: Release) -> Story:
    names, found, ends = _by_region(release.value)
    top = int(found.argmax())
    described = release.provenance.parameters.get("regions")
    chart = dots(
        names,
        found,
        None if ends is None else ends[:, 0],
        None if ends is None else ends[:, 1],
        title="Outliers by region",
        axis="number of outliers",
        heading="region",
        note="" if ends is None else f"Bars are {level_of(release.provenance.parameters)} intervals.",
    )
    return Story(
        title="Private number of outliers by region",
        answer=Answer(
            big=f"{names[top]}: {number(float(found[top]))}",
            spread="" if ends is None else spread(found[top], *ends[top], level=level_of(release.provenance.parameters)),
            sentence=f"Of {len(names):,} public regions, “{names[top]}” has the most outliers. One price paid for all of them.",
        ),
        stages=stages(
            release,
            (
                "The outliers were found once, and counted in each region.",
                "How much one row could change all these numbers together was bounded for this very table; this stays private.",
                "One vector of noise fitted to that bound was added.",
            ),
        ),
        charts=() if chart is None else (chart,),
        cautions=_unclear(names, found, ends, top),
        grids=(Grid(title="Regions", columns=("region", "rule"), rows=_rules(described)),) if described else (),
    )


def _unclear(names: tuple[str, ...], found: Floats, ends: Floats | None, top: int) -> tuple[str, ...]:
    """What intervals say against the headline."""
    if ends is None:
        return ("No error bar was paid for, so these answers have no intervals.",)
    rivals = [name for place, name in enumerate(names) if place != top and ends[place, 1] >= ends[top, 0]]
    order = f"Intervals overlap ({', '.join((names[top], *rivals[:3]))}): which region has the most is open."
    return (*((order,) if rivals else ()), *wide(float(found[top]), *ends[top].tolist()))


def _by_region(value: Mapping[str, Any]) -> tuple[tuple[str, ...], Floats, Floats | None]:
    """Names, counts, intervals (or None)."""
    counts, intervals = value.get("counts"), value.get("intervals")
    if not isinstance(counts, Mapping) or not counts:
        raise Unfit("counts")
    names = tuple(counts)
    found = np.array([number_at(counts, name) for name in names])
    ends = np.array([pair_at(intervals, name) for name in names]) if isinstance(intervals, Mapping) else None
    return names, found, ends


def _rules(described: object) -> tuple[tuple[str, ...], ...]:
    return tuple((name, shown(rule)) for name, rule in described.items()) if isinstance(described, Mapping) else ()


def _subspace(release: Release) -> Story:
    facts = release.provenance.parameters
    choice = text_at(release.value, "choice")
    subspaces = facts.get("subspaces")
    grids = (
        (Grid(title="The choices", columns=("name", "columns"), rows=_rules(subspaces)),)
        if isinstance(subspaces, Mapping)
        else ()
    )
    return Story(
        title="Private choice of the columns that have outliers",
        answer=Answer(big=choice, sentence=f"Among the public choices, “{choice}” was drawn as one with many outliers."),
        stages=stages(
            release,
            (
                "For each choice of columns, outliers were counted and turned into a score that one row moves by 1 at most.",
                "A choice was drawn with a probability that grows with its score.",
            ),
        ),
        grids=grids,
        cautions=("It is a draw: another choice with nearly as many outliers could have come out.",),
    )
