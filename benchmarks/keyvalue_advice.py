"""How much the advisor's choice loses to the best protocol in hindsight: exact variances over 576 studies, nothing is drawn.

Studies of 8 to 2,000 keys of which people hold at most 1 to 8 and on average all, half or a fifth of that bound, epsilon from
.5 to 4, and frequencies that are even, Zipf, slowly falling or gathered in a tenth of the keys; nobody holds more than that.
Regret is the root mean squared error of frequency and frequency times mean together, over the smallest that any protocol has.

    python -m benchmarks.keyvalue_advice [--every N]
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sabun.keyvalue.advisor import advise, channel_for
from sabun.keyvalue.client import ClientError

__all__ = ["Regret", "regrets"]

PROTOCOLS = ("kv3", "privkv-tight", "pckv-ue", "pckv-grr", "pckv-grr+", "set")
SHIPPED = ("kv3", "privkv-tight", "pckv-ue", "pckv-grr", "pckv-grr+")
"""Before there were sets."""
_KEYS, _HELD, _EPSILONS, _FILLED = (8, 30, 120, 2000), (1, 3, 8), ("0.5", "1", "2", "4"), (1.0, 0.5, 0.2)
_SHAPES: dict[str, Callable[[int], np.ndarray]] = {
    "even": lambda d: np.ones(d),
    "zipf": lambda d: 1 / np.arange(1, d + 1),
    "slow": lambda d: np.arange(1, d + 1) ** -0.5,
    "gathered": lambda d: np.where(np.arange(d) < max(1, d // 10), 1.0, 0.01),
}


@dataclass(frozen=True, kw_only=True)
class Regret:
    """One study: which protocol was taken, which would have been best, and how many times the errors are as large."""

    study: tuple[int, int, str, str, float]
    taken: str
    best: str
    regret: float
    gain: float
    """Of the protocol taken, over the best without sets."""


def regrets(every: int = 1) -> Iterator[Regret]:
    """Of every so many studies."""
    studies = itertools.product(_KEYS, _HELD, _EPSILONS, _SHAPES, _FILLED)
    for d, held, epsilon, shape, filled in itertools.islice(studies, 0, None, every):
        weights = _SHAPES[shape](d)
        f = np.minimum(filled * held * weights / weights.sum(), 0.9)
        errors = {name: error for name in PROTOCOLS if (error := _error(name, Fraction(epsilon), d, held, f)) is not None}
        taken = advise(keys=d, epsilon=Fraction(epsilon), keys_per_user=held).best.protocol
        best = min(errors, key=lambda name: errors[name])
        gain = min(errors[name] for name in SHIPPED if name in errors) / errors[taken]
        yield Regret(
            study=(d, held, epsilon, shape, filled), taken=taken, best=best, regret=errors[taken] / errors[best] - 1, gain=gain
        )


def _error(protocol: str, epsilon: Fraction, d: int, held: int, f: np.ndarray) -> float | None:
    try:
        channel = channel_for(protocol, epsilon, d, held)
    except ClientError:
        return None
    about = 1.0 if protocol.startswith("pckv") or protocol == "set" else 1 / d
    squares = channel.frequency_variance(f, about) + channel.product_variance(f, 0.5, about)
    return float(np.sqrt(squares.mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description="What the advisor's choice loses to the best one.")
    parser.add_argument("--every", type=int, default=1, help="every so many studies")
    found = list(regrets(parser.parse_args().every))
    lost, gains = np.array([one.regret for one in found]), np.array([one.gain for one in found])
    print(
        f"{len(found)} studies: regret {100 * lost.mean():.2f} % on average, above 5 % in {100 * (lost > 0.05).mean():.1f} %,"
    )
    print(f"largest {100 * lost.max():.1f} %; over the best without sets {np.exp(np.log(gains).mean()):.2f} times better")
    print("taken:", dict(Counter(one.taken for one in found).most_common()))
    for one in sorted(found, key=lambda one: -one.regret)[:5]:
        print(f"    {100 * one.regret:.1f} %  {one.study}: {one.taken}, best {one.best}")


if __name__ == "__main__":
    main()
