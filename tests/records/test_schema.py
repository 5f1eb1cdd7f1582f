from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sabun.errors import BoundsError, DataError, ParameterError
from sabun.records import Column, Schema

MIXED = Schema(
    columns=[
        Column.number("age", lower=0, upper=120, missing=40),
        Column.category("sex", ["F", "M"], missing="F"),
        Column.number("gain", lower=0, upper=99_999, missing=0, log1p=True),
        Column.category("job", ["clerk", "nurse", "smith"]),
    ]
)


def test_a_schema_survives_every_way_of_writing_it(tmp_path: Path) -> None:
    MIXED.save(tmp_path / "schema.json")
    for other in (
        Schema.load(tmp_path / "schema.json"),
        Schema.from_dict(MIXED.to_dict()),
        Schema.from_json(MIXED.to_json()),
        pickle.loads(pickle.dumps(MIXED)),
    ):
        assert other == MIXED
        assert other.hash == MIXED.hash


def test_the_hash_is_of_the_public_facts_alone() -> None:
    assert Schema.of_bounds({"age": (0, 120)}).hash == Schema.of_bounds({"age": (0.0, 120.0)}).hash
    assert Schema.of_bounds({"age": (-0.0, 120)}).hash == Schema.of_bounds({"age": (0.0, 120.0)}).hash
    assert Schema.of_bounds({"age": (0, 120)}).hash != Schema.of_bounds({"age": (0, 121)}).hash
    assert len(MIXED.hash) == 64


def test_canonical_json_is_sorted_and_without_blanks() -> None:
    text = Schema.of_bounds({"age": (0, 120)}).to_json()
    assert text == (
        '{"columns":[{"kind":"number","log1p":false,"lower":0.0,"missing":60.0,"name":"age","upper":120.0}],'
        '"format":"sabun-schema-1"}'
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("format"), r"keys of a schema must be columns, format \(and file if wanted\); got"),
        (lambda d: d.update(extra=1), r"keys of a schema must be columns, format \(and file if wanted\); got"),
        (lambda d: d.update(format="sabun-schema-2"), "format must be 'sabun-schema-1'; got 'sabun-schema-2'"),
        (lambda d: d.update(columns={}), "columns must be a list of columns; got"),
        (lambda d: d.update(columns=[]), "columns must be distinct names of at least one column; got"),
        (lambda d: d["columns"].append(d["columns"][0]), "columns must be distinct names of at least one column; got"),
        (lambda d: d["columns"][0].update(kind="day"), "kind must be 'number', 'date' or 'category'; got 'day'"),
        (lambda d: d["columns"][0].update(kind=[]), r"kind must be 'number', 'date' or 'category'; got \[\]"),
        (
            lambda d: d["columns"][0].update(units="y"),
            r"keys of a number column must be kind, lower, name, upper \(and log1p or missing or unit if wanted\); got",
        ),
        (
            lambda d: d["columns"][1].update(unit="y"),
            r"keys of a category column must be kind, categories, name \(and missing if wanted\); got",
        ),
        (lambda d: d["columns"][0].update(unit=None), "unit must be at most 24 printable characters"),
        (lambda d: d["columns"][0].pop("upper"), "column 'age' has no bounds. Bounds must not come from the data"),
        (lambda d: d["columns"][0].update(upper=-1), "bounds of column 'age' must be finite"),
        (lambda d: d["columns"][0].update(log1p=1), "log1p must be True or False; got 1"),
        (lambda d: d["columns"][1].update(categories="FM"), "categories must be a list of labels; got 'FM'"),
        (lambda d: d["columns"][1].update(categories=["F", ""]), "category must be printable text"),
        (lambda d: d["columns"].append(5), "column must be a JSON object; got 5"),
    ],
)
def test_a_schema_file_is_checked_strictly(change: Any, message: str) -> None:
    mapping = MIXED.to_dict()
    change(mapping)
    with pytest.raises(ParameterError, match=message):
        Schema.from_json(json.dumps(mapping))


def test_a_schema_that_is_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="a schema must be valid JSON; line 1, column 2"):
        Schema.from_json("{")
    with pytest.raises(ParameterError, match="a schema must not have a key twice; got 'format' again"):
        Schema.from_json('{"format": 1, "format": 2}')
    with pytest.raises(DataError, match=r"schema file '.*none.json' cannot be read\. Check its name\."):
        Schema.load(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"schema file '.*latin.json' must be UTF-8 text\."):
        Schema.load(tmp_path / "latin.json")


def test_select_takes_columns_in_the_order_asked_for() -> None:
    assert MIXED.select(["job", "age"]).names == ("job", "age")
    assert MIXED["sex"] is MIXED.columns[1]
    with pytest.raises(ParameterError, match=r"a declared column; got 'height'\. Choose one of 'age', 'sex', 'gain', 'job'\."):
        MIXED.select(["height"])


def test_a_schema_written_by_hand_may_leave_out_what_has_a_default() -> None:
    text = """{"format": "sabun-schema-1", "columns": [
        {"kind": "number", "name": "age", "lower": 0, "upper": 120},
        {"kind": "category", "name": "grade", "categories": [1, 2]}]}"""
    assert Schema.from_json(text) == Schema(
        columns=[Column.number("age", lower=0, upper=120), Column.category("grade", ["1", "2"])]
    )


def test_replacing_declares_a_column_anew() -> None:
    plain = MIXED.replacing(Column.number("gain", lower=0, upper=99_999))
    assert plain.names == MIXED.names
    assert plain["gain"] == Column.number("gain", lower=0, upper=99_999)
    with pytest.raises(ParameterError, match="column must be a declared column"):
        MIXED.replacing(Column.category("height", ["a"]))


def test_bounds_without_names_are_for_arrays() -> None:
    schema = Schema.of_bounds([(0, 120), (10, 60)])
    assert schema.names == ("x0", "x1")
    with pytest.raises(BoundsError, match="column 'bmi' has no bounds"):
        Schema.of_bounds({"age": (0, 120), "bmi": None})
    with pytest.raises(BoundsError, match="bounds must be declared"):
        Schema.of_bounds(None)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"missing must be given for declared columns only; got \['size'\]"):
        Schema.of_bounds({"age": (0, 120)}, missing={"size": 1})


def test_columns_must_be_declarations() -> None:
    with pytest.raises(
        ParameterError, match=r"column must be made by Column.number, Column.date or Column.category; got 'age'"
    ):
        Schema(columns=["age"])  # type: ignore[list-item]


def test_scaling_uses_the_bounds_alone() -> None:
    schema = Schema.of_bounds({"age": (0, 120), "bmi": (10, 60)})
    matrix = np.array([[0.0, 10.0], [60.0, 35.0], [120.0, 60.0]])
    assert schema.scaled(matrix).tolist() == [[-1, -1], [0, 0], [1, 1]]
    assert schema.scaled(matrix, to=(0, 1)).tolist() == [[0, 0], [0.5, 0.5], [1, 1]]
    assert matrix[2].tolist() == [120, 60], "the argument is left alone"
    assert -2.0 + (0.1 + 2.0) > 0.1, "rounding steps over the end"
    assert schema.scaled(matrix, to=(-2.0, 0.1)).max() == 0.1
    assert not np.signbit(schema.scaled(matrix, to=(-1.0, -0.0))[2]).any()


def test_log1p_is_applied_when_scaling_and_not_before() -> None:
    schema = MIXED.select(["gain"])
    matrix = schema.encode([[999.0], [99_999.0], [0.0]])
    assert matrix.ravel().tolist() == [999, 99_999, 0]
    assert schema.scaled(matrix, to=(0, 1)).ravel() == pytest.approx([0.6, 1, 0])


def test_one_hot_spreads_codes_and_leaves_numbers() -> None:
    matrix = MIXED.encode([[30, "M", 5, "smith"], [30, "?", 5, "?"]])
    assert MIXED.one_hot(matrix).tolist() == [[30, 0, 1, 5, 0, 0, 1], [30, 1, 0, 5, 0, 0, 0]]
    assert MIXED.features == ("age", "sex=F", "sex=M", "gain", "job=clerk", "job=nurse", "job=smith")
    assert MIXED.width == 7
    assert MIXED.design(matrix).min() >= -1
    assert MIXED.design(matrix).max() <= 1


def test_one_hot_treats_an_unknown_code_as_none_of_these() -> None:
    schema = MIXED.select(["job"])
    assert schema.one_hot(np.array([[3.0], [-1.0], [1.0]])).tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_keep_missing_leaves_nan_through_all_steps() -> None:
    matrix = MIXED.encode([[None, "M", 5, "smith"], [30, "?", 5, "nurse"], [30, "M", "inf", "clerk"]], keep_missing=True)
    assert np.isnan(matrix).tolist() == [[True, False, False, False], [False, True, False, False], [False] * 4]
    assert np.isnan(MIXED.design(matrix)).any(axis=1).tolist() == [True, True, False]


def test_matrices_of_another_shape_are_refused_without_their_length() -> None:
    with pytest.raises(DataError, match=r"an encoded matrix must have 4 columns; got shape \('n', 3\)\."):
        MIXED.scaled(np.zeros((7, 3)))
    with pytest.raises(DataError, match=r"an encoded matrix must have 4 columns; got shape \('n',\)\."):
        MIXED.one_hot(np.zeros(7))
    for to in ((1, 0), (0, float("inf")), (0, 1, 2)):
        with pytest.raises(ParameterError, match=r"to must be a pair \(low, high\) of finite numbers with low < high; got"):
            MIXED.scaled(np.zeros((7, 4)), to=to)  # type: ignore[arg-type]


def test_one_column_can_be_a_series_or_a_flat_array() -> None:
    schema = MIXED.select(["job"])
    assert schema.encode(np.array(["nurse", "clerk"])).tolist() == [[1], [0]]
    assert schema.encode(["nurse", "clerk"]).tolist() == [[1], [0]]
