from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from regression.worlds import totals, unit_study
from sabun.asking import Part, probe, state_of
from sabun.errors import DataError
from sabun.records import Column, Schema, chunks
from sabun.regression import Study
from sabun.regression import statistic as module
from sabun.regression.design import UNIT
from sabun.regression.sensitivity import square_weight, sufficient_l2_squared
from sabun.regression.statistic import Labelled, Moments, Totals

CELLS = st.one_of(st.floats(-2, 2), st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e300, 0.0, -0.0, 1.0, -1.0]))


def table(rows: int, width: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.2, 1.2, (rows, width)), rng.uniform(-1.2, 1.2, rows)


def test_sums_equal_python_integers() -> None:
    X, y = table(50)
    design = unit_study(3).design
    body = np.empty(X.shape)
    design.whole_rows(X, body)
    rows = [[int(v) for v in row] + [int(t)] for row, t in zip(body, design.whole_targets(y), strict=True)]
    wanted = [[sum(row[i] * row[j] for row in rows) for j in range(4)] for i in range(4)]
    assert totals(design, X, y).products.tolist() == wanted


@pytest.mark.parametrize("block", [1, 7, 64])
def test_sums_do_not_depend_on_blocks_or_order(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(300)
    X[17, 1] = np.nan
    design = unit_study(3).design
    whole = totals(design, X, y)
    monkeypatch.setattr(module, "BLOCK", block)
    order = np.random.default_rng(1).permutation(300)
    assert np.array_equal(totals(design, X[order], y[order]).products, whole.products)


@settings(max_examples=30, deadline=None)
@given(hnp.arrays(float, (7, 3), elements=CELLS), st.integers(0, 7))
def test_merge_of_parts_equals_whole(data: np.ndarray, cut: int) -> None:
    design = unit_study(2).design
    X, y = data[:, :2], data[:, 2]
    parts = Moments(design=design).merge(totals(design, X[:cut], y[:cut]), totals(design, X[cut:], y[cut:]))
    whole = totals(design, X, y)
    assert parts.rows == whole.rows == 7
    assert np.array_equal(parts.products, whole.products)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(float, (4, 3), elements=CELLS),
    hnp.arrays(float, 3, elements=CELLS),
    st.integers(0, 3),
    st.sampled_from([None, 1]),
)
def test_a_neighbour_moves_the_sums_by_at_most_the_declared_sensitivity(data, other, place: int, radius) -> None:
    design = unit_study(2, clip_radius=radius).design
    near = data.copy()
    near[place] = other
    change = (totals(design, data[:, :2], data[:, 2]).products - totals(design, near[:, :2], near[:, 2]).products).astype(float)
    u = float(square_weight("replace-one"))
    squared = np.sum(change[:2, :2] ** 2) + np.sum(change[:2, 2] ** 2) + (u * change[2, 2]) ** 2
    assert squared <= float(sufficient_l2_squared("replace-one")) * UNIT**4
    removed = np.delete(data, place, axis=0)
    change = (totals(design, data[:, :2], data[:, 2]).products - totals(design, removed[:, :2], removed[:, 2]).products).astype(
        float
    )
    squared = np.sum(change[:2, :2] ** 2) + np.sum(change[:2, 2] ** 2) + (0.5 * change[2, 2]) ** 2
    assert squared <= 2.25 * UNIT**4


def test_files_folders_streams_and_frames_give_the_same_sums(tmp_path: Path) -> None:
    X, y = table(200)
    design = unit_study(3).design
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(y=y, extra="unused")
    frame.to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "parts").mkdir()
    frame[:90].to_parquet(tmp_path / "parts" / "a.parquet")
    frame[90:].to_parquet(tmp_path / "parts" / "b.parquet")
    whole = totals(design, X, y)
    for source in (tmp_path / "all.csv", tmp_path / "parts", frame, chunks([frame[:10], frame[10:]])):
        assert np.array_equal(state_of(Moments(design=design), source).products, whole.products)


def test_a_missing_cell_counts_as_its_public_constant() -> None:
    design = unit_study(2).design
    X, y = table(20, width=2)
    filled = X.copy()
    X[3, 0], filled[3, 0] = np.nan, 0.0
    assert np.array_equal(totals(design, X, y).products, totals(design, filled, y).products)


def test_tables_of_different_length_are_refused() -> None:
    X, y = table(5, width=2)
    with pytest.raises(DataError, match="X and y must have the same number of rows"):
        totals(unit_study(2).design, X, y[:4])
    with pytest.raises(DataError, match="an array must have 2 columns"):
        totals(unit_study(2).design, np.zeros((5, 3)), y)


def test_memory_of_a_stream_does_not_grow_with_its_length() -> None:
    import tracemalloc

    design = unit_study(3).design

    def stream(pieces: int):
        return chunks(lambda: (np.ones((20_000, 4)) for _ in range(pieces)))

    peaks = []
    for pieces in (10, 40):
        tracemalloc.start()
        state_of(Moments(design=design), stream(pieces))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_a_state_goes_through_its_bytes() -> None:
    moments = Moments(design=unit_study(3).design)
    state = state_of(moments, Labelled(*table(50)))
    again = moments.unpack(moments.pack(state))
    assert again.rows == 50
    assert np.array_equal(again.products, state.products)
    assert again.products.dtype == np.int64
    lopsided = moments.zero()
    lopsided.products[0, 1] = 1
    below = Totals(rows=-1, products=moments.zero().products)
    for content in (b"", moments.pack(state)[:-8], moments.pack(state) + b"x", moments.pack(lopsided), moments.pack(below)):
        with pytest.raises(DataError, match="sums must be bytes that the same statistic packed; they are not"):
            moments.unpack(content)


def test_machines_agree_on_a_public_sample() -> None:
    moments = Moments(design=unit_study(3).design)
    assert probe(moments) == probe(pickle.loads(pickle.dumps(moments)))
    values, targets = moments.sample()
    assert np.abs(values).max() > 1 > np.abs(values).min()
    assert targets.shape == (len(values),)
    assert probe(moments) != probe(Moments(design=unit_study(3, clip_radius="0.9").design))
    labels = Schema(columns=(Column.number("a", lower=0, upper=9, log1p=True), Column.category("c", ["u", "v", "w"])))
    mixed = Moments(design=Study(features=labels, target=Column.number("y", lower=-1, upper=1), epsilon=1).design)
    assert mixed.add(mixed.zero(), mixed.sample()).rows == 64


def test_pieces_of_a_plan_add_up_once_each() -> None:
    X, y = table(90)
    moments = Moments(design=unit_study(3).design)
    pieces = [Part.empty(moments, pieces=3).with_piece(n, Labelled(X[n::3], y[n::3])) for n in range(3)]
    whole = pieces[2].merged(pieces[0]).merged(pieces[1]).whole()
    assert moments.pack(whole) == moments.pack(state_of(moments, Labelled(X, y)))
    with pytest.raises(DataError, match="piece 0 was counted twice"):
        pieces[0].merged(pieces[0])
