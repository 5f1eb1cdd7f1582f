"""What a ledger costs as it grows: a look at its balance, a charge beside one raw insert, a writer among readers, a full check.

The long ledgers are written in one go by the tests' bulk writer; building the longest, with a million entries, takes minutes.

    python -m benchmarks.ledger [--quick] [--json FILE]
"""

from __future__ import annotations

import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from benchmarks.measure import ROOT, Figure, main, wall_seconds
from sabun.ledger import Ledger

sys.path.insert(0, str(ROOT / "tests"))
from ledger.long_books import EACH, long_book

SHORT = 1_000
READERS = 4
READING = "import sys; from sabun.ledger import Ledger\nprint('ready', flush=True)\nwhile True: Ledger.open(sys.argv[1]).show()"


def run(quick: bool) -> list[Figure]:
    sizes = (10_000,) if quick else (100_000, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        short = long_book(Path(folder) / "short.ledger", SHORT)
        figures = [_charge(Path(folder), short), _among_readers(short, 20 if quick else 50)]
        for size in sizes:
            long = long_book(Path(folder) / f"{size}.ledger", size)
            looks = {"open": Ledger.open, "open and show": lambda path: Ledger.open(path).show()}
            figures += [_look(name, job, long, short, size) for name, job in looks.items()]
            figures += [_verify(long, size)] if size <= 100_000 else []
    return figures


def _look(name: str, job: Callable[[Path], object], long: Path, short: Path, size: int) -> Figure:
    """Under 50 ms, and less than twice what a ledger of a thousand entries takes."""
    ours, peer = (wall_seconds(lambda path=path: job(path), repeat=25) for path in (long, short))
    return Figure(
        room="ledger",
        name=f"{name}, {size} entries",
        ours=ours,
        peer=peer,
        peer_name=f"{SHORT} entries",
        ratio=peer / ours,
        target=0.5,
        note="a look must take less than twice as long as in the short ledger",
    )


def _charge(folder: Path, short: Path) -> Figure:
    """A charge beside one INSERT with the same settings of the disk, in turns; at most three times as long is stated."""
    ledger, ours, peers = Ledger.open(short), list[float](), list[float]()
    with closing(sqlite3.connect(folder / "raw.db", isolation_level=None)) as raw:
        raw.execute("PRAGMA synchronous=EXTRA")
        raw.execute("PRAGMA fullfsync=ON")
        raw.execute("CREATE TABLE book (sequence INTEGER PRIMARY KEY, record TEXT)")
        insert = "INSERT INTO book (record) VALUES (?)"
        for _ in range(50):
            peers.append(_seconds(lambda: raw.execute(insert, ("x" * 700,))))
            ours.append(_seconds(lambda: ledger.charge(EACH, purpose="p")))
    return Figure(
        room="ledger",
        name=f"one charge, {SHORT} entries",
        ours=statistics.median(ours),
        peer=statistics.median(peers),
        peer_name=f"one row inserted by SQLite {sqlite3.sqlite_version}, as durably",
        ratio=statistics.median(peers) / statistics.median(ours),
        target=1 / 3,
        note="a charge writes two rows and the (empty) result in one change of the file",
    )


def _among_readers(path: Path, charges: int) -> Figure:
    """The longest that a charge takes while others do nothing but read."""
    ledger, taken = Ledger.open(path), list[float]()
    with ExitStack() as stack:
        for _ in range(READERS):
            command = [sys.executable, "-c", READING, str(path)]
            reader = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(reader.kill)
            assert reader.stdout is not None
            reader.stdout.readline()
        for _ in range(charges):
            taken.append(_seconds(lambda: ledger.charge(EACH, purpose="p")))
    return Figure(
        room="ledger", name=f"longest of {charges} charges among {READERS} readers in a loop", ours=max(taken), note="below 1 s"
    )


def _verify(path: Path, size: int) -> Figure:
    seconds = wall_seconds(lambda: Ledger.open(path).verify(), repeat=1)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    note = f"all rows, kept bytes and pages; {1e6 * seconds / size:.0f} µs an entry, the process at most {most} MB"
    return Figure(room="ledger", name=f"verify, {size} entries", ours=seconds, note=note)


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(run)
