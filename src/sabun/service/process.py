"""One process of a collector: its own socket, its own writer, its own shard of the counters."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sabun.service.application import application
from sabun.service.bodies import Intake
from sabun.service.closing import purge_expired, tidy
from sabun.service.endpoints import Collecting
from sabun.service.log import say, start_log
from sabun.service.problems import Problem
from sabun.service.report_store import Store
from sabun.service.settings import Settings, opened_store
from sabun.service.writer import Writer

__all__ = ["listening", "run_process", "web_server"]

_BACKLOG = 2048
_HOUSEKEEPING_SECONDS = 600.0


def listening(host: str, port: int, *, shared: bool) -> socket.socket:
    """A socket of this process alone.

    With `IPPROTO_TCP`: asyncio turns Nagle's algorithm off only where it sees that protocol, and with it on each answer waits
    for the client's delayed acknowledgement. With `SO_REUSEPORT` the system spreads connections over the processes.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((host, port))
    made.set_inheritable(True)
    return made


class _PatientProtocol(HttpToolsProtocol):
    """Ends connections on which no request is announced in time: uvicorn waits for headers for ever."""

    seconds: float

    def connection_made(self, transport: Any) -> None:
        """Starts the clock."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.seconds, self._end_if_silent)

    def _end_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()

    def on_message_begin(self) -> None:
        """A request begins on a connection that is kept alive: its headers have their own time."""
        super().on_message_begin()
        self._late.cancel()
        self._late = self.loop.call_later(self.seconds, self._end_if_unfinished)

    def _end_if_unfinished(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def on_headers_complete(self) -> None:
        """They came in time; the body has a deadline of its own."""
        self._late.cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clock."""
        self._late.cancel()
        super().connection_lost(exc)


def run_process(settings: Settings, made: socket.socket, *, shard: int = 0) -> None:
    """Serves until told to stop (SIGTERM, SIGINT); what waits is written first."""
    start_log(shard)
    store = opened_store(settings.database, settings.keys, shard=shard)
    store.all_served()
    tidy(store)
    collecting = Collecting(
        store=store,
        writer=Writer(store),
        retention_days=settings.retention_days,
        url=settings.address(made.getsockname()[1]),
        intake=Intake(seconds=settings.body_seconds),
    )
    app = application(collecting, lifespan=_lifespan(settings, store, collecting))
    web_server(app, settings).run(sockets=[made])


def web_server(app: Starlette, settings: Settings) -> uvicorn.Server:
    """The server of an application: no access log, no headers of proxies, nothing said about itself."""
    config = uvicorn.Config(
        app,
        http=type("_Patient", (_PatientProtocol,), {"seconds": settings.header_seconds}),
        loop="uvloop",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=20,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    return uvicorn.Server(config)


def _lifespan(settings: Settings, store: Store, collecting: Collecting) -> Any:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        say("start", f"serving {len(store.all_served())} studies on {store.database.name}")
        keeping = asyncio.create_task(_keep_house(settings, collecting))
        try:
            yield
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
            await asyncio.to_thread(collecting.writer.end)
            collecting.threads.shutdown()
            store.database.close()
            say("stop", "all that was answered is on disk")

    return lifespan


async def _keep_house(settings: Settings, collecting: Collecting) -> None:
    """Deletes reports whose time is over, every now and then."""
    while True:
        try:
            purged = await collecting.apart(purge_expired, collecting.store, retention_days=settings.retention_days)
            if purged:
                say("purge", f"deleted the reports of {purged} rounds")
        except Problem:
            say("store", "the store cannot be used for now", level=logging.WARNING)
        except Exception as error:
            say("error", f"unexpected {type(error).__name__} while deleting old reports", level=logging.ERROR)
        await asyncio.sleep(_HOUSEKEEPING_SECONDS)
