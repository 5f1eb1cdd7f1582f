"""Sums of products in row units: noisy ones of a release, exact ones of the home organisation."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sabun.regression.design import UNIT, Floats
from sabun.regression.sensitivity import residual_weights
from sabun.regression.sharing import plain_radius, released_shares, undivided_variance
from sabun.regression.stages import START_BITS, level_of, radius_of
from sabun.regression.statistic import Totals
from sabun.regression.study import STAGED, Study
from sabun.regression.sufficient import NoiseLevel, gauss_level, noise_level, weights_of

__all__ = [
    "Home",
    "Refined",
    "Sums",
    "first_sums",
    "home_sums",
    "near_radius",
    "own_stages",
    "released_radius",
    "sums_of",
    "uncut",
]


Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Refined:
    """Residual sums around a start, moved back to 0: public.

    Their noise is that of the residuals, and of A as far as the coefficients differ from the start.

    Args:
        start: The model that residuals were taken around, in row units.
        moment: c again: residual moments plus A start.
        square: q again, likewise; cut residuals are made up for.
        weight: Sum of the squared weights of the rows: how many whole rows the sums are worth.
        noise: Variances of the residual sums: on moments, on the square, on the weight.
    """

    start: Floats
    moment: Floats
    square: float
    weight: float
    noise: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Noisy sums of one organisation in row units; public.

    Args:
        gram: A.
        moment: c.
        square: q.
        rows: How many rows, or about how many.
        noise: Variances of the noise.
        refined: Residual sums, where there are some.
        near: The radius that rows were shortened to, in units of the study's own.
        weight: How many whole rows the sums are worth, where weighted rows are counted apart; else `rows`.
        tail: By how much squares around the start of the residuals are larger here than theirs; the variance of its noise.
        loudness: The variance of the noise that the promise asks for, whatever the table: equal promises, equal numbers.
        staged: Whether its method has a second stage.
    """

    gram: Floats
    moment: Floats
    square: float
    rows: float
    noise: NoiseLevel
    refined: Refined | None = None
    near: float = 1.0
    weight: float | None = None
    tail: tuple[float, float] = (0.0, 0.0)
    loudness: float = 1.0
    staged: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class Home:
    """The home organisation's exact sums in row units. PRIVATE: whatever is computed from them stays at home."""

    gram: Floats
    moment: Floats
    square: float
    rows: int


def sums_of(study: Study, value: Mapping[str, Any]) -> Sums:
    """Reads the whole numbers of a release back into row units."""
    if study.method in STAGED:
        return _staged_sums(study, value)
    return _plain_sums(study, value, noise_level(study))


def first_sums(study: Study, value: Mapping[str, Any]) -> Sums:
    """The first stage of a staged release in row units of the study, whatever radius it has."""
    shares, radius = released_shares(study, value), released_radius(study, value)
    near = radius / study.design.scale
    return _plain_sums(study, value, near_radius(gauss_level(study, shares.first), near), near)


def uncut(sums: Sums) -> Sums:
    """The first sums alone, from which nothing was cut; how many whole rows they are worth is known from the others."""
    again = sums.refined
    if again is None:
        return sums
    return replace(sums, refined=None, weight=again.weight, noise=replace(sums.noise, count=again.noise[2]))


def near_radius(noise: NoiseLevel, near: float) -> NoiseLevel:
    """The noise of sums over rows in units of a radius, in units of another that is `near` times as long."""
    return replace(noise, gram=noise.gram * near**4, above=noise.above * near**4, moment=noise.moment * near**2)


def released_radius(study: Study, value: Mapping[str, Any]) -> float:
    """The radius that rows of a staged release were weighted to, in scaled units."""
    step = value["radius"]
    return plain_radius(study.design, study.clip_radius) if step is None else radius_of(study.design, step)


def own_stages(study: Study, value: Mapping[str, Any]) -> tuple[Sums, ...]:
    """The stages in units of the release's own radius and level: sums over rows within 1, of targets within 1."""
    shares, (on_square, _) = released_shares(study, value), map(float, residual_weights(study.relation))
    first = _plain_sums(study, value, gauss_level(study, shares.first))
    if shares.second is None or value.get("start") is None:
        return (first,)
    level = gauss_level(study, shares.second)
    residuals = replace(
        first,
        moment=np.array(value["residual_moment"], dtype=np.float64) / (UNIT**2 * study.design.shrink),
        square=value["residual_square"] / UNIT**2,
        noise=replace(first.noise, moment=level.moment, square=float(shares.second) / on_square / UNIT**4),
    )
    return first, residuals


def _staged_sums(study: Study, value: Mapping[str, Any]) -> Sums:
    first, shares = first_sums(study, value), released_shares(study, value)
    if shares.second is None or value.get("start") is None:
        return first
    design = study.design
    near, tau = released_radius(study, value) / design.scale, level_of(value["level"])
    start = np.array(value["start"], dtype=np.float64) * (design.shrink / (near * 2.0**START_BITS))
    unit = tau * near / (UNIT**2 * design.shrink)
    off, square = np.array(value["residual_moment"], dtype=np.float64) * unit, value["residual_square"] * tau**2 / UNIT**2
    variance, (on_square, on_weight) = float(shares.second), map(float, residual_weights(study.relation))
    whole, inside = _uncut(max(square, 0.0) / first.rows / tau**2)
    off, held = off / inside, first.gram @ start
    on_cut, level, long = variance / on_square * (tau / UNIT) ** 4 * whole**2, first.noise, float(start @ start)
    around = float(first.square - 2 * start @ first.moment + start @ held)
    refined = Refined(
        start=start,
        moment=off + held,
        square=float(square * whole + 2 * start @ off + start @ held),
        weight=min(max(value["residual_weight"] / UNIT, 1.0, first.rows / 100), first.rows),
        noise=(
            variance * (unit / inside) ** 2,
            on_cut,
            variance / (on_weight * UNIT**4),
        ),
    )
    unsure = level.square + 4 * long * level.moment + long**2 * level.gram + on_cut
    return replace(first, refined=refined, tail=(around - square * whole, unsure))


def _uncut(share: float) -> tuple[float, float]:
    """What cutting did to normal residuals that were cut to +-1 and then have that mean square.

    By how much their mean square was larger before, and which share of them was not cut: where the start is off, residuals have
    a mean, and cutting makes it smaller by just that share (the derivative of E clip(m + e) at m = 0 is P(|e| < 1)).
    """
    low, high = 1e-3, 1e3
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _cut_square(middle) < min(share, 0.9) else (low, middle)
    return high**2 / _cut_square(high), math.erf(1 / (high * math.sqrt(2)))


def _cut_square(deviation: float) -> float:
    """The mean square of a normal number of that deviation, cut to +-1."""
    k = 1 / deviation
    density, beyond = math.exp(-k * k / 2) / math.sqrt(2 * math.pi), math.erfc(k / math.sqrt(2)) / 2
    return deviation**2 * (1 - 2 * (k * density + beyond - k * k * beyond))


def _plain_sums(study: Study, value: Mapping[str, Any], noise: NoiseLevel, near: float = 1.0) -> Sums:
    width, weights, shrink = study.width, weights_of(study), study.design.shrink
    upper, lower = _triangle(width)
    gram = np.empty((width, width))
    gram[upper] = np.array(value["gram"], dtype=np.float64) / np.where(upper[0] == upper[1], weights.diagonal, weights.above)
    gram[lower] = gram[upper]
    gram = gram / (UNIT**2 * shrink**2) * near**2
    rows = value["rows"] if value["count"] is None else max(value["count"] / weights.count, 1.0)
    return Sums(
        gram=gram,
        moment=np.array(value["moment"], dtype=np.float64) / (weights.moment * UNIT**2 * shrink) * near,
        square=value["square"] / (weights.square * UNIT**2),
        rows=float(rows),
        noise=noise,
        near=near,
        loudness=_loudness(study),
        staged=study.method in STAGED,
    )


@functools.lru_cache(maxsize=256)
def _loudness(study: Study) -> float:
    pure = study.method == "ssp-laplace"
    return (noise_level(study) if pure else gauss_level(study, undivided_variance(study))).gram


@functools.lru_cache(maxsize=64)
def _triangle(width: int) -> tuple[tuple[Places, Places], tuple[Places, Places]]:
    """Where the released products stand in A, row by row, and where the same stand on the other side."""
    rows, columns = np.triu_indices(width)
    return (rows, columns), (columns, rows)


def home_sums(study: Study, totals: Totals, near: float = 1.0) -> Home:
    """A home organisation's sums, for its own use; of rows whose unit is `near` times as long as the study's."""
    table, shrink = totals.products / float(UNIT**2), study.design.shrink
    square = float(table[-1, -1])
    gram, moment = table[:-1, :-1] * (near / shrink) ** 2, table[:-1, -1] * (near / shrink)
    return Home(gram=gram, moment=moment, square=square, rows=totals.rows)
