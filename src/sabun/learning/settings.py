"""The choices a caller can make about a training run, checked once; all of them are public."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sabun import checks
from sabun.errors import ParameterError
from sabun.privacy.amounts import AmountLike, exact, exact_positive

__all__ = ["METHODS", "PURE", "SYNTHESES", "Settings", "delta_for"]

METHODS = ("dp-sgd", "laplace-sgd", "objective-perturbation", "anonymizing-first", "learning-first", "anonymized-learning")
PURE = ("laplace-sgd", "objective-perturbation", "learning-first")
SYNTHESES = ("bayes-net", "microaggregation", "histogram")
_REPLACE_ONLY = ("objective-perturbation", "learning-first", "anonymized-learning")
_FEW = 10_000
_SMALL, _LARGE = 1e-6, 1e6
_LEAST_EPSILON = Fraction(1, 10**6)


@final
@dataclass(frozen=True, kw_only=True)
class Settings:
    """As `PrivateClassifier` documents them."""

    method: str
    epsilon: AmountLike
    delta: AmountLike | None
    hidden: tuple[int, ...] | str
    relation: str | None
    n_public: int | None
    clip_norm: float
    sampling_rate: float
    epochs: int | None
    batch_size: int
    learning_rate: float | None
    momentum: float
    precision: str
    threshold: float
    weight_bound: float
    regularisation: AmountLike | None
    joint_epsilon: AmountLike | None
    synthesis: str
    n_synthetic: int
    bins: int
    group_size: int

    def __post_init__(self) -> None:
        checks.one_of(METHODS, method=self.method)
        checks.one_of(SYNTHESES, synthesis=self.synthesis)
        checks.one_of(("double", "single"), precision=self.precision)
        only = self.precision == "double" or self.method == "dp-sgd"
        checks.require(only, f"'double' for {self.method!r}", precision=self.precision)
        _must_be_payable(epsilon=self.epsilon)
        self._check_delta()
        self._check_hidden()
        self._check_relation()
        self._check_numbers()
        self._use_plain_numbers()

    def _use_plain_numbers(self) -> None:
        """Whole numbers of Python's own: those of another library would wrap around where noise is scaled."""
        for name in ("n_public", "epochs", "batch_size", "n_synthetic", "bins", "group_size"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, int(getattr(self, name)))
        if not isinstance(self.hidden, str):
            object.__setattr__(self, "hidden", tuple(int(size) for size in self.hidden))

    def _check_numbers(self) -> None:
        for name in ("clip_norm", "threshold", "weight_bound"):
            value = getattr(self, name)
            # Far below, sums would be lost in rounding or on the noise's grid, where nothing is cut any more.
            checks.require(_in(value, _SMALL, _LARGE), f"between {_SMALL} and {_LARGE:.0f}", **{name: value})
        checks.require(_in(self.sampling_rate, 2.0**-32, 1), "above 0 and at most 1", sampling_rate=self.sampling_rate)
        checks.require(_in(self.momentum, 0, 0.999999), "at least 0 and below 1", momentum=self.momentum)
        checks.whole(minimum=1, batch_size=self.batch_size, n_synthetic=self.n_synthetic, group_size=self.group_size)
        checks.whole(minimum=2, bins=self.bins)
        for name in ("epochs", "n_public"):
            if getattr(self, name) is not None:
                checks.whole(minimum=1, **{name: getattr(self, name)})
        if self.learning_rate is not None:
            checks.positive(learning_rate=self.learning_rate)
            checks.require(self.learning_rate <= _LARGE, f"at most {_LARGE:.0f}", learning_rate=self.learning_rate)
        if self.regularisation is not None:
            exact_positive(self.regularisation, name="regularisation")
        if self.joint_epsilon is not None:
            _must_be_payable(joint_epsilon=self.joint_epsilon)
        only = self.joint_epsilon is None or self.method in ("learning-first", "anonymized-learning")
        checks.require(only, "left out: epsilon is joint already for this method", joint_epsilon=self.joint_epsilon)

    def _check_delta(self) -> None:
        if self.delta is None:
            return
        read = exact(self.delta, name="delta")
        checks.require(0 <= read < 1, "at least 0 and below 1", delta=self.delta)
        if self.method == "dp-sgd":
            checks.require(read > 0, "above 0 for 'dp-sgd'", "Use the method 'laplace-sgd' for delta 0.", delta=self.delta)
        if self.method in PURE:
            checks.require(read == 0, f"0 or left out for {self.method!r}, which needs none", delta=self.delta)
        if self.method == "anonymizing-first" and self.synthesis != "bayes-net":
            checks.require(read == 0, f"0 or left out for synthesis={self.synthesis!r}, which needs none", delta=self.delta)

    def _check_hidden(self) -> None:
        if self.hidden == "auto":
            return
        good = isinstance(self.hidden, tuple | list)
        checks.require(good, "'auto' or the sizes of the hidden layers, such as (64, 64)", hidden=self.hidden)
        for size in self.hidden:
            checks.whole(minimum=1, **{"hidden layer size": size})
        if self.method == "objective-perturbation":
            checks.require(not self.hidden, "() for 'objective-perturbation', which is linear", hidden=self.hidden)

    def _check_relation(self) -> None:
        if self.relation is None:
            return
        allowed = ("replace-one",) if self.replace_only else ("add-remove", "replace-one")
        checks.one_of(allowed, relation=self.relation)

    @property
    def replace_only(self) -> bool:
        """Whether the method's promise is about replacing a record only."""
        grouped = self.method == "anonymizing-first" and self.synthesis == "microaggregation"
        return self.method in _REPLACE_ONLY or grouped

    def stated_relation(self, ledger_relation: str | None) -> str:
        """The relation of the promise: the caller's, else the ledger's, else the method's own."""
        if self.relation is not None:
            return self.relation
        if self.replace_only:
            return "replace-one"
        if ledger_relation == "local":
            raise ParameterError(
                "ledger must be for central data (relation 'replace-one' or 'add-remove'); got 'local'. "
                "Training sees the records, so it cannot be booked as local."
            )
        return ledger_relation or "add-remove"

    def stated_delta(self, n_public: int | None) -> Fraction:
        """The delta of the promise: 0 unless it was given, or the method is 'dp-sgd' (see `delta_for`).

        Raises:
            ParameterError: Delta is so large that handing out one record in the clear would be allowed.
        """
        given = 0 if self.delta is None and self.method != "dp-sgd" else self.delta
        return delta_for(given, n_public)

    def layers(self, n_public: int | None) -> tuple[int, ...]:
        """Sizes of the hidden layers; 'auto' is linear unless n epsilon is known to be at least 10,000."""
        if self.hidden != "auto":
            return tuple(int(size) for size in self.hidden)
        if self.method in ("learning-first", "anonymized-learning"):
            return (32, 32, 32)
        plenty = n_public is not None and n_public * exact_positive(self.epsilon, name="epsilon") >= _FEW
        return (32,) if plenty and self.method == "dp-sgd" else ()


def delta_for(delta: AmountLike | None, n_public: int | None) -> Fraction:
    """The delta of a promise about so many records; None is 1e-5, or a tenth of 1 / n_public where that is less.

    Raises:
        ParameterError: Delta is so large that handing out one record in the clear would be allowed.
    """
    stated = Fraction(1, max(10**5, 10 * (n_public or 1))) if delta is None else Fraction(exact(delta, name="delta"))
    if n_public is not None:
        advice = "A larger delta would allow to publish one of the records."
        rule = f"below 1/{n_public}, one over the number of records"
        checks.require(stated * n_public < 1, rule, advice, delta=delta)
    return stated


def _must_be_payable(**named: AmountLike) -> None:
    """Refuses an epsilon so small that its noise cannot be drawn, before anything is charged."""
    for name, value in named.items():
        checks.require(exact_positive(value, name=name) >= _LEAST_EPSILON, f"at least {_SMALL}", **{name: value})


def _in(value: object, low: float, high: float) -> bool:
    return checks.is_number(value) and low <= value <= high
