"""The desk's addresses, and the server that answers at them: on this machine alone."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sabun.desk.entrance import Entrance
from sabun.desk.errands import Errands, Run
from sabun.desk.fields import on_page
from sabun.desk.pages_files import columns, enter, entered, files, front, jobs_of
from sabun.desk.pages_ledger import answer, download, ledger, ledgers, new_ledger, report_page
from sabun.desk.pages_question import question, sent
from sabun.desk.shelf import Shelf
from sabun.desk.visitor import Desk, Visitor
from sabun.errors import ParameterError, SabunError
from sabun.telling.language import said, speaking
from sabun.web import Assets, Guard, Visits, spoken
from sabun.web.guard import HEADERS
from sabun.web.spoken import keep_language

__all__ = ["DeskServer"]

Page = Callable[[Visitor], Response]

HOST = "127.0.0.1"
_MOST_BYTES = 1 << 20
_ASSETS = Assets("sabun.desk")


@final
class DeskServer:
    """A desk for one folder, at a port of this machine.

    Args:
        folder: The folder whose files it shows.
        run: Runs a command line in this process; what a command says is heard by `sabun.telling.terminal.output.heard`.
        command: The whole command line, to draw forms from.
        port: The port; 0 for any that is free.
        language: The language of pages; that of the browser when left out.

    Raises:
        ParameterError: There is no such folder, or the port is taken.
    """

    def __init__(
        self, folder: Path, *, run: Run, command: Callable[[], Any], port: int = 0, language: str | None = None
    ) -> None:
        shelf = Shelf(folder)
        self._socket = _listening(port)
        self.address = f"http://{HOST}:{self._socket.getsockname()[1]}/"
        self.entrance = Entrance(self.address)
        self.desk = Desk(
            shelf=shelf,
            errands=Errands(run),
            entrance=self.entrance,
            visits=Visits(secrets.token_bytes(32), secure=False),
            command=command,
            language=language,
        )
        config = uvicorn.Config(
            application(self.desk),
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Serves until told to stop; what was asked for is waited for."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self.close()

    def show(self) -> None:
        """Sends the browser to the file that lets it in."""
        webbrowser.open(self.entrance.renew().as_uri())

    def close(self) -> None:
        """Takes everything back that it made."""
        self._socket.close()
        self.entrance.close()
        self.desk.errands.close()

    def stop(self) -> None:
        """Tells it to stop."""
        self._server.should_exit = True


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.bind((HOST, port))
    except (OSError, OverflowError):
        made.close()
        raise ParameterError(f"port must be one that is free on this machine; {port} is not. Leave it out.") from None
    return made


def application(desk: Desk) -> Starlette:
    """The pages of a desk."""
    guarded, linked = [Middleware(Guard)], [Middleware(Guard, linkable=True)]

    def route(path: str, page: Page, *methods: str, inside: bool = True, linkable: bool = False) -> Route:
        """A page at an address; inside, for whoever has come in alone."""

        async def answered(request: Request) -> Response:
            lang = spoken(request, usual=desk.language)
            try:
                body = await _body(request) if request.method == "POST" else b""
                response = await run_in_threadpool(_made, desk, request, body, lang, page, inside)
            except SabunError as error:
                with speaking(lang):
                    response = Visitor(desk=desk, request=request, lang=lang).problem(on_page(str(error)), 400)
            except Exception as error:  # its words and its traceback may hold private values
                with speaking(lang):
                    words = said("Something unexpected happened ({kind}). This is a bug in Sabun.", kind=type(error).__name__)
                    response = Visitor(desk=desk, request=request, lang=lang).problem(words, 500)
            keep_language(request, response, secure=False)
            return response

        place = f"/at/{{place}}{path}" if inside else path
        return Route(place, answered, methods=list(methods) or ["GET"], middleware=linked if linkable else guarded)

    async def asset(request: Request) -> Response:
        found = _ASSETS.found(str(request.path_params["name"]))
        return Response(status_code=404) if found is None else Response(found[0], media_type=found[1])

    table, book = "/tables/{table}", "/ledgers/{ledger}"
    return Starlette(
        routes=[
            route("/", front, inside=False),
            route("/enter", entered, "POST", inside=False),
            route("/enter/{code}", enter, inside=False, linkable=True),
            route("/", files),
            route(table, columns, "GET", "POST"),
            route(f"{table}/jobs", jobs_of),
            route(f"{table}/jobs/{{room}}/{{verb}}", question, "GET", "POST"),
            route("/sent/{form}", sent),
            route("/ledgers", ledgers),
            route("/new-ledger", new_ledger, "GET", "POST"),
            route(book, ledger),
            route(f"{book}/{{entry}}", answer),
            route(f"{book}/{{entry}}/report", report_page),
            route(f"{book}/{{entry}}/release.json", download),
            Route("/assets/{name:path}", asset, middleware=guarded),
            route("/{rest:path}", nothing, "GET", "POST", inside=False),
        ],
        exception_handlers={405: _no_such_way},
    )


def nothing(visitor: Visitor) -> Response:
    """Where there is no page."""
    return visitor.problem(said("There is nothing at this address."), 404)


async def _no_such_way(request: Request, error: Exception) -> Response:
    """A method that an address does not know; routes say so before anything is guarded."""
    del request, error
    return Response(status_code=405, headers=HEADERS)


def _made(desk: Desk, request: Request, body: bytes, lang: str, page: Page, inside: bool) -> Response:
    """A page, made in a thread: it looks at files, and a plan may take a moment."""
    with speaking(lang):
        visitor = Visitor.of(desk, request, body, lang)
        if inside and visitor.visit is None:
            words = said("This visit is over, or began elsewhere. Start `sabun desk` again, or open the desk's first page.")
            return visitor.problem(words, 403)
        if inside and visitor.posts and not desk.visits.is_form_token(visitor.visit, visitor.field("token")):
            return visitor.problem(said("This form is not of your visit. Open the page again."), 403)
        try:
            return page(visitor)
        except SabunError as error:
            return visitor.problem(on_page(str(error)), 400)


async def _body(request: Request) -> bytes:
    """What was sent, as far as a form of ours may be long."""
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > _MOST_BYTES:
            raise ParameterError("the form must be shorter; it is too long.")
    return found
