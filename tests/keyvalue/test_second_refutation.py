"""What a second, hostile reading of the code broke; each case stays here."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sabun.errors import DataError, ParameterError
from sabun.keyvalue import Study
from sabun.keyvalue.batches import read_holdings, write_reports
from sabun.keyvalue.channel import Counts
from sabun.keyvalue.client import (
    Client,
    ClientError,
    Diary,
    DiaryError,
    Harmony,
    RandomizedResponse,
    Terms,
    assigned_index,
    new_credential,
    new_seed,
    report_id,
    report_size,
)
from sabun.keyvalue.client.diary import _made_private
from sabun.keyvalue.intervals import frequency_interval, mean_interval
from sabun.keyvalue.moments import unbiased
from sabun.keyvalue.plots import means_svg
from sabun.keyvalue.tally import Tally

ONE = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3")


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


def test_the_widest_range_works_for_devices_and_estimates() -> None:
    study = Study(keys=["a"], epsilon=1, value_range=(-1e100, 1e100))
    tally = study.tally()
    for held in ({"a": 1e100}, {"a": -1e100}, {"a": 0}, {}):
        tally.add(study.client().report(held))
    assert np.isfinite(tally.estimate().mean_interval).all()


@pytest.mark.parametrize("held", [Broken(), {OddKey(): 1}, {"a": OddNumber(0.5)}, {"a": 10**400}, {"a": Fraction(10**400)}])
@pytest.mark.parametrize("protocol", ["kv3", "privkvm", "pckv-ue", "pckv-grr+"])
def test_nothing_in_the_pairs_can_make_the_device_raise(held: Any, protocol: str) -> None:
    terms = Terms(keys=("a", "b"), epsilon=Fraction(1), protocol=protocol, rounds=2 if protocol == "privkvm" else 1)
    assert len(Client(terms, clip=True).report(held)) == len(Client(terms).report(held)) == report_size(terms)


def test_an_odd_key_does_not_hide_the_others() -> None:
    client = Client(Terms(keys=("a", "b"), epsilon=Fraction(1), protocol="pckv-ue"))
    assert client._thresholds({OddKey(): 1, "b": 1.0}) == {1: 1 << 53}  # type: ignore[dict-item]


@pytest.mark.parametrize("value", [10**400, Fraction(10**400), OddNumber(0.5), float("nan"), "x", None, 1j])
def test_harmony_answers_whatever_it_is_given(value: Any) -> None:
    assert Harmony(epsilon=Fraction(1)).answer(value) in (1, 2)


def test_an_infinite_published_mean_is_refused_even_where_values_are_clipped() -> None:
    client = Client(Terms(keys=("a",), epsilon=Fraction(1), protocol="privkvm", rounds=2), clip=True)
    with pytest.raises(ClientError, match="means must be the published mean of every key"):
        client.report({}, round=1, means={"a": float("inf")})


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


def test_a_diary_syncs_its_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a power cut can bring the journal back, and the device would answer again with other bytes."""
    synced: list[bool] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    diary = Diary(tmp_path / "diary")
    assert synced == [True]
    assert diary._base.execute("PRAGMA synchronous").fetchone() == (3,)
    assert diary._base.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_diary_is_nobody_elses(tmp_path: Path) -> None:
    wide = tmp_path / "wide"
    wide.touch(mode=0o644)
    wide.chmod(0o644)
    Diary(wide)
    assert stat.S_IMODE(wide.stat().st_mode) == 0o600
    for target in (wide, tmp_path / "nowhere"):
        link = tmp_path / f"link-to-{target.name}"
        link.symlink_to(target)
        with pytest.raises(DiaryError, match="the diary must be a plain file of this user, not a link or another's"):
            Diary(link)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("path", [":memory:", 3])
def test_a_diary_without_a_file_is_asked_for_by_name(path: Any) -> None:
    with pytest.raises(ClientError, match=r"diary must be the path of a file; got .* Use Diary\.in_memory\(\)"):
        Diary(path)


def test_a_second_diary_does_not_drop_the_locks_of_the_first(tmp_path: Path) -> None:
    """Opening and closing a file drops a process's locks on it: a path is looked at by name, never opened."""
    script = (
        "import sqlite3, sys; base = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try:\n    base.execute('BEGIN IMMEDIATE'); print('got in')\nexcept sqlite3.OperationalError:\n    print('locked')\n"
    )
    with Diary(tmp_path / "diary").page():
        _made_private(str(tmp_path / "diary"))
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "diary")], capture_output=True, text=True, check=True
        )
    assert done.stdout == "locked\n"


@pytest.mark.parametrize("arguments", [{"max_epsilon": 1}, {"credential": b"0123456789abcdef"}])
def test_a_limit_or_a_credential_needs_a_book(arguments: dict[str, Any]) -> None:
    """Two clients with one credential and no book answered twice under one id, each within its limit."""
    with pytest.raises(ClientError, match=r"diary must be given with credential or max_epsilon; got None\. Pass its path"):
        Client(ONE, **arguments)
    assert Client(ONE, diary=Diary.in_memory(), **arguments).report({})


def test_a_page_that_could_not_be_committed_is_undone(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "diary")
    diary._base.execute("PRAGMA busy_timeout=50")
    client = Client(ONE, diary=diary)
    reader = sqlite3.connect(tmp_path / "diary", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM sent").fetchall()
    with pytest.raises(DiaryError, match="Nothing was sent"):
        client.report({"a": 1})
    reader.execute("COMMIT")
    reader.close()
    assert not diary._base.in_transaction
    assert client.spent == 0
    assert client.report({"a": 1}) == client.report({"a": 1})


def test_every_line_of_a_table_is_a_person(tmp_path: Path) -> None:
    """A blank line was left out, so people who hold nothing fell silent; a long or odd cell stopped everybody."""
    study = Study(keys=["HIV"], epsilon=1)
    (tmp_path / "one.csv").write_text("HIV\n1\n\n0.5\n\n\n")
    assert list(read_holdings(tmp_path / "one.csv", study)) == [{"HIV": 1.0}, {}, {"HIV": 0.5}, {}, {}]
    rows = [b"b,HIV", b"x" * 200_000 + b",1", b"\xff,\xff", b'"a""b,1",x"', b"2", b"2,0.25,9", b"\0,nan"]
    (tmp_path / "two.csv").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(rows))
    assert list(read_holdings(tmp_path / "two.csv", study)) == [{"HIV": 1.0}, {}, {}, {}, {"HIV": 0.25}, {}]
    (tmp_path / "three.csv").write_text("HIV,HIV\n1,2\n")
    with pytest.raises(DataError, match="must have a column for every key; 'HIV' has two"):
        list(read_holdings(tmp_path / "three.csv", study))


def test_a_file_of_reports_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def reports() -> Iterator[bytes]:
        yield b"one"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_reports(tmp_path / "r.bin", reports())
    assert list(tmp_path.iterdir()) == []
    assert write_reports(tmp_path / "r.bin", [b"one"]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["r.bin"]


@pytest.mark.parametrize(("epsilon", "n", "f"), [(0.5, 5000, 0.005), (2, 5000, 0.005), (1, 2000, 0.002)])
def test_a_frequency_below_zero_says_nothing_about_a_mean(epsilon: float, n: int, f: float) -> None:
    channel = Study(keys=["a"], epsilon=epsilon).channel
    drawn = np.random.default_rng(0).multinomial(n, np.array([f, 0, 1 - f]) @ channel.rows, size=20_000)
    counts = Counts(plus=drawn[:, 0], minus=drawn[:, 1], total=np.full(len(drawn), n))
    ends, negative = mean_interval(channel, counts), unbiased(channel, counts)[0] <= 0
    assert negative.any()
    assert (ends[negative] == (-1, 1)).all()


@pytest.mark.parametrize(
    ("protocol", "padding", "epsilon", "n", "f", "m"),
    [
        ("pckv-grr+", 1, 5, 200, 0.01, 1.0),
        ("pckv-grr+", 1, 5, 200, 0.05, -0.9),
        ("pckv-grr+", 5, 5, 500, 0.2, 1.0),
        ("pckv-grr", 1, 3, 200, 0.05, 1.0),
        ("pckv-ue", 5, 5, 200, 0.2, 1.0),
        ("kv3", None, 5, 50, 0.5, 0.9),
        ("kv3", None, 3, 500, 0.5, 0.0),
        ("privkv", None, 3, 500, 0.5, -0.9),
    ],
)
def test_intervals_cover_each_key_by_itself(
    protocol: str, padding: int | None, epsilon: int, n: int, f: float, m: float
) -> None:
    study = Study(keys=list(range(50)), epsilon=epsilon, protocol=protocol, padding_length=padding)
    law = np.array([f * (1 + m) / 2, f * (1 - m) / 2, 1 - f]) @ study.channel.rows
    drawn = np.random.default_rng(1).multinomial(n, law, size=4000)
    counts = Counts(plus=drawn[:, 0], minus=drawn[:, 1], total=np.full(len(drawn), n))
    for truth, ends in ((f, frequency_interval(study.channel, counts)), (m, mean_interval(study.channel, counts))):
        covered = (ends[:, 0] - 1e-12 <= truth) & (truth <= ends[:, 1] + 1e-12)
        assert covered.mean() > 0.92


def test_two_key_lists_never_share_a_task_id() -> None:
    assert Terms(keys=("\U0001f600",), epsilon=Fraction(1), protocol="kv3").task_id
    for keys in (("\ud83d\ude00",), ("x\udc00", "b")):
        with pytest.raises(ClientError, match="keys must be texts without surrogates; got 'a lone half of a character'"):
            Terms(keys=keys, epsilon=Fraction(1), protocol="kv3")


def crafted(study: Study, facts: bytes, counts: list[int]) -> bytes:
    body = b"sabun-tally-2\n" + bytes.fromhex(study.task_id) + facts + np.array(counts, dtype="<i8").tobytes()
    return body + hashlib.sha256(body).digest()


def facts(n: int, *, round_number: int = 0, simulated: int = 0) -> bytes:
    return bytes([simulated]) + round_number.to_bytes(4, "little") + n.to_bytes(8, "little")


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


def test_what_is_simulated_says_so_in_tables_and_pictures() -> None:
    found = Study(keys=["a", "b"], epsilon=1).simulate([0.5, 0.5], [0, 0], n=2000, random_state=0).estimate()
    assert set(found.to_frame()["note"]) == {"NOT PRIVATE: simulated"}
    assert "NOT PRIVATE: simulated" in means_svg(found)
    study = Study(keys=["a"], epsilon=1)
    tally = study.tally()
    tally.add(study.client().report({}))
    assert "note" not in tally.estimate().to_frame()
    assert "NOT PRIVATE" not in means_svg(tally.estimate())


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


@pytest.mark.parametrize("seed", ["", None, bytearray()])
def test_a_seed_is_bytes(seed: Any) -> None:
    with pytest.raises(ClientError, match="seed must be bytes; got"):
        Client(ONE, seed=seed)


def test_what_is_no_report_is_named_with_its_place() -> None:
    outcome = Study(keys=["a"], epsilon=1).tally().add_reports(["text", 5, None])  # type: ignore[list-item]
    assert [reason for _, reason in outcome.rejected] == [
        f"a report must be bytes; got {kind}." for kind in ("str", "int", "NoneType")
    ]


@pytest.mark.parametrize("categories", [["a", ["b"]], [1, 2], "ab", ["a"]])
def test_categories_are_words(categories: Any) -> None:
    with pytest.raises(ClientError, match="categories must be at least two distinct words"):
        RandomizedResponse(categories=categories, epsilon=Fraction(1))


def test_a_commitment_binds_fakers_but_not_the_server() -> None:
    """The server knows its seed while it issues credentials, so it can search for one that asks about a wanted key."""
    seed, commitment = new_seed()
    terms = Terms(keys=tuple("abcdefgh"), epsilon=Fraction(1), protocol="kv3", index_commitment=commitment)
    found = next(c for c in iter(new_credential, b"") if assigned_index(terms, report_id(terms, c), seed) == 3)
    assert Client(terms, credential=found, seed=seed, diary=Diary.in_memory()).index == 3
