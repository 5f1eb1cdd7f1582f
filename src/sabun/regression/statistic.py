"""Exact sums of products of whole-number rows: the statistic that adds up.

The sums are whole numbers computed at the speed of matrix products, bit for bit independent of order, pieces or threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError, InternalError
from sabun.records import Chunks, NumberColumn, Persons, Schema, open_source
from sabun.records.tables import as_table
from sabun.regression.design import UNIT, Design, Floats

__all__ = ["BLOCK", "Block", "Labelled", "Moments", "Totals", "filled", "must_be_in_ball"]

BLOCK = 4096
"""Rows multiplied at a time so that they stay in the processor's cache; cannot change any result."""

_SAMPLE = 64
_STRIDES = 0.6180339887498949, 0.7548776662466927


class Labelled(NamedTuple):
    """A source in two tables of the same length: features and targets."""

    features: object
    target: object


Block: TypeAlias = tuple[Floats, Floats]
"""Feature values (see `Design.feature_values`) and encoded targets of some records. PRIVATE."""


@final
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Totals:
    """Totals over records of row products, in units of UNIT**-2. PRIVATE: never leaves without noise.

    Args:
        rows: Number of records.
        products: Sum of (row, target) times its transpose, int64, shape (width + 1, width + 1).
    """

    rows: int
    products: NDArray[np.int64]


@final
@dataclass(frozen=True, kw_only=True)
class Moments:
    """The sums that a regression needs: a `Statistic`, whose state is `Totals`.

    Args:
        design: The public map from records to rows.

    Example:
        >>> from sabun.asking import state_of
        >>> moments = Moments(design=Design(features=Schema.of_bounds([(0, 1)]), intercept=False, radius=None,
        ...                                 target=NumberColumn(name="y", lower=0, upper=1, missing=0)))
        >>> x, y = np.array([[1.0], [0.5]]), np.array([1.0, 1.0])
        >>> whole = state_of(moments, Labelled(x, y))
        >>> parts = [state_of(moments, Labelled(x[piece], y[piece])) for piece in (slice(1), slice(1, 2))]
        >>> moments.pack(moments.merge(*parts)) == moments.pack(whole)
        True
    """

    design: Design

    @property
    def name(self) -> str:
        """What is summed."""
        return "sums of products"

    def blocks(self, source: object) -> Iterator[Block]:
        """The records of a file, folder, stream or table that holds features and target under their names, or of two tables.

        Of `persons` there is one record each, in an order of their own at each call; the pieces of a stream are no persons.

        Raises:
            DataError: It does not fit the declared columns, or the two tables differ in length.
        """
        if isinstance(source, Chunks):
            for piece in source.pieces():
                if isinstance(piece, Persons):
                    raise DataError("a table with several rows per person must be whole; got one in a stream of tables.")
                yield from self.blocks(piece)
        elif isinstance(source, Labelled):
            yield self._pair(source)
        else:
            yield from self._together(source)

    @property
    def schema(self) -> Schema:
        """What is declared about a table that holds features and target."""
        return Schema(columns=(*self.design.features.columns, self.design.target), file=self.design.features.file)

    def zero(self) -> Totals:
        """No records."""
        return Totals(rows=0, products=np.zeros((self.design.width + 1, self.design.width + 1), dtype=np.int64))

    def add(self, state: Totals, block: Block) -> Totals:
        """With one more block."""
        values, targets = block
        return Totals(rows=state.rows + len(values), products=state.products + _products(self.design, values, targets))

    def merge(self, left: Totals, right: Totals) -> Totals:
        """The records of both."""
        return Totals(rows=left.rows + right.rows, products=left.products + right.products)

    def pack(self, state: Totals) -> bytes:
        """As bytes: the number of records, then the products row by row, 8 bytes each."""
        return np.append(np.int64(state.rows), state.products.ravel()).astype("<i8").tobytes()

    def unpack(self, content: bytes) -> Totals:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        side = self.design.width + 1
        if len(content) != 8 * (1 + side**2):
            raise DataError("sums must be bytes that the same statistic packed; they are not.")
        numbers = np.frombuffer(content, dtype="<i8").astype(np.int64)
        rows, products = int(numbers[0]), numbers[1:].reshape(side, side)
        if rows < 0 or not np.array_equal(products, products.T):
            raise DataError("sums must be bytes that the same statistic packed; they are not.")
        return Totals(rows=rows, products=products)

    def sample(self) -> Block:
        """Made-up records that fill the bounds evenly and go beyond them."""
        centres, halves = self.design.centres
        middle, half = self.design.target_range
        steps = np.arange(1, _SAMPLE + 1)
        spread = 2.2 * np.modf(np.outer(steps, _STRIDES[0] * np.arange(1, len(halves) + 1)))[0] - 1.1
        return centres + halves * spread, middle + half * (2.2 * np.modf(steps * _STRIDES[1])[0] - 1.1)

    def _pair(self, source: Labelled) -> Block:
        values, targets = self._features(source.features), self.design.encoded_target(source.target)
        if len(targets) != len(values):
            raise DataError("X and y must have the same number of rows; they do not.")
        return values, targets

    def _features(self, features: object) -> Floats:
        """Feature values in own units; a plain array of numbers is left as it is, to be clipped block by block."""
        if _is_plain(features) and self.design.takes_arrays:
            return as_table(features, width=len(self.design.features.columns))  # type: ignore[return-value]
        return self.design.feature_values(open_source(features, schema=self.design.features).matrix())

    def _together(self, source: object) -> Iterator[Block]:
        if _is_plain(source) and self.design.takes_arrays:
            table = as_table(source, width=len(self.schema.columns))
            yield table[:, :-1], self.design.encoded_target(table[:, -1])  # type: ignore[misc]
            return
        for piece in open_source(source, schema=self.schema, by_person=True).partitions():
            yield self.design.feature_values(piece[:, :-1]), piece[:, -1]


def _is_plain(table: object) -> bool:
    """Whether a table is an array of numbers, which needs no encoding but clipping."""
    return type(table) is np.ndarray and table.dtype.kind in "biuf" and table.ndim == 2


def _products(design: Design, values: Floats, targets: Floats) -> NDArray[np.int64]:
    total = np.zeros((design.width + 1, design.width + 1), dtype=np.int64)
    buffer = np.empty((min(BLOCK, len(values)), values.shape[1]))
    for start in range(0, len(values), BLOCK):
        piece = values[start : start + BLOCK]
        total += _block_products(design, piece, targets[start : start + BLOCK], buffer[: len(piece)])
    return total


def _block_products(design: Design, piece: Floats, goals: Floats, body: Floats) -> NDArray[np.int64]:
    constant, weights = design.whole_rows(piece, body)
    inner = body.T @ body
    if not np.isfinite(inner).all():  # a missing cell: fill it by the public rule, then do the same again
        constant, weights = design.whole_rows(filled(design, piece), body)
        inner = body.T @ body  # proof: exact-product
    side = np.empty((len(body), design.intercept + 1))
    side[:, 0] = constant
    side[:, -1] = design.whole_targets(goals, weights)
    must_be_in_ball(body, constant)
    across = body.T @ side
    whole, width = np.empty((design.width + 1, design.width + 1), dtype=np.int64), len(inner)
    whole[:width, :width], whole[:width, width:], whole[width:, :width] = inner, across, across.T
    whole[width:, width:] = side.T @ side
    return whole


def must_be_in_ball(body: Floats, constant: Floats | float) -> None:
    """Checks once more what cannot be otherwise."""
    lengths = np.einsum("ij,ij->i", body, body) + np.square(constant)
    if lengths.max(initial=0.0) > UNIT**2:  # proof: in-ball
        raise InternalError("a row left the unit ball.")


def filled(design: Design, piece: Floats) -> Floats:
    """The feature values with the public constant where a cell is missing."""
    missing = np.array([column.missing for column in design.features.columns if isinstance(column, NumberColumn)])
    return np.where(np.isnan(piece), missing, piece)
