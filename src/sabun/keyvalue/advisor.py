"""Which protocol suits a study: predicted error from public facts, with the reasoning in words.

Nobody knows the frequencies beforehand. The advisor supposes sixteen keys: eight that are held evenly, f = L/d, and eight of a
Zipf law with the same sum, with means of half the range to either side; what suits these suits most studies (measured by
`python -m benchmarks.keyvalue_advice`), and no pair may be cut off. A guess of a typical frequency takes their place; then
people are supposed to hold keys independently of each other, and padding may cut pairs off where that costs less than noise.

Notation: d keys, n reports, L the most keys a person holds, ell the padding length, s the share of holdings that padding keeps:
1 without a guess, otherwise the mean of min(1, ell/H) over the number H of keys that a holder of a key holds, 1 + binomial(d-1,
f) of people who hold at most L; g = f m. Predicted squared error: Var f + Var g of a study that wants both, Var f where it
wants frequencies alone, Var(g - m f), which is f^2 times the variance of the mean, where it wants means; plus the bias
(f(1-s))^2 of f, and m^2 times as much of g where it wants both.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import bdtr

from sabun import checks
from sabun.keyvalue.channel import Channel, Floats
from sabun.keyvalue.client import ClientError, table_for
from sabun.keyvalue.client.probabilities import SAMPLED
from sabun.keyvalue.yesno import channel_seen

__all__ = [
    "AIMS",
    "Advice",
    "Option",
    "advise",
    "channel_for",
    "shares_kept",
    "squared_bias",
    "squared_error",
    "supposed_frequencies",
]

AIMS = ("both", "f", "m")
"""What a study wants to know: frequencies and means, frequencies alone, or above all means."""
_REPORTS = 100_000
_SAMPLED = {"both": "kv3", "m": "kv3", "f": "rr-f"}
_CANDIDATES = {"both": ("pckv-ue", "pckv-grr+", "set"), "m": ("pckv-ue", "pckv-grr+", "set"), "f": ("set-f",)}
"""Beside a protocol that asks about one key; where values are not wanted, only such as do not ask for them."""
_MEAN = 0.5
_SUPPOSED = 8
_MOST = 0.9
_EVERY, _FINER = 64, 8
"""Padding lengths that are tried where pairs may be cut off: all up to the first, then so many from one to its double."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One protocol with a padding length; `error` is the predicted root mean squared error of a frequency."""

    protocol: str
    padding_length: int
    error: float


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The options, best first, with what was assumed.

    The order is by what the study aims at (unless told otherwise, the errors of frequencies and of frequencies times means
    together), not by the errors shown alone.
    """

    options: tuple[Option, ...]
    assumptions: tuple[str, ...]

    @property
    def best(self) -> Option:
        """The option with the smallest predicted error."""
        return self.options[0]

    def __str__(self) -> str:
        lines = [f"{'protocol':<14} {'padding':>7}  predicted error of a frequency"]
        lines += [f"{one.protocol:<14} {one.padding_length:>7}  {one.error:.4g}" for one in self.options]
        return "\n".join([*lines, "Assumes: " + "; ".join(self.assumptions) + "."])


def advise(
    *,
    keys: int,
    epsilon: Fraction,
    keys_per_user: int | None = None,
    typical_frequency: Fraction | None = None,
    expected_reports: int | None = None,
    bits: int = 64,
    aim: str = "both",
) -> Advice:
    """Compares the protocols on public facts; nothing here may come from the data.

    Args:
        keys: Number of keys.
        epsilon: The budget.
        keys_per_user: Most keys a person holds; None when nobody knows, which rules the padded protocols out.
        typical_frequency: Guess of a key's frequency; None derives some from `keys_per_user` and allows no bias at all.
        expected_reports: Guess of the number of reports; None for 100,000.
        bits: Resolution of the table.
        aim: What the study wants to know: `both`, `f` (frequencies alone: values are not asked) or `m` (above all means).

    Raises:
        ParameterError: There is no such aim.

    Example:
        >>> advise(keys=50, epsilon=Fraction(2)).best.protocol
        'kv3'
        >>> advise(keys=5000, epsilon=Fraction(2), keys_per_user=3).best.protocol
        'set'
        >>> advise(keys=5000, epsilon=Fraction(2), keys_per_user=3, aim="f").best.protocol
        'set-f'
    """
    checks.one_of(AIMS, aim=aim)
    n = _REPORTS if expected_reports is None else expected_reports
    most = min(keys if keys_per_user is None else keys_per_user, keys)
    guess = None if typical_frequency is None else float(typical_frequency)
    f = supposed_frequencies(keys, most) if guess is None else np.array([guess])
    found = [_predicted(_SAMPLED[aim], aim, epsilon, keys, 1, 1.0, f, n, bits)]
    if keys_per_user is not None:
        kept = {most: 1.0} if guess is None else shares_kept(keys, most, guess)
        for protocol in _CANDIDATES[aim]:
            tried = [_predicted(protocol, aim, epsilon, keys, ell, share, f, n, bits) for ell, share in kept.items()]
            found += sorted((one for one in tried if one is not None), key=lambda one: one[0])[:1]
    options = [one for _, one in sorted((one for one in found if one is not None), key=lambda one: one[0])]
    known = f"at most {most} keys per person" if keys_per_user is not None else "people may hold any number of keys"
    typical = f"frequencies around {f.mean():.4g}, even or Zipf"
    if guess is not None:
        typical = f"a typical frequency of {guess:.4g}, keys held independently of each other"
    return Advice(options=tuple(options), assumptions=(known, f"{n} reports", typical))


def supposed_frequencies(keys: int, most: int) -> Floats:
    """Eight even frequencies and eight of a Zipf law, of people who hold so many keys on average."""
    even = min(most / keys, _MOST)
    places = ((np.arange(_SUPPOSED) + 0.5) / _SUPPOSED * keys).astype(int) + 1
    return np.concatenate([np.full(_SUPPOSED, even), np.minimum(most / np.sum(1 / np.arange(1, keys + 1)) / places, _MOST)])


def channel_for(protocol: str, epsilon: Fraction, keys: int, padding: int, bits: int = 64) -> Channel:
    """The channel of a protocol before there is a study.

    Raises:
        ClientError: No table fits.
    """
    table = table_for(protocol=protocol, epsilon=epsilon, keys=keys, padding=padding, bits=bits)
    return channel_seen(protocol, table, padding)


def shares_kept(keys: int, most: int, f: float) -> dict[int, float]:
    """Which share of holdings each padding length keeps, when people hold keys of that frequency independently.

    Example:
        >>> {ell: round(share, 3) for ell, share in shares_kept(20, 3, 0.05).items()}
        {1: 0.67, 2: 0.936, 3: 1.0}
    """
    held = np.arange(1, most + 1)
    below = bdtr(held - 1.0, keys - 1, f)  # of the other keys
    weights = np.diff(below, prepend=0.0)
    weights = weights / below[-1] if below[-1] > 0 else (held == most).astype(float)  # of people who hold no more than was said
    coarse = (round(_EVERY * 2 ** (step / _FINER)) for step in range(_FINER * most.bit_length()))
    lengths = sorted({*range(1, min(most, _EVERY) + 1), *(ell for ell in coarse if ell < most), most})
    return {ell: min(1.0, float(weights @ np.minimum(1.0, ell / held))) for ell in lengths}


def _predicted(
    protocol: str, aim: str, epsilon: Fraction, keys: int, ell: int, kept: float, f: Floats, n: int, bits: int
) -> tuple[float, Option] | None:
    """What decides, and the option; None where no table fits."""
    try:
        channel = channel_for(protocol, epsilon, keys, ell, bits)
    except ClientError:
        return None
    about = n / keys if protocol in SAMPLED else float(n)
    bias = squared_bias("f", f, _MEAN, kept)
    of_f = float(np.mean(channel.frequency_variance(f * kept, about) + bias))
    decides = float(np.mean(squared_error(channel, aim, f * kept, _MEAN, about) + squared_bias(aim, f, _MEAN, kept)))
    return decides, Option(protocol=protocol, padding_length=ell, error=of_f**0.5)


def squared_error(channel: Channel, aim: str, f: Floats, m: float, n: float) -> Floats:
    """What an aim wants to be small, for keys of those frequencies and that mean, from n reports about each."""
    of_f = channel.frequency_variance(f, n)
    if aim == "f":
        return of_f
    of_g = channel.product_variance(f, m, n)
    return of_f + of_g if aim == "both" else of_g - 2 * m * channel.covariance(f, m, n) + m * m * of_f


def squared_bias(aim: str, f: Floats, m: float, kept: Floats | float) -> Floats:
    """What padding that keeps such a share adds to it; of `m`, whose ratio is not biased, that of frequencies all the same."""
    return np.asarray((f * (1 - kept)) ** 2 * (1 + m * m if aim == "both" else 1.0))
