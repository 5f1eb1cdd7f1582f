from __future__ import annotations

import json
import time
from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.errors import ParameterError
from sabun.keyvalue import Study
from sabun.keyvalue.client import (
    ClientError,
    Terms,
)

GOOD: dict[str, Any] = {"keys": ("a", "b"), "epsilon": Fraction(2), "protocol": "kv3"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be finite and > 0"),
        ({"epsilon": -1.0}, "epsilon must be finite and > 0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number; got nan"),
        ({"epsilon": float("inf")}, "epsilon must be a finite number; got inf"),
        ({"epsilon": True}, "epsilon must be a finite number; got True"),
        ({"keys": ()}, "keys must be a list of 1 to 16777216 names; got '0 names'"),
        ({"keys": "ab"}, "keys must be a list of names; got 'str'"),
        ({"keys": ("a", "a")}, "keys must be distinct; got 'a' twice"),
        ({"keys": ("a", 1)}, "keys must be all texts or all whole numbers, none of them empty"),
        ({"keys": ("a", "")}, "keys must be all texts or all whole numbers, none of them empty"),
        ({"protocol": "kv4"}, "protocol must be one of 'kv3'"),
        ({"padding_length": 2}, "padding_length must be 1 for 'kv3'; got 2"),
        ({"padding_length": 3, "protocol": "pckv-ue"}, "padding_length must be a whole number from 1 to 2; got 3"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to 4294967295; got 0"),
        ({"rounds": 1, "protocol": "privkvm"}, "rounds must be at least 2 for 'privkvm'; got 1"),
        ({"table_bits": 8}, "table_bits must be a whole number from 16 to 64; got 8"),
        ({"answers": "loud"}, "answers must be one of 'memoised', 'fresh'; got 'loud'"),
        ({"index_mode": "guessed"}, "index_mode must be one of 'assigned', 'chosen'; got 'guessed'"),
        ({"index_commitment": "0"}, "index_commitment must be None or a SHA-256 in hex"),
        ({"index_commitment": "0" * 64, "index_mode": "chosen"}, "index_commitment must be left out unless the server"),
        ({"value_range": (1, 1)}, r"value_range must be a pair with lower < upper"),
        ({"value_range": 3}, r"value_range must be a pair \(lower, upper\); got 3"),
        ({"min_batch": 0}, "min_batch must be a whole number from 1"),
        ({"not_before": "2026-01-01"}, "not_before must be a date or None"),
        ({"not_before": date(2026, 1, 2), "not_after": date(2026, 1, 1)}, "not_after must be at least 2026-01-02"),
        ({"typical_frequency": 0}, "typical_frequency must be above 0 and at most 1; got 0"),
        ({"keys_per_user": 0}, "keys_per_user must be a whole number from 1"),
        ({"requested": "privkv"}, "requested must be one of 'auto', 'auto-f', 'auto-m', 'kv3'; got 'privkv'"),
    ],
)
def test_a_term_that_breaks_its_rule_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ClientError, match=message):
        Terms(**GOOD | change)


keys = st.lists(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5, unique=True)


@given(keys, st.fractions(min_value=Fraction(1, 100), max_value=10), st.sampled_from(["kv3", "pckv-ue"]))
@settings(deadline=None)
def test_terms_survive_their_json(names: list[str], epsilon: Fraction, protocol: str) -> None:
    terms = Terms(keys=tuple(names), epsilon=epsilon, protocol=protocol)
    again = Terms.from_json(terms.to_json())
    assert again == terms
    assert again.task_id == terms.task_id
    assert terms.to_json().isascii()


def test_one_changed_letter_is_another_study() -> None:
    changes: list[dict[str, Any]] = [{}, {"epsilon": 3}, {"keys": ("a", "B")}, {"min_batch": 2}, {"index_mode": "chosen"}]
    assert len({Terms(**GOOD | change).task_id for change in changes}) == len(changes)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: text + "x", "a study must be valid JSON"),
        (lambda text: text.replace(",", ", "), "a study must be in its canonical form"),
        (lambda text: json.dumps(json.loads(text) | {"more": 1}), "a study must have exactly the fields of version 1"),
        (lambda text: text.replace('"version":1', '"version":2'), "version must be 1; got another"),
        (lambda text: text.replace('"epsilon":"2"', '"epsilon":"x"'), "a study must hold keys, numbers and dates"),
        (lambda text: text.replace('"epsilon":"2"', '"epsilon":"2.0"'), "a study must be in its canonical form"),
        (lambda text: "[]", "a study must have exactly the fields of version 1"),
    ],
)
def test_an_edited_study_is_refused(edit: Any, message: str) -> None:
    with pytest.raises(ClientError, match=message):
        Terms.from_json(edit(Terms(**GOOD).to_json()))


ONE = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3")


@pytest.mark.parametrize(
    "ends",
    [(0, "1e400"), (0, "1.8e308"), ("-1e400", 1), (-1e308, 1e308), (0, 10**400), (1, "1.00000000000000000001"), (0, 2e100)],
)
def test_a_range_that_no_device_can_compute_with_is_refused_before_anybody_answers(ends: Any) -> None:
    """A range end beyond the floats made the device raise if, and only if, its person held the key."""
    with pytest.raises(ClientError, match="value_range must be a pair with lower < upper, both within 1e100 of 0; got"):
        Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3", value_range=ends)
    with pytest.raises(ParameterError, match="value_range must be"):
        Study(keys=["a", "b"], epsilon=1, value_range=ends)


def test_two_key_lists_never_share_a_task_id() -> None:
    assert Terms(keys=("\U0001f600",), epsilon=Fraction(1), protocol="kv3").task_id
    for keys in (("\ud83d\ude00",), ("x\udc00", "b")):
        with pytest.raises(ClientError, match="keys must be texts without surrogates; got 'a lone half of a character'"):
            Terms(keys=keys, epsilon=Fraction(1), protocol="kv3")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"epsilon":"1"', '"epsilon":"1e3000000"'),
        ('"epsilon":"1"', '"epsilon":"1e3_000_000"'),
        ('"epsilon":"1"', '"epsilon":"1e-3000000"'),
        ('"epsilon":"1"', '"epsilon":"' + "9" * 5000 + '"'),
        ('"epsilon":"1"', '"epsilon":1' + "0" * 4200),
        ('"value_range":["-1","1"]', '"value_range":["-1","1e5000"]'),
        ('"value_range":["-1","1"]', '"value_range":["-1","1e900"]'),
        ('"keys":["a"]', '"keys":[["a"]]'),
        ('"keys":["a"]', '"keys":{"a":1}'),
        ('"protocol":"kv3"', '"protocol":["kv3"]'),
        ('"requested":"kv3"', '"requested":{}'),
        ('"index_commitment":null', '"index_commitment":[]'),
    ],
)
def test_a_hostile_study_is_refused_quickly_in_words(old: str, new: str) -> None:
    text = ONE.to_json()
    assert old in text
    begin = time.process_time()
    with pytest.raises(ClientError):
        Terms.from_json(text.replace(old, new))
    assert time.process_time() - begin < 0.5


def test_a_number_too_long_to_write_down_is_refused_in_words() -> None:
    with pytest.raises(ClientError, match="epsilon must be a finite number; got a int that cannot be shown"):
        Terms(keys=("a",), epsilon=10**5000, protocol="kv3")  # type: ignore[arg-type]
