"""Which reports count; nothing is counted here."""

from __future__ import annotations

from typing import Any

import pytest

from sabun.errors import DataError, ParameterError
from sabun.keyvalue import Study
from sabun.keyvalue.client import Diary, new_credential, new_seed, report_id
from sabun.keyvalue.collector import Collector, Register


def study(**more: Any) -> Study:
    return Study(keys=["a", "b"], epsilon=2, **more)


def test_an_id_counts_once_however_often_it_comes() -> None:
    one = study()
    first, second = (one.client().report({"a": 1.0}) for _ in range(2))
    forged = first[:-1] + bytes([(first[-1] + 1) % 3])
    register = Register(ids={})
    found = list(Collector(one).answers([first, first, forged, b"junk", second], register))
    assert [answer.symbol for answer in found] == [first[-1], second[-1]]
    assert (register.seen, register.accepted, register.repeated) == (5, 2, 1)
    assert register.rejected == [
        (2, "a person must report once per round; this id came before with another answer."),
        (3, "a report of this study must have 38 bytes; got 4."),
    ]
    assert list(Collector(one).answers([second], register)) == [], "a register is kept from batch to batch"
    assert (register.seen, register.repeated) == (6, 2)


def test_an_id_counts_once_in_whatever_buffer_it_comes() -> None:
    one = study()
    report = one.client().report({"a": 1.0})
    buffer = bytearray(report)
    register = Register(ids={})
    assert len(list(Collector(one).answers([buffer, memoryview(report), report], register))) == 1
    assert (register.accepted, register.repeated) == (1, 2)
    buffer[:] = bytes(len(buffer))
    assert list(Collector(one).answers([report], register)) == [], "what is kept does not change with the buffer"
    assert one.tally().add_reports([bytearray(report)] * 3, register=Register(ids={})).accepted == 1


def test_what_was_refused_may_come_again_in_its_right_form() -> None:
    one = study()
    good = one.client().report({})
    register = Register(ids={})
    assert len(list(Collector(one).answers([good[:-1] + b"\x07", good], register))) == 1
    assert register.rejected == [(0, "symbol must be 0, 1 or 2; got 7.")]


def test_whoever_keeps_the_ids_may_keep_them_elsewhere() -> None:
    class Book(dict[bytes, bytes]):
        """Stands for a table on a disk."""

    one, book = study(), Book()
    report = one.client().report({})
    assert len(list(Collector(one).answers([report], Register(ids=book)))) == 1
    assert list(book.values()) == [report]
    later = Register(ids=book)
    assert list(Collector(one).answers([report], later)) == []
    assert later.repeated == 1


@pytest.mark.parametrize("ids", [None, {}])
def test_what_is_no_report_is_refused_in_words(ids: dict[bytes, bytes] | None) -> None:
    register = Register(ids=ids)
    assert list(Collector(study()).answers(["text", None], register)) == []  # type: ignore[list-item]
    assert [reason for _, reason in register.rejected] == [
        "a report must be bytes; got str.",
        "a report must be bytes; got NoneType.",
    ]


def test_study_round_seed_and_credentials_are_checked_without_counters() -> None:
    seed, commitment = new_seed()
    one = study(rounds=2, index_commitment=commitment)
    credential = new_credential()
    device = one.client(credential=credential, diary=Diary.in_memory(), seed=seed)
    enrolled = {report_id(one.terms, credential)}
    collector = Collector(one, round=1, seed=seed, enrolled=enrolled)
    assert collector.answer(device.report({"a": 1}, round=1)).place == device.index
    with pytest.raises(DataError, match="a report must answer round 1, which this tally counts; it answers round 0"):
        collector.answer(device.report({"a": 1}))
    with pytest.raises(DataError, match="a report must come from an enrolled id; this one does not"):
        collector.answer(one.client(seed=seed).report({}, round=1))
    with pytest.raises(DataError, match="the report must belong to this study; it names another"):
        collector.answer(study(rounds=3).client().report({}, round=1))
    with pytest.raises(DataError, match="cannot tell which key was assigned"):
        Collector(one, seed=None).answer(device.report({}))
    with pytest.raises(ParameterError, match="seed must be the one this study committed to"):
        Collector(one)
    with pytest.raises(ParameterError, match="round must be a whole number below 2; got 2"):
        Collector(one, round=2, seed=seed)
