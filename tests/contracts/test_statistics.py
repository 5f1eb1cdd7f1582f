"""Whatever a room adds up, row by row: a block may be cut anywhere, down to a single row, and be as long as it likes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from sabun.density import DensityRatio
from sabun.engine.statistic import Statistic
from sabun.keyvalue.client.probabilities import PROTOCOLS
from sabun.keyvalue.client.terms import Terms
from sabun.keyvalue.statistic import SymbolCounts
from sabun.outliers.spread_points import Coordinates, Extent
from sabun.records import Column, Schema
from sabun.regression import Study
from sabun.regression.staged import Reading
from sabun.regression.stages import Lengths, Residuals
from sabun.regression.statistic import Moments
from sabun.summaries import evidence

LONG = (1 << 16) + 1
"""One row more than any room takes in one step."""

PUBLIC = np.random.default_rng(0).normal(size=(60, 2))
BASIS = {"ulsif-parametric": {"basis": lambda row: [1.0, row[0]], "basis_bounds": (-2, 3)}}


def statistics() -> Iterator[tuple[str, Statistic[Any]]]:
    for specimen in evidence.VARIANTS:
        yield f"{specimen.question}, {specimen.setting}", specimen.make()._settled().sums
    study = Study(features=Schema.of_bounds([(-1, 1)] * 2), target=Column.number("y", bounds=(-1, 1)), epsilon=1)
    yield "products", Moments(design=study.design)
    yield "lengths", Lengths(design=Reading.first_design(study))
    yield "residuals", Residuals(design=Reading.first_design(study), start=(1, 2, 3), level=-3)
    for method in ("rkhs", "ulsif-b", "ulsif-parametric"):
        part = DensityRatio(epsilon=1, method=method, **BASIS.get(method, {})).set_public(PUBLIC)._part
        assert part is not None
        yield method, part.statistic
    for protocol in PROTOCOLS:
        yield protocol, SymbolCounts.of(Terms(keys=("a", "b", "c"), epsilon=Fraction(2), protocol=protocol, rounds=2))
    yield "places", Extent(coordinates=Coordinates.of(Schema.of_bounds([(0, 1)] * 2), None))


def rows_of(block: Any, places: Any) -> Any:
    """These rows of a block, whatever holds them."""
    if isinstance(block, np.ndarray):
        return block[places]
    if dataclasses.is_dataclass(block):
        parts = {part.name: rows_of(getattr(block, part.name), places) for part in dataclasses.fields(block)}
        return dataclasses.replace(block, **parts)  # type: ignore[type-var]
    if isinstance(block, tuple):
        parts = [rows_of(part, places) for part in block]
        return type(block)(*parts) if hasattr(block, "_fields") else tuple(parts)
    return block


def length(block: Any) -> int:
    parts = vars(block).values() if dataclasses.is_dataclass(block) else block
    return len(block) if isinstance(block, np.ndarray) else max(len(part) for part in parts if isinstance(part, np.ndarray))


def test_a_block_may_be_cut_anywhere() -> None:
    different = {repr(statistic): (name, statistic) for name, statistic in statistics()}
    assert len(different) > 20
    for name, statistic in different.values():
        sample = statistic.sample()
        for count in (2, 1024 if name == "ulsif-parametric" else LONG):  # a basis is a function of one row: slow
            places = np.arange(count) % length(sample)
            whole = sums(statistic, sample, places)
            assert whole != statistic.pack(statistic.zero()), name
            assert whole == sums(statistic, sample, places[:1], places[1:]), name
            assert whole == sums(statistic, sample, places[:-1], places[-1:]), name
            after = statistic.add(statistic.zero(), rows_of(sample, places[:-1]))
            assert whole == statistic.pack(statistic.add(after, rows_of(sample, places[-1:]))), name


def sums(statistic: Statistic[Any], sample: Any, *blocks: Any) -> bytes:
    states = [statistic.add(statistic.zero(), rows_of(sample, places)) for places in blocks]
    return statistic.pack(functools.reduce(statistic.merge, states))
