"""A weighted table with what its release knows: what `sabun density query` asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sabun.density.answers import Answer, must_name_columns
from sabun.density.crowding import NOWHERE, Crowding
from sabun.density.export import WEIGHT, read_back
from sabun.density.expression import Expression
from sabun.density.figures import Means, Weighted, answered, as_numbers
from sabun.density.saved import features_from, is_embedding
from sabun.density.weighting import restored
from sabun.errors import DataError
from sabun.records import NumberColumn, Schema
from sabun.release import Release

__all__ = ["Known"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """A weighted table with what its release knows.

    Attributes:
        noisy: Whether the release tells how far answers may be off; the default method's does.
        frame: The public table without its weights.
        means: What answers questions about means.
        schema: What was declared about the columns, if anything was.
        crowding: What the public table says about how far its rows can be told apart.
        others: The columns that weights never compared; None where nobody knows.
    """

    noisy: bool
    frame: Any
    means: Means
    schema: Schema | None
    crowding: Crowding
    others: list[str] | None

    @classmethod
    def of(cls, table: Path, release: Release | None, *, missing: str) -> Self:
        """Reads a table that `sabun density weights` wrote.

        Args:
            table: Its file.
            release: What lies beside it, if anything does.
            missing: The name under which a release would lie there.

        Raises:
            DataError: It has no weights, or others than the release.
        """
        features = None if release is None else features_from(release)
        frame, schema = read_back(table, None if features is None else features.schema)
        if WEIGHT not in frame.columns:
            raise DataError(f"{table.name} has no column {WEIGHT!r}. Use a table that `sabun density weights` wrote.")
        mass, frame = frame[WEIGHT].to_numpy(dtype=float), frame.drop(columns=WEIGHT)
        # The cells mean what they meant when the weights were made: numbers inside their bounds, whatever else a cell holds.
        known = [column for column in (() if schema is None else schema.columns) if column.name in frame.columns]
        days = {column.name: frame[column.name] for column in known if isinstance(column, NumberColumn) and column.dates}
        frame = as_numbers(frame, schema)
        noisy = release is not None and is_embedding(release)
        if release is not None and noisy:
            # A release knows its table by the dates themselves: numbers are none.
            ratio = restored(release, frame.assign(**days))
            means, crowding = ratio.means, ratio.crowding
        else:
            means, crowding = _weighted(release, mass, missing), NOWHERE
        others = None if features is None else [str(name) for name in frame.columns if name not in features.names]
        return cls(noisy=noisy, frame=frame, means=means, schema=schema, crowding=crowding, others=others)

    def answer(self, question: str, **how: Any) -> dict[str, Answer]:
        """The answers to a question, as `answered` gives them."""
        return answered(question, self.frame, self.means, schema=self.schema, crowding=self.crowding, **how)

    def named(self, question: str) -> frozenset[str]:
        """The columns that a question is about."""
        return Expression.read(question, tuple(map(str, self.frame.columns))).columns_asked(self.frame)

    def must_have(self, names: Iterable[str]) -> None:
        """Refuses names of columns that the table does not have."""
        must_name_columns(names, list(map(str, self.frame.columns)))


def _weighted(release: Release | None, mass: Any, missing: str) -> Means:
    """The weights alone, which know nothing of their error."""
    if release is None:
        return Weighted(mass=mass, reason=f"there is no {missing}, which holds the noise and the share of uncovered rows")
    reason = f"method {release.provenance.parameters.get('method')!r} does not release how far answers may be off"
    records = release.provenance.parameters.get("private_rows")
    return Weighted(mass=mass, reason=reason, records=records if isinstance(records, int) else None)
