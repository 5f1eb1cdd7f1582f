"""Sums of clipped gradients over rows in shards, added in the shards' order: the same bits wherever each shard is computed.

Notation: n rows are cut into shards of about n / shards rows each, in their order. A batch's sum is that of the shards' sums,
with what rounding takes away kept beside; proved in shards.proof.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.learning.clipping import ClippedSum, Piece, two_sum
from sabun.learning.network import Floats, Network
from sabun.learning.passes import singles, squared_lengths

if TYPE_CHECKING:
    from sabun.learning.crew import Crew

__all__ = ["MOST_PROCESSES", "MOST_SHARDS", "RowShard", "Shard", "Sums", "bounds", "members_of", "row_sums", "shards_for"]

MOST_PROCESSES, MOST_SHARDS = 64, 1024

_Rows = NDArray[np.intp]


class Shard(Protocol):
    """Some rows with all that it takes to sum their clipped gradients; it can be pickled, holds no key and tosses no coin."""

    def __call__(self, weights: Floats, members: _Rows | None) -> Floats:
        """The clipped sum at these weights over some of its rows, counted from its first; None is all of them."""
        ...


class _Spread(Protocol):
    """Settings of a run that may be spread over processes."""

    @property
    def processes(self) -> int: ...
    @property
    def shards(self) -> int | None: ...


def shards_for(settings: _Spread) -> int:
    """How many shards a run has.

    Raises:
        ParameterError: Processes or shards break their rule.
    """
    for name, most in (("processes", MOST_PROCESSES), ("shards", MOST_SHARDS)):
        value = getattr(settings, name)
        if value is not None:
            checks.whole(minimum=1, **{name: value})
            checks.require(value <= most, f"at most {most}", **{name: value})
    found = settings.processes if settings.shards is None else settings.shards
    checks.require(found >= settings.processes, f"at least {settings.processes}, one for each process", shards=settings.shards)
    return int(found)


def bounds(rows: int, shards: int) -> list[tuple[int, int]]:
    """Where each shard starts and ends."""
    return [(rows * place // shards, rows * (place + 1) // shards) for place in range(shards)]


def members_of(batch: _Rows | None, first: int, last: int) -> _Rows | None:
    """Those of a growing batch that are in a shard, counted from its first row."""
    if batch is None:
        return None
    start, end = np.searchsorted(batch, (first, last))
    return batch[start:end] - first


@final
class Sums:
    """The sum over a batch, shard by shard.

    Guarantee: adding or removing one row changes it by at most `clipping.SENSITIVITY`, as a sum in one go.

    Args:
        shards: In order; each has the rows that `bounds` gives it.
        rows: How many rows there are.
        crew: The processes that compute them; None computes all here.
    """

    def __init__(self, shards: Sequence[Shard], *, rows: int, crew: Crew | None = None) -> None:
        self._bounds, self._crew = bounds(rows, len(shards)), crew
        self._shards = list(shards)
        if crew is not None:
            crew.deal(self._shards, self._bounds)

    def __call__(self, weights: Floats, batch: _Rows | None) -> Floats:
        """The sum at these weights over the rows of a batch, which grow; None is all rows."""
        if self._crew is not None:
            parts = self._crew.parts(weights, batch)
        else:
            parts = [shard(weights, members_of(batch, *place)) for shard, place in zip(self._shards, self._bounds, strict=True)]
        total, lost = np.zeros((2, len(weights)))
        if len(parts) == 1:
            return parts[0]
        for part in parts:  # in the shards' order, wherever they come from
            total, missed = two_sum(total, part)  # proof: shard-order
            lost += missed
        return np.asarray(total + lost)


@final
@dataclass(frozen=True, kw_only=True)
class RowShard:
    """Encoded rows with their labels, and the network that reads them."""

    network: Network
    clip_norm: float
    piece: int
    kind: str
    rows: NDArray[Any] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)

    def __call__(self, weights: Floats, members: _Rows | None) -> Floats:
        """The clipped sum over some of the rows."""
        if members is None:
            return self._clipped.over(weights, self._pieces)
        return self._clipped(weights, self.rows[members], self.labels[members], self._lengths[members])

    @cached_property
    def _clipped(self) -> ClippedSum:
        return ClippedSum(self.network, clip_norm=self.clip_norm, piece=self.piece, kind=self.kind)

    @cached_property
    def _pieces(self) -> list[Piece]:
        """All rows, laid out once for the runs that look at all of them in every step."""
        return list(self._clipped.pieces(self.rows, self.labels, self._lengths))

    @cached_property
    def _lengths(self) -> Floats:
        return squared_lengths(self.rows)

    def __getstate__(self) -> dict[str, Any]:
        """What a process needs to compute it: not what this one has computed."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def row_sums(
    network: Network,
    rows: Floats,
    labels: NDArray[np.int64],
    *,
    clip_norm: float,
    piece: int,
    kind: np.dtype[Any],
    shards: int,
    crew: Crew | None,
) -> Sums:
    """Sums over a table in so many shards."""
    short = singles(rows)
    cut = [
        RowShard(
            network=network, clip_norm=clip_norm, piece=piece, kind=kind.str, rows=short[low:high], labels=labels[low:high]
        )
        for low, high in bounds(len(labels), shards)
    ]
    return Sums(cut, rows=len(labels), crew=crew)
