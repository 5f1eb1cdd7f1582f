"""Nothing is lost and nothing counts twice, whatever is killed; `faults.py` does the same as often as it is told."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.servers import NoServer, Server
from sabun.service.served import require_equal
from sabun.service.settings import opened_store
from service.devices import KV3, Running, Uploader, made_up, running
from service.faults import kill_and_start, killed, settings_in


def test_a_killed_collector_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    seen = killed(settings_in(tmp_path), kills=3, break_it=kill_and_start)
    assert seen["reports"] >= 900
    assert seen["retries"] >= 1


def test_two_processes_on_postgresql_are_killed_in_turn(tmp_path: Path, postgres: Server) -> None:
    address = f"{postgres.address(ledger=None)}&collector=killed"
    seen = killed(settings_in(tmp_path, address), kills=2, shards=(0, 1), break_it=kill_and_start)
    assert seen["reports"] >= 900


def test_a_postgresql_server_that_is_killed_and_started_again(tmp_path: Path) -> None:
    try:
        server = Server()
    except NoServer as reason:
        pytest.skip(str(reason))

    def kill_database(_: Running, __: int) -> None:
        server.kill()
        time.sleep(0.3)
        (server.folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        server.start()

    try:
        seen = killed(settings_in(tmp_path, server.address(ledger=None)), kills=2, break_it=kill_database)
        assert seen["retries"] >= 1
    finally:
        server.remove()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB, where one may be made."""
    place = tmp_path / "small"
    place.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root can make a small file system")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_disk_that_is_full_loses_nothing_that_was_answered(tmp_path: Path, small_disk: Path) -> None:
    """Devices are told to come again; once there is room, the same server takes everything, and counts it once."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    path = f"/v1/studies/{KV3.terms.short_id.hex()}/rounds/0/reports"
    batches = [made_up(KV3, 1000, seed=number) for number in range(20)]
    with running(settings_in(tmp_path, str(small_disk / "study.reports"))) as server:
        answers = [server.ask("POST", path, b"".join(batch)) for batch in batches]
        statuses = [status for status, _ in answers]
        assert set(statuses) == {200, 503}
        assert json.loads(answers[-1][1])["code"] == "unavailable"
        ballast.unlink()
        uploader = Uploader(server.port, KV3)
        for batch in batches[:12]:
            uploader.send(batch)
        uploader.close()
    counted = [status == 200 or number < 12 for number, status in enumerate(statuses)]
    again = [taken["duplicate"] == 1000 for taken in uploader.taken]
    assert again == [status == 200 for status in statuses[:12]]
    expected = KV3.tally()
    expected.add_reports([report for batch, here in zip(batches, counted, strict=True) if here for report in batch])
    store = opened_store(str(small_disk / "study.reports"), str(tmp_path / "keys"))
    [served] = store.all_served()
    assert store.tally(served, 0) == expected
    require_equal(store.counters(served, 0), store.recount(served, 0))
    store.database.close()


def test_a_silent_client_is_hung_up_on(tmp_path: Path) -> None:
    with running(dataclasses.replace(settings_in(tmp_path), header_seconds=0.5)) as server:
        for words in (b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /hea"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
                line.sendall(words)
                while line.recv(10_000):  # an answer to what was whole, then the end
                    pass
        assert server.ask("GET", "/health")[0] == 200


def test_a_slow_body_is_given_up(tmp_path: Path) -> None:
    with running(dataclasses.replace(settings_in(tmp_path), body_seconds=0.5)) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.putrequest("POST", f"/v1/studies/{KV3.terms.short_id.hex()}/rounds/0/reports")
        connection.putheader("Content-Length", "380")
        connection.endheaders(b"x" * 38)
        answer = connection.getresponse()
        assert answer.status == 408
        assert json.loads(answer.read())["code"] == "slow-body"
        connection.close()


def _stalled(server: Running, begun: bytes) -> socket.socket:
    """A client that begins a request of the largest size and never ends it."""
    line = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    line.sendall(begun)
    return line


def _quick(server: Running, *, seed: int) -> float:
    """Seconds that an honest client takes, who is never sent away."""
    path, reports = f"/v1/studies/{KV3.terms.short_id.hex()}/rounds/0/reports", made_up(KV3, 20, seed=seed)
    start = time.perf_counter()
    status, content = server.ask("POST", path, b"".join(reports))
    assert (status, json.loads(content).get("accepted")) == (200, 20)
    return time.perf_counter() - start


def test_slow_senders_of_large_bodies_keep_nobody_out(tmp_path: Path) -> None:
    """All bodies together may take 64 MiB; here eighty of nearly 1 MiB stall, and the oldest of them make room."""
    path = f"/v1/studies/{KV3.terms.short_id.hex()}/rounds/0/reports"
    begun = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 20}\r\n\r\n".encode() + b"x" * ((1 << 20) - 1)
    with running(dataclasses.replace(settings_in(tmp_path), body_seconds=600)) as server, contextlib.ExitStack() as lines:
        stalled = [lines.enter_context(_stalled(server, begun)) for _ in range(80)]
        slowest = max(_quick(server, seed=number) for number in range(5))
        first = stalled[0].recv(1000)
    assert slowest < 15  # they waited for as long as a body may take: here ten minutes
    assert b" 503 " in first
    assert b"retry-after" in first


def test_connections_on_which_nothing_comes_keep_nobody_out(tmp_path: Path) -> None:
    """Three times as many as a process listens to: silent ones, half a request, and one that was answered before."""
    settings = dataclasses.replace(settings_in(tmp_path), connections=50, header_seconds=600, body_seconds=600)
    with running(settings) as server, contextlib.ExitStack() as lines:
        stalled = []
        for words in (b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"):
            stalled += [lines.enter_context(_stalled(server, words)) for _ in range(50)]
            assert _quick(server, seed=len(words)) < 15
        for line in stalled[:60]:  # hung up on, long before their time
            with contextlib.suppress(ConnectionResetError):
                assert line.recv(1000) == b""


def test_an_answer_leaves_at_once_although_the_client_delays_its_acknowledgement(tmp_path: Path) -> None:
    """Nagle's algorithm would hold each second answer back for some 40 ms; medians of many are far below that."""
    with running(settings_in(tmp_path)) as server:
        uploader = Uploader(server.port, KV3)
        taken = []
        for number in range(40):
            [report] = made_up(KV3, 1, seed=number)
            start = time.perf_counter()
            uploader.send([report])
            taken.append(time.perf_counter() - start)
        uploader.close()
    assert sorted(taken)[5] < 0.035


def test_nothing_in_logs_or_database_leads_to_a_person(tmp_path: Path) -> None:
    """Reads all that a run leaves behind: no address, no report id, no bytes of a report, no time finer than an hour."""
    log = tmp_path / "log"
    with running(settings_in(tmp_path), log=str(log)) as server:
        reports = made_up(KV3, 200, seed=1)
        uploader = Uploader(server.port, KV3)
        uploader.send(reports)
        uploader.close()
        bad = b"not a report of anybody" * 5
        server.ask("POST", f"/v1/studies/{KV3.terms.short_id.hex()}/rounds/0/reports", bad)
        server.ask("GET", "/v1/studies/secret-path?who=secret-query", None, Cookie="secret-cookie")
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(b"secret nonsense\r\n\r\n")
        connection.recv(1000)
        connection.close()
    said = log.read_bytes()
    assert said.count(b"\n") >= 2
    assert all(json.loads(line)["event"] for line in said.splitlines())
    for word in (b"127.0.0.1", b"secret", b"reports/", KV3.terms.short_id.hex().encode()):
        assert word not in said
    files = b"".join(file.read_bytes() for file in tmp_path.glob("study.reports*"))
    assert not any(report[21:37] in files or report[21:37].hex().encode() in files for report in reports)
    assert b"not a report of anybody" not in files
    assert b"127.0.0.1" not in files
    now = int(time.time())
    assert not any(b"%d" % moment in files for moment in range(now - 900, now + 1))
    with contextlib.closing(sqlite3.connect(tmp_path / "study.reports")) as kept:
        tables = [name for (name,) in kept.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        values = [value for name in tables for row in kept.execute(f"SELECT * FROM {name}") for value in row]
    assert len(tables) >= 8
    assert max(value for value in values if isinstance(value, int)) in (now // 3600, now // 3600 - 1)
