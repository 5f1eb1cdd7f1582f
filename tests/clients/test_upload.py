"""The Python client on its way to a collector: pauses, cut answers, crashes, enrolment."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from clients.fake_collector import FakeCollector, running
from sabun.keyvalue.client import (
    Client,
    ClientError,
    Diary,
    DiaryError,
    Outbox,
    ReportError,
    Terms,
    Uploader,
    UploadError,
    report_size,
)

STUDY = Terms(keys=tuple("abcde"), epsilon=Fraction(2), protocol="pckv-ue", padding_length=2, rounds=3)
TICKET = "ab" * 16


def reports(count: int, *, round: int = 0) -> list[bytes]:
    return [Client(STUDY).report({"a": 0.5}, round=round) for _ in range(count)]


def uploader(address: str, pauses: list[float] | None = None, **more: Any) -> Uploader:
    waited = [] if pauses is None else pauses
    return Uploader(address, first_pause=0.1, timeout=10, wait=waited.append, **more)


def test_what_waits_is_sent_once_and_waits_no_longer(tmp_path: Path) -> None:
    collector, outbox = FakeCollector(STUDY), Outbox(tmp_path)
    made = [*reports(5), *reports(3, round=2)]
    for report in [*made, *made]:
        outbox.put(report)
    assert sorted(Outbox(tmp_path).waiting()) == sorted(made)
    with running(collector) as address:
        assert uploader(address).send(outbox).accepted == 8
        assert outbox.waiting() == []
        outbox.put(made[0])
        assert uploader(address).send(outbox).duplicate == 1
    assert sorted(collector.reports.values()) == sorted(made)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions of files are those of POSIX")
def test_what_waits_is_for_its_owners_eyes_alone(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    outbox.put(reports(1)[0])
    outbox.promise(STUDY.task_id, TICKET)
    outbox.nonce(STUDY.task_id, TICKET, b"said")
    modes = [place.stat().st_mode & 0o777 for place in (tmp_path / "outbox", *(tmp_path / "outbox").iterdir())]
    assert modes == [0o700, 0o600, 0o600, 0o600]


def test_a_request_is_repeated_with_growing_pauses_until_its_answer_is_whole(tmp_path: Path) -> None:
    faults = ["closed", "busy", "cut", "lost", "closed", "none"]
    collector, outbox, pauses = FakeCollector(STUDY, iter(faults)), Outbox(tmp_path), list[float]()
    for report in reports(4):
        outbox.put(report)
    with running(collector) as address:
        sent = uploader(address, pauses).send(outbox)
    assert (sent.accepted, sent.duplicate, sent.rejected) == (0, 4, ())
    assert len(pauses) == 5
    asked = [0, 2, 0, 0, 0]  # the second answer asked for two seconds
    assert all(least <= pause <= least + 0.1 * 2**place for place, (least, pause) in enumerate(zip(asked, pauses, strict=True)))
    assert outbox.waiting() == []


def test_what_could_not_be_sent_waits_on(tmp_path: Path) -> None:
    outbox, [report] = Outbox(tmp_path), reports(1)
    outbox.put(report)
    with running(FakeCollector(STUDY, itertools.repeat("lost"))) as address:
        with pytest.raises(UploadError, match="unreachable") as unreachable:
            uploader(address, attempts=3).send(outbox)
        assert (unreachable.value.code, unreachable.value.status) == ("unreachable", 0)
    other = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3")
    collector, pauses = FakeCollector(other), list[float]()
    with running(collector) as address, pytest.raises(UploadError, match="no such study") as unknown:
        uploader(address, pauses).send(outbox)
    assert (unknown.value.code, unknown.value.status, pauses) == ("unknown-study", 404, [])
    assert outbox.waiting() == [report]


def test_a_study_the_collector_does_not_know_stops_no_other(tmp_path: Path) -> None:
    others = [Terms(keys=(key,), epsilon=Fraction(1), protocol="kv3") for key in "xyz"]
    collector, outbox, own = FakeCollector(STUDY), Outbox(tmp_path), reports(3)
    unknown = [Client(other).report({}) for other in others]
    assert min(unknown) < min(own)  # some of them come first: the order is that of the studies' ids, which are fixed
    for report in [*own, *unknown]:
        outbox.put(report)
    with running(collector) as address, pytest.raises(UploadError) as refused:
        uploader(address).send(outbox)
    assert (refused.value.code, refused.value.status) == ("unknown-study", 404)
    assert sorted(collector.reports.values()) == sorted(own)
    assert sorted(outbox.waiting()) == sorted(unknown)


def test_reports_go_in_requests_that_a_collector_takes(tmp_path: Path) -> None:
    study = Terms(keys=tuple(range(50_000)), epsilon=Fraction(2), protocol="pckv-ue", padding_length=2)
    size = report_size(study)
    made = [b"\1" + study.short_id + bytes(4) + bytes([place]) * 16 + bytes(size - 37) for place in range(100)]
    assert 100 * size > 1 << 20
    collector, outbox = FakeCollector(study), Outbox(tmp_path)
    for report in made:
        outbox.put(report)
    with running(collector) as address:
        assert uploader(address).send(outbox).accepted == 100
    assert max(collector.bodies) <= 1 << 19
    assert len(collector.bodies) == -(-100 // ((1 << 19) // size))


def test_a_request_that_is_too_large_is_halved_and_what_is_too_large_alone_waits_on(tmp_path: Path) -> None:
    collector, outbox, made = FakeCollector(STUDY), Outbox(tmp_path), reports(11)
    for report in made:
        outbox.put(report)
    size, pauses = report_size(STUDY), list[float]()
    with running(collector) as address:
        collector.most_bytes = size - 1
        with pytest.raises(UploadError) as refused:
            uploader(address, pauses).send(outbox)
        assert (refused.value.code, len(outbox.waiting()), pauses) == ("too-large", 11, [])
        collector.most_bytes = 2 * size
        assert uploader(address).send(outbox).accepted == 11
    assert sorted(collector.reports.values()) == sorted(made)


def test_refused_reports_are_named_and_early_ones_wait_on(tmp_path: Path) -> None:
    collector, outbox, [first, second] = FakeCollector(STUDY), Outbox(tmp_path), reports(2)
    changed = second[:-1] + bytes([second[-1] ^ 0b01000000])
    collector.reports[0, second[21:37]] = changed
    outbox.put(first)
    outbox.put(second)
    with running(collector) as address:
        collector.early = True
        assert {reason for _, reason in uploader(address).send(outbox).rejected} == {"early"}
        assert len(outbox.waiting()) == 2
        collector.early = False
        sent = uploader(address).send(outbox)
    assert (sent.accepted, sent.rejected, outbox.waiting()) == (1, ((second, "conflict"),), [])


def test_a_pause_is_drawn_anew_each_time_and_never_longer_than_its_limit() -> None:
    pauses = list[float]()
    asking = Uploader("http://127.0.0.1:9", attempts=200, first_pause=1e-3, longest_pause=4e-3, wait=pauses.append)
    with pytest.raises(UploadError):
        asking.study("0" * 32)
    assert len(pauses) == 199
    assert len(set(pauses)) == 199
    assert max(pauses) <= 4e-3
    assert min(pauses[5:]) < 1e-3  # of 194 even draws all above a quarter of the limit: once in 10^24


def test_enrolment_promises_first_and_goes_on_after_a_crash(tmp_path: Path) -> None:
    collector, outbox = FakeCollector(STUDY, iter(["none", "closed", "none"])), Outbox(tmp_path)
    with running(collector) as address:
        asking = uploader(address, attempts=1)
        with pytest.raises(UploadError, match="unreachable"):
            asking.enrol(STUDY, ticket=TICKET, outbox=outbox)
        credential = asking.enrol(STUDY, ticket=TICKET, outbox=Outbox(tmp_path))
        assert asking.enrol(STUDY, ticket=TICKET, outbox=Outbox(tmp_path)) == credential
        with pytest.raises(UploadError) as other:
            asking.enrol(STUDY, ticket=TICKET, outbox=Outbox(tmp_path / "another device"))
        assert other.value.code == "other-promise"
        collector.aims = True
        with pytest.raises(UploadError, match="Do not take part"):
            asking.enrol(STUDY, ticket=TICKET, outbox=outbox)
    client = Client(STUDY, credential=credential, diary=Diary.in_memory())
    assert len(client.report({})) == 39
    assert TICKET not in str([*tmp_path.iterdir()])
    assert collector.promises[TICKET] not in str([*tmp_path.iterdir()])


@pytest.mark.parametrize("fault", ["refused", "closed", "lost", "cut"])
def test_a_server_that_has_heard_the_devices_number_cannot_say_another_one(tmp_path: Path, fault: str) -> None:
    faults = iter(["none", *(["none"] if fault == "refused" else [fault]), "none", "none"])
    collector, first = FakeCollector(STUDY, faults), "cd" * 32
    collector.refuses_reveals = fault == "refused"
    with running(collector) as address:
        asking = uploader(address, attempts=1)
        with pytest.raises(UploadError):
            asking.enrol(STUDY, ticket=TICKET, outbox=Outbox(tmp_path))
        collector.refuses_reveals, collector.nonce, heard = False, "ef" * 32, list(collector.heard)
        for _ in range(2):
            with pytest.raises(UploadError, match="Do not take part") as aimed:
                asking.enrol(STUDY, ticket=TICKET, outbox=Outbox(tmp_path))
            assert aimed.value.code == "nonce"
        assert collector.heard == heard  # nothing more is revealed to it
        collector.nonce = first
        assert len(asking.enrol(STUDY, ticket=TICKET, outbox=Outbox(tmp_path))) == 32


def test_each_ticket_has_a_number_of_its_own_that_no_other_ticket_has_revealed(tmp_path: Path) -> None:
    collector = FakeCollector(STUDY)
    with running(collector) as address:
        credentials = {uploader(address).enrol(STUDY, ticket=ticket, outbox=Outbox(tmp_path)) for ticket in ("01", "02", "02")}
    assert len(credentials) == len(set(collector.heard)) == len(set(collector.promises.values())) == 2


def test_a_study_is_the_one_that_was_asked_for() -> None:
    with running(FakeCollector(STUDY)) as address:
        asking = uploader(address)
        assert asking.study(STUDY.task_id) == asking.study(STUDY.task_id[:32]) == STUDY
        with pytest.raises(UploadError, match="showed another"):
            asking.study(STUDY.task_id[:32] + "0" * 32)
        state = asking.round(STUDY, 1)
    assert (state.state, state.means, state.seed) == ("open", dict.fromkeys(STUDY.keys, 0.25), b"")


@pytest.mark.parametrize("server", ["", "collector.example", "file:///etc/passwd", "ftp://x", "http://"])
def test_an_address_must_be_one_of_the_web(server: str) -> None:
    with pytest.raises(ClientError, match="server must be an address"):
        Uploader(server)


def test_an_outbox_takes_reports_alone_and_one_of_each_id(tmp_path: Path) -> None:
    outbox, [report] = Outbox(tmp_path), reports(1)
    for odd in (b"", report[:37], b"\2" + report[1:], "text"):
        with pytest.raises(ReportError):
            outbox.put(odd)  # type: ignore[arg-type]
    outbox.put(report)
    with pytest.raises(ReportError, match="another waits"):
        outbox.put(report[:-1] + bytes([report[-1] ^ 0b01000000]))
    assert outbox.waiting() == [report]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiaryError, match="Nothing was sent"):
        Outbox(tmp_path / "file")


DEVICE = """
import sys
from fractions import Fraction
from sabun.keyvalue.client import Client, Outbox, Terms, Uploader
terms = Terms(keys=tuple("abcde"), epsilon=Fraction(2), protocol="pckv-ue", padding_length=2, rounds=60)
client, outbox, uploader = Client(terms, diary=sys.argv[1]), Outbox(sys.argv[2]), Uploader(sys.argv[3], first_pause=0.01)
for round in range(60):
    outbox.put(client.report({"a": 0.5}, round=round))
    if round % 7 == 0:
        uploader.send(outbox)
uploader.send(outbox)
print("done")
"""


def test_a_device_that_is_killed_again_and_again_loses_nothing_and_says_one_thing_a_round(tmp_path: Path) -> None:
    terms = Terms(keys=tuple("abcde"), epsilon=Fraction(2), protocol="pckv-ue", padding_length=2, rounds=60)
    faults = itertools.cycle(["none", "cut", "none", "lost", "none", "none", "closed"])
    collector = FakeCollector(terms, faults)
    kills = Counter[bool]()
    with running(collector) as address:
        command = [sys.executable, "-c", DEVICE, str(tmp_path / "diary"), str(tmp_path / "outbox"), address]
        while True:
            device = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ)
            before = collector.arrived
            # Killed some way on, by what has arrived and not by the clock; the last one may finish.
            while kills[True] < 4 and device.poll() is None and collector.arrived < before + 12:
                time.sleep(0.002)
            if kills[True] < 4:
                device.send_signal(signal.SIGKILL)
            said, _ = device.communicate()
            kills[device.returncode == -signal.SIGKILL] += 1
            if said == b"done\n":
                break
    assert kills[True] >= 1
    assert sorted(number for number, _ in collector.reports) == list(range(60))  # every round once, whoever was killed when
    assert Outbox(tmp_path / "outbox").waiting() == []
    assert Diary(tmp_path / "diary").spent == 60 * terms.certified
