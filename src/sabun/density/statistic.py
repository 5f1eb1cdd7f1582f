"""What is remembered of private records while they stream past: whole-number sums that add up in any order, in any pieces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.density.features import Features
from sabun.density.kernel import Floats
from sabun.errors import DataError, ParameterError
from sabun.records import Schema

__all__ = ["NOT_PRIVATE", "PointSums", "Tally", "must_match"]

NOT_PRIVATE = "NOT PRIVATE: sums of private records without noise; keep them with the records"


@final
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tally:
    """The state of `PointSums`. NOT PRIVATE until noise is in it.

    Attributes:
        sums: Python integers, one for each coordinate.
        count: How many records they are of.
        note: Stands in every pickle, so that whoever opens one reads it.
    """

    sums: NDArray[Any]
    count: int
    note: str = NOT_PRIVATE

    def __repr__(self) -> str:
        return f"<Tally of {len(self.sums)} sums: NOT PRIVATE, keep it with the records>"


@final
@dataclass(frozen=True, kw_only=True)
class PointSums:
    """Sums over records of whole numbers that depend on one record each; a `Statistic`.

    Guarantee: exact arithmetic, so any order and any split into parts that are merged give the same state, bit for bit.

    Args:
        plan: Names the public table, the settings and what is summed; statistics that share it mean the same.
        size: How many sums there are.
        measure: The sums over some points, each point by itself.
        features: How a record becomes a point.
        example: Some public points.
    """

    plan: str
    size: int
    measure: Callable[[Floats], NDArray[Any]] = field(compare=False, repr=False)
    features: Features = field(compare=False, repr=False)
    example: Floats = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """What is summed."""
        return "sums over points"

    @property
    def schema(self) -> Schema | None:
        """What is declared about the columns; others need not travel."""
        return self.features.schema

    def blocks(self, source: object) -> Iterable[Floats]:
        """The points of a table, some at a time."""
        return self.features.chunks(source, by_person=True)

    def zero(self) -> Tally:
        """No records."""
        return Tally(sums=np.zeros(self.size, dtype=object), count=0)

    def add(self, state: Tally, block: Floats) -> Tally:
        """With the records behind some points."""
        return Tally(sums=state.sums + self.measure(block), count=state.count + len(block))

    def merge(self, left: Tally, right: Tally) -> Tally:
        """Both together."""
        return Tally(sums=left.sums + right.sums, count=left.count + right.count)

    def pack(self, state: Tally) -> bytes:
        """As bytes."""
        return json.dumps([state.count, *(int(value) for value in state.sums)], separators=(",", ":")).encode()

    def unpack(self, content: bytes) -> Tally:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        try:
            count, *sums = (int(value) for value in json.loads(content))
        except (ValueError, TypeError):
            raise DataError("sums must be bytes that the same statistic packed; they are not.") from None
        if len(sums) != self.size or count < 0:
            raise DataError(f"sums must be {self.size} whole numbers and their count; they are not.")
        return Tally(sums=np.array(sums, dtype=object), count=count)

    def sample(self) -> Floats:
        """Some public points."""
        return self.example


def must_match(same: bool) -> None:
    """Refuses parts whose sums do not mean the same."""
    if not same:
        raise ParameterError(
            "both parts must be prepared with the same public table and the same settings; got different ones. "
            "Call set_public with the same table on each part."
        )
