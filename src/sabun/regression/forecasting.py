"""What a release will be worth on a table that nobody has looked at: made-up sums, the very noise, the very pooling.

Rows are drawn only to know what a table of this shape looks like (a few hundred of them); sums are scaled up to the real number
of rows and get their sampling error and their noise as such, so a plan is quick whatever the table's size.
Seeded: NOT PRIVATE, and nothing here sees data.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

import numpy as np

from sabun import checks
from sabun.privacy.noise import Coin, seeded_coin
from sabun.regression.design import UNIT, Floats
from sabun.regression.falling import public_posterior
from sabun.regression.mixing import Axes
from sabun.regression.pooling import Posterior, pooled
from sabun.regression.sensitivity import residual_weights
from sabun.regression.sharing import Shares, shares_of
from sabun.regression.simulation import normals
from sabun.regression.staged import free_level, level_for
from sabun.regression.stages import SHARE, enough, level_of, radius_of
from sabun.regression.study import STAGED, Study
from sabun.regression.sufficient import NoiseLevel, gauss_level, noise_level
from sabun.regression.sums import Refined, Sums, near_radius

__all__ = ["OPTIMISTIC", "PESSIMISTIC", "Shape", "errors_to_expect", "length_to_expect", "radius_to_expect"]

_ROWS = 256
_RUNS = 39
_MOST = 6
"""More organisations are drawn in so many groups: sums add up, and so do variances."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a table is like, in units of half a column's bounds around their middle; public guesses.

    Args:
        spread: Standard deviation of a feature: 0.58 fills the bounds evenly.
        centre: Mean of a feature.
        correlation: Between any two features.
        r_squared: Which share of the target's variance a linear model explains.
        deviation: Standard deviation of the target.
        between: Which share of a feature's variance lies between organisations.
        tail: How far from all others the few targets lie that make up its residuals, all on one side, and what the line
            explains is how many they are (money, counts that are mostly 0); 0 where residuals are normal.
    """

    spread: float = 0.45
    centre: float = 0.0
    correlation: float = 0.0
    r_squared: float = 0.8
    deviation: float = 0.35
    between: float = 0.0
    tail: float = 0.0

    def __post_init__(self) -> None:
        for name in ("spread", "deviation"):
            value = getattr(self, name)
            checks.require(checks.is_number(value) and 0 < value <= 1, "above 0 and at most 1", **{name: value})
        checks.require(checks.is_number(self.centre) and -1 <= self.centre <= 1, "between -1 and 1", centre=self.centre)
        for name in ("correlation", "between"):
            value = getattr(self, name)
            checks.require(checks.is_number(value) and 0 <= value < 1, "at least 0 and below 1", **{name: value})
        good = checks.is_number(self.tail) and 0 <= self.tail <= 2
        checks.require(good, "at least 0 and at most 2", tail=self.tail)
        good = checks.is_number(self.r_squared) and 0 < self.r_squared < 1
        checks.require(good, "above 0 and below 1", r_squared=self.r_squared)

    def __str__(self) -> str:
        far = f"residuals are a few targets that lie {self.tail:g} away, all on one side"
        return (
            f"features spread by {self.spread:g} around {self.centre:g} (in half ranges of their bounds), correlated by "
            f"{self.correlation:g}, {self.between:.0%} of their variance between organisations; a linear model explains "
            f"{self.r_squared:.0%} of a target that spreads by {self.deviation:g}; "
            f"{far if self.tail else 'residuals are normal'}"
        )


OPTIMISTIC = Shape()
PESSIMISTIC = Shape(spread=0.12, centre=0.3, correlation=0.5, r_squared=0.1, deviation=0.15, between=0.3, tail=1.0)


def errors_to_expect(study: Study, shape: Shape, *, n_records: int, organisations: int, runs: int = _RUNS) -> Floats:
    """Relative errors of the public model in made-up runs, in order: 1 is that of predicting the mean, 0 is perfect."""
    coin = seeded_coin(0)
    return np.sort([_error(study, shape, n_records, organisations, coin) for _ in range(runs)])


def radius_to_expect(study: Study, shape: Shape, *, n_records: int) -> float:
    """The radius that rows of such a table are weighted to, in scaled units; only for methods that weight rows."""
    coin = seeded_coin(0)
    shares = shares_of(study, n_records if study.relation == "replace-one" else None)
    rows = _drawn_rows(study, shape, _spread(study, shape, 1.0), np.full(_features(study), shape.centre), coin)
    return _radius(study, shares, np.linalg.norm(rows, axis=1), n_records)


def length_to_expect(study: Study, shape: Shape) -> float:
    """The length of the coefficients behind such a table beside the study's `coef_bound`, in the middle of made-up ones."""
    coin = seeded_coin(0)
    lengths = [np.linalg.norm(_truth(study, shape, coin)) for _ in range(_RUNS)]
    return float(np.median(lengths)) * study.design.scale / float(study.coef_bound)


def _features(study: Study) -> int:
    return study.width - study.fit_intercept


def _spread(study: Study, shape: Shape, part: float) -> Floats:
    """A root of that part of the features' covariance."""
    return np.asarray(np.linalg.cholesky(_cover(study, shape) * part))


def _cover(study: Study, shape: Shape) -> Floats:
    return np.asarray(shape.spread**2 * ((1 - shape.correlation) * np.eye(_features(study)) + shape.correlation))


def _drawn_rows(study: Study, shape: Shape, within: Floats, middle: Floats, coin: Coin) -> Floats:
    drawn = np.clip(middle + normals(coin, (_ROWS, len(middle))) @ within.T, -1, 1)
    return np.column_stack([drawn, np.ones(_ROWS)]) if study.fit_intercept else drawn


def _radius(study: Study, shares: Shares, lengths: Floats, count: int) -> float:
    """What a table of `count` rows with lengths like these is weighted to."""
    if study.clip_radius is not None:
        return study.design.scale
    if shares.length is None:
        return radius_of(study.design, 0)
    ladder, least = [radius_of(study.design, step) for step in range(shares.last + 1)], -shares.lean / SHARE / count
    said = (enough((lengths / radius) ** 2, intercept=study.fit_intercept).mean() for radius in ladder)
    return ladder[max(next((step for step, one in enumerate(said) if one >= least), shares.last) - shares.back, 0)]


def _truth(study: Study, shape: Shape, coin: Coin) -> Floats:
    """Coefficients in any direction that explain as much as the shape says, and the constant that belongs to them."""
    beta = normals(coin, (_features(study),))
    beta *= shape.deviation * math.sqrt(shape.r_squared / (beta @ _cover(study, shape) @ beta))
    return np.append(beta, -shape.centre * beta.sum()) if study.fit_intercept else beta


def _error(study: Study, shape: Shape, rows: int, organisations: int, coin: Coin) -> float:
    features, scale = _features(study), study.design.scale
    truth = _truth(study, shape, coin)
    within, apart = (_spread(study, shape, part) for part in (1 - shape.between, max(shape.between, 1e-12)))
    tables = []
    for _ in range(min(organisations, _MOST)):
        middle = shape.centre + apart @ normals(coin, (features,))
        tables.append(_drawn_rows(study, shape, within, middle, coin))
    residual = shape.deviation**2 * (1 - shape.r_squared)
    times = organisations / len(tables)
    made = [_Made.of(study, one, truth, residual, rows, shape.tail) for one in tables]
    first = [one.drawn(times, coin) for one in made]
    if study.method == "rounds":
        model = pooled(study, [sums for sums, _, _ in first])
        found = [one.again(model, drawn, times, coin) for one, drawn in zip(made, first, strict=True)]
    else:
        found = [one.released(drawn, times, coin) for one, drawn in zip(made, first, strict=True)]
    off = np.concatenate(tables) @ (public_posterior(study, found).beta / scale - truth)
    explained = float(np.var(np.concatenate(tables) @ truth))
    return float(np.mean(off**2)) / max(explained, 1e-12)


_Drawn: TypeAlias = tuple[Sums, Floats, float]
"""First sums with noise, and what their c and q are without it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Made:
    """A made-up table of `count` rows, as far as its sums go; in row units.

    Args:
        study: The terms.
        shares: How its budget is shared; None for a method of one stage.
        count: Number of rows.
        beta: The truth.
        gram: A of the weighted rows, as expected.
        sampled: A root of the covariance of their c.
        residual: Variance of the residuals.
        weight: Sum of the squared weights.
        near: The radius in units of the study's own.
        noise: Of the first sums.
        tail: How far the few targets lie that make up the residuals; 0 where those are normal.
    """

    study: Study
    shares: Shares | None
    count: int
    beta: Floats
    gram: Floats
    sampled: Floats
    residual: float
    weight: float
    near: float
    noise: NoiseLevel
    tail: float

    @classmethod
    def of(cls, study: Study, rows: Floats, truth: Floats, residual: float, count: int, tail: float) -> _Made:
        """What a table of `count` rows like these is like."""
        staged, scale = study.method in STAGED, study.design.scale
        shares = shares_of(study, count if study.relation == "replace-one" else None) if staged else None
        lengths = np.linalg.norm(rows, axis=1)
        radius = scale if shares is None else _radius(study, shares, lengths, count)
        weights = np.minimum(1, radius / np.maximum(lengths, 1e-12)) if staged else np.ones(len(rows))
        lift, units = count / len(rows), rows * weights[:, None] / scale
        twice = units * weights[:, None]
        return cls(
            study=study,
            shares=shares,
            count=count,
            beta=truth * scale,
            gram=lift * units.T @ units,
            sampled=math.sqrt(residual) * _root(lift * twice.T @ twice),
            residual=residual,
            weight=lift * float(weights @ weights),
            near=radius / scale,
            noise=noise_level(study) if shares is None else near_radius(gauss_level(study, shares.first), radius / scale),
            tail=tail,
        )

    def drawn(self, many: float, coin: Coin) -> _Drawn:
        """First sums of so many such tables."""
        root, beta, noise = math.sqrt(many), self.beta, self.noise
        moment = many * self.gram @ beta + root * self.sampled @ normals(coin, beta.shape)
        square = float(2 * beta @ moment - many * beta @ self.gram @ beta) + many * self.residual * self.weight
        sums = Sums(
            gram=many * self.gram + root * _symmetric(len(beta), noise, coin),
            moment=moment + root * math.sqrt(noise.moment) * normals(coin, beta.shape),
            square=square + root * math.sqrt(noise.square) * float(normals(coin, (1,))[0]),
            rows=many * self.count,
            near=self.near,
            noise=NoiseLevel(**{name: many * value for name, value in asdict(noise).items()}),
        )
        return sums, moment, square

    def released(self, first: _Drawn, times: float, coin: Coin) -> Sums:
        """What organisations release in one file: residuals around the model of one of them, where there are any."""
        if self.shares is None or self.shares.second is None:
            return first[0]
        return self.again(pooled(self.study, [self.drawn(1.0, coin)[0]]), first, times, coin)

    def again(self, model: Posterior, first: _Drawn, times: float, coin: Coin) -> Sums:
        """The first sums with residual sums around a model."""
        sums, moment, square = first
        assert self.shares is not None
        assert self.shares.second is not None
        paid = float(np.sum(model.covariance * self.gram)) / self.count
        free = free_level(self.study, self.shares, sums.near, Axes.of([replace(sums, gram=self.gram)]), model.variance)
        tau, start, gram = level_of(level_for(model.variance, paid, free)), model.beta, times * self.gram
        level, (on_square, on_weight) = (
            times * float(self.shares.second) / UNIT**4,
            map(float, residual_weights(self.study.relation)),
        )
        spreads = level * (tau * self.near / self.study.design.shrink) ** 2, level * tau**4 / on_square, level / on_weight
        off = moment - gram @ start + math.sqrt(spreads[0]) * normals(coin, start.shape)
        around = float(square - 2 * start @ moment + start @ gram @ start)
        away, squares = self._cut(tau)
        off, around = off - times * away, around - times * squares
        around += math.sqrt(spreads[1]) * float(normals(coin, (1,))[0])
        long = float(start @ start)
        refined = Refined(
            start=start,
            moment=off + sums.gram @ start,
            square=around + float(2 * start @ off + start @ sums.gram @ start),
            weight=max(times * self.weight, 1.0),
            noise=spreads,
        )
        larger = float(sums.square - 2 * start @ sums.moment + start @ sums.gram @ start) - around
        unsure = sums.noise.square + 4 * long * sums.noise.moment + long**2 * sums.noise.gram + spreads[1]
        return replace(sums, refined=refined, tail=(larger, unsure))

    def _cut(self, tau: float) -> tuple[Floats, float]:
        """What cutting at tau takes from c and from the squares of such a table.

        A share of q = s2 / h**2 of all targets lies h away, and q moves with the line: a cut to tau takes 1 - tau / h of the
        line and of its mean q h.
        """
        if self.tail <= tau:
            return 0 * self.beta, 0.0
        share = self.residual / self.tail**2
        line = self.gram @ self.beta
        if self.study.fit_intercept:
            line = line + share * self.tail * self.study.design.scale * self.gram[:, -1]
        return (1 - tau / self.tail) * line, share * (self.tail**2 - tau**2) * self.weight


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _symmetric(width: int, noise: NoiseLevel, coin: Coin) -> Floats:
    drawn = np.triu(normals(coin, (width, width)) * math.sqrt(noise.above), 1)
    return np.asarray(drawn + drawn.T + np.diag(normals(coin, (width,)) * math.sqrt(noise.gram)))
