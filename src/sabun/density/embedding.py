"""The mean embedding of a table in a public feature space, with its certified sensitivity.

Notation: k the kernel, C = (c_1 … c_b) the public centres, K = [k(c_i, c_j)], phi(x) = (k(x, c_l))_l. W (b x r) whitens:
W^T K W is close to the identity, so that psi(x) = W^T phi(x) is close to an orthogonal projection of k(x, .). `Lattice` holds
A = rint(2**32 W U), U public and orthonormal; the released vector is A^T S with S = sum of q(x), q = rint(2**30 phi).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.density.kernel import UNIT_BITS, VALUE_ERROR, WHOLE_ERROR, Floats, GaussianKernel
from sabun.errors import InternalError
from sabun.privacy.certified import sqrt_up

__all__ = ["Lattice", "lattice", "rounded", "whitening"]

_CUT = 1e-6
"""Eigenvalues of K below this share of the largest are dropped."""

_MATRIX_BITS = 32
_ROUNDING = 2.0**-53


@dataclass(frozen=True, kw_only=True, eq=False)
class Lattice:
    """A public whole-number matrix with what one record can change through it.

    Attributes:
        matrix: A, shape (b, k), whole numbers as floats.
        bits: One unit of A^T S is 2**-bits of the embedding.
        replace: L2 sensitivity of A^T S when one record is replaced by any other, in those units.
        add: L2 norm of what one record adds to A^T S, in those units.
    """

    matrix: Floats
    bits: int
    replace: Fraction
    add: Fraction

    @property
    def rank(self) -> int:
        """The number of released coordinates."""
        return int(self.matrix.shape[1])

    def embed(self, sums: NDArray[Any]) -> list[int]:
        """A^T S in exact whole numbers."""
        columns = self.matrix.T.astype(np.int64).astype(object)
        return [int(value) for value in columns @ sums]  # proof: exact-product

    def joint(self) -> Fraction:
        """L2 sensitivity of (A^T S, 2**bits off, 2**bits count) when one record is added, removed or replaced, in those units.

        S sums the covered records alone, `off` counts the others, `count` counts all.
        """
        unit = Fraction(2) ** self.bits
        return max(sqrt_up(max(self.add, unit) ** 2 + unit**2), self.replace)  # proof: joint


def whitening(kernel: GaussianKernel) -> Floats:
    """W with W^T K W close to the identity, from the eigenvalues of K that are not tiny."""
    values, vectors = np.linalg.eigh(kernel.gram())
    kept = values > _CUT * values[-1]
    result: Floats = vectors[:, kept][:, ::-1] / np.sqrt(values[kept][::-1])
    return result


def rounded(matrix: Floats) -> Floats:
    """The matrix as `lattice` uses it: entries are whole multiples of 2**-32."""
    return np.ldexp(np.rint(np.ldexp(matrix, _MATRIX_BITS)), -_MATRIX_BITS)


def lattice(kernel: GaussianKernel, matrix: Floats) -> Lattice:
    """Rounds a public matrix to whole numbers, then bounds what one record can change through them.

    Args:
        kernel: The kernel whose values are summed.
        matrix: Any public b x k matrix with entries below 2**20; the bounds are useful when it whitens.
    """
    shrunk = rounded(matrix)
    whole = np.ldexp(shrunk, _MATRIX_BITS)  # exact: a power of two
    if not (np.abs(whole) < 2.0**52).all():
        raise InternalError("the whitening matrix is too large to be rounded exactly.")
    norm = sqrt_up(Fraction(_largest_eigenvalue(kernel.gram(), shrunk)))  # proof: certified-norm
    frobenius = sqrt_up(Fraction(_sum_of_squares(whole), 4**_MATRIX_BITS))
    rounding = frobenius * sqrt_up(Fraction(kernel.size)) * WHOLE_ERROR / 2**UNIT_BITS  # proof: rounding-slack
    unit = Fraction(2) ** (_MATRIX_BITS + UNIT_BITS)
    return Lattice(
        matrix=whole,
        bits=_MATRIX_BITS + UNIT_BITS,
        replace=unit * (sqrt_up(Fraction(2)) * norm + 2 * rounding),  # proof: replace
        add=unit * (norm + rounding),  # proof: add
    )


def _sum_of_squares(whole: Floats) -> int:
    return sum(int(value) ** 2 for value in whole.ravel())


def _largest_eigenvalue(gram: Floats, matrix: Floats) -> float:
    """A float not below the largest eigenvalue of matrix^T K matrix, where K is the true kernel matrix behind `gram`.

    The largest absolute row sum bounds every eigenvalue; each entry is raised by its own rounding error.
    """
    size = len(gram)
    product = np.abs(matrix.T @ gram @ matrix)
    sizes = np.abs(matrix)
    relative = 2 * (size + 2) * _ROUNDING
    error = relative / (1 - relative) * (sizes.T @ gram @ sizes) + VALUE_ERROR * np.outer(sizes.sum(axis=0), sizes.sum(axis=0))
    return float((product + error).sum(axis=1).max()) * (1 + 2.0**-30)  # proof: row-sums
