"""Plain definitions, written without looking at the code under test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Database = tuple[tuple[float, ...], ...]


def within(points: NDArray[np.float64], radius: float) -> NDArray[np.bool_]:
    """The canonical decision, one coordinate after the other."""
    squared = np.zeros((len(points), len(points)))
    for a in range(points.shape[1]):
        gap = points[:, None, a] - points[None, :, a]
        squared = squared + gap * gap
    near = squared <= radius * radius
    np.fill_diagonal(near, False)
    return near


def is_outlier(database: Database, k: int, radius: float) -> list[bool]:
    if not database:
        return []
    return [bool(d < k) for d in within(np.array(database, dtype=float), radius).sum(axis=1)]


def count(database: Database, k: int, radius: float) -> int:
    return sum(is_outlier(database, k, radius))


def databases(domain: Sequence[tuple[float, ...]], n: int) -> Iterator[Database]:
    """Every multiset of n records."""
    return itertools.combinations_with_replacement(sorted(domain), n)


def replaced(database: Database, domain: Sequence[tuple[float, ...]]) -> set[Database]:
    """Every database one replacement away."""
    found = set()
    for i in range(len(database)):
        rest = database[:i] + database[i + 1 :]
        found |= {tuple(sorted((*rest, place))) for place in domain}
    return found - {database}


def removed(database: Database) -> set[Database]:
    return {database[:i] + database[i + 1 :] for i in range(len(database))}


def line(length: int) -> list[tuple[float, ...]]:
    return [(float(x),) for x in range(length)]


def square(side: int) -> list[tuple[float, ...]]:
    return [(float(x), float(y)) for x in range(side) for y in range(side)]
