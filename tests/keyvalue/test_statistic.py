"""The counters: the same in any order, in any pieces, however the reports came; they know nothing of who reported."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from sabun.asking import Part, probe, state_of
from sabun.errors import DataError
from sabun.keyvalue import Study
from sabun.keyvalue.client import PROTOCOLS
from sabun.keyvalue.collector import Collector, Register
from sabun.keyvalue.statistic import Answer, Answers, Counters, SymbolCounts

KEYS = ["a", "b", "c", "d", "e"]


def study(protocol: str, **more: Any) -> Study:
    return Study(keys=KEYS, epsilon=2, protocol=protocol, **more)


def reports_of(made: Study, count: int) -> list[bytes]:
    means = dict.fromkeys(KEYS, 0.5)
    rounds = made.terms.rounds
    devices = [made.client() for _ in range(count)]
    held = [{"a": 1.0, "c": -0.5}, {}, {"e": 0.25}]
    return [
        device.report(held[number % 3], round=number % rounds, means=means if number % rounds else None)
        for number, device in enumerate(devices)
    ]


def answers_of(made: Study, reports: list[bytes]) -> list[Answer]:
    return list(Collector(made).answers(reports, Register()))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_order_and_pieces_do_not_matter(protocol: str) -> None:
    made = study(protocol)
    statistic, answers = SymbolCounts.of(made.terms), answers_of(made, reports_of(made, 30))
    whole = statistic.pack(state_of(statistic, answers))
    assert statistic.pack(state_of(statistic, answers[::-1])) == whole
    left, right = Part.empty(statistic, pieces=2), Part.empty(statistic, pieces=2)
    both = right.with_piece(1, answers[11:]).merged(left.with_piece(0, answers[:11]))
    assert statistic.pack(both.whole()) == whole
    with pytest.raises(DataError, match="piece 1 was counted twice"):
        both.merged(right.with_piece(1, answers[11:]))
    assert statistic.pack(statistic.unpack(whole)) == whole
    assert statistic.unpack(whole).n == 30


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_recipe_is_public_and_travels(protocol: str) -> None:
    statistic = SymbolCounts.of(study(protocol).terms)
    again = pickle.loads(pickle.dumps(statistic))
    assert again == statistic
    assert probe(again) == probe(statistic)
    sample = statistic.add(statistic.zero(), statistic.sample())
    assert statistic.possible(sample)
    used = [0, 2] if statistic.known == 2 and statistic.sampled else [0] if statistic.known == 2 else slice(None)
    assert (sample.cells[0][:, used] > 0).all(), "every counter is exercised"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_block_says_what_its_reports_say_one_by_one(protocol: str) -> None:
    made = study(protocol)
    statistic, answers = SymbolCounts.of(made.terms), answers_of(made, reports_of(made, 40))
    by_hand = np.zeros_like(statistic.zero().cells)
    for part, index, symbol in answers:
        if isinstance(symbol, tuple):
            for key, sign in enumerate(symbol):
                by_hand[part, key] += [sign == 1, sign == 2]
        elif index is not None:
            by_hand[part, index, {1: 0, 2: 1, 0: 2}[symbol]] += 1
        elif symbol:
            by_hand[part, (symbol - 1) // 2, (symbol - 1) % 2] += 1
    assert (state_of(statistic, answers).cells == by_hand).all()
    tally = made.tally()
    tally.add_reports(reports := reports_of(made, 7))
    single = made.tally()
    for report in reports:
        single.add(report)
    assert single == tally


def test_blocks_are_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabun.keyvalue.statistic._AT_ONCE", 10)
    made = study("pckv-ue")
    statistic, answers = SymbolCounts.of(made.terms), answers_of(made, reports_of(made, 9))
    assert [len(block.symbols) for block in statistic.blocks(iter(answers))] == [2, 2, 2, 2, 1]  # type: ignore[arg-type]
    assert list(statistic.blocks([])) == []


def test_a_bad_block_leaves_the_counters_as_they_were() -> None:
    for protocol, symbols, indices in (("kv3", [1, 9], [0, 0]), ("kv3", [1, 1], [0, 9]), ("pckv-grr", [1, 99], None)):
        statistic = SymbolCounts(protocol=protocol, keys=5)
        state = statistic.zero()
        with pytest.raises(DataError, match="must be whole numbers from 0 to"):
            statistic.add(state, Answers(symbols=symbols, indices=indices))
        assert not state.cells.any()


def test_counters_that_no_reports_can_have_are_told() -> None:
    statistic = SymbolCounts(protocol="kv3", keys=2)
    for cells, n in (([[[1, 0, 0], [0, 0, 0]]], 2), ([[[-1, 1, 0], [0, 0, 0]]], 0), ([[[2**53] * 3] * 2], 2**53)):
        assert not statistic.possible(Counters(cells=np.array(cells), n=n))
    assert statistic.possible(Counters(cells=np.array([[[1, 0, 0], [0, 1, 0]]]), n=2))
