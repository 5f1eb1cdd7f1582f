"""How releases of the outliers room are told: a count, counts by region, a choice of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sabun.release import Release
from sabun.telling.charts import dots
from sabun.telling.generic import level_of, promised, results, spread, stages, vacuous, wide
from sabun.telling.language import phrase, said
from sabun.telling.reading import Floats, Unfit, has, number_at, pair_at, text_at, whole_at
from sabun.telling.rounding import rounded
from sabun.telling.story import Answer, Chart, Grid, Quantity, Story
from sabun.telling.words import number, plural, sentences, shown

__all__ = ["story"]

_LAWS = {
    "power": phrase("whole-number noise with a power tail"),
    "laplace": phrase("Laplace noise"),
    "gaussian": phrase("Gaussian noise"),
    "paper": phrase("the noise the paper prints"),
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
    charts = [_interval(found, low, high, facts)] if known else []
    return Story(
        title=said("Private number of outliers"),
        answer=Answer(
            big=said("{low} to {high}", low=number(low), high=number(high)) if empty else rounded(found, low, high),
            spread=spread(found, low, high, level=level_of(facts)) if known and not empty else "",
            sentence=sentences(
                _meaning(
                    None if empty else rounded(found, low, high), records, plural(promised(release).unit), k, number(radius)
                ),
                said("The interval holds the exact count with {level} confidence.", level=level_of(facts)) if known else "",
            ),
        ),
        stages=stages(release, _steps(facts, known)),
        charts=tuple(chart for chart in charts if chart is not None),
        grids=(results(release),),
        cautions=_cautions(found, low, high, known=known, empty=empty),
        quantities=(_quantity(said("number of outliers"), found, (low, high) if known else None),),
    )


def _quantity(name: str, found: float, ends: Sequence[float] | None) -> Quantity:
    low, high = (math.nan, math.nan) if ends is None else ends
    return Quantity(name=name, value=float(found), low=low, high=high)


def _meaning(found: str | None, records: int, people: str, k: int, radius: str) -> str:
    """What was counted, or that the count says nothing."""
    of_all = said(" of the {records:,}", records=records) if records else ""
    if found is None:
        return said(
            "Nothing can be said about how many{of_all} {people} are outliers: fewer than {k:,} others lie within {radius} of "
            "each.",
            of_all=of_all,
            people=people,
            k=k,
            radius=radius,
        )
    return said(
        "About {found}{of_all} {people} are outliers: fewer than {k:,} others lie within {radius} of each.",
        found=found,
        of_all=of_all,
        people=people,
        k=k,
        radius=radius,
    )


def _steps(facts: Mapping[str, Any], known: bool) -> tuple[str, ...]:
    mechanism = text_at(facts, "mechanism")
    steps = [said("The neighbours of each row within the radius were counted, and from them the exact number of outliers.")]
    if mechanism.startswith("global"):
        steps.append(said("Noise was drawn for the worst table of this shape, and added."))
    else:
        law = said(_LAWS.get(mechanism, mechanism))
        steps.append(
            said("How much one row could change that number was bounded for this very table; this bound stays private.")
        )
        steps.append(said("To the number, {law} fitted to that bound was added.", law=law))
    if known and has(facts, "error_bar_epsilon"):
        paid = shown(facts["error_bar_epsilon"])
        steps.append(said("The error bar was paid for as well: epsilon {epsilon} of the whole.", epsilon=paid))
    return (*steps, said("A result outside the possible range was moved to its end."))


def _cautions(found: int, low: float, high: float, *, known: bool, empty: bool) -> tuple[str, ...]:
    if not known:
        return (said("No error bar was paid for, so this answer has no interval."),)
    if empty:
        return (
            said(
                "This release says nothing: its interval holds nearly every possible number, and the {found:,} in the file may "
                "be noise alone. It takes a larger table, fewer columns or a larger epsilon; ask “plan” before paying again.",
                found=found,
            ),
        )
    return wide(found, low, high)


def _interval(found: int, low: float, high: float, facts: Mapping[str, Any]) -> Chart | None:
    return dots(
        [said("outliers")],
        np.array([float(found)]),
        np.array([low]),
        np.array([high]),
        title=said("The count with its interval"),
        axis=said("number of outliers"),
        heading="",
        note=said("The bar is the {level} interval.", level=level_of(facts)),
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
        title=said("Outliers by region"),
        axis=said("number of outliers"),
        heading=said("region"),
        note="" if ends is None else said("Bars are {level} intervals.", level=level_of(release.provenance.parameters)),
    )
    return Story(
        title=said("Private number of outliers by region"),
        answer=Answer(
            big=f"{names[top]}: {_told(found, ends, top)}",
            spread="" if ends is None else spread(found[top], *ends[top], level=level_of(release.provenance.parameters)),
            sentence=said(
                "Of {regions:,} public regions, “{name}” has the largest estimate. One price paid for all of them."
                if ends is None or _rivals(names, ends, top)
                else "Of {regions:,} public regions, “{name}” has the most outliers. One price paid for all of them.",
                regions=len(names),
                name=names[top],
            ),
        ),
        stages=stages(
            release,
            (
                said("The outliers were found once, and counted in each region."),
                said(
                    "How much one row could change all these numbers together was bounded for this very table; this stays "
                    "private."
                ),
                said("One vector of noise fitted to that bound was added."),
            ),
        ),
        charts=() if chart is None else (chart,),
        cautions=_unclear(names, found, ends, top),
        quantities=tuple(
            _quantity(name, found[place], None if ends is None else ends[place].tolist()) for place, name in enumerate(names)
        ),
        grids=(Grid(title=said("Regions"), columns=(said("region"), said("rule")), rows=_rules(described)),)
        if described
        else (),
    )


def _unclear(names: tuple[str, ...], found: Floats, ends: Floats | None, top: int) -> tuple[str, ...]:
    """What intervals say against the headline."""
    if ends is None:
        return (said("No error bar was paid for, so these answers have no intervals."),)
    rivals = _rivals(names, ends, top)
    order = said(
        "Intervals overlap ({names}): which region has the most is open.", names=said(", ").join((names[top], *rivals[:3]))
    )
    return (*((order,) if rivals else ()), *wide(float(found[top]), *ends[top].tolist()))


def _told(found: Floats, ends: Floats | None, place: int) -> str:
    return number(float(found[place])) if ends is None else rounded(float(found[place]), *ends[place].tolist())


def _rivals(names: tuple[str, ...], ends: Floats, top: int) -> list[str]:
    """Regions that may have as many as the one with the largest estimate."""
    return [name for place, name in enumerate(names) if place != top and ends[place, 1] >= ends[top, 0]]


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
        (Grid(title=said("The choices"), columns=(said("name"), said("columns")), rows=_rules(subspaces)),)
        if isinstance(subspaces, Mapping)
        else ()
    )
    return Story(
        title=said("Private choice of the columns that have outliers"),
        answer=Answer(
            big=choice,
            sentence=said("Among the public choices, “{choice}” was drawn as one with many outliers.", choice=choice),
        ),
        stages=stages(
            release,
            (
                said(
                    "For each choice of columns, outliers were counted and turned into a score that one row moves by 1 at most."
                ),
                said("A choice was drawn with a probability that grows with its score."),
            ),
        ),
        grids=grids,
        cautions=(said("It is a draw: another choice with nearly as many outliers could have come out."),),
    )
