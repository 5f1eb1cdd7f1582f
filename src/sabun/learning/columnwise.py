"""Arithmetic on columns, each computed by itself whatever stands beside it; proved in columnwise.proof.md.

A matrix library picks its code by the place of a column in a block, and in 32 bits some of that code fuses a multiplication
into an addition where other code rounds twice. Here every number is one chain of fused steps in the order written, so that its
bits follow from its own column. The loops run along the columns, which is what a compiler turns into vector code.

Importing this module imports numba: `passes` does so when the first passes are made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray

from sabun.compiled import compiled

__all__ = ["add_squares", "product", "rectify", "scale", "zero_unless"]

_Numbers = NDArray[Any]


def _multiply_and_add(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once on every machine."""
    return a(a, b, c), lambda context, builder, signature, numbers: builder.fma(*numbers)


_fused: Any = intrinsic(_multiply_and_add)


@compiled
def _eight(left: _Numbers, i: int, k: int) -> tuple[Any, ...]:
    return (
        left[i, k],
        left[i, k + 1],
        left[i, k + 2],
        left[i, k + 3],
        left[i, k + 4],
        left[i, k + 5],
        left[i, k + 6],
        left[i, k + 7],
    )


@compiled
def _chain(w: tuple[Any, ...], x: tuple[Any, ...], start: Any) -> Any:
    """The start with eight terms added, one after the other."""
    half = _fused(w[3], x[3], _fused(w[2], x[2], _fused(w[1], x[1], _fused(w[0], x[0], start))))
    return _fused(w[7], x[7], _fused(w[6], x[6], _fused(w[5], x[5], _fused(w[4], x[4], half))))


@compiled
def product(left: _Numbers, columns: _Numbers, out: _Numbers) -> None:
    """Puts left times columns into out.

    Four rows of out and eight of the columns are worked on together, so that a number that was fetched from memory serves
    several times; for each number of out the terms are added in the order of the rows all the same.
    """
    rows, depth = left.shape
    full, end = rows - rows % 4, depth - depth % 8
    out[:] = 0
    for i in range(0, full, 4):
        p, q, r, s = out[i], out[i + 1], out[i + 2], out[i + 3]
        for k in range(0, end, 8):
            a, b, c, d = _eight(left, i, k), _eight(left, i + 1, k), _eight(left, i + 2, k), _eight(left, i + 3, k)
            x0, x1, x2, x3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
            x4, x5, x6, x7 = columns[k + 4], columns[k + 5], columns[k + 6], columns[k + 7]
            for j in range(len(p)):
                x = (x0[j], x1[j], x2[j], x3[j], x4[j], x5[j], x6[j], x7[j])  # proof: eight
                p[j], q[j], r[j], s[j] = _chain(a, x, p[j]), _chain(b, x, q[j]), _chain(c, x, r[j]), _chain(d, x, s[j])
    for i in range(rows):
        p = out[i]
        for k in range(end if i < full else 0, depth):
            weight, x0 = left[i, k], columns[k]
            for j in range(len(p)):
                p[j] = _fused(weight, x0[j], p[j])  # proof: one


@compiled
def rectify(values: _Numbers) -> None:
    """Zeros in the place of what is not above zero."""
    for i in range(len(values)):
        value = values[i]
        for j in range(len(value)):
            value[j] = value[j] if value[j] > 0 else np.float32(0)


@compiled
def zero_unless(values: _Numbers, above: _Numbers) -> None:
    """Zeros in the place of values where the other is not above zero."""
    for i in range(len(values)):
        value, other = values[i], above[i]
        for j in range(len(value)):
            value[j] = value[j] if other[j] > 0 else np.float32(0)


@compiled
def add_squares(rows: _Numbers, squares: NDArray[np.float64]) -> None:
    """Adds each column's squares, in doubles."""
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(row)):
            value = np.float64(row[j])
            squares[j] += value * value


@compiled
def scale(values: _Numbers, shares: _Numbers, out: _Numbers) -> None:
    """Puts each column times its share into out, in the type of shares and out."""
    for i in range(len(values)):
        value, place = values[i], out[i]
        for j in range(len(value)):
            place[j] = value[j] * shares[j]
