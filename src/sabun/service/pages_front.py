"""Pages that say what this server is, and the way in for operators."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from sabun.service.problems import Problem
from sabun.service.visitors import Asked, begin_visit
from sabun.telling.language import said

__all__ = ["front", "sign_in", "sign_out"]


def front(asked: Asked) -> Response:
    """What this server is, for anybody who opens it."""
    return asked.page("front.html")


def sign_in(asked: Asked) -> Response:
    """The form for a token, and what comes of it."""
    if asked.request.method != "POST":
        return asked.page("sign_in.html", here="sign-in", wrong="")
    caller = asked.request.client.host if asked.request.client else ""
    attempts = asked.collecting.attempts
    asked.require_token()
    response = begin_visit(asked, asked.form.get("operator", "").strip())
    if response is None:  # only failures are limited: nobody locks others out
        if attempts.exhausted(caller):
            raise Problem("too-often")
        attempts.note(caller)
        wrong = said("This is no token of an operator here, or it has ended.")
        return asked.page("sign_in.html", status=403, here="sign-in", wrong=wrong)
    return response


def sign_out(asked: Asked) -> Response:
    """Ends a visit."""
    asked.require_token()
    response = RedirectResponse("/", 303)
    if asked.visit is not None:
        asked.visits.end(response, asked.visit)
    return response
