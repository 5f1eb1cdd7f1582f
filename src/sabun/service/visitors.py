"""One request for a page: what it asks, who asks, and the answer's frame."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, replace
from typing import Any, final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sabun.service.endpoints import Collecting
from sabun.service.operators import Operator, operators, who
from sabun.service.problems import CODES, Problem
from sabun.service.report_store import Served, Store
from sabun.telling.language import said
from sabun.web import Frame, Place, Visit, Visits, framed
from sabun.web.sent import other_language, sent_fields

__all__ = ["Asked", "asked_by", "begin_visit", "visits_of"]

_PACKAGE = "sabun.service"


@final
@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request for a page.

    Args:
        collecting: The server.
        request: The request; its body has been read.
        form: The fields that were sent.
        visits: Who visits.
        lang: The language of the answer.
        visit: The visit it belongs to, and
        operator: whose that is; None before somebody has signed in.
    """

    collecting: Collecting
    request: Request
    form: dict[str, str] = field(repr=False)
    visits: Visits
    lang: str
    visit: Visit | None = None
    operator: Operator | None = None

    @property
    def root(self) -> str:
        """Under which path this visitor's pages are."""
        return "/" if self.visit is None else self.visits.root(self.visit)

    def page(
        self, template: str, *, status: int = 200, here: str = "", scripts: tuple[str, ...] = (), **content: Any
    ) -> Response:
        """A page with its frame.

        Args:
            template: The template.
            status: The status.
            here: Which of the places it is.
            scripts: Scripts of its own.
            content: What fills the template.
        """
        frame = Frame(
            brand=said("Sabun collector"),
            root=self.root,
            places=self._places(here),
            token=self.visits.form_token(self.visit),
            other=other_language(self.request, self.lang),
            scripts=scripts,
        )
        return HTMLResponse(framed(_PACKAGE, template, frame, **content), status)

    def _places(self, here: str) -> tuple[Place, ...]:
        tried = Place(name=said("Try it"), address="/try", here=here == "try")
        if self.operator is None:
            return tried, Place(name=said("Sign in"), address="/sign-in", here=here == "sign-in")
        studies = Place(name=said("Studies"), address=f"{self.root}studies", here=here == "studies")
        people = Place(name=said("Operators"), address=f"{self.root}operators", here=here == "operators")
        out = Place(name=said("Sign out"), address=f"{self.root}sign-out", act=True)
        return studies, tried, *((people,) if "admin" in self.operator.scopes else ()), out

    def problem(self, problem: Problem) -> Response:
        """What went wrong, as a page."""
        status, meaning = CODES[problem.code]
        back = "/" if self.root == "/" else f"{self.root}studies"
        return self.page("problem.html", status=status, words=said(meaning), back=back)

    def require_token(self) -> None:
        """Stops a form that is not one of this visit's.

        Raises:
            Problem: It is not.
        """
        if not self.visits.is_form_token(self.visit, self.form.get("token")):
            raise Problem("stale-form")

    def study(self, scope: str = "read") -> Served:
        """The study that the path names, if this operator may do that with it; others are said not to be here.

        Raises:
            Problem: There is none, or they may not.
        """
        task = str(self.request.path_params["task"])
        served = next((one for one in self.collecting.store.all_served() if one.task == task), None)
        if served is None or self.operator is None or not self.operator.may("read", served):
            raise Problem("unknown-study")
        if not self.operator.may(scope, served):
            raise Problem("forbidden")
        return served


def visits_of(collecting: Collecting) -> Visits:
    """The visitors of a server: every process that has its folder of keys knows them."""
    key = hmac.new(collecting.store.keys.enrolment, b"sabun pages", hashlib.sha256).digest()
    return Visits(key, secure=collecting.url.startswith("https://"), clock=collecting.store.clock)


def asked_by(request: Request, body: bytes, lang: str) -> Asked:
    """A request, with its visitor if there is one."""
    collecting: Collecting = request.app.state.collecting
    bare = Asked(collecting=collecting, request=request, form=dict(sent_fields(body)), visits=visits_of(collecting), lang=lang)
    claimed = bare.visits.claimed(request)
    if claimed is None or request.path_params.get("place", claimed[0].id) != claimed[0].id:
        return bare
    visit, holds = claimed
    found, bound = _operator(collecting.store, visit.subject)
    if found is None or not holds(bound) or collecting.store.today >= found.expires:
        return bare
    return replace(bare, visit=visit, operator=found)


def begin_visit(asked: Asked, token: str) -> Response | None:
    """Signs somebody in who has a token: the answer leads to the studies; None where the token is nobody's."""
    found = who(asked.collecting.store, token)
    if found is None:
        return None
    visit = asked.visits.planned(_subject(found))
    response = RedirectResponse(f"{asked.visits.root(visit)}studies", 303)
    asked.visits.seal(response, visit, _operator(asked.collecting.store, visit.subject)[1])
    return response


def _subject(operator: Operator) -> str:
    """Who visits: a name belongs to a study, or to the server."""
    return f"{operator.study or 0}:{operator.name}"


def _operator(store: Store, subject: str) -> tuple[Operator | None, bytes]:
    """An operator and the hash of the token: a visit ends when the token is revoked, or renewed."""
    found = next((one for one in operators(store) if _subject(one) == subject), None)
    if found is None:
        return None, b""
    with store.database.look() as session:
        rows = session.rows("SELECT hash FROM operator WHERE study = ? AND name = ?", found.study or 0, found.name)
    return found, bytes(rows[0][0]) if rows else b""
