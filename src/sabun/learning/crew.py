"""Processes that sum clipped gradients for the one that owns a run, over torch.distributed.

    rank 0: key, batch, noise, weights, ledger ── weights and row numbers ─►  ranks 1, 2, …: rows of their shards
                                               ◄── one sum for each shard ──

Helpers start afresh and are idle before anything is charged. They get rows, weights and row numbers; never a key, a ledger or a
coin. What a helper says of a failure is dropped, for it may speak of a row: rank 0 sees that it is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.engine.scratch import scratch
from sabun.errors import DataError, ParameterError
from sabun.learning.network import Floats
from sabun.learning.shards import Shard, members_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Crew", "LostProcess", "Rounding", "crew_of", "must_travel"]

_STOP, _DEAL, _SUM = range(3)
_ALL = -1
_PATIENCE = timedelta(hours=1)
"""How long one process waits for another that is alive; one that died is noticed at once."""

_LOST = (
    "every process of a run must last until it ends; one ended, or could not be reached. A charge stays as it is. With a "
    "checkpoint, ask again with the same folder: the run goes on where it stopped, with the same bits, at no further cost."
)


class LostProcess(DataError):
    """A process of a run is gone."""


@final
@dataclass(frozen=True, kw_only=True)
class Rounding:
    """What decides how torch rounds in a process."""

    threads: int
    deterministic: bool
    precision: str
    type: Any
    flushes: bool

    @classmethod
    def here(cls) -> Self:
        """As it is in this process."""
        import torch

        return cls(
            threads=torch.get_num_threads(),
            deterministic=torch.are_deterministic_algorithms_enabled(),
            precision=torch.get_float32_matmul_precision(),
            type=torch.get_default_dtype(),
            flushes=not bool(torch.tensor([2.0**-1060], dtype=torch.float64) * 0.5),  # torch tells by no other means
        )

    def settle(self) -> None:
        """Takes it over in this process."""
        import torch

        torch.set_num_threads(self.threads)
        torch.use_deterministic_algorithms(self.deterministic)
        torch.set_float32_matmul_precision(self.precision)
        torch.set_default_dtype(self.type)
        torch.set_flush_denormal(self.flushes)


@final
@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where a process stands."""

    rank: int
    size: int
    store: str
    device: str
    rounding: Rounding

    def join(self) -> None:
        """Enters the group; returns when all have."""
        import torch
        import torch.distributed as dist

        if self.device == "cuda":
            torch.cuda.set_device(self.rank)
        backend = "cpu:gloo,cuda:nccl" if self.device == "cuda" else "gloo"
        store = dist.FileStore(self.store, self.size)
        with _on_this_machine():
            dist.init_process_group(backend, store=store, rank=self.rank, world_size=self.size, timeout=_PATIENCE)


@final
class Crew:
    """The helpers of one run, as rank 0 sees them; made by `crew_of`."""

    def __init__(self, size: int, device: str) -> None:
        self._size, self._device = size, device
        self._mine: dict[int, Shard] = {}
        self._bounds: list[tuple[int, int]] = []

    def deal(self, shards: Sequence[Shard], places: Sequence[tuple[int, int]]) -> None:
        """Sends each helper its shards; the first ones stay here.

        Raises:
            LostProcess: A helper is gone.
        """
        self._bounds = list(places)
        self._mine = {number: shard for number, shard in enumerate(shards) if not number % self._size}
        with _noticed():
            _order(_DEAL, 0, 0)
            for rank in range(1, self._size):
                theirs = {n: (shard, places[n]) for n, shard in enumerate(shards) if n % self._size == rank}
                _send_bytes(pickle.dumps(theirs), rank)

    def parts(self, weights: Floats, batch: NDArray[np.intp] | None) -> list[Floats]:
        """The sum of each shard, in order.

        Raises:
            LostProcess: A helper is gone.
        """
        import torch

        with _noticed():
            _order(_SUM, len(weights), _ALL if batch is None else len(batch))
            _shared(torch.from_numpy(np.array(weights, dtype=np.float64)), self._device)
            if batch is not None and len(batch):
                _shared(torch.from_numpy(np.array(batch, dtype=np.int64)), "cpu")
        own = {n: shard(weights, members_of(batch, *self._bounds[n])) for n, shard in self._mine.items()}
        with _noticed():
            return [
                own[n] if n in own else _received(len(weights), n % self._size, self._device) for n in range(len(self._bounds))
            ]


@contextlib.contextmanager
def crew_of(processes: int, *, device: str = "cpu") -> Iterator[Crew | None]:
    """Starts the helpers of a run, and ends them; None where there is one process only.

    Args:
        processes: How many in all.
        device: ``cpu`` or ``cuda``; with ``cuda`` each process has a GPU of its own.

    Raises:
        ParameterError: This process is in a group already, torch cannot, or there are too few GPUs.
        LostProcess: A helper did not start.
    """
    if processes == 1:
        yield None
        return
    _possible(processes, device)
    import torch.distributed as dist

    context = multiprocessing.get_context("spawn")  # a fork would take along ledger, key and locks
    helpers: list[Any] = []
    with scratch("sabun-crew-") as folder:
        facts: dict[str, Any] = {
            "size": processes,
            "store": os.path.join(folder, "store"),
            "device": device,
            "rounding": Rounding.here(),
        }
        try:
            for rank in range(1, processes):
                helpers.append(_started(context, _Place(rank=rank, **facts)))
            for process, pipe in helpers:
                _await(process, pipe)
            with _noticed():
                _Place(rank=0, **facts).join()
            yield Crew(processes, device)
        finally:
            with contextlib.suppress(Exception):  # who is gone cannot be told
                if dist.is_initialized() and all(process.is_alive() for process, _ in helpers) and not sys.exc_info()[0]:
                    _order(_STOP, 0, 0)
                    for process, _ in helpers:
                        process.join(10)
            for process, _ in helpers:
                process.kill()
            with contextlib.suppress(Exception):
                dist.destroy_process_group()


def must_travel(*things: object) -> None:
    """Refuses what another process could not be sent, before anything is charged.

    Raises:
        ParameterError: It cannot be pickled.
    """
    try:
        pickle.dumps(things)
    except Exception:  # whatever a class of the caller's raises
        raise ParameterError(
            "module and loss must be such that another process can be sent them when processes is above 1; they are not. "
            "Define classes and functions at the top of a module."
        ) from None


def _possible(processes: int, device: str) -> None:
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        raise ParameterError("processes above 1 need an extra; pip install 'sabun[learning]'.") from None
    if not dist.is_available() or not dist.is_gloo_available():
        raise ParameterError("processes must be 1: this build of torch has no torch.distributed with gloo.")
    if dist.is_initialized():
        raise ParameterError("processes must be 1 in a process that has joined a group of torch.distributed; this one has.")
    checks.require(not multiprocessing.current_process().daemon, "1 in a daemon process", processes=processes)
    if device == "cuda":
        found = torch.cuda.device_count()
        checks.require(processes <= found, f"at most {found}, the number of GPUs", processes=processes)


def _started(context: Any, place: _Place) -> tuple[Any, Any]:
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_help, args=(place, theirs), daemon=True, name=f"sabun-helper-{place.rank}")
    process.start()
    theirs.close()
    return process, ours


def _await(process: Any, pipe: Any) -> None:
    while not pipe.poll(0.1):
        if not process.is_alive() and not pipe.poll(0):
            break
    try:
        ready = pipe.poll(0) and pipe.recv() == "ready"
    except EOFError:
        ready = False
    if not ready:
        raise LostProcess(f"every process of a run must start; one did not. Nothing was charged. {checks.MAIN}")


def _help(place: _Place, pipe: Any) -> None:
    """What a helper does; it ends without a word, for what it could say may speak of a row."""
    try:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner decides when to end
        place.rounding.settle()
        pipe.send("ready")
        place.join()
        _serve(place)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _serve(place: _Place) -> None:
    import torch

    from sabun.learning.training import one_thread

    held: dict[int, tuple[Shard, tuple[int, int]]] = {}
    with one_thread():
        while True:
            order, size, count = _ordered()
            if order == _STOP:
                return
            if order == _DEAL:
                held = pickle.loads(_received_bytes(0))  # from the owner's process, over a group that it made
                continue
            weights = _shared(torch.empty(size, dtype=torch.float64), place.device).numpy()
            batch = None if count == _ALL else torch.empty(count, dtype=torch.int64)
            if batch is not None and count:
                batch = _shared(batch, "cpu")
            rows = None if batch is None else batch.numpy().astype(np.intp, copy=False)
            for number in sorted(held):
                shard, limits = held[number]
                _sent(shard(weights, members_of(rows, *limits)), place.device)


@contextlib.contextmanager
def _on_this_machine() -> Iterator[None]:
    """No other machine is asked: processes find each other by a file of the owner's, and connect on this machine alone."""
    name = "GLOO_SOCKET_IFNAME"
    before = os.environ.get(name)
    os.environ[name] = "lo0" if sys.platform == "darwin" else "lo"
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


@contextlib.contextmanager
def _noticed() -> Iterator[None]:
    """What torch says of a lost connection names addresses: replaced, with its context."""
    lost = False
    try:
        yield
    except RuntimeError:  # torch.distributed's errors are of this kind
        lost = True
    if lost:
        raise LostProcess(_LOST)


def _order(order: int, size: int, count: int) -> None:
    import torch
    import torch.distributed as dist

    dist.broadcast(torch.tensor([order, size, count]), src=0)


def _ordered() -> tuple[int, int, int]:
    import torch
    import torch.distributed as dist

    told = torch.zeros(3, dtype=torch.int64)
    dist.broadcast(told, src=0)
    order, size, count = told.tolist()
    return order, size, count


def _shared(numbers: Tensor, device: str) -> Tensor:
    """What rank 0 has, with everybody."""
    import torch.distributed as dist

    placed = numbers.to(device)
    dist.broadcast(placed, src=0)
    return placed.cpu()


def _sent(numbers: Floats, device: str) -> None:
    import torch
    import torch.distributed as dist

    dist.send(torch.from_numpy(np.ascontiguousarray(numbers)).to(device), dst=0)


def _received(size: int, rank: int, device: str) -> Floats:
    import torch
    import torch.distributed as dist

    numbers = torch.empty(size, dtype=torch.float64, device=device)
    dist.recv(numbers, src=rank)
    found: Floats = numbers.cpu().numpy()
    return found


def _send_bytes(content: bytes, rank: int) -> None:
    import torch
    import torch.distributed as dist

    dist.send(torch.tensor([len(content)]), dst=rank)
    dist.send(torch.frombuffer(bytearray(content), dtype=torch.uint8), dst=rank)


def _received_bytes(rank: int) -> bytes:
    import torch
    import torch.distributed as dist

    size = torch.zeros(1, dtype=torch.int64)
    dist.recv(size, src=rank)
    content = torch.empty(int(size), dtype=torch.uint8)
    dist.recv(content, src=rank)
    return bytes(content.numpy().tobytes())
