"""How much the advisor's choice loses to the best protocol in hindsight: exact variances, nothing is drawn.

Studies of 5 to 2,000 keys of which people hold at most 1 to 8 and on average all, half or a fifth of that bound, epsilon from
.5 to 4, frequencies that are even, Zipf, slowly falling or gathered in a tenth of the keys, and means in the middle, halfway or
at an end of the range; nobody holds more than was said. Regret is the root mean squared error of what the study aims at, over
the smallest that any protocol has: of frequency and frequency times mean together (`both`), of frequencies (`f`), or of means
times frequencies (`m`). In a second figure the best in hindsight may also draw subsets of another width than ours.

Where a typical frequency is told, padding is chosen too, and cutting off costs bias: there people hold keys independently, the
bound is loose (some five standard deviations above what they hold on average), and the best in hindsight may take any length.

    python -m benchmarks.keyvalue_advice [--aim both|f|m] [--every N]
    python -m benchmarks keyvalue_advice    (what the pages show: all three aims)
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from benchmarks.measure import Figure
from sabun.keyvalue.advisor import AIMS, advise, channel_for, squared_bias, squared_error
from sabun.keyvalue.channel import Channel
from sabun.keyvalue.client import ClientError
from sabun.keyvalue.client.probabilities import SAMPLED, SETS, subsets_of
from sabun.keyvalue.simulation import pick_probabilities

__all__ = ["GUESSES", "Regret", "guessed", "regrets", "run"]

MEASURES = (
    "src/sabun/keyvalue/advisor.py",
    "src/sabun/keyvalue/channel.py",
    "src/sabun/keyvalue/client/probabilities.py",
    "src/sabun/keyvalue/client/subsets.py",
    "src/sabun/keyvalue/simulation.py",
    "src/sabun/keyvalue/yesno.py",
)

SHIPPED = ("kv3", "privkv-tight", "pckv-ue", "pckv-grr", "pckv-grr+")
"""Before there were sets, and protocols for frequencies alone."""
VALUED = (*SHIPPED, "set")
PROTOCOLS = {"both": VALUED, "m": VALUED, "f": (*VALUED, "rr-f", "set-f")}
_OFFERED = {"both": ("kv3", "pckv-ue", "pckv-grr+", "set"), "m": ("kv3", "pckv-ue", "pckv-grr+", "set"), "f": ("rr-f", "set-f")}
"""What the best in hindsight may be where its padding may have any length."""
_KEYS, _HELD = (5, 8, 12, 15, 20, 30, 60, 120, 500, 2000), (1, 2, 3, 4, 5, 6, 8)
_EPSILONS, _FILLED, _MEANS = ("0.5", "0.7", "1", "1.4", "2", "2.8", "4"), (1.0, 0.5, 0.2), (0.0, 0.5, 1.0)
_SHAPES: dict[str, Callable[[int], np.ndarray]] = {
    "even": lambda d: np.ones(d),
    "zipf": lambda d: 1 / np.arange(1, d + 1),
    "slow": lambda d: np.arange(1, d + 1) ** -0.5,
    "gathered": lambda d: np.where(np.arange(d) < max(1, d // 10), 1.0, 0.01),
}
_WIDTHS = (0.25, 0.5, 0.75, 1.3, 2.0)
"""Other widths of a subset, as parts of ours; and 1, 2, 3, and one more."""


_GUESSED_KEYS, _GUESSED_HELD, _GUESSED_EPSILONS, _GUESSED_REPORTS = (
    (20, 60, 200),
    (1, 2, 4),
    _EPSILONS[::2],
    (2000, 20_000, 100_000),
)
GUESSES = {"right": Fraction(1), "half the truth": Fraction(1, 2), "twice the truth": Fraction(2)}


@dataclass(frozen=True, kw_only=True)
class Regret:
    """One study: which protocol was taken, which would have been best, and by how much the error is larger.

    Attributes:
        study: Keys, most keys held, epsilon, shape, how full, mean; of a guess keys, keys held on average, epsilon, shape,
            reports, mean.
        taken: The advisor's protocol, with its padding length where a frequency was guessed.
        best: The best one in hindsight.
        regret: Of the one taken over the best, less 1.
        widths: The same where the best may have subsets of another width.
        gain: How many times smaller the error is than the smallest of the protocols before there were sets.
    """

    study: tuple[int, int, str, str, float, float]
    taken: str
    best: str
    regret: float
    widths: float
    gain: float


def regrets(every: int = 1, aim: str = "both") -> Iterator[Regret]:
    """Of every so many studies."""
    means = (0.0,) if aim == "f" else _MEANS
    studies = (one for one in itertools.product(_KEYS, _HELD, _EPSILONS, _SHAPES, _FILLED, means) if one[1] <= one[0])
    for d, held, epsilon, shape, filled, mean in itertools.islice(studies, 0, None, every):
        f = _frequencies(shape, d, filled * held)
        found = {name: _channel(name, epsilon, d, held) for name in PROTOCOLS[aim]}
        errors = {name: _of(name, channel, f, mean, aim, 1.0) for name, channel in found.items() if channel is not None}
        taken = _taken(epsilon, d, held, aim)
        best = min(errors, key=lambda name: errors[name])
        others = [
            _of(name, channel, f, mean, aim, 1.0)
            for name in SETS
            if name in errors
            for channel in _widths(name, epsilon, d, held)
        ]
        yield Regret(
            study=(d, held, epsilon, shape, filled, mean),
            taken=taken,
            best=best,
            regret=round(errors[taken] / errors[best] - 1, 9),
            widths=round(errors[taken] / min(errors[best], *others) - 1, 9),
            gain=min(errors[name] for name in SHIPPED if name in errors) / errors[taken],
        )


def guessed(guess: Fraction, every: int = 1, aim: str = "both") -> Iterator[Regret]:
    """Of every so many studies whose typical frequency is told as so many times the truth."""
    studies = itertools.product(_GUESSED_KEYS, _GUESSED_HELD, _GUESSED_EPSILONS, _SHAPES, _GUESSED_REPORTS)
    for d, held, epsilon, shape, n in itertools.islice(studies, 0, None, every):
        f = _frequencies(shape, d, held)
        most = min(d, math.ceil(f.sum() + 5 * f.sum() ** 0.5 + 1))
        told = min(Fraction(1), guess * Fraction(float(f.mean())).limit_denominator(10_000))
        advice = advise(
            keys=d, epsilon=Fraction(epsilon), keys_per_user=most, typical_frequency=told, expected_reports=n, aim=aim
        ).best
        errors = {}
        for ell in range(1, most + 1):
            kept = np.minimum(1.0, ell * pick_probabilities(f, ell))
            for name in _OFFERED[aim]:
                channel = None if name in SAMPLED and ell > 1 else _channel(name, epsilon, d, ell)
                if channel is not None:
                    errors[name, ell] = _of(name, channel, f, _MEANS[1], aim, n, 1.0 if name in SAMPLED else kept)
        taken, best = (advice.protocol, advice.padding_length), min(errors, key=lambda one: errors[one])
        regret = round(errors[taken] / errors[best] - 1, 9)
        told_as = [f"{name} padded to {ell}" for name, ell in (taken, best)]
        study = (d, held, epsilon, shape, float(n), _MEANS[1])
        yield Regret(study=study, taken=told_as[0], best=told_as[1], regret=regret, widths=regret, gain=1.0)


def _frequencies(shape: str, d: int, held: float) -> np.ndarray:
    weights = _SHAPES[shape](d)
    return np.minimum(held * weights / weights.sum(), 0.9)


@cache
def _taken(epsilon: str, d: int, held: int, aim: str) -> str:
    return advise(keys=d, epsilon=Fraction(epsilon), keys_per_user=held, aim=aim).best.protocol


@cache
def _channel(protocol: str, epsilon: str, d: int, padding: int) -> Channel | None:
    try:
        return channel_for(protocol, Fraction(epsilon), d, padding)
    except ClientError:
        return None


def _of(
    protocol: str, channel: Channel, f: np.ndarray, mean: float, aim: str, n: float, kept: np.ndarray | float = 1.0
) -> float:
    variance = squared_error(channel, aim, f * kept, mean, n / len(f) if protocol in SAMPLED else n)
    return float(np.sqrt((variance + squared_bias(aim, f, mean, kept)).mean()))


@cache
def _widths(protocol: str, epsilon: str, d: int, held: int) -> tuple[Channel, ...]:
    """What subsets of other widths would say."""
    ours = subsets_of(protocol=protocol, epsilon=Fraction(epsilon), keys=d, padding=held)
    tried = {1, 2, 3, ours.width + 1, *(round(part * ours.width) for part in _WIDTHS)} - {ours.width}
    found = []
    for width in sorted(width for width in tried if 1 <= width <= d):
        keep, opposite, each = (float(share) for share in dataclasses.replace(ours, width=width).law)
        a, b = keep + opposite, ours.signs * each
        if a > b:
            found.append(Channel(a=a, b=b, p=keep / a if opposite else 0.75))  # without signs p is never looked at
    return tuple(found)


def run(quick: bool) -> list[Figure]:
    """What the pages show: of each aim, how much is lost, and how much is gained over what there was before."""
    figures = []
    every = 71 if quick else 1
    for aim in AIMS:
        found = list(regrets(every, aim))
        lost, wider = (np.array([getattr(one, name) for one in found]) for name in ("regret", "widths"))
        told = {
            "on average": lost.mean(),
            "above 5 %, share of studies": (lost > 0.05).mean(),
            "largest": lost.max(),
            "with any width, on average": wider.mean(),
            "with any width, largest": wider.max(),
        }
        figures += _told(f"regret of the advice, aim {aim}", told, f"{len(found)} studies; {_worst(found)}")
        for guess, factor in GUESSES.items():
            some = list(guessed(factor, every, aim))
            lost = np.array([one.regret for one in some])
            told = {"on average": lost.mean(), "largest": lost.max()}
            figures += _told(
                f"regret with a typical frequency, {guess}, aim {aim}", told, f"{len(some)} studies; {_worst(some)}"
            )
        name = f"RMSE of the advice, aim {aim}, best protocol before sets in hindsight"
        gain, note = float(np.exp(np.log([one.gain for one in found]).mean())), f"{len(found)} studies"
        figures.append(
            Figure(
                room="keyvalue", name=name, ours=1 / gain, peer=1.0, peer_name="that one", unit="RMSE", ratio=gain, note=note
            )
        )
    return figures


def _told(name: str, told: dict[str, float], note: str) -> list[Figure]:
    return [
        Figure(
            room="keyvalue", name=f"{name}, {what}", ours=100 * float(value), unit="%", note=note if what == "largest" else ""
        )
        for what, value in told.items()
    ]


def _worst(found: list[Regret]) -> str:
    """Where most is lost."""
    one = max(found, key=lambda one: one.regret)
    d, held, epsilon, shape, filled, mean = one.study
    how_full = f"filled {filled:g}" if filled <= 1 else f"{filled:,.0f} reports"
    where = f"{d} keys, {held} held, epsilon {epsilon}, {shape}, {how_full}, means {mean:g}"
    return f"most is lost by {one.taken} beside {one.best}: {where}"


def main() -> None:
    parser = argparse.ArgumentParser(description="What the advisor's choice loses to the best one.")
    parser.add_argument("--every", type=int, default=1, help="every so many studies")
    parser.add_argument("--aim", choices=AIMS, default="both", help="what the studies want to know")
    options = parser.parse_args()
    found = list(regrets(options.every, options.aim))
    lost, gains = np.array([one.regret for one in found]), np.array([one.gain for one in found])
    print(
        f"{len(found)} studies: regret {100 * lost.mean():.2f} % on average, above 5 % in {100 * (lost > 0.05).mean():.1f} %,"
    )
    print(f"largest {100 * lost.max():.1f} %; over the best before sets {np.exp(np.log(gains).mean()):.2f} times better")
    print(f"largest where subsets may have any width: {100 * max(one.widths for one in found):.1f} %")
    print("taken:", dict(Counter(one.taken for one in found).most_common()))
    for one in sorted(found, key=lambda one: -one.regret)[:5]:
        print(f"    {100 * one.regret:.1f} %  {one.study}: {one.taken}, best {one.best}")


if __name__ == "__main__":
    main()
