"""The collector over HTTP beside the bare store it writes to, in the same run, on SQLite and on PostgreSQL; loopback only.

Raw is one connection that inserts batches of 1,000 rows of an id and an answer, each on disk before the next, as many rows as
the service is sent: both grow slower with the table, for ids lie in no order. The service does all it does: HTTP, checks,
scrambled ids, exactly once, counters, outcomes. Clients run in a process of their own. What is known so far is told on stderr.

    python -m benchmarks.collector [--quick] [--json FILE]
"""

from __future__ import annotations

import asyncio
import math
import secrets
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.measure import ROOT, Figure, main
from sabun.keyvalue import Study
from sabun.keyvalue.client.wire import header
from sabun.service.application import application
from sabun.service.endpoints import Collecting
from sabun.service.report_store import Store
from sabun.service.round_keys import RoundKeys
from sabun.service.settings import Settings, opened_store
from sabun.service.sqlite_session import PRAGMAS, SqliteDatabase
from sabun.service.writer import Writer

sys.path.insert(0, str(ROOT / "tests"))
from ledger.servers import Server
from service.devices import Running, running

MEASURES = (
    "src/sabun/keyvalue/client/assignment.py",
    "src/sabun/service/adding.py",
    "src/sabun/service/application.py",
    "src/sabun/service/arrivals.py",
    "src/sabun/service/bodies.py",
    "src/sabun/service/connections.py",
    "src/sabun/service/endpoints.py",
    "src/sabun/service/postgres_session.py",
    "src/sabun/service/process.py",
    "src/sabun/service/report_store.py",
    "src/sabun/service/served.py",
    "src/sabun/service/sqlite_session.py",
    "src/sabun/service/writer.py",
)
"""The way of a report; pages and commands are not measured."""
STUDY = Study(keys=[f"key {number}" for number in range(50)], epsilon=2, protocol="kv3")
PATH = f"/v1/studies/{STUDY.terms.short_id.hex()}/rounds/0/reports"
BATCH = 1000
LINES = 4
SINGLE_LINES = 64


def run(quick: bool) -> list[Figure]:
    reports, singles, fuzzed = (40_000, 2_000, 5_000) if quick else (1_000_000, 40_000, 1_000_000)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        raw = _raw_sqlite(Path(folder), reports)
        figures += _served("SQLite", _settings(Path(folder) / "one"), (0,), reports, singles, raw)[0]
        server = Server()
        try:
            raw = _raw_postgres(server, reports)
            place = server.address(ledger=None)
            one, first = _served(
                "PostgreSQL", _settings(Path(folder) / "two", f"{place}&collector=one"), (0,), reports, singles, raw
            )
            two, second = _served(
                "PostgreSQL, two processes",
                _settings(Path(folder) / "three", f"{place}&collector=two"),
                (0, 1),
                reports,
                singles,
                raw,
            )
            figures += one + two
        finally:
            server.remove()
        figures.append(
            Figure(
                room="collector",
                name="two processes on PostgreSQL, reports/s",
                ours=second,
                peer=first,
                peer_name="one process",
                unit="reports/s",
                ratio=second / first,
                target=1.0,
            )
        )
        figures.append(_fuzzed(Path(folder) / "fuzz", fuzzed))
    return figures


def _settings(folder: Path, database: str | None = None) -> Settings:
    folder.mkdir()
    place = database or str(folder / "reports")
    return Settings(database=place, keys=str(folder / "keys"), studies=((STUDY.to_json(), False, b""),))


def _served(
    name: str, settings: Settings, shards: tuple[int, ...], reports: int, singles: int, raw: float
) -> tuple[list[Figure], float]:
    """Rates, latencies and memory of a running collector, and that it counted what it was sent."""
    with running(settings, shards) as server:
        warm = _together(server, _bodies(20 * BATCH, BATCH), LINES)
        before = _resident(server)
        seconds, taken = _together(server, _bodies(reports, BATCH), LINES)
        after = _resident(server)
        alone, waits = _together(server, _bodies(singles, 1), SINGLE_LINES)
    del warm
    store = opened_store(settings.database, settings.keys)
    [served] = store.all_served()
    if store.counters(served, 0).n != 20 * BATCH + reports + singles:
        raise ValueError("every report that was answered must be counted; they are not")
    store.database.close()
    rate = reports / seconds
    note = f"{reports} reports in batches of {BATCH} over {LINES} connections; raw is the bare store in the same run"
    figures = [
        Figure(
            room="collector",
            name=f"{name}: reports/s over HTTP",
            ours=rate,
            peer=raw,
            peer_name="raw",
            unit="reports/s",
            ratio=rate / raw,
            target=0.5,
            note=note,
        ),
        Figure(room="collector", name=f"{name}: p99 of a batch", ours=_p99(taken)),
        Figure(
            room="collector",
            name=f"{name}: memory after, per process",
            ours=after / 1e6,
            peer=before / 1e6,
            peer_name="before",
            unit="MB",
            ratio=before / after,
            target=0.5,
            note="flat but for the pages that SQLite keeps of its file, 64 MB at most" if name == "SQLite" else "",
        ),
        Figure(
            room="collector",
            name=f"{name}: single reports, {SINGLE_LINES} connections",
            ours=singles / alone,
            unit="requests/s",
            note=f"p99 {1000 * _p99(waits):.0f} ms",
        ),
    ]
    for figure in figures:
        print(figure, file=sys.stderr, flush=True)
    return figures, rate


def _bodies(reports: int, each: int) -> Iterator[bytes]:
    """Well-formed reports with new ids, some at a time."""
    rng = np.random.default_rng(secrets.randbits(64))
    first = np.frombuffer(header(STUDY.terms.short_id, 0, b""), dtype=np.uint8)
    for _ in range(math.ceil(reports / each)):
        rows = np.empty((each, 38), dtype=np.uint8)
        rows[:, :21] = first
        rows[:, 21:37] = rng.integers(0, 256, (each, 16), dtype=np.uint8)
        rows[:, 37] = rng.integers(0, 3, each)
        yield rows.tobytes()


def _together(server: Running, bodies: Iterator[bytes], lines: int) -> tuple[float, list[float]]:
    """Seconds until all are answered with 200 over so many connections, and the seconds of each."""
    taken: list[float] = []

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for body in bodies:
            start = time.perf_counter()
            writer.write(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (PATH.encode(), len(body)) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answer = await reader.readexactly(length)
            if b" 200 " not in head[:20] or b'"rejected":[]' not in answer:
                raise ValueError("the server must take well-formed reports; it did not")
            taken.append(time.perf_counter() - start)
        writer.close()

    async def all_lines() -> None:
        await asyncio.gather(*(one() for _ in range(lines)))

    start = time.perf_counter()
    asyncio.run(all_lines())
    return time.perf_counter() - start, taken


def _p99(taken: Sequence[float]) -> float:
    return sorted(taken)[max(0, math.ceil(0.99 * len(taken)) - 1)]


def _resident(server: Running) -> float:
    text = server.ask("GET", "/metrics")[1].decode()
    return float(text.partition("sabun_resident_bytes{")[2].partition("} ")[2].split()[0])


def _rows(n: int) -> Iterator[list[tuple[bytes, bytes]]]:
    for _ in range(n // BATCH):
        ids = secrets.token_bytes(16 * BATCH)
        yield [(ids[place : place + 16], ids[place : place + 4]) for place in range(0, 16 * BATCH, 16)]


def _raw_sqlite(folder: Path, n: int) -> float:
    connection = sqlite3.connect(folder / "raw", isolation_level=None)
    for pragma in (*PRAGMAS, "cache_size=-65536"):  # the collector's own, so that a log of another length decides nothing
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE raw (id BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID")
    start = time.perf_counter()
    for rows in _rows(n):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT OR IGNORE INTO raw VALUES (?, ?)", rows)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - start
    connection.close()
    return n / seconds


def _raw_postgres(server: Server, n: int) -> float:
    """The quicker of the two ways to keep ids once: copied into a temporary table, then inserted where they are new."""
    import psycopg

    with psycopg.connect(server.address(ledger=None), autocommit=True) as connection:
        connection.execute("CREATE TABLE raw (id bytea PRIMARY KEY, answer bytea)")
        connection.execute("CREATE TEMPORARY TABLE arrived (id bytea, answer bytea) ON COMMIT DELETE ROWS")
        start = time.perf_counter()
        for rows in _rows(n):
            with connection.transaction():
                with connection.cursor().copy("COPY arrived FROM STDIN (FORMAT BINARY)") as copy:
                    for row in rows:
                        copy.write_row(row)
                connection.execute("INSERT INTO raw SELECT * FROM arrived ON CONFLICT DO NOTHING")
        return n / (time.perf_counter() - start)


@contextmanager
def _in_process(folder: Path) -> Iterator[tuple[Store, Collecting]]:
    folder.mkdir()
    store = Store(SqliteDatabase(folder / "reports"), RoundKeys(folder / "keys"))
    store.register(STUDY)
    collecting = Collecting(store=store, writer=Writer(store))
    try:
        yield store, collecting
    finally:
        collecting.writer.end()
        collecting.threads.shutdown()
        store.database.close()


def _fuzzed(folder: Path, n: int) -> Figure:
    """Damaged bodies straight into the application: how many made it fail, and that none was counted."""
    rng = np.random.default_rng(secrets.randbits(64))
    good = next(_bodies(BATCH, BATCH))
    with _in_process(folder) as (store, collecting):
        app = application(collecting)
        statuses: dict[int, int] = {}

        async def send(body: bytes, kind: bytes) -> None:
            waiting = [{"type": "http.request", "body": body, "more_body": False}]
            scope = {
                "type": "http",
                "method": "POST",
                "path": PATH,
                "raw_path": PATH.encode(),
                "query_string": b"",
                "headers": [(b"content-type", kind)],
                "http_version": "1.1",
                "scheme": "http",
                "server": ("x", 80),
                "client": ("x", 1),
                "root_path": "",
            }

            async def receive() -> dict[str, object]:
                return waiting.pop() if waiting else {"type": "http.disconnect"}

            async def answer(message: dict[str, object]) -> None:
                if message["type"] == "http.response.start":
                    status = int(message["status"])  # type: ignore[call-overload]
                    statuses[status] = statuses.get(status, 0) + 1

            await app(scope, receive, answer)  # type: ignore[arg-type]

        async def all_of_them() -> None:
            for _ in range(0, n, 200):
                await asyncio.gather(*(send(*_damaged(rng, good)) for _ in range(200)))

        start = time.perf_counter()
        asyncio.run(all_of_them())
        seconds = time.perf_counter() - start
        [served] = store.all_served()
        counted = store.counters(served, 0).n
    failures = sum(times for status, times in statuses.items() if status >= 500)
    if failures or counted:
        raise ValueError(f"damaged bodies must neither break the server nor count; {failures} failed, {counted} counted")
    note = f"{n} damaged bodies in {seconds:.0f} s: {dict(sorted(statuses.items()))}; none counted"
    return Figure(room="collector", name="fuzzed bodies that broke the server", ours=failures, unit="", note=note)


def _damaged(rng: np.random.Generator, good: bytes) -> tuple[bytes, bytes]:
    """A body that must not count: every report in it names another version, study or round, or says what cannot be said."""
    kind = int(rng.integers(0, 6))
    rows = np.frombuffer(good, dtype=np.uint8).reshape(-1, 38)[: rng.integers(1, 6)].copy()
    if kind < 4:
        places = (slice(0, 1), slice(1, 17), slice(17, 21), slice(37, 38))[kind]
        rows[:, places] = rng.integers(4, 256, rows[:, places].shape)
        return rows.tobytes()[: rng.integers(1, rows.size + 1)], b"application/vnd.sabun.reports"
    body = (
        rng.bytes(int(rng.integers(0, 200)))
        if kind == 4
        else b'{"reports": ["' + rng.bytes(int(rng.integers(0, 60))).hex().encode() + b'"]}'
    )
    return body, b"application/json"


if __name__ == "__main__":
    main(run)
