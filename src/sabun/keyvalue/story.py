"""How releases of the keyvalue room are told: frequencies and means by key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sabun.release import Release
from sabun.telling.charts import MOST_ROWS, dots
from sabun.telling.generic import stages
from sabun.telling.language import phrase, said
from sabun.telling.reading import Floats, Unfit, has, number_at, numbers_at, text_at, texts_at
from sabun.telling.rounding import between, rounded
from sabun.telling.story import Answer, Chart, Grid, Quantity, Story
from sabun.telling.words import count, number

__all__ = ["story"]


_CUT = phrase(
    "People may hold more keys than a report tells of: frequencies come out too small, and may lie above their intervals, at "
    "most by the largest bias where it is given."
)


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The estimates, the most frequent key first; NaN where a number does not exist, no means where none were asked for."""

    keys: tuple[str, ...]
    frequency: Floats
    frequency_ends: Floats
    mean: Floats | None
    mean_ends: Floats | None
    reports: Floats
    flags: tuple[str, ...]
    cut: bool

    @classmethod
    def of(cls, release: Release) -> _Rows:
        value = release.value
        keys = texts_at(value, "key")
        size = len(keys)
        valued = has(value, "mean") or not has(release.provenance.parameters, "means")
        names = ("frequency", "frequency_low", "frequency_high", "n", *(("mean", "mean_low", "mean_high") if valued else ()))
        columns = {name: numbers_at(value, name, size=size) for name in names}
        bounds = numbers_at(value, "bias_bound", size=size) if has(value, "bias_bound") else np.zeros(size)
        flags = texts_at(value, "flags", size=size) if has(value, "flags") else ("",) * size
        if not size or np.isnan(columns["frequency"]).all():
            raise Unfit("frequency")
        order = np.argsort(-np.nan_to_num(columns["frequency"], nan=-1.0), kind="stable")
        weak = np.array(["weak" in flags[place] for place in order])
        return cls(
            keys=tuple(keys[place] for place in order),
            frequency=columns["frequency"][order],
            frequency_ends=np.column_stack([columns["frequency_low"], columns["frequency_high"]])[order],
            mean=np.where(weak, np.nan, columns["mean"][order]) if valued else None,
            mean_ends=np.column_stack([columns["mean_low"], columns["mean_high"]])[order] if valued else None,
            reports=columns["n"][order],
            flags=tuple(flags[place] for place in order),
            cut=bool(np.any(bounds != 0)),
        )


def story(release: Release) -> Story:
    """Tells what people hold, on the whole."""
    rows, facts = _Rows.of(release), release.provenance.parameters
    level = f"{number(100 * number_at(facts, 'confidence'))} %"
    alone, together = "Bars are {level} intervals.", "Bars are {level} intervals, right on average over the keys, not for each."
    note = said(together if _on_average(release) else alone, level=level)
    return Story(
        title=said("What people hold, collected without learning anyone's data"),
        answer=Answer(
            big=f"{rows.keys[0]}: {_percent(rows, 0)} %",
            spread=said("between {low} and {high} %", **_ends(rows, 0)),
            sentence=_most(rows),
        ),
        stages=stages(release, _steps(release)),
        charts=tuple(chart for chart in (_frequencies(rows, note), _means(rows, note)) if chart is not None),
        grids=(_table(rows),),
        cautions=_cautions(rows),
        quantities=tuple(_quantities(rows)),
    )


def _most(rows: _Rows) -> str:
    """Which key is held by the most people, as far as the intervals tell."""
    rivals = [
        key for key, high in zip(rows.keys[1:], rows.frequency_ends[1:, 1], strict=True) if high >= rows.frequency_ends[0, 0]
    ]
    keys = count(len(rows.keys), "key")
    if not rivals:
        return said("Of {keys}, “{key}” is held by the most people.", keys=keys, key=rows.keys[0])
    return said(
        "Of {keys}, “{key}” has the largest estimate; intervals overlap, so which one is held by the most people is open "
        "({names}).",
        keys=keys,
        key=rows.keys[0],
        names=said(", ").join((rows.keys[0], *rivals[:3])) + (" …" if len(rivals) > 3 else ""),
    )


def _quantities(rows: _Rows) -> Iterator[Quantity]:
    for place, key in sorted(enumerate(rows.keys), key=lambda entry: entry[1]):
        low, high = (100 * rows.frequency_ends[place]).tolist()
        name = said("{key}: share of people (%)", key=key)
        yield Quantity(name=name, value=100 * float(rows.frequency[place]), low=low, high=high)
        if rows.mean is not None and rows.mean_ends is not None:
            low, high = rows.mean_ends[place].tolist()
            yield Quantity(name=said("{key}: mean", key=key), value=float(rows.mean[place]), low=low, high=high)


def _on_average(release: Release) -> bool:
    facts = release.provenance.parameters
    return has(facts, "interval") and text_at(facts, "interval") == "average"


def _steps(release: Release) -> tuple[str, ...]:
    facts = release.provenance.parameters
    protocol = text_at(facts, "protocol") if has(facts, "protocol") else release.guarantee.mechanism
    return (
        said(
            "Each person's own device randomised what the person holds with the protocol “{protocol}”, booked the cost, and "
            "sent a few bytes of the same size as everybody's.",
            protocol=protocol,
        ),
        said("The collector counted these bytes by key; it never saw anything else."),
        said(
            "From the counts, frequencies and means were estimated with “{method}”; this costs no privacy.",
            method=text_at(facts, "method"),
        ),
    )


def _cautions(rows: _Rows) -> tuple[str, ...]:
    weak, pulled = (sum(word in words for words in rows.flags) for word in ("weak", "pulled"))
    few = "For {keys} so few people seem to hold the key that it may be held by nobody."
    if rows.mean is not None:
        few = "For {keys} so few people seem to hold the key that a mean would be noise; it is left out."
    told = (
        (weak, few),
        (pulled, "For {keys} the other keys pulled the estimate out of the interval of its own reports."),
    )
    unasked = () if rows.mean is not None else (said("Values were not asked for: there are no means."),)
    cut = (said(_CUT),) if rows.cut else ()
    return (*unasked, *cut, *(said(words, keys=count(some, "key")) for some, words in told if some))


def _frequencies(rows: _Rows, note: str) -> Chart | None:
    return dots(
        rows.keys[:MOST_ROWS],
        100 * rows.frequency[:MOST_ROWS],
        100 * rows.frequency_ends[:MOST_ROWS, 0],
        100 * rows.frequency_ends[:MOST_ROWS, 1],
        title=said("How many people hold each key"),
        axis=said("share of people (%)"),
        heading=said("key"),
        note=note,
    )


def _means(rows: _Rows, note: str) -> Chart | None:
    if rows.mean is None or rows.mean_ends is None:
        return None
    return dots(
        rows.keys[:MOST_ROWS],
        rows.mean[:MOST_ROWS],
        rows.mean_ends[:MOST_ROWS, 0],
        rows.mean_ends[:MOST_ROWS, 1],
        title=said("The mean value among those who hold the key"),
        axis=said("mean value"),
        heading=said("key"),
        note=note,
    )


def _table(rows: _Rows) -> Grid:
    valued = () if rows.mean is None else (said("mean"), said("interval of the mean"))
    columns = (said("key"), said("share of people"), said("interval"), *valued, said("reports"), said("remarks"))
    cells = tuple(
        (
            key,
            f"{_percent(rows, place)} %",
            said("{low} to {high} %", **_ends(rows, place)),
            *_mean_cells(rows, place),
            number(float(rows.reports[place])),
            rows.flags[place],
        )
        for place, key in enumerate(rows.keys[:MOST_ROWS])
    )
    left = len(rows.keys) - MOST_ROWS
    note = said("{more} in the release file.", more=count(left, "more key")) if left > 0 else ""
    return Grid(title=said("Estimates by key"), columns=columns, rows=cells, note=note)


def _mean_cells(rows: _Rows, place: int) -> tuple[str, ...]:
    if rows.mean is None or rows.mean_ends is None:
        return ()
    low, high = between(*map(float, rows.mean_ends[place]))
    return rounded(float(rows.mean[place]), *map(float, rows.mean_ends[place])), said("{low} to {high}", low=low, high=high)


def _percent(rows: _Rows, place: int) -> str:
    low, high = 100 * rows.frequency_ends[place]
    return rounded(100 * float(rows.frequency[place]), float(low), float(high))


def _ends(rows: _Rows, place: int) -> dict[str, str]:
    low, high = between(*(100 * rows.frequency_ends[place]).tolist())
    return {"low": low, "high": high}
