"""Pieces counted by several processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from sabun import checks
from sabun.engine.counting import Counting, Numbered, Report
from sabun.engine.engines import NOT_STARTED
from sabun.errors import DataError

__all__ = ["Processes"]


@final
@dataclass(frozen=True)
class Processes:
    """Several processes on this machine.

    Args:
        count: How many.
        tries: How often a piece is tried when its process dies.
    """

    count: int
    tries: int = 3
    _kept: list[Any] = field(default_factory=list, repr=False, compare=False)
    """The pool, once there is one, and whether it started: that costs seconds, and some questions read their table thrice."""

    def reports(self, task: Counting, pieces: Sequence[Numbered]) -> Iterator[Report]:
        """Counts them side by side; a process that dies is replaced."""
        left = {piece.number: piece for piece in pieces}
        for _ in range(self.tries):
            for report in self._round(task, list(left.values())):
                del left[report.number]
                yield report
            if not left:
                return
        raise DataError(
            f"every piece must be counted; piece {min(left)} was not, its process died {self.tries} times. Nothing was charged."
        )

    def _round(self, task: Counting, pieces: Sequence[Numbered]) -> Iterator[Report]:
        """What can be had until a process dies."""
        from concurrent.futures import Future, as_completed, wait
        from concurrent.futures.process import BrokenProcessPool

        waiting: list[Future[Report]] = []
        try:
            waiting += [self._pool().submit(task.counted, piece) for piece in pieces]
            for done in as_completed(waiting):
                yield done.result()
        except BrokenProcessPool:
            _, started = self._kept
            self._kept.clear()
            if not started.is_set():  # none of them would start the next time either
                raise DataError(NOT_STARTED) from None
        finally:
            for each in waiting:
                each.cancel()
            wait(waiting)  # nobody may go on reading, or writing to a folder that is being removed

    def _pool(self) -> Any:
        """Processes that wait for pieces; they end when nobody holds this engine any more."""
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        checks.in_earnest("an engine")
        if not self._kept:
            # Started afresh, not forked: a fork would take along the owner's ledger, locks and whatever keys are in memory.
            context = multiprocessing.get_context("spawn")
            started = context.Event()  # set by the first process that is ready
            self._kept.extend([ProcessPoolExecutor(self.count, mp_context=context, initializer=started.set), started])
        return self._kept[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return Processes, (self.count, self.tries)  # a copy elsewhere has processes of its own
