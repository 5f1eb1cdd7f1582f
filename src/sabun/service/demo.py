"""The demo's job on the collector: a real server on this machine, and made-up phones that enrol and report to it over HTTP."""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import final

from sabun.errors import DataError
from sabun.keyvalue import Diary, Study
from sabun.keyvalue.client import Outbox, Uploader
from sabun.keyvalue.demo import APPS, made_up
from sabun.release import Release
from sabun.service.extra import require_extra
from sabun.telling.demo import Bench, Job, Outcome

__all__ = ["JOBS"]

_LEAST = 50
_AT_ONCE = 4
_SECONDS = 12.0
"""How long phones report; on a slow machine fewer of them do."""
_KEPT_OPEN = 60.0
"""Seconds at most for whoever watches."""
_PAUSE = 0.5
_START_SECONDS = 60.0
_END_SECONDS = 20.0


def phones_report_to_a_server(bench: Bench) -> Outcome:
    """Phones enrol and report, the server shows what it learned so far, and signs it at the end."""
    require_extra()
    people = _LEAST + 10 if bench.quick else 500
    study = Study(keys=list(APPS), epsilon=2, min_batch=_LEAST)
    with tempfile.TemporaryDirectory(prefix="sabun-collector-") as name:
        folder = Path(name)
        study.save(folder / "study.json")
        tickets, token = _prepared(study, folder, bench.folder, 2 * people)
        with _served(folder) as address:
            server = _Server(address, study, token, folder)
            bench.tell(f"     The collector's dashboard: {address}/ (until this job is over)")
            bench.tell(f"     To sign in there: {token}")
            phones = server.phones(tickets)
            people = _report_all(phones, people, bench.progress)
            shown = json.loads(server.asked("GET", "estimates"))["rows"]
            if bench.watched:
                bench.tell(f"     It stays open for {_KEPT_OPEN:.0f} seconds while more phones report. Enter goes on at once.")
                people += _keep_open(phones, bench.progress)
            server.asked("POST", "close")
            release = Release.from_json(server.asked("GET", "release"))
    shares = ", ".join(f"{key} {100 * share:.0f} %" for key, share in zip(shown["key"], shown["frequency"], strict=True))
    return Outcome(
        release=release,
        remarks=(
            f"{people:,} made-up phones enrolled with a ticket each and sent {study.report_bytes} bytes each over HTTP.",
            f"What the server showed while the round was open: {shares}.",
            "Then the round was closed: counted again from its reports, signed, and the key of its ids destroyed.",
        ),
        payer="none in the middle; each phone booked the cost in a diary of its own",
    )


def _prepared(study: Study, folder: Path, publisher: Path, tickets: int) -> tuple[list[str], str]:
    """A store with tickets and an operator, whose server signs with the demo's own key."""
    from sabun.service.enrolment import issue_tickets
    from sabun.service.operators import add_operator
    from sabun.service.settings import opened_store

    (folder / "study.keys").mkdir(mode=0o700)
    if (publisher / "publisher.pem").exists():
        shutil.copy(publisher / "publisher.pem", folder / "study.keys" / "signing.pem")
    store = opened_store(str(folder / "study.reports"), str(folder / "study.keys"))
    try:
        served = store.register(study, tickets=True)
        return issue_tickets(store, served, tickets), add_operator(store, "demo", scopes=["admin"])
    finally:
        store.database.close()


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """`sabun keyvalue serve`, as anybody would type it, on a port that is free; yields its address."""
    line = [sys.executable, "-m", "sabun", "keyvalue", "serve", "study.json", "--tickets", "--port", "0", "--json"]
    with (folder / "log").open("wb") as log:
        # A session of its own: an interrupt is for whoever watches, the server ends when it is told to.
        process = subprocess.Popen(
            line, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    try:
        yield _address(process)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _address(process: subprocess.Popen[bytes]) -> str:
    """Where the server says it is.

    Raises:
        DataError: It ended instead.
    """
    text, deadline = b"", time.monotonic() + _START_SECONDS
    while process.stdout is not None and time.monotonic() < deadline:
        if not select.select([process.stdout], [], [], 0.2)[0]:
            continue
        if not (some := os.read(process.stdout.fileno(), 4096)):
            break
        text += some
        with suppress(ValueError):
            return str(json.loads(text)["address"])
    raise DataError("the collector must start on a port of this machine; it did not. Leave the job `collector` out.")


@final
class _Server:
    """A running server, as phones and its operator see it."""

    def __init__(self, address: str, study: Study, token: str, folder: Path) -> None:
        self._address, self._study, self._token, self._folder = address, study, token, folder

    def asked(self, method: str, what: str) -> str:
        """What the API answers to the operator."""
        place = f"{self._address}/v1/studies/{self._study.terms.short_id.hex()}/rounds/0/{what}"
        request = urllib.request.Request(place, method=method, headers={"Authorization": f"Bearer {self._token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read()).decode("utf-8")

    def phones(self, tickets: list[str]) -> Iterator[Callable[[], None]]:
        """One phone after the other: what it does when it is its turn."""
        holds, uses = made_up(len(tickets))
        for person, ticket in enumerate(tickets):
            held: dict[str | int, float] = {
                key: float(use) for key, has, use in zip(APPS, holds[person], uses[person], strict=True) if has
            }
            yield lambda ticket=ticket, held=held: self._report(ticket, held)  # type: ignore[misc]

    def _report(self, ticket: str, held: dict[str | int, float]) -> None:
        """All that one phone does: it asks for the study, enrols, draws its answer and sends it."""
        uploader, outbox = Uploader(self._address), Outbox(self._folder / "phones" / secrets.token_hex(8))
        terms = uploader.study(self._study.terms.short_id.hex())
        credential = uploader.enrol(terms, ticket=ticket, outbox=outbox)
        outbox.put(self._study.client(credential=credential, diary=Diary()).report(held))
        uploader.send(outbox)


def _report_all(phones: Iterator[Callable[[], None]], people: int, progress: Callable[[float, str], None]) -> int:
    """So many phones, some at once; returns how many, for there is an end to patience."""
    done, start = 0, time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as several:
        while done < people and (done < _LEAST or time.monotonic() - start < _SECONDS):
            progress(done / people, f"phone {done:,} of {people:,}")
            done += len(list(several.map(lambda report: report(), islice(phones, min(20, people - done)))))
    return done


def _keep_open(phones: Iterator[Callable[[], None]], progress: Callable[[float, str], None]) -> int:
    """Lets a few more phones report every now and then, until time is over, Enter is pressed or somebody interrupts.

    Returns:
        How many did.
    """
    start, more = time.monotonic(), 0
    with suppress(KeyboardInterrupt):
        while (passed := time.monotonic() - start) < _KEPT_OPEN:
            progress(passed / _KEPT_OPEN, "Enter goes on")
            if select.select([sys.stdin], [], [], _PAUSE)[0]:
                sys.stdin.readline()
                break
            for report in islice(phones, 3):
                report()
                more += 1
    return more


JOBS = (
    Job(name="collector", question="What does a server learn from phones that report to it?", run=phones_report_to_a_server),
)
