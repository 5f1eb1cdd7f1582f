"""How much fake people could have done, and whether they show.

Lower epsilon makes fakes stronger: each report is worth more noise. Assigned keys (the default) are the best defence; with
chosen keys or unary encoding, these tests find the clumsy ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, chdtrc, ndtr

from sabun import checks
from sabun.errors import ParameterError
from sabun.keyvalue.channel import Counts, Floats

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["Influence", "SizeTest", "UniformityTest", "index_uniformity_test", "influence_bounds", "report_size_test"]


@dataclass(frozen=True, kw_only=True)
class UniformityTest:
    """Whether reports are spread evenly over the keys, as honest devices spread them.

    Attributes:
        chi_square: Pearson's statistic.
        p_value: Its probability under honest devices.
        largest_z: How far the most asked key stands out, in standard deviations.
        largest_p_value: The probability of that, over all keys (Bonferroni).
        suspicious: Whether either is below the level.
    """

    chi_square: float
    p_value: float
    largest_z: float
    largest_p_value: float
    suspicious: bool


def index_uniformity_test(counts: Counts | ArrayLike, *, level: float = 0.001) -> UniformityTest:
    """Tests the number of reports per key against the multinomial of honest devices.

    Args:
        counts: Reports per key, or a tally's counts.
        level: Below which probability to call it suspicious (half of it for each of the two tests).

    Raises:
        ParameterError: There are fewer than two keys or no reports.
    """
    totals = np.asarray(counts.total if isinstance(counts, Counts) else counts, dtype=float)
    checks.require(
        totals.ndim == 1 and len(totals) >= 2 and totals.sum() > 0, "two keys or more, with reports", counts=len(totals)
    )
    n, keys = totals.sum(), len(totals)
    expected = n / keys
    chi_square = float(((totals - expected) ** 2 / expected).sum())
    largest = float((totals.max() - expected) / np.sqrt(n / keys * (1 - 1 / keys)))
    p, largest_p = float(chdtrc(keys - 1, chi_square)), float(min(1.0, keys * ndtr(-largest)))
    return UniformityTest(
        chi_square=chi_square,
        p_value=p,
        largest_z=largest,
        largest_p_value=largest_p,
        suspicious=min(p, largest_p) < level / 2,
    )


@dataclass(frozen=True, kw_only=True)
class Influence:
    """The most that a share of fake reports can move an estimate when the server assigns keys.

    Attributes:
        frequency_up: Largest rise of a frequency.
        frequency_down: Largest fall of a frequency of 1 (less for a rarer key).
        product: Largest change of frequency times mean (mean scaled to [-1, 1]).
    """

    frequency_up: float
    frequency_down: float
    product: float


def influence_bounds(study: Study, *, fraction: float) -> Influence:
    """What a share of fake reports about a key can do to its unclipped estimates.

    Example:
        >>> from sabun.keyvalue import Study
        >>> round(influence_bounds(Study(keys=["a", "b"], epsilon=1.0), fraction=0.01).frequency_up, 4)
        0.0158
    """
    checks.probability(fraction=fraction)
    channel = study.channel
    return Influence(
        frequency_up=fraction * (1 - channel.b) / channel.gap,
        frequency_down=fraction * (channel.b / channel.gap + 1),
        product=fraction * (1 / channel.kappa + 1),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SizeTest:
    """Which unary reports claim more keys than honest noise would.

    Attributes:
        p_values: One per report.
        suspicious: Positions of reports below the level, shared out over all reports (Bonferroni).
    """

    p_values: Floats
    suspicious: NDArray[np.intp]


def report_size_test(study: Study, symbols: ArrayLike, *, level: float = 0.001) -> SizeTest:
    """Tests the number of claimed keys of each unary report.

    An honest report has at most Binomial(d - 1, b) + Bernoulli(max(a, b)) claims. Fakes who pad to the expected number evade
    it.

    Args:
        study: A study with protocol `pckv-ue`.
        symbols: One row per report, one of 0, 1, 2 per key.
        level: Below which probability to call some report suspicious.
    """
    if study.protocol != "pckv-ue":
        raise ParameterError(f"protocol must be 'pckv-ue'; got {study.protocol!r}.")
    table = np.asarray(symbols)
    keys = len(study.terms.keys)
    checks.require(table.ndim == 2 and table.shape[1] == keys, f"a table with {keys} columns", symbols=table.shape)
    claims = (table != 0).sum(axis=1).astype(float)
    a, b = max(float(study.terms.table.a), float(study.terms.table.b)), float(study.terms.table.b)
    p_values = (1 - a) * _tail(claims, keys - 1, b) + a * _tail(claims - 1, keys - 1, b)
    return SizeTest(p_values=p_values, suspicious=np.flatnonzero(p_values < level / max(1, len(table))))


def _tail(claims: Floats, trials: int, share: float) -> Floats:
    """P[Binomial(trials, share) >= claims]."""
    with np.errstate(invalid="ignore"):
        tail = bdtrc(np.clip(claims - 1, 0, trials), trials, share)
    return np.where(claims <= 0, 1.0, np.where(claims > trials, 0.0, tail))
