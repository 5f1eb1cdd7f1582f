"""What was run, as data: enough for an accountant to compose many runs better than by adding epsilons.

Each event brings its own curves, so that a new kind of event adds one class here and nothing elsewhere. An event is public:
it holds parameters of mechanisms, never anything computed from private records. Once published, a kind keeps its meaning
for ever; fields are only ever added with defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

from sabun import checks
from sabun.errors import ParameterError
from sabun.privacy import renyi
from sabun.privacy.amounts import AmountLike, exact, exact_positive, float_above, float_below, is_short, ratio
from sabun.privacy.certified import sqrt_up

__all__ = [
    "KINDS",
    "Approximate",
    "BoundedRange",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Gaussian",
    "SampledGaussian",
    "event_from_dict",
]

_INTERVAL = 1e-4
_MOST_RUNS = 10**18


class Cost(NamedTuple):
    """What runs cost at a Rényi order: `tau` of it, but for a part of the outcomes whose probability is at most `delta`."""

    tau: Fraction
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class Event:
    """Base of the events: `count` independent (possibly adaptive) runs of one mechanism."""

    kind: ClassVar[str]
    only_relation: ClassVar[str | None] = None
    """The relation between whose neighbours its cost holds; None where it holds for whichever its parameters speak of."""
    count: int = 1

    def rho(self) -> Fraction | None:
        """The zCDP parameter of all runs together, or None where zCDP does not apply."""
        return None

    def cost(self, order: int, *, steps: int = 1) -> Cost | None:
        """The cost of all runs at a whole Rényi order over so many neighbour steps; None where none is known.

        With a rho it is order times rho, and the squared number of steps times that.
        """
        rho = self.rho()
        return None if rho is None else Cost(renyi.stepped(order * rho * steps**2))

    def privacy_loss(self) -> Any | None:
        """The privacy-loss distribution of one run (a dp_accounting object), or None where it does not apply."""
        return None

    def _check(self, **amounts: AmountLike) -> None:
        checks.whole(minimum=1, count=self.count)
        checks.require(self.count <= _MOST_RUNS, f"at most {_MOST_RUNS}", count=self.count)
        object.__setattr__(self, "count", int(self.count))
        for name, value in amounts.items():
            read = exact(value, name=name)
            checks.require(isinstance(read, Fraction) and is_short(read), "finite, of at most 4000 digits", **{name: value})
            object.__setattr__(self, name, read)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; amounts are strings so that nothing is rounded."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"kind": self.kind} | {name: str(v) if isinstance(v, Fraction) else v for name, v in values.items()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Reads the fields that `to_dict` wrote."""
        known = {field.name for field in dataclasses.fields(cls)} | {"kind"}
        if set(record) != known:
            raise ParameterError(f"event {cls.kind!r} must have exactly the fields {sorted(known)}; got {sorted(record)}.")
        return cls(**{name: value for name, value in record.items() if name != "kind"})


@dataclass(frozen=True, kw_only=True)
class Approximate(Event):
    """Anything that is (epsilon, delta)-DP and nothing more is known."""

    kind: ClassVar[str] = "approximate"
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self._check(epsilon=self.epsilon, delta=self.delta)
        checks.non_negative(epsilon=self.epsilon)
        checks.probability(delta=self.delta)

    def rho(self) -> Fraction | None:
        """Pure epsilon implies epsilon^2 / 2 (Bun-Steinke 2016, Prop. 1.4)."""
        return self.count * self.epsilon**2 / 2 if self.delta == 0 else None

    def cost(self, order: int, *, steps: int = 1) -> Cost:
        """The worst case of pure epsilon, and delta beside it."""
        epsilon, delta = renyi.grouped(self.epsilon, self.delta, steps=steps)
        tau = renyi.pure_cost(Fraction(epsilon), order=order)
        return Cost(self.count * tau, min(self.count * Fraction(delta), Fraction(1)))

    def privacy_loss(self) -> Any:
        """The worst pair of distributions for (epsilon, delta)."""
        from dp_accounting.pld import common, privacy_loss_distribution

        parameters = common.DifferentialPrivacyParameters(float_above(self.epsilon), float_above(self.delta))
        return privacy_loss_distribution.from_privacy_parameters(parameters, _INTERVAL)


@dataclass(frozen=True, kw_only=True)
class Gaussian(Event):
    """Continuous Gaussian noise, or its rounding to a grid fixed beforehand: sigma over the L2 sensitivity, 1 / mu.

    The sensitivity is of what the noise is added to, between neighbours of the stated relation; see `of`.
    """

    kind: ClassVar[str] = "gaussian"
    noise_multiplier: Fraction

    def __post_init__(self) -> None:
        self._check(noise_multiplier=self.noise_multiplier)
        checks.positive(noise_multiplier=self.noise_multiplier)

    @classmethod
    def of(cls, *, sigma: float | Fraction, l2_squared: AmountLike, count: int = 1) -> Self:
        """Noise of a deviation, such as `analytic_gaussian_sigma` gives, on a vector that moves by at most sqrt(l2_squared).

        A float sigma is the very number that the sampler is given, not the decimal it prints as. The multiplier is rounded
        down.

        Example:
            >>> noise = Gaussian.of(sigma=3.0, l2_squared=2)
            >>> round(float(noise.cost(8).tau), 6)  # a mu^2 / 2 with mu = sqrt(2) / 3
            0.888889
        """
        checks.positive(sigma=sigma)
        moved = exact_positive(l2_squared, name="l2_squared")
        multiplier = float_below(ratio(sigma) / sqrt_up(moved))  # proof: multiplier-down
        checks.require(multiplier > 0, "not so small beside the sensitivity", sigma=sigma)
        return cls(noise_multiplier=Fraction(multiplier), count=count)

    def rho(self) -> Fraction:
        """1 / (2 multiplier^2) for each run (Bun-Steinke 2016, Prop. 1.6)."""
        return self.count / (2 * self.noise_multiplier**2)

    def privacy_loss(self) -> Any:
        """Exact up to the accountant's pessimistic discretisation."""
        from dp_accounting.pld import privacy_loss_distribution

        return privacy_loss_distribution.from_gaussian_mechanism(
            float_below(self.noise_multiplier), value_discretization_interval=_INTERVAL
        )


@dataclass(frozen=True, kw_only=True)
class SampledGaussian(Event):
    """A Gaussian on a Poisson sample, under add-remove neighbours: one step of DP-SGD per run."""

    kind: ClassVar[str] = "sampled-gaussian"
    only_relation: ClassVar[str | None] = "add-remove"
    noise_multiplier: Fraction
    sampling_probability: Fraction

    def __post_init__(self) -> None:
        self._check(noise_multiplier=self.noise_multiplier, sampling_probability=self.sampling_probability)
        checks.positive(noise_multiplier=self.noise_multiplier)
        checks.require(
            0 < self.sampling_probability <= 1, "above 0 and at most 1", sampling_probability=self.sampling_probability
        )

    def cost(self, order: int, *, steps: int = 1) -> Cost | None:
        """Moments at whole orders (Mironov-Talwar-Zhang 2019); over two steps by the weak triangle inequality."""
        if steps == 1:
            found = self._of_one(order)
            return None if found is None else Cost(self.count * found)
        double, less = (self._of_one(higher) for higher in (2 * order, 2 * order - 1))
        if steps > 2 or double is None or less is None:
            return None
        return Cost(self.count * renyi.two_steps(double, less, order=order))

    def _of_one(self, order: int) -> Fraction | None:
        found = renyi.sampled_gaussian_cost(self.noise_multiplier, self.sampling_probability, order=order)
        return found if isinstance(found, Fraction) else None

    def privacy_loss(self) -> Any:
        """Exact up to the accountant's pessimistic discretisation."""
        from dp_accounting.pld import privacy_loss_distribution

        return privacy_loss_distribution.from_gaussian_mechanism(
            float_below(self.noise_multiplier),
            value_discretization_interval=_INTERVAL,
            sampling_prob=min(float_above(self.sampling_probability), 1.0),
        )


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(Event):
    """Discrete Gaussian noise on integer vectors; a squared L2 sensitivity in grid steps."""

    kind: ClassVar[str] = "discrete-gaussian"
    sigma_squared: Fraction
    l2_squared: Fraction

    def __post_init__(self) -> None:
        self._check(sigma_squared=self.sigma_squared, l2_squared=self.l2_squared)
        checks.positive(sigma_squared=self.sigma_squared, l2_squared=self.l2_squared)

    def rho(self) -> Fraction:
        """l2^2 / (2 sigma^2) for each run (Canonne-Kamath-Steinke 2020, Thm. 14)."""
        return self.count * self.l2_squared / (2 * self.sigma_squared)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(Event):
    """Discrete Laplace noise on one integer; a whole sensitivity in grid steps."""

    kind: ClassVar[str] = "discrete-laplace"
    scale: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        self._check(scale=self.scale)
        checks.positive(scale=self.scale)
        checks.whole(minimum=1, sensitivity=self.sensitivity)
        checks.require(is_short(Fraction(self.sensitivity)), "of at most 4000 digits", sensitivity=self.sensitivity)
        object.__setattr__(self, "sensitivity", int(self.sensitivity))

    def rho(self) -> Fraction:
        """Pure epsilon = sensitivity / scale implies epsilon^2 / 2."""
        return self.count * (self.sensitivity / self.scale) ** 2 / 2

    def cost(self, order: int, *, steps: int = 1) -> Cost:
        """The worst case of pure epsilon, which this is when the sensitivity is one step of the grid."""
        return Cost(self.count * renyi.pure_cost(steps * self.sensitivity / self.scale, order=order))

    def privacy_loss(self) -> Any:
        """Exact up to the accountant's pessimistic discretisation."""
        from dp_accounting.pld import privacy_loss_distribution

        return privacy_loss_distribution.from_discrete_laplace_mechanism(
            float_above(1 / self.scale), sensitivity=self.sensitivity, value_discretization_interval=_INTERVAL
        )


@dataclass(frozen=True, kw_only=True)
class BoundedRange(Event):
    """A choice whose log-ratios lie in an interval of length epsilon: the exponential mechanism, which is epsilon-DP."""

    kind: ClassVar[str] = "bounded-range"
    epsilon: Fraction

    def __post_init__(self) -> None:
        self._check(epsilon=self.epsilon)
        checks.non_negative(epsilon=self.epsilon)

    def rho(self) -> Fraction:
        """epsilon^2 / 8 for each choice (Cesar-Rogers 2021; proved anew in renyi.proof.md)."""
        return self.count * self.epsilon**2 / 8

    def cost(self, order: int, *, steps: int = 1) -> Cost:
        """order times epsilon^2 / 8, or the worst case of pure epsilon where that is less."""
        return Cost(self.count * renyi.bounded_range_cost(steps * self.epsilon, order=order))


KINDS: tuple[type[Event], ...] = (Approximate, Gaussian, SampledGaussian, DiscreteGaussian, DiscreteLaplace, BoundedRange)
"""Every kind whose cost is proved; a subclass of one is none of them."""
_BY_NAME = {event.kind: event for event in KINDS}


def event_from_dict(record: Mapping[str, Any]) -> Event:
    """Reads any event that `to_dict` wrote."""
    kind = record.get("kind") if isinstance(record, Mapping) else None
    checks.one_of(sorted(_BY_NAME), kind=kind)
    return _BY_NAME[str(kind)].from_dict(record)
