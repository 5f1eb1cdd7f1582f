"""The pages for people: their addresses, and what happens to every request for one of them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from sabun.service.endpoints import Collecting
from sabun.service.pages_admin import new_study, people, tickets
from sabun.service.pages_front import front, sign_in, sign_out
from sabun.service.pages_study import close, download, studies, study
from sabun.service.pages_try import try_it
from sabun.service.problems import Problem
from sabun.service.routes import NUMBER
from sabun.service.visitors import Asked, asked_by, visits_of
from sabun.telling.language import speaking
from sabun.web import Assets, Guard, spoken
from sabun.web.spoken import keep_language

__all__ = ["PAGES"]

Page = Callable[[Asked], Response]

_log = logging.getLogger("sabun.service")
_MOST_BYTES = 1 << 14
_ASSETS = Assets("sabun.service")


def _own(scope: Scope) -> str:
    return str(scope["app"].state.collecting.url)


_GUARDED = [Middleware(Guard, own=_own, linkable=True)]


def _route(path: str, page: Page, *methods: str, signed: bool = False) -> Route:
    """A page at an address. It works in a thread: it looks at the database, and large studies take a moment to draw."""

    async def answered(request: Request) -> Response:
        collecting: Collecting = request.app.state.collecting
        lang = spoken(request)

        def made(body: bytes) -> Response:
            with speaking(lang):
                asked = asked_by(request, body, lang)
                if signed and asked.operator is None:
                    return RedirectResponse("/sign-in", 303)
                try:
                    return page(asked)
                except Problem as problem:
                    return asked.problem(problem)

        try:
            body = await collecting.intake.body(request, most_bytes=_MOST_BYTES) if request.method == "POST" else b""
            response = await (collecting.aside if page is try_it else collecting.apart)(made, body)
        except Problem as problem:
            response = _bare(request, lang, problem)
        except Exception as error:  # its words may hold what somebody sent
            _log.error("unexpected %s", type(error).__name__, extra={"event": "error"})
            response = _bare(request, lang, Problem("internal"))
        keep_language(request, response, secure=collecting.url.startswith("https://"))
        return response

    return Route(path, answered, methods=list(methods) or ["GET"], middleware=_GUARDED)


def _bare(request: Request, lang: str, problem: Problem) -> Response:
    """What can be said where the store cannot be asked who is here."""
    collecting: Collecting = request.app.state.collecting
    with speaking(lang):
        return Asked(collecting=collecting, request=request, form={}, visits=visits_of(collecting), lang=lang).problem(problem)


def _signed(path: str, page: Page, *methods: str) -> list[Route]:
    """A page for operators: at its plain address behind TLS, under the path of the visit without."""
    return [_route(f"{before}{path}", page, *methods, signed=True) for before in ("", "/at/{place}")]


async def _asset(request: Request) -> Response:
    found = _ASSETS.found(str(request.path_params["name"]))
    return Response(status_code=404) if found is None else Response(found[0], media_type=found[1])


PAGES = [
    _route("/", front),
    _route("/sign-in", sign_in, "GET", "POST"),
    _route("/try", try_it, "GET", "POST"),
    *_signed("/sign-out", sign_out, "POST"),
    *_signed("/studies", studies),
    *_signed("/operators", people, "GET", "POST"),
    *_signed("/studies/new", new_study, "GET", "POST"),
    *_signed("/studies/{task}", study),
    *_signed("/studies/{task}/tickets", tickets, "POST"),
    *_signed(f"/studies/{{task}}/rounds/{NUMBER}/close", close, "GET", "POST"),
    *_signed(f"/studies/{{task}}/rounds/{NUMBER}/{{file}}", download),
    Route("/assets/{name:path}", _asset, middleware=_GUARDED),
]
"""Routes of pages for people."""
