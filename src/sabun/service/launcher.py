"""Starts the processes of a collector and starts one again that ended by itself."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from types import FrameType

from sabun.errors import DataError
from sabun.service.process import listening, run_process
from sabun.service.settings import Settings, opened_store

__all__ = ["launch", "prepare"]

_PAUSE = 1.0
"""Seconds before a process that ended is started again."""
_FAREWELL = 30.0


def prepare(settings: Settings) -> list[str]:
    """Makes the store ready and serves the studies from now on; returns the public names of all that are served."""
    settings.tls()  # before anything is made
    store = opened_store(settings.database, settings.keys)
    try:
        settings.register(store)
        _ = store.keys.signing, store.keys.enrolment
        return [served.task for served in store.all_served()]
    finally:
        store.database.close()


def launch(settings: Settings, *, told: Callable[[str], None]) -> None:
    """Serves until told to stop.

    Args:
        settings: How.
        told: Is given the server's address once its port is known.

    Raises:
        DataError: The port cannot be had.
    """
    several = settings.processes > 1
    try:
        made = listening(settings.host, settings.port, shared=several)
    except OSError as error:
        raise DataError(f"port must be free at {settings.host}; the system says: {error.strerror}.") from None
    port = made.getsockname()[1]
    if not several:
        made.listen()  # who follows the address at once waits a moment instead of being refused
    told(settings.address(port))
    if not several:
        run_process(settings, made)
        return
    # `made` never listens: it keeps the port while processes come and go.
    _supervise(settings, port)


def _serve(settings: Settings, port: int, shard: int) -> None:
    run_process(settings, listening(settings.host, port, shared=True), shard=shard)


def _supervise(settings: Settings, port: int) -> None:
    stop = threading.Event()

    def told_to_stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, told_to_stop)
    context = multiprocessing.get_context("spawn")  # a fork would share connections and random states

    def started(shard: int) -> BaseProcess:
        process = context.Process(target=_serve, args=(settings, port, shard), name=f"collector-{shard}")
        process.start()
        return process

    running = {shard: started(shard) for shard in range(settings.processes)}
    while not stop.wait(0.2):
        for shard, process in running.items():
            if not process.is_alive():
                stop.wait(_PAUSE)
                if not stop.is_set():
                    running[shard] = started(shard)
    for process in running.values():
        process.terminate()
    deadline = time.monotonic() + _FAREWELL
    for process in running.values():
        process.join(max(0.1, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
