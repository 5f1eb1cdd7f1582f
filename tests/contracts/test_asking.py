"""What every question hands on: all that was said about it, to the one door out."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from contracts.registry import CASES, Entry
from sabun import Guarantee, Ledger, Schema
from sabun.asking import Ask, ask
from sabun.asking.names import once
from sabun.asking.settings import same
from sabun.errors import ParameterError
from sabun.privacy.events import Approximate
from sabun.release import publish

SCHEMA = Schema.of_bounds({"age": (0, 120)})


def test_all_that_is_said_of_an_answer_reaches_the_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Ledger.create(tmp_path / "book", name="book", unit="patient", epsilon=1)
    asked = Ask.of(epsilon=1, ledger=book, retry_key="monday")
    handed: dict[str, Any] = {}
    monkeypatch.setattr(ask, "publish", lambda **given: handed.update(given))
    said = {name: object() for name in inspect.signature(Ask.answer).parameters if name not in ("self", "schema")}
    asked.answer(schema=SCHEMA, **said)  # type: ignore[arg-type]
    own = {"ledger": book, "coin": asked.coin, "key": "monday", "schema_hash": SCHEMA.hash}
    names = {"promise": "guarantee", "facts": "parameters"}
    assert handed == own | {names.get(name, name): value for name, value in said.items()}
    assert set(handed) == set(inspect.signature(publish).parameters), "what is new at the door must be said by somebody"


def test_a_promise_is_on_the_terms_that_were_asked_for(tmp_path: Path) -> None:
    book = Ledger.create(
        tmp_path / "book", name="book", unit="patient", relation="add-remove", epsilon=1, delta=Fraction(1, 10**5)
    )
    asked = Ask.of(epsilon="0.3", delta="1e-6", ledger=book)
    terms = {field.name for field in dataclasses.fields(Guarantee)} & {field.name for field in dataclasses.fields(Ask)}
    promised = asked.guarantee("noise", assumptions=["a clock"])
    assert {name: getattr(promised, name) for name in terms} == {name: getattr(asked, name) for name in terms}
    assert (promised.mechanism, promised.assumptions, promised.simulated) == ("noise", ("a clock",), False)
    assert terms == {"epsilon", "delta", "relation", "unit"}


def test_settings_of_another_type_are_no_longer_the_same() -> None:
    """A flag in the place of a number must come as far as whoever refuses it."""
    plain = [1, True, 1.0, "1", 0, False, 0.0, "", None]
    assert [(one, other) for one in plain for other in plain if same(one, other) and one is not other] == []
    assert same(10**6, int("1000000"))
    assert same("lap" + "lace", "laplace")


NO_DELTA = [1, 1.0, "1", 2, -1e-9, math.nan, math.inf, "x"]
MADE_WITH_A_DELTA: dict[str, Callable[[Path, Any], Any]] = {
    "an ask": lambda _, delta: Ask.of(epsilon=1, delta=delta),
    "a ledger": lambda path, delta: Ledger.create(path / "book", name="book", epsilon=1, delta=delta),
    "an event": lambda _, delta: Approximate(epsilon=Fraction(1), delta=delta),
}


@pytest.mark.parametrize("delta", NO_DELTA)
@pytest.mark.parametrize("made", MADE_WITH_A_DELTA)
def test_a_delta_with_which_nothing_is_promised_is_refused(made: str, delta: object, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="delta"):
        MADE_WITH_A_DELTA[made](tmp_path, delta)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("entry", CASES)
def test_a_delta_with_which_nothing_is_promised_is_refused_by_every_class(entry: Entry) -> None:
    if "delta" not in entry.make().get_params():
        return
    for delta in NO_DELTA:
        with pytest.raises(ParameterError, match="delta"):
            entry.make(delta=delta)


def test_one_parameter_has_one_value_however_often_it_is_given() -> None:
    assert once([("key", "retry_key", "a"), ("retry_key", "retry_key", "a")]) == {"retry_key": "a"}
    for values in (("a", "b"), (1, 2), (None, 0), ([1, 2], [1, 3])):
        for way in (("key", "retry_key"), ("retry_key", "key")):
            with pytest.raises(ParameterError, match=f"one as {way[0]} and another as {way[1]}"):
                once([(spelled, "retry_key", value) for spelled, value in zip(way, values, strict=True)])
