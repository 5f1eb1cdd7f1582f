"""The page on which a visitor plays one device: what it holds, the bytes that leave it, and what anybody could make of them.

With a script the browser is the device, and this server is sent the report alone. Without one the server plays the device too,
and says so. The study is made up and belongs to nobody: nothing that is sent here is kept or counted.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import cast, final

from markupsafe import Markup
from starlette.responses import Response

from sabun.keyvalue import Diary, Study, Tally
from sabun.keyvalue.client import Report, ReportError, assigned_index, unpack
from sabun.service.limits import RateLimit
from sabun.service.problems import Problem
from sabun.service.visitors import Asked
from sabun.telling.language import phrase, said
from sabun.telling.words import guess
from sabun.web.marks import dot

__all__ = ["inferred", "try_it"]

_KEYS = {
    phrase("Messages"): (0.91, 72),
    phrase("Maps"): (0.81, 24),
    phrase("Video"): (0.62, 96),
    phrase("Music"): (0.44, 42),
    phrase("Games"): (0.23, 67),
}
"""Share of simulated people who use it, and their mean of minutes a day."""
_STATES = (phrase("does not use it"), phrase("uses it a lot"), phrase("uses it a little"))
_CROWDS = tuple(1000 * 2**step for step in range(7))
_SEEDS = 1 << 30
_FIELDS = (
    (phrase("version"), 0, 1),
    (phrase("study"), 1, 17),
    (phrase("round"), 17, 21),
    (phrase("a random id, for this study alone"), 21, 37),
)
_attempts = RateLimit(most=240, seconds=60)


@cache
def _study() -> Study:
    return Study(keys=list(_KEYS), epsilon="1.5", protocol="kv3", value_range=(0, 120))


def try_it(asked: Asked) -> Response:
    """The page; with a report, also what follows from it."""
    study = _study()
    told = None
    if asked.request.method == "POST":
        caller = asked.request.client.host if asked.request.client else ""
        if _attempts.exhausted(caller):
            raise Problem("too-often")
        _attempts.note(caller)
        asked.require_token()
        told = _told(asked, study)
    return asked.page(
        "try.html",
        here="try",
        scripts=("try.js",),
        keys=[(key, said(key)) for key in _KEYS],
        held={key: asked.form.get(f"key-{key}", "") for key in _KEYS},
        terms=study.to_json(),
        keep=f"{100 * float(Fraction(study.terms.table.keep, study.terms.table.size)):.0f}",
        told=told,
        bytes=study.report_bytes,
        seed=secrets.randbelow(_SEEDS),
    )


@final
@dataclass(frozen=True, kw_only=True)
class _Told:
    """What follows from one report."""

    report: str
    pieces: list[tuple[str, str]]
    answer: str
    key: str
    said: str
    odds: list[tuple[str, str, float]]
    guess: float | None
    crowd: list[tuple[str, str, str, Markup]]
    truth: str
    people: int
    seed: int
    more: int | None


def _told(asked: Asked, study: Study) -> _Told:
    content = _sent(asked.form["report"]) if asked.form.get("report") else _drawn(asked, study)
    try:
        report = unpack(study.terms, content)
    except ReportError:
        raise Problem("no-report") from None
    place = assigned_index(study.terms, report.report_id, b"")
    people = _whole(asked.form.get("people", ""), _CROWDS, _CROWDS[0])
    seed = _whole(asked.form.get("seed", ""), range(_SEEDS), 0)
    chances = inferred(study, report)
    return _Told(
        report=content.hex(),
        pieces=[(said(name), content[low:high].hex()) for name, low, high in _FIELDS],
        answer=content[37:].hex(),
        key=said(list(_KEYS)[place]),
        said=said(_STATES[_symbol(report)]),
        odds=[(said(_STATES[state]), f"{100 * float(chance):.0f} %", float(chance)) for state, chance in chances.items()],
        guess=guess(*study.guarantee.cost),
        crowd=_crowd(study, content, place, people, seed),
        truth=f"{100 * list(_KEYS.values())[place][0]:.0f} %",
        people=people,
        seed=seed,
        more=next((size for size in _CROWDS if size > people), None),
    )


def _sent(text: str) -> bytes:
    if not re.fullmatch(r"(?:[0-9a-f]{2}){1,100}", text):
        raise Problem("no-report")
    return bytes.fromhex(text)


def _drawn(asked: Asked, study: Study) -> bytes:
    """The server plays the device: the very code that runs on one. Whatever was typed, the report has the same size."""
    held = {key: text for key in _KEYS if (text := asked.form.get(f"key-{key}", "").strip())}
    device = study.client(diary=Diary.in_memory(), max_epsilon=study.terms.certified)
    return device.report(cast("dict[str | int, float]", held))  # a device reads texts of numbers; others are absent


def _symbol(report: Report) -> int:
    if not isinstance(report.symbol, int):
        raise Problem("no-report")
    return report.symbol


def inferred(study: Study, report: Report) -> dict[int, Fraction]:
    """The chance of each state (1 a lot, 2 a little, 0 not at all) for somebody who thought all equally likely before.

    Bayes' rule on the integer table that the device draws from, exactly.
    """
    table, symbol = study.terms.table, _symbol(report)
    rows = {
        0: (table.none_absent, table.each, table.each),
        1: (table.none_present, table.keep, table.opposite),
        2: (table.none_present, table.opposite, table.keep),
    }
    seen = {state: rows[state][symbol] for state in (1, 2, 0)}
    return {state: Fraction(weight, sum(seen.values())) for state, weight in seen.items()}


def _crowd(study: Study, report: bytes, place: int, people: int, seed: int) -> list[tuple[str, str, str, Markup]]:
    """What is estimated as simulated people join, for the key that the visitor was asked about; the visitor is one of them."""
    shares, means = zip(*_KEYS.values(), strict=True)
    tally, before, rows = Tally(study, simulated=True), 1, []
    tally.add(report)
    for step, size in enumerate(size for size in _CROWDS if size <= people):
        tally.merge(study.simulate(shares, means, n=size - before, random_state=seed + step))
        before = size
        found = tally.estimate("mle")
        value, (low, high) = float(found.frequency[place]), map(float, found.frequency_interval[place])
        spread = said("{low} to {high}", low=f"{100 * low:.0f}", high=f"{100 * high:.0f}")
        rows.append((f"{size:,}", f"{100 * value:.0f} %", spread, dot(value, low, high, least=0, most=1, line=shares[place])))
    return rows


def _whole(text: str, allowed: range | tuple[int, ...], otherwise: int) -> int:
    return int(text) if re.fullmatch("[0-9]{1,10}", text) and int(text) in allowed else otherwise
