"""What the collector answers, one function for each line of the table of routes."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

import sabun
from sabun.errors import DataError
from sabun.keyvalue.client import report_size
from sabun.service.arrivals import read_reports
from sabun.service.bodies import Intake, json_body
from sabun.service.closing import close_round
from sabun.service.enrolment import EnrolmentRefused, begin, finish
from sabun.service.limits import RateLimit
from sabun.service.log import say
from sabun.service.messages import (
    Closed,
    CloseRequest,
    Credential,
    EnrolmentRequest,
    Health,
    Nonce,
    Refused,
    Reports,
    RevealRequest,
    RoundState,
    Taken,
)
from sabun.service.metrics import metrics_text
from sabun.service.operators import Operator, who
from sabun.service.problems import Problem
from sabun.service.report_store import Batch, Round, Served, Store, TooFew
from sabun.service.session import StoreUnavailable
from sabun.service.writer import Busy, Writer

__all__ = ["Collecting", "closed_or_problem"]

T = TypeVar("T")

_TASK = re.compile(r"[0-9a-f]{32}([0-9a-f]{32})?")
_BINARY = ("", "application/vnd.sabun.reports", "application/octet-stream")
_MOST_REPORTS = 10_000
_SMALL = 4096


@final
@dataclass(frozen=True, kw_only=True)
class Collecting:
    """What the endpoints of one process work with.

    Args:
        store: The store.
        writer: The thread that adds reports.
        retention_days: How long reports stay after a round is frozen.
        url: The server's own address as browsers see it, for pages.
        intake: Limits of bodies.
        threads: For looks at the database, which must not keep others waiting.
        playing: For visitors who try what a device does.
        attempts: How often a caller may come with a token that is none.
    """

    store: Store
    writer: Writer
    retention_days: int = 30
    url: str = ""
    intake: Intake = field(default_factory=Intake)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "look"))
    playing: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "play"))
    attempts: RateLimit = field(default_factory=lambda: RateLimit(most=30, seconds=60))

    async def apart(self, job: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Runs a job that waits for the database in a thread.

        Raises:
            Problem: The store cannot be used.
        """
        return await self._within(self.threads, lambda: job(*arguments, **named))

    async def aside(self, job: Callable[..., T], *arguments: Any) -> T:
        """The same for what takes long though anybody may ask for it: it keeps no enrolment and no operator waiting.

        Raises:
            Problem: The store cannot be used.
        """
        return await self._within(self.playing, lambda: job(*arguments))

    async def _within(self, threads: ThreadPoolExecutor, job: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, job)
        except StoreUnavailable:
            raise Problem("unavailable") from None

    # Who, and what about

    async def served(self, request: Request) -> Served:
        """The study that a path names.

        Raises:
            Problem: There is none.
        """
        task = str(request.path_params["task"])
        if not _TASK.fullmatch(task):
            raise Problem("unknown-study")
        found = self.store.known(task) or await self.apart(self.store.served, task)
        if found is None:
            raise Problem("unknown-study")
        return found

    async def named(self, request: Request) -> tuple[Served, int]:
        """The study and the number of the round that a path names.

        Raises:
            Problem: There is no such study or round.
        """
        served, number = await self.served(request), int(request.path_params["n"])
        if number >= served.study.terms.rounds:
            raise Problem("unknown-round")
        return served, number

    async def operator(self, request: Request, served: Served | None, scope: str) -> Operator:
        """Who asks, if they may.

        Raises:
            Problem: They may not.
        """
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        caller = request.client.host if request.client else ""
        found = await self.apart(who, self.store, token.strip()) if kind.lower() == "bearer" else None
        if found is None:  # only failures are limited: behind a proxy all callers look alike, and nobody locks others out
            if self.attempts.exhausted(caller):
                raise Problem("too-often")
            self.attempts.note(caller)
            raise Problem("unauthorised")
        if not found.may(scope, served):
            raise Problem("forbidden")
        return found

    # Public

    async def study(self, request: Request) -> Response:
        """The study, letter for letter as it is hashed."""
        served = await self.served(request)
        return Response(served.study.to_json() + "\n", media_type="application/json")

    async def enrol(self, request: Request) -> Response:
        """The first half of an enrolment."""
        served = await self._enrolling(request)
        asked = json_body(await self.intake.body(request, most_bytes=_SMALL), EnrolmentRequest)
        ticket, promise = bytes.fromhex(asked.ticket), bytes.fromhex(asked.promise)
        nonce = await self._enrolment(begin, served, ticket, promise)
        return _json(Nonce(nonce=nonce.hex()))

    async def reveal(self, request: Request) -> Response:
        """The second half of an enrolment."""
        served = await self._enrolling(request)
        asked = json_body(await self.intake.body(request, most_bytes=_SMALL), RevealRequest)
        ticket, secret = bytes.fromhex(asked.ticket), bytes.fromhex(asked.secret)
        credential = await self._enrolment(finish, served, ticket, secret)
        return _json(Credential(credential=credential.hex()))

    async def _enrolling(self, request: Request) -> Served:
        served = await self.served(request)
        if not served.tickets:  # as far as this process knows
            await self.apart(self.store.all_served)
            served = await self.served(request)
        if not served.tickets:
            raise Problem("no-enrolment")
        return served

    async def _enrolment(self, job: Callable[..., bytes], served: Served, *given: bytes) -> bytes:
        try:
            return await self.apart(job, self.store, served, *given)
        except EnrolmentRefused as refusal:
            raise Problem(refusal.code) from None

    async def upload(self, request: Request) -> Response:
        """Reports, one or many; answered once they are on disk."""
        served, number = await self.named(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (*_BINARY, "application/json"):
            raise Problem("media-type")
        size = report_size(served.study.terms)
        body = await self.intake.body(request, most_bytes=max(self.intake.most_bytes, 4 * size))
        content = body if kind in _BINARY else _decoded(json_body(body, Reports))
        if not content:
            raise Problem("empty")
        if (len(content) / size if isinstance(content, bytes) else len(content)) > _MOST_REPORTS:
            raise Problem("too-many")
        arrival = read_reports(served.study, number, content, seed=served.seed)
        try:
            receipt = await asyncio.wrap_future(self.writer.add(Batch(served=served, number=number, arrival=arrival)))
        except Busy:
            raise Problem("busy") from None
        except StoreUnavailable:
            raise Problem("unavailable") from None
        refused = [Refused(index=place, reason=reason) for place, reason in receipt.rejected]
        return _json(Taken(accepted=receipt.accepted, duplicate=receipt.duplicate, rejected=refused))

    async def round(self, request: Request) -> Response:
        """How a round stands; no number of reports, for it is public."""
        served, number = await self.named(request)
        opened = await self.apart(self.store.round, served, number)
        means = None if opened is None or opened.feedback is None else msgspec.json.decode(opened.feedback, type=list[float])
        return _json(
            RoundState(
                task=served.task,
                round=number,
                state="waiting" if opened is None else opened.state,  # type: ignore[arg-type]
                feedback=means,
                seed=served.seed.hex() or None,
            )
        )

    # For operators

    async def estimates(self, request: Request) -> Response:
        """Frequencies and means with intervals."""
        served, opened = await self._opened(request, "read")
        found = await self._shown(lambda: self.store.shown(served, opened.number).estimate().to_dict())
        return Response(msgspec.json.encode(found), media_type="application/json")

    async def tally(self, request: Request) -> Response:
        """The counters, as `sabun keyvalue tally` writes them."""
        served, opened = await self._opened(request, "read")
        found = await self._shown(lambda: self.store.shown(served, opened.number).to_bytes())
        return Response(found, media_type="application/octet-stream")

    async def release(self, request: Request) -> Response:
        """The signed release of a frozen round."""
        _, opened = await self._opened(request, "read")
        if opened.release is None:
            raise Problem("no-release")
        return Response(opened.release, media_type="application/json")

    async def close(self, request: Request) -> Response:
        """Closes a round for good."""
        served, opened = await self._opened(request, "close")
        body = await self.intake.body(request, most_bytes=_SMALL)
        asked = json_body(body, CloseRequest) if body else CloseRequest()
        await self._shown(lambda: closed_or_problem(self.store, served, opened.number, abandon=asked.abandon))
        now = await self.apart(self.store.round, served, opened.number) or opened
        return _json(Closed(round=now.number, state=now.state, released=now.release is not None))  # type: ignore[arg-type]

    async def _opened(self, request: Request, scope: str) -> tuple[Served, Round]:
        served, number = await self.named(request)
        await self.operator(request, served, scope)
        opened = await self.apart(self.store.round, served, number)
        if opened is None:
            raise Problem("not-open")
        return served, opened

    async def _shown(self, job: Callable[[], T]) -> T:
        try:
            return await self.apart(job)
        except TooFew as error:
            raise Problem("too-few", str(error)) from None

    # The server

    async def health(self, request: Request) -> Response:
        """Whether reports can be taken now."""
        del request
        if not self.writer.alive:
            raise Problem("unavailable")
        await self.apart(self.store.all_served)
        return _json(Health(status="ok", version=sabun.__version__))

    async def metrics(self, request: Request) -> Response:
        """Figures for a monitor, of all studies together."""
        del request
        text = await self.apart(metrics_text, self.store, self.writer)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def closed_or_problem(store: Store, served: Served, number: int, *, abandon: bool = False) -> None:
    """Closes a round; what stops it is the operator's to read in the log.

    Raises:
        TooFew: It has too few reports.
        Problem: It cannot be closed.
    """
    try:
        close_round(store, served, number, abandon=abandon)
    except TooFew:
        raise
    except DataError as error:
        say("error", f"a round cannot be closed: {error}", level=logging.ERROR)
        raise Problem("cannot-close") from None


def _decoded(given: Reports) -> list[bytes]:
    """One that is no base64 is refused by itself, as having no length at all."""
    found = []
    for text in given.reports:
        try:
            found.append(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            found.append(b"")
    return found


def _json(answer: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")
