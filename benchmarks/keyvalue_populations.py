"""Populations for the key-value estimators: frequencies and means of d keys.

`TUNED` ones were looked at while the default estimator was made; `SEEN` ones were written after that, but its last part was
chosen with a look at them; `ADVERSE` ones were sought because they hurt it. `FRESH` ones were written when it was finished, and
measured once: eight made up, and three from real tables.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype
from sklearn.datasets import load_digits, load_sample_image

from sabun.datasets import load_adult

__all__ = ["ADVERSE", "FRESH", "SEEN", "TUNED", "Population"]

_Floats = NDArray[np.float64]
Population = Callable[[int, np.random.Generator], tuple[_Floats, _Floats]]


def _quantiles(d: int) -> _Floats:
    return (np.arange(d) + 0.5) / d


def _tied(f: _Floats) -> tuple[_Floats, _Floats]:
    """As in the paper: the mean follows the frequency."""
    return f, 2 * f - 1


def _gaussian(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return _tied(np.clip(dice.normal(0.5, 0.15, d), 0, 1))


def _linear(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return _tied(_quantiles(d))


def _power(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return _tied(_quantiles(d) ** 4)


def _zipf(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return 0.9 / np.arange(1, d + 1), dice.uniform(-1, 1, d)


def _slow_zipf(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return 0.6 / np.sqrt(np.arange(1, d + 1)), np.full(d, 0.3)


def _mixture(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    common = dice.random(d) < 0.3
    return np.where(common, dice.uniform(0.3, 0.7, d), dice.uniform(0.01, 0.08, d)), np.where(common, 0.5, -0.4)


def _equal(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.full(d, 0.2), np.full(d, 0.1)


def _dominating(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    f = np.full(d, 0.02)
    f[0] = 0.9
    return f, np.full(d, -0.2)


def _empty(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.where(np.arange(d) < -(-d // 10), dice.uniform(0.02, 0.5, d), 0.0), dice.uniform(-0.5, 0.9, d)


def _ends(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return dice.uniform(0.05, 0.6, d), dice.choice([-1.0, 1.0], d)


def _geometric(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return 0.8 * np.exp(-5 * _quantiles(d)), np.cos(7 * _quantiles(d))


def _two_minds(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Loved or hated, nothing between."""
    return dice.beta(2, 6, d), dice.choice([-0.8, 0.7], d, p=[0.35, 0.65])


def _rare_cluster(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    rare = np.arange(d) % 4 != 0
    return np.where(rare, 0.013, dice.uniform(0.5, 0.95, d)), np.where(rare, 0.6, dice.uniform(-0.3, 0.3, d))


def _log_normal(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.minimum(np.exp(dice.normal(-3, 1.2, d)), 1.0), np.tanh(dice.normal(0.2, 0.7, d))


def _u_shaped(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return dice.beta(0.3, 0.3, d), dice.beta(0.4, 0.4, d) * 2 - 1


def _stairs(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    step = np.arange(d) % 5
    return np.array([0.02, 0.11, 0.3, 0.55, 0.97])[step], np.array([0.9, -0.9, 0.0, 0.4, -0.1])[step]


def _everybody(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.where(dice.random(d) < 0.5, 1.0, 0.85), dice.normal(0, 0.2, d).clip(-1, 1)


def _against(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """The rarer, the better liked."""
    f = dice.uniform(0, 0.4, d) ** 1.5
    return f, 1 - 4 * f


def _against_the_rest(rare: float, common: float, mind: float, part: int) -> Population:
    """A few rare keys of one mind among frequent ones of the other."""

    def drawn(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
        few = np.arange(d) < max(1, d // part)
        return np.where(few, rare, common), np.where(few, mind, -mind)

    return drawn


def _scattered(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    few = np.arange(d) < d // 10
    f = np.where(few, dice.uniform(0.03, 0.1, d), dice.uniform(0.7, 0.95, d))
    return f, np.where(few, dice.uniform(0.7, 1, d), dice.uniform(-0.95, -0.6, d))


def _half_everybody(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.r_[np.ones(d // 2), np.linspace(0.5, 1, d - d // 2)], np.zeros(d)


def _upper_half(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.linspace(0.5, 1, d), np.where(np.arange(d) % 2, 1.0, 0.8)


def _two_groups(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.r_[np.full(d // 2, 0.05), np.linspace(0.2, 0.6, d - d // 2)], np.zeros(d)


def _any_zipf(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Zipf with any exponent and any top."""
    return dice.uniform(0.2, 1) * np.arange(1, d + 1) ** -dice.uniform(0.3, 2), np.tanh(dice.normal(0, 0.8, d))


def _betas(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Three kinds of keys, each with beta laws of its own for frequency and mean."""
    kind = dice.choice(3, d, p=dice.dirichlet([2, 2, 2]))
    shape = np.exp(dice.uniform(-1, 3, (4, 3)))
    return dice.beta(shape[0, kind], shape[1, kind]), 2 * dice.beta(shape[2, kind], shape[3, kind]) - 1


def _two_humps(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Means in two humps, frequencies even in their logarithm."""
    hump = np.where(dice.random(d) < 0.4, -0.6, 0.5)
    return np.exp(dice.uniform(np.log(0.01), np.log(0.6), d)), np.clip(hump + dice.normal(0, 0.15, d), -1, 1)


def _loosely_tied(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """The more frequent, the better liked, but not quite."""
    f = dice.beta(1.2, 4, d)
    return f, np.clip(1.6 * np.sqrt(f) - 0.8 + dice.normal(0, 0.15, d), -1, 1)


def _half_nobodys(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Every other key is held by nobody."""
    held = np.arange(d) % 2 == 0
    return np.where(held, np.minimum(np.exp(dice.normal(-2, 0.8, d)), 1.0), 0.0), np.clip(dice.normal(0.3, 0.4, d), -1, 1)


def _few_everybodys(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """A twenty-fifth of the keys is held by everybody, the others by few."""
    few = np.arange(d) < -(-d // 25)
    return np.where(few, 1.0, np.minimum(dice.exponential(0.04, d), 1.0)), np.where(few, 0.2, dice.uniform(-0.9, 0.9, d))


def _shelves(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Keys in groups of ten that are alike."""
    group = np.arange(d) // 10
    level, liking = dice.normal(-2, 1.3, d)[group], dice.normal(0, 0.6, d)[group]
    return 1 / (1 + np.exp(-level - dice.normal(0, 0.3, d))), np.tanh(liking + dice.normal(0, 0.2, d))


def _plateau(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """A fifth of the keys nearly equal, the others falling off."""
    top = np.arange(d) < max(1, d // 5)
    f = np.where(top, 0.4 + dice.normal(0, 0.01, d), 0.3 * (1 - _quantiles(d)) ** 3)
    return f, np.where(top, -0.3, np.sin(9 * _quantiles(d)))


def _some(found: tuple[_Floats, _Floats], d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    order = dice.permutation(len(found[0]))
    order = np.r_[order[found[0][order] > 0][:1], order]  # somebody holds something
    chosen = order[np.sort(np.unique(order, return_index=True)[1])][:d]
    return found[0][chosen], found[1][chosen]


def _held(has: NDArray[np.bool_], values: _Floats) -> tuple[_Floats, _Floats]:
    """Frequency and mean of each column of holdings; the mean of a key that nobody holds is never looked at."""
    holders = has.sum(axis=0)
    means = (has * values).sum(axis=0) / np.maximum(holders, 1)
    return holders / len(has), np.clip(means, -1, 1)


@cache
def _categories() -> tuple[_Floats, _Floats]:
    table = load_adult().data
    names = [name for name in table if not is_numeric_dtype(table[name])]
    single = np.column_stack([table[name] == value for name in names for value in table[name].unique()]).astype(float)
    hours = (table["hours-per-week"].to_numpy(dtype=float) - 50) / 49
    together, worked = single.T @ single, single.T @ (single * hours[:, None])
    pairs = np.triu_indices(len(together))
    f = together[pairs] / len(table)
    return f, np.clip(worked[pairs] / np.maximum(together[pairs], 1), -1, 1)


def _adult(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Adult: a key is two categories of one person, its value the hours worked a week; half of the keys are nobody's."""
    return _some(_categories(), d, dice)


@cache
def _pixels() -> tuple[_Floats, _Floats]:
    ink = load_digits().data / 16
    left, right = np.triu_indices(ink.shape[1])
    return _held((ink[:, left] > 0) & (ink[:, right] > 0), ink[:, left] + ink[:, right] - 1)


def _digits(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Handwritten digits: a key is two pixels with ink, its value how much."""
    return _some(_pixels(), d, dice)


@cache
def _colours() -> tuple[_Floats, _Floats]:
    image = load_sample_image("china.jpg")[:420, :640]
    colour = (image.astype(np.int64) // 20) @ np.array([169, 13, 1])
    tiles = colour.reshape(42, 10, 64, 10).transpose(0, 2, 1, 3).reshape(42 * 64, 100)
    counts = np.stack([np.bincount(tile, minlength=2197) for tile in tiles])
    return _held(counts > 0, 2 * counts / 100 - 1)


def _photograph(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Tiles of a photograph: a key is a colour, its value how much of the tile has it; most colours are nowhere."""
    return _some(_colours(), d, dice)


ADVERSE: dict[str, Population] = {
    "a tenth against the rest": _against_the_rest(0.05, 0.9, 0.9, 10),
    "a tenth at the ends": _against_the_rest(0.2, 0.95, 1.0, 10),
    "one against all": _against_the_rest(0.1, 0.8, 0.95, 10**9),
    "a tenth, scattered": _scattered,
    "half everybody": _half_everybody,
    "upper half": _upper_half,
    "two groups": _two_groups,
}
TUNED: dict[str, Population] = {
    "gaussian": _gaussian,
    "linear": _linear,
    "power": _power,
    "zipf": _zipf,
    "slow zipf": _slow_zipf,
    "mixture": _mixture,
    "equal": _equal,
    "dominating": _dominating,
    "empty": _empty,
    "ends": _ends,
}
SEEN: dict[str, Population] = {
    "geometric": _geometric,
    "two minds": _two_minds,
    "rare cluster": _rare_cluster,
    "log-normal": _log_normal,
    "u-shaped": _u_shaped,
    "stairs": _stairs,
    "everybody": _everybody,
    "against": _against,
}
FRESH: dict[str, Population] = {
    "any zipf": _any_zipf,
    "betas": _betas,
    "two humps": _two_humps,
    "loosely tied": _loosely_tied,
    "half nobody's": _half_nobodys,
    "few everybody's": _few_everybodys,
    "shelves": _shelves,
    "plateau": _plateau,
    "adult": _adult,
    "digits": _digits,
    "photograph": _photograph,
}
