from __future__ import annotations

import pytest

from sabun.errors import ParameterError
from sabun.records import Column, Schema
from sabun.telling.terminal.columns import listed, typed_bounds


def test_a_name_may_hold_signs_of_its_own() -> None:
    assert typed_bounds("a=b=0:1") == ("a=b", (0.0, 1.0))
    assert typed_bounds("height, in cm=0:250") == ("height, in cm", (0.0, 250.0))


@pytest.mark.parametrize("text", ["a=0:1,b=0:1", "a=0:1,b=2:3,c=4:5"])
def test_two_columns_in_one_option_are_not_read_as_one_strange_name(text: str) -> None:
    with pytest.raises(ParameterError, match="once for each column"):
        typed_bounds(text)


def test_a_wide_comma_parts_names_unless_a_name_holds_one() -> None:
    known = Schema(columns=[Column.number(name, bounds=(0, 1)) for name in ("年齢", "地区", "市、区")])
    assert listed("年齢、地区", known) == ["年齢", "地区"]
    assert listed("市、区,年齢", known) == ["市、区", "年齢"]
    with pytest.raises(ParameterError, match="columns must be declared; got '氏名', which is not"):
        listed("年齢、氏名", known)
