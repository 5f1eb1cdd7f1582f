"""Cost and expected error of a study, from public quantities alone.

Two kinds of error are told. Of one key by itself: the standard deviation of what its own reports say. Of all keys together: a
forecast of the default estimator's root mean squared error, which is smaller where keys are alike, for they are estimated
together. Where people may hold more keys than are padded to, reports tell of what padding keeps. What it cuts off is a bias: it
is in the forecasts, and not in the intervals. Nobody knows beforehand how unequally people hold keys, so there are two
forecasts: as the advisor reckons, independently, and as unequally as the study says that they may.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sabun import checks
from sabun.asking.forecast import Forecast
from sabun.keyvalue.advisor import squared_bias
from sabun.keyvalue.intervals import normal_quantile
from sabun.keyvalue.padding import shares_seen
from sabun.notebook import Rich

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["Plan", "plan_of"]

_GUESS = 0.29
"""How far off one half is on average, for a share that may be anything: what an estimate must beat to tell something."""
_BELOW, _ABOVE = 2.5, 1.9
_OFTEN = "eight of ten studies"
"""How far the error may lie beside a forecast in eight of ten cells; `python -m benchmarks.keyvalue_plans`."""
_TYPICAL = 0.72
"""Most keys of a study are rarer than the mean, or more alike than supposed, so errors are typically that much smaller."""
_SUPPOSED = (0.05, 0.5)
"""What is assumed of the frequencies where nobody knows: rare keys are the best case of frequencies and the worst of means."""
_BLIND = 3**-0.5
"""The error of a guess at a mean, which may be anything from -1 to 1."""
_HARDLY = 0.01
"""The share of an error below which a bias is not worth a figure."""


@dataclass(frozen=True, kw_only=True)
class Plan(Rich):
    """What to expect; the first numbers are for one key by itself, the forecasts for all keys together.

    Attributes:
        epsilon: Certified cost of one participation.
        n_records: The number of people planned for.
        frequency: That of the one key.
        reports_per_key: Reports that say something about the key.
        frequency_error: Standard deviation of the frequency, from the key's own reports.
        frequency_reach: About how far the interval of the frequency reaches up or down.
        mean_error: Standard deviation of the mean (first order), in the study's units; None where no values are asked.
        mean_reach: About how far the interval of the mean reaches; half of the range where the key is too rare to tell. None
            where no values are asked.
        mean_is_weak: Whether the frequency will not stand out from noise, so that the mean says little.
        confidence: The planned confidence of both.
        forecasts: The errors to expect over all keys, of frequencies and of means; where no frequency was named, or padding may
            cut keys off, at best and at worst, each by itself. Where `vacuous`, no better than a guess.
        vacuous: Whether even at best noise puts a frequency as far off as a guess.
        bias: By how much the frequency comes out too small on average, however many people answer, because padding cuts keys
            off, if people hold keys independently; 0 where it does not. In the forecasts, not in the intervals.
        worst_bias: By how much at most, if whoever holds a key holds as many as may be. `to_dict` leaves it out where nothing
            can be cut off.
        bias_reckoning: What both were reckoned from, in words; empty where nothing can be cut off.
    """

    epsilon: float
    n_records: int
    frequency: float
    reports_per_key: float
    frequency_error: float
    frequency_reach: float
    mean_error: float | None
    mean_reach: float | None
    mean_is_weak: bool
    confidence: float
    forecasts: tuple[Forecast, ...]
    vacuous: bool
    bias: float
    worst_bias: float
    bias_reckoning: str

    def __str__(self) -> str:
        silent = "; no values are asked" if self.mean_error is None else ""
        lines = [f"epsilon {self.epsilon:.6g} per person; about {self.reports_per_key:.0f} reports per key{silent}."]
        if self.vacuous:  # an error over all keys would tell of what is assumed, not of the reports
            words = "Even at best a frequency will be as far off as a guess. Ask more people, fewer keys or a larger epsilon."
            return "\n".join([*lines, words])
        lines += [
            f"{one.quantity}: about {one.middle:.3g} (in {one.often} {one.low:.3g} to {one.high:.3g}), "
            f"if there are {'; '.join(one.assumed)}."
            for one in self.forecasts
        ]
        lines += [*([self.bias_reckoning] if self.bias_reckoning else []), self._of_one_key()]
        if self.mean_is_weak:
            lines.append(
                "Such a key will not stand out from noise, so its mean cannot be learned: that takes more people, fewer keys, "
                "more frequent ones, or a larger epsilon."
            )
        return "\n".join(lines)

    def _of_one_key(self) -> str:
        """How far its intervals reach, and what they hold."""
        key = f"Of one key with a frequency of {self.frequency:.3g}"
        reach = f"{key} the interval reaches about {self.frequency_reach:.3g} up or down"
        sure = f"with probability {self.confidence:g}"
        holds = f"holds the truth {sure}."
        if self.bias_reckoning:
            kept = _span(self.frequency - self.worst_bias, self.frequency - self.bias, "about {} to {}")
            holds = f"holds what padding keeps (a frequency of {kept}) {sure}, not the truth."
        if self.mean_reach is None or self.mean_is_weak:
            return f"{reach}; it {holds}"
        more = ", and more the more is cut off" if self.bias_reckoning else ""
        return f"{reach}, that of its mean about {self.mean_reach:.3g}{more}; each {holds}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.bias_reckoning:
            del record["worst_bias"]
        return record | {"forecasts": [one.to_dict() for one in self.forecasts]}


def plan_of(study: Study, *, n_records: int, frequency: float | None, mean: float | None, confidence: float) -> Plan:
    """Plans for so many people and keys of that frequency and mean (in the study's units; the middle of the range if None)."""
    checks.whole(minimum=1, n_records=n_records)
    named = study.terms.typical_frequency if frequency is None else frequency
    known = _SUPPOSED[-1] if named is None else named
    checks.require(
        frequency is None or (checks.is_number(frequency) and 0 < frequency <= 1), "above 0 and at most 1", frequency=frequency
    )
    checks.require(checks.is_number(confidence) and 0 < confidence < 1, "above 0 and below 1", confidence=confidence)
    low, high = (float(end) for end in study.terms.value_range)
    valued = not study.terms.valueless
    checks.require(mean is None or valued, "left out where no values are asked", mean=mean)
    checks.require(mean is None or (checks.is_number(mean) and low <= mean <= high), "within the value range", mean=mean)
    half = (high - low) / 2
    m = 0.0 if mean is None else (mean - (low + high) / 2) / half
    seen = shares_seen(study.terms, float(known))
    kept, least = max(seen.values()), min(seen.values())
    sd_f, sd_m = _deviations(study, n_records, kept * float(known), m)
    reach = normal_quantile(confidence)
    weak = valued and kept * float(known) <= reach * sd_f
    supposed = _SUPPOSED if named is None else (float(named),)
    people = {f: shares_seen(study.terms, f) for f in supposed}
    vacuous = min(_deviations(study, n_records, f * max(of_f.values()), m)[0] for f, of_f in people.items()) >= _GUESS
    cases = [(f, share, words) for f, of_f in people.items() for words, share in of_f.items()]
    return Plan(
        epsilon=float(study.terms.certified),
        n_records=n_records,
        frequency=float(known),
        reports_per_key=_reports(study, n_records),
        frequency_error=sd_f,
        frequency_reach=min(reach * sd_f, 1.0),
        mean_error=half * sd_m if valued else None,
        mean_reach=(half if weak else half * min(reach * sd_m, 1.0)) if valued else None,
        mean_is_weak=weak,
        confidence=float(confidence),
        forecasts=_ordered([_forecasts(study, n_records, case, m, half, vacuous) for case in cases]),
        vacuous=vacuous,
        bias=float(known) * (1 - kept),
        worst_bias=float(known) * (1 - least),
        bias_reckoning=_reckoning(study.terms.padding_length, float(known), seen, sd_f),
    )


def _reckoning(padding: int, f: float, seen: dict[str, float], error: float) -> str:
    """What padding cuts off, at best and at worst; nothing where it cannot."""
    if len(seen) == 1:
        return ""
    (independent, low), (unequal, high) = ((words, f * (1 - share)) for words, share in seen.items())
    much, least = _span(low, high, "between {} and {}"), f"The least is reckoned for {independent},"
    if low < _HARDLY * error:
        much, least = f"up to {high:.3g}", "There is hardly any bias where people hold keys independently, and"
    off = (
        f"a key with a frequency of {f:.3g} comes out {much} too small, by how unequally people hold keys, however many answer"
    )
    return f"Padding to {padding} cuts keys off: {off}. {least} the most for {unequal}; both are counted in the errors above."


def _span(low: float, high: float, words: str) -> str:
    """Both ends, or one figure where they read alike."""
    ends = f"{low:.3g}", f"{high:.3g}"
    return f"about {ends[0]}" if ends[0] == ends[1] else words.format(*ends)


def _reports(study: Study, n_records: int) -> float:
    return n_records / len(study.terms.keys) if study.terms.sampled else float(n_records)


def _deviations(study: Study, n_records: int, f: float, m: float) -> tuple[float, float]:
    """Standard deviations of a key's frequency and mean (within [-1, 1], to first order) from its own reports."""
    about, channel = _reports(study, n_records), study.channel
    var_f = float(channel.frequency_variance(f, about))
    var_g, cov = float(channel.product_variance(f, m, about)), float(channel.covariance(f, m, about))
    return var_f**0.5, max(var_g - 2 * m * cov + m * m * var_f, 0.0) ** 0.5 / f  # of g / f


def _ordered(cases: list[tuple[Forecast, ...]]) -> tuple[Forecast, ...]:
    """Of several cases the best and the worst of each quantity: they need not be the same case."""
    if len(cases) == 1:
        return cases[0]
    by_quantity = [sorted(column, key=lambda one: one.middle) for column in zip(*cases, strict=True)]
    return tuple(
        replace(column[place], quantity=f"{column[place].quantity}, {words}")
        for place, words in ((0, "at best"), (-1, "at worst"))
        for column in by_quantity
    )


def _forecasts(
    study: Study, n_records: int, case: tuple[float, float, str], m: float, half: float, vacuous: bool
) -> tuple[Forecast, ...]:
    """Errors of frequencies and means over all keys, when they scatter around those values.

    A case is a frequency, the share of it that padding keeps, and of which people, in words.

    What reports say and what the other keys say are two pieces of evidence, whose precisions add up; with few keys there is
    little to be learned from the others.
    """
    keys, (f, kept, words) = len(study.terms.keys), case
    sd_f, sd_m = _deviations(study, n_records, f * kept, m)
    scatter_f, scatter_m = (f * (1 - f)) ** 0.5 / 3, 0.5
    unlearned = 3 / (keys + 3)
    noise = (1 / sd_f**2 + 1 / (scatter_f**2 + unlearned * _GUESS**2)) ** -0.5
    other = _TYPICAL * (1 / sd_m**2 + 1 / (scatter_m**2 + unlearned * _GUESS**2)) ** -0.5
    typical = np.array((f * f + scatter_f**2) ** 0.5)  # root mean square of the frequencies
    own = _TYPICAL * math.hypot(noise, float(squared_bias("f", typical, m, kept)) ** 0.5)
    if vacuous:
        own, other = max(own, _GUESS), max(other, _BLIND)
    around = f"keys with frequencies around {f:.3g}, by a third of the root of f(1 - f)"
    people = (words,) if words else ()
    of_f = _forecast("error of the frequencies, root mean square over keys", own, (around, *people))
    if study.terms.valueless:
        return (of_f,)
    assumed = (around, "means scattered by a quarter of the range", *people)
    return of_f, _forecast("error of the means, root mean square over holders", half * other, assumed)


def _forecast(quantity: str, middle: float, assumed: tuple[str, ...]) -> Forecast:
    return Forecast(quantity=quantity, low=middle / _BELOW, middle=middle, high=middle * _ABOVE, assumed=assumed, often=_OFTEN)
