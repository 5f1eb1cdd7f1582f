"""The table of the API: from each line comes a route, and its part of the OpenAPI description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, final

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from sabun.service.endpoints import Collecting
from sabun.service.messages import (
    Closed,
    CloseRequest,
    Credential,
    EnrolmentRequest,
    Health,
    Nonce,
    Reports,
    RevealRequest,
    RoundState,
    Taken,
)

__all__ = ["ENDPOINTS", "NUMBER", "Endpoint"]


@final
class _RoundNumber(Convertor[int]):
    """A round's number in a path. Starlette's own takes any digits, and Python refuses to read very many."""

    regex = "[0-9]{1,10}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("round", _RoundNumber())
NUMBER = "{n:round}"
"""Where the number of a round stands in a path."""

Handler = Callable[[Collecting, Request], Awaitable[Response]]


@final
@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One line of the API.

    Args:
        method: GET or POST.
        path: With `{task}` and `{n}` where they stand.
        handler: What answers.
        summary: What it is for.
        answer: The type of the JSON it answers with, or a media type.
        problems: Codes of what may go wrong, besides what may go wrong everywhere.
        asks: The type of the JSON it is sent.
        reports: Whether it is sent reports.
        scope: What a token must allow; None where anybody may ask, from any page.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    answer: Any
    problems: tuple[str, ...] = ()
    asks: Any = None
    reports: bool = False
    scope: str | None = None


_STUDY = "/v1/studies/{task}"
_ROUND = _STUDY + "/rounds/{n}"
_BODY = ("too-large", "slow-body", "disconnected", "busy", "bad-json", "encoding")
_HERE = ("unknown-study", "unavailable")
_THERE = (*_HERE, "unknown-round")
_TOKEN = (*_THERE, "unauthorised", "forbidden", "too-often", "not-open")

ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/health",
        handler=Collecting.health,
        summary="Whether the server can take reports.",
        answer=Health,
        problems=("unavailable",),
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        handler=Collecting.metrics,
        summary="Figures for a monitor, in the text format of Prometheus.",
        answer="text/plain",
        problems=("unavailable",),
    ),
    Endpoint(
        method="GET",
        path=_STUDY,
        handler=Collecting.study,
        summary="The study's public terms, letter for letter as they are hashed.",
        answer=dict[str, Any],
        problems=_HERE,
    ),
    Endpoint(
        method="POST",
        path=_STUDY + "/enrolment",
        handler=Collecting.enrol,
        summary="Begin to enrol: a ticket and a promise for a nonce.",
        asks=EnrolmentRequest,
        answer=Nonce,
        problems=(*_HERE, *_BODY, "no-enrolment", "unknown-ticket", "other-promise"),
    ),
    Endpoint(
        method="POST",
        path=_STUDY + "/enrolment/reveal",
        handler=Collecting.reveal,
        summary="Finish to enrol: what was promised for a credential.",
        asks=RevealRequest,
        answer=Credential,
        problems=(*_HERE, *_BODY, "no-enrolment", "unknown-ticket", "other-promise"),
    ),
    Endpoint(
        method="POST",
        path=_ROUND + "/reports",
        handler=Collecting.upload,
        summary="Send reports: bytes back to back, or JSON. The answer comes once they are on disk.",
        asks=Reports,
        reports=True,
        answer=Taken,
        problems=(*_THERE, *_BODY, "empty", "too-many", "media-type"),
    ),
    Endpoint(
        method="GET",
        path=_ROUND,
        handler=Collecting.round,
        summary="How a round stands, with what later rounds of PrivKVM need.",
        answer=RoundState,
        problems=_THERE,
    ),
    Endpoint(
        method="GET",
        path=_ROUND + "/estimates",
        handler=Collecting.estimates,
        summary="Frequencies and means with intervals.",
        answer=dict[str, Any],
        problems=(*_TOKEN, "too-few"),
        scope="read",
    ),
    Endpoint(
        method="GET",
        path=_ROUND + "/tally",
        handler=Collecting.tally,
        summary="The counters, as `sabun keyvalue tally` writes them.",
        answer="application/octet-stream",
        problems=(*_TOKEN, "too-few"),
        scope="read",
    ),
    Endpoint(
        method="GET",
        path=_ROUND + "/release",
        handler=Collecting.release,
        summary="The signed release of a frozen round.",
        answer=dict[str, Any],
        problems=(*_TOKEN, "no-release"),
        scope="read",
    ),
    Endpoint(
        method="POST",
        path=_ROUND + "/close",
        handler=Collecting.close,
        summary="Close a round for good: it is counted again, signed, and its key destroyed; the next one opens.",
        asks=CloseRequest,
        answer=Closed,
        problems=(*_TOKEN, *_BODY, "too-few", "cannot-close"),
        scope="close",
    ),
)
"""Everything the API knows."""
