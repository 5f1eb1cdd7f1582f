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
        reports_per_key: Reports that say something about the key.
        frequency_error: Standard deviation of the frequency.
        mean_error: Standard deviation of the mean (first order), in the study's units.
        mean_is_weak: Whether the frequency will not stand out from noise, so that the mean says little.
    """

    epsilon: float
    reports_per_key: float
    frequency_error: float
    mean_error: float
    mean_is_weak: bool

    def __str__(self) -> str:
        weak = " The key is too rare to learn its mean." if self.mean_is_weak else ""
        return (
            f"epsilon {self.epsilon:.6g} per person; about {self.reports_per_key:.0f} reports per key; expected error of a "
            f"frequency {self.frequency_error:.3g}, of a mean {self.mean_error:.3g}.{weak}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)


def plan_of(study: Study, *, n: int, frequency: float, mean: float) -> Plan:
    """Plans for n people and a key of that frequency and mean (in the study's units)."""
    checks.whole(minimum=1, n=n)
    checks.require(checks.is_number(frequency) and 0 < frequency <= 1, "above 0 and at most 1", frequency=frequency)
    low, high = (float(end) for end in study.terms.value_range)
    checks.require(checks.is_number(mean) and low <= mean <= high, "within the value range", mean=mean)
    half = (high - low) / 2
    m = (mean - (low + high) / 2) / half
    about = n / len(study.terms.keys) if study.terms.sampled else float(n)
    channel = study.channel
    var_f = float(channel.frequency_variance(frequency, about))
    var_g, cov = float(channel.product_variance(frequency, m, about)), float(channel.covariance(frequency, m, about))
    mean_error = max(var_g - 2 * m * cov + m * m * var_f, 0.0) ** 0.5 / frequency
    return Plan(
        epsilon=float(study.terms.certified),
        reports_per_key=about,
        frequency_error=var_f**0.5,
        mean_error=half * mean_error,
        mean_is_weak=frequency <= normal_quantile(0.95) * var_f**0.5,
    )
