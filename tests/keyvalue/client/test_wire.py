from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sabun.keyvalue
from keyvalue.wire_vectors import text
from sabun.keyvalue.client import (
    PROTOCOLS,
    Client,
    Diary,
    Report,
    ReportError,
    Terms,
    assigned_index,
    assigned_indices,
    from_json,
    pack,
    report_id,
    report_size,
    to_json,
    unpack,
)
from sabun.keyvalue.client.channel import joint_symbol, ternary_symbol
from sabun.keyvalue.client.subsets import drawn_symbols, is_kept, symbols_of
from sabun.keyvalue.client.wire import pack_symbols, unpack_symbols

FILE = Path(sabun.keyvalue.__file__).parent / "wire-vectors.json"
VECTORS = json.loads(FILE.read_text(encoding="ascii"))


def terms(protocol: str, **more: Any) -> Terms:
    rounds = {"rounds": 3} if protocol == "privkvm" else {}
    return Terms(**({"keys": tuple("abcde"), "epsilon": Fraction(2), "protocol": protocol} | rounds | more))


@pytest.mark.parametrize("vector", VECTORS["studies"], ids=lambda vector: vector["name"])
def test_golden_vectors(vector: dict[str, Any]) -> None:
    """What another implementation has to agree with, byte for byte."""
    study = Terms.from_json(vector["terms"])
    assert study.task_id == vector["task_id"]
    table = {name: str(getattr(study.table, name)) for name in vector["table"]}
    assert table == vector["table"]
    assert str(study.certified) == vector["certified_epsilon"]
    credential = bytes.fromhex(vector["credential"])
    assert report_id(study, credential).hex() == vector["report_id"]
    if study.sampled:
        assert assigned_index(study, report_id(study, credential)) == vector["assigned_index"]
    for case in vector["symbols"]:
        word = int(case["word"])
        if study.protocol in ("set", "set-f"):
            own = symbols_of(study.subset, [(key, state) for key, state in case["held"]])
            assert sorted(own) == case["own"]
            assert is_kept(study.subset, own, case["drawn"], word) is case["kept"]
            assert list(drawn_symbols(study.subset, case["drawn"])) == case["symbol"]
        elif study.sampled:
            assert ternary_symbol(study.table, case["state"], word) == case["symbol"]
        else:
            picked = None if case["picked"] is None else tuple(case["picked"])
            assert joint_symbol(study.table, len(study.keys), picked, word) == case["symbol"]  # type: ignore[arg-type]
    for report in vector["reports"]:
        content = bytes.fromhex(report["bytes"])
        assert to_json(study, content) == report["json"]
        assert from_json(study, report["json"]) == content


def test_the_vectors_are_what_their_generator_writes() -> None:
    assert FILE.read_text(encoding="ascii") == text()


@pytest.mark.parametrize("mode", ["assigned", "chosen"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_report_survives_bytes_and_json(protocol: str, mode: str) -> None:
    study = terms(protocol, index_mode=mode)
    for _ in range(5):
        content = Client(study).report({"a": 1.0, "c": -1.0})
        assert len(content) == report_size(study)
        assert pack(study, unpack(study, content)) == content
        assert from_json(study, to_json(study, content)) == content


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30))
def test_symbols_survive_packing(symbols: list[int]) -> None:
    assert unpack_symbols(pack_symbols(symbols), len(symbols)) == tuple(symbols)


@pytest.mark.parametrize(
    ("protocol", "mode", "damage", "message"),
    [
        ("kv3", "assigned", lambda b: b + b"\0", "a report of this study must have 38 bytes; got 39"),
        ("kv3", "assigned", lambda b: b[:-1], "a report of this study must have 38 bytes; got 37"),
        ("kv3", "assigned", lambda b: b"", "a report of this study must have 38 bytes; got 0"),
        ("kv3", "assigned", lambda b: b"\2" + b[1:], "version must be 1; got 2"),
        ("kv3", "assigned", lambda b: b[:1] + bytes(16) + b[17:], "the report must belong to this study; it names another"),
        ("kv3", "assigned", lambda b: b[:17] + b"\0\0\0\1" + b[21:], "round must be below 1; got 1"),
        ("kv3", "assigned", lambda b: b[:-1] + b"\3", "symbol must be 0, 1 or 2; got 3"),
        ("kv3", "chosen", lambda b: b[:37] + b"\0\0\0\5" + b[41:], "index must be below 5; got 5"),
        ("pckv-grr+", "assigned", lambda b: b[:37] + b"\0\0\0\13", "symbol must be at most 10; got 11"),
        ("pckv-ue", "assigned", lambda b: b[:37] + b"\xc0\0", "each symbol must be 0, 1 or 2, with zeros after the last key"),
        ("pckv-ue", "assigned", lambda b: b[:37] + b"\0\1", "each symbol must be 0, 1 or 2, with zeros after the last key"),
    ],
)
def test_a_damaged_report_is_refused(protocol: str, mode: str, damage: Any, message: str) -> None:
    study = terms(protocol, index_mode=mode)
    with pytest.raises(ReportError, match=message):
        unpack(study, damage(Client(study).report({})))


@pytest.mark.parametrize(
    "change", [{"symbol": 3}, {"symbol": "1"}, {"symbol": True}, {"id": "zz"}, {"round": -1}, {"index": 3}, {"more": 1}]
)
def test_a_damaged_json_report_is_refused(change: dict[str, Any]) -> None:
    study = terms("kv3")
    record = json.loads(to_json(study, Client(study).report({}))) | change
    with pytest.raises(ReportError):
        from_json(study, json.dumps(record))


@pytest.mark.parametrize("protocol", ["kv3", "pckv-ue", "set"])
def test_what_python_takes_for_a_whole_number_is_none_in_json(protocol: str) -> None:
    study = terms(protocol)
    whole: Any = 0 if protocol == "kv3" else (1, 0, 0, 0, 0)
    report = json.loads(to_json(study, pack(study, Report(round=0, report_id=bytes(16), index=None, symbol=whole))))
    symbols: list[Any] = [False, 0.0] if protocol == "kv3" else [[one, 0, 0, 0, 0] for one in (True, 1.0)]
    changes: list[dict[str, Any]] = [{"round": False}, {"version": True}, {"version": 1.0}, {"round": 0.0}]
    changes += [{"symbol": symbol} for symbol in symbols]
    assert from_json(study, json.dumps(report))
    for change in changes:
        with pytest.raises(ReportError):
            from_json(study, json.dumps(report | change))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_report_or_an_error(content: bytes) -> None:
    study = terms("pckv-ue")
    with pytest.raises(ReportError):
        unpack(study, content)
    with pytest.raises(ReportError):
        from_json(study, content.decode("latin-1"))


def test_assigned_keys_are_uniform_and_cannot_be_aimed_with_a_secret_seed() -> None:
    study = terms("kv3")
    found = Counter(assigned_index(study, number.to_bytes(16, "big")) for number in range(10_000))
    assert sum((found[key] - 2000) ** 2 / 2000 for key in range(5)) < 40
    moved = sum(
        assigned_index(study, number.to_bytes(16, "big"), b"seed") != assigned_index(study, number.to_bytes(16, "big"))
        for number in range(1000)
    )
    assert 700 < moved < 900


@pytest.mark.parametrize("seed", [b"", b"s" * 32, b"s" * 52, b"s" * 53, b"s" * 200], ids=len)
def test_many_assigned_keys_are_those_of_each(seed: bytes) -> None:
    """A seed up to and beyond one block of the hash; and so many keys that a quarter of all first draws is rejected."""
    many = cast("Terms", SimpleNamespace(keys=range((1 << 62) + 1), short_id=bytes(16)))
    ids = [number.to_bytes(16, "big") for number in range(200)]
    for study in (terms("kv3"), many):
        assert assigned_indices(study, ids, seed) == [assigned_index(study, id, seed) for id in ids]


def test_the_report_id_is_the_same_in_every_round_and_another_in_every_study() -> None:
    study = terms("kv3", rounds=2)
    client = Client(study, credential=b"0123456789abcdef", diary=Diary.in_memory())
    first, second = (unpack(study, client.report({}, round=number)) for number in range(2))
    assert first.report_id == second.report_id
    assert report_id(terms("kv3"), b"0123456789abcdef") != first.report_id


def test_a_report_has_only_what_it_says() -> None:
    report = Report(round=0, report_id=bytes(16), index=None, symbol=1)
    assert pack(terms("kv3"), report)[37:] == b"\1"
