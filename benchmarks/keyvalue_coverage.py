"""What the 95 % intervals of one key cover, computed exactly: every outcome of a trinomial is weighed, nothing is drawn.

Settings are drawn at random, so that nobody can have tuned on them; `--seed` takes others.

    python -m benchmarks.keyvalue_coverage [--channels N] [--seed N] [--most REPORTS]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sabun.keyvalue import Study
from sabun.keyvalue.channel import Channel, Counts
from sabun.keyvalue.intervals import frequency_interval, mean_interval

PROTOCOLS = ("kv3", "privkv", "privkv-tight", "pckv-ue", "pckv-grr", "pckv-grr+")
_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """All counts that n reports about one key can give, in how many ways (log), with the intervals they lead to."""

    channel: Channel
    counts: Counts
    ways: _Floats
    frequencies: _Floats
    means: _Floats

    def covered(self, f: float, m: float) -> tuple[float, float]:
        """The probability that the frequency's interval holds f, and the mean's interval m."""
        law = np.log(np.array([f * (1 + m) / 2, f * (1 - m) / 2, 1 - f]) @ self.channel.rows)
        none = self.counts.total - self.counts.plus - self.counts.minus
        chance = np.exp(self.ways + self.counts.plus * law[0] + self.counts.minus * law[1] + none * law[2])
        inside = [_inside(self.frequencies, f), _inside(self.means, m)]
        return float(chance[inside[0]].sum()), float(chance[inside[1]].sum())


def outcomes(channel: Channel, n: int) -> Outcomes:
    minus = np.repeat(np.arange(n + 1), np.arange(n + 1, 0, -1))
    plus = np.concatenate([np.arange(n - seen + 1) for seen in range(n + 1)])
    counts = Counts(plus=plus, minus=minus, total=np.full(len(plus), n))
    ways = gammaln(n + 1) - gammaln(plus + 1) - gammaln(minus + 1) - gammaln(n - plus - minus + 1)
    ends = frequency_interval(channel, counts), mean_interval(channel, counts)
    return Outcomes(channel=channel, counts=counts, ways=ways, frequencies=ends[0], means=ends[1])


def at_random(*, channels: int, seed: int, most: int, settings: int = 12) -> _Floats:
    """The covered shares of frequencies and means in settings drawn at random, one row each."""
    dice = np.random.default_rng(seed)
    found = []
    for _ in range(channels):
        protocol = str(dice.choice(PROTOCOLS))
        epsilon = round(float(np.exp(dice.uniform(np.log(0.3), np.log(6)))), 3)
        padding = int(dice.integers(1, 6)) if protocol.startswith("pckv") else None
        keys = list(range(int(dice.choice([5, 20, 50, 200]))))
        n = int(np.exp(dice.uniform(np.log(50), np.log(most))))
        possible = outcomes(Study(keys=keys, epsilon=epsilon, protocol=protocol, padding_length=padding).channel, n)
        for _ in range(settings):
            f = float(np.exp(dice.uniform(np.log(0.005), 0)))
            near = dice.random() < 0.6  # most means near an end of their range, where an interval is hardest to get right
            far = float(np.exp(dice.uniform(np.log(1e-3), 0))) if near else float(dice.uniform(0, 1))
            found.append(possible.covered(f, float(dice.choice([-1, 1])) * (1 - far)))
    return np.array(found)


def _inside(ends: _Floats, truth: float) -> NDArray[np.bool_]:
    return np.asarray((ends[:, 0] <= truth + 1e-9) & (truth <= ends[:, 1] + 1e-9))


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact coverage of the 95 % intervals in settings drawn at random.")
    parser.add_argument("--channels", type=int, default=200, help="channels, of twelve settings each")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--most", type=int, default=700, help="most reports about a key")
    options = parser.parse_args()
    found = at_random(channels=options.channels, seed=options.seed, most=options.most)
    for name, shares in zip(("frequencies", "means"), found.T, strict=True):
        low, rare, middle = shares.min(), np.quantile(shares, 0.01), np.median(shares)
        print(f"{name:<12} {len(shares)} settings: lowest {low:.4f}, 1 % below {rare:.4f}, median {middle:.4f}")


if __name__ == "__main__":
    main()
