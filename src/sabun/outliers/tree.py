"""Neighbours within a radius: a balanced tree of small blocks, searched near to far until a count is reached.

Notation: a leaf is a block of at most `BLOCK` records, stored one coordinate after the other, so that the distances from one
record to a whole block are computed side by side while each sum still runs over the coordinates in their order. The order in
which leaves are visited changes the time, never the result: every pair is decided by `sum_a (x_a - y_a)**2 <= r * r` alone.
Lists have a bounded length altogether; neighbours that are not listed are searched again by whoever needs them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabun.compiled import compiled
from sabun.outliers import memory, products

__all__ = ["BLOCK", "Graph", "Tree", "neighbours_of", "neighbours_within"]

BLOCK = 32
_FEW_VISITS = 64
"""Leaves a record may see before it waits: those that need more are packed together, so that each block is read for many."""

_SLACK = 1.0 + 1e-9
"""A box farther than this times the squared radius holds no neighbour, whatever the rounding in the box distance."""

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
_Short = NDArray[np.int32]


class Tree(NamedTuple):
    """Records in a balanced tree: node v has the children 2v, 2v + 1 and a box from low to high; the leaves come last."""

    rows: _Floats
    order: _Short
    first: _Integers
    low: _Floats
    high: _Floats
    blocks: _Floats


class Graph(NamedTuple):
    """Who is within a radius of whom.

    Attributes:
        tree: The records.
        squared_radius: Two records are neighbours when their canonical squared distance is at most this.
        counts: min(number of neighbours, limit) of each record.
        starts: Where a record's list starts in `lists`, its length being its count; -1 for records without a list.
        lists: The neighbours, record numbers in no particular order.
    """

    tree: Tree
    squared_radius: float
    counts: _Short
    starts: _Integers
    lists: _Short


def neighbours_within(
    points: _Floats,
    squared_radius: float,
    limit: int,
    *,
    listed: int | None = None,
    asking: NDArray[np.bool_] | None = None,
) -> Graph:
    """Counts the neighbours of each record up to a limit, listing them where the limit is not reached and the list is short.

    Args:
        points: Finite float64 matrix, one record a row.
        squared_radius: Two records are neighbours when their canonical squared distance is at most this.
        limit: Where counting may stop, at least 1.
        listed: The longest list that is kept; None takes what there is room for. It changes time and memory only.
        asking: Whose neighbours are counted; None counts everybody's. The count of any other record is 0.
    """
    rows = np.ascontiguousarray(points, dtype=np.float64)
    # Halving into equal parts keeps all leaves at one depth: a node's number alone says where it stands, without pointers.
    depth = 0
    while len(rows) > BLOCK << depth:
        depth += 1
    order, first, low, high = _grow(rows, depth)
    tree = Tree(rows, order, first, low, high, _blocks(rows, order, first, depth))
    longest = min(limit, len(rows), memory.MOST_LISTED // max(1, len(rows)) if listed is None else listed)
    counts = np.zeros(len(rows), dtype=np.int32)
    starts = np.full(len(rows), -1, dtype=np.int64)
    # First pass: each leaf asks for its own records, which lie close together and so need the same few leaves. A record in a
    # thin place would drag its pack through the whole tree; it waits for the second pass, where such records go together.
    wanted, packs = order, first
    if asking is not None:
        chosen = asking[order]
        wanted, packs = order[chosen], np.append(0, np.cumsum(chosen))[first]
    lists, waiting = _search(tree, squared_radius, limit, longest, wanted, packs, _FEW_VISITS, counts, starts, 0)
    if waiting.size and products.can_sift(rows, squared_radius):
        more = products.sifted(rows, waiting, squared_radius, limit, longest, counts, starts, lists.size)
    else:
        packs = np.append(np.arange(0, waiting.size, BLOCK), waiting.size)
        visits = len(tree.blocks) + 1
        more, _ = _search(tree, squared_radius, limit, longest, waiting, packs, visits, counts, starts, lists.size)
    return Graph(tree, squared_radius, counts, starts, np.concatenate([lists, more]))


@compiled
def neighbours_of(graph: Graph, record: int, found: _Short) -> int:
    """Writes the neighbours of a record, all of them, in no particular order; returns how many there are."""
    number = 0
    if graph.starts[record] >= 0:
        start, number = int(graph.starts[record]), int(graph.counts[record])
        found[:number] = graph.lists[start : start + number]
        return number
    tree, reach = graph.tree, graph.squared_radius * _SLACK
    leaves, row = tree.blocks.shape[0], tree.rows[record]
    sums = np.empty(BLOCK)
    stack = np.empty(128, dtype=np.int64)
    stack[0], top = 1, 0
    while top >= 0:
        node = stack[top]
        top -= 1
        if _distance_to_box(row, tree.low[node], tree.high[node], reach) > reach:
            continue
        if node < leaves:
            stack[top + 1], stack[top + 2] = 2 * node, 2 * node + 1
            top += 2
        elif _block_sums(row, tree.blocks[node - leaves], sums, graph.squared_radius):
            first = tree.first[node - leaves]
            for b in range(tree.first[node - leaves + 1] - first):
                other = tree.order[first + b]
                if sums[b] <= graph.squared_radius and other != record:
                    found[number] = other
                    number += 1
    return number


@compiled
def _grow(rows: _Floats, depth: int) -> tuple[_Short, _Integers, _Floats, _Floats]:
    """Halves the records along the widest side, level by level; node v has the children 2v, 2v + 1."""
    size, width = rows.shape
    leaves = 1 << depth
    order = np.arange(size).astype(np.int32)
    keys = np.empty(size)
    first = np.zeros(2 * leaves + 1, dtype=np.int64)
    last = np.zeros(2 * leaves + 1, dtype=np.int64)
    low = np.empty((2 * leaves, width))
    high = np.empty((2 * leaves, width))
    last[1] = size
    # Parents come before their children in this numbering, so one loop over the nodes has each range before it is halved.
    for node in range(1, 2 * leaves):
        start, end = first[node], last[node]
        widest, spread = 0, -1.0
        for a in range(width):
            least, most = np.inf, -np.inf
            for p in range(start, end):
                value = rows[order[p], a]
                least = min(least, value)
                most = max(most, value)
            low[node, a] = least
            high[node, a] = most
            if most - least > spread:
                widest, spread = a, most - least
        if node < leaves:
            middle = start + (end - start) // 2
            for p in range(start, end):
                keys[p] = rows[order[p], widest]
            _part(keys, order, start, end - 1, middle)
            first[2 * node], last[2 * node] = start, middle
            first[2 * node + 1], last[2 * node + 1] = middle, end
    bounds = np.empty(leaves + 1, dtype=np.int64)
    for leaf in range(leaves):
        bounds[leaf] = first[leaves + leaf]
    bounds[leaves] = size
    return order, bounds, low, high


@compiled
def _part(keys: _Floats, order: _Short, start: int, end: int, middle: int) -> None:
    """Moves the smallest keys before `middle` (Hoare's selection; records move with their keys)."""
    while start < end:
        a, b, c = keys[start], keys[(start + end) // 2], keys[end]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = start, end
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        # Keys between j and i equal the pivot: a middle there is in its place already, and many equal records end here at once.
        if middle <= j:
            end = j
        elif middle >= i:
            start = i
        else:
            return


@compiled
def _blocks(rows: _Floats, order: _Short, first: _Integers, depth: int) -> _Floats:
    """The leaves with coordinates outermost, filled up with infinitely distant records."""
    leaves, width = 1 << depth, rows.shape[1]
    blocks = np.full((leaves, width, BLOCK), np.inf)
    for leaf in range(leaves):
        for p in range(first[leaf], first[leaf + 1]):
            for a in range(width):
                blocks[leaf, a, p - first[leaf]] = rows[order[p], a]
    return blocks


@compiled
def _block_sums(row: _Floats, block: _Floats, sums: _Floats, squared_radius: float) -> bool:
    """Canonical squared distances from one record to a block; False as soon as no member can be a neighbour."""
    width = row.shape[0]
    sums[:] = 0.0
    a = 0
    while a + 4 <= width:
        w, x, y, z = row[a], row[a + 1], row[a + 2], row[a + 3]
        for b in range(BLOCK):
            p = w - block[a, b]
            q = x - block[a + 1, b]
            s = y - block[a + 2, b]
            t = z - block[a + 3, b]
            # Left to right: the same rounding as adding one coordinate after the other.
            sums[b] = (((sums[b] + p * p) + q * q) + s * s) + t * t
        a += 4
        if a % 8 == 0 and a < width:
            # Sums only grow, so a partial sum beyond the radius decides.
            near = 0
            for b in range(BLOCK):
                near += sums[b] <= squared_radius
            if near == 0:
                return False
    while a < width:
        x = row[a]
        for b in range(BLOCK):
            p = x - block[a, b]
            sums[b] = sums[b] + p * p
        a += 1
    near = 0
    for b in range(BLOCK):
        near += sums[b] <= squared_radius
    return near > 0


@compiled
def _gap(low: _Floats, high: _Floats, node: int, low_other: _Floats, high_other: _Floats, limit: float) -> float:
    """Squared distance between a node's box and another box, or something beyond the limit."""
    total = 0.0
    for a in range(low_other.shape[0]):
        distance = max(low[node, a] - high_other[a], low_other[a] - high[node, a])
        if distance > 0.0:
            total += float(distance * distance)
            if total > limit:
                return total
    return total


@compiled
def _search(
    tree: Tree,
    squared_radius: float,
    limit: int,
    longest: int,
    asking: _Short,
    packs: _Integers,
    visits: int,
    counts: _Short,
    starts: _Integers,
    offset: int,
) -> tuple[_Short, _Short]:
    """Answers packs of records, nearest leaves first; returns the lists, then the records that used up their visits."""
    rows, order, first, low, high, blocks = tree
    leaves, width = blocks.shape[0], rows.shape[1]
    reach = squared_radius * _SLACK
    lists = np.empty(1024, dtype=np.int32)
    waiting = np.empty(asking.shape[0], dtype=np.int32)
    used, waiters = 0, 0
    room = np.empty((BLOCK, longest), dtype=np.int32)
    found = np.zeros(BLOCK, dtype=np.int64)
    # A search holds at most one waiting sibling for each level: 128 is more than any tree that fits into a memory is deep.
    stack = np.empty(128, dtype=np.int64)
    sums, least, most = np.empty(BLOCK), np.empty(width), np.empty(width)
    for pack in range(packs.shape[0] - 1):
        members = asking[packs[pack] : packs[pack + 1]]
        _box(rows, members, least, most)
        found[:] = 0
        open_members, seen, top = members.shape[0], 0, 0
        stack[0] = 1
        while top >= 0 and open_members > 0 and seen < visits:
            node = stack[top]
            top -= 1
            if _gap(low, high, node, least, most, reach) > reach:
                continue
            if node >= leaves:
                leaf = node - leaves
                others = order[first[leaf] : first[leaf + 1]]
                open_members = _visit(
                    rows, low[node], high[node], others, blocks[leaf], squared_radius, limit, members, room, found, sums
                )
                seen += 1
                continue
            # The nearer child goes on top: limits are reached early, and what lies farther need not be opened any more.
            left = _gap(low, high, 2 * node, least, most, np.inf)
            right = _gap(low, high, 2 * node + 1, least, most, np.inf)
            near = 0 if left <= right else 1
            stack[top + 1] = 2 * node + 1 - near
            stack[top + 2] = 2 * node + near
            top += 2
        for m in range(members.shape[0]):
            record, number = members[m], found[m]
            # Only a search that ran out of visits leaves something on the stack with members still open; all others are final.
            if number < limit and top >= 0 and open_members > 0:
                waiting[waiters] = record
                waiters += 1
                continue
            counts[record] = number
            if number < limit and number <= longest:
                if used + number > lists.shape[0]:
                    longer = np.empty(2 * (used + number), dtype=np.int32)
                    longer[:used] = lists[:used]
                    lists = longer
                starts[record] = offset + used
                lists[used : used + number] = room[m, :number]
                used += number
    return lists[:used], waiting[:waiters]


@compiled
def _box(rows: _Floats, members: _Short, least: _Floats, most: _Floats) -> None:
    """The smallest box around some records."""
    least[:] = np.inf
    most[:] = -np.inf
    for m in range(members.shape[0]):
        for a in range(rows.shape[1]):
            least[a] = min(least[a], rows[members[m], a])
            most[a] = max(most[a], rows[members[m], a])


@compiled
def _visit(
    rows: _Floats,
    low: _Floats,
    high: _Floats,
    others: _Short,
    block: _Floats,
    squared_radius: float,
    limit: int,
    members: _Short,
    room: _Short,
    found: _Integers,
    sums: _Floats,
) -> int:
    """Adds the neighbours among the others of one leaf; returns how many members are still below the limit."""
    reach = squared_radius * _SLACK
    open_members = 0
    for m in range(members.shape[0]):
        if found[m] >= limit:
            continue
        row = rows[members[m]]
        # The pack's box was near enough; this one record may not be, and its distance to the box is cheaper than to a block.
        if _distance_to_box(row, low, high, reach) <= reach and _block_sums(row, block, sums, squared_radius):
            for b in range(others.shape[0]):
                if sums[b] <= squared_radius and others[b] != members[m] and found[m] < limit:
                    if found[m] < room.shape[1]:
                        room[m, found[m]] = others[b]
                    found[m] += 1
        open_members += found[m] < limit
    return open_members


@compiled
def _distance_to_box(row: _Floats, low: _Floats, high: _Floats, limit: float) -> float:
    """Squared distance from a record to a box, or something beyond the limit."""
    total = 0.0
    for a in range(row.shape[0]):
        distance = max(low[a] - row[a], row[a] - high[a])
        if distance > 0.0:
            total += float(distance * distance)
            if total > limit:
                return total
    return total
