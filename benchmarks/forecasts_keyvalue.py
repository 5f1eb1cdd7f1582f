"""Forecasts of key-value errors: root mean squares over keys, where nothing but the mean frequency is told, or not even that.

The first grid has the populations `TUNED` and `SEEN`; what is held out are populations invented for it, and three real
tables: which labels people have in Adult (with their hours), which pixels of a digit are inked (and how much), which readings
of the ionosphere are not 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.forecasts import Case, Floats
from benchmarks.keyvalue_estimators import EPSILONS, REPORTS
from benchmarks.keyvalue_populations import SEEN, TUNED, Population
from sabun.keyvalue import Study

_RUNS = 3
_QUANTITIES = ("error of the frequencies", "error of the means")


def cases(quick: bool) -> Iterator[Case]:
    """The populations of the estimators, told their mean frequency; all numbers and amounts are in `keyvalue_plans`."""
    for name, population in list({**TUNED, **SEEN}.items())[:: 9 if quick else 1]:
        for keys in (50,) if quick else (5, 50, 300):
            for reports in REPORTS[1:2] if quick else REPORTS[::2]:
                for epsilon in EPSILONS[1:2] if quick else EPSILONS[::2]:
                    yield from _cases(name, population, keys, reports, epsilon, told=True, real=False)


def held_out(quick: bool) -> Iterator[Case]:
    """Other populations, numbers of keys and of reports, and amounts; frequencies told, and not."""
    for real, populations in ((False, _OTHERS), (True, _REAL)):
        for name, population in list(populations.items())[: 1 if quick else None]:
            for keys in (12, 120) if not real and not quick else (64,):
                for reports in (500, 5000):
                    for epsilon in (0.7, 1.5, 3.0):
                        for told in (True, False):
                            yield from _cases(name, population, keys, reports, epsilon, told=told, real=real)


def _cases(
    name: str, population: Population, keys: int, reports: int, epsilon: float, *, told: bool, real: bool
) -> Iterator[Case]:
    f, m = population(keys, np.random.default_rng([keys, reports]))
    study = Study(keys=list(range(len(f))), epsilon=epsilon, protocol="kv3")
    plan = study.plan(n_records=reports * len(f), frequency=float(f.mean()) if told else None)
    errors = []
    for run in range(_RUNS):
        found = study.simulate(f, m, n=reports * len(f), random_state=run).estimate()
        errors.append(np.sqrt([np.mean((found.frequency - f) ** 2), f @ (found.mean - m) ** 2 / f.sum()]))
    for about, of_one in zip(_QUANTITIES, np.transpose(errors), strict=True):
        words = f"{about[13:]} {name}{'' if told else ', told nothing'} keys={len(f)} reports={reports} epsilon={epsilon:g}"
        yield Case.of("keyvalue", words, plan, list(of_one), real=real, about=about)


def _hill(d: int, dice: np.random.Generator) -> tuple[Floats, Floats]:
    place = (np.arange(d) + 0.5) / d
    return 0.02 + 0.7 * np.exp(-(((place - 0.4) / 0.15) ** 2)), np.sin(9 * place)


def _thirds(d: int, dice: np.random.Generator) -> tuple[Floats, Floats]:
    kind = dice.integers(0, 3, d)
    return np.array([0.05, 0.2, 0.45])[kind] * dice.uniform(0.7, 1.3, d), np.array([0.9, 0.2, -0.5])[kind]


def _exponential(d: int, dice: np.random.Generator) -> tuple[Floats, Floats]:
    return np.minimum(dice.exponential(0.12, d), 1.0), dice.triangular(-1, 0.3, 1, d)


def _most_hold_most(d: int, dice: np.random.Generator) -> tuple[Floats, Floats]:
    return dice.beta(5, 2, d), dice.normal(0.3, 0.3, d).clip(-1, 1)


def _labels(d: int, dice: np.random.Generator) -> tuple[Floats, Floats]:
    from sabun.datasets import load_adult

    data = load_adult().data
    hours = (data["hours-per-week"].to_numpy(dtype=float) / 50 - 1).clip(-1, 1)
    held = [
        (data[name] == label).to_numpy()
        for name in ("education", "occupation", "marital-status")
        for label in sorted(data[name].dropna().unique())
    ]
    held = [one for one in held if one.any()]
    return np.array([one.mean() for one in held]), np.array([hours[one].mean() for one in held])


def _pixels(d: int, dice: np.random.Generator) -> tuple[Floats, Floats]:
    from sklearn.datasets import load_digits

    ink = load_digits().data
    ink = ink[:, (ink > 0).any(axis=0)]
    return (ink > 0).mean(axis=0), ink.sum(axis=0) / (ink > 0).sum(axis=0) / 8 - 1


def _readings(d: int, dice: np.random.Generator) -> tuple[Floats, Floats]:
    from sabun.datasets import load_ionosphere

    found = load_ionosphere().data.select_dtypes("number").to_numpy(dtype=float)
    found = found[:, (found != 0).any(axis=0)]
    return (found != 0).mean(axis=0), found.sum(axis=0) / (found != 0).sum(axis=0)


_OTHERS: dict[str, Population] = {
    "hill": _hill,
    "thirds": _thirds,
    "exponential": _exponential,
    "most hold most": _most_hold_most,
}
_REAL: dict[str, Population] = {"adult's labels": _labels, "digits' pixels": _pixels, "ionosphere's readings": _readings}
