from __future__ import annotations

import copy
import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.release.tree import DEEPEST, Frozen, freeze


def test_a_frozen_array_is_a_copy_that_cannot_be_made_writeable() -> None:
    original = np.array([1.0, 2.0])
    frozen = freeze(original, "value")
    original[0] = 9.0
    assert frozen.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        frozen[0] = 5.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        frozen.setflags(write=True)


def test_a_frozen_mapping_refuses_change() -> None:
    tree = Frozen({"a": [1, {"b": 2}]})
    with pytest.raises(TypeError):
        tree["a"] = 3  # type: ignore[index]
    with pytest.raises(AttributeError, match="must not change"):
        tree._items = {}
    assert tree["a"][1]["b"] == 2


def test_what_is_done_to_an_array_that_was_handed_out_changes_nothing() -> None:
    tree = Frozen({"a": np.arange(6.0), "b": [1, ["x", np.arange(6.0)]], "c": {"d": np.arange(6.0)}})
    for take in (lambda: tree["a"], lambda: tree["b"][1][1], lambda: tree["c"]["d"], lambda: dict(tree.items())["a"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            take().dtype = "<i8"
            take().shape = (2, 3)
            held = take()
            held.dtype, held.shape = "<i4", (3, 4)
        assert (take().dtype.str, take().shape, take().tolist()) == ("<f8", (6,), [0, 1, 2, 3, 4, 5])
        assert isinstance(take().base, bytes)


def test_a_list_without_arrays_is_handed_out_as_it_is_kept() -> None:
    tree = Frozen({"long": [0.5] * 1000})
    assert tree["long"] is tree["long"]


def test_a_frozen_mapping_cannot_be_built_again_in_place() -> None:
    tree = Frozen({"a": 1})
    tree.__init__({"a": 2})  # type: ignore[misc]
    assert tree["a"] == 1
    with pytest.raises(AttributeError, match="must not change"):
        del tree._items
    with pytest.raises(TypeError):
        tree._items["a"] = 2  # type: ignore[index]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))])
def test_copies_stay_frozen(copied: Any) -> None:
    tree = copied(Frozen({"a": [np.arange(3)], "b": {"c": np.zeros(2)}}))
    assert not tree["a"][0].flags.writeable
    assert not tree["b"]["c"].flags.writeable


def test_numpy_scalars_become_plain_numbers() -> None:
    tree = Frozen({"a": np.int64(3), "b": np.float32(0.5), "c": np.bool_(True), "d": np.float64(0.1)})
    assert [type(tree[name]) for name in tree] == [int, float, bool, float]


def test_big_endian_and_strided_arrays_keep_their_values() -> None:
    array = np.arange(12, dtype=">i4").reshape(3, 4)[:, ::2]
    frozen = freeze(array, "value")
    assert frozen.dtype.str == "<i4"
    assert frozen.tolist() == array.tolist()


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1, 1)])
def test_arrays_of_any_shape_are_kept(shape: tuple[int, ...]) -> None:
    assert freeze(np.zeros(shape), "value").shape == shape


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"x": object()}, "value.x must be a number, a text"),
        ({"x": [1, {2}]}, r"value.x\[1\] must be .*got set"),
        ({"x": 1j}, "got complex"),
        ({"x": b"bytes"}, "got bytes"),
        ({"x": np.array(["a"])}, "value.x must be an array of <f8"),
        ({"x": np.array([object()])}, "got object"),
        ({"x": np.zeros(2, dtype=np.float16)}, r"got float16. Convert it"),
        ({"x": np.ma.masked_array([1.0, 2.0], mask=[0, 1])}, "plain numpy array; got MaskedArray"),
        ({"x": 2**64}, "at most 64 bits"),
        ({"x": -(2**63) - 1}, "at most 64 bits"),
        ({"x": Fraction(1, 10**4001)}, "at most 4000 digits"),
        ({"x": "\ud800"}, "valid Unicode"),
        ({"\ud800": 1}, "valid Unicode"),
        ({1: 2}, "key of type int"),
        ({"": 2}, "non-empty text as names"),
        ([1], "value must be a mapping from names to values; got list"),
    ],
)
def test_what_is_not_plain_is_refused_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Frozen(value)


def test_a_refusal_does_not_repeat_the_value() -> None:
    class Secret:
        def __repr__(self) -> str:
            return "12345"

    with pytest.raises(ParameterError) as refusal:
        Frozen({"x": Secret()})
    assert "12345" not in str(refusal.value)


def test_nesting_has_an_end() -> None:
    tree: Any = 1
    for _ in range(DEEPEST - 1):
        tree = [tree]
    Frozen({"x": tree})
    with pytest.raises(ParameterError, match=f"at most {DEEPEST} deep"):
        Frozen({"x": [[tree]]})
