"""What is measured for the key-value paper: every method's errors at every setting of its tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sabun.datasets import KeyValuePopulation, keyvalue_population
from sabun.keyvalue import Iteration, Study
from sabun.keyvalue.channel import Counts
from sabun.keyvalue.estimates import point_estimates

__all__ = ["ETA", "KEYS", "METHODS", "PRINTED", "Cell", "Cells", "means_at", "measure", "theory"]

KEYS = 50
ETA = "EM (eta 1e-4)"
METHODS = (
    ("PrivKV", "privkv", "ye", None),
    ("PrivKVM (c=3)", "privkvm", "ye", None),
    ("EM", "privkv", "em", None),
    (ETA, "privkv", "em", Iteration(iterations=5000, eta=1e-4)),
    ("PrivKV + exact MLE", "privkv", "mle", None),
    ("PrivKV + posterior", "privkv", "posterior", None),
    ("KV3 + exact MLE", "kv3", "mle", None),
    ("KV3 + posterior", "kv3", "posterior", None),
)
PRINTED = ("EM", "PrivKV", "PrivKVM (c=3)")
"""The methods the paper has numbers for."""
_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method's mean squared errors at one setting, with standard errors over the trials."""

    frequency: float
    frequency_error: float
    mean: float
    mean_error: float
    outside: float = 0.0
    """The share of estimated frequencies below 0 or above 1."""
    frequency_trials: tuple[float, ...] = ()
    """The mean squared error of each trial; trials of one protocol share their reports between the methods."""
    mean_trials: tuple[float, ...] = ()


Cells: TypeAlias = dict[tuple[str, float, int], dict[str, Cell]]
"""By data set, epsilon and number of people."""


def measure(shape: str, epsilon: float, n: int, trials: int) -> dict[str, Cell]:
    """Every method's errors on one data set; trials of one protocol share their reports between the methods."""
    truth = keyvalue_population(shape)
    found: dict[str, Cell] = {}
    for protocol in ("privkv", "privkvm", "kv3"):
        study = Study(keys=list(range(KEYS)), epsilon=epsilon, protocol=protocol)
        tallies = [study.simulate(*truth, n=n, random_state=1000 + trial) for trial in range(trials)]
        first = _stack([tally.counts() for tally in tallies])
        for name, of, method, how in METHODS:
            if of == protocol:
                f, m = point_estimates(method, study.channel, first, how)
                if protocol == "privkvm":
                    m = np.concatenate([tally.estimate().mean for tally in tallies])
                found[name] = _cell(f, m, truth, trials)
    return found


def means_at(epsilon: float, n: int) -> dict[str, _Floats]:
    """The means of one run on the Gaussian set, by method, as in the paper's figure 5."""
    truth = keyvalue_population("gaussian")
    found = {}
    for name, protocol, method, how in METHODS:
        if name in ("PrivKV", "EM", "KV3 + exact MLE"):
            study = Study(keys=list(range(KEYS)), epsilon=epsilon, protocol=protocol)
            found[name] = study.simulate(*truth, n=n, random_state=1000).estimate(method, iteration=how).mean
    return found


def theory(shape: str, epsilon: float, n: int) -> float:
    """The exact variance of PrivKV's unclipped frequency, averaged over keys: (p q / (2p-1)^2 + f (1-f)) d / n."""
    p = 1 / (1 + math.exp(-epsilon / 2))
    f = keyvalue_population(shape).frequencies
    return float(np.mean((p * (1 - p) / (2 * p - 1) ** 2 + f * (1 - f)) * KEYS / n))


def _stack(counts: list[Counts]) -> Counts:
    """All trials side by side, so that one call estimates them all."""
    parts = [np.concatenate([getattr(one, name) for one in counts]) for name in ("plus", "minus", "total")]
    return Counts(plus=parts[0], minus=parts[1], total=parts[2])


def _cell(f: _Floats, m: _Floats, truth: KeyValuePopulation, trials: int) -> Cell:
    """A mean that does not exist counts as the middle of the range."""
    by_trial = [
        ((np.nan_to_num(estimate).reshape(trials, KEYS) - true) ** 2).mean(axis=1)
        for estimate, true in ((f, truth.frequencies), (m, truth.means))
    ]
    (mean_f, se_f), (mean_m, se_m) = ((float(e.mean()), float(e.std(ddof=1) / np.sqrt(trials))) for e in by_trial)
    outside = float(np.mean((f < 0) | (f > 1)))
    return Cell(
        frequency=mean_f,
        frequency_error=se_f,
        mean=mean_m,
        mean_error=se_m,
        outside=outside,
        frequency_trials=tuple(map(float, by_trial[0])),
        mean_trials=tuple(map(float, by_trial[1])),
    )
