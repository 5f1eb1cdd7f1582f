"""Who is let in: pages answer to their own address and to their own forms, and tell browsers to keep everybody else out.

A page of another origin can make a browser send requests here. Three things in such a request it cannot choose: Host (so a name
that was pointed at this machine is noticed), Origin (sent with every POST) and Sec-Fetch-Site.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sabun.telling.language import said, speaking
from sabun.web.spoken import spoken

__all__ = ["HEADERS", "Guard"]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",  # not no-referrer: with that, our own forms would send `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""What goes with every page."""
_LOOPBACK = {"127.0.0.1", "::1"}


@final
class Guard:
    """Lets requests through that come from the server's own pages, and puts `HEADERS` on answers without their own.

    Args:
        app: What is guarded.
        own: The server's address as browsers see it, where one was configured; else an empty text. The address of the socket
            that a request came to is always one of its own.
        linkable: Whether pages of others may link here: their visitors arrive without a cookie (SameSite=Strict).
    """

    def __init__(self, app: ASGIApp, *, own: Callable[[Scope], str] = lambda _: "", linkable: bool = False) -> None:
        self._app, self._own, self._linkable = app, own, linkable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)  # a report that stands alone has a policy of its own
            await send(message)

        if scope["type"] != "http" or self._welcome(scope):
            await self._app(scope, receive, headed)
            return
        with speaking(spoken(Request(scope))):
            words = said("This address answers to its own pages alone. Open it in a tab of its own, under its own name.")
        await PlainTextResponse(words + "\n", 403)(scope, receive, headed)

    def _welcome(self, scope: Scope) -> bool:
        headers, origins = Headers(scope=scope), _origins(scope, self._own(scope))
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in {urlsplit(one).netloc for one in origins}:
            return False
        changes = scope["method"] not in ("GET", "HEAD")
        if (origin := headers.get("origin")) is None:
            if changes:
                return False
        elif origin not in origins:
            return False
        return self._near(headers, changes)

    def _near(self, headers: Headers, changes: bool) -> bool:
        """What a browser says about where a request was made; one that says nothing is judged by Origin alone."""
        site = headers.get("sec-fetch-site")
        if site is None or site == "same-origin":
            return True
        if changes:
            return False
        visit = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site == "none" or (self._linkable and visit)


def _origins(scope: Scope, own: str) -> set[str]:
    """The server's own origins: the configured one, and the socket's."""
    found = {own.rstrip("/").lower()} if own else set()
    host, port = scope.get("server") or ("", None)
    if port is not None:
        names = {host, "localhost"} if host in _LOOPBACK else {host}
        found |= {f"{scope['scheme']}://{f'[{name}]' if ':' in name else name}:{port}" for name in names}
    return found
