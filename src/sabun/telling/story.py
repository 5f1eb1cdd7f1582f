"""What a page says: plain frozen records between a release and its HTML."""

from __future__ import annotations

from dataclasses import dataclass

from sabun.telling.measures import PLAIN, Measure

__all__ = ["Answer", "Chart", "Grid", "Quantity", "Story"]


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One released figure, to stand beside the same one of another release.

    Args:
        name: What it is; releases of one kind call the same figure the same.
        value: The estimate; not a number where there is none.
        low: Where its interval begins; not a number without one.
        high: Where it ends.
        measure: What it counts.
    """

    name: str
    value: float
    low: float
    high: float
    measure: Measure = PLAIN


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of texts.

    Args:
        title: What a reader sees above it.
        columns: Headings.
        rows: One tuple for each line, as long as `columns`.
        note: What was left out, or what to look at.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A picture with its numbers.

    Args:
        title: What a reader sees above it.
        svg: Markup made by `sabun.telling.drawing`, the only text that goes on a page unescaped; says what it shows to those
            who cannot see it.
        note: What to look at.
        data: The numbers in it.
    """

    title: str
    svg: str
    note: str = ""
    data: Grid | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was found, in the largest letters of the page.

    Args:
        big: The number itself, or a few words.
        spread: How uncertain it is, e.g. "± 4" or "95 % interval 30 to 41"; empty when there is none.
        sentence: The same as a sentence.
    """

    big: str
    spread: str = ""
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class Story:
    """Everything a page says about one release that depends on its kind.

    Args:
        title: Heading.
        answer: What was found.
        stages: How it was computed, one sentence for each step.
        charts: Pictures.
        grids: Tables of results.
        cautions: What a reader should know before using the answer.
        quantities: Its figures, for a page that compares releases.
    """

    title: str
    answer: Answer
    stages: tuple[str, ...]
    charts: tuple[Chart, ...] = ()
    grids: tuple[Grid, ...] = ()
    cautions: tuple[str, ...] = ()
    quantities: tuple[Quantity, ...] = ()
