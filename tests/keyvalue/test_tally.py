from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.errors import DataError, ParameterError
from sabun.keyvalue import People, Study
from sabun.keyvalue.client import (
    PROTOCOLS,
    Diary,
    new_credential,
    new_seed,
    report_id,
)
from sabun.keyvalue.client.probabilities import PER_KEY, SETS
from sabun.keyvalue.client.wire import HEADER, pack_symbols
from sabun.keyvalue.statistic import SymbolCounts
from sabun.keyvalue.tally import Tally
from sabun.release import Release

KEYS = ["a", "b", "c", "d", "e"]


def study(protocol: str = "kv3", **more: Any) -> Study:
    return Study(keys=KEYS, epsilon=2.0, protocol=protocol, **more)


@pytest.mark.parametrize("mode", ["assigned", "chosen"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_merge_of_parts_equals_whole(protocol: str, mode: str) -> None:
    one = study(protocol, index_mode=mode)
    reports = [one.client().report({"a": 1.0, "d": -0.5}) for _ in range(30)]
    whole, left, right = one.tally(), one.tally(), one.tally()
    for number, report in enumerate(reports):
        whole.add(report)
        (left if number < 11 else right).add(report)
    assert left.merge(right) == whole
    assert whole.n == 30
    assert one.tally().merge(whole) == whole, "an empty tally changes nothing"


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=40), st.integers(0, 40), st.randoms())
@settings(deadline=None)
def test_merging_is_associative_and_commutative(rows: list[tuple[int, int]], cut: int, dice: Any) -> None:
    one = study()

    def counted(part: list[tuple[int, int]]) -> Tally:
        tally = one.tally()
        tally.add_many([symbol for _, symbol in part], [index for index, _ in part])
        return tally

    mixed = list(rows)
    dice.shuffle(mixed)
    assert counted(rows[:cut]).merge(counted(rows[cut:])) == counted(rows[cut:]).merge(counted(rows[:cut])) == counted(mixed)


@pytest.mark.parametrize(
    ("protocol", "per_key"), [("kv3", 24), ("privkv", 24), ("privkvm", 72), ("pckv-ue", 16), ("pckv-grr+", 16)]
)
def test_the_state_is_a_few_bytes_per_key(protocol: str, per_key: int) -> None:
    assert study(protocol).tally().nbytes == per_key * len(KEYS)


def test_arrays_and_single_reports_are_counted_alike() -> None:
    for protocol in ("pckv-ue", "pckv-grr", "pckv-grr+"):
        one = study(protocol)
        reports = [one.client().report({"b": 0.5}) for _ in range(25)]
        single, many = one.tally(), one.tally()
        assert single.add_reports(reports).accepted == 25
        if protocol == "pckv-ue":
            unpacked = np.unpackbits(np.frombuffer(b"".join(report[37:] for report in reports), dtype=np.uint8)).reshape(
                25, 8, 2
            )
            many.add_many((unpacked[:, :, 0] * 2 + unpacked[:, :, 1])[:, :5])
        else:
            many.add_many([int.from_bytes(report[37:], "big") for report in reports])
        assert single == many
    one = study(index_mode="chosen")
    reports = [one.client().report({"b": 0.5}) for _ in range(25)]
    single, many = one.tally(), one.tally()
    single.add_reports(reports)
    many.add_many([report[-1] for report in reports], [int.from_bytes(report[37:41], "big") for report in reports])
    assert single == many


def test_a_bad_report_never_spoils_the_batch() -> None:
    one = study()
    good = [one.client().report({}) for _ in range(3)]
    tally = one.tally()
    outcome = tally.add_reports([good[0], b"", good[1], good[2][:-1] + b"\x07"])
    assert (outcome.accepted, tally.n) == (2, 2)
    assert outcome.rejected == (
        (1, "a report of this study must have 38 bytes; got 0."),
        (3, "symbol must be 0, 1 or 2; got 7."),
    )


def test_reports_of_other_studies_are_refused() -> None:
    with pytest.raises(DataError, match="the report must belong to this study; it names another"):
        study().tally().add(study("privkv").client().report({}))
    with pytest.raises(ParameterError, match="tallies must be of the same study to merge; got two task ids"):
        study().tally().merge(study("privkv").tally())
    with pytest.raises(ParameterError, match="other must be a Tally; got int"):
        study().tally().merge(3)  # type: ignore[arg-type]


def test_a_simulated_tally_never_mixes_with_a_real_one() -> None:
    made_up = study().simulate([0.5] * 5, [0.0] * 5, n=10, random_state=0)
    with pytest.raises(ParameterError, match="a simulated tally must not be merged with a real one"):
        study().tally().merge(made_up)
    assert "NOT PRIVATE" in repr(made_up)


@pytest.mark.parametrize(
    ("protocol", "symbols", "indices", "message"),
    [
        ("kv3", [3], [0], "symbols must be whole numbers from 0 to 2; they are not"),
        ("kv3", [-1], [0], "symbols must be whole numbers from 0 to 2; they are not"),
        ("kv3", [0.5], [0], "symbols must be whole numbers from 0 to 2; they are not"),
        ("kv3", [1], [5], "indices must be whole numbers from 0 to 4; they are not"),
        ("kv3", [1, 1], [0], "symbols and indices must have one length"),
        ("kv3", [1], None, "indices must be given for protocol 'kv3'"),
        ("pckv-grr", [1], [0], "indices must be left out for protocol 'pckv-grr'"),
        ("pckv-grr", [11], None, "symbols must be whole numbers from 0 to 10; they are not"),
        ("pckv-ue", [[0, 1]], None, r"symbols must have one column per key \(5\); got 2"),
        ("pckv-ue", [0, 1], None, "symbols must be whole numbers from 0 to 2"),
    ],
)
def test_arrays_are_checked_and_never_moved_into_range(protocol: str, symbols: Any, indices: Any, message: str) -> None:
    tally = study(protocol).tally()
    with pytest.raises(DataError, match=message):
        tally.add_many(symbols, indices)
    assert tally.n == 0


def test_many_symbols_are_counted_like_few() -> None:
    one = study()
    dice = np.random.default_rng(0)
    index, symbol = dice.integers(0, 5, 60_000), dice.integers(0, 3, 60_000)
    whole, parts = one.tally(), one.tally()
    whole.add_many(symbol.astype(np.uint8), index.astype(np.int32))
    for begin in range(0, 60_000, 20_000):
        parts.add_many(symbol[begin : begin + 20_000], index[begin : begin + 20_000])
    assert whole == parts
    wire = one.tally()
    wire.add_many(symbol.astype(">u2"), index.astype(">u4"))
    assert wire == whole
    for bad in (3, 255):
        symbol[-1] = bad
        with pytest.raises(DataError, match="symbols must be whole numbers from 0 to 2; they are not"):
            one.tally().add_many(symbol.astype(np.uint8), index)
    made_up = Tally(one, simulated=True)
    with pytest.raises(ParameterError, match=r"counts must be whole numbers >= 0 of shape \(1, 5, 3\)"):
        made_up.absorb(np.zeros((1, 5, 2), dtype=np.int64), 0)
    with pytest.raises(ParameterError, match="counts must be those of 7 reports; they are not"):
        made_up.absorb(np.ones((1, 5, 3), dtype=np.int64), 7)
    with pytest.raises(ParameterError, match="counters must be absorbed by a simulated tally only; this one counts real"):
        one.tally().absorb(np.zeros((1, 5, 3), dtype=np.int64), 0)


def test_a_round_outside_the_study_is_refused() -> None:
    with pytest.raises(DataError, match="round must be a whole number below 3; got 3"):
        study("privkvm").tally().add_many([1], [0], round=3)
    with pytest.raises(DataError, match="round must be 1, which this tally counts; got 0"):
        study(rounds=2).tally(round=1).add_many([1], [0], round=0)
    with pytest.raises(ParameterError, match="round must be a whole number below 2; got 2"):
        study(rounds=2).tally(round=2)


def test_a_tally_survives_its_file(tmp_path: Path) -> None:
    one = study("pckv-ue")
    tally = one.simulate([0.5] * 5, [0.0] * 5, n=100, random_state=0)
    tally.save(tmp_path / "counts")
    again = Tally.load(tmp_path / "counts", study=one)
    assert again == tally
    assert again.simulated
    content = bytearray((tmp_path / "counts").read_bytes())
    content[70] ^= 1
    with pytest.raises(DataError, match="a tally must be whole, as it was saved; it is not"):
        Tally.from_bytes(bytes(content), study=one)
    with pytest.raises(DataError, match="the tally must belong to this study; it is of another"):
        Tally.load(tmp_path / "counts", study=study())


def test_estimates_wait_for_the_smallest_batch() -> None:
    one = study(min_batch=3)
    tally = one.tally()
    tally.add_many([1, 2], [0, 1])
    with pytest.raises(DataError, match="a batch must have at least 3 reports; it has fewer"):
        tally.estimate()
    tally.add_many([1], [0])
    assert tally.estimate("mle").reports.sum() == 3
    assert len(tally.top(1).keys) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "best"}, "method must be one of 'shrunk', 'mle', 'unbiased', 'ye', 'em', 'em3', 'posterior'; got 'best'"),
        ({"confidence": 1}, "confidence must be above 0 and below 1; got 1"),
        ({"simultaneous": 2}, "simultaneous must be True or False; got 2"),
    ],
)
def test_bad_parameters_of_an_estimate_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        study().tally().estimate(**arguments)


def test_a_committed_seed_is_needed_to_count() -> None:
    seed, commitment = new_seed()
    one = study(index_commitment=commitment)
    tally = one.tally(seed=seed)
    tally.add(one.client(seed=seed).report({}))
    assert tally.n == 1
    with pytest.raises(ParameterError, match="seed must be the one this study committed to"):
        one.tally()
    blind = Tally(one, seed=None)
    with pytest.raises(DataError, match="this tally cannot tell which key was assigned"):
        blind.add(one.client(seed=seed).report({}))


def test_only_enrolled_ids_count_where_credentials_are_issued() -> None:
    one = study()
    issued = [new_credential() for _ in range(3)]
    tally = one.tally(enrolled={report_id(one.terms, credential) for credential in issued})
    enrolled = one.client(credential=issued[0], diary=Diary.in_memory())
    outcome = tally.add_reports([enrolled.report({}), one.client().report({})])
    assert (outcome.accepted, tally.n) == (1, 1)
    assert outcome.rejected == ((1, "a report must come from an enrolled id; this one does not."),)


def test_the_bias_of_padding_is_bounded_where_it_can_be() -> None:
    def bound(**facts: Any) -> np.ndarray:
        made = study("pckv-ue", **facts)
        return made.simulate([0.5] * 5, [0.0] * 5, n=50_000, random_state=0).estimate().bias_bound

    assert (bound(padding_length=5) == 0).all()
    assert (bound(padding_length=2, keys_per_user=2) == 0).all()
    assert np.isnan(bound(padding_length=2)).all()
    people = People.of_table(np.where(np.random.default_rng(0).random((100_000, 5)) < 0.5, 0.0, np.nan))
    made = study("pckv-ue", padding_length=2, keys_per_user=5)
    found = made.simulate_people(people, random_state=0).estimate()
    missing = people.moments(5)[0] - found.frequency
    assert (missing > 0.05).all(), "padding below what people hold is biased"
    assert (missing <= found.bias_bound + 0.02).all()


def test_a_hundred_thousand_keys_are_estimated_in_well_under_a_second() -> None:
    made = Study(keys=list(range(100_000)), epsilon=2.0, protocol="pckv-ue", padding_length=3)
    tally = Tally(made, simulated=True)
    tally.absorb(np.random.default_rng(0).binomial(10**6, 0.1, size=(1, 100_000, 2)), 10**6)
    start = time.process_time()
    assert len(tally.estimate("mle").frequency) == 100_000
    assert time.process_time() - start < 1.0


def test_the_tally_finds_the_key_the_device_was_asked_about() -> None:
    one = study()
    for _ in range(20):
        client, tally = one.client(), one.tally()
        tally.add(client.report({}))
        assert tally.counts().total[client.index or 0] == 1


def test_real_reports_give_good_estimates() -> None:
    one = Study(keys=["a", "b"], epsilon=6.0)
    tally = one.tally()
    for number in range(1500):
        tally.add(one.client().report({"a": 1.0} if number % 2 else {"b": -1.0}))
    result = tally.estimate()
    assert result.frequency == pytest.approx([0.5, 0.5], abs=0.12)
    assert result.mean == pytest.approx([1, -1], abs=0.1)
    assert not result.guarantee.simulated
    assert result.release()["frequency"] == pytest.approx(result.frequency.tolist())


def test_keys_without_reports_can_be_released(tmp_path: Path) -> None:
    one = study()
    tally = one.tally()
    tally.add_many([1, 1], [0, 0])
    tally.estimate().release().save(tmp_path / "x.json")
    assert Release.load(tmp_path / "x.json")["mean"][1] is None


def test_a_simulated_estimate_cannot_be_saved_as_a_release(tmp_path: Path) -> None:
    release = study().simulate([0.5] * 5, [0.0] * 5, n=100, random_state=0).estimate().release()
    assert release.guarantee.simulated
    with pytest.raises(Exception, match="NOT PRIVATE"):
        release.save(tmp_path / "x.json")


def crafted(study: Study, facts: bytes, counts: list[int]) -> bytes:
    body = b"sabun-tally-2\n" + bytes.fromhex(study.task_id) + facts + np.array(counts, dtype="<i8").tobytes()
    return body + hashlib.sha256(body).digest()


def facts(n: int, *, round_number: int = 0, simulated: int = 0) -> bytes:
    return bytes([simulated]) + round_number.to_bytes(4, "little") + n.to_bytes(8, "little")


def test_one_person_counts_once_however_many_rounds_were_answered() -> None:
    study = Study(keys=["a"], epsilon=1, rounds=100, min_batch=100)
    client, tally = study.client(static=True), study.tally()
    outcome = tally.add_reports([client.report({"a": 1}, round=number) for number in range(100)])
    assert (outcome.accepted, tally.n) == (1, 1)
    assert outcome.rejected[0] == (1, "a report must answer round 0, which this tally counts; it answers round 1.")
    with pytest.raises(DataError, match="a batch must have at least 100 reports; it has fewer"):
        tally.estimate()


def test_a_tally_of_another_round_keeps_its_round(tmp_path: Path) -> None:
    study = Study(keys=["a", "b"], epsilon=1, rounds=3)
    tally = study.tally(round=2)
    tally.add(study.client().report({}, round=2))
    tally.save(tmp_path / "counts")
    again = Tally.load(tmp_path / "counts", study=study)
    assert (again, again.round, again.n) == (tally, 2, 1)
    assert again.estimate().parameters["round"] == 2
    assert again.merge(tally).n == 2
    with pytest.raises(ParameterError, match="tallies must be of the same round to merge; got rounds 2 and 0"):
        tally.merge(study.tally())


def test_every_round_of_privkvm_that_is_used_must_be_large_enough() -> None:
    study = Study(keys=["a"], epsilon=1, protocol="privkvm", rounds=2, min_batch=3)
    tally = study.tally()
    tally.add_many([1, 1], [0, 0])
    tally.add_many([1, 1], [0, 0], round=1)
    assert tally.n == 2
    with pytest.raises(DataError, match="at least 3 reports"):
        tally.estimate()
    tally.add_many([1, 2], [0, 0])
    assert np.isfinite(tally.estimate("mle").frequency).all()
    with pytest.raises(DataError, match="at least 3 reports"):
        tally.estimate()
    tally.add_many([2, 2], [0, 0], round=1)
    assert tally.estimate().mean == pytest.approx([0.0])


@pytest.mark.parametrize(
    ("protocol", "head", "counts"),
    [
        ("kv3", b"", []),
        ("kv3", b"\0", []),
        ("kv3", facts(0), []),
        ("kv3", facts(0) + b"odd", []),
        ("kv3", facts(1), [1]),
        ("kv3", facts(1, simulated=2), [1, 0, 0, 0, 0, 0]),
        ("kv3", facts(1, round_number=1), [1, 0, 0, 0, 0, 0]),
        ("kv3", facts(0), [-5, 3, 2] * 2),
        ("kv3", facts(5000), [0, 1, 0, 1, 0, 0]),
        ("kv3", facts(2**64 - 1), [2**63 - 1] * 6),
        ("kv3", facts(2**53), [2**62] * 4 + [0] * 2),
        ("pckv-grr+", facts(3), [1, 1, 1, 1]),
        ("pckv-ue", facts(3), [2, 2, 0, 0]),
    ],
)
def test_a_crafted_tally_is_refused_in_words(protocol: str, head: bytes, counts: list[int]) -> None:
    study = Study(keys=["a", "b"], epsilon=1, protocol=protocol)
    with pytest.raises(DataError, match=r"a tally must (have the shape of its study|count what its number of reports can say)"):
        Tally.from_bytes(crafted(study, head, counts), study=study)
    with pytest.raises(DataError, match="a tally must be whole"):
        Tally.from_bytes(b"", study=study)


def test_merging_never_overflows() -> None:
    study = Study(keys=["a", "b"], epsilon=1)
    large = Tally.from_bytes(crafted(study, facts(2**53), [2**53, 0, 0, 0, 0, 0]), study=study)
    before = large.to_bytes()
    with pytest.raises(DataError, match=r"merged tallies must count at most 2\*\*53 reports; these count more"):
        large.merge(large)
    assert large.to_bytes() == before


def test_only_enrolled_ids_count_by_whatever_door(tmp_path: Path) -> None:
    study = Study(keys=["a", "b"], epsilon=1)
    tally = study.tally(enrolled=())
    with pytest.raises(DataError, match="reports must come whole where only enrolled ids count; arrays name no ids"):
        tally.add_many([1, 1], [0, 0])
    tally.save(tmp_path / "counts")
    again = Tally.load(tmp_path / "counts", study=study, enrolled=())
    with pytest.raises(DataError, match="a report must come from an enrolled id; this one does not"):
        again.add(study.client().report({}))


def test_what_is_no_report_is_named_with_its_place() -> None:
    outcome = Study(keys=["a"], epsilon=1).tally().add_reports(["text", 5, None])  # type: ignore[list-item]
    assert [reason for _, reason in outcome.rejected] == [
        f"a report must be bytes; got {kind}." for kind in ("str", "int", "NoneType")
    ]


@pytest.mark.parametrize("protocol", SETS)
def test_rows_that_speak_of_more_keys_than_a_subset_holds_are_refused(protocol: str) -> None:
    one = Study(keys=list(range(40)), epsilon=1, protocol=protocol, keys_per_user=2)
    width, symbol = one.terms.subset.width, one.terms.signs
    assert width < 40
    rows = np.zeros((3, 40), dtype=np.int64)
    rows[1, :width] = 1
    tally = one.tally()
    tally.add_many(rows)
    rows[2, : width + 1] = symbol
    with pytest.raises(DataError, match=f"each row of symbols must speak of at most {width} keys; one speaks of more"):
        tally.add_many(rows)
    assert tally.n == 3
    statistic = SymbolCounts.of(one.terms)
    assert statistic.add(statistic.zero(), statistic.sample()).n == 40 * statistic.known


@pytest.mark.parametrize("protocol", PER_KEY)
def test_rows_are_taken_where_reports_are(protocol: str) -> None:
    """Rows that claim no key, one, and so on to all of them: `add_many` and the wire refuse the same ones."""
    one = Study(keys=list(range(12)), epsilon=1, protocol=protocol, keys_per_user=2)
    head = one.client().report({})[:HEADER]
    rows = [[1] * claimed + [0] * (12 - claimed) for claimed in range(13)]
    by_wire = [bool(one.tally().add_reports([head + pack_symbols(row)]).accepted) for row in rows]
    in_rows = []
    for row in rows:
        try:
            one.tally().add_many(np.array([row]))
        except DataError:
            in_rows.append(False)
        else:
            in_rows.append(True)
    assert in_rows == by_wire
    assert by_wire[0]
    assert by_wire[12] != one.terms.subsets
