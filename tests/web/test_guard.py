"""Who is let in to pages: their own address, their own forms, and nobody else's."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sabun.web.guard import HEADERS, Guard

OWN = "https://collector.example"
HOST = {"host": "collector.example"}
NAVIGATES = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


async def _here(request: Request) -> Response:
    return PlainTextResponse("here")


def asked(
    method: str, headers: dict[str, str], *, linkable: bool = False, own: str = OWN, at: str = "http://10.0.0.1:9000/"
) -> httpx.Response:
    """What a guarded page answers to a request that came to a socket."""
    guard = Middleware(Guard, own=lambda _: own, linkable=linkable)
    app = Starlette(routes=[Route("/", _here, methods=["GET", "POST"], middleware=[guard])])

    async def sent() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
            return await client.request(method, at, headers=headers)

    return asyncio.run(sent())


@pytest.mark.parametrize(
    ("method", "headers", "let_in"),
    [
        ("GET", HOST, True),
        ("GET", HOST | {"sec-fetch-site": "none"}, True),
        ("GET", HOST | {"sec-fetch-site": "same-origin"}, True),
        ("GET", HOST | {"sec-fetch-site": "same-site"}, False),
        ("GET", HOST | {"sec-fetch-site": "cross-site"}, False),
        ("GET", HOST | {"origin": "https://other.example"}, False),
        ("GET", {"host": "other.example"}, False),
        ("GET", {"host": "collector.example:81"}, False),
        ("GET", {"host": ""}, False),
        ("POST", HOST, False),
        ("POST", HOST | {"origin": OWN}, True),
        ("POST", HOST | {"origin": OWN, "sec-fetch-site": "same-origin"}, True),
        ("POST", HOST | {"origin": OWN, "sec-fetch-site": "none"}, False),
        ("POST", HOST | {"origin": OWN, "sec-fetch-site": "cross-site"}, False),
        ("POST", HOST | {"origin": "null"}, False),
        ("POST", HOST | {"origin": "http://collector.example"}, False),
        ("POST", HOST | {"origin": OWN + ".evil.example"}, False),
        ("POST", {"host": "other.example", "origin": "https://other.example"}, False),
    ],
)
def test_a_request_is_let_in_by_what_another_page_cannot_choose(method: str, headers: dict[str, str], let_in: bool) -> None:
    response = asked(method, headers)
    assert (response.status_code, response.text == "here") == ((200, True) if let_in else (403, False))
    assert {name: response.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize(("extra", "let_in"), [(NAVIGATES, True), ({"sec-fetch-mode": "cors"}, False), ({}, False)])
def test_pages_that_others_may_link_to_are_opened_but_not_built_in(extra: dict[str, str], let_in: bool) -> None:
    headers = HOST | {"sec-fetch-site": "cross-site"} | extra
    assert (asked("GET", headers, linkable=True).status_code == 200) == let_in
    assert asked("GET", headers | {"sec-fetch-dest": "iframe"}, linkable=True).status_code == 403
    assert asked("POST", headers | {"origin": "https://other.example"}, linkable=True).status_code == 403


def test_the_socket_s_own_address_is_always_one_of_its_own() -> None:
    at = "http://127.0.0.1:8123/"
    for host, let_in in (("127.0.0.1:8123", True), ("localhost:8123", True), ("localhost:8124", False), ("evil:8123", False)):
        assert (asked("GET", {"host": host}, own="", at=at).status_code == 200) == let_in
    posted = {"host": "127.0.0.1:8123", "origin": "http://localhost:8123"}
    assert asked("POST", posted, own="", at=at).status_code == 200


def test_a_refusal_speaks_the_visitor_s_language() -> None:
    response = asked("GET", {"host": "x", "accept-language": "fr, ja;q=0.9, en;q=0.5"})
    assert "このアドレス" in response.text
