"""Cost and expected error of a study, from public quantities alone.

Two kinds of error are told. Of one key by itself: the standard deviation of what its own reports say. Of all keys together: a
forecast of the default estimator's root mean squared error, which is smaller where keys are alike, for they are estimated
together. Where people may hold more keys than are padded to, reports tell of what padding keeps; what it cuts off is a bias,
reckoned as by the advisor: it is in the forecasts, and not in the intervals.
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
from sabun.keyvalue.padding import most_held, share_kept
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
        forecasts: The errors to expect over all keys, of frequencies and of means; where no frequency was named, at best and
            at worst, each by itself. Where `vacuous`, no better than a guess.
        vacuous: Whether even at best noise puts a frequency as far off as a guess.
        bias: By how much the frequency comes out too small on average, however many people answer, because padding cuts keys
            off; 0 where it does not. In the forecasts, not in the intervals.
        bias_reckoning: What the bias was reckoned from, in words; empty where nothing is cut off.
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
            holds = f"holds what padding keeps (a frequency of about {self.frequency - self.bias:.3g}) {sure}, not the truth."
        if self.mean_reach is None or self.mean_is_weak:
            return f"{reach}; it {holds}"
        return f"{reach}, that of its mean about {self.mean_reach:.3g}; each {holds}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
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
    kept = share_kept(study.terms, float(known))
    sd_f, sd_m = _deviations(study, n_records, kept * float(known), m)
    reach = normal_quantile(confidence)
    weak = valued and kept * float(known) <= reach * sd_f
    supposed = _SUPPOSED if named is None else (float(named),)
    vacuous = min(_deviations(study, n_records, f * share_kept(study.terms, f), m)[0] for f in supposed) >= _GUESS
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
        forecasts=_ordered([_forecasts(study, n_records, f, m, half, vacuous) for f in supposed]),
        vacuous=vacuous,
        bias=float(known) * (1 - kept),
        bias_reckoning=_reckoning(study, float(known), kept),
    )


def _reckoning(study: Study, f: float, kept: float) -> str:
    if kept == 1:
        return ""
    cut = f"Padding to {study.terms.padding_length} cuts keys off"
    off = f"a key with a frequency of {f:.3g} comes out about {f * (1 - kept):.3g} too small, however many answer"
    return (
        f"{cut}: {off}. That is reckoned for {_holding(study)}, and counted in the errors above; "
        "where people differ more in how many keys they hold, it is more."
    )


def _holding(study: Study) -> str:
    """Which people the bias is reckoned for."""
    return f"people who hold keys independently of each other, at most {most_held(study.terms)} each"


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


def _forecasts(study: Study, n_records: int, f: float, m: float, half: float, vacuous: bool) -> tuple[Forecast, ...]:
    """Errors of frequencies and means over all keys, when they scatter around those values.

    What reports say and what the other keys say are two pieces of evidence, whose precisions add up; with few keys there is
    little to be learned from the others.
    """
    keys, kept = len(study.terms.keys), share_kept(study.terms, f)
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
    people = () if kept == 1 else (_holding(study),)
    of_f = _forecast("error of the frequencies, root mean square over keys", own, (around, *people))
    if study.terms.valueless:
        return (of_f,)
    assumed = (around, "means scattered by a quarter of the range", *people)
    return of_f, _forecast("error of the means, root mean square over holders", half * other, assumed)


def _forecast(quantity: str, middle: float, assumed: tuple[str, ...]) -> Forecast:
    return Forecast(quantity=quantity, low=middle / _BELOW, middle=middle, high=middle * _ABOVE, assumed=assumed, often=_OFTEN)
