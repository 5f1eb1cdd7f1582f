"""Noise that repeats: each test draws its "system entropy" from a stream named after the test.

A test of a random mechanism has a chance to fail that no tolerance takes away; drawn anew in every run, thousands of them
make a suite that nobody believes. So a run repeats the last one, bit by bit, in any order and on any number of workers.
``SABUN_TEST_NOISE=anything`` names other streams, and ``SABUN_TEST_NOISE=fresh`` leaves the machine's own entropy alone.

Temporary files lie in memory where there is room for them: thousands of ledgers sync every row, and six sevenths of the time
of their tests went by waiting for a disk. ``TMPDIR=/tmp make test`` waits for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

NOISE = os.environ.get("SABUN_TEST_NOISE", "")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    # Before numpy is imported: two workers whose matrix products wait for each other's threads take thrice as long as alone.
    os.environ.setdefault(name, "1")
os.environ["LC_ALL"] = "C.UTF-8"  # pages speak the language of the locale; the tests read English wherever they run
SYSTEM: Callable[[int], bytes] = os.urandom
MEMORY, ROOM = "/dev/shm", 6 << 30


def roomy(folder: str) -> bool:
    """Whether files may lie there; some tests run what they have built."""
    return (
        os.access(folder, os.W_OK)
        and shutil.disk_usage(folder).free > ROOM
        and not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)
    )


if "TMPDIR" not in os.environ and roomy(MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY


class Noise:
    """Bytes by name. A forked child gets the machine's own: two processes must not draw the same token."""

    def __init__(self, name: str) -> None:
        self._seed, self._drawn, self._owner = hashlib.sha256(f"{NOISE}\n{name}".encode()).digest(), 0, os.getpid()
        self._lock = threading.Lock()

    def __call__(self, count: int) -> bytes:
        if os.getpid() != self._owner:
            return SYSTEM(count)
        with self._lock:
            self._drawn += 1
            block = self._drawn
        return hashlib.shake_256(self._seed + block.to_bytes(8, "big")).digest(count)


@contextlib.contextmanager
def noise_of(name: str) -> Iterator[None]:
    before = os.urandom, random._urandom  # type: ignore[attr-defined]  # `secrets` draws through the second
    if NOISE != "fresh":
        os.urandom = random._urandom = Noise(name)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        os.urandom, random._urandom = before  # type: ignore[attr-defined]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with noise_of(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """What several tests share must not depend on which of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    with noise_of(f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"):
        return (yield)
