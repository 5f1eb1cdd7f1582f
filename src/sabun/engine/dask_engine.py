"""Pieces counted by the workers of a Dask cluster, and frames that lie there already."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, final

from sabun import checks
from sabun.engine.counting import Counting, Numbered, Report, Task
from sabun.engine.engines import NOT_STARTED, Step, address_of, gathered
from sabun.engine.pieces import Piece
from sabun.engine.scratch import scratch
from sabun.engine.shuffle import Shuffle
from sabun.engine.statistic import Elsewhere, Grouped, Statistic
from sabun.errors import DataError, ParameterError

__all__ = ["Dask", "DaskFrame"]

State = TypeVar("State")

_RETRIES = 3
"""How often Dask may run a piece anew when its worker dies; a piece that was counted twice is refused by its bit."""

_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 1 << 28, "MALLOC_MMAP_THRESHOLD_": 1 << 25}
"""How much freed memory a worker keeps, in bytes; said to glibc."""


@final
@dataclass(frozen=True)
class Dask:
    """A Dask cluster.

    Args:
        cluster: A `Client`, an address (``tcp://host:port``), or None for one on this machine that lasts as long as this.
    """

    cluster: Any = None
    _kept: list[Any] = field(default_factory=list, repr=False, compare=False)
    """A client of a cluster of our own, once there is one: some questions read their table three times."""

    @classmethod
    def of(cls, engine: Any) -> Self:
        """From ``dask``, ``dask://host:port`` or a client.

        Raises:
            ParameterError: The name makes no sense, or Dask is not installed.
        """
        address = f"tcp://{address_of(engine)}" if isinstance(engine, str) and engine != "dask" else engine
        try:
            import distributed  # noqa: F401
        except ImportError:
            raise ParameterError("engine dask needs an extra; pip install 'sabun[dask]'.") from None
        return cls(None if engine == "dask" else address)

    def reports(self, task: Counting, pieces: Sequence[Numbered]) -> Iterator[Report]:
        """Counts them wherever Dask likes."""
        with self._client() as client:
            waiting = client.map(task.counted, pieces, pure=False, retries=_RETRIES)
            yield from _finished(client, waiting)

    def grouped(self, task: Shuffle, pieces: Sequence[Piece]) -> Iterator[Report]:
        """Brings rows together through the workers' memory, and counts them there."""
        yield from self._met(task, task.parted, [(piece,) for piece in pieces])

    def _met(self, task: Shuffle, part: Callable[..., Any], given: Sequence[tuple[Any, ...]]) -> Iterator[Report]:
        """The report of each bucket; what a piece is parted into stays with the workers."""
        import dask

        each, join = dask.delayed(part, nout=task.shares, pure=False), dask.delayed(task.joined, pure=False)
        parts = [each(*arguments) for arguments in given]
        buckets = [join(bucket, [parted[task.share(bucket)] for parted in parts]) for bucket in range(task.buckets)]
        with self._client() as client:
            yield from _finished(client, client.compute(buckets, retries=_RETRIES))

    def frame(self, frame: Any, progress: Step | None) -> DaskFrame:
        """A Dask DataFrame whose partitions are the pieces."""
        return DaskFrame(engine=self, frame=frame, progress=progress)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        if self.cluster is None:
            if not self._kept:
                stack = ExitStack()
                self._kept.append(_started(stack))
                weakref.finalize(self, stack.close)  # it ends with the last holder of this engine
            yield self._kept[0]
        elif isinstance(self.cluster, str):
            with _connected(self.cluster) as client:
                yield client
        else:
            yield self.cluster


@final
@dataclass(frozen=True, kw_only=True)
class DaskFrame(Elsewhere):
    """A Dask DataFrame, counted partition by partition where it lies."""

    engine: Dask
    frame: Any = field(repr=False)
    progress: Step | None = field(default=None, repr=False)

    def counted(self, statistic: Statistic[State]) -> State:
        """The state of all partitions, each counted once.

        Raises:
            DataError: As `sabun.engine.engines.gathered`.
        """
        import dask

        parts = self.frame.to_delayed()
        task = Task.of(statistic, f"dask frame of {len(parts)} partitions")
        count = dask.delayed(task.counted_rows, pure=False)
        with self.engine._client() as client:
            waiting = client.compute([count(number, part) for number, part in enumerate(parts)], retries=_RETRIES)
            reports = _finished(client, waiting)
            return gathered(reports, statistic, plan=task.plan, count=len(parts), step=self.progress)

    @property
    def parts(self) -> int:
        """How many partitions there are."""
        return int(self.frame.npartitions)

    def grouped(self, grouped: Grouped[State]) -> State:
        """The state of rows that must meet, wherever they lie.

        Raises:
            DataError: As `sabun.engine.engines.gathered`; or the order of rows matters, and a frame has none.
        """
        parts = self.frame.to_delayed()
        task = Shuffle.of_frame(grouped, plan=f"dask frame of {len(parts)} partitions", pieces=len(parts))
        reports = self.engine._met(task, task.parted_rows, list(enumerate(parts)))
        return gathered(reports, grouped.statistic, plan=task.plan, count=task.buckets, step=self.progress)


def _started(stack: ExitStack) -> Any:
    """A client of a new cluster on this machine, that others who use the machine can neither ask nor look into."""
    import dask
    from distributed import Client, LocalCluster

    checks.in_earnest("an engine")
    # Dask makes its workers give memory back at once, which doubles the processor time of sums over arrays of this size.
    environment = {**dask.config.get("distributed.nanny.pre-spawn-environ", {}), **_MEMORY}
    settings = {"distributed.nanny.pre-spawn-environ": environment}
    folder = stack.enter_context(scratch("sabun-"))  # for what workers spill, which Dask itself would let everybody read
    with suppress(OSError, RuntimeError, TimeoutError), dask.config.set(settings):
        own = {"local_directory": folder, "security": True}  # certificates that are known to these processes alone
        client = Client(LocalCluster(threads_per_worker=1, dashboard_address="127.0.0.1:0", **own))
        stack.callback(_stopped, client)
        return client
    stack.close()
    raise DataError(NOT_STARTED)


def _stopped(client: Any) -> None:
    with suppress(OSError, TimeoutError):
        client.close()
        client.cluster.close()


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    from distributed import Client

    client = None
    with suppress(OSError, TimeoutError):
        client = Client(address, timeout=10)
    if client is None:
        raise DataError(f"a Dask scheduler must answer at {address}; none does. Nothing was charged.")
    with client:
        yield client


def _finished(client: Any, waiting: Sequence[Any]) -> Iterator[Report]:
    """The results as they come; what Dask says of a failure is not passed on, for it may quote a cell."""
    from distributed import as_completed

    failed: BaseException | None = None
    try:
        for done in as_completed(waiting):
            failed = done.exception()
            if failed is not None:
                break
            yield done.result()
    finally:
        client.cancel(waiting)
    if isinstance(failed, DataError):
        raise DataError(str(failed))
    if failed is not None:
        raise DataError("every piece must be counted; a Dask worker failed or died too often. Nothing was charged.")
