"""A small collector in memory that follows the contract, and misbehaves on order: for clients, not for people."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sabun.keyvalue.client import Terms, report_size


class FakeCollector:
    """What it has, and what it will do wrong next.

    Args:
        terms: The study.
        faults: Per request: `none`; `busy` (503 with Retry-After); `cut` (takes it, cuts the answer off); `lost` (takes it and
            hangs up); `closed` (hangs up before taking it).
    """

    def __init__(self, terms: Terms, faults: Iterator[str] | None = None) -> None:
        self.terms, self.faults = terms, faults
        self.reports: dict[tuple[int, bytes], bytes] = {}
        self.arrived = 0
        self.promises: dict[str, str] = {}
        self.lock = threading.Lock()
        self.nonce = "cd" * 32
        self.heard: list[str] = []
        self.refuses_reveals = False
        self.aims = False
        self.early = False
        self.most_bytes = 1 << 20
        self.bodies: list[int] = []

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        base = f"/v1/studies/{self.terms.short_id.hex()}"
        if not path.startswith(base):
            return 404, {"code": "unknown-study", "detail": "There is no such study here."}
        rest = path.removeprefix(base)
        if rest == "" and method == "GET":
            return 200, self.terms.to_json() + "\n"
        if rest.startswith("/enrolment"):
            return self._enrol(rest, json.loads(body))
        number = int(rest.split("/")[2])
        if method == "GET":
            return 200, {"state": "open", "feedback": [0.25] * len(self.terms.keys), "seed": None}
        return self._take(number, body)

    def _enrol(self, rest: str, given: dict[str, str]) -> tuple[int, Any]:
        ticket, nonce = given["ticket"], self.nonce
        if rest == "/enrolment":
            if self.promises.setdefault(ticket, given["promise"]) != given["promise"]:
                return 409, {"code": "other-promise", "detail": "This ticket came before with another promise."}
            return 200, {"nonce": nonce}
        self.heard.append(given["secret"])
        if self.refuses_reveals:
            return 404, {"code": "unknown-ticket", "detail": "There is no such ticket."}
        secret = bytes.fromhex(given["secret"])
        if hashlib.sha256(secret).hexdigest() != self.promises.get(ticket):
            return 409, {"code": "other-promise", "detail": "This ticket came before with another promise."}
        made = hashlib.sha256(b"sabun credential\0" + self.terms.short_id + secret + bytes.fromhex(nonce)).hexdigest()
        return 200, {"credential": "00" * 32 if self.aims else made}

    def _take(self, number: int, body: bytes) -> tuple[int, Any]:
        self.bodies.append(len(body))
        if len(body) > self.most_bytes:
            return 413, {"code": "too-large", "detail": "The body must be smaller."}
        size = report_size(self.terms)
        said: dict[str, Any] = {"accepted": 0, "duplicate": 0, "rejected": []}
        with self.lock:
            for index in range(len(body) // size):
                report = body[index * size : (index + 1) * size]
                self.arrived += 1
                known = self.reports.get((number, report[21:37]))
                if self.early:
                    said["rejected"].append({"index": index, "reason": "early"})
                elif known is None:
                    self.reports[number, report[21:37]] = report
                    said["accepted"] += 1
                elif known == report:
                    said["duplicate"] += 1
                else:
                    said["rejected"].append({"index": index, "reason": "conflict"})
        return 200, said


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    collector: FakeCollector

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = next(self.collector.faults, "none") if self.collector.faults is not None else "none"
        if fault == "closed":
            self.close_connection = True
            return
        if fault == "busy":
            self._say(503, b'{"code": "busy"}', after="2")
            return
        status, said = self.collector.answer(self.command, self.path, body)
        content = (said if isinstance(said, str) else json.dumps(said)).encode()
        if fault == "lost":
            self.close_connection = True
        else:
            self._say(status, content, cut=fault == "cut")

    def _say(self, status: int, content: bytes, *, after: str | None = None, cut: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Access-Control-Allow-Origin", "*")
        if after is not None:
            self.send_header("Retry-After", after)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection = self.close_connection or cut

    def log_message(self, *_: Any) -> None:
        pass


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def running(collector: FakeCollector) -> contextlib.AbstractContextManager[str]:
    """The address it listens at."""
    return _listening(type("Handler", (_Handler,), {"collector": collector}))


def served(folder: Path) -> contextlib.AbstractContextManager[str]:
    """The address of a site of plain files."""
    return _listening(functools.partial(_Files, directory=str(folder)))


@contextlib.contextmanager
def _listening(handler: Any) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
