from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sabun.density.embedding import Lattice, lattice, rounded, whitening
from sabun.density.kernel import GaussianKernel

SETTINGS = [(1, 50, 0.3), (1, 50, 1.4), (2, 40, 0.05), (5, 60, 3.0), (3, 30, 50.0), (2, 1, 1.0)]


def made(columns: int, size: int, bandwidth: float, *, copies: bool = False) -> tuple[GaussianKernel, np.ndarray, Lattice]:
    centres = np.random.default_rng(size).normal(size=(size, columns))
    if copies:
        centres[size // 2 :] = centres[: size - size // 2]
    kernel = GaussianKernel.of(centres, bandwidth=bandwidth)
    return kernel, centres, lattice(kernel, whitening(kernel))


def change(kernel: GaussianKernel, grid: Lattice, one: np.ndarray, other: np.ndarray) -> float:
    """The length of the change of A^T S, in units of 2**-bits, when one row is replaced by another."""
    difference = [a - b for a, b in zip(grid.embed(kernel.sums(one)), grid.embed(kernel.sums(other)), strict=True)]
    return float(Fraction(sum(d * d for d in difference))) ** 0.5


@pytest.mark.parametrize(("columns", "size", "bandwidth"), SETTINGS)
@pytest.mark.parametrize("copies", [False, True])
def test_no_neighbour_changes_more_than_certified(columns: int, size: int, bandwidth: float, copies: bool) -> None:
    kernel, centres, grid = made(columns, size, bandwidth, copies=copies)
    rng = np.random.default_rng(7)
    rows = [centres, centres[:5] + bandwidth * 10, rng.normal(size=(10, columns)) * 3, np.full((1, columns), 1e6)]
    rows.append(np.full((1, columns), np.nan))
    candidates = np.vstack(rows)[rng.permutation(sum(map(len, rows)))][:25]
    worst = max(change(kernel, grid, a[None], b[None]) for a in candidates for b in candidates)
    assert worst <= grid.replace
    single = max(float(Fraction(sum(v * v for v in grid.embed(kernel.sums(a[None])))) ** 0.5) for a in candidates)
    assert single <= grid.add
    assert (single**2 + 4.0**grid.bits) ** 0.5 <= grid.joint() * (1 + 1e-12)
    assert worst <= grid.joint()


@pytest.mark.parametrize(("columns", "size", "bandwidth"), SETTINGS)
def test_the_certificate_is_close_to_the_square_root_of_two(columns: int, size: int, bandwidth: float) -> None:
    _, _, grid = made(columns, size, bandwidth)
    assert 2**0.5 - 1e-9 <= float(grid.replace / 2**grid.bits) < 1.4148


def test_the_certificate_is_nearly_reached() -> None:
    kernel, centres, grid = made(1, 50, 0.3)
    far = np.array([[centres.max() + 100]])
    assert change(kernel, grid, np.array([centres.min(axis=0)]), np.array([centres.max(axis=0)])) > 1.3 * 2.0**grid.bits
    assert change(kernel, grid, centres[:1], far) > 0.9 * 2.0**grid.bits


def test_the_norm_bound_holds_in_fifty_digits() -> None:
    kernel, _, grid = made(2, 12, 0.8)
    with mpmath.workdps(50):
        points = kernel.centres.T
        gram = mpmath.matrix(12, 12)
        for i in range(12):
            for j in range(12):
                gram[i, j] = mpmath.exp(
                    -64 * sum((mpmath.mpf(a) - mpmath.mpf(b)) ** 2 for a, b in zip(points[i], points[j], strict=True))
                )
        matrix = mpmath.matrix((grid.matrix / 2**32).tolist())
        largest = max(mpmath.eigsy(matrix.T * gram * matrix, eigvals_only=True))
        assert mpmath.sqrt(largest) <= mpmath.mpf(grid.add.numerator) / grid.add.denominator / 2**grid.bits


def test_any_public_matrix_is_certified_not_only_a_whitening_one() -> None:
    kernel, centres, _ = made(2, 20, 0.7)
    grid = lattice(kernel, np.random.default_rng(0).normal(size=(20, 4)))
    worst = max(change(kernel, grid, a[None], b[None]) for a in centres for b in centres)
    assert worst <= grid.replace


def test_a_kernel_by_matrix_products_would_break_the_bound() -> None:
    """|x|^2 + |c|^2 - 2xc loses all digits when points are far from zero and close together."""
    rng = np.random.default_rng(0)
    centres = 1e4 + 1e-4 * rng.normal(size=(30, 5))
    kernel = GaussianKernel.of(centres, bandwidth=1e-4)
    white = rounded(whitening(kernel))

    def careless(x: np.ndarray) -> np.ndarray:
        squared = (x**2).sum(1)[:, None] + (centres**2).sum(1)[None] - 2 * x @ centres.T
        return np.exp(-np.maximum(squared, 0) / (2 * 1e-8)) @ white

    found, sound = careless(centres), kernel.values(centres) @ white
    spread = lambda psi: max(np.linalg.norm(a - b) for a in psi for b in psi)  # noqa: E731
    assert spread(found) > 1.5
    assert spread(sound) <= float(lattice(kernel, whitening(kernel)).replace / 2**62)


def test_products_are_exact_for_sums_of_any_size() -> None:
    kernel, _, grid = made(1, 5, 1.0)
    sums = np.array([10**30, 1, -7, 0, 3], dtype=object)
    expected = [sum(int(grid.matrix[i, j]) * sums[i] for i in range(5)) for j in range(grid.rank)]
    assert grid.embed(sums) == expected
    assert kernel.size == 5


@pytest.mark.parametrize(("columns", "size", "bandwidth"), SETTINGS)
def test_each_certificate_counts_the_rounding_of_every_row_that_moves(columns: int, size: int, bandwidth: float) -> None:
    """Half a unit for each kernel value of a row: once for a row that comes, twice for a replacement, in every bound."""
    _, _, grid = made(columns, size, bandwidth)
    unit, slack = 2.0**grid.bits, float((grid.matrix**2).sum() * size) ** 0.5 / 2
    norm = float(grid.add) - slack
    assert norm >= unit * (1 - 1e-6)
    assert float(grid.replace) >= 2**0.5 * norm + 2 * slack * (1 - 1e-6)
    assert grid.joint() >= grid.replace
    assert grid.joint() ** 2 >= max(grid.add, Fraction(2) ** grid.bits) ** 2 + Fraction(4) ** grid.bits
