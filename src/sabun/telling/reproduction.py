"""What a reproduction hands over: tables, pictures, and the mistakes it found."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sabun import checks
from sabun.errors import InternalError
from sabun.telling.drawing import fonts, with_families, without_glyph_warnings

__all__ = ["MADE", "Claim", "Figure", "Item", "Progress", "Reproduction", "Table", "Verdict", "drawn", "verdict_of"]

Verdict = Literal["holds", "holds in part", "does not hold", "not judged"]

MADE = "reproduction: "
"""How the place of an item begins that is a table or figure of the reproduction."""

Progress = Callable[[float, str], None]
"""Called with the share done (0 to 1) and what is being done now."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of numbers, ours beside the paper's.

    Args:
        name: Short file name without an ending, e.g. "table-2".
        title: What a reader sees above it.
        columns: Headings, with units.
        rows: One tuple per line, as long as `columns`; None where a cell is empty.
        note: What to look at, or why ours differs from the paper's.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        checks.text(name=self.name, title=self.title)
        if any(len(row) != len(self.columns) for row in self.rows):
            raise InternalError(f"table {self.name!r} has a row that is not as long as its headings.")

    def to_csv(self) -> str:
        """The table as CSV, numbers in full precision."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(["" if cell is None else cell for cell in row] for row in self.rows)
        return text.getvalue()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture as SVG, with a sentence that says what to see in it."""

    name: str
    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the paper says, with what the run found.

    Args:
        text: The claim in one sentence, as near to the paper's words as can be.
        where: Section, theorem, table or figure that makes it.
        verdict: Whether it holds; "not judged" where a quick run is too short to tell.
        found: The number beside it, filled from the run.
    """

    text: str
    where: str
    verdict: Verdict
    found: str

    def __post_init__(self) -> None:
        checks.text(text=self.text, where=self.where, found=self.found)


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing a paper describes, where Sabun has it, and the test that runs it.

    Args:
        item: What and where in the paper, e.g. "Algorithm 1, section 4.2".
        place: An importable name ("sabun.outliers.smooth_bound"), a command ("sabun outliers count --method paper"), or a
            table or figure of the reproduction ("reproduction: table-2"); empty where Sabun has it not.
        test: The test that runs it, as pytest names it; empty where there is none.
        reason: Why a cell is empty; needed exactly then.
    """

    item: str
    place: str = ""
    test: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if bool(self.place and self.test) == bool(self.reason):
            raise InternalError(f"{self.item!r} must have a place and a test, or a reason why not.")

    @property
    def places(self) -> tuple[str, ...]:
        """The place; several where they are separated by "; "."""
        return tuple(filter(None, self.place.split("; ")))

    @property
    def tests(self) -> tuple[str, ...]:
        """The test; several where they are separated by "; "."""
        return tuple(filter(None, self.test.split("; ")))


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """One paper, run again.

    Args:
        room: Name of the room, e.g. "outliers".
        paper: Title of the paper.
        summary: Two or three sentences: what holds, what does not, what our default does instead.
        tables: Numbers, in the paper's order.
        figures: Pictures, in the paper's order.
        errata: What is wrong in the paper, one sentence each, as `docs/errata.md` cites it.
        settings: Everything needed to run it again: trials, seeds, sizes.
        claims: What the paper says, each with whether it holds, in the paper's order.
        default: What Sabun does by default instead, in one or two sentences.
    """

    room: str
    paper: str
    summary: str
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    errata: tuple[str, ...]
    settings: dict[str, object]
    claims: tuple[Claim, ...] = ()
    default: str = ""


def drawn(
    *, name: str, title: str, draw: Callable[[Any], None], note: str = "", size: tuple[float, float] = (6.4, 3.8)
) -> Figure:
    """A figure from a function that draws on one matplotlib Axes; the same input gives the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    looks: Any = {"font.family": fonts(), "svg.hashsalt": name, "svg.fonttype": "none"}
    looks |= {"axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(looks), without_glyph_warnings():
        figure, axes = pyplot.subplots(figsize=size, layout="constrained")
        try:
            draw(axes)
            text = io.StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None})
        finally:
            pyplot.close(figure)
    return Figure(name=name, title=title, svg=with_families(text.getvalue()), note=note)


def verdict_of(*held: bool) -> Verdict:
    """The verdict on a claim of several parts: all of them hold, some of them, none.

    Example:
        >>> verdict_of(True, True), verdict_of(True, False), verdict_of(False)
        ('holds', 'holds in part', 'does not hold')
    """
    if all(held):
        return "holds"
    return "holds in part" if any(held) else "does not hold"
