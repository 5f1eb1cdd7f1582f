"""Cost and expected error of a study, from public quantities alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sabun import checks
from sabun.keyvalue.intervals import normal_quantile

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["Plan", "plan_of"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to expect for one key.

    Attributes:
        epsilon: Certified cost of one participation.
        n_records: The number of people planned for.
        reports_per_key: Reports that say something about the key.
        frequency_error: Standard deviation of the frequency.
        frequency_reach: About how far the interval of the frequency reaches up or down.
        mean_error: Standard deviation of the mean (first order), in the study's units.
        mean_reach: About how far the interval of the mean reaches; half of the range where the key is too rare to tell.
        mean_is_weak: Whether the frequency will not stand out from noise, so that the mean says little.
        confidence: The planned confidence of both.
    """

    epsilon: float
    n_records: int
    reports_per_key: float
    frequency_error: float
    frequency_reach: float
    mean_error: float
    mean_reach: float
    mean_is_weak: bool
    confidence: float

    def __str__(self) -> str:
        weak = " The key is too rare to learn its mean." if self.mean_is_weak else ""
        return (
            f"epsilon {self.epsilon:.6g} per person; about {self.reports_per_key:.0f} reports per key; expected error of a "
            f"frequency {self.frequency_error:.3g}, of a mean {self.mean_error:.3g}.{weak}\n"
            f"The interval of the frequency reaches about {self.frequency_reach:.3g} up or down, that of the mean about "
            f"{self.mean_reach:.3g}; each holds the truth with probability {self.confidence:g}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)


def plan_of(study: Study, *, n_records: int, frequency: float, mean: float | None, confidence: float) -> Plan:
    """Plans for so many people and a key of that frequency and mean (in the study's units; the middle of the range if None)."""
    checks.whole(minimum=1, n_records=n_records)
    checks.require(checks.is_number(frequency) and 0 < frequency <= 1, "above 0 and at most 1", frequency=frequency)
    checks.require(checks.is_number(confidence) and 0 < confidence < 1, "above 0 and below 1", confidence=confidence)
    low, high = (float(end) for end in study.terms.value_range)
    checks.require(mean is None or (checks.is_number(mean) and low <= mean <= high), "within the value range", mean=mean)
    half = (high - low) / 2
    m = 0.0 if mean is None else (mean - (low + high) / 2) / half
    about = n_records / len(study.terms.keys) if study.terms.sampled else float(n_records)
    channel = study.channel
    var_f = float(channel.frequency_variance(frequency, about))
    var_g, cov = float(channel.product_variance(frequency, m, about)), float(channel.covariance(frequency, m, about))
    mean_error = max(var_g - 2 * m * cov + m * m * var_f, 0.0) ** 0.5 / frequency  # of g / f, to first order
    reach = normal_quantile(confidence)
    weak = frequency <= reach * var_f**0.5
    return Plan(
        epsilon=float(study.terms.certified),
        n_records=n_records,
        reports_per_key=about,
        frequency_error=var_f**0.5,
        frequency_reach=min(reach * var_f**0.5, 1.0),
        mean_error=half * mean_error,
        mean_reach=half if weak else half * min(reach * mean_error, 1.0),
        mean_is_weak=weak,
        confidence=float(confidence),
    )
