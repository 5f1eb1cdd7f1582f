"""What comes in as bytes is judged as the room's own collector judges it, report by report."""

from __future__ import annotations

import numpy as np
import pytest

from sabun.errors import DataError
from sabun.keyvalue import Study
from sabun.keyvalue.client import PROTOCOLS
from sabun.keyvalue.collector import Collector
from sabun.keyvalue.statistic import SymbolCounts
from sabun.service.arrivals import REASONS, answers_of, read_reports
from service.devices import made_up

STUDIES = [
    *(Study(keys=list(range(7)), epsilon=2, protocol=name, rounds=2) for name in PROTOCOLS),
    Study(keys=list(range(7)), epsilon=2, protocol="kv3", index_mode="chosen", rounds=2),
    Study(keys=["only"], epsilon=1, protocol="rr-f", rounds=2),
]


def mutated(study: Study, n: int, seed: int) -> list[bytes]:
    """Reports of which most were damaged: bytes turned, cut, swapped, of other rounds and studies."""
    rng = np.random.default_rng(seed)
    found = []
    for report in made_up(study, n, seed=seed):
        content = bytearray(report)
        kind = rng.integers(0, 7)
        if kind == 1:
            content[rng.integers(0, len(content))] ^= 1 << rng.integers(0, 8)
        elif kind == 2:
            content[-1] = rng.integers(0, 256)
        elif kind == 3:
            content[17:21] = int(rng.integers(0, 3)).to_bytes(4, "big")
        elif kind == 4:
            content[37:] = rng.bytes(len(content) - 37)
        elif kind == 5:
            content = content[: rng.integers(0, len(content) + 1)]
        elif kind == 6:
            content += rng.bytes(rng.integers(0, 3))
        found.append(bytes(content))
    return found


def at_the_edges(study: Study) -> list[bytes]:
    """Every small number as a key and as a symbol: the last that a study has, and the first that it has not, among them."""
    found = []
    for number, report in enumerate(made_up(study, 2 * 20, seed=3)):
        content, small = bytearray(report), number // 2
        if number % 2 and len(content) >= 41:
            content[37:41] = small.to_bytes(4, "big")
        else:
            content[-1] = small
        found.append(bytes(content))
    return found


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: f"{study.protocol}-{study.index_mode}-{len(study.keys)}")
def test_reports_are_judged_as_by_the_rooms_collector(study: Study) -> None:
    reports = mutated(study, 400, seed=1) + made_up(study, 50, seed=2) + at_the_edges(study)
    collector, recipe = Collector(study), SymbolCounts.of(study.terms)
    expected, refused = recipe.zero(), []
    for place, report in enumerate(reports):
        try:
            answer = collector.answer(report)
            if report[17:21] != bytes(4):  # PrivKVM's collector takes all rounds; an address names one
                raise DataError("another round")
        except DataError:
            refused.append(place)
        else:
            for block in recipe.blocks([answer]):
                expected = recipe.add(expected, block)
    arrival = read_reports(study, 0, reports)
    assert [place for place, _ in arrival.rejected] == refused
    assert set(refused).isdisjoint(arrival.positions)
    assert len(refused) + len(arrival.positions) == len(reports)
    assert 100 < len(refused) < 440
    assert {reason for _, reason in arrival.rejected} <= set(REASONS)
    counted = recipe.add(recipe.zero(), answers_of(study, b"".join(arrival.answers), part=0))
    assert recipe.pack(counted) == recipe.pack(expected)
    assert [reports[place][21:37] for place in arrival.positions] == list(arrival.ids)


def test_bytes_back_to_back_and_a_list_say_the_same() -> None:
    study = STUDIES[0]
    reports = made_up(study, 20, seed=3)
    assert read_reports(study, 0, b"".join(reports)) == read_reports(study, 0, reports)


def test_what_is_left_over_is_one_report_that_was_cut_off() -> None:
    study = STUDIES[0]
    reports = made_up(study, 3, seed=4)
    arrival = read_reports(study, 0, b"".join(reports)[:-1])
    assert (len(arrival.ids), arrival.rejected) == (2, [(2, "length")])


def test_a_shifted_batch_is_refused_as_a_whole() -> None:
    study = STUDIES[0]
    arrival = read_reports(study, 0, b"x" + b"".join(made_up(study, 5, seed=5)))
    assert not arrival.ids
    assert len(arrival.rejected) == 6


def test_the_seed_of_a_study_decides_which_key_was_assigned() -> None:
    import hashlib

    seed = b"s" * 32
    study = Study(keys=list(range(50)), epsilon=1, protocol="kv3", index_commitment=hashlib.sha256(seed).hexdigest())
    reports = made_up(study, 200, seed=6)
    tally = study.tally(seed=seed)
    tally.add_reports(reports)
    counted = SymbolCounts.of(study.terms)
    state = counted.add(counted.zero(), answers_of(study, b"".join(read_reports(study, 0, reports, seed=seed).answers), part=0))
    assert counted.pack(state) == counted.pack(tally.counters)
    assert read_reports(study, 0, reports).answers != read_reports(study, 0, reports, seed=seed).answers
