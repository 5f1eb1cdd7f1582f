"""A row is computed the same whatever rows stand beside it; compiled code that does otherwise is found out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from learning.learning_samples import points
from sabun.errors import ParameterError
from sabun.learning import PrivateClassifier, clipping, columnwise, methods
from sabun.learning.clipping import PIECE, SENSITIVITY, ClippedSum, row_by_row
from sabun.learning.network import Network
from sabun.learning.passes import Passes
from sabun.ledger import Ledger

NETWORK = Network(sizes=(105, 32, 2))


FIRST = NETWORK.layers(NETWORK.initial())[0][0]


def balanced_row(generator: np.random.Generator) -> np.ndarray:
    """A row between 0 and 1 whose hidden inputs are all zero but for rounding."""
    ends = [linprog(generator.normal(size=105), A_eq=FIRST.T, b_eq=np.zeros(32), bounds=[(0, 1)] * 105).x for _ in range(4)]
    row = sum(ends) / 5
    for _ in range(3):
        row = np.clip(row - FIRST @ np.linalg.solve(FIRST.T @ FIRST, FIRST.T @ row), 0, 1)
    return np.asarray(row)


@pytest.mark.parametrize(("before", "piece"), [(0, PIECE), (1, PIECE), (PIECE - 1, PIECE), (PIECE, PIECE), (63, 64), (64, 64)])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_neighbour_does_not_flip_hidden_units_of_others(norm: str, before: int, piece: int) -> None:
    generator = np.random.default_rng(5)
    weights, clipped = NETWORK.initial(), ClippedSum(NETWORK, clip_norm=1.0, norm=norm, piece=piece)
    rows = np.concatenate([generator.random((before, 105)), [balanced_row(generator) for _ in range(3)]])
    labels = generator.integers(0, 2, len(rows))
    whole = clipped(weights, rows, labels)
    for gone in range(max(0, before - 1), len(rows)):
        change = whole - clipped(weights, np.delete(rows, gone, 0), np.delete(labels, gone))
        assert (np.abs(change).sum() if norm == "l1" else np.linalg.norm(change)) <= SENSITIVITY


WORDS = ("by compiled code", "exponentials, sums and lengths by NumPy", "comes out the same wherever the row stands")


def test_the_promise_says_what_it_assumes_of_compiled_code_and_numpy() -> None:
    for method in ("dp-adam", "dp-sgd", "laplace-sgd"):
        clf = PrivateClassifier(method=method, epsilon=8, classes=[0, 1], random_state=1, epochs=1).fit(*points(50))
        assert any(all(part in words for part in WORDS) for words in clf.guarantee_.assumptions)


@pytest.mark.parametrize("sizes", [(105, 32, 2), (258, 33, 2), (34, 17, 5)])
def test_this_machine_passes_the_trial(sizes: tuple[int, ...]) -> None:
    assert row_by_row(Network(sizes=sizes), piece=112)
    assert row_by_row(Network(sizes=sizes), piece=112, kind=np.float32)


def test_code_that_rounds_by_place_fails_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Passes.both

    def uneven(self: Passes, columns: Any, labels: Any) -> Any:
        found = real(self, columns, labels)
        found.errors[0][:, -1] *= 1 + 2.0**-22
        return found

    monkeypatch.setattr(Passes, "both", uneven)
    assert not row_by_row(Network(sizes=(5, 4, 2)), piece=64)


def rounded_twice(last: int) -> Any:
    real = columnwise.product

    def planted(left: Any, columns: Any, out: Any) -> None:
        real(left, columns, out)
        chain = np.zeros((len(left), last), dtype=np.float32)
        for k in range(left.shape[1]):
            chain = left[:, k, None] * columns[k, -last:] + chain
        out[:, -last:] = chain

    return planted


def squared_in_32_bits(last: int) -> Any:
    real = columnwise.add_squares

    def planted(rows: Any, squares: Any) -> None:
        before = squares[-last:].copy()
        real(rows, squares)
        squares[-last:] = before + (rows[:, -last:].astype(np.float32) ** 2).sum(axis=0, dtype=np.float64)

    return planted


def scaled_a_hair_more(last: int) -> Any:
    real = columnwise.scale

    def planted(values: Any, shares: Any, out: Any) -> None:
        real(values, shares, out)
        out[:, -last:] = np.nextafter(out[:, -last:], np.inf, dtype=out.dtype)

    return planted


def longer_rows(last: int) -> Any:
    real = clipping.squared_lengths

    def planted(rows: Any) -> Any:
        lengths = real(rows)
        lengths[-last:] = np.nextafter(lengths[-last:], np.inf)
        return lengths

    return planted


FAULTS = {
    "product": (columnwise, rounded_twice),
    "add_squares": (columnwise, squared_in_32_bits),
    "scale": (columnwise, scaled_a_hair_more),
    "squared_lengths": (clipping, longer_rows),
}


@pytest.mark.parametrize("piece", [64, 512, 640])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (5, 2), (13, 2), (2, 4, 2), (105, 32, 2)])
@pytest.mark.parametrize("name", FAULTS)
def test_a_trial_finds_loops_that_round_the_last_places_otherwise(
    name: str, sizes: tuple[int, ...], piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, planted = FAULTS[name]
    network = Network(sizes=sizes)
    for last in (1, 2, 4, 8, 15):
        with monkeypatch.context() as patched:
            patched.setattr(where, name, planted(last))
            for kind in (np.float64, np.float32):
                assert not row_by_row(network, piece=piece, kind=kind), (last, kind)
    assert row_by_row(network, piece=piece)


def test_a_trial_of_wide_layers_is_about_errors_that_rounding_can_move() -> None:
    """Weights that are too large make a network sure of a class, whose errors are 0 or 1 however a row is rounded."""
    errors = []
    real = clipping.Passes.both

    def heard(self: Passes, columns: Any, labels: Any) -> Any:
        errors.append((found := real(self, columns, labels)).errors[-1].copy())
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(clipping.Passes, "both", heard)
        row_by_row(Network(sizes=(3000, 32, 2)), piece=64)
    assert (np.abs(errors[-1][0]) < 0.99).mean() > 0.9
    assert (np.abs(errors[-1][0]) > 0.01).mean() > 0.9


@pytest.mark.parametrize("precision", ["single", "double"])
def test_such_code_is_refused_before_the_charge(precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "row_by_row", lambda *given, **named: False)
    book = Ledger.create(tmp_path / "book", name="book", epsilon=9, delta=0.1)
    with pytest.raises(ParameterError, match=r"computes a row the same wherever it stands.*Install the newest numba"):
        PrivateClassifier(epsilon=1, delta=1e-3, precision=precision, classes=[0, 1], ledger=book).fit(*points())
    assert book.spent.epsilon == 0
