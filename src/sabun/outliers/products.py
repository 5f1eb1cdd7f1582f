"""Neighbours in many dimensions: a matrix product in single precision rules pairs out, the canonical rule decides the rest.

Notation: a, b are two records minus a common centre, in units of the radius, rounded to single precision. Then
|a|**2 + |b|**2 - 2 a.b differs from their squared distance by at most c (|a|**2 + |b|**2) with c = 1.5 (d + 32) 2**-24,
whatever the order of the product's sums; a pair beyond 1 by more than that is no pair of neighbours. So the result is the
canonical one exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sabun.compiled import compiled

__all__ = ["LEAST_WIDTH", "bit_graph", "can_hold", "can_sift", "sifted"]

LEAST_WIDTH = 16
"""From this many dimensions on a product is faster than a tree."""

_ROWS, _COLUMNS, _BLOCK = 512, 4096, 64
_LARGEST = 1e6
_TOUCH, _SURE = np.float32(1.0001), np.float32(0.9999)

_Floats = NDArray[np.float64]
_Singles = NDArray[np.float32]
_Integers = NDArray[np.int64]
_Short = NDArray[np.int32]


def can_sift(rows: _Floats, squared_radius: float) -> bool:
    """Whether products are worth their while, in a precision that can hold the table."""
    return rows.shape[1] >= LEAST_WIDTH and can_hold(rows, squared_radius)


def can_hold(rows: _Floats, squared_radius: float) -> bool:
    """Whether the coordinates, in units of the radius, are small enough for single precision."""
    reach = float(np.abs(rows - rows.mean(axis=0)).max()) if len(rows) else 0.0
    return reach <= _LARGEST * float(np.sqrt(squared_radius))


def sifted(
    rows: _Floats,
    asking: _Short,
    squared_radius: float,
    limit: int,
    longest: int,
    counts: _Short,
    starts: _Integers,
    offset: int,
) -> _Short:
    """Answers some records as `tree.neighbours_within` does; returns their lists, one after the other."""
    units = ((rows - rows.mean(axis=0)) / np.sqrt(squared_radius)).astype(np.float32)
    shrink = 1.0 - 1.5 * (rows.shape[1] + 32) * 2.0**-24
    norms = (shrink * (units.astype(np.float64) ** 2).sum(axis=1)).astype(np.float32)
    lists = [np.empty(0, dtype=np.int32)]
    for first in range(0, len(asking), _ROWS):
        pack = asking[first : first + _ROWS]
        found = np.zeros(len(pack), dtype=np.int64)
        room = np.empty((len(pack), longest), dtype=np.int32)
        waiting = np.arange(len(pack))
        for column in range(0, len(rows), _COLUMNS):
            end = min(column + _COLUMNS, len(rows))
            products = units[pack[waiting]] @ units[column:end].T
            _decide(rows, pack, waiting, products, norms, column, squared_radius, limit, found, room)
            waiting = waiting[found[waiting] < limit]
            if not waiting.size:
                break
        offset += _store(pack, found, room, limit, counts, starts, offset, lists)
    return np.concatenate(lists)


def bit_graph(rows: _Floats, squared_radius: float) -> NDArray[np.uint64]:
    """Who is within the radius of whom, as one bit for each pair; nobody is their own neighbour.

    Pairs that the product leaves open on either side are decided by the canonical rule, so the graph is exactly its graph.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # Where single precision overflows, no product is used and every pair is decided by the canonical rule.
        units = ((rows - rows.mean(axis=0)) / np.sqrt(squared_radius)).astype(np.float32)
        norms = (units.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
    margin = 1.5 * (rows.shape[1] + 32) * 2.0**-24
    bits = np.zeros((len(rows), (len(rows) + 63) // 64), dtype=np.uint64)
    usable = can_hold(rows, squared_radius)
    for first in range(0, len(rows), _ROWS):
        for column in range(0, first + _ROWS, _COLUMNS):
            ends = units[column : min(column + _COLUMNS, len(rows))]
            products = (
                units[first : first + _ROWS] @ ends.T
                if usable
                else np.full((min(_ROWS, len(rows) - first), len(ends)), np.nan, dtype=np.float32)
            )
            _set_bits(rows, products, norms, np.float32(margin), first, column, squared_radius, bits)
    return bits


def _store(
    pack: _Short,
    found: _Integers,
    room: _Short,
    limit: int,
    counts: _Short,
    starts: _Integers,
    offset: int,
    lists: list[_Short],
) -> int:
    """Writes the answers down; returns how long the new lists are."""
    counts[pack] = found
    open_lists = (found < limit) & (found <= room.shape[1])
    lengths = np.where(open_lists, found, 0)
    places = offset + np.cumsum(lengths) - lengths
    starts[pack] = np.where(open_lists, places, -1)
    lists.append(room[np.arange(room.shape[1])[None, :] < lengths[:, None]])
    return int(lengths.sum())


@compiled
def _decide(
    rows: _Floats,
    pack: _Short,
    waiting: _Integers,
    products: _Singles,
    norms: _Singles,
    column: int,
    squared_radius: float,
    limit: int,
    found: _Integers,
    room: _Short,
) -> None:
    """Adds the neighbours among one stretch of columns; only pairs that the product cannot rule out are measured."""
    width = rows.shape[1]
    for w in range(waiting.shape[0]):
        member = waiting[w]
        record = pack[member]
        own = norms[record] - _TOUCH
        number = found[member]
        for start in range(0, products.shape[1], _BLOCK):
            end = min(start + _BLOCK, products.shape[1])
            # Counting first, without a branch, lets the compiler compare many at once; most blocks hold no candidate.
            candidates = 0
            for j in range(start, end):
                candidates += own + norms[column + j] <= products[w, j] + products[w, j]
            if candidates == 0 or number >= limit:
                continue
            for j in range(start, end):
                other = column + j
                if own + norms[other] > products[w, j] + products[w, j] or other == record or number >= limit:
                    continue
                total = 0.0
                for a in range(width):
                    gap = rows[record, a] - rows[other, a]
                    total += gap * gap
                if total <= squared_radius:
                    if number < room.shape[1]:
                        room[member, number] = other
                    number += 1
        found[member] = number


@compiled
def _set_bits(
    rows: _Floats,
    products: _Singles,
    norms: _Singles,
    margin: np.float32,
    first: int,
    column: int,
    squared_radius: float,
    bits: NDArray[np.uint64],
) -> None:
    """Decides the pairs of one tile below the diagonal; a NaN product leaves its pair open."""
    width = rows.shape[1]
    for i in range(products.shape[0]):
        v = first + i
        for j in range(products.shape[1]):
            u = column + j
            if u >= v:
                break
            size = norms[v] + norms[u]
            near = size - np.float32(2.0) * products[i, j]
            slack = margin * size
            if near - slack > _TOUCH:
                continue
            inside = near + slack < _SURE
            if not inside:
                total = 0.0
                for a in range(width):
                    gap = rows[v, a] - rows[u, a]
                    total += gap * gap
                inside = total <= squared_radius
            if inside:
                bits[v, u >> 6] |= np.uint64(1) << np.uint64(u & 63)
                bits[u, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
