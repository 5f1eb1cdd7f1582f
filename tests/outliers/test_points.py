"""What is a table to count outliers in, and what is refused without a word about its cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sabun.errors import DataError
from sabun.outliers import OutlierCount, outlier_degrees
from sabun.records import Schema


def count(**changes: Any) -> OutlierCount:
    return OutlierCount(**({"k": 1, "radius": 1, "epsilon": 1} | changes))


@pytest.mark.parametrize("rows", [[], [[1.0]], [[1.0], [2.0]], ()])
def test_under_add_remove_a_plain_list_is_refused_whatever_it_holds(rows: object) -> None:
    with pytest.raises(
        DataError, match=r"must be an array or a frame, which has its columns even without a row; got a (list|tuple)"
    ):
        OutlierCount(k=2, radius=1, epsilon=1, relation="add-remove").fit(rows)


def test_under_add_remove_an_empty_array_is_a_table_like_any_other() -> None:
    made = [OutlierCount(k=2, radius=1, epsilon=1, relation="add-remove").fit(np.zeros((n, 2))) for n in (0, 1)]
    assert made[0].release_.provenance.parameters == made[1].release_.provenance.parameters


@pytest.mark.parametrize("rows", [[[2**70], [1]], [[2**63], [-1]], [[2**62], [1]], np.array([[1], [2.5]], dtype=object)])
def test_whole_numbers_may_be_longer_than_a_machine_word(rows: object) -> None:
    assert outlier_degrees(rows, radius=1).tolist() == [0, 0]
    OutlierCount(k=1, radius=1, epsilon=1).fit(rows)


@pytest.mark.parametrize("cell", [10**400, 10**200, float("inf")])
def test_numbers_beyond_the_domain_are_refused_alike(cell: object) -> None:
    with pytest.raises(DataError, match="finite numbers of at most 1e\\+150 in size; at least one is not"):
        outlier_degrees([[cell], [1]], radius=1)


@pytest.mark.parametrize("cell", ["a", "somebody's long answer", None, 1j, b"x"])
def test_a_refusal_does_not_tell_how_long_a_text_is(cell: object) -> None:
    with pytest.raises(DataError, match=r"a table must hold numbers; got cells of type [a-z]+(128)?_?\. Declare a schema"):
        outlier_degrees([[cell], [cell]], radius=1)


def test_what_a_mask_hides_is_not_counted() -> None:
    hidden = np.ma.MaskedArray([[0.0, 0.0], [5.0, 1.0]], mask=[[0, 0], [1, 0]])
    rows: list[object] = [hidden, np.ma.MaskedArray(np.zeros((2, 2)))]
    for table in rows:
        with pytest.raises(DataError, match=r"must have no mask; it has one\. Declare a schema"):
            count().fit(table)
    with pytest.raises(DataError, match="must hold numbers"):
        count().fit(list(hidden))
    assert count(schema=Schema.of_bounds([(0, 9), (0, 9)])).fit(hidden).count_ >= 0


@pytest.mark.parametrize("table", [[[True], [False]], [[True], [1]], [[1.5], [np.True_]], [[True], [2**70]]])
def test_a_boolean_is_no_number_whatever_stands_beside_it(table: object) -> None:
    with pytest.raises(DataError, match="must hold numbers; got cells of type object_"):
        count().fit(table)


class Hostile(type):
    def __hash__(cls) -> int:
        raise RuntimeError("private 42")

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("private 42")


class Cell(metaclass=Hostile):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("private 42")


def test_a_cell_of_a_hostile_type_is_asked_nothing() -> None:
    boxed = np.empty((2, 1), dtype=object)
    boxed[0, 0], boxed[1, 0] = Cell(), 1.0
    for table in ([[Cell()], [1.0]], [[1.0], Cell()], boxed):
        with pytest.raises(DataError, match="must hold numbers"):
            count().fit(table)
