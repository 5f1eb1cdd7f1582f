"""One request for a page of the desk: what it asks, whether its sender came in by the door, and the answer's frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sabun.desk.entrance import Entrance
from sabun.desk.errands import Errands
from sabun.desk.jobs import Job, jobs
from sabun.desk.shelf import Item, Shelf
from sabun.errors import ParameterError
from sabun.telling.language import said
from sabun.web import Frame, Place, Visit, Visits, framed
from sabun.web.sent import other_language, sent_fields

__all__ = ["Desk", "Visitor"]

_PACKAGE = "sabun.desk"
_MOST_FIELDS = 5000
"""A table may have hundreds of columns, each with five fields."""


@final
@dataclass(frozen=True, kw_only=True)
class Desk:
    """What the pages of a desk work with.

    Args:
        shelf: The folder's files.
        errands: Commands that were sent off.
        entrance: The way in.
        visits: Who is here.
        command: The whole command line.
        language: The language of pages, where the owner chose one.
    """

    shelf: Shelf
    errands: Errands
    entrance: Entrance
    visits: Visits
    command: Callable[[], Any]
    language: str | None = None

    def job(self, room: str, verb: str) -> Job:
        """A question by its words.

        Raises:
            ParameterError: There is none.
        """
        for own in jobs(self.command).values():
            for job in own:
                if job.words == [room, verb]:
                    return job
        raise ParameterError("the question must be one of those that are offered here; it is not.")


@final
@dataclass(frozen=True, kw_only=True)
class Visitor:
    """One request.

    Args:
        desk: The desk.
        request: The request; its body has been read.
        sent: The fields that were sent.
        lang: The language of the answer.
        visit: The visit it belongs to; None for whoever has not come in.
    """

    desk: Desk
    request: Request
    lang: str
    sent: list[tuple[str, str]] = field(default_factory=list, repr=False)
    visit: Visit | None = None

    @classmethod
    def of(cls, desk: Desk, request: Request, body: bytes, lang: str) -> Visitor:
        """A request, with its visit if the cookie and the path are those of one."""
        sent = sent_fields(body, most=_MOST_FIELDS)
        claimed, visit = desk.visits.claimed(request), None
        if claimed is not None and claimed[1](b"") and request.path_params.get("place") == claimed[0].id:
            visit = claimed[0]
        return cls(desk=desk, request=request, sent=sent, lang=lang, visit=visit)

    @property
    def root(self) -> str:
        """Under which path this visitor's pages are."""
        return "/" if self.visit is None else self.desk.visits.root(self.visit)

    @property
    def filled(self) -> dict[str, list[str]]:
        """What was filled in, by field."""
        found: dict[str, list[str]] = {}
        for name, value in self.sent:
            found.setdefault(name, []).append(value)
        return found

    def field(self, name: str) -> str:
        """What was filled in last in a field; empty for nothing."""
        return next((value for one, value in reversed(self.sent) if one == name), "")

    @property
    def posts(self) -> bool:
        """Whether a form was sent."""
        return self.request.method == "POST"

    def named(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def table(self) -> Item:
        """The table that the path names by its handle."""
        return self.desk.shelf.found(self.named("table"), self.desk.shelf.tables())

    def ledger(self) -> Item:
        """The ledger that the path names by its handle."""
        return self.desk.shelf.found(self.named("ledger"), self.desk.shelf.ledgers())

    def page(
        self, template: str, *, status: int = 200, here: str = "", scripts: tuple[str, ...] = (), **content: Any
    ) -> Response:
        """A page with its frame."""
        places = (
            Place(name=said("Tables"), address=self.root, here=here == "tables"),
            Place(name=said("Ledgers"), address=f"{self.root}ledgers", here=here == "ledgers"),
        )
        frame = Frame(
            brand=said("Sabun desk"),
            home=self.root,
            root=self.root,
            places=() if self.visit is None else places,
            token=self.desk.visits.form_token(self.visit),
            other=None if self.posts else other_language(self.request, self.lang),
            scripts=scripts,
        )
        return HTMLResponse(framed(_PACKAGE, template, frame, **content), status)

    def problem(self, words: str, status: int) -> Response:
        """What went wrong, as a page."""
        return self.page("problem.html", status=status, words=words, back=self.root)

    def to(self, path: str) -> Response:
        """Sends the browser to another page of this visit."""
        return RedirectResponse(f"{self.root}{path}", 303)
