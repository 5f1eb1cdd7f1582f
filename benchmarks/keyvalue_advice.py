"""How much the advisor's choice loses to the best protocol in hindsight: exact variances over 576 studies, nothing is drawn.

Studies of 8 to 2,000 keys of which people hold at most 1 to 8 and on average all, half or a fifth of that bound, epsilon from
.5 to 4, and frequencies that are even, Zipf, slowly falling or gathered in a tenth of the keys; nobody holds more than that.
Regret is the root mean squared error of what the study aims at, over the smallest that any protocol has: of frequency and
frequency times mean together (`both`), of frequencies (`f`), or of means times frequencies (`m`). In a second figure
the best in hindsight may also draw subsets of another width than ours.

    python -m benchmarks.keyvalue_advice [--aim both|f|m] [--every N]
    python -m benchmarks keyvalue_advice    (what the pages show: all three aims)
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.measure import Figure
from sabun.keyvalue.advisor import AIMS, advise, channel_for, squared_error
from sabun.keyvalue.channel import Channel
from sabun.keyvalue.client import ClientError
from sabun.keyvalue.client.probabilities import SAMPLED, SETS, subsets_of

__all__ = ["Regret", "regrets", "run"]

MEASURES = (
    "src/sabun/keyvalue/advisor.py",
    "src/sabun/keyvalue/channel.py",
    "src/sabun/keyvalue/client/probabilities.py",
    "src/sabun/keyvalue/client/subsets.py",
    "src/sabun/keyvalue/yesno.py",
)

SHIPPED = ("kv3", "privkv-tight", "pckv-ue", "pckv-grr", "pckv-grr+")
"""Before there were sets, and protocols for frequencies alone."""
VALUED = (*SHIPPED, "set")
PROTOCOLS = {"both": VALUED, "m": VALUED, "f": (*VALUED, "rr-f", "set-f")}
_KEYS, _HELD, _EPSILONS, _FILLED = (8, 30, 120, 2000), (1, 3, 8), ("0.5", "1", "2", "4"), (1.0, 0.5, 0.2)
_SHAPES: dict[str, Callable[[int], np.ndarray]] = {
    "even": lambda d: np.ones(d),
    "zipf": lambda d: 1 / np.arange(1, d + 1),
    "slow": lambda d: np.arange(1, d + 1) ** -0.5,
    "gathered": lambda d: np.where(np.arange(d) < max(1, d // 10), 1.0, 0.01),
}
_WIDTHS = (0.25, 0.5, 0.75, 1.3, 2.0)
"""Other widths of a subset, as parts of ours; and 1, 2, 3, and one more."""


@dataclass(frozen=True, kw_only=True)
class Regret:
    """One study: which protocol was taken, which would have been best, and by how much the error is larger.

    Attributes:
        study: Keys, most keys held, epsilon, shape, how full.
        taken: The advisor's protocol.
        best: The best one in hindsight.
        regret: Of the one taken over the best, less 1.
        widths: The same where the best may have subsets of another width.
        gain: How many times smaller the error is than the smallest of the protocols before there were sets.
    """

    study: tuple[int, int, str, str, float]
    taken: str
    best: str
    regret: float
    widths: float
    gain: float


def regrets(every: int = 1, aim: str = "both") -> Iterator[Regret]:
    """Of every so many studies."""
    studies = itertools.product(_KEYS, _HELD, _EPSILONS, _SHAPES, _FILLED)
    for d, held, epsilon, shape, filled in itertools.islice(studies, 0, None, every):
        weights = _SHAPES[shape](d)
        f = np.minimum(filled * held * weights / weights.sum(), 0.9)
        amount = Fraction(epsilon)
        errors = {name: error for name in PROTOCOLS[aim] if (error := _error(name, amount, d, held, f, aim)) is not None}
        taken = advise(keys=d, epsilon=amount, keys_per_user=held, aim=aim).best.protocol
        best = min(errors, key=lambda name: errors[name])
        others = [_of(channel, f, aim, 1.0) for name in SETS if name in errors for channel in _widths(name, amount, d, held)]
        yield Regret(
            study=(d, held, epsilon, shape, filled),
            taken=taken,
            best=best,
            regret=round(errors[taken] / errors[best] - 1, 9),
            widths=round(errors[taken] / min(errors[best], *others) - 1, 9),
            gain=min(errors[name] for name in SHIPPED if name in errors) / errors[taken],
        )


def _error(protocol: str, epsilon: Fraction, d: int, held: int, f: np.ndarray, aim: str) -> float | None:
    try:
        channel = channel_for(protocol, epsilon, d, held)
    except ClientError:
        return None
    return _of(channel, f, aim, 1 / d if protocol in SAMPLED else 1.0)


def _of(channel: Channel, f: np.ndarray, aim: str, about: float) -> float:
    return float(np.sqrt(squared_error(channel, aim, f, 0.5, about).mean()))


def _widths(protocol: str, epsilon: Fraction, d: int, held: int) -> Iterator[Channel]:
    """What subsets of other widths would say."""
    ours = subsets_of(protocol=protocol, epsilon=epsilon, keys=d, padding=held)
    tried = {1, 2, 3, ours.width + 1, *(round(part * ours.width) for part in _WIDTHS)} - {ours.width}
    for width in sorted(width for width in tried if 1 <= width <= d):
        keep, opposite, each = (float(share) for share in dataclasses.replace(ours, width=width).law)
        a, b = keep + opposite, ours.signs * each
        if a > b:
            yield Channel(a=a, b=b, p=keep / a if opposite else 0.75)  # without signs p is never looked at


def run(quick: bool) -> list[Figure]:
    """What the pages show: of each aim, how much is lost, and how much is gained over what there was before."""
    figures = []
    for aim in AIMS:
        found = list(regrets(7 if quick else 1, aim))
        lost, wider = (np.array([getattr(one, name) for one in found]) for name in ("regret", "widths"))
        gain = float(np.exp(np.log([one.gain for one in found]).mean()))
        told = {
            "on average": lost.mean(),
            "above 5 %, share of studies": (lost > 0.05).mean(),
            "largest": lost.max(),
            "with any width, on average": wider.mean(),
            "with any width, largest": wider.max(),
        }
        note = f"{len(found)} studies"
        figures += [
            Figure(
                room="keyvalue", name=f"regret of the advice, aim {aim}, {what}", ours=100 * float(value), unit="%", note=note
            )
            for what, value in told.items()
        ]
        name = f"RMSE of the advice, aim {aim}, best protocol before sets in hindsight"
        figures.append(
            Figure(
                room="keyvalue", name=name, ours=1 / gain, peer=1.0, peer_name="that one", unit="RMSE", ratio=gain, note=note
            )
        )
    return figures


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
