"""Laws of what comes into the house: whatever stands in a cell, and by whatever door, what comes out has its place."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking.evidence import Bench, Checklist
from sabun.records import Column, Schema, open_source, persons
from sabun.records.collapsing import collapsed
from sabun.records.persons import LABEL_RULES, NUMBER_RULES

__all__ = ["CHECKS"]

CHECKS = Checklist()

_LOW, _HIGH, _MISSING = -2.0, 6.0, 1.0
_SCHEMA = Schema(
    columns=(
        Column.number("x", lower=_LOW, upper=_HIGH, missing=_MISSING),
        Column.category("g", ["a", "b", "c"]),
    )
)
_NUMBERS = Schema(columns=(_SCHEMA.columns[0],))
_INSIDE: dict[float, float] = {
    float("nan"): _MISSING,
    float("inf"): _HIGH,
    float("-inf"): _LOW,
    1e308: _HIGH,
    -1e308: _LOW,
    6.5: _HIGH,
    -2.5: _LOW,
    0.25: 0.25,
    -0.0: 0.0,
}
"""Cells that any table can hold, and what each of them counts as."""
_OF_TEXTS: dict[Any, float] = {
    "many": _MISSING,
    "-7": _LOW,
    "1e999": _HIGH,
    "true": 1.0,
    "FALSE": 0.0,
    **{f"{sign}{word}": _LOW if sign == "-" else _HIGH for sign in ("", "+", "-") for word in ("inf", "Infinity", "1e400")},
}
"""Cells that only texts can hold."""
_OF_OBJECTS: dict[Any, float] = {10**400: _HIGH, -(10**400): _LOW, "": _MISSING, **_OF_TEXTS}
"""Cells that only a list or an array of objects can hold."""


def _csv(cells: list[Any], folder: str) -> Any:
    path = Path(folder) / "t.csv"
    path.write_text("x\n" + "".join(f"{cell!r}\n" if isinstance(cell, float) else f"{cell}\n" for cell in cells))
    return path


def _frame(cells: list[Any], _: str) -> Any:
    import pandas as pd

    return pd.DataFrame({"x": cells})


def _arrow(cells: list[Any], _: str) -> Any:
    import pyarrow as pa

    return pa.table({"x": pa.array(cells, pa.float64())})


_DOORS: dict[str, Callable[[list[Any], str], Any]] = {
    "array": lambda cells, _: np.array(cells, dtype=np.float64)[:, None],
    "array of objects": lambda cells, _: np.array([[cell] for cell in cells], dtype=object),
    "list": lambda cells, _: [[cell] for cell in cells],
    "frame": _frame,
    "arrow": _arrow,
    "file": _csv,
}


@CHECKS("records", door=tuple(_DOORS))
def _a_cell_counts_as_what_its_column_says_by_whatever_door(bench: Bench, door: str) -> str:
    more = {"array of objects": _OF_OBJECTS, "list": _OF_OBJECTS, "file": _OF_TEXTS}
    cells = _INSIDE | more.get(door, {})
    with tempfile.TemporaryDirectory() as folder:
        found = open_source(_DOORS[door](list(cells), folder), schema=_NUMBERS).matrix()[:, 0]
    for cell, wanted, came in zip(cells, cells.values(), found.tolist(), strict=True):
        bench.must(came == wanted and str(came) == str(wanted), f"{cell!s:.20} counts as {came}.")
    return f"{len(cells)} cells"


@CHECKS("records")
def _a_label_that_is_not_declared_is_none_of_them(bench: Bench) -> None:
    labels = ["a", "b", "c", "d", None, "", " c ", 3]
    coded = open_source(_rows([0.5] * len(labels), labels), schema=_SCHEMA).matrix()
    spread = _SCHEMA.one_hot(coded)[:, 1:]
    wanted = np.zeros((len(labels), 3))
    wanted[[0, 1, 2, 6], [0, 1, 2, 2]] = 1
    bench.must(np.array_equal(spread, wanted), "a cell outside the list has a label.")


def _rows(numbers: list[Any], labels: list[Any], ids: list[Any] | None = None) -> Any:
    import pandas as pd

    made = {"x": pd.Series(numbers, dtype=object), "g": pd.Series(labels, dtype=object)}
    return pd.DataFrame(made | ({} if ids is None else {"who": pd.Series(ids, dtype=object)}))


@CHECKS("persons", rule=tuple(dict.fromkeys((*NUMBER_RULES, *LABEL_RULES))))
def _however_many_rows_a_person_has_they_count_as_one_within_the_bounds(bench: Bench, rule: str) -> str:
    """From one row to hundreds, with cells of every kind: one row comes out, and nobody else's moves."""
    wild, sizes = [*_INSIDE, *_OF_OBJECTS], (0, 1, 3, 7, 300)
    rules = {name: rule for name, own in (("x", NUMBER_RULES), ("g", LABEL_RULES)) if rule in own}
    other: NDArray[np.float64] = np.empty((0, 2))
    for size in sizes:
        cells = [0.25, 3.0, *itertools.islice(itertools.cycle(wild), size)]
        labels = ["a", "b", *itertools.islice(itertools.cycle("dbc"), size)]
        frame = _rows(cells, labels, ["other"] * 2 + ["me"] * size)
        found = open_source(persons(frame, id="who", rules=rules), schema=_SCHEMA, by_person=True).matrix()
        other = found if size == 0 else other
        bench.must(len(found) == 1 + (size > 0), f"two persons are {len(found)}.")
        bench.must((found == other).all(axis=1).any(), "somebody else's row moved.")
        inside = (found[:, 0] >= _LOW) & (found[:, 0] <= _HIGH) & np.isin(found[:, 1], (-1, 0, 1, 2))
        bench.must(inside.all(), f"{size} rows count as {found.tolist()}.")
    return f"up to {sizes[-1]} rows"


@CHECKS("persons", order=("", "when"), rule=tuple(dict.fromkeys((*NUMBER_RULES, *LABEL_RULES))))
def _a_person_is_the_same_wherever_the_table_is_cut(bench: Bench, order: str, rule: str) -> str:
    """Pieces of every size, in memory and beyond it; rows of one moment, of none, and persons whose rows lie apart."""
    import pandas as pd

    rules = {name: rule for name, own in (("x", NUMBER_RULES), ("g", LABEL_RULES)) if rule in own}
    size = 24
    frame = _rows([step * 5 % 7 - 2.25 for step in range(size)], ["abcd"[step * 3 % 4] for step in range(size)])
    frame = frame.assign(
        who=[f"p{step % 5}" for step in range(size)], when=[(step // 6, None)[step % 4 == 1] for step in range(size)]
    )
    wanted: list[Any] = []
    for step, memory in itertools.product((size, 1, 2, 5, 11), (1 << 30, 1)):
        pieces = [frame.iloc[at : at + step] for at in range(0, size, step)]
        how = persons(pd.DataFrame(), id="who", rules=rules, order=order or None, memory=memory)
        found = sorted(collapsed(how, _SCHEMA, pieces).tolist())
        wanted = wanted or found
        bench.must(found == wanted, f"pieces of {step} rows give another row.")
    return f"{len(wanted)} persons, 10 ways"


_ONE_PERSON: dict[str, list[Any]] = {
    "text": ["a1", " a1", "a1 ", "\u3000a1", "a1\u3000", "\uff41\uff11", " \uff41\uff11\u3000", "a\uff11\t"],
    "number": ["7", "007", " 7", "+7", "7.0", "\uff17", "\u3000\uff17", "\uff17\u3000", 7, 7.0],
}


@CHECKS("persons", kind=("frame", "rows", "array"))
def _what_holds_a_table_shows_none_of_its_cells(bench: Bench, kind: str) -> None:
    cell, label = 31.41592653, "bezoar"
    frame = _rows([cell] * 3, [label] * 3, ["p", "p", "q"])
    table = {"frame": frame, "rows": frame.to_dict("records"), "array": frame.to_numpy()}[kind]
    how = persons(table, id="who")
    for shown in (repr(how), str(how), f"{how}", getattr(how, "_repr_html_", str)()):
        bench.must(str(cell) not in shown and label not in shown, "a cell can be read.")


@CHECKS("persons", spelling=tuple(_ONE_PERSON))
def _a_person_whose_id_is_written_in_several_ways_is_one(bench: Bench, spelling: str) -> str:
    ids = _ONE_PERSON[spelling]
    for order in (ids, ids[::-1]):
        frame = _rows([0.5] * len(ids), ["a"] * len(ids), list(order))
        found = open_source(persons(frame, id="who", spelling=spelling), schema=_SCHEMA, by_person=True).matrix()
        bench.must(len(found) == 1, f"one person is {len(found)}.")
    return f"{len(ids)} ways"
