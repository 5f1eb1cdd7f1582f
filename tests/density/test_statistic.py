"""The exact sums: the same in any order and in any pieces; nobody is counted twice."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from sabun.asking import Part, probe, state_of
from sabun.density import DensityRatio
from sabun.density.statistic import PointSums
from sabun.errors import DataError, ParameterError
from sabun.records import chunks

RNG = np.random.default_rng(8)
PRIVATE, PUBLIC = RNG.normal([1.0, 0.0], 0.6, (90, 2)), RNG.normal(0.5, 1.0, (40, 2))
WILD = np.vstack([PRIVATE, [[np.nan, 1.0], [np.inf, 0.0], [-1e308, 1e308], [0.0, -0.0]]])
METHODS: dict[str, dict[str, Any]] = {
    "rkhs": {},
    "ulsif-b": {"n_centers": 7},
    "ulsif-parametric": {"basis": lambda row: [1.0, row[0], -row[1]], "basis_bounds": (-2, 3)},
}


def prepared(method: str = "rkhs", *, pieces: int | None = None) -> DensityRatio:
    return DensityRatio(epsilon=1, method=method, **METHODS[method], random_state=1).set_public(PUBLIC, pieces=pieces)


def recipe(method: str) -> PointSums:
    part = prepared(method)._part
    assert part is not None
    assert isinstance(part.statistic, PointSums)
    return part.statistic


@pytest.mark.parametrize("method", METHODS)
def test_order_and_pieces_do_not_matter(method: str) -> None:
    statistic = recipe(method)
    whole = statistic.pack(state_of(statistic, WILD))
    assert statistic.pack(state_of(statistic, WILD[::-1])) == whole
    assert statistic.pack(state_of(statistic, chunks([WILD[:1], WILD[1:50], WILD[50:]]))) == whole
    one, two, three = (state_of(statistic, rows) for rows in np.array_split(WILD, 3))
    assert statistic.pack(statistic.merge(three, statistic.merge(one, two))) == whole
    assert statistic.pack(statistic.unpack(whole)) == whole
    assert statistic.pack(statistic.zero()) == statistic.pack(statistic.merge(statistic.zero(), statistic.zero()))


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"[1,2]", b"[-1" + b",0" * 41 + b"]", b'["x"]', b"\xff"])
def test_bytes_of_other_sums_are_refused(content: bytes) -> None:
    with pytest.raises(DataError, match="sums must be"):
        recipe("rkhs").unpack(content)


def test_machines_that_compute_alike_agree_on_a_probe() -> None:
    assert probe(recipe("rkhs")) == probe(recipe("rkhs")) == probe(pickle.loads(pickle.dumps(recipe("rkhs"))))
    assert probe(recipe("rkhs")) != probe(recipe("ulsif-b"))


def test_recipes_of_one_plan_are_equal() -> None:
    assert recipe("rkhs") == pickle.loads(pickle.dumps(recipe("rkhs")))
    assert recipe("rkhs") != DensityRatio(epsilon=2).set_public(PUBLIC)._part.statistic  # type: ignore[union-attr]


@pytest.mark.parametrize("method", METHODS)
def test_parts_that_were_prepared_otherwise_are_not_merged(method: str) -> None:
    """Whatever differs: a row of the public table, however its moments stay, its order, or any setting that is published."""
    moved = PUBLIC.copy()
    moved[[0, 1]] = moved[[1, 0]]
    settings: list[dict[str, Any]] = [{"epsilon": 2}, {"standardize": False}, {"n_public": 99}]
    others = [DensityRatio(**({"epsilon": 1, "method": method} | METHODS[method] | more)) for more in settings]
    parts = [prepared(method).set_public(moved), *(other.set_public(PUBLIC) for other in others)]
    for part in parts[: 2 if method == "ulsif-parametric" else None]:  # a basis of one's own is not rescaled
        with pytest.raises(ParameterError, match="both parts must be prepared with the same"):
            prepared(method).merge(part)


@pytest.mark.parametrize("method", METHODS)
def test_numbered_pieces_are_the_whole_table_bit_for_bit(method: str) -> None:
    whole = prepared(method).partial_fit(private=PRIVATE).finalize()
    parts = [prepared(method, pieces=3).partial_fit(private=rows, piece=k) for k, rows in enumerate(np.array_split(PRIVATE, 3))]
    merged = parts[2].merge(parts[0]).merge(parts[1]).finalize()
    assert np.array_equal(merged.weights_, whole.weights_)
    assert dict(merged.release_.provenance.parameters) == dict(whole.release_.provenance.parameters)


def test_a_numbered_piece_is_counted_once() -> None:
    part = prepared(pieces=3).partial_fit(private=PRIVATE[:30], piece=0)
    with pytest.raises(DataError, match="piece 0 was counted twice"):
        part.partial_fit(private=PRIVATE[:30], piece=0)
    with pytest.raises(DataError, match="piece 0 was counted twice"):
        part.merge(prepared(pieces=3).partial_fit(private=PRIVATE[30:60], piece=0))
    with pytest.raises(DataError, match="piece 1 is missing"):
        part.finalize()
    with pytest.raises(ParameterError, match="piece must be from 0 to 2; got 3"):
        part.partial_fit(private=PRIVATE, piece=3)
    with pytest.raises(ParameterError, match=r"piece must be a whole number >= 0; got 1\.5"):
        part.partial_fit(private=PRIVATE, piece=1.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="piece must be from 0 to 2, for the pieces have numbers; got None"):
        part.partial_fit(private=PRIVATE)
    with pytest.raises(ParameterError, match="piece must be left out, for the pieces have no numbers; got 0"):
        prepared().partial_fit(private=PRIVATE, piece=0)
    with pytest.raises(ParameterError, match="both parts must be prepared with the same"):
        part.merge(prepared(pieces=4))
    with pytest.raises(ParameterError, match="pieces must be a whole number >= 1; got 0"):
        prepared(pieces=0)


def test_rows_without_a_number_have_a_part_of_their_own() -> None:
    statistic = recipe("rkhs")
    empty = Part.unnumbered(statistic)
    one, other = empty.with_rows(PRIVATE[:40]), empty.with_rows(PRIVATE[40:])
    both = one.merged(other)
    assert statistic.pack(both.whole()) == statistic.pack(state_of(statistic, PRIVATE))
    for twice in (one, other, one.with_rows(PRIVATE[:3]), pickle.loads(pickle.dumps(one))):
        with pytest.raises(ParameterError, match="got a copy of a part that is counted already"):
            both.merged(twice)
    assert empty.merged(empty).names == frozenset(), "nothing can be counted twice where nothing is"
    with pytest.raises(ParameterError, match="piece must be from 0 to 1, for the pieces have numbers; got None"):
        Part.empty(statistic, pieces=2).with_rows(PRIVATE)
