"""How releases of the summaries room are told: one answer, or one for each group, bin or share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sabun.release import Release
from sabun.summaries.kinds import ANSWERS, PARTS, condition_in, drowned, measured, parts_in
from sabun.summaries.people import EVERYBODY
from sabun.telling.charts import dots
from sabun.telling.field_words import term
from sabun.telling.generic import level_of, of_persons, promised, results, spread, stages, vacuous, wide
from sabun.telling.language import phrase, retold, said
from sabun.telling.measures import Measure
from sabun.telling.reading import Unfit, has, number_at, pair_at, text_at, texts_at, whole_at
from sabun.telling.story import Answer, Chart, Grid, Quantity, Story
from sabun.telling.words import count, plural, sentences, shown

__all__ = ["story"]

_STEPS = {
    "count": phrase("The rows in question were counted, in each group."),
    "sum": phrase(
        "Each cell was clipped to its bounds and moved to the nearest public mark; the marks were summed, in each group."
    ),
    "mean": phrase(
        "Each cell was clipped to its bounds and moved to the nearest public mark; distances to both bounds were summed."
    ),
    "variance": phrase(
        "Each cell was clipped to its bounds and moved to the nearest public mark; marks and squares were summed."
    ),
    "histogram": phrase("The rows were counted in each bin of each group."),
    "quantiles": phrase("The cells at each public mark were counted, in each group."),
}
_NAMES = {
    "count": phrase("count"),
    "sum": phrase("sum"),
    "mean": phrase("mean"),
    "variance": phrase("variance"),
    "histogram": phrase("histogram"),
    "quantiles": phrase("quantiles"),
}


class _Line(NamedTuple):
    """One answer: whose, what, between which numbers; not a number where it is too few to tell, or without an interval."""

    name: str
    found: float
    low: float
    high: float


def story(release: Release) -> Story:
    """Tells the six kinds of the room."""
    what = release.provenance.kind.partition(".")[2]
    if what not in _STEPS:
        raise Unfit(what)
    facts = release.provenance.parameters
    lines = _lines(what, release)
    told = [line for line in lines if not np.isnan(line.found)]
    people = plural(promised(release).unit)
    measure, noisy = measured(what, release), drowned(what, release)
    return Story(
        title=_title(what, facts),
        answer=_answer(what, lines, facts, _asked(release, people), measure, noisy=noisy),
        stages=stages(release, (said(_STEPS[what]), _drawn(facts))),
        charts=tuple(chart for chart in [_chart(what, told, facts, measure)] if chart is not None),
        grids=(_grid(lines, measure, noisy=noisy), _all(what, release, measure)),
        cautions=(*_cautions(what, lines, facts, noisy=noisy), *filter(None, (of_persons(release),))),
        quantities=tuple(
            Quantity(name=line.name, value=line.found, low=line.low, high=line.high, measure=measure) for line in lines
        ),
    )


def _title(what: str, facts: Mapping[str, Any]) -> str:
    told = said(_NAMES[what])
    if has(facts, "column"):
        told = said("{what} of {column}", what=told, column=text_at(facts, "column"))
    if has(facts, "by"):
        return said("Private {what} by {column}", what=told, column=text_at(facts, "by"))
    return said("Private {what}", what=told)


def _lines(what: str, release: Release) -> list[_Line]:
    value, facts = release.value, release.provenance.parameters
    groups = texts_at(facts, "groups")
    answers, ends = value.get(ANSWERS[what]), value.get("intervals")
    if not (groups and isinstance(answers, Mapping) and isinstance(ends, Mapping)):
        raise Unfit(what)
    if what not in PARTS:
        return [_line(name if has(facts, "by") else said(_NAMES[what]), answers, ends, name) for name in groups]
    parts = parts_in(what, release)
    return [line for group in groups for line in _listed(group if has(facts, "by") else "", parts, answers, ends, group)]


def _line(name: str, answers: Mapping[str, Any], ends: Mapping[str, Any], key: str) -> _Line:
    low, high = pair_at(ends, key)
    return _Line(name, number_at(answers, key) if has(answers, key) else np.nan, low, high)


def _listed(group: str, parts: tuple[str, ...], answers: Mapping[str, Any], ends: Mapping[str, Any], key: str) -> list[_Line]:
    found, pairs = answers.get(key), ends.get(key)
    if not (isinstance(found, tuple) and isinstance(pairs, tuple) and len(found) == len(pairs) == len(parts)):
        raise Unfit(key)
    lines = []
    for part, one, pair in zip(parts, found, pairs, strict=True):
        low, high = pair_at({"x": pair}, "x") if pair is not None else (np.nan, np.nan)
        lines.append(_Line(f"{group}, {part}" if group else part, number_at({"x": one}, "x"), low, high))
    return lines


def _asked(release: Release, people: str) -> str:
    facts = release.provenance.parameters
    condition = condition_in(release)
    asked = (
        said(" among the {people} with {condition}", people=people, condition=condition)
        if condition
        else said(" among the {people}", people=people)
    )
    return asked + (said(", by {column}", column=text_at(facts, "by")) if has(facts, "by") else "")


def _answer(what: str, lines: list[_Line], facts: Mapping[str, Any], asked: str, measure: Measure, *, noisy: bool) -> Answer:
    column = said(" of “{column}”", column=text_at(facts, "column")) if has(facts, "column") else ""
    sentence = said("The {what}{column}{asked}.", what=said(_NAMES[what]), column=column, asked=asked)
    if len(lines) > 1:
        below = said("They are in the table below; one price paid for all.")
        return Answer(big=count(len(lines), "answer"), sentence=sentences(sentence, below))
    [line] = lines
    if np.isnan(line.found):
        few = said("The noisy size of the group cannot be told from 0.")
        big = said("Too noisy to tell") if noisy else said("Too few to tell")
        return Answer(big=big, sentence=sentences(sentence, few))
    known = not np.isnan(line.low)
    return Answer(
        big=measure.told(line.found, line.low, line.high),
        spread=spread(line.found, line.low, line.high, level=level_of(facts), measure=measure) if known else "",
        sentence=sentence,
    )


def _drawn(facts: Mapping[str, Any]) -> str:
    mechanism = text_at(facts, "mechanism")
    if mechanism == "exponential mechanism":
        return said(
            "Marks were drawn with probabilities that fall off with the distance between their ranks and the rank asked for."
        )
    return said(
        "To each whole number {mechanism} was added, as much as one person's part in all of them together needs.",
        mechanism=retold(mechanism),
    )


def _chart(what: str, lines: list[_Line], facts: Mapping[str, Any], measure: Measure) -> Chart | None:
    return dots(
        [line.name for line in lines],
        np.array([line.found for line in lines]),
        np.array([line.low for line in lines]),
        np.array([line.high for line in lines]),
        title=said("Answers with their intervals"),
        axis=_axis(what, facts),
        heading=said("of"),
        note=said("Bars are {level} intervals, each by itself.", level=level_of(facts)),
        measure=measure,
    )


def _axis(what: str, facts: Mapping[str, Any]) -> str:
    if what in ("count", "histogram"):
        return said("number of rows")
    return said("{what} of {column}", what=said(_NAMES[what]), column=text_at(facts, "column"))


def _grid(lines: list[_Line], measure: Measure, *, noisy: bool) -> Grid:
    without = said("too noisy to tell") if noisy else said("too few to tell")
    rows = tuple(
        (
            line.name,
            without if np.isnan(line.found) else measure.bare(line.found, line.low, line.high),
            *measure.bare_ends(line.low, line.high),
        )
        for line in lines
    )
    columns = (said("of"), measure.named(said("answer")), said("from"), said("to"))
    return Grid(title=said("Answers"), columns=columns, rows=rows)


def _all(what: str, release: Release, measure: Measure) -> Grid:
    """Every result by name; the one group that there is without `by` needs none."""
    single = not has(release.provenance.parameters, "by")
    return results(
        release,
        measures={ANSWERS[what]: measure, "intervals": measure},
        named=lambda name: term(name.removesuffix(f".{EVERYBODY}") if single else name),
    )


def _cautions(what: str, lines: list[_Line], facts: Mapping[str, Any], *, noisy: bool) -> tuple[str, ...]:
    found: list[str] = []
    few = [line.name for line in lines if np.isnan(line.found)]
    if few and noisy:
        found.append(said("Too much noise to tell anything about: {names}.", names=shown(few)))
    elif few:
        found.append(said("Too few rows to tell anything about: {names}.", names=shown(few)))
    if all(np.isnan(line.low) for line in lines):
        found.append(said("No intervals were paid for."))
    records = whole_at(facts, "records") if has(facts, "records") else 0
    if what == "count" and len(lines) == 1:
        [line] = lines
        found += [said("The interval holds nearly every possible number.")] if vacuous(line.low, line.high, records) else []
        found += wide(line.found, line.low, line.high)
    return tuple(found)
