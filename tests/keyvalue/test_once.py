"""Files of reports of any size: each report seen once, exactly as a collector sees them one after the other."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sabun.engine.engines import Serial
from sabun.engine.pieces import whole_files
from sabun.engine.process_engine import Processes
from sabun.engine.shuffle import shuffled
from sabun.errors import DataError
from sabun.keyvalue import Study
from sabun.keyvalue.batches import read_reports, write_reports
from sabun.keyvalue.client import Diary, new_seed, report_id
from sabun.keyvalue.client.wire import to_json
from sabun.keyvalue.collector import CONFLICT, Register
from sabun.keyvalue.once import ReportsOnce
from sabun.keyvalue.tally import Tally

KEYS = ["a", "b", "c", "d", "e"]
PROTOCOLS = ["kv3", "privkvm", "pckv-ue", "pckv-grr", "set", "rr-f", "set-f"]


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def study_of(protocol: str, **more: Any) -> Study:
    return Study(keys=KEYS, epsilon=2, protocol=protocol, padding_length=2 if protocol[:3] in ("pck", "set") else None, **more)


def hostile(study: Study, count: int, seed: int) -> list[bytes]:
    """Reports of a round with all that may go wrong: again, under a taken id, of other sizes, studies and rounds."""
    rng = np.random.default_rng(seed)
    good = [_made(study, rng) for _ in range(count)]
    reports = list(good)
    for _ in range(count):
        one = bytearray(good[rng.integers(count)])
        what = rng.integers(8)
        if what == 1:
            one[-1] = rng.integers(256)  # another answer, or one that cannot be, under a taken id
        elif what == 2:
            one[rng.integers(37)] ^= 1 << int(rng.integers(8))
        elif what == 3:
            one = one[: rng.integers(len(one))]
        elif what == 4:
            one += b"x" * int(rng.integers(1, 9))
        elif what == 5:
            one[17:21] = int(rng.integers(3)).to_bytes(4, "big")
        elif what == 6:
            one[37:] = rng.bytes(len(one) - 37)
            one[21:37] = rng.bytes(16)
        reports.insert(int(rng.integers(len(reports) + 1)), bytes(one))
    return reports


def _made(study: Study, rng: np.random.Generator) -> bytes:
    from sabun.keyvalue.client.wire import Report, pack

    keys = len(study.terms.keys)
    if study.protocol in ("kv3", "privkvm", "rr-f"):
        symbol: Any = int(rng.integers(study.terms.signs + 1))
    elif study.protocol == "pckv-grr":
        symbol = int(rng.integers(2 * keys + 1))
    else:
        symbols = rng.integers(0, study.terms.signs + 1, keys)
        symbols[rng.permutation(keys)[1 if study.terms.subsets else keys :]] = 0
        symbol = tuple(symbols.tolist())
    index = int(rng.integers(keys)) if study.terms.index_mode == "chosen" and study.terms.sampled else None
    number = int(rng.integers(study.terms.rounds)) if study.protocol == "privkvm" else 0
    return pack(study.terms, Report(round=number, report_id=rng.bytes(16), index=index, symbol=symbol))


def one_by_one(tally: Tally, files: list[Path]) -> Register:
    register = Register(ids={})
    tally.add_reports(chain.from_iterable(read_reports(file, tally.study) for file in files), register=register)
    return register


def written(folder: Path, reports: list[bytes], files: int) -> list[Path]:
    folder.mkdir()
    step = -(-len(reports) // files)
    for number in range(files):
        write_reports(folder / f"{number}.bin", reports[number * step : (number + 1) * step])
    return sorted(folder.iterdir())


@pytest.mark.parametrize("mode", ["assigned", "chosen"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("buckets", [1, 5])
def test_files_count_as_a_collector_counts_one_after_the_other(
    tmp_path: Path, protocol: str, mode: str, buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(protocol, index_mode=mode, rounds=2 if protocol == "privkvm" else 1)
    files = written(tmp_path / "reports", hostile(study, 150, buckets), 4)
    plain = study.tally()
    noted = one_by_one(plain, files)
    assert noted.repeated > 5
    assert len({why for _, why in noted.rejected}) > 3
    assert any(why == CONFLICT for _, why in noted.rejected)

    monkeypatch.setattr("sabun.keyvalue.once._AT_ONCE", 40)  # many blocks, sorted again and again
    grouped = ReportsOnce(collector=plain._collector)
    found = shuffled(Serial(), grouped, whole_files(files), buckets=buckets)
    assert grouped.statistic.counts.pack(found.counters) == grouped.statistic.counts.pack(plain._state)
    assert (sum(found.sizes), found.accepted, found.repeated) == (noted.seen, noted.accepted, noted.repeated)
    assert found.positions() == noted.rejected
    packed = grouped.statistic.pack(found)
    assert grouped.statistic.pack(grouped.statistic.unpack(packed)) == packed


def test_enrolled_ids_a_seed_and_json_lines_are_judged_alike(tmp_path: Path) -> None:
    seed, commitment = new_seed()
    study = Study(keys=KEYS, epsilon=2, index_commitment=commitment)
    credentials = [os.urandom(16) for _ in range(30)]
    reports = [study.client(credential=each, seed=seed, diary=Diary.in_memory()).report({"a": 1}) for each in credentials]
    files = written(tmp_path / "reports", reports, 2)
    lines = tmp_path / "lines.json"
    lines.write_bytes(b"\r\n".join([*(to_json(study.terms, each).encode() for each in reports[:7]), b"{no", b"", b"\xff"]))
    enrolled = [report_id(study.terms, each) for each in credentials[:20]]
    one, other = (study.tally(seed=seed, enrolled=enrolled) for _ in range(2))
    noted = one_by_one(one, [*files, lines])
    found = other.add_files([tmp_path / "reports", lines])
    assert other == one
    assert (found.accepted, found.repeated, found.refused, found.rejected) == (20, 7, 12, noted.rejected)


def test_counters_that_cannot_tell_the_key_refuse_every_report(tmp_path: Path) -> None:
    _, commitment = new_seed()
    study = Study(keys=KEYS, epsilon=2, index_commitment=commitment)
    files = written(tmp_path / "reports", [_made(study, np.random.default_rng(1)) for _ in range(3)], 1)
    found = Tally(study, seed=None).add_files(files)
    assert (found.accepted, found.refused) == (0, 3)
    assert "cannot tell which key was assigned" in found.rejected[0][1]


def test_several_processes_count_the_same(tmp_path: Path) -> None:
    study = study_of("kv3")
    files = written(tmp_path / "reports", hostile(study, 80, 3), 3)
    plain = study.tally()
    one_by_one(plain, files)
    grouped = ReportsOnce(collector=plain._collector)
    found = shuffled(Processes(2), grouped, whole_files(files), buckets=4)
    assert grouped.statistic.counts.pack(found.counters) == grouped.statistic.counts.pack(plain._state)


def test_a_short_report_never_meets_an_id_that_ends_in_zeros(tmp_path: Path) -> None:
    study = study_of("kv3")
    whole = bytearray(_made(study, np.random.default_rng(2)))
    whole[25:37] = bytes(12)
    files = written(tmp_path / "reports", [bytes(whole), bytes(whole[:25])], 1)
    plain, found = study.tally(), study.tally().add_files(files)
    assert found.rejected == one_by_one(plain, files).rejected
    assert "bytes" in found.rejected[0][1]


def test_made_up_ids_cannot_be_put_into_one_bucket(tmp_path: Path) -> None:
    """Ids that differ in one bit, or in the last byte only, spread as random ones do: 4,000 into 16 by 250 each.

    Multiply-shift makes a pair collide with chance 1/16 or little more; the fullest of 16 beyond 1,500 would need many more.
    """
    study = study_of("kv3")
    grouped = ReportsOnce(collector=study.tally()._collector)
    keys = np.array([number.to_bytes(20, "big") for number in range(4000)], dtype="S20")
    assert np.bincount(grouped._buckets(keys, 16), minlength=16).max() < 1500


def test_many_refusals_are_counted_and_the_first_named(tmp_path: Path) -> None:
    study = study_of("kv3")
    files = written(tmp_path / "reports", [b"x"] * 1500, 2)
    found = study.tally().add_files(files)
    assert (found.seen, found.refused, len(found.rejected)) == (1500, 1500, 1000)
    assert [place for place, _ in found.rejected] == list(range(1000))


def test_reasons_go_where_they_are_needed_and_no_more_than_are_read(tmp_path: Path) -> None:
    """Every report is refused for a reason of its own: a thousand are kept, each in one bucket of many."""
    study = study_of("kv3")
    whole = [_made(study, np.random.default_rng(number)) for number in range(3000)]
    made_up = [each[:17] + (number + 5).to_bytes(4, "big") + each[21:] for number, each in enumerate(whole)]
    (piece,) = whole_files(written(tmp_path / "reports", made_up, 1))
    grouped = ReportsOnce(collector=study.tally()._collector)
    packed = [b"".join(each) for each in zip(*grouped.parted(piece.number, piece.part, 64), strict=True)]
    assert sum(each.count(b"round must be below") for each in packed) == 1000
    assert sum(map(len, packed)) < 3000 * 32 + 1000 * 60 + 64 * 100
    found = study.tally().add_files(tmp_path / "reports" / name for name in os.listdir(tmp_path / "reports"))
    assert (found.refused, len(found.rejected)) == (3000, 1000)
    assert all(f"got {place + 5}." in why for place, why in found.rejected)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("cut.bin", b"\0\0\0\x26abc", "ends within one"),
        ("long.bin", b"\xff\xff\xff\xff" + b"x" * 99, "ends within one"),
        ("bytes.bin", b"\0\0", "ends within one"),
    ],
)
def test_a_file_that_ends_within_a_report_counts_nothing(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    tally = study_of("kv3").tally()
    with pytest.raises(DataError, match=words):
        tally.add_files([tmp_path / name])
    assert tally.n == 0


def test_no_file_and_no_folder_are_told(tmp_path: Path) -> None:
    tally = study_of("kv3").tally()
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "x.part").write_bytes(b"x")
    for source, words in ((tmp_path / "absent", "must be a file that can be read"), (tmp_path / "none", "must hold files")):
        with pytest.raises(DataError, match=words):
            tally.add_files([source])
    with pytest.raises(DataError, match="at least one file"):
        tally.add_files([])


def test_a_run_of_reports_is_read_in_blocks_whatever_stands_between(tmp_path: Path) -> None:
    study = study_of("kv3")
    rng = np.random.default_rng(4)
    reports = [_made(study, rng) if rng.random() < 0.9 else rng.bytes(int(rng.integers(90))) for _ in range(3000)]
    (files,) = (written(tmp_path / "reports", reports, 1),)
    assert list(read_reports(files[0], study)) == reports


def test_an_id_counts_once_in_a_call_and_again_in_the_next(tmp_path: Path) -> None:
    study, place = study_of("set"), tmp_path / "reports"
    write_reports(place, [study.client(diary=Diary.in_memory()).report({"a": 0.5}) for _ in range(7)])
    tally = study.tally()
    both = tally.add_files([place, place])
    assert (both.accepted, both.repeated, tally.n) == (7, 7, 7)
    assert tally.add_files([place]).accepted == 7
    assert tally.n == 14
