"""What a study learned: one row per key, with intervals and plain words about what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.foreign import fitted, padded
from sabun.keyvalue.channel import Channel, Counts, Floats
from sabun.keyvalue.closed_form import maximum_likelihood
from sabun.keyvalue.em import Iteration, four_states, three_states
from sabun.keyvalue.intervals import frequency_interval, mean_interval
from sabun.keyvalue.inversion import unbiased, ye
from sabun.keyvalue.posterior import posterior_mean
from sabun.keyvalue.shrinkage import shrunk
from sabun.keyvalue.yesno import YesNo, frequencies
from sabun.privacy import Guarantee
from sabun.release import Release, derived

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["INTERVALS", "METHODS", "Estimates", "estimates_of", "point_estimates"]


def _mle(channel: Channel, counts: Counts) -> tuple[Floats, Floats]:
    return _of_shares(maximum_likelihood(channel, counts))


def _em(channel: Channel, counts: Counts, how: Iteration | None = None) -> tuple[Floats, Floats]:
    return _of_shares(four_states(channel, counts, how))


def _em3(channel: Channel, counts: Counts, how: Iteration | None = None) -> tuple[Floats, Floats]:
    return _of_shares(three_states(channel, counts, how))


def _posterior(channel: Channel, counts: Counts) -> tuple[Floats, Floats]:
    return posterior_mean(channel, counts, *_mle(channel, counts))


def _of_shares(theta: Floats) -> tuple[Floats, Floats]:
    """Frequency and mean from the shares of plus and minus; an unheld key has no mean."""
    frequency = theta[:, 0] + theta[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(frequency == 0, np.nan, (theta[:, 0] - theta[:, 1]) / frequency)
    return np.minimum(frequency, 1.0), np.clip(mean, -1.0, 1.0)


_ESTIMATORS: dict[str, Callable[..., tuple[Floats, Floats]]] = {
    "shrunk": shrunk,
    "mle": _mle,
    "unbiased": unbiased,
    "ye": ye,
    "em": _em,
    "em3": _em3,
    "posterior": _posterior,
}
METHODS = tuple(_ESTIMATORS)
INTERVALS = ("each", "average")
"""How often intervals hold: each key's own with that confidence, or with that confidence on average over the keys."""
_WORDS = ("no reports", "no mean", "weak", "pulled")
_REASONS = {
    "no reports": "no reports about this key",
    "no mean": "the reports determine no mean",
    "weak": "the frequency is within noise of 0",
}
_NOTICE = "NOT PRIVATE: simulated"
_UNASKED = "values were not asked for"
_CUT = (
    "bias_bound: by so much more a frequency may lie above its interval, because people may hold more keys than are padded to; "
    "- where nobody knows how many they hold."
)


def point_estimates(method: str, channel: Channel, counts: Counts, iteration: Iteration | None = None) -> tuple[Floats, Floats]:
    """Frequency and mean (in [-1, 1]) of each key by a named method; `iteration` is for `em` and `em3`.

    Raises:
        ParameterError: There is no such method, or it does not iterate that way, or it needs signs that were not asked for.
    """
    checks.one_of(METHODS, method=method)
    if isinstance(channel, YesNo):
        found = frequencies(method, channel, counts)
        checks.require(iteration is None, "left out where no values are asked", iteration=iteration)
        return found
    return _ESTIMATORS[method](channel, counts, *([] if iteration is None else [iteration.for_method(method)]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimates:
    """Frequencies and means with intervals, one entry per key; without values (`valued`), frequencies alone.

    Attributes:
        keys: The study's keys.
        frequency: Share of people who hold the key; NaN without reports. Only `unbiased` and `ye` may leave [0, 1].
        mean: Mean value of those who hold it, in the study's units; NaN where the reports determine none, and throughout where
            values were not asked for: tables, files and releases then have no columns of means. Where the key is
            flagged `weak` it is noise: `shown_mean`, tables and releases leave it out and say why.
        frequency_interval: Lower and upper ends, one row per key.
        mean_interval: The same for the mean; the whole range where the reports say nothing, and for a mean from PrivKVM's later
            rounds, in which people who hold nothing repeat the mean that was published before. Intervals are for the truth,
            whatever the method: a point of `ye` or `em`, which do not converge to it, may stand outside, and so may one of
            `shrunk`, which is then flagged `pulled`.
        reports: Reports about the key.
        bias_bound: By how much a frequency may lie above its interval because people hold more keys than the padding length:
            the upper end plus this holds with the interval's confidence. Zero where nothing is cut off, NaN where it is not
            known. There is none for the mean.
        flags: Words per key: `no reports`, `no mean` (undetermined), `weak` (the frequency is within noise of 0, so is the mean
            within noise of anything), `pulled` (the other keys say so much that `shrunk` stands outside the interval of this
            key's own reports).
        method: Which estimator.
        confidence: Of each interval by itself, or of all together.
        guarantee: What each person was promised.
        parameters: The study's public facts.
        valued: Whether values were asked for.
        interval: `each`, or `average`: intervals that hold with that confidence on average over the keys, not for each.
    """

    keys: tuple[str | int, ...]
    frequency: Floats
    mean: Floats
    frequency_interval: Floats
    mean_interval: Floats
    reports: NDArray[np.int64]
    bias_bound: Floats
    flags: tuple[tuple[str, ...], ...]
    method: str
    confidence: float
    guarantee: Guarantee
    parameters: Mapping[str, Any]
    interval: str = "each"
    valued: bool = True

    def to_frame(self, *, suppress: bool = False) -> pd.DataFrame:
        """A pandas frame with one row per key; `suppress` blanks the means flagged `weak`; `note` says that it is simulated."""
        import pandas as pd

        columns = self._columns(self.shown_mean if suppress else self.mean)
        return pd.DataFrame(columns | {"note": _NOTICE} if self.guarantee.simulated else columns)

    @property
    def mean_reason(self) -> tuple[str | None, ...]:
        """Why a key has no mean worth showing; None where it has one."""
        if not self.valued:
            return (_UNASKED,) * len(self.keys)
        return tuple(next((reason for word, reason in _REASONS.items() if word in words), None) for words in self.flags)

    @property
    def shown_mean(self) -> Floats:
        """The means that are worth showing: NaN where the frequency is within noise of 0."""
        weak = np.array(["weak" in words for words in self.flags], dtype=bool)
        return np.where(weak, np.nan, self.mean)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; a number that does not exist is None, and so is a mean that is too weak to be used."""
        columns = {name: _plain(column) for name, column in self._columns(self.shown_mean).items()}
        columns["flags"] = [list(words) for words in self.flags]
        columns |= {"mean_reason": list(self.mean_reason)} if self.valued else {}
        facts = {**self._way, "guarantee": self.guarantee.to_dict()}
        return {**facts, "study": dict(self.parameters), "rows": columns}

    def release(self) -> Release:
        """The estimates as a release file's content; every person's epsilon was spent on their own device.

        A mean that is too weak to be used is left out, with the reason beside it: a file goes where nobody reads flags.
        """
        columns = self._columns(self.shown_mean)
        values = {name: _plain(column) for name, column in columns.items() if name not in ("key", "flags")}
        values |= {"key": [str(key) for key in self.keys], "flags": [", ".join(words) for words in self.flags]}
        values |= {"mean_reason": list(self.mean_reason)} if self.valued else {}
        facts = {**self._way, **self.parameters}
        return derived(values, kind="keyvalue.estimates", promise=self.guarantee, facts=facts)

    @property
    def _way(self) -> dict[str, Any]:
        """How it was estimated; intervals of the usual kind go without saying."""
        known: dict[str, Any] = {"method": self.method, "confidence": self.confidence}
        known |= {} if self.valued else {"means": _UNASKED}
        return known if self.interval == "each" else known | {"interval": self.interval}

    def _columns(self, mean: Floats) -> dict[str, Any]:
        columns = {
            "key": list(self.keys),
            "frequency": self.frequency,
            "frequency_low": self.frequency_interval[:, 0],
            "frequency_high": self.frequency_interval[:, 1],
            "bias_bound": self.bias_bound,
            "mean": mean,
            "mean_low": self.mean_interval[:, 0],
            "mean_high": self.mean_interval[:, 1],
            "n": self.reports,
            "flags": [", ".join(words) for words in self.flags],
        }
        return {name: column for name, column in columns.items() if self.valued or not name.startswith("mean")}

    def __str__(self) -> str:
        columns = [self._frequency_cells()]
        columns += [self._bias_cells()] if self._cut else []
        columns += [self._mean_cells()] if self.valued else []
        columns += [
            [f"{'n':>9}  flags", *(f"{n:>9}  {', '.join(words)}" for n, words in zip(self.reports, self.flags, strict=True))]
        ]
        lines = [f"{_NOTICE}."] if self.guarantee.simulated else []
        lines += [" ".join(cells) for cells in zip(*columns, strict=True)]
        lines += [_CUT] if self._cut else []
        lines += [] if self.valued else [f"No means: {_UNASKED}."]
        return "\n".join(lines)

    @property
    def _cut(self) -> bool:
        """Whether a frequency may lie above its interval because of padding."""
        return bool(np.any(self.bias_bound != 0))

    def _frequency_cells(self) -> list[str]:
        rows = zip(self.keys, self.frequency, self.frequency_interval, strict=True)
        head = f"{'key':<16} {'frequency':>9}  {'interval':^15}"
        return [head, *(f"{_named(key)} {_shown(f):>9}  {_pair(ends):^15}" for key, f, ends in rows)]

    def _bias_cells(self) -> list[str]:
        return [f"{'bias_bound':>10}", *(f"{_shown(bound):>10}" for bound in self.bias_bound)]

    def _mean_cells(self) -> list[str]:
        rows = zip(self.shown_mean, self.mean_interval, strict=True)
        return [f"{'mean':>8}  {'interval':^17}", *(f"{_shown(m):>8}  {_pair(ends):^17}" for m, ends in rows)]


def estimates_of(
    *,
    channel: Channel,
    counts: Counts,
    found: tuple[Floats, Floats],
    method: str,
    confidence: float,
    comparisons: int,
    mean_known: bool,
    scale: tuple[float, float],
    cut: float,
    keys: tuple[str | int, ...],
    guarantee: Guarantee,
    parameters: Mapping[str, Any],
    average: tuple[Floats, Floats] | None = None,
) -> Estimates:
    """Puts points, intervals and flags together, with means mapped from [-1, 1] to the study's range.

    A key's expected frequency is at least its true one divided by `cut` (1 where padding cuts nothing off, NaN if unknown). The
    counts tell the error of the means only where `mean_known`. Intervals `average` are shown in place of the keys' own, which
    say all the same which key is weak and which estimate was pulled.
    """
    frequency, mean = found
    valued = not isinstance(channel, YesNo)
    low, high = scale
    middle, half = (low + high) / 2, (high - low) / 2
    ends = frequency_interval(channel, counts, confidence=confidence, comparisons=comparisons)
    means = np.tile([-1.0, 1.0], (len(keys), 1))
    if mean_known and valued:
        means = mean_interval(channel, counts, confidence=confidence, comparisons=comparisons)
    pulled = (_outside(frequency, ends) | _outside(mean, means)) & (method == "shrunk")
    flags = _flags(counts, np.isnan(mean) & valued, ends, pulled)
    if average is not None:
        ends, means = average
    if not valued:
        means = np.full_like(means, np.nan)
    return Estimates(
        keys=keys,
        frequency=frequency,
        mean=middle + half * mean,
        frequency_interval=ends,
        mean_interval=middle + half * means,
        reports=counts.total,
        bias_bound=np.minimum(ends[:, 1] * cut, 1.0) - ends[:, 1],
        flags=flags,
        method=method,
        confidence=confidence,
        guarantee=guarantee,
        parameters=parameters,
        interval=INTERVALS[average is not None],
        valued=valued,
    )


def _outside(points: Floats, ends: Floats) -> NDArray[np.bool_]:
    return np.asarray((points < ends[:, 0]) | (points > ends[:, 1]))


def _flags(
    counts: Counts, undetermined: NDArray[np.bool_], frequency_ends: Floats, pulled: NDArray[np.bool_]
) -> tuple[tuple[str, ...], ...]:
    weak, nothing = frequency_ends[:, 0] <= 0, counts.total == 0
    codes = nothing * 1 + undetermined * 2 + (weak & ~nothing) * 4 + pulled * 8
    words = [tuple(word for bit, word in enumerate(_WORDS) if code >> bit & 1) for code in range(16)]
    return tuple(words[code] for code in codes.tolist())


def _plain(column: Any) -> list[Any]:
    """JSON has neither NaN nor infinity."""
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return [None if isinstance(value, float) and not np.isfinite(value) else value for value in values]


def _named(key: Any) -> str:
    return padded(fitted(str(key), 16), 16)


def _shown(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def _pair(ends: Floats) -> str:
    return f"{ends[0]:.3f}, {ends[1]:.3f}"
