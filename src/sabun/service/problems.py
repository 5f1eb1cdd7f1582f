"""What goes wrong, as RFC 9457 says it: `application/problem+json` with a code that clients may rely on."""

from __future__ import annotations

from http import HTTPStatus
from typing import final

import msgspec
from starlette.responses import Response

__all__ = ["CODES", "Problem", "ProblemBody", "problem_response"]

CODES: dict[str, tuple[int, str]] = {
    "bad-request": (400, "This is no request of HTTP/1.1."),
    "empty": (400, "The body must hold at least one report; it is empty."),
    "bad-json": (400, "The body must be JSON as the description says; it is not."),
    "bad-hex": (400, "Tickets, promises and secrets must be hexadecimal digits of the right length; they are not."),
    "bad-form": (400, "The form must be filled in as its page asks; it is not."),
    "no-report": (400, "This is no report of the study on this page."),
    "disconnected": (400, "The body ended before it was complete."),
    "unauthorised": (401, "A token must be sent as `Authorization: Bearer ...`; it is missing, unknown or has ended."),
    "forbidden": (403, "This token does not allow that for this study."),
    "stale-form": (403, "This form is not of your visit, or the visit is over. Open the page again."),
    "unknown-ticket": (403, "The ticket must be one that was issued for this study; it is not."),
    "not-found": (404, "There is nothing at this address."),
    "unknown-study": (404, "There is no such study here."),
    "unknown-round": (404, "The study has no such round."),
    "not-allowed": (405, "This address does not know that method."),
    "slow-body": (408, "The body took too long."),
    "other-promise": (409, "This ticket came before with another promise."),
    "no-enrolment": (409, "This study takes part without enrolment."),
    "too-few": (409, "The round has fewer reports than the study shows."),
    "not-open": (409, "The round waits for the one before."),
    "cannot-close": (409, "The round could not be closed and signed; the server's log says why. Nothing was released."),
    "no-release": (409, "The round has no release: it is open, or was abandoned."),
    "too-large": (413, "The body must be smaller. Send several requests."),
    "too-many": (413, "A request must hold fewer reports. Send several requests."),
    "media-type": (415, "Reports must come as application/vnd.sabun.reports or application/json."),
    "encoding": (415, "Bodies must come without a Content-Encoding."),
    "too-often": (429, "Too many attempts. Try again later."),
    "head-too-long": (431, "The address and the headers of a request must be shorter."),
    "internal": (500, "The server made a mistake; nothing was changed."),
    "busy": (503, "More reports are waiting than can be written soon. Send the same again later."),
    "unavailable": (
        503,
        "The store cannot be used for now; send the same again later. A report counts once however often it comes.",
    ),
}
"""Code, status, and what it means."""
_RETRY_AFTER = {"too-often": 60, "busy": 1, "unavailable": 3}


@final
class ProblemBody(msgspec.Struct, kw_only=True):
    """What is said about a problem."""

    type: str
    title: str
    status: int
    code: str
    detail: str


@final
class Problem(Exception):
    """A request that is answered with a problem.

    Args:
        code: One of `CODES`.
        detail: More about it; nothing that a report says.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail


def problem_response(problem: Problem, **headers: str) -> Response:
    """The answer."""
    status, meaning = CODES[problem.code]
    body = ProblemBody(
        type="about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        code=problem.code,
        detail=problem.detail or meaning,
    )
    if problem.code in _RETRY_AFTER:
        headers["Retry-After"] = str(_RETRY_AFTER[problem.code])
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="sabun"'
    return Response(msgspec.json.encode(body), status, headers, "application/problem+json")
