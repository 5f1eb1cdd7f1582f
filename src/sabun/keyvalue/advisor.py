"""Which protocol suits a study: predicted error from public facts, with the reasoning in words.

Notation: d keys, n reports, f a key's typical frequency, L the most keys a person holds, ell the padding length, s = min(1,
ell/L) the share of holdings that padding keeps. Predicted error of a frequency: the channel's variance plus the bias
(f(1-s))^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sabun.keyvalue.channel import channel_of
from sabun.keyvalue.client import ClientError, table_for

__all__ = ["Advice", "Option", "advise"]

_REPORTS = 100_000
_CANDIDATES = ("pckv-ue", "pckv-grr+")


@dataclass(frozen=True, kw_only=True)
class Option:
    """One protocol with a padding length; `error` is the predicted root mean squared error of a frequency."""

    protocol: str
    padding_length: int
    error: float


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The options, best first, with what was assumed."""

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
) -> Advice:
    """Compares the protocols on public facts; nothing here may come from the data.

    Args:
        keys: Number of keys.
        epsilon: The budget.
        keys_per_user: Most keys a person holds; None when nobody knows, which rules the padded protocols out.
        typical_frequency: Guess of a key's frequency; None derives one from `keys_per_user` and allows no bias at all.
        expected_reports: Guess of the number of reports; None for 100,000.
        bits: Resolution of the table.

    Example:
        >>> advise(keys=50, epsilon=Fraction(2)).best.protocol
        'kv3'
        >>> advise(keys=5000, epsilon=Fraction(2), keys_per_user=3).best.protocol
        'pckv-ue'
    """
    n = _REPORTS if expected_reports is None else expected_reports
    most = min(keys if keys_per_user is None else keys_per_user, keys)
    frequency = min(0.5, most / keys) if typical_frequency is None else float(typical_frequency)
    kv3 = channel_of(table_for(protocol="kv3", epsilon=epsilon, keys=keys, bits=bits))
    options = [Option(protocol="kv3", padding_length=1, error=float(kv3.frequency_variance(frequency, n / keys)) ** 0.5)]
    if keys_per_user is not None:
        for protocol in _CANDIDATES:
            options += _best_padding(protocol, epsilon, keys, most, frequency, n, bits, biased=typical_frequency is not None)
    known = f"at most {most} keys per person" if keys_per_user is not None else "people may hold any number of keys"
    assumed = (known, f"{n} reports", f"a typical frequency of {frequency:.4g}")
    return Advice(options=tuple(sorted(options, key=lambda one: one.error)), assumptions=assumed)


def _best_padding(
    protocol: str, epsilon: Fraction, keys: int, most: int, frequency: float, n: int, bits: int, *, biased: bool
) -> list[Option]:
    """The padding length of least predicted error (doubled steps suffice, for the optimum is flat); none if no table fits."""
    shorter = {2**step for step in range(most.bit_length()) if 2**step < most} if biased else set()
    lengths = sorted({*shorter, most})
    errors = {}
    for ell in lengths:
        try:
            channel = channel_of(table_for(protocol=protocol, epsilon=epsilon, keys=keys, padding=ell, bits=bits), ell)
        except ClientError:
            continue
        kept = min(1.0, ell / most)
        variance = float(channel.frequency_variance(frequency * kept, n))
        errors[ell] = (variance + (frequency * (1 - kept)) ** 2) ** 0.5
    best = sorted(errors, key=lambda length: errors[length])[:1]
    return [Option(protocol=protocol, padding_length=ell, error=errors[ell]) for ell in best]
