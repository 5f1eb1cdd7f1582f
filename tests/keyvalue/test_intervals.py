"""What intervals of one key cover, computed exactly: every outcome weighed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.special import gammaln

from sabun.keyvalue import Study
from sabun.keyvalue.channel import Channel, Counts
from sabun.keyvalue.intervals import frequency_interval, mean_interval


def channel_of(protocol: str, epsilon: float, padding: int | None = None) -> Channel:
    return Study(keys=list(range(50)), epsilon=epsilon, protocol=protocol, padding_length=padding).channel


@cache
def outcomes(channel: Channel, n: int) -> tuple[Counts, np.ndarray, np.ndarray, np.ndarray]:
    """All counts of n reports, in how many ways each comes about, and the intervals it gives."""
    minus = np.repeat(np.arange(n + 1), np.arange(n + 1, 0, -1))
    plus = np.concatenate([np.arange(n - seen + 1) for seen in range(n + 1)])
    counts = Counts(plus=plus, minus=minus, total=np.full(len(plus), n))
    ways = gammaln(n + 1) - gammaln(plus + 1) - gammaln(minus + 1) - gammaln(n - plus - minus + 1)
    return counts, ways, frequency_interval(channel, counts), mean_interval(channel, counts)


def covered(channel: Channel, n: int, f: float, m: float) -> tuple[float, float]:
    """The probability that the frequency's interval holds f, and the mean's m."""
    counts, ways, frequencies, means = outcomes(channel, n)
    law = np.log(np.array([f * (1 + m) / 2, f * (1 - m) / 2, 1 - f]) @ channel.rows)
    none = counts.total - counts.plus - counts.minus
    chance = np.exp(ways + counts.plus * law[0] + counts.minus * law[1] + none * law[2])
    assert chance.sum() == pytest.approx(1)
    inside = [(ends[:, 0] <= truth + 1e-9) & (truth <= ends[:, 1] + 1e-9) for ends, truth in ((frequencies, f), (means, m))]
    return float(chance[inside[0]].sum()), float(chance[inside[1]].sum())


@pytest.mark.parametrize(
    ("protocol", "padding", "epsilon", "n", "f", "m"),
    [
        ("kv3", None, 1.5, 250, 0.3, 0.97),
        ("kv3", None, 1.5, 250, 0.8, 0.99),
        ("kv3", None, 1.5, 250, 0.8, -0.97),
        ("kv3", None, 1.5, 250, 0.5, 0.95),
        ("kv3", None, 3, 300, 0.3, 0.9),
        ("privkv", None, 2, 250, 0.5, 0.9),
        ("pckv-ue", 2, 3, 250, 0.9, 0.99),
    ],
)
def test_a_mean_near_the_end_of_its_range_is_covered(
    protocol: str, padding: int | None, epsilon: float, n: int, f: float, m: float
) -> None:
    """With the variance at the estimate instead of at the mean in question, 93.9 to 94.6 % were, where 94.4 was stated."""
    assert covered(channel_of(protocol, epsilon, padding), n, f, m)[1] >= 0.944


def test_intervals_cover_what_the_page_says_where_nobody_looked_before() -> None:
    """docs/jobs/keyvalue.md names the lowest figures of a search; here other settings, drawn at random."""
    dice = np.random.default_rng(20261116)
    found = []
    for _ in range(8):
        protocol = str(dice.choice(["kv3", "privkv", "privkv-tight", "pckv-ue", "pckv-grr", "pckv-grr+"]))
        padding = int(dice.integers(1, 6)) if protocol.startswith("pckv") else None
        channel, n = channel_of(protocol, round(float(dice.uniform(0.3, 5)), 2), padding), int(dice.integers(50, 260))
        for _ in range(25):
            f = float(np.exp(dice.uniform(np.log(0.01), 0)))
            m = float(dice.choice([-1, 1]) * (1 - np.exp(dice.uniform(np.log(1e-3), 0))))
            found.append(covered(channel, n, f, m))
    frequencies, means = np.array(found).T
    assert frequencies.min() >= 0.93
    assert means.min() >= 0.944
    assert np.median(frequencies) < 0.97, "an interval that always covers would say nothing"


def test_a_mean_that_is_clearly_known_has_a_short_interval() -> None:
    found = mean_interval(channel_of("kv3", 2), Counts(plus=[30_000], minus=[20_000], total=[100_000]))
    assert 0 < found[0, 1] - found[0, 0] < 0.06
