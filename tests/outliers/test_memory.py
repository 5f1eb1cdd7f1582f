"""What counting may take: a public amount, asked for before the charge, and never more after it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sabun.outliers.memory import MOST_BITS, most_bytes

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit on addresses is that of Linux")

# A table whose records nearly all lie in one band, on a sphere that two radii span: every pair of them is an edge.
PRELUDE = """
import resource
import sys
import numpy as np
from sabun.errors import DataError
from sabun.ledger import Ledger
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice, memory
from sabun.outliers.settings import load_loops

def sphere(n, d):
    rows = np.random.default_rng(0).normal(size=(n, d))
    return rows / np.linalg.norm(rows, axis=1)[:, None]

book = Ledger.create(sys.argv[1], name="book", epsilon=100)
count = OutlierCount(k=5, radius=0.8, epsilon=1, ledger=book)
halves = {"left": {"x0": (None, 0)}, "right": {"x0": (0, None)}}
regions = RegionCount(regions=halves, k=5, radius=0.8, epsilon=1, ledger=book)
subspaces = SubspaceChoice(subspaces={"one": [0], "two": [1]}, k=5, radius=0.5, epsilon=1, ledger=book)
for estimator in (count, regions, subspaces):
    estimator.fit(sphere(50, 20))
before = len(book.entries())

def allow(more):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, -1))
"""
CROWDED = """
memory.MOST_BITS, memory.MOST_LISTED = 0, 1 << 18
ball, heaps = sphere(4000, 20), np.repeat(np.arange(14.0), 1500)[:, None] * [2.0, 3.0]
allow(100 << 20)

def fitted(estimator, table):
    try:
        estimator.fit(table)
    except MemoryError:
        return "no memory"
    return "counted"

def answers():
    return [fitted(count, ball), fitted(regions, ball), fitted(subspaces, heaps)]

print(*answers(), len(book.entries()) - before, sep=", ")
# A test of the test: the same tables under the same limit, with all neighbours listed and nothing asked for.
memory.MOST_LISTED, memory.listed_in_graph, memory.most_bytes = 1 << 40, lambda n: n, lambda **_: 1
print(*answers(), sep=", ")
"""


def run(script: str, folder: Path) -> str:
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script, str(folder / "book.ledger")],
        capture_output=True,
        text=True,
        env=os.environ | single,
    )
    return done.stdout + done.stderr


@LINUX
def test_a_crowded_table_is_counted_in_the_memory_that_was_asked_for(tmp_path: Path) -> None:
    assert run(CROWDED, tmp_path) == "counted, counted, counted, 3\nno memory, no memory, no memory\n"


@LINUX
def test_what_does_not_fit_is_refused_before_the_charge(tmp_path: Path) -> None:
    script = """
table = sphere(6000, 2)
slow = OutlierCount(k=5, radius=0.8, epsilon=1, cover="link-core", ledger=book)
allow(64 << 20)
for estimator in (count, regions, subspaces, slow):
    try:
        estimator.fit(table)
    except DataError as error:
        print(error)
print(len(book.entries()) - before)
"""
    told = run(script, tmp_path).splitlines()
    assert len(told) == 5
    assert all("must be small enough" in line and "Nothing was charged" in line for line in told[:4])
    assert told[4] == "0"


def test_beyond_a_public_size_memory_grows_with_the_table_only() -> None:
    for cover, limit in (("degeneracy", 50), ("degeneracy", 10**6)):
        sizes = [most_bytes(n=n, d=8, limit=limit, cover=cover) for n in (2 * MOST_BITS, 4 * MOST_BITS)]
        assert sizes[1] < 2 * sizes[0] < 6 << 30


def test_the_slow_covers_ask_for_their_squares() -> None:
    fast, link, exact = (most_bytes(n=30_000, d=3, limit=50, cover=cover) for cover in ("degeneracy", "link-core", "exact"))
    assert link >= fast + 8 * 30_000**2
    assert exact > link
