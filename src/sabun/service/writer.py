"""Group commit: one thread takes everything that waits into one transaction; whoever waits is answered after it is on disk."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import final

from sabun.service.adding import KeyLost
from sabun.service.log import say
from sabun.service.report_store import Batch, Receipt, Store
from sabun.service.session import StoreUnavailable

__all__ = ["Busy", "Writer", "WriterFigures"]

_TOGETHER = 10_000
"""Reports in one transaction, unless one request has more."""
_WAITING = 60_000
"""Reports that may wait; more are sent away until there is room."""


@final
class Busy(Exception):
    """More is waiting than can be written soon."""


@final
@dataclass(kw_only=True)
class WriterFigures:
    """What a writer has done so far, for whoever watches the server."""

    commits: int = 0
    failures: int = 0
    seconds: float = 0.0
    waiting: int = field(default=0)


@final
class Writer:
    """The one thread of a process that adds reports.

    Args:
        store: Where to.
    """

    def __init__(self, store: Store) -> None:
        self.figures = WriterFigures()
        self._store = store
        self._queue: deque[tuple[Batch, Future[Receipt]]] = deque()
        self._ready = threading.Condition()
        self._ended = self._failing = False
        self._said: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it still works."""
        return self._thread.is_alive() and not self._ended

    def add(self, batch: Batch) -> Future[Receipt]:
        """What became of a request's reports, once they are on disk.

        Raises:
            Busy: Too much is waiting.
        """
        size = _size(batch)
        future: Future[Receipt] = Future()
        with self._ready:
            if self._ended or (self.figures.waiting and self.figures.waiting + size > _WAITING):
                raise Busy
            self.figures.waiting += size
            self._queue.append((batch, future))
            self._ready.notify()
        return future

    def end(self) -> None:
        """Writes what waits, then ends."""
        with self._ready:
            self._ended = True
            self._ready.notify()
        self._thread.join()

    def _run(self) -> None:
        while taken := self._taken():
            started = time.perf_counter()
            heard = [future.set_running_or_notify_cancel() for _, future in taken]  # who went away is not answered
            try:
                found = self._store.commit_each([batch for batch, _ in taken])
            except BaseException as error:
                self._failed(error)
                waiting = (future for (_, future), here in zip(taken, heard, strict=True) if here)
                told = error if isinstance(error, StoreUnavailable) else StoreUnavailable("the store refused a change.")
                for future in waiting:
                    future.set_exception(told)
            else:
                self._succeeded()
                for (_, future), one, here in zip(taken, found, heard, strict=True):
                    self._answer(future if here else None, one)
            self.figures.seconds += time.perf_counter() - started

    def _answer(self, future: Future[Receipt] | None, found: Receipt | KeyLost) -> None:
        if isinstance(found, KeyLost):
            self.figures.failures += 1
            if str(found) not in self._said:  # once, however many devices come again
                say("store", f"{found} Devices are told to come again.", level=logging.ERROR)
            self._said.add(str(found))
            if future is not None:
                future.set_exception(found)
            return
        if future is not None:
            future.set_result(found)

    def _failed(self, error: BaseException) -> None:
        self.figures.failures += 1
        if not self._failing:  # once, however long it lasts
            known = str(error) if isinstance(error, StoreUnavailable) else f"unexpected {type(error).__name__}"
            say("store", f"{known} Devices are told to come again.", level=logging.ERROR)
        self._failing = True

    def _succeeded(self) -> None:
        self.figures.commits += 1
        if self._failing:
            say("store", "the store can be used again")
        self._failing = False

    def _taken(self) -> list[tuple[Batch, Future[Receipt]]]:
        """Everything that waits, up to a limit; nothing once the writer is to end."""
        with self._ready:
            while not self._queue and not self._ended:
                self._ready.wait()
            taken: list[tuple[Batch, Future[Receipt]]] = []
            size = 0
            while self._queue and (not taken or size + _size(self._queue[0][0]) <= _TOGETHER):
                one = self._queue.popleft()
                taken.append(one)
                size += _size(one[0])
            self.figures.waiting -= size
            return taken


def _size(batch: Batch) -> int:
    """Reports, a long one counting for several."""
    arrival = batch.arrival
    return len(arrival.ids) * (1 + (len(arrival.answers[0]) if arrival.answers else 0) // 512) + len(arrival.rejected)
