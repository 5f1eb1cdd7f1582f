"""Exact sums of products of whole-number rows: the statistic that adds up.

The sums are whole numbers computed at the speed of matrix products, bit for bit independent of order, pieces or threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError, InternalError
from sabun.records import Chunks, NumberColumn, Schema, open_source
from sabun.records.tables import as_table
from sabun.regression.design import UNIT, Design, Floats

__all__ = ["Moments"]

_BLOCK = 4096
"""Rows multiplied at a time so that they stay in the processor's cache; cannot change any result."""


@final
@dataclass(frozen=True, kw_only=True)
class Moments:
    """Sums over records of row products, in units of UNIT**-2. PRIVATE: never leaves without noise.

    Args:
        rows: Number of records.
        products: Sum of (row, target) times its transpose, int64, shape (width + 1, width + 1).

    Example:
        >>> design = Design(features=Schema.of_bounds([(0, 1)]), target=NumberColumn(name="y", lower=0, upper=1, missing=0),
        ...                 intercept=False, radius=None)
        >>> x, y = np.array([[1.0], [0.5]]), np.array([1.0, 1.0])
        >>> whole = Moments.of(design, x, y)
        >>> parts = Moments.of(design, x[:1], y[:1]) + Moments.of(design, x[1:], y[1:])
        >>> bool((whole.products == parts.products).all())
        True
    """

    rows: int
    products: NDArray[np.int64]

    @classmethod
    def empty(cls, design: Design) -> Self:
        """The sums over no record."""
        return cls(rows=0, products=np.zeros((design.width + 1, design.width + 1), dtype=np.int64))

    @classmethod
    def of(cls, design: Design, features: object, target: object) -> Self:
        """The sums over tables in memory: features and targets, of the same length."""
        values = _feature_values(design, features)
        targets = design.encoded_target(target)
        if len(targets) != len(values):
            raise DataError("X and y must have the same number of rows; they do not.")
        return cls.of_values(design, values, targets)

    @classmethod
    def of_values(cls, design: Design, values: Floats, targets: Floats) -> Self:
        """The sums over feature values (see `Design.feature_values`) and encoded targets."""
        return cls(rows=len(values), products=_products(design, values, targets))

    @classmethod
    def of_source(cls, design: Design, source: object) -> Self:
        """The sums over a file, folder or stream that holds features and target under their names, in bounded memory."""
        if isinstance(source, Chunks):
            return sum((cls.of_source(design, piece) for piece in source.pieces()), cls.empty(design))
        together = Schema(columns=(*design.features.columns, design.target))
        if _is_plain(source) and design.takes_arrays:
            table = as_table(source, width=len(together.columns))
            return cls.of_values(design, table[:, :-1], design.encoded_target(table[:, -1]))  # type: ignore[arg-type]
        pieces = open_source(source, schema=together).partitions()
        parts = (cls.of_values(design, design.feature_values(piece[:, :-1]), piece[:, -1]) for piece in pieces)
        return sum(parts, cls.empty(design))

    def __add__(self, other: Self) -> Self:
        """The sums over the records of both."""
        return type(self)(rows=self.rows + other.rows, products=self.products + other.products)

    def scaled(self, design: Design) -> tuple[Floats, Floats, float]:
        """A, c, q as floats in row units, without noise. PRIVATE."""
        table = self.products / float(UNIT**2)
        return table[:-1, :-1] / design.shrink**2, table[:-1, -1] / design.shrink, float(table[-1, -1])


def _feature_values(design: Design, features: object) -> Floats:
    """Feature values in own units; a plain array of numbers is left as it is, to be clipped block by block."""
    if _is_plain(features) and design.takes_arrays:
        return as_table(features, width=len(design.features.columns))  # type: ignore[return-value]
    return design.feature_values(open_source(features, schema=design.features).matrix())


def _is_plain(table: object) -> bool:
    """Whether a table is an array of numbers, which needs no encoding but clipping."""
    return type(table) is np.ndarray and table.dtype.kind in "biuf" and table.ndim == 2


def _products(design: Design, values: Floats, targets: Floats) -> NDArray[np.int64]:
    total = np.zeros((design.width + 1, design.width + 1), dtype=np.int64)
    buffer = np.empty((min(_BLOCK, len(values)), values.shape[1]))
    for start in range(0, len(values), _BLOCK):
        piece = values[start : start + _BLOCK]
        total += _block_products(design, piece, targets[start : start + _BLOCK], buffer[: len(piece)])
    return total


def _block_products(design: Design, piece: Floats, goals: Floats, body: Floats) -> NDArray[np.int64]:
    constant = design.whole_rows(piece, body)
    inner = body.T @ body
    if not np.isfinite(inner).all():  # a missing cell: fill it by the public rule, then do the same again
        constant = design.whole_rows(_filled(design, piece), body)
        inner = body.T @ body  # proof: exact-product
    side = np.empty((len(body), design.intercept + 1))
    side[:, 0] = constant
    side[:, -1] = design.whole_targets(goals)
    lengths = np.einsum("ij,ij->i", body, body) + np.square(constant)
    if lengths.max(initial=0.0) > UNIT**2:  # proof: in-ball
        raise InternalError("a row left the unit ball.")
    across = body.T @ side
    return np.block([[inner, across], [across.T, side.T @ side]]).astype(np.int64)


def _filled(design: Design, piece: Floats) -> Floats:
    missing = np.array([column.missing for column in design.features.columns if isinstance(column, NumberColumn)])
    return np.where(np.isnan(piece), missing, piece)
