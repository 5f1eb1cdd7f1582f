"""A picture of a study in the words and marks of its page."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import final

from markupsafe import Markup

from sabun.privacy.amounts import plain
from sabun.service.arrivals import REASONS
from sabun.service.picture import KeyRow, RoundPicture, StudyPicture
from sabun.telling.language import phrase, said
from sabun.telling.words import listed, number
from sabun.web.marks import columns, dot

__all__ = [
    "Days",
    "Row",
    "arrived",
    "days",
    "ends_soon",
    "headline",
    "key_rows",
    "name_of",
    "sorts",
    "spent_rows",
    "state_of",
    "to_do",
]

_NAMED = 3
_SILENCE = timedelta(days=2)
_SOON = 14
"""Days."""
_STATES = {
    "waiting": (phrase("waits"), ""),
    "open": (phrase("open"), "good"),
    "closed": (phrase("being signed"), "part"),
    "frozen": (phrase("closed, signed"), ""),
    "purged": (phrase("closed, reports deleted"), ""),
}
_SORTS = {"key": phrase("key"), "share": phrase("share of people"), "mean": phrase("mean"), "reports": phrase("reports")}


def name_of(study: StudyPicture) -> str:
    """A study has no name of its own: its first keys."""
    names, more = listed(study.keys[:_NAMED]), len(study.keys) - _NAMED
    return names if more <= 0 else said("{names} and {more} more", names=names, more=more)


def state_of(shown: RoundPicture) -> tuple[str, str]:
    """The state of a round in words, and how it looks."""
    if shown.state == "open" and shown.reports is None:
        return said("not enough yet"), "part"
    words, look = _STATES[shown.state]
    return said(words), look


def to_do(study: StudyPicture, now: float) -> list[str]:
    """What a study waits for; nothing that tells more of a round below its smallest batch than its state does."""
    name, shown = name_of(study), study.current
    today, found = datetime.fromtimestamp(now, UTC), list[str]()
    if shown.state == "closed":
        found.append(said("{study} is closed but not signed; the server's log says why.", study=name))
    if shown.uniformity is not None and shown.uniformity.suspicious:
        found.append(said("Somebody may be aiming at {study}: look at its reports before you use a number.", study=name))
    if shown.state != "open":
        return found
    if study.not_after is not None and study.not_after < today.date():
        found.append(said("The last day of {study} is over: close the round, or abandon it.", study=name))
    elif shown.by_hour and today - shown.by_hour[-1][0] > _SILENCE:
        found.append(said("{study} has had no report for two days.", study=name))
    return found


def ends_soon(name: str, days: int) -> str:
    """That a token ends soon; nothing where it does not, or has ended long ago."""
    if not -_SOON < days <= _SOON:
        return ""
    if days <= 0:
        return said("The token of “{name}” has ended.", name=name)
    return said("The token of “{name}” ends in {days} days.", name=name, days=days)


def headline(shown: RoundPicture) -> str:
    """The one sentence that a round says."""
    known = [row for row in shown.rows if row.frequency is not None and row.frequency_low is not None]
    if not known:
        return ""
    best = max(known, key=lambda row: row.frequency or 0.0)
    return said(
        "“{key}” is held by the most: {share} of people (between {low} and {high}). No single answer can be taken at its "
        "word: every device threw dice before it spoke.",
        key=best.key,
        share=_percent(best.frequency),
        low=_percent(best.frequency_low),
        high=_percent(best.frequency_high),
    )


def arrived(shown: RoundPicture) -> list[tuple[str, int, bool]]:
    """What became of reports: words, how many, and whether they count."""
    if shown.arrived is None:
        return []
    refused = [
        (said("refused: {reason}", reason=said(REASONS[code]) if code in REASONS else code), n, False)
        for code, n in sorted(shown.arrived.rejected.items(), key=lambda item: -item[1])
    ]
    return [
        (said("accepted"), shown.arrived.accepted, True),
        (said("sent again, counted once"), shown.arrived.duplicate, False),
        *refused,
    ]


MOST_BARS = 400
"""What a phone can show of days; a year has 366."""


@final
@dataclass(frozen=True, kw_only=True)
class Days:
    """Accepted reports over time: the picture and its numbers."""

    svg: Markup
    rows: tuple[tuple[str, int], ...]
    title: str


def days(shown: RoundPicture) -> Days | None:
    """Reports by day, or by hour while all of them came within two days; None where there is nothing to show.

    Days are laid together where they are more than a picture holds: one look at a wrong clock must not make a page of decades.
    """
    if not shown.by_hour:
        return None
    first, last = shown.by_hour[0][0], shown.by_hour[-1][0]
    hourly = last - first < timedelta(days=2)
    together = 1 if hourly else math.ceil(((last - first).days + 1) / MOST_BARS)
    step = timedelta(hours=1) if hourly else timedelta(days=together)
    form = "%Y-%m-%d %H:00" if hourly else "%Y-%m-%d"
    start = first if hourly else first.replace(hour=0)
    found = Counter[int]()
    for when, n in shown.by_hour:
        found[(when - start) // step] += n
    rows = tuple(((start + place * step).strftime(form), found[place]) for place in range(max(found) + 1))
    label = said("Accepted reports from {first} to {last}", first=rows[0][0], last=rows[-1][0])
    heights = [n for _, n in rows]
    several = said("Reports by {days} days", days=together) if together > 1 else said("Reports by day")
    title = said("Reports by hour") if hourly else several
    return Days(svg=columns(heights, label=label, open_end=shown.state == "open"), rows=rows, title=title)


@final
@dataclass(frozen=True, kw_only=True)
class Row:
    """One key of the table: numbers in words, and their marks."""

    key: str
    reports: str
    share: str
    share_spread: str
    share_mark: Markup
    mean: str
    mean_spread: str
    mean_mark: Markup


def key_rows(shown: RoundPicture, value_range: tuple[float, float], order: str) -> list[Row]:
    """The keys, in an order: `key`, `share`, `mean` or `reports`; with a minus before it the other way round."""
    name, turned = order.removeprefix("-"), order.startswith("-")
    if name == "key":
        return [_row(row, value_range) for row in sorted(shown.rows, key=lambda row: row.key, reverse=turned)]
    numbers = [(_sorted_by(row, name), row) for row in shown.rows]
    there = sorted(((found, row) for found, row in numbers if found is not None), key=lambda pair: pair[0], reverse=not turned)
    rest = [row for found, row in numbers if found is None]  # what has no number stands last, whichever way
    return [_row(row, value_range) for row in [*(row for _, row in there), *rest]]


def _sorted_by(row: KeyRow, name: str) -> float | None:
    return {"mean": row.mean, "reports": float(row.reports)}.get(name, row.frequency)


def _row(row: KeyRow, value_range: tuple[float, float]) -> Row:
    least, most = value_range
    return Row(
        key=row.key,
        reports=number(row.reports),
        share="–" if row.frequency is None else _percent(row.frequency),
        share_spread=_spread(row.frequency_low, row.frequency_high, 100),
        share_mark=dot(row.frequency, row.frequency_low, row.frequency_high, least=0, most=1),
        mean=said(row.mean_reason or "–") if row.mean is None else number(row.mean, 3),
        mean_spread="" if row.mean is None else _spread(row.mean_low, row.mean_high, 1),
        mean_mark=dot(row.mean, *((None, None) if row.mean is None else (row.mean_low, row.mean_high)), least=least, most=most),
    )


def _spread(low: float | None, high: float | None, unit: int) -> str:
    if low is None or high is None:
        return ""
    ends = (f"{100 * low:.0f}", f"{100 * high:.0f}") if unit == 100 else (number(low, 3), number(high, 3))
    return said("{low} to {high}", low=ends[0], high=ends[1])


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def sorts(order: str, shown: int, *, valued: bool) -> dict[str, tuple[str, str, str]]:
    """For each column that can be sorted: its name, the address that does it, and how it is sorted now (`aria-sort`)."""
    found = {}
    for name, words in _SORTS.items():
        if name == "mean" and not valued:
            continue
        here, turned = order.removeprefix("-") == name, order.startswith("-")
        rising = turned != (name == "key")
        now = ("ascending" if rising else "descending") if here else ""
        found[name] = (said(words), f"?round={shown}&sort={'-' if here and not turned else ''}{name}#keys", now)
    return found


def spent_rows(study: StudyPicture) -> list[tuple[int, str, str]]:
    """Round, what one person spends in it at most, and what they have then spent in all."""
    return [(one.round + 1, plain(one.epsilon), plain(one.total)) for one in study.spent]
