from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sabun.errors import BoundsError, DataError, ParameterError
from sabun.records import CategoryColumn, Column, NumberColumn, Schema, open_source


def test_missing_bounds_are_an_error_that_says_what_to_do() -> None:
    sentence = "column 'age' has no bounds. Bounds must not come from the data: pass bounds=(lower, upper)."
    for bounds in ({}, {"lower": 0}, {"upper": 9}):
        with pytest.raises(BoundsError) as caught:
            Column.number("age", **bounds)
        assert str(caught.value) == sentence


@pytest.mark.parametrize("pair", [(1, 1), (2, 1), (0, math.inf), (math.nan, 1), (-1.7e308, 1.7e308), (0, 10**400)])
def test_impossible_bounds_are_refused(pair: tuple[float, float]) -> None:
    with pytest.raises(
        BoundsError, match="bounds of column 'age' must be finite, lower < upper and a finite distance apart; got"
    ):
        Column.number("age", bounds=pair)


def test_bounds_of_another_kind_are_refused() -> None:
    with pytest.raises(BoundsError, match=r"must be a pair \(lower, upper\); got 7\."):
        Column.number("age", bounds=7)  # type: ignore[arg-type]
    with pytest.raises(BoundsError, match=r"must be two numbers; got \('0', 1\)\."):
        Column.number("age", lower="0", upper=1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="bounds must be the only bounds when given; got"):
        Column.number("age", bounds=(0, 1), lower=0)


def test_the_constant_for_missing_cells_lies_inside_the_bounds() -> None:
    assert Column.number("age", bounds=(0, 120)).missing == 60
    assert Column.number("age", bounds=(0, 120), missing=40).missing == 40
    for outside in (-1, 121, math.nan):
        with pytest.raises(BoundsError, match="missing of column 'age' must lie inside its bounds; got"):
            Column.number("age", bounds=(0, 120), missing=outside)


def test_log1p_needs_bounds_it_can_tell_apart() -> None:
    for pair in ((-1, 5), (1e16, 1e16 + 2)):
        with pytest.raises(
            BoundsError, match="bounds of log1p column 'gain' must have lower >= 0 and ends that log1p tells apart"
        ):
            Column.number("gain", bounds=pair, log1p=True)


def test_each_odd_cell_of_a_number_column_has_its_place() -> None:
    column = Column.number("age", lower=0, upper=100, missing=40)
    table: list[tuple[object, float]] = [
        (7, 7), (" 7.5 ", 7.5), ("+7e0", 7), (".5", 0.5), ("5.", 5), ("007", 7),
        (None, 40), (math.nan, 40), ("", 40), ("seven", 40), ("1_0", 40), ("0x10", 40), ("1,5", 40), ("nan", 40), ("１２", 40),
        (math.inf, 100), ("inf", 100), ("-Infinity", 0), (-math.inf, 0), ("1e999", 100), ("-1e999", 0),
        (10**400, 100), (-(10**400), 0),
        (True, 1), (False, 0), ("TRUE", 1), ("false", 0), (np.bool_(True), 1), (np.int8(3), 3), (np.float32(0.5), 0.5),
        (Decimal("0.1"), 0.1), (Decimal("sNaN"), 40), (Decimal("1e999999"), 100),
        (Fraction(1, 2), 0.5), (Fraction(-(10**400)), 0),
        (b"5", 40), ([5], 40), (object(), 40), (5 + 0j, 40), (np.timedelta64(5, "ns"), 40), (np.datetime64("2020-01-01"), 40),
        ("\ud800", 40), ("5\ud800", 40), ("5\x00", 40), (-0.0, 0.0), (2**53 + 1, 100),
    ]  # fmt: skip
    got = column.encode([cell for cell, _ in table])
    assert [(repr(cell)[:20], value) for (cell, _), value in zip(table, got, strict=True)] == [
        (repr(cell)[:20], float(want)) for cell, want in table
    ]
    assert not np.signbit(got).any()


def test_an_object_that_raises_is_a_missing_cell() -> None:
    class Hostile(float):
        def __float__(self) -> float:
            raise RuntimeError("a secret")

    assert Column.number("age", lower=0, upper=2, missing=1).encode([Hostile(2)]).tolist() == [1.0]


def test_each_odd_cell_of_a_category_column_has_its_place() -> None:
    column = Column.category("code", ["1", "a b", "0.5", "true", "900719925474099300", "7"])
    table: list[tuple[object, float]] = [
        ("1", 0), (" 1 ", 0), (1, 0), (1.0, 0), ("1.0", 0), (Decimal("1.00"), 0), (np.uint8(1), 0),
        ("a b", 1), ("A B", -1), (0.5, 2), ("0.50", 2), (Decimal("0.5"), 2), (True, 3), ("TRUE", 3),
        (np.bool_(True), 3), (False, -1),
        (900719925474099300, 4), (900719925474099301, -1), ("007", -1), (None, -1), (math.nan, -1), ("", -1), (math.inf, -1),
        (b"1", -1), (Decimal("1e999999"), -1), (Decimal("NaN"), -1), ("\ud800", -1), (object(), -1),
        (np.timedelta64(1, "s"), -1),
    ]  # fmt: skip
    got = column.encode([cell for cell, _ in table])
    assert [(repr(cell)[:20], value) for (cell, _), value in zip(table, got, strict=True)] == [
        (repr(cell)[:20], float(want)) for cell, want in table
    ]
    assert column.encode([10**5000]).tolist() == [-1], "a number too long to print is no label"


def test_a_label_stands_for_what_is_outside_the_list_when_one_is_named() -> None:
    column = Column.category("sex", ["F", "M", "other"], missing="other")
    assert column.encode(["M", "X", None]).tolist() == [1, 2, 2]
    assert np.isnan(column.encode(["M", "X", None], keep_missing=True)).tolist() == [False, True, True]


def test_labels_that_differ_in_trailing_zeros_stay_apart() -> None:
    column = Column.category("icd", ["250.0", "250.00"])
    assert column.encode(["250.0", "250.00", "250", 250.0]).tolist() == [0, 1, -1, -1]


def test_labels_may_be_numbers_and_booleans() -> None:
    column = Column.category("class", [0, np.int64(1), True])
    assert isinstance(column, CategoryColumn)
    assert column.categories == ("0", "1", "true")
    assert column.features == ("class=0", "class=1", "class=true")


def test_impossible_categories_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"categories must be distinct labels; got \('a', 'a'\)\. Column 'sex' needs"):
        Column.category("sex", ["a", " a"])
    with pytest.raises(ParameterError, match=r"categories must be distinct labels; got \(\)\."):
        Column.category("sex", [])
    with pytest.raises(ParameterError, match="categories must be a list of labels; got 'ab'"):
        Column.category("sex", "ab")
    with pytest.raises(ParameterError, match=r"category must be text, a whole number or a boolean; got 0\.5\."):
        Column.category("sex", [0.5])
    with pytest.raises(ParameterError, match="category must be printable text without blanks around it; got ''"):
        Column.category("sex", [" "])
    with pytest.raises(ParameterError, match="missing must be one of the categories of column 'sex' or None; got 'X'"):
        Column.category("sex", ["F"], missing="X")
    with pytest.raises(ParameterError, match="name must be a non-empty string; got ''"):
        Column.category("", ["F"])


@pytest.mark.parametrize(
    ("cells", "held"),
    [
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "dates"),
        (np.array([1], dtype="timedelta64[s]"), "durations"),
        (np.array([1j]), "complex numbers"),
        (np.array([b"1"]), "bytes"),
    ],
)
def test_a_column_of_another_type_is_refused_by_name(cells: np.ndarray, held: str) -> None:
    for column in (Column.number("when", bounds=(0, 1)), Column.category("when", ["a"])):
        with pytest.raises(DataError, match=f"column 'when' must hold numbers or text; got {held}. Turn it into numbers"):
            column.encode(cells)


def test_numpy_kinds_agree_with_python_objects() -> None:
    number, label = Column.number("x", bounds=(-5, 5)), Column.category("x", [0, 1, "0.5"])
    for cells in (
        np.array([0, 1, 200], dtype=np.uint8),
        np.array([0, 1, -(2**63)]),
        np.array([0.0, 0.5, np.nan, np.inf, -np.inf]),
        np.array([0, 0.5], dtype=np.float16),
        np.array([1e4000, 1], dtype=np.longdouble),
        np.array([True, False]),
        np.array(["1", " 0.5", "x"]),
        np.array([], dtype=float),
    ):
        assert np.array_equal(number.encode(cells), number.encode(cells.tolist()))
        assert np.array_equal(label.encode(cells), label.encode(cells.tolist()))


def test_declarations_are_frozen() -> None:
    column = Column.number("x", bounds=(0, 1))
    with pytest.raises(AttributeError):
        column.upper = 5.0  # type: ignore[misc]
    assert isinstance(column, NumberColumn)


def test_a_unit_is_declared_and_one_that_is_not_leaves_no_trace() -> None:
    plain, heavy = Column.number("w", lower=0, upper=9), Column.number("w", lower=0, upper=9, unit="kg")
    assert Column.from_dict(heavy.to_dict()) == heavy != plain
    assert "unit" not in plain.to_dict()
    assert repr(heavy) == repr(plain) == "NumberColumn(name='w', lower=0.0, upper=9.0, missing=4.5, log1p=False)"
    assert str(heavy) == "w: a number from 0 to 9 kg; unreadable cells count as 4.5 kg"
    assert str(Column.number("x", lower=0, upper=2e6)) == "x: a number from 0 to 2,000,000; unreadable cells count as 1,000,000"
    digest = "6f5e6beddbddbcb5"  # as it was before there were units
    assert Schema(columns=[plain]).hash.startswith(digest)
    assert not Schema(columns=[heavy]).hash.startswith(digest)


@pytest.mark.parametrize("unit", ["k" * 25, " kg", "k\ng", "\u202ekg", 7, None])
def test_a_unit_that_cannot_stand_beside_a_number_is_refused(unit: object) -> None:
    with pytest.raises(ParameterError, match="unit must be at most 24 printable characters"):
        Column.number("w", lower=0, upper=9, unit=unit)  # type: ignore[arg-type]


def test_a_column_of_dates_counts_days() -> None:
    with pytest.raises(ParameterError, match=r"unit must be left out for a column of dates, which counts days; got 'kg'\."):
        NumberColumn(name="d", lower=0, upper=9, missing=1, dates=True, unit="kg")


def _doors_of_moments() -> dict[str, Any]:
    """One moment late in the evening and one early in the morning, each on another day in UTC."""
    zones = (ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York"))
    made: dict[str, Any] = {}
    for zone in zones:
        moments = [datetime.datetime(2024, 3, 1, hour, 30, tzinfo=zone) for hour in (0, 23)]
        texts = [moment.isoformat() for moment in moments]
        stamps = pa.array(moments, pa.timestamp("us", tz=zone.key))
        frame = pd.DataFrame({"d": pd.Series(moments).dt.tz_convert(zone)})
        made |= {
            f"list {zone}": [[moment] for moment in moments],
            f"objects {zone}": np.array([[moment] for moment in moments], dtype=object),
            f"texts {zone}": [[text] for text in texts],
            f"frame {zone}": frame,
            f"frame of objects {zone}": frame.astype(object),
            f"frame of arrow {zone}": pd.DataFrame({"d": pd.Series(stamps, dtype=pd.ArrowDtype(stamps.type))}),
            f"polars {zone}": pl.DataFrame({"d": moments}, schema={"d": pl.Datetime("us", zone.key)}),
            f"arrow {zone}": pa.table({"d": stamps}),
            f"arrow in chunks {zone}": pa.table({"d": pa.chunked_array([stamps[:1], stamps[1:]])}),
            f"arrow with a list of labels {zone}": pa.table({"d": stamps.dictionary_encode()}),
            f"arrow texts {zone}": pa.table({"d": texts}),
            f"csv {zone}": "d\n" + "".join(f"{text}\n" for text in texts),
        }
    return made


MOMENTS = _doors_of_moments()


@pytest.mark.parametrize("door", MOMENTS)
def test_a_moment_with_a_zone_has_the_day_of_its_zone_by_every_door(door: str, tmp_path: Path) -> None:
    table, schema = MOMENTS[door], Schema(columns=(Column.date("d", lower="2000-01-01", upper="2040-01-01"),))
    if isinstance(table, str):
        (tmp_path / "t.csv").write_text(table)
        table = tmp_path / "t.csv"
    wanted = float(datetime.date(2024, 3, 1).toordinal() - datetime.date(1970, 1, 1).toordinal())
    assert open_source(table, schema=schema).matrix()[:, 0].tolist() == [wanted, wanted]
