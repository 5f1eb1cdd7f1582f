"""All that a caller chose about a training run, checked once, before any data is touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from sabun import checks
from sabun.learning.settings import (
    GAUSSIAN,
    LARGE,
    LEAST_EPSILON,
    AnonymizedLearningSettings,
    AnonymizingFirstSettings,
    DpSgdSettings,
    LaplaceSgdSettings,
    LearningFirstSettings,
    NoisyCentroidsSettings,
    ObjectivePerturbationSettings,
    TrainingSettings,
)
from sabun.privacy.amounts import AmountLike, exact

if TYPE_CHECKING:
    from sabun.asking import Ask

__all__ = ["Choices", "delta_for"]

_FEW = 10_000
_MOST_EPOCHS, _MOST_STEPS = 1_000_000, 5_000_000
"""Far beyond what helps: noise for so many steps is found in seconds, for a hundred times as many a plan seems to hang."""
_USUAL_EPOCHS = 30


@final
@dataclass(frozen=True, kw_only=True)
class Choices:
    """All that a caller chose about a training run, checked once; the terms beside it, the rest as `PrivateClassifier` has it.

    Args:
        ask: Epsilon, delta, relation, unit, coin, ledger, settled.
        method: How to train.
        delta: As it was given, for messages.
        hidden: Sizes of hidden layers, or "auto".
        n_public: The number of records, where the caller declares it public.
        epochs: Passes, at most a million; None picks by method.
        learning_rate: None picks by method.
    """

    ask: Ask
    method: TrainingSettings
    delta: AmountLike | None
    hidden: Sequence[int] | str
    n_public: int | None
    epochs: int | None
    learning_rate: float | None

    def __post_init__(self) -> None:
        self.method.check()
        checks.require(self.ask.epsilon >= LEAST_EPSILON, f"at least {float(LEAST_EPSILON)}", epsilon=self.ask.epsilon)
        self._check_delta()
        self._check_hidden()
        for name in ("epochs", "n_public"):
            if getattr(self, name) is not None:
                checks.whole(minimum=1, **{name: getattr(self, name)})
                # Whole numbers of another library would wrap around where noise is scaled.
                object.__setattr__(self, name, int(getattr(self, name)))
        self._check_steps()
        if self.learning_rate is not None:
            checks.positive(learning_rate=self.learning_rate)
            checks.require(self.learning_rate <= LARGE, f"at most {LARGE:.0f}", learning_rate=self.learning_rate)

    def _check_delta(self) -> None:
        if self.ask.delta is None:
            return
        name = self.method.method
        if isinstance(self.method, GAUSSIAN):
            advice = "Use the method 'noisy-centroids' for delta 0."
            checks.require(self.ask.delta > 0, f"above 0 for {name!r}", advice, delta=self.delta)
        if self.method.pure:
            checks.require(self.ask.delta == 0, f"0 or left out for {name!r}, which needs none", delta=self.delta)
        if isinstance(self.method, AnonymizingFirstSettings) and self.method.synthesis != "bayes-net":
            rule = f"0 or left out for the synthesis {self.method.synthesis!r}, which needs none"
            checks.require(self.ask.delta == 0, rule, delta=self.delta)

    def _check_steps(self) -> None:
        epochs = self.epochs
        if epochs is not None:
            checks.require(epochs <= _MOST_EPOCHS, f"at most {_MOST_EPOCHS:,}", epochs=epochs)
        if isinstance(self.method, DpSgdSettings | LaplaceSgdSettings):
            rate, passes = self.method.sampling_rate, epochs or _USUAL_EPOCHS
            few, most = passes <= _MOST_STEPS * rate, math.floor(_MOST_STEPS * rate)
            advice = f"More than {_MOST_STEPS:,} steps are not planned."
            if epochs is not None and most > 0:
                checks.require(few, f"at most {most:,} at a sampling rate of {rate:g}", advice, epochs=epochs)
            checks.require(few, f"at least {passes / _MOST_STEPS:g} with epochs={passes}", advice, sampling_rate=rate)

    def _check_hidden(self) -> None:
        if isinstance(self.hidden, str) and self.hidden == "auto":
            return
        good = isinstance(self.hidden, tuple | list)
        checks.require(good, "'auto' or the sizes of the hidden layers, such as (64, 64)", hidden=self.hidden)
        for size in self.hidden:
            checks.whole(minimum=1, **{"hidden layer size": size})
        if isinstance(self.method, ObjectivePerturbationSettings | NoisyCentroidsSettings):
            checks.require(not self.hidden, f"empty for {self.method.method!r}, which is linear", hidden=self.hidden)

    def stated_delta(self, n_public: int | None) -> Fraction:
        """The delta of the promise: 0 unless it was given, or the method is 'dp-adam' or 'dp-sgd' (see `delta_for`).

        Raises:
            ParameterError: Delta is so large that handing out one record in the clear would be allowed.
        """
        given = 0 if self.delta is None and not isinstance(self.method, GAUSSIAN) else self.delta
        return delta_for(given, n_public)

    def layers(self, n_public: int | None) -> tuple[int, ...]:
        """Sizes of the hidden layers; 'auto' is linear unless n epsilon is known to be at least 10,000 (not 'dp-adam')."""
        if not isinstance(self.hidden, str):
            return tuple(int(size) for size in self.hidden)
        if isinstance(self.method, LearningFirstSettings | AnonymizedLearningSettings):
            return (32, 32, 32)
        plenty = n_public is not None and n_public * self.ask.epsilon >= _FEW
        return (32,) if plenty and isinstance(self.method, DpSgdSettings) else ()


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
