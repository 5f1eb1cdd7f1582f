"""Which language a visitor reads: what they chose, else what their browser says."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sabun.telling.language import LANGUAGES

__all__ = ["keep_language", "spoken"]

_COOKIE = "sabun-language"
_YEAR = 365 * 86_400


def spoken(request: Request, *, usual: str | None = None) -> str:
    """The language of the answer: `?lang=`, the one chosen before, the server's, the browser's first one we have, English."""
    for given in (request.query_params.get("lang"), request.cookies.get(_COOKIE)):
        if given in LANGUAGES:
            return given
    if usual is not None:
        return usual
    return next((tag for tag in _accepted(request.headers.get("accept-language", "")) if tag in LANGUAGES), LANGUAGES[0])


def keep_language(request: Request, response: Response, *, secure: bool) -> None:
    """Remembers a choice that was just made."""
    if (given := request.query_params.get("lang")) in LANGUAGES:
        response.set_cookie(_COOKIE, given, max_age=_YEAR, path="/", secure=secure, httponly=True, samesite="strict")


def _accepted(header: str) -> list[str]:
    """The languages of an Accept-Language header, the most wanted first; what cannot be read is passed over."""
    found = []
    for place, part in enumerate(header[:500].split(",")):
        tag, _, rest = part.strip().partition(";")
        try:
            weight = float(rest.partition("=")[2]) if rest else 1.0
        except ValueError:
            weight = 0.0
        if weight > 0:
            found.append((-weight, place, tag.partition("-")[0].lower()))
    return [tag for _, _, tag in sorted(found)]
