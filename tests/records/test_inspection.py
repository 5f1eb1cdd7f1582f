from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.errors import DataError, ParameterError
from sabun.records import Column, Schema, chunks, inspect_table

SCHEMA = Schema(columns=[Column.number("bmi", lower=10, upper=60), Column.category("smoker", ["no", "yes"])])


def test_every_cell_that_is_not_taken_as_it_is_is_counted_once() -> None:
    rows = [["21,9", "YES"], [22, "no"], [None, " yes "], [300, ""], ["-inf", "maybe"], [float("nan"), None], ["25.5", True]]
    bmi, smoker = inspect_table(rows, schema=SCHEMA).columns
    assert (bmi.rows, bmi.empty, bmi.unreadable, bmi.below, bmi.above, bmi.fitting) == (7, 2, 1, 1, 1, 2)
    assert (smoker.empty, smoker.unreadable, smoker.fitting) == (2, 3, 2)
    assert dict(smoker.strange) == {"YES": 1, "maybe": 1, "true": 1}


def test_a_column_in_another_unit_is_told_apart_from_a_good_one() -> None:
    frame = pd.DataFrame({"bmi": ["21,9"] * 10, "smoker": ["no"] * 9 + ["No"]})
    bmi, smoker = inspect_table(frame, schema=SCHEMA).columns
    assert bmi.verdict == "NO CELL FITS"
    assert smoker.verdict == "ok"
    assert "look here" in str(inspect_table(frame.assign(smoker=["no"] * 7 + ["YES"] * 3), schema=SCHEMA))


def test_many_empty_cells_are_told_with_what_they_count_as() -> None:
    columns = [Column.number("tenure", lower=0, upper=40, unit="years"), Column.category("smoker", ["no", "yes"])]
    columns.append(Column.date("day", lower="2026-01-01", upper="2026-12-31"))
    rows = [[5, "no", "2026-02-01"]] * 96 + [[None, None, None]] * 4
    found = inspect_table(rows, schema=Schema(columns=columns))
    assert [fit.verdict for fit in found.columns] == ["look here", "ok", "look here"]
    told = "tenure: 4% of the cells are empty, and count as 20 years. Declare a usual value that is publicly known (--missing"
    assert told in str(found)
    assert "day: 4% of the cells are empty, and count as 2026-07-02." in str(found)
    assert "smoker: " not in str(found)
    assert [fit.to_dict()["missing"] for fit in found.columns] == ["20 years", None, "2026-07-02"]
    several = inspect_table(rows, schema=Schema(columns=columns), ids=[at // 2 for at in range(100)])
    assert "count as 20 years where a person's other rows do not tell." in str(several)
    few = inspect_table(rows[:-4] * 4 + rows[-3:], schema=Schema(columns=columns))
    assert {fit.verdict for fit in few.columns} == {"ok"}
    assert "are empty" not in str(few)


def test_pieces_count_like_the_whole() -> None:
    rows = [[value, "yes"] for value in (1, 30, 99, None)]
    whole = inspect_table(rows, schema=SCHEMA)
    assert inspect_table(chunks([rows[:1], rows[1:]]), schema=SCHEMA).to_dict() == whole.to_dict()


def test_no_rows_fit_trivially() -> None:
    found = inspect_table(np.empty((0, 2), dtype=object), schema=SCHEMA)
    assert found.rows == 0
    assert {fit.verdict for fit in found.columns} == {"ok"}


def test_the_counts_say_that_they_are_not_private() -> None:
    found = inspect_table([[22, "no"]], schema=SCHEMA)
    assert str(found).startswith("NOT PRIVATE: these counts are about your own rows.")
    assert found.to_dict()["notice"].startswith("NOT PRIVATE")
    with pytest.raises(ParameterError, match="They must not be stored"):
        pickle.dumps(found)


def test_people_with_several_rows_are_found() -> None:
    rows = [[22, "no"]] * 6
    found = inspect_table(rows, schema=SCHEMA, ids=["a", "b", "a", "c", "a", "b"])
    assert found.repeated_ids == 3
    assert "3 rows repeat an id" in str(found)
    assert inspect_table(rows, schema=SCHEMA).repeated_ids is None
    with pytest.raises(DataError, match="ids must be as many as the rows"):
        inspect_table(rows, schema=SCHEMA, ids=["a"])


def test_an_absent_column_is_an_error() -> None:
    with pytest.raises(DataError, match="has no column 'smoker'"):
        inspect_table(pd.DataFrame({"bmi": [1.0], "other": [2.0]}), schema=SCHEMA)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(), st.text(max_size=4), st.integers(-100, 100)), max_size=8))
def test_the_cells_that_fit_are_those_that_encoding_leaves_alone(cells: list[object]) -> None:
    schema = Schema(columns=[SCHEMA.columns[0]])
    raw, encoded = np.full(len(cells), np.nan), schema.encode([[cell] for cell in cells], keep_missing=True).ravel()
    for place, cell in enumerate(cells):
        wide = Schema.of_bounds({"bmi": (-1e300, 1e300)})
        raw[place] = wide.encode([[cell]], keep_missing=True)[0, 0]
    fit = inspect_table([[cell] for cell in cells], schema=schema).columns[0]
    assert fit.fitting == int((raw == encoded).sum())


def test_ids_that_a_person_would_take_for_one_are_told_to_their_owner() -> None:
    ids = ["P007", "p007", "P7", "Ｐ７", "Q1", "Q10", "1.05", "1.5", None, "", 12, "012", "Q1"]
    found = inspect_table([[22, "no"]] * len(ids), schema=SCHEMA, ids=ids)
    assert found.alike_ids == (("P007", "p007", "P7"), ("12", "012")), "a wide P7 is P7 for every question"
    assert "Groups of ids that differ only in case or leading zeros: 2." in str(found)
    assert found.to_dict()["alike_ids"] == 2
    assert found.without_id == found.to_dict()["without_id"] == 2
    assert "2 rows have no id: with --id they are left out" in str(found)
    assert found.repeated_ids == 2  # a wide P7, and Q1 twice
    assert "P007" not in str(found) + repr(found) + str(found.to_dict())
    assert "alike_ids" not in inspect_table([[22, "no"]], schema=SCHEMA).to_dict()
    assert "that differ only" not in str(inspect_table([[22, "no"]] * 2, schema=SCHEMA, ids=["a", "b"]))


def test_a_date_that_cannot_be_read_is_not_an_empty_cell(tmp_path: Path) -> None:
    schema = Schema(columns=[Column.date("day", lower="2026-01-01", upper="2026-12-31")])
    table = tmp_path / "days.csv"
    table.write_text("day,n\n2026-01-02,1\n未定,2\n,3\n未定,4\n", encoding="utf-8")
    for source in (table, pd.DataFrame({"day": ["2026-01-02", "未定", None, "未定"]})):
        fit = inspect_table(source, schema=schema).columns[0]
        assert (fit.empty, fit.unreadable, fit.strange) == (1, 2, {"未定": 2})
    dates = pd.DataFrame({"day": pd.to_datetime(["2026-01-02", None])})
    fit = inspect_table(dates, schema=schema).columns[0]
    assert (fit.empty, fit.unreadable) == (1, 0)


def test_what_is_counted_as_not_fitting_is_what_reading_changes() -> None:
    """Cells at, just inside and just outside the bounds; those at a bound fit."""
    column = Column.number("x", lower=-1, upper=2)
    cells = [edge for end in (-1.0, 2.0) for edge in (math.nextafter(end, -9), end, math.nextafter(end, 9))]
    cells += [-0.0, math.inf, -math.inf, math.nan]
    fit = inspect_table([[cell] for cell in cells], schema=Schema(columns=(column,))).columns[0]
    read = column.encode(cells).tolist()
    moved = [(cell, came) for cell, came in zip(cells, read, strict=True) if cell != came and not math.isnan(cell)]
    assert fit.below == sum(came > cell for cell, came in moved)
    assert fit.above == sum(came < cell for cell, came in moved)
    assert fit.fitting == len(cells) - len(moved) - 1
