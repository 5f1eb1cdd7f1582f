"""One process of a collector: its own socket, its own writer, its own shard of the counters."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette

from sabun.service.application import application
from sabun.service.bodies import Intake
from sabun.service.closing import purge_expired, scrub, tidy
from sabun.service.connections import Crowd, PatientProtocol
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
    # TLS is the protocol's own: uvicorn would call it only after the handshake, for which anybody could let it wait.
    known = {"seconds": settings.header_seconds, "crowd": Crowd(settings.connections), "tls": settings.tls()}
    config = uvicorn.Config(
        app,
        http=type("_Patient", (PatientProtocol,), known),
        loop="uvloop",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=20,
    )
    return uvicorn.Server(config)


def _lifespan(settings: Settings, store: Store, collecting: Collecting) -> Any:
    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        served = len(store.all_served())
        say("start", f"serving {served} {'study' if served == 1 else 'studies'} on {store.database.name}")
        keeping = asyncio.create_task(_keep_house(settings, collecting))
        try:
            yield
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
            await asyncio.to_thread(collecting.writer.end)
            collecting.threads.shutdown()
            collecting.playing.shutdown()
            store.database.close()
            say("stop", "all that was answered is on disk")

    return lifespan


def _purge(store: Store, *, days: int) -> None:
    if purged := purge_expired(store, retention_days=days):
        say("purge", f"deleted the reports of {purged} rounds")


async def _keep_house(settings: Settings, collecting: Collecting) -> None:
    """Deletes reports whose time is over, and the order in which the last ones came, every now and then."""
    while True:
        for job in (partial(_purge, days=settings.retention_days), scrub):  # one that fails does not stop the other
            try:
                await collecting.apart(job, collecting.store)
            except Problem:
                say("store", "the store cannot be used for now", level=logging.WARNING)
            except Exception as error:
                say("error", f"unexpected {type(error).__name__} while deleting old reports", level=logging.ERROR)
        await asyncio.sleep(_HOUSEKEEPING_SECONDS)
