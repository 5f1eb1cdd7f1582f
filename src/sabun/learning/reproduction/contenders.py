"""What is compared for the learning paper: each method, the settings tried for it, and those that were chosen.

`python -m benchmarks.learning_tuning` tries every setting on the tuning rows of a study and prints `CHOSEN` anew.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

__all__ = ["ALL", "CHOSEN", "JOINT", "PER_PARAMETER", "SMALL", "Contender"]

_PAPER_EPSILONS = (0.01, 0.1, 1.0, 10.0, 100.0)
_JOINT_EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
_SMALL_EPSILONS = (1.0, 3.0, 8.0)
_PAPER_NET = (32, 32, 32)


@final
@dataclass(frozen=True, kw_only=True)
class Contender:
    """One row of a table of results.

    Args:
        name: As the table says it.
        study: The table it learns from.
        epsilons: The columns.
        fixed: Settings that were not tuned.
        grid: The settings that were tried for each epsilon.
        tuned_as: The contender whose choice is taken over, where this one was not tuned by itself.
        joint: Whether epsilon is passed as `joint_epsilon`, for the paper's methods.
        tuning_runs: How many runs of a setting are averaged before it is chosen; two for the paper's methods, which vary most.
        tuning_factor: By what epsilon is multiplied while tuning: 4/9 of the records need 9/4 of epsilon for the same noise in
            a mean gradient. Adult was tuned at epsilon itself.
    """

    name: str
    study: str
    epsilons: tuple[float, ...]
    fixed: Mapping[str, Any]
    grid: tuple[Mapping[str, Any], ...]
    tuned_as: str | None = None
    joint: bool = False
    tuning_runs: int = 1
    tuning_factor: float = 1.0

    def tried(self, epsilon: float) -> Iterator[dict[str, Any]]:
        """Complete settings at that epsilon, one for each place of the grid."""
        price = {"joint_epsilon" if self.joint else "epsilon": epsilon}
        for place in self.grid:
            yield {**self.fixed, **place, **price}

    @property
    def tuned(self) -> bool:
        """Whether there was anything to choose for it."""
        return self.tuned_as is None and len(self.grid) > 1

    def place(self, epsilon: float) -> int:
        """Where in the grid the settings stand that did best on the tuning rows."""
        return CHOSEN[self.tuned_as or self.name][self.epsilons.index(epsilon)] if len(self.grid) > 1 else 0

    def chosen(self, epsilon: float) -> dict[str, Any]:
        """Complete settings for the results."""
        return list(self.tried(epsilon))[self.place(epsilon)]


def _grid(**values: tuple[Any, ...]) -> tuple[Mapping[str, Any], ...]:
    return tuple(dict(zip(values, place, strict=True)) for place in itertools.product(*values.values()))


def _updates() -> tuple[Mapping[str, Any], ...]:
    """AnonymizedLearning's grid in its natural unit: how far one update can move a weight, rate x threshold / batch size."""
    return tuple(
        {"batch_size": batch, "threshold": threshold, "learning_rate": round(move * batch / threshold, 6)}
        for batch, threshold, move in itertools.product((50, 10), (0.1, 1.0), (0.002, 0.01, 0.05))
    )


_SGD = _grid(learning_rate=(0.25, 0.5, 1.0, 2.0), epochs=(10, 30))
_PURE_SGD = _grid(learning_rate=(1.0, 3.0, 10.0), epochs=(5, 10, 30))
_SYNTHETIC = _grid(bins=(8, 16), learning_rate=(0.05, 0.2))
_UPDATES = _updates()


def _per_parameter(
    name: str, *, study: str = "adult, plain", grid: tuple[Mapping[str, Any], ...], tuning_runs: int = 1, **fixed: Any
) -> Contender:
    return Contender(
        name=name,
        study=study,
        epsilons=_PAPER_EPSILONS,
        fixed={"hidden": _PAPER_NET, **fixed},
        grid=grid,
        tuning_runs=tuning_runs,
    )


PER_PARAMETER = (
    _per_parameter("AnonymizedLearning", method="anonymized-learning", grid=_UPDATES, tuning_runs=2),
    _per_parameter(
        "LearningFirst",
        method="learning-first",
        epochs=20,
        grid=_grid(weight_bound=(0.1, 0.25, 0.5, 1.0, 2.0)),
        tuning_runs=2,
    ),
    _per_parameter(
        "AnonymizingFirst, microaggregation",
        method="anonymizing-first",
        synthesis="microaggregation",
        batch_size=10,
        learning_rate=0.05,
        grid=_grid(group_size=(200, 1000, 4000), epochs=(30, 300)),
    ),
    _per_parameter(
        "AnonymizingFirst, histogram",
        study="adult, five columns",
        method="anonymizing-first",
        synthesis="histogram",
        grid=_grid(bins=(4, 8), learning_rate=(0.05, 0.2)),
    ),
    _per_parameter("AnonymizingFirst, Bayesian network", method="anonymizing-first", grid=_SYNTHETIC),
)
"""The paper's three approaches on its encoding; the last is what one would take for the first step today."""


def _joint(name: str, *, grid: tuple[Mapping[str, Any], ...], joint: bool = False, **fixed: Any) -> Contender:
    return Contender(
        name=name,
        study="adult",
        epsilons=_JOINT_EPSILONS,
        fixed=fixed,
        grid=grid,
        joint=joint,
        tuning_runs=2 if joint else 1,
    )


_LOG_SCALE = (
    _joint("DP-SGD, the library's defaults", delta=1e-5, grid=({},)),
    _joint("DP-SGD, linear", hidden=(), delta=1e-5, grid=_SGD),
    _joint("DP-SGD, 32", hidden=(32,), delta=1e-5, grid=_SGD),
    _joint("DP-SGD, 3x32", hidden=_PAPER_NET, delta=1e-5, grid=_SGD),
    _joint("synthetic table, then linear", method="anonymizing-first", hidden=(), delta=1e-5, grid=_SYNTHETIC),
    _joint("synthetic table, then 3x32", method="anonymizing-first", hidden=_PAPER_NET, delta=1e-5, grid=_SYNTHETIC),
    _joint("pure: synthetic table, then linear", method="anonymizing-first", hidden=(), grid=_SYNTHETIC),
    _joint(
        "pure: objective perturbation, linear",
        method="objective-perturbation",
        grid=_grid(regularization=(None, 5, 20, 50, 100)),
    ),
    _joint("pure: Laplace SGD, linear", method="laplace-sgd", hidden=(), grid=_PURE_SGD),
    _joint("pure: Laplace SGD, 16", method="laplace-sgd", hidden=(16,), grid=_PURE_SGD),
    _joint(
        "paper's AnonymizedLearning, 3x32",
        method="anonymized-learning",
        hidden=_PAPER_NET,
        delta=1e-5,
        joint=True,
        grid=_UPDATES,
    ),
    _joint(
        "paper's AnonymizedLearning, linear", method="anonymized-learning", hidden=(), delta=1e-5, joint=True, grid=_UPDATES
    ),
    _joint(
        "paper's LearningFirst, 3x32",
        method="learning-first",
        hidden=_PAPER_NET,
        epochs=5,
        joint=True,
        grid=_grid(weight_bound=(0.1, 0.5, 2.0)),
    ),
)

_PLAIN = ("DP-SGD, linear", "DP-SGD, 32", "DP-SGD, 3x32", "paper's AnonymizedLearning, 3x32")

JOINT = (
    *_LOG_SCALE,
    *(
        dataclasses.replace(row, name=f"{row.name}, plain encoding", study="adult, plain", tuned_as=row.name)
        for row in _LOG_SCALE
        if row.name in _PLAIN
    ),
)
"""Everything at an epsilon for all weights together; log scale on the capital columns unless the name says otherwise."""

SMALL = tuple(
    Contender(
        name=f"{study}, {kind}",
        study=study,
        epsilons=_SMALL_EPSILONS,
        fixed={"hidden": hidden, "delta": delta},
        grid=_grid(learning_rate=rates, epochs=(10, 30, 60)),
        tuning_factor=9 / 4,
    )
    for study, delta, wide, rates in (
        ("digits", 1e-4, 64, (0.1, 0.25, 0.5, 1.0, 2.0)),
        ("moons", 1e-5, 32, (0.5, 1.0, 2.0, 4.0)),
    )
    for kind, hidden in (("linear", ()), ("network", (wide,)))
)
"""Two tables on which depth has something to win."""

ALL = (*PER_PARAMETER, *JOINT, *SMALL)

CHOSEN: dict[str, tuple[int, ...]] = {
    "AnonymizedLearning": (8, 1, 1, 1, 1),
    "LearningFirst": (1, 0, 3, 0, 2),
    "AnonymizingFirst, microaggregation": (3, 5, 2, 2, 1),
    "AnonymizingFirst, histogram": (1, 0, 0, 2, 3),
    "AnonymizingFirst, Bayesian network": (1, 0, 0, 0, 3),
    "DP-SGD, linear": (2, 5, 7, 7, 7, 7),
    "DP-SGD, 32": (0, 3, 1, 1, 1, 1),
    "DP-SGD, 3x32": (0, 1, 3, 3, 1, 1),
    "synthetic table, then linear": (1, 1, 0, 2, 1, 3),
    "synthetic table, then 3x32": (0, 0, 2, 2, 3, 1),
    "pure: synthetic table, then linear": (1, 1, 1, 3, 2, 2),
    "pure: objective perturbation, linear": (4, 2, 2, 1, 1, 0),
    "pure: Laplace SGD, linear": (0, 3, 6, 4, 7, 7),
    "pure: Laplace SGD, 16": (0, 1, 4, 4, 2, 5),
    "paper's AnonymizedLearning, 3x32": (11, 5, 2, 11, 8, 6),
    "paper's AnonymizedLearning, linear": (3, 6, 0, 6, 1, 7),
    "paper's LearningFirst, 3x32": (1, 2, 1, 2, 0, 1),
    "digits, linear": (1, 5, 5),
    "digits, network": (1, 4, 4),
    "moons, linear": (9, 1, 1),
    "moons, network": (11, 2, 5),
}
"""For each tuned contender the place in its grid that did best on the tuning rows, for each epsilon."""
