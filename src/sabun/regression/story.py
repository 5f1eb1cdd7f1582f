"""How releases of the regression room are told: coefficients with intervals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabun.errors import SabunError
from sabun.release import Release
from sabun.telling.charts import dots
from sabun.telling.generic import spread, stages
from sabun.telling.language import retold, said
from sabun.telling.reading import Floats, Unfit, has, numbers_at, text_at, texts_at
from sabun.telling.story import Answer, Grid, Story
from sabun.telling.words import count, listed, number, sentences, shown

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


def story(release: Release) -> Story:
    """Tells the coefficients that follow from the released numbers; computing them costs no privacy."""
    found = _model(release) if release.provenance.kind == "regression.model" else _estimate(release)
    clear = _clear(found)
    top = int(np.argmax(np.abs(np.nan_to_num(found.ranges * found.coefficients[:-1]))))
    coefficient = float(found.coefficients[top])
    sentence = said(
        "Of {columns}, “{name}” moves “{target}” the most: by {amount} for each step of 1. The model is from {organisations}.",
        columns=count(len(found.names), "column"),
        name=found.names[top],
        target=found.target,
        amount=number(coefficient),
        organisations=count(len(found.organisations), "organisation"),
    )
    if clear:
        sure = said("The intervals leave no doubt about the direction of {names}.", names=listed(clear[:6]))
        sentence = sentences(sentence, sure)
    return Story(
        title=said("Private linear model for {target}", target=found.target),
        answer=Answer(
            big=f"{found.names[top]}: {number(coefficient)}",
            spread="" if found.ends is None else spread(coefficient, *found.ends[top].tolist(), level="95 %"),
            sentence=sentence,
        ),
        stages=stages(release, _steps(release)),
        charts=tuple(chart for chart in (_effects(found),) if chart is not None),
        grids=(_table(found), *_sizes(release)),
        cautions=(*map(retold, found.findings), *_cautions(found)),
    )


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
    ends = None if model.covariance is None else np.vstack([model.conf_int(), model.intercept_interval()])
    return _Line(
        names=model.feature_names_,
        coefficients=np.append(model.coef_, model.intercept_),
        ends=ends,
        ranges=model.feature_ranges_,
        target=study.target.name,
        organisations=model.organisations,
        findings=model.findings,
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
        findings=(),
    )


def _clear(found: _Line) -> list[str]:
    if found.ends is None:
        return []
    return [name for name, (low, high) in zip(found.names, found.ends, strict=False) if low > 0 or high < 0]


def _steps(release: Release) -> tuple[str, ...]:
    if release.provenance.kind == "regression.model":
        return (
            said("Each organisation added up products of its own columns in whole numbers and added noise; only that left it."),
            said("The noisy sums were weighed by how noisy they are and joined into one model; this costs no privacy."),
        )
    if release.provenance.kind in _SUMS:
        return (
            said("Each row was scaled by its public bounds, and shortened where it was too long."),
            said("Products of columns were added up in whole numbers, and noise was added to each sum."),
            said("The coefficients shown here follow from the noisy sums; computing them costs no privacy."),
        )
    return (said("Coefficients were fitted under a penalty with noise inside; the fit itself is what was released."),)


def _effects(found: _Line) -> Any:
    moves = found.ranges * found.coefficients[:-1]
    low, high = (None, None) if found.ends is None else (found.ranges * found.ends[:-1, 0], found.ranges * found.ends[:-1, 1])
    return dots(
        found.names,
        moves,
        low,
        high,
        title=said("What each column does"),
        axis=said("change of {target}", target=found.target),
        zero=True,
        heading=said("column"),
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
    names = (*found.names, said("(constant)"))
    title, columns = said("Coefficients in original units"), (said("column"), said("coefficient"))
    if found.ends is None:
        rows = tuple((name, number(float(c))) for name, c in zip(names, found.coefficients, strict=True))
        return Grid(title=title, columns=columns, rows=rows)
    full = tuple(
        (name, number(float(c)), said("{low} to {high}", low=number(float(low)), high=number(float(high))))
        for name, c, (low, high) in zip(names, found.coefficients, found.ends, strict=True)
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
            "bound; residuals may vary more in one organisation than in another. They do not hold bias from shortened rows."
        ),
    )
