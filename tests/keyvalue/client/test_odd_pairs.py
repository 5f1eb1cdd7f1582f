from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest

from sabun.keyvalue.client import (
    Client,
    ClientError,
    Diary,
    Harmony,
    Terms,
    report_size,
)

ONE = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3")


class Raising(float):
    def __new__(cls, error: BaseException) -> Raising:
        made = super().__new__(cls, 1.0)
        made.error = error
        return made

    error: BaseException

    def __float__(self) -> float:
        raise self.error


@pytest.mark.parametrize("error", [asyncio.CancelledError(), GeneratorExit(), BaseException()])
def test_a_value_that_is_cancelled_is_absent(error: BaseException) -> None:
    """It stopped the report of those who held the key, and of nobody else."""
    assert len(Client(ONE).report({"a": Raising(error)})) == report_size(ONE)
    assert Harmony(epsilon=Fraction(1)).answer(Raising(error)) in (1, 2)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_order_to_stop_stops_with_nothing_booked(error: type[BaseException]) -> None:
    diary = Diary.in_memory()
    with pytest.raises(error):
        Client(ONE, diary=diary).report({"a": Raising(error())})
    assert diary.spent == 0


class Broken(Mapping[Any, Any]):
    """Shows one pair, then breaks."""

    def __getitem__(self, key: Any) -> Any:
        raise OSError

    def __iter__(self) -> Iterator[Any]:
        yield "a"
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


class OddKey:
    def __hash__(self) -> int:
        return hash("a")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError


class OddNumber(float):
    def __float__(self) -> float:
        raise RuntimeError


@pytest.mark.parametrize("held", [Broken(), {OddKey(): 1}, {"a": OddNumber(0.5)}, {"a": 10**400}, {"a": Fraction(10**400)}])
@pytest.mark.parametrize("protocol", ["kv3", "privkvm", "pckv-ue", "pckv-grr+", "set"])
def test_nothing_in_the_pairs_can_make_the_device_raise(held: Any, protocol: str) -> None:
    terms = Terms(keys=("a", "b"), epsilon=Fraction(1), protocol=protocol, rounds=2 if protocol == "privkvm" else 1)
    assert len(Client(terms, clip=True).report(held)) == len(Client(terms).report(held)) == report_size(terms)


def test_an_odd_key_does_not_hide_the_others() -> None:
    client = Client(Terms(keys=("a", "b"), epsilon=Fraction(1), protocol="pckv-ue"))
    assert client._thresholds({OddKey(): 1, "b": 1.0}) == {1: 1 << 53}  # type: ignore[dict-item]


def test_an_infinite_published_mean_is_refused_even_where_values_are_clipped() -> None:
    client = Client(Terms(keys=("a",), epsilon=Fraction(1), protocol="privkvm", rounds=2), clip=True)
    with pytest.raises(ClientError, match="means must be the published mean of every key"):
        client.report({}, round=1, means={"a": float("inf")})
