"""Examples 1 to 3 of the paper with figures 1 to 3: the tables they describe, and what the formulas say of them.

The printed figures are not in the text of the paper; the tables are built from its words, with r = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.outliers import local_candidates, local_sensitivity, outlier_degrees
from sabun.outliers.paper import PrintedRungs, printed_global_bound
from sabun.telling.reproduction import Figure, Table, drawn

__all__ = ["EXAMPLES", "Example", "Judged", "example_table", "figures", "judged"]

_Place = tuple[float, float]
_ENDS: tuple[_Place, ...] = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
_AROUND: tuple[_Place, ...] = ((0.0, 0.9), (-0.78, -0.45), (0.78, -0.45))
_ORIGIN: _Place = (0.0, 0.0)
_AWAY: _Place = (2.6, 2.2)


@dataclass(frozen=True, kw_only=True)
class Example:
    """A table with the moves that are said to change the count: those of `before`, then the last one.

    Args:
        name: As the paper numbers it.
        k: Neighbours an inlier needs.
        records: The table.
        moves: Which record goes where; all but the last lead to the table that the last one starts from.
        printed: The number the example gives.
        formula: The equation that is meant to give it.
        words: What must be said about the words of the example.
    """

    name: str
    k: int
    records: tuple[_Place, ...]
    moves: tuple[tuple[int, _Place], ...]
    printed: int
    formula: str
    words: str = ""

    def after(self, steps: int) -> NDArray[np.float64]:
        """The table after so many of the moves."""
        table = np.array(self.records)
        for record, place in self.moves[:steps]:
            table[record] = place
        return table


EXAMPLES = (
    Example(
        name="1, X_A",
        k=3,
        records=(_ORIGIN, *(place for place in _ENDS for _ in range(2))),
        moves=((0, _AWAY),),
        printed=9,
        formula="(11)",
        words="The text gives every record of X_A a degree of k or more; those at the ends have k - 1.",
    ),
    Example(
        name="1, X_B",
        k=3,
        records=(_AWAY, *(place for place in _ENDS for _ in range(2))),
        moves=((0, _ORIGIN),),
        printed=9,
        formula="(11)",
        words="The mirror image: after the move the records at the ends still have degree k - 1.",
    ),
    Example(
        name="1, k copies (ours)",
        k=3,
        records=(_ORIGIN, *(place for place in _ENDS for _ in range(3))),
        moves=((0, _AWAY),),
        printed=13,
        formula="2dk + 1",
        words="With k records at each end instead of k - 1 the construction works, and gives more.",
    ),
    Example(name="2, X_A", k=1, records=(_ORIGIN, *_AROUND), moves=((0, _AWAY),), printed=4, formula="(15)"),
    Example(name="2, X_B", k=1, records=(_AWAY, *_AROUND), moves=((0, _ORIGIN),), printed=4, formula="(15)"),
    Example(
        name="3, X_A",
        k=1,
        records=(_ORIGIN, (-0.9, 0.0), (0.9, 0.0), (1.8, 0.0)),
        moves=((3, (2.6, -1.6)), (0, _AWAY)),
        printed=3,
        formula="(23)",
        words="The text sets all others farther apart than r, and gives one of them degree k + 1 = 2, which needs a second "
        "neighbour. The printed 3 is OC + 1; (23) has + t + 1.",
    ),
    Example(
        name="3, X_B (ours: k = 2)",
        k=2,
        records=((0.0, 2.4), (-0.8, 0.0), (-1.7, 0.0), (0.8, 0.0), _AWAY),
        moves=((4, (1.7, 0.0)), (0, _ORIGIN)),
        printed=3,
        formula="(23)",
        words="The text has k = 1 and a record of degree k - 2 = -1, which no record has; k = 2 is the smallest k that "
        "it fits.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An example with what was computed: the formula, the printed move, the exact local sensitivity before it."""

    example: Example
    formula: int
    change: int
    exact: int


def judged() -> tuple[Judged, ...]:
    """Every example, computed."""
    return tuple(_judged(example) for example in EXAMPLES)


def _judged(example: Example) -> Judged:
    last = len(example.moves)
    start, before, after = example.after(0), example.after(last - 1), example.after(last)
    n, d = start.shape
    formulas: dict[str, Callable[[], int]] = {
        "(11)": lambda: printed_global_bound(n=n, d=d, k=example.k),
        "2dk + 1": lambda: 2 * d * example.k + 1,
        "(15)": lambda: local_candidates(start, k=example.k, radius=1.0).bound,
        "(23)": lambda: PrintedRungs(start, k=example.k, radius=1.0, cover="exact").at(last - 1),
    }
    counts = [int((outlier_degrees(table, radius=1.0) < example.k).sum()) for table in (before, after)]
    exact = local_sensitivity(before, k=example.k, radius=1.0)
    return Judged(example=example, formula=formulas[example.formula](), change=abs(counts[0] - counts[1]), exact=exact)


def example_table(found: tuple[Judged, ...]) -> Table:
    """Each example's number beside what its formula gives and what really happens."""
    rows = [
        (one.example.name, one.example.k, one.example.printed, one.example.formula, one.formula, one.change, one.exact)
        for one in found
    ]
    columns = ("example", "k", "printed", "equation", "the equation gives", "the printed move changes", "local sensitivity")
    note = " ".join(f"{one.example.name}: {one.example.words}" for one in found if one.example.words)
    return Table(name="examples", title="Examples 1 to 3", columns=columns, rows=tuple(rows), note=note)


def figures(found: tuple[Judged, ...]) -> tuple[Figure, ...]:
    """Figures 1 to 3: the two tables of each example side by side."""
    pairs = {"1": (found[0], found[1]), "2": (found[3], found[4]), "3": (found[5], found[6])}
    return tuple(_figure(number, *pair) for number, pair in pairs.items())


def _figure(number: str, left: Judged, right: Judged) -> Figure:
    def draw(axes: Any) -> None:
        for one, shift in ((left, 0.0), (right, 6.0)):
            _panel(axes, one.example, shift)
        axes.set(aspect="equal", xlim=(-2.6, 9.4), ylim=(-2.6, 3.2), xticks=[], yticks=[])
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)

    changes = f"The printed moves change the count by {left.change} and {right.change}; printed: {left.example.printed}."
    note = f"Numbers are degrees, arrows are the moves, the circle has radius r. {changes} Drawn from the words of the example."
    title = f"Figure {number}: the tables of Example {number}"
    return drawn(name=f"figure-{number}", title=title, draw=draw, note=note, size=(7.6, 3.9))


def _panel(axes: Any, example: Example, shift: float) -> None:
    from matplotlib.patches import Circle

    table, degrees = example.after(0), outlier_degrees(example.after(0), radius=1.0)
    axes.add_patch(Circle((shift, 0.0), 1.0, fill=False, color="0.6", linestyle="--"))
    for place in sorted({(x, y) for x, y in table.tolist()}):
        held = np.flatnonzero((table == place).all(axis=1))
        axes.plot(place[0] + shift, place[1], "o", color="#4c72b0")
        copies = f" (× {len(held)})" if len(held) > 1 else ""
        axes.annotate(f"{degrees[held[0]]}{copies}", (place[0] + shift, place[1]), xytext=(5, 5), textcoords="offset points")
    for record, target in example.moves:
        style = {"arrowstyle": "->", "color": "#c44e52"}
        start = (table[record, 0] + shift, table[record, 1])
        axes.annotate("", (target[0] + shift, target[1]), xytext=start, arrowprops=style)
    known = "" if "k = " in example.name else f", k = {example.k}"
    axes.text(shift, 2.95, f"Example {example.name}{known}", ha="center", fontsize=9)
