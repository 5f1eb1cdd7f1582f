"""How releases of the density room are told: weights for a public table."""

from __future__ import annotations

import math

import numpy as np

from sabun.density.inference import uncovered_interval
from sabun.density.law import NoiseLaw
from sabun.density.marginals import marginals as beside
from sabun.release import Release
from sabun.telling.charts import histogram, line
from sabun.telling.generic import results, stages
from sabun.telling.language import phrase, said
from sabun.telling.reading import Floats, Unfit, has, number_at, numbers_at, text_at, texts_at, whole_at
from sabun.telling.rounding import between, rounded
from sabun.telling.story import Answer, Chart, Grid, Quantity, Story
from sabun.telling.words import count, number

__all__ = ["beside", "story"]

_FEW = 0.1
_SHOWN = 10


def story(release: Release) -> Story:
    """Tells how the weights lie and how many rows they are worth."""
    facts = release.provenance.parameters
    weights = numbers_at(release.value, "weights")
    total, squares = float(weights.sum()), float((weights**2).sum())
    if not len(weights) or not np.isfinite(squares) or weights.min() < 0 or squares == 0:
        raise Unfit("weights")
    worth = total**2 / squares
    columns = texts_at(facts, "columns") if has(facts, "columns") else ()
    named = said(", ").join(columns[:6]) + (" …" if len(columns) > 6 else "")
    return Story(
        title=said("Weights that make a public table answer for a private one"),
        answer=Answer(
            big=count(len(weights), "weight"),
            spread=said("worth {rows} rows", rows=number(round(worth))),
            sentence=said(
                "Weigh the public rows with these numbers, in the table's order, and averages{about} come close to "
                "those of the private table. Anyone may do so as often as they like at no further cost.",
                about=said(" about {columns}", columns=named) if columns else "",
            ),
        ),
        stages=stages(release, _steps(release)),
        charts=tuple(chart for chart in (_histogram(weights), _shares(weights)) if chart is not None),
        grids=(_largest(weights), results(release, short=True)),
        cautions=(*_cautions(weights, worth), _support(release)),
        quantities=_quantities(release, worth),
    )


def _steps(release: Release) -> tuple[str, ...]:
    facts = release.provenance.parameters
    rank = said(" of {rank:,} numbers", rank=whole_at(facts, "rank")) if has(facts, "rank") else ""
    if has(release.value, "embedding"):
        return (
            said("From the public table alone, features were fixed whose averages describe a table."),
            said(
                "The average{rank} over the private rows was taken in whole numbers, and noise was added to it once.", rank=rank
            ),
            said("Weights were found under which the public rows have nearly those averages, as smooth as the noise allows."),
        )
    method = text_at(facts, "method") if has(facts, "method") else release.provenance.mechanism
    return (said("A density ratio was fitted with “{name}”, with noise on everything that touches private rows.", name=method),)


def _cautions(weights: Floats, worth: float) -> tuple[str, ...]:
    found = []
    if worth < _FEW * len(weights):
        found.append(
            said(
                "Few public rows carry most of the weight (worth {worth} of {rows:,}): the public table resembles the private "
                "one only in part, and answers are rough.",
                worth=number(round(worth)),
                rows=len(weights),
            )
        )
    if (empty := int((weights == 0).sum())) > 0:
        rows = count(empty, "public row")
        found.append(said("{rows} got no weight: nothing like them seems to be in the private table.", rows=rows))
    return tuple(found)


def _quantities(release: Release, worth: float) -> tuple[Quantity, ...]:
    rows = Quantity(name=said("worth in unweighted rows"), value=worth, low=math.nan, high=math.nan)
    if not has(release.value, "uncovered", "noise_sd"):
        return (rows,)
    share, (low, high) = _uncovered(release)
    return rows, Quantity(
        name=said("private rows unlike any public one (%)"), value=100 * share, low=100 * low, high=100 * high
    )


def _uncovered(release: Release) -> tuple[float, tuple[float, float]]:
    """The share of private rows off the public support, and where it lies with 95 % confidence."""
    share, noise = (number_at(release.value, name) for name in ("uncovered", "noise_sd"))
    if not (math.isfinite(share) and math.isfinite(noise) and noise >= 0):
        raise Unfit("uncovered")
    counts = release.provenance.parameters.get("relation") == "add-remove"
    size = len(numbers_at(release.value, "embedding")) + 1 + counts
    law = NoiseLaw(sd=noise, dimension=size, pure=not release.guarantee.cost[1])
    return min(1.0, max(0.0, share)), uncovered_interval(share, law.reach(0.95), counts=counts)


def _support(release: Release) -> str:
    """What the release says about private rows that no public row resembles."""
    if not has(release.value, "uncovered"):
        return said("Answers hold only where the public table has rows at all; it cannot speak of people it does not resemble.")
    share, (low, high) = _uncovered(release)
    return said(
        "About {about} % of the private rows (95 %: {low} to {high} %) are unlike any public row. Answers are about the "
        "others, or, where bounds are declared, allow for them.",
        about=rounded(100 * share, 100 * low, 100 * high),
        **dict(zip(("low", "high"), between(100 * low, 100 * high), strict=True)),
    )


def _histogram(weights: Floats) -> Chart | None:
    return histogram(
        weights,
        title=said("How large the weights are"),
        axis=said("weight"),
        things=phrase("public row"),
        note=said("A weight of 1 means as common in the private table as in the public one."),
    )


def _shares(weights: Floats) -> Chart | None:
    """How much of the weight the heaviest rows hold."""
    heaviest = np.sort(weights)[::-1].cumsum() / weights.sum()
    share = np.arange(1, len(weights) + 1) / len(weights)
    few = np.unique(np.linspace(0, len(weights) - 1, 200).astype(int))
    return line(
        100 * share[few],
        100 * heaviest[few],
        title=said("How the weight is shared out"),
        x_axis=said("heaviest public rows (%)"),
        y_axis=said("their share of the weight (%)"),
        note=said("A straight line from corner to corner would mean equal weights."),
    )


def _largest(weights: Floats) -> Grid:
    order = np.argsort(-weights, kind="stable")[:_SHOWN]
    rows = tuple((f"{place + 1:,}", number(float(weights[place]))) for place in order)
    columns = (said("row of the public table"), said("weight"))
    return Grid(title=said("The heaviest public rows"), columns=columns, rows=rows)
