"""The page at `/`: what this server is, for anybody who opens it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["PAGES"]

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sabun collector</title>
<h1>Sabun collector</h1>
<p>This server collects answers that were made private on people's own devices. It learns how many people hold a thing, never
who does.</p>
<p><a href="/openapi.json">How devices and programs talk to it</a></p>
</html>
"""


async def _front(request: Request) -> Response:
    del request
    return Response(_PAGE, media_type="text/html")


PAGES = [Route("/", _front)]
"""Routes of pages for people."""
