"""Peeling graphs: the degeneracy of a nested band, the link-core of a band.

Notation: a graph is what `tree.neighbours_within` gives, with vertices in band order; its subgraph of size n has the vertices
0 .. n - 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sabun.compiled import compiled
from sabun.outliers.tree import Graph, neighbours_of

__all__ = ["degeneracy_plus_one", "dense_degeneracy_plus_one", "link_core", "running_most"]

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
_Words = NDArray[np.uint64]
_TOUCH = (1.0 + 1e-9) ** 2


@compiled
def running_most(graph: Graph, band: _Integers, ends: _Integers) -> _Integers:
    """For each rung, how many members of its band the record that has most of them has within the radius.

    Args:
        graph: Who is within the radius of whom.
        band: Records in the order in which they join the band.
        ends: How many have joined at each rung.
    """
    size = graph.counts.shape[0]
    near = np.empty(size, dtype=np.int32)
    seen = np.zeros(size, dtype=np.int64)
    most = np.zeros(ends.shape[0], dtype=np.int64)
    joined, best = 0, 0
    for rung in range(ends.shape[0]):
        while joined < ends[rung]:
            for p in range(neighbours_of(graph, band[joined], near)):
                seen[near[p]] += 1
                best = max(best, seen[near[p]])
            joined += 1
        most[rung] = best
    return most


@compiled
def degeneracy_plus_one(graph: Graph, size: int) -> int:
    """One more than the degeneracy of the subgraph of the first vertices; 0 when there is none."""
    if size == 0:
        return 0
    near = np.empty(graph.counts.shape[0], dtype=np.int32)
    degree = np.zeros(size, dtype=np.int64)
    for v in range(size):
        for p in range(neighbours_of(graph, v, near)):
            degree[v] += near[p] < size
    # Vertices sorted by degree; where[v] is the place of v, edge[g] the first place of degree g.
    edge = np.zeros(size + 1, dtype=np.int64)
    for v in range(size):
        edge[degree[v] + 1] += 1
    for g in range(1, size + 1):
        edge[g] += edge[g - 1]
    fill = edge.copy()
    place = np.empty(size, dtype=np.int64)
    where = np.empty(size, dtype=np.int64)
    for v in range(size):
        where[v] = fill[degree[v]]
        place[where[v]] = v
        fill[degree[v]] += 1
    deepest = 0
    for i in range(size):
        v = place[i]
        deepest = max(deepest, degree[v])
        if deepest >= size - i - 1:
            # The vertices that are left have fewer neighbours among themselves than that.
            break
        for p in range(neighbours_of(graph, v, near)):
            u = near[p]
            if u < size and degree[u] > degree[v]:
                # Swap u with the first vertex of its degree, then let it have one less.
                front = edge[degree[u]]
                other = place[front]
                place[front], place[where[u]] = u, other
                where[other], where[u] = where[u], front
                edge[degree[u]] += 1
                degree[u] -= 1
    return deepest + 1


@compiled
def dense_degeneracy_plus_one(bits: _Words, size: int) -> int:
    """The same for a graph of bits: row v has bit u when u, v are neighbours."""
    if size == 0:
        return 0
    words = (size + 63) // 64
    alive = np.full(words, ~np.uint64(0), dtype=np.uint64)
    if size % 64:
        alive[words - 1] = (np.uint64(1) << np.uint64(size % 64)) - np.uint64(1)
    degree = np.zeros(size, dtype=np.int64)
    for v in range(size):
        for w in range(words):
            degree[v] += _ones(bits[v, w] & alive[w])
    deepest = 0
    left = size
    level = 0
    queue = np.empty(size, dtype=np.int64)
    gone = np.zeros(size, dtype=np.bool_)
    while left > 0 and deepest < left - 1:
        # Everybody at or below the level goes, whoever falls to it follows; then the level rises to the least degree.
        level = size
        for v in range(size):
            if not gone[v]:
                level = min(level, degree[v])
        deepest = max(deepest, level)
        waiting = 0
        for v in range(size):
            if not gone[v] and degree[v] <= deepest:
                queue[waiting] = v
                waiting += 1
                gone[v] = True
        while waiting > 0:
            waiting -= 1
            v = queue[waiting]
            left -= 1
            alive[v >> 6] &= ~(np.uint64(1) << np.uint64(v & 63))
            for w in range(words):
                rest = bits[v, w] & alive[w]
                while rest != np.uint64(0):
                    lowest = rest & (~rest + np.uint64(1))
                    u = 64 * w + _ones(lowest - np.uint64(1))
                    rest ^= lowest
                    degree[u] -= 1
                    if not gone[u] and degree[u] <= deepest:
                        gone[u] = True
                        queue[waiting] = u
                        waiting += 1
    return deepest + 1


@compiled
def _ones(word: np.uint64) -> int:
    """How many bits are set."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def link_core(squared: _Floats) -> int:
    """The link-core of a band, from its squared distances in units of the squared radius.

    The largest s such that some set H keeps every member v at 1 + (degeneracy + 1 of v's link in H) >= s, where u, w are linked
    at v when some ball of the radius holds v, u, w. Members below the level are taken away until none is, then the level rises.
    """
    size = squared.shape[0]
    alive = np.ones(size, dtype=np.bool_)
    stale = np.ones(size, dtype=np.bool_)
    value = np.zeros(size, dtype=np.int64)
    left, level = size, 0
    while left > 0:
        level += 1
        changed = True
        while changed:
            changed = False
            for v in range(size):
                if not alive[v] or not (stale[v] or value[v] < level):
                    continue
                if stale[v]:
                    value[v] = _link_value(squared, alive, v)
                    stale[v] = False
                if value[v] < level:
                    alive[v] = False
                    left -= 1
                    changed = True
                    for u in range(size):
                        if squared[u, v] <= 4.0 * _TOUCH:
                            stale[u] = True
    return level - 1


@compiled
def _link_value(squared: _Floats, alive: NDArray[np.bool_], v: int) -> int:
    """1 + (degeneracy + 1) of the link of v among the living."""
    size = squared.shape[0]
    near = np.empty(size, dtype=np.int64)
    m = 0
    for u in range(size):
        if u != v and alive[u] and squared[v, u] <= 4.0 * _TOUCH:
            near[m] = u
            m += 1
    linked = np.zeros((m, m), dtype=np.bool_)
    degree = np.zeros(m, dtype=np.int64)
    for i in range(m):
        for j in range(i):
            if _in_one_ball(squared[v, near[i]], squared[v, near[j]], squared[near[i], near[j]]):
                linked[i, j] = True
                linked[j, i] = True
                degree[i] += 1
                degree[j] += 1
    deepest = -1
    gone = np.zeros(m, dtype=np.bool_)
    for _ in range(m):
        least = -1
        for i in range(m):
            if not gone[i] and (least < 0 or degree[i] < degree[least]):
                least = i
        deepest = max(deepest, degree[least])
        gone[least] = True
        for i in range(m):
            degree[i] -= linked[least, i]
    return 1 + deepest + 1


@compiled
def _in_one_ball(a: float, b: float, c: float) -> bool:
    """Whether a ball of radius 1 (with tolerance) holds a triangle with these squared sides."""
    low, high = min(a, b, c), max(a, b, c)
    middle = max(min(a, b), min(max(a, b), c))
    if high > 4.0 * _TOUCH:
        return False
    if high >= low + middle:
        return True
    area = low * (2.0 * (high + middle) - low) - (high - middle) * (high - middle)
    return low * middle * high <= _TOUCH * area
