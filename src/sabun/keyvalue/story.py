"""How releases of the keyvalue room are told: frequencies and means by key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabun.release import Release
from sabun.telling.charts import MOST_ROWS, dots
from sabun.telling.generic import stages
from sabun.telling.reading import Floats, Unfit, has, number_at, numbers_at, text_at, texts_at
from sabun.telling.story import Answer, Chart, Grid, Story
from sabun.telling.words import count, number

__all__ = ["story"]


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The estimates, the most frequent key first; NaN where a number does not exist."""

    keys: tuple[str, ...]
    frequency: Floats
    frequency_ends: Floats
    mean: Floats
    mean_ends: Floats
    reports: Floats
    flags: tuple[str, ...]

    @classmethod
    def of(cls, release: Release) -> _Rows:
        value = release.value
        keys = texts_at(value, "key")
        size = len(keys)
        columns = {
            name: numbers_at(value, name, size=size)
            for name in ("frequency", "frequency_low", "frequency_high", "mean", "mean_low", "mean_high", "n")
        }
        flags = texts_at(value, "flags", size=size) if has(value, "flags") else ("",) * size
        if not size or np.isnan(columns["frequency"]).all():
            raise Unfit("frequency")
        order = np.argsort(-np.nan_to_num(columns["frequency"], nan=-1.0), kind="stable")
        weak = np.array(["weak" in flags[place] for place in order])
        mean = np.where(weak, np.nan, columns["mean"][order])
        return cls(
            keys=tuple(keys[place] for place in order),
            frequency=columns["frequency"][order],
            frequency_ends=np.column_stack([columns["frequency_low"], columns["frequency_high"]])[order],
            mean=mean,
            mean_ends=np.column_stack([columns["mean_low"], columns["mean_high"]])[order],
            reports=columns["n"][order],
            flags=tuple(flags[place] for place in order),
        )


def story(release: Release) -> Story:
    """Tells what people hold, on the whole."""
    rows, facts = _Rows.of(release), release.provenance.parameters
    note = f"Bars are {number(100 * number_at(facts, 'confidence'))} % intervals{_kind(release)}."
    low, high = rows.frequency_ends[0]
    return Story(
        title="What people hold, collected without learning anyone's data",
        answer=Answer(
            big=f"{rows.keys[0]}: {_percent(rows.frequency[0])} %",
            spread=f"between {_percent(low)} and {_percent(high)} %",
            sentence=f"Of {count(len(rows.keys), 'key')}, “{rows.keys[0]}” is held by the most people.",
        ),
        stages=stages(release, _steps(release)),
        charts=tuple(chart for chart in (_frequencies(rows, note), _means(rows, note)) if chart is not None),
        grids=(_table(rows),),
        cautions=_cautions(rows),
    )


def _kind(release: Release) -> str:
    facts = release.provenance.parameters
    average = has(facts, "interval") and text_at(facts, "interval") == "average"
    return ", right on average over the keys, not for each" if average else ""


def _steps(release: Release) -> tuple[str, ...]:
    facts = release.provenance.parameters
    protocol = text_at(facts, "protocol") if has(facts, "protocol") else release.guarantee.mechanism
    return (
        f"Each person's own device randomised what the person holds with the protocol “{protocol}”, booked the cost, and sent "
        "a few bytes of the same size as everybody's.",
        "The collector counted these bytes by key; it never saw anything else.",
        f"From the counts, frequencies and means were estimated with “{text_at(facts, 'method')}”; this costs no privacy.",
    )


def _cautions(rows: _Rows) -> tuple[str, ...]:
    weak, pulled = (sum(word in words for words in rows.flags) for word in ("weak", "pulled"))
    told = (
        (weak, f"For {count(weak, 'key')} so few people seem to hold the key that a mean would be noise; it is left out."),
        (pulled, f"For {count(pulled, 'key')} the other keys pulled the estimate out of the interval of its own reports."),
    )
    return tuple(words for some, words in told if some)


def _frequencies(rows: _Rows, note: str) -> Chart | None:
    return dots(
        rows.keys[:MOST_ROWS],
        100 * rows.frequency[:MOST_ROWS],
        100 * rows.frequency_ends[:MOST_ROWS, 0],
        100 * rows.frequency_ends[:MOST_ROWS, 1],
        title="How many people hold each key",
        axis="share of people (%)",
        heading="key",
        note=note,
    )


def _means(rows: _Rows, note: str) -> Chart | None:
    return dots(
        rows.keys[:MOST_ROWS],
        rows.mean[:MOST_ROWS],
        rows.mean_ends[:MOST_ROWS, 0],
        rows.mean_ends[:MOST_ROWS, 1],
        title="The mean value among those who hold the key",
        axis="mean value",
        heading="key",
        note=note,
    )


def _table(rows: _Rows) -> Grid:
    columns = ("key", "share of people", "interval", "mean", "interval of the mean", "reports", "remarks")
    cells = tuple(
        (
            key,
            f"{_percent(rows.frequency[place])} %",
            f"{_percent(rows.frequency_ends[place, 0])} to {_percent(rows.frequency_ends[place, 1])} %",
            number(float(rows.mean[place]), 3),
            f"{number(float(rows.mean_ends[place, 0]), 3)} to {number(float(rows.mean_ends[place, 1]), 3)}",
            number(float(rows.reports[place])),
            rows.flags[place],
        )
        for place, key in enumerate(rows.keys[:MOST_ROWS])
    )
    left = len(rows.keys) - MOST_ROWS
    note = f"{count(left, 'more key')} in the release file." if left > 0 else ""
    return Grid(title="Estimates by key", columns=columns, rows=cells, note=note)


def _percent(share: float) -> str:
    return number(round(100 * float(share), 1))
