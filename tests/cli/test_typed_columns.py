from __future__ import annotations

import pytest

from sabun.errors import ParameterError
from sabun.telling.terminal.columns import typed_bounds


def test_a_name_may_hold_signs_of_its_own() -> None:
    assert typed_bounds("a=b=0:1") == ("a=b", (0.0, 1.0))
    assert typed_bounds("height, in cm=0:250") == ("height, in cm", (0.0, 250.0))


@pytest.mark.parametrize("text", ["a=0:1,b=0:1", "a=0:1,b=2:3,c=4:5"])
def test_two_columns_in_one_option_are_not_read_as_one_strange_name(text: str) -> None:
    with pytest.raises(ParameterError, match="once for each column"):
        typed_bounds(text)
