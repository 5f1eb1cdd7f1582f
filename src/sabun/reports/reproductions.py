"""The page of a paper that was run again, with the page that lists several."""

from __future__ import annotations

import base64
import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sabun.release.provenance import installed
from sabun.reports.page import render
from sabun.telling.harness import Run
from sabun.telling.language import language, phrase, retold, said, speaking
from sabun.telling.reproduction import Figure, Reproduction, Table
from sabun.telling.words import cited, number, shown

__all__ = ["Judged", "Listed", "in_words", "judged", "reproduction_index", "reproduction_page", "tally"]

_VERDICTS = {
    "holds": (phrase("✓"), phrase("holds"), "good"),
    "holds in part": (phrase("◐"), phrase("holds in part"), "part"),
    "does not hold": (phrase("✗"), phrase("does not hold"), "bad"),
    "not judged": (phrase("–"), phrase("not judged in a quick run"), "open"),
}
"""A sign, the words and the look of each: never by colour alone."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A claim as it is shown, or how many claims came out so.

    Args:
        sign: Tells the verdict at a glance.
        verdict: The verdict in words.
        look: The class of the style sheet.
        text: What the paper says.
        where: Where it says so.
        found: What the run found.
        times: How many claims came out so, in a tally.
    """

    sign: str
    verdict: str
    look: str
    text: str = ""
    where: str = ""
    found: str = ""
    times: int = 0


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A line of the index: a paper with the name of its page."""

    room: str
    paper: str
    summary: str
    page: str
    time: str
    quick: bool
    claims: Sequence[Mapping[str, Any]] = ()

    @property
    def tally(self) -> tuple[Judged, ...]:
        """How many of the paper's claims came out how."""
        return tally([claim["verdict"] for claim in self.claims])


def reproduction_page(reproduction: Reproduction, run: Run, *, lang: str | None = None) -> str:
    """One paper as a page that stands alone: claims, figures and tables, errata, our default, settings.

    Args:
        reproduction: What the run found.
        run: When and on what it ran.
        lang: "en" or "ja"; that of the locale when left out.
    """
    with speaking(lang):
        shown_ = in_words(reproduction)
        settings = tuple((retold(name), retold(_setting(value))) for name, value in shown_.settings.items())
        return render(
            "reproduction.html",
            reproduction=shown_,
            claims=[judged(claim.verdict, claim.text, claim.where, claim.found) for claim in shown_.claims],
            tally=tally([claim.verdict for claim in shown_.claims]),
            tables=[(table, _cells(table)) for table in shown_.tables],
            figures=[(figure, _data_address(figure)) for figure in shown_.figures],
            run=run.facts(),
            settings=settings,
            quick=run.quick,
            version=installed()["sabun"],
        )


def reproduction_index(papers: Sequence[Listed], *, lang: str | None = None) -> str:
    """The list of the papers, each with a link to its page."""
    with speaking(lang):
        return render("reproductions.html", papers=papers, version=installed()["sabun"])


def in_words(reproduction: Reproduction) -> Reproduction:
    """The same with its texts in the language that is spoken, as far as the catalogue has them.

    A run speaks English; what it filled in is found in the catalogue by the rest of the sentence.
    """
    if language() == "en":
        return reproduction
    claims = [
        dataclasses.replace(claim, text=retold(claim.text), where=cited(claim.where), found=retold(claim.found))
        for claim in reproduction.claims
    ]
    tables = [
        dataclasses.replace(
            table,
            title=retold(table.title),
            columns=tuple(map(retold, table.columns)),
            rows=tuple(tuple(retold(cell) if isinstance(cell, str) else cell for cell in row) for row in table.rows),
            note=table.note and retold(table.note),
        )
        for table in reproduction.tables
    ]
    figures = [
        dataclasses.replace(figure, title=retold(figure.title), note=figure.note and retold(figure.note))
        for figure in reproduction.figures
    ]
    return dataclasses.replace(
        reproduction,
        paper=retold(reproduction.paper),
        summary=retold(reproduction.summary),
        errata=tuple(map(retold, reproduction.errata)),
        default=retold(reproduction.default),
        claims=tuple(claims),
        tables=tuple(tables),
        figures=tuple(figures),
    )


def judged(verdict: str, text: str = "", where: str = "", found: str = "") -> Judged:
    """A claim with the sign and the words of its verdict."""
    sign, words, look = _VERDICTS[verdict]
    return Judged(sign=said(sign), verdict=said(words), look=look, text=text, where=where, found=found)


def tally(verdicts: Sequence[str]) -> tuple[Judged, ...]:
    """How often each verdict was given, the best first; those that were given."""
    times = Counter(verdicts)
    return tuple(dataclasses.replace(judged(name), times=times[name]) for name in _VERDICTS if times[name])


def _setting(value: object) -> str:
    try:
        return shown(value)
    except (TypeError, ValueError):
        return str(value)


def _cells(table: Table) -> tuple[tuple[tuple[str, bool], ...], ...]:
    """Each cell as text, with whether it is a number."""
    return tuple(tuple(_cell(cell) for cell in row) for row in table.rows)


def _cell(cell: object) -> tuple[str, bool]:
    if cell is None:
        return "", False
    if isinstance(cell, bool):
        return (said("yes") if cell else said("no")), False
    if isinstance(cell, int | float):
        return number(cell) if isinstance(cell, int) or not math.isnan(cell) else "–", True
    try:
        return number(float(cell)) if hasattr(cell, "dtype") else str(cell), hasattr(cell, "dtype")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(cell), False


def _data_address(figure: Figure) -> str:
    """The picture inside the page; as an image it can run nothing and cannot touch the page around it. Base64: no markup."""
    return "data:image/svg+xml;base64," + base64.b64encode(figure.svg.encode("utf-8")).decode("ascii")
