"""Made-up devices for tests and benchmarks: well-formed reports by the thousand, a forked server, clients that retry."""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sabun.keyvalue import Study
from sabun.keyvalue.client.probabilities import JOINT, PER_KEY
from sabun.keyvalue.client.wire import Report, header, pack, report_size
from sabun.service.launcher import prepare
from sabun.service.process import listening, run_process
from sabun.service.settings import Settings

KV3 = Study(keys=["YouTube", "LINE", "Maps", "Mail", "Radio"], epsilon=2, protocol="kv3")
PATIENCE = 120.0


def made_up(study: Study, n: int, *, seed: int, number: int = 0) -> list[bytes]:
    """Reports that are well formed, with symbols drawn evenly; of no person."""
    rng = np.random.default_rng(seed)
    terms, keys = study.terms, len(study.terms.keys)
    if terms.sampled and terms.index_mode == "assigned":
        first = header(terms.short_id, number, b"")
        ids, symbols = rng.bytes(16 * n), rng.integers(0, terms.signs + 1, n, dtype=np.uint8).tobytes()
        return [first + ids[16 * i : 16 * i + 16] + symbols[i : i + 1] for i in range(n)]
    found = []
    for _ in range(n):
        index, symbol = None, 0
        if terms.protocol in PER_KEY:
            most = terms.subset.width if terms.subsets else keys
            chosen = set(rng.permutation(keys)[: rng.integers(0, min(most, keys) + 1)].tolist())
            symbol = tuple(int(rng.integers(1, terms.signs + 1)) if key in chosen else 0 for key in range(keys))
        elif terms.protocol in JOINT:
            symbol = int(rng.integers(0, 2 * keys + 1))
        else:
            index, symbol = int(rng.integers(0, keys)), int(rng.integers(0, terms.signs + 1))
        found.append(pack(terms, Report(round=number, report_id=rng.bytes(16), index=index, symbol=symbol)))
    assert {len(report) for report in found} <= {report_size(terms)}
    return found


def _serve(settings: Settings, port: int, log: str, shard: int) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 2)
    run_process(settings, listening("127.0.0.1", port, shared=True), shard=shard)


_FORKING = multiprocessing.get_context("forkserver")
# Killed and started anew, a server need not import everything again.
_FORKING.set_forkserver_preload(["sabun.service.launcher", "sabun.keyvalue.study", "numpy.random"])


@dataclass
class Running:
    """A collector in one or several processes of its own."""

    settings: Settings
    shards: Sequence[int] = (0,)
    port: int = 0
    log: str = os.devnull
    _processes: dict[int, Any] = field(default_factory=dict)
    _kept: Any = None

    def start(self) -> Running:
        if self._kept is None:
            prepare(self.settings)
            self._kept = listening("127.0.0.1", 0, shared=True)
            self.port = self._kept.getsockname()[1]
        for shard in self.shards:
            if shard not in self._processes:
                given = (self.settings, self.port, self.log, shard)
                self._processes[shard] = _FORKING.Process(target=_serve, args=given, daemon=True)
                self._processes[shard].start()
        self.wait()
        return self

    def wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.ask("GET", "/health")[0] == 200:
                    return
            if not all(process.is_alive() for process in self._processes.values()):
                raise RuntimeError("the server ended by itself")
            time.sleep(0.02)
        raise TimeoutError("the server did not start")

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def kill(self, shard: int = 0) -> None:
        process = self._processes.pop(shard)
        process.kill()
        process.join()

    def stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()
        self._processes.clear()
        self._kept.close()


@contextlib.contextmanager
def running(settings: Settings, shards: Sequence[int] = (0,), log: str = os.devnull) -> Iterator[Running]:
    server = Running(settings, shards, log=log)
    try:
        yield server.start()
    finally:
        server.stop()


class Uploader:
    """A client that sends batches until each has been answered with a whole 200."""

    def __init__(self, port: int, study: Study, number: int = 0) -> None:
        self._path = f"/v1/studies/{study.terms.short_id.hex()}/rounds/{number}/reports"
        self._port = port
        self._connection: http.client.HTTPConnection | None = None
        self.retries = 0
        self.taken: list[dict[str, Any]] = []

    def send(self, batch: Sequence[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                if self._connection is None:
                    self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
                self._connection.request("POST", self._path, b"".join(batch), {"Content-Type": "application/vnd.sabun.reports"})
                answer = self._connection.getresponse()
                content = answer.read()
                if answer.status == 200:
                    found = json.loads(content)
                    assert found["accepted"] + found["duplicate"] + len(found["rejected"]) == len(batch)
                    self.taken.append(found)
                    return
                assert answer.status in (429, 503), content
                assert answer.headers["Retry-After"]
            self.retries += 1
            self.close()
            time.sleep(0.02)
        raise TimeoutError("the batch was never answered")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
