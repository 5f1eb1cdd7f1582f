"""One connection of a client: what it announces is bounded in bytes and in time, and costs no line in the log.

Whoever waits does not keep others out: where there are as many connections as there may be, a new one takes the place of the
one from which no whole request came for longest. An honest client is done long before its turn comes.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import ssl
from collections.abc import Callable
from typing import Any, final

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sabun.service.problems import Problem, problem_response

__all__ = ["Crowd", "PatientProtocol"]

_MOST_URL = 8 << 10
_MOST_HEAD = 32 << 10
"""Bytes of the address and the headers of one request, trailers included."""
_FRAMING = (b"content-length", b"transfer-encoding")

_SPARE_FILES = 128
"""Open files of the process that are no connections of clients."""

# Its warnings are one line per malformed request, for whoever likes to fill a disk; its errors are ours.
_quiet = logging.getLogger("uvicorn.error.requests")
_quiet.setLevel(logging.ERROR)


class _TooLong(Exception):
    """A request announces more than anybody needs."""


@final
class Crowd:
    """The connections of a process, the one that has been waited for longest first.

    Args:
        most: How many there may be; fewer where the system lets the process open fewer files.
    """

    def __init__(self, most: int) -> None:
        self._most = max(1, min(most, _open_files(most + _SPARE_FILES) - _SPARE_FILES))
        self._waiting: dict[PatientProtocol, None] = {}

    def join(self, one: PatientProtocol) -> None:
        """A new connection; where there is no room it takes the place of another."""
        if len(self._waiting) >= self._most:
            longest = next(iter(self._waiting))
            del self._waiting[longest]
            longest.transport.abort()
        self._waiting[one] = None

    def heard(self, one: PatientProtocol) -> None:
        """A whole request came: its turn is last again."""
        if self._waiting.pop(one, one) is None:
            self._waiting[one] = None

    def leave(self, one: PatientProtocol) -> None:
        """A connection ended."""
        self._waiting.pop(one, None)


def _open_files(wanted: int) -> int:
    """How many files this process may open; as many as wanted, where the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


class PatientProtocol(HttpToolsProtocol):
    """Ends connections on which no request is announced in time, or too long a one: uvicorn waits and reads for ever."""

    seconds: float
    crowd: Crowd
    tls: ssl.SSLContext | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.logger = _quiet
        self._announced = self._pending = 0
        self._long = self._told = False
        self._late: asyncio.TimerHandle | None = None
        self._early = b""

    def connection_made(self, transport: Any) -> None:
        """Starts the clock. Who has yet to shake hands is one of the crowd like anybody else."""
        self.transport = transport
        self.crowd.join(self)
        if self.tls is None:
            self._greeted(transport)
        else:
            self._greeting = self.loop.create_task(self._shake_hands(transport, self.tls))
            # Once the task has begun, which stops reading, and TLS has been told of its connection, which reads again.
            self.loop.call_soon(self.loop.call_soon, self._hand_over, transport)

    async def _shake_hands(self, transport: Any, tls: ssl.SSLContext) -> None:
        try:
            safe = await self.loop.start_tls(transport, self, tls, server_side=True, ssl_handshake_timeout=self.seconds)
        except Exception:  # they went away, were sent away, took too long, or speak no TLS: nothing for the log
            safe = None
        if safe is None or safe.is_closing():
            self.crowd.leave(self)
            transport.abort()
        else:
            self._greeted(safe)

    def _hand_over(self, transport: Any) -> None:
        """Gives TLS what came before it listened: uvloop reads on, whatever is asked of it before a connection is made."""
        tls = transport.get_protocol()
        while self._early and tls is not self and not transport.is_closing():
            room = tls.get_buffer(len(self._early))
            size = min(len(room), len(self._early))
            room[:size], self._early = self._early[:size], self._early[size:]
            tls.buffer_updated(size)

    def _greeted(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for(self._end_if_silent)
        if self._early:
            self.data_received(self._early)
            self._early = b""

    def _wait_for(self, then: Callable[[], None]) -> None:
        self._stop_waiting()
        self._late = self.loop.call_later(self.seconds, then)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()

    def _end_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Some bytes; those of which the parser tells nothing yet are counted, for it keeps them."""
        if self._late is None:  # TLS does not listen yet, or this connection has yet to hear that hands were shaken
            self._early += data
            return
        self._pending += len(data)
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("")
        if self._pending > _MOST_HEAD and not self.transport.is_closing():
            self._long = True
            self.send_400_response("")

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as asked:
                data = data[asked.args[0] :]
                self._stay()
            else:
                return

    def _stay(self) -> None:
        """Nothing is upgraded here, so a request that asks for it goes on; but its parser reads no body any more.

        Another one is told how long the body is, and nothing else.
        """
        framing = b"".join(name + b": " + value + b"\r\n" for name, value in self.headers if name in _FRAMING)
        self.parser, self._told = httptools.HttpRequestParser(self), True
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self.parser.feed_data(b"POST / HTTP/1.1\r\n" + framing + b"\r\n")
        self._told = False

    def on_message_begin(self) -> None:
        """A request begins on a connection that is kept alive: its headers have their own time."""
        if self._told:
            return
        super().on_message_begin()
        self._announced = self._pending = 0
        self._wait_for(self._end_if_unfinished)

    def _end_if_unfinished(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def on_url(self, url: bytes) -> None:
        """Some of the address."""
        if self._told:
            return
        super().on_url(url)
        self._count(len(url), within=len(self.url) <= _MOST_URL)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or a trailer."""
        if self._told:
            return
        super().on_header(name, value)
        self._count(len(name) + len(value) + 4)

    def _count(self, size: int, *, within: bool = True) -> None:
        self._pending = 0
        self._announced += size
        if self._announced > _MOST_HEAD or not within:
            self._long = True
            raise _TooLong

    def on_headers_complete(self) -> None:
        """They came in time; the body has a deadline of its own."""
        if self._told:
            return
        self._stop_waiting()
        self._pending = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of the body."""
        self._pending = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it came, unless the parser thinks that what follows is no longer HTTP."""
        if not self.parser.should_upgrade():
            self.crowd.heard(self)
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """The answer to what is no request, or too long a one; nothing more is read."""
        answer = problem_response(Problem("head-too-long" if self._long else "bad-request"))
        head = STATUS_LINE[answer.status_code] + b"Connection: close\r\n"
        head += b"".join(name + b": " + value + b"\r\n" for name, value in answer.raw_headers)
        self.transport.write(head + b"\r\n" + bytes(answer.body))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clock."""
        self.crowd.leave(self)
        self._stop_waiting()
        super().connection_lost(exc)
