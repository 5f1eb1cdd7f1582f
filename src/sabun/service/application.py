"""The web application of one process: routes from the table, problems instead of errors, nothing that tells who asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Lifespan

from sabun.service.dashboard import PAGES
from sabun.service.endpoints import Collecting
from sabun.service.openapi import description
from sabun.service.problems import Problem, problem_response
from sabun.service.routes import ENDPOINTS, NUMBER, Endpoint

__all__ = ["application"]

_log = logging.getLogger("sabun.service")
_ALWAYS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_ANYWHERE = {"Access-Control-Allow-Origin": "*"}
"""Public endpoints read no cookies, so a page of any origin may use them."""
_PREFLIGHT = _ANYWHERE | {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Content-Type",
    "Access-Control-Max-Age": "86400",
}


def application(
    collecting: Collecting, *, pages: Sequence[BaseRoute] = PAGES, lifespan: Lifespan[Starlette] | None = None
) -> Starlette:
    """The application.

    Args:
        collecting: What its endpoints work with; pages find it as `request.app.state.collecting`.
        pages: Routes for people.
        lifespan: What is done when it starts and ends.
    """
    described = msgspec.json.encode(description())

    async def openapi(request: Request) -> Response:
        del request
        return Response(described, media_type="application/json", headers=_ALWAYS | _ANYWHERE)

    # Reports come far more often than anything else: theirs is the first address that is looked at.
    paths = dict.fromkeys(one.path for one in sorted(ENDPOINTS, key=lambda one: not one.reports))
    routes = [_route(path, [one for one in ENDPOINTS if one.path == path], collecting) for path in paths]
    app = Starlette(
        routes=[*routes, Route("/openapi.json", openapi), *pages],
        exception_handlers={HTTPException: _unknown, Exception: _broken},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.collecting = collecting
    return app


def _route(path: str, endpoints: Sequence[Endpoint], collecting: Collecting) -> Route:
    known = {one.method: one for one in endpoints}
    public = all(one.scope is None for one in endpoints)

    async def answered(request: Request) -> Response:
        one = known.get(request.method if request.method != "HEAD" else "GET")
        if one is None:
            return Response(status_code=204, headers=_PREFLIGHT if public else {"Allow": ", ".join(known)})
        response = await _safe(one, collecting, request)
        response.headers.update(_ALWAYS | (_ANYWHERE if public else {}))
        return response

    return Route(path.replace("{n}", NUMBER), answered, methods=[*known, "OPTIONS"])


async def _safe(one: Endpoint, collecting: Collecting, request: Request) -> Response:
    try:
        return await one.handler(collecting, request)
    except Problem as problem:
        # What is left of a body that was refused is not read: whoever sends without end would never hear of it.
        unread = request.method == "POST" and not getattr(request.state, "read", False)
        return problem_response(problem, **({"Connection": "close"} if unread else {}))
    except Exception as error:  # its words and its traceback may hold what somebody sent
        _log.error("unexpected %s", type(error).__name__, extra={"event": "error"})
        return problem_response(Problem("internal"))


async def _unknown(request: Request, error: Any) -> Response:
    del request
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return problem_response(Problem("not-allowed"), Allow=allowed, **_ALWAYS)
    return problem_response(Problem("not-found"), **_ALWAYS)


async def _broken(request: Request, error: Exception) -> Response:
    del request
    _log.error("unexpected %s", type(error).__name__, extra={"event": "error"})
    return problem_response(Problem("internal"), **_ALWAYS)
