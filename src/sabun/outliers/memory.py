"""How much memory a count can need at most, from public facts alone; it is asked for before anything is charged.

Notation: n records with d coordinates, degrees counted up to a limit. Lists of neighbours never hold more than `MOST_LISTED`
entries together and graphs of bits never more than `MOST_BITS` records; what does not fit is found again each time it is
needed, so that memory grows with n d whatever the table holds, and with n * n only up to a public constant.
"""

from __future__ import annotations

import numpy as np

from sabun.errors import DataError

__all__ = ["MOST_BITS", "MOST_LISTED", "check_memory", "listed_in_graph", "most_bytes"]

MOST_LISTED = 1 << 26
"""Entries of all neighbour lists of a graph together: a quarter of a gigabyte."""

MOST_BITS = 1 << 17
"""Records of a graph of bits: two gigabytes."""

_COORDINATE = 96
"""Bytes for each coordinate: the table, its band, a tree of blocks that may be half empty, products in single precision."""

_RECORD = 512
"""Bytes for each record: degrees, orders, places, queues."""

_ENTRY = 12
"""Bytes for each entry of a list: it is kept three times over while lists grow."""

_TILES = 64 << 20
_SQUARE = {"degeneracy": 0, "link-core": 9, "exact": 32}
"""Bytes for each pair in a band that the slow covers need, which are meant for small tables."""


def most_bytes(*, n: int, d: int, limit: int, cover: str, covers: int = 1) -> int:
    """The most bytes that a ladder over a table of this shape can take.

    Args:
        n: Number of records.
        d: Number of coordinates.
        limit: Where counting neighbours stops.
        cover: One of the ladder's covers.
        covers: How many covers are held at a time.
    """
    lists = _ENTRY * min(n * min(n, limit), MOST_LISTED)
    graph = max(_ENTRY * listed_in_graph(n) * n, n * (n + 64) // 8 if n <= MOST_BITS else 0)
    return _TILES + n * (_COORDINATE * d + _RECORD) * covers + lists + covers * (graph + _SQUARE[cover] * n * n)


def listed_in_graph(n: int) -> int:
    """How many neighbours of one record are listed at most in a graph of n records: a little more room than bits would take."""
    return min(max(64, n // 32), MOST_LISTED // max(n, 1))


def check_memory(*, n: int, d: int, limit: int, cover: str, covers: int = 1) -> None:
    """Takes the most memory that a table of this shape can need, then gives it back.

    Raises:
        DataError: It cannot be had. Whether it can depends on public facts, never on what the records hold.
    """
    try:
        np.empty(most_bytes(n=n, d=d, limit=limit, cover=cover, covers=covers), dtype=np.uint8)
    except (MemoryError, ValueError):  # numpy calls a size beyond every address a ValueError
        raise DataError(
            "the table must be small enough for its ladder of bounds to fit into memory; got a table that is not. Nothing was "
            "charged. Give the process more memory, take the cover 'degeneracy', or a global mechanism, which has no ladder."
        ) from None
