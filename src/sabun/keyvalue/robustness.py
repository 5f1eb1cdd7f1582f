"""How much fake people could have done, and whether they show.

Lower epsilon makes fakes stronger: each report is worth more noise. Assigned keys (the default) are the best defence; with
chosen keys or unary encoding, these tests find the clumsy ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, bdtrc, betainc, gammaincc, gammaln, xlog1py

from sabun import checks
from sabun.asking.names import renamed
from sabun.errors import ParameterError
from sabun.keyvalue.channel import Counts, Floats

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["Influence", "SizeTest", "UniformityTest", "index_uniformity_test", "influence_bounds", "report_size_test"]

_HALVINGS = 40


@dataclass(frozen=True, kw_only=True)
class UniformityTest:
    """Whether reports are spread evenly over the keys, as honest devices spread them.

    Attributes:
        chi_square: Pearson's statistic.
        p_value: Its probability under honest devices, by a gamma law with the exact mean, variance and skewness: approximate,
            and the truth may be twice as much at 0.0001, several times as much further out.
        largest_z: How far the most asked key stands out, in standard deviations.
        largest_p_value: The probability that any key is asked as often: the exact binomial tail, times the number of keys.
        suspicious: Whether the first is below a quarter of the significance (it is approximate) or the second below half of it.
    """

    chi_square: float
    p_value: float
    largest_z: float
    largest_p_value: float
    suspicious: bool


@renamed(level="significance")
def index_uniformity_test(counts: Counts | ArrayLike, *, significance: float = 0.001) -> UniformityTest:
    """Tests the number of reports per key against the multinomial of honest devices, however few reports there are.

    Args:
        counts: Reports per key, or a tally's counts.
        significance: How often honest devices may be called suspicious; kept down to 0.001, below which the law of the first
            test is too coarse (by a fifth at 0.0001).

    Raises:
        ParameterError: There are fewer than two keys or no reports.

    Example:
        >>> [index_uniformity_test(reports).suspicious for reports in ([0, 3, 1, 2, 1, 0, 2, 1], [9, 1, 0, 0, 0, 0, 0, 0])]
        [False, True]
    """
    checks.probability(significance=significance)
    totals = np.asarray(counts.total if isinstance(counts, Counts) else counts, dtype=float)
    checks.require(
        totals.ndim == 1 and len(totals) >= 2 and totals.sum() > 0, "two keys or more, with reports", counts=len(totals)
    )
    n, keys, most = float(totals.sum()), len(totals), float(totals.max())
    expected = n / keys
    p = _coinciding((totals * (totals - 1)).sum() / 2, n, keys)
    largest_p = float(min(1.0, keys * betainc(most, n - most + 1, 1 / keys)))
    return UniformityTest(
        chi_square=float(((totals - expected) ** 2 / expected).sum()),
        p_value=p,
        largest_z=float((most - expected) / np.sqrt(expected * (1 - 1 / keys))),
        largest_p_value=largest_p,
        suspicious=p < significance / 4 or largest_p < significance / 2,
    )


def _coinciding(pairs: float, n: float, keys: int) -> float:
    """P[at least so many pairs of reports share their key]: Pearson's statistic is a rising function of their number.

    Whether two reports share a key is independent for any two pairs, so the variance is that of n(n-1)/2 coins; to the third
    moment each triple of reports adds 6 p^2 (1 - p). A gamma law with these three moments is chi-square's where reports are
    many and Poisson's where they are few; the step of one pair is left to the safe side.
    """
    if n < 3:
        return 1.0
    coins, p = n * (n - 1) / 2, 1 / keys
    variance = coins * p * (1 - p)
    third = variance * (1 - 2 * p) + n * (n - 1) * (n - 2) * p * p * (1 - p)
    scale, shape = third / (2 * variance), 4 * variance**3 / third**2
    return float(gammaincc(shape, max((pairs - 1 - coins * p) / scale + shape, 0.0)))


@dataclass(frozen=True, kw_only=True)
class Influence:
    """The most by which fake reports shift the expected value of an unclipped estimate, given who was asked about what.

    Attributes:
        share: The share of fakes among the reports about a key that the bounds are for.
        frequency_up: Largest rise of a frequency.
        frequency_down: Largest fall of a frequency of 1 (less for a rarer key).
        product: Largest change of frequency times mean (mean scaled to [-1, 1]); NaN where no values are asked.
    """

    share: float
    frequency_up: float
    frequency_down: float
    product: float


@renamed(level="significance")
def influence_bounds(study: Study, *, fraction: float, n: int | None = None, significance: float = 0.001) -> Influence:
    """What fake people can do to the estimates of a study, whatever they report.

    What counts is their share among the reports about a key. Where every report is about every key (`pckv-...`) that is their
    share of all reports. Where people are asked about one key it is a matter of luck: with few reports per key some key meets
    far more fakes than its part, and fakes who choose their key all meet at one.

    Args:
        study: The study.
        fraction: Fakes among those; one who is asked about the wrong key and keeps silent counts too.
        n: How many report, fakes who keep silent included (honest people who stay away are not counted). With it the bounds
            hold for every key at once, except with probability `significance` of the assignment. Without it they are for one
            key that is named before keys are assigned, and for the average over assignments; for another key, or in one
            assignment, they may be exceeded many times.
        significance: The probability left out.

    Raises:
        ParameterError: An argument breaks its rule.

    Example:
        >>> from sabun.keyvalue import Study
        >>> study = Study(keys=list(range(2000)), epsilon=1.0)
        >>> round(influence_bounds(study, fraction=0.01).frequency_up, 4)
        0.0158
        >>> round(influence_bounds(study, fraction=0.01, n=100_000).frequency_up, 4)
        0.2315
    """
    checks.probability(fraction=fraction, significance=significance)
    if n is not None:
        checks.whole(minimum=1, n=n)
    share = fraction
    if study.terms.sampled:
        share = _share(len(study.terms.keys), fraction, n, significance, aimed=study.terms.index_mode == "chosen")
    channel = study.channel
    return Influence(
        share=share,
        frequency_up=share * (1 - channel.b) / channel.gap,
        frequency_down=share * (channel.b / channel.gap + 1),
        product=math.nan if study.terms.valueless else share * (1 / channel.kappa + 1),
    )


def _share(keys: int, fraction: float, n: int | None, significance: float, *, aimed: bool) -> float:
    """The share of fakes about a key: expected for one key, or exceeded by no key except with probability `significance`."""
    if n is None:
        return fraction / (fraction + (1 - fraction) / keys) if aimed else fraction
    fakes = math.ceil(fraction * n)
    if fakes == 0 or fakes >= n:
        return float(fakes > 0)
    if aimed:
        counts, _, _ = _law(n - fakes, keys)
        return fakes / (fakes + float(counts[bdtr(counts, n - fakes, 1 / keys) > significance / keys].min()))
    counts, weights, rest = _law(fakes, keys)

    def exceeded(share: float) -> float:
        """P[more than that share of the reports about one key is fake]: fewer than F (1 - share) / share are honest."""
        needed = np.clip(np.ceil(counts * (1 - share) / share), 0, n - fakes + 1)
        return float(weights @ np.where(needed == 0, 0.0, bdtr(np.maximum(needed - 1, 0), n - fakes, 1 / keys))) + rest

    # The probability falls as the share grows; the upper end is always one that is not exceeded: the safe side.
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if keys * exceeded(middle) <= significance else (middle, high)
    return high


def _law(people: int, keys: int) -> tuple[Floats, Floats, float]:
    """How many of them meet at one key: numbers, their probabilities, and the probability of all other numbers."""
    centre = people / keys
    reach = 12 * math.sqrt(centre) + 60
    counts = np.arange(max(0.0, math.floor(centre - reach)), min(float(people), math.ceil(centre + reach)) + 1)
    ways = gammaln(people + 1) - gammaln(counts + 1) - gammaln(people - counts + 1)
    weights = np.exp(ways - counts * math.log(keys) + xlog1py(people - counts, -1 / keys))
    outside = _tail(counts[-1:] + 1, people, 1 / keys)[0] + (bdtr(counts[0] - 1, people, 1 / keys) if counts[0] else 0.0)
    return counts, weights, float(outside)


@dataclass(frozen=True, kw_only=True, eq=False)
class SizeTest:
    """Which unary reports claim more keys than honest noise would.

    Attributes:
        p_values: One per report.
        suspicious: Positions of reports below the significance, shared out over all reports (Bonferroni).
    """

    p_values: Floats
    suspicious: NDArray[np.intp]


@renamed(level="significance")
def report_size_test(study: Study, symbols: ArrayLike, *, significance: float = 0.001) -> SizeTest:
    """Tests the number of claimed keys of each unary report.

    An honest report has at most Binomial(d - 1, b) + Bernoulli(max(a, b)) claims. Fakes who pad to the expected number evade
    it.

    Args:
        study: A study with protocol `pckv-ue`.
        symbols: One row per report, one of 0, 1, 2 per key.
        significance: Below which probability to call some report suspicious.
    """
    checks.probability(significance=significance)
    if study.protocol != "pckv-ue":
        raise ParameterError(f"protocol must be 'pckv-ue'; got {study.protocol!r}.")
    table = np.asarray(symbols)
    keys = len(study.terms.keys)
    checks.require(table.ndim == 2 and table.shape[1] == keys, f"a table with {keys} columns", symbols=table.shape)
    claims = (table != 0).sum(axis=1).astype(float)
    a, b = max(float(study.terms.table.a), float(study.terms.table.b)), float(study.terms.table.b)
    p_values = (1 - a) * _tail(claims, keys - 1, b) + a * _tail(claims - 1, keys - 1, b)
    return SizeTest(p_values=p_values, suspicious=np.flatnonzero(p_values < significance / max(1, len(table))))


def _tail(claims: Floats, trials: int, share: float) -> Floats:
    """P[Binomial(trials, share) >= claims]."""
    with np.errstate(invalid="ignore"):
        tail = bdtrc(np.clip(claims - 1, 0, trials), trials, share)
    return np.where(claims <= 0, 1.0, np.where(claims > trials, 0.0, tail))
