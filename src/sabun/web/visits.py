"""Who is here: a sealed cookie that says so, and form tokens that go with it.

Nothing is kept on the server, so that several processes know the same visitors: the cookie holds name, end and a seal under the
server's key. The seal also covers something of the visitor's that may be taken away (an operator's token, as a hash): when that
goes, the visit is over.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from starlette.requests import Request
from starlette.responses import Response

__all__ = ["Visit", "Visits"]

_LONGEST = 2000
_ID = re.compile(r"[0-9a-f]{32}")


@final
@dataclass(frozen=True, kw_only=True)
class Visit:
    """What a cookie says.

    Args:
        subject: Who.
        id: A random name of the visit.
        until: When it ends, in seconds since 1970.
    """

    subject: str
    id: str
    until: int


@final
class Visits:
    """The visitors of a server.

    Args:
        key: The server's secret.
        secure: Whether browsers reach it over TLS. The cookie is then a `__Host-` one. Without TLS it is bound to a path that
            nobody can guess: ports of a machine share their cookies, paths do not.
        seconds: How long a visit lasts.
        clock: Seconds since 1970.
    """

    def __init__(self, key: bytes, *, secure: bool, seconds: int = 8 * 3600, clock: Callable[[], float] = time.time) -> None:
        self._key, self.secure, self._seconds, self._clock = key, secure, seconds, clock
        self._name = "__Host-sabun-visit" if secure else "sabun-visit"

    def root(self, visit: Visit) -> str:
        """Under which path the pages of a visit are."""
        return "/" if self.secure else f"/at/{visit.id}/"

    def planned(self, subject: str) -> Visit:
        """A visit that is about to begin: `seal` puts its cookie on an answer."""
        return Visit(subject=subject, id=secrets.token_hex(16), until=int(self._clock()) + self._seconds)

    def seal(self, response: Response, visit: Visit, bound: bytes) -> None:
        """Puts the cookie of a visit on an answer."""
        content = json.dumps([visit.subject, visit.id, visit.until]).encode()
        value = base64.urlsafe_b64encode(content).decode().rstrip("=") + "." + self._mac(b"visit", content, bound)
        self._set(response, visit, value, self._seconds)

    def end(self, response: Response, visit: Visit) -> None:
        """Takes the cookie back."""
        self._set(response, visit, "", 0)

    def _set(self, response: Response, visit: Visit, value: str, seconds: int) -> None:
        response.set_cookie(
            self._name, value, seconds, path=self.root(visit), secure=self.secure, httponly=True, samesite="strict"
        )

    def claimed(self, request: Request) -> tuple[Visit, Callable[[bytes], bool]] | None:
        """What a request's cookie says, not believed yet, with the check of its seal; None for nothing, or one that is over."""
        return next((read for value in self._sent(request) if (read := self._read(value)) is not None), None)

    def _sent(self, request: Request) -> list[str]:
        """Every cookie of our name, that of the longest path first, as browsers send them: a server at another port of this
        machine may have set one of the same name for all paths."""
        parts = [part.strip().partition("=") for header in request.headers.getlist("cookie") for part in header.split(";")]
        return [value for name, _, value in parts if name == self._name]

    def _read(self, value: str) -> tuple[Visit, Callable[[bytes], bool]] | None:
        text, _, seal = value[:_LONGEST].partition(".")
        try:
            content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            subject, id, until = json.loads(content)
        except (binascii.Error, ValueError, TypeError, RecursionError):
            return None
        good = isinstance(subject, str) and isinstance(id, str) and _ID.fullmatch(id) and type(until) is int
        if not good or until <= self._clock():
            return None

        def holds(bound: bytes) -> bool:
            return hmac.compare_digest(self._mac(b"visit", content, bound).encode(), seal.encode("utf-8", "replace"))

        return Visit(subject=subject, id=id, until=until), holds

    def form_token(self, visit: Visit | None) -> str:
        """What a form of this visit must send along; forms before a visit have one for all, and Origin to tell them apart."""
        return self._mac(b"form", b"" if visit is None else visit.id.encode(), b"")

    def is_form_token(self, visit: Visit | None, given: object) -> bool:
        """Whether a form sent along what it must."""
        return isinstance(given, str) and hmac.compare_digest(self.form_token(visit).encode(), given.encode("utf-8", "replace"))

    def _mac(self, use: bytes, content: bytes, bound: bytes) -> str:
        parts = b"".join(len(part).to_bytes(4, "big") + part for part in (use, content, bound))
        return hmac.new(self._key, parts, hashlib.sha256).hexdigest()
