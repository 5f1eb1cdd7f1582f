"""How releases of the regression room are told: coefficients with intervals."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabun.errors import SabunError
from sabun.regression.coefficients import constant_of
from sabun.release import Release
from sabun.telling.charts import dots
from sabun.telling.generic import spread, stages
from sabun.telling.language import retold, said
from sabun.telling.measures import PLAIN, Measure, measure_in
from sabun.telling.reading import Floats, Unfit, has, numbers_at, text_at, texts_at
from sabun.telling.story import Answer, Grid, Quantity, Story
from sabun.telling.words import count, listed, sentences, shown

__all__ = ["story"]

_SUMS = ("regression.staged", "regression.rounds", "regression.ssp-gauss", "regression.ssp-laplace")


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A linear model in original units: the constant is the last coefficient."""

    names: tuple[str, ...]
    coefficients: Floats
    ends: Floats | None
    ranges: Floats
    target: str
    organisations: tuple[str, ...]
    findings: tuple[str, ...]
    measures: tuple[Measure, ...]
    goal: Measure
    steps: tuple[Measure, ...]
    constant: str

    @property
    def moves(self) -> Floats:
        """What each column does to the target over its whole public range."""
        return self.ranges * self.coefficients[:-1]

    @property
    def move_ends(self) -> Floats | None:
        """The intervals of `moves`."""
        return None if self.ends is None else self.ranges[:, None] * self.ends[:-1]

    def told(self, place: int) -> str:
        """A coefficient with the digits that its interval leaves."""
        value = float(self.coefficients[place])
        pair = (value, value) if self.ends is None else self.ends[place].tolist()
        return self.measures[place].told(value, *pair)

    def step(self, place: int) -> str:
        """What one step of a feature does to the target; nothing where its whole range is one step, as a label's is."""
        if self.ranges[place] == 1:
            return ""
        value, unit = float(self.coefficients[place]), self.steps[place].single
        pair = (value, value) if self.ends is None else self.ends[place].tolist()
        amount = self.goal.told(value, *pair)
        if not unit:
            return said("For each step of 1 it is {amount}.", amount=amount)
        return said("For each step of 1 {unit} it is {amount}.", unit=unit, amount=amount)


def story(release: Release) -> Story:
    """Tells the coefficients that follow from the released numbers; computing them costs no privacy."""
    found = _model(release) if release.provenance.kind == "regression.model" else _estimate(release)
    return Story(
        title=said("Private linear model for {target}", target=found.target),
        answer=_answer(found),
        stages=stages(release, _steps(release)),
        charts=tuple(chart for chart in (_effects(found),) if chart is not None),
        grids=(_table(found), *_sizes(release)),
        cautions=(*map(retold, found.findings), *_cautions(found)),
        quantities=tuple(_quantities(found)),
    )


def _answer(found: _Line) -> Answer:
    """The column with the largest effect over its range among those whose direction is known."""
    moves, ends = found.moves, found.move_ends
    columns, joined = count(len(found.names), "column"), count(len(found.organisations), "organisation")
    source = said("The model is from {organisations}.", organisations=joined)
    clear = [place for place in range(len(found.names)) if ends is None or ends[place, 0] > 0 or ends[place, 1] < 0]
    if not clear:
        nobody = said(
            "Of {columns}, none has an interval without 0: in which direction they move “{target}” is open for all.",
            columns=columns,
            target=found.target,
        )
        return Answer(big=said("No clear effect"), sentence=sentences(nobody, source))
    top = max(clear, key=lambda place: abs(np.nan_to_num(moves[place])))
    step = found.step(top)
    if ends is None:
        told = found.goal.exactly(float(moves[top]))
        sentence = said(
            "Of {columns}, “{name}” has the largest estimate of what it does to “{target}” over its whole public range.",
            columns=columns,
            name=found.names[top],
            target=found.target,
        )
        return Answer(big=f"{found.names[top]}: {told}", sentence=sentences(sentence, step, source))
    low, high = ends[top].tolist()
    told = found.goal.told(float(moves[top]), low, high)
    around = spread(float(moves[top]), low, high, level="95 %", measure=found.goal)
    rivals = [name for place, name in enumerate(found.names) if place != top and _farthest(ends[place]) >= _nearest(ends[top])]
    words = "Of {columns}, “{name}” moves “{target}” the most over its whole public range: by {amount}."
    if rivals:
        words = "Of {columns}, “{name}” has the largest clear effect on “{target}” over its whole public range: {amount}."
    sentence = said(words, columns=columns, name=found.names[top], target=found.target, amount=told)
    order = (
        said("Intervals overlap ({names}): which one moves it the most is open.", names=listed(rivals[:3])) if rivals else ""
    )
    sure = said("The intervals leave no doubt about the direction of {names}.", names=listed(_named(found, clear)[:6]))
    return Answer(big=f"{found.names[top]}: {told}", spread=around, sentence=sentences(sentence, step, order, sure, source))


def _named(found: _Line, places: list[int]) -> list[str]:
    return [found.names[place] for place in places]


def _farthest(ends: Floats) -> float:
    return float(np.nanmax(np.abs(ends)))


def _nearest(ends: Floats) -> float:
    return 0.0 if ends[0] <= 0 <= ends[1] else float(np.min(np.abs(ends)))


def _quantities(found: _Line) -> list[Quantity]:
    names = (*found.names, found.constant)
    ends = np.full((len(names), 2), np.nan) if found.ends is None else found.ends
    pairs = zip(names, found.coefficients, ends, found.measures, strict=True)
    return [
        Quantity(name=name, value=float(value), low=float(low), high=float(high), measure=measure)
        for name, value, (low, high), measure in pairs
    ]


def _estimate(release: Release) -> _Line:
    from sabun.regression import combine

    method = "pool" if release.provenance.kind in _SUMS else "average"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it warns of is in the findings, which the page shows
            model = combine([release], method=method)
    except SabunError as error:
        raise Unfit(str(error)) from None
    study = model.study
    constant = constant_of(model)
    ends = None if constant.interval is None else np.vstack([model.conf_int(), constant.interval])
    return _Line(
        names=model.feature_names_,
        coefficients=np.append(model.coef_, constant.value),
        ends=ends,
        ranges=model.feature_ranges_,
        target=study.target.name,
        organisations=model.organisations,
        findings=model.findings,
        constant=said("(constant at {where})", where=constant.where) if constant.where else said("(constant)"),
        **_measured(model.feature_names_, {c.name: Measure.of(c) for c in study.features.columns}, Measure.of(study.target)),
    )


def _model(release: Release) -> _Line:
    """A model that was joined from several releases."""
    value = release.value
    names = texts_at(value, "features")
    if not names:
        raise Unfit("features")
    size = len(names) + 1
    ends = None
    if has(value, "low"):
        ends = np.column_stack([numbers_at(value, name, size=size) for name in ("low", "high")])
    return _Line(
        names=names,
        coefficients=numbers_at(value, "coefficients", size=size),
        ends=ends,
        ranges=numbers_at(value, "ranges", size=len(names)),
        target=text_at(value, "target"),
        organisations=texts_at(value, "organisations"),
        findings=(said("The constant is where every number is 0; a date is 0 on 1970-01-01."),)
        if _dated(release, names)
        else (),
        constant=said("(constant)"),
        **_measured(names, {name: measure_in(release, name) for name in names}, measure_in(release, text_at(value, "target"))),
    )


def _dated(release: Release, names: tuple[str, ...]) -> bool:
    return any(measure_in(release, name).dates for name in names)


def _measured(names: tuple[str, ...], features: Mapping[str, Measure], target: Measure) -> dict[str, Any]:
    """What coefficients, their steps and changes of the target count."""
    steps = tuple(features.get(name, PLAIN).apart for name in names)
    return {"measures": (*map(target.per, steps), target), "goal": target.apart, "steps": steps}


def _steps(release: Release) -> tuple[str, ...]:
    if release.provenance.kind == "regression.model":
        return (
            said("Each organisation added up products of its own columns in whole numbers and added noise; only that left it."),
            said(
                "The noisy sums were added up and made into one model, in which what noise hides counts less; this costs no "
                "privacy."
            ),
        )
    if release.provenance.kind in _SUMS:
        return (
            said("Each row was scaled by its public bounds, and shortened where it was too long."),
            said("Products of columns were added up in whole numbers, and noise was added to each sum."),
            said("The coefficients shown here follow from the noisy sums; computing them costs no privacy."),
        )
    return (said("Coefficients were fitted under a penalty with noise inside; the fit itself is what was released."),)


def _effects(found: _Line) -> Any:
    ends = found.move_ends
    return dots(
        found.names,
        found.moves,
        None if ends is None else ends[:, 0],
        None if ends is None else ends[:, 1],
        title=said("What each column does"),
        axis=said("change of {target}", target=found.target),
        zero=True,
        heading=said("column"),
        measure=found.goal,
        note=sentences(
            said(
                "The change of the prediction when a column moves over its whole public range (a label: from absent to "
                "present)."
            ),
            ""
            if found.ends is None
            else said("Bars are 95 % intervals with sampling noise, privacy noise and what the noise hides."),
        ),
    )


def _table(found: _Line) -> Grid:
    names = (*found.names, found.constant)
    title, columns = said("Coefficients in original units"), (said("column"), said("coefficient"))
    if found.ends is None:
        rows = tuple((name, found.told(place)) for place, name in enumerate(names))
        return Grid(title=title, columns=columns, rows=rows)
    pairs = [measure.bare_ends(*pair) for measure, pair in zip(found.measures, found.ends.tolist(), strict=True)]
    full = tuple(
        (name, found.told(place), said("{low} to {high}", low=low, high=high))
        for place, (name, (low, high)) in enumerate(zip(names, pairs, strict=True))
    )
    return Grid(title=title, columns=(*columns, said("95 % interval")), rows=full)


def _sizes(release: Release) -> tuple[Grid, ...]:
    names = {"organisation": said("organisation"), "rows": said("rows")}
    facts = [(words, shown(release.value[name])) for name, words in names.items() if has(release.value, name)]
    columns = (said("name"), said("value"))
    return (Grid(title=said("Released with it"), columns=columns, rows=tuple(facts)),) if facts else ()


def _cautions(found: _Line) -> tuple[str, ...]:
    if found.ends is None:
        return (said("Released coefficients carry no precision, so there are no intervals."),)
    return (
        said(
            "The intervals assume that one linear model holds for everybody, with coefficients no longer than the study's "
            "bound; residuals may have any tails and vary more in one organisation than in another, not within one. They do "
            "not hold bias from shortened rows."
        ),
    )
