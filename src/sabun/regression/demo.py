"""The demo's job on made-up patients: one model from three hospitals.

What is made up comes from a seeded coin, so that every demo asks about the same people; the noise that protects them does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sabun.privacy.noise import Coin, seeded_coin, uniform_below
from sabun.release import Release, generate_key
from sabun.telling.demo import Bench, Job, Outcome

if TYPE_CHECKING:
    from sabun.regression import PublicModel

__all__ = ["JOBS"]

_HOSPITALS = ("north", "east", "south")
_TRUTH = {"age": 0.5, "bmi": 1.1, "smoker": 8.0, "salt": 2.5}
_BOUNDS = {"age": (18, 98), "bmi": (15, 45), "smoker": (0, 1), "salt": (0, 15)}
_PRESSURE = (60, 220)
_FINE = 10_000


def model_of_three_hospitals(bench: Bench) -> Outcome:
    """Three hospitals release noisy sums; anybody joins them into one linear model."""
    import pandas as pd

    from sabun.records import Column, Schema
    from sabun.regression import PrivateRidge, PublicModel, Study, combine

    keys = {name: generate_key() for name in _HOSPITALS}
    study = Study(
        features=Schema.of_bounds({name: (low, high) for name, (low, high) in _BOUNDS.items()}),
        target=Column.number("pressure", lower=_PRESSURE[0], upper=_PRESSURE[1]),
        epsilon=1,
        delta="1e-6",
        unit="patient",
        name="blood pressure",
        organisations={name: key.public_key() for name, key in keys.items()},
    )
    size = 3000 if bench.quick else 10_000
    releases: dict[str, Release] = {}
    for place, name in enumerate(_HOSPITALS):
        bench.progress(place / 4, f"hospital {name}")
        ledger = bench.ledger(f"hospital-{name}", unit="patient", epsilon=2, delta="1e-5")
        features, target = _patients(size, seeded_coin(place + 1))
        fitted = PrivateRidge(study=study, organisation=name, signing_key=keys[name], ledger=ledger).fit(
            pd.DataFrame(features), target
        )
        releases[name] = fitted.release_
    bench.progress(3 / 4, "joining the three releases")
    model = combine(list(releases.values()), study=study)
    assert isinstance(model, PublicModel)
    return Outcome(
        release=model.release(),
        remarks=(
            f"Three hospitals with {size:,} made-up patients each; no patient's data left any of them. {_hits(model)}",
            "Joining the three files cost nothing more.",
        ),
        payer="charged to each hospital's own (epsilon 1, delta 1e-06)",
        others=releases,
    )


def _patients(size: int, coin: Coin) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """Made-up patients whose blood pressure is a known line plus scatter."""
    columns = {name: _uniform(size, coin, low, high) for name, (low, high) in _BOUNDS.items()}
    columns["smoker"] = (columns["smoker"] < 0.3).astype(np.float64)
    scatter = sum(_uniform(size, coin, -8, 8) for _ in range(4))
    pressure = 50 + sum(_TRUTH[name] * column for name, column in columns.items()) + scatter
    return columns, np.clip(pressure, *_PRESSURE)


def _uniform(size: int, coin: Coin, low: float, high: float) -> NDArray[np.float64]:
    return low + (high - low) * np.asarray(uniform_below(_FINE, coin=coin, size=size), dtype=np.float64) / _FINE


def _hits(model: PublicModel) -> str:
    pairs = zip(model.feature_names_, model.conf_int(), strict=True)
    inside = sum(low <= _TRUTH[name] <= high for name, (low, high) in pairs)
    return f"{inside} of the {len(_TRUTH)} true coefficients lie in their 95 % intervals."


JOBS = (
    Job(
        name="regression",
        question="What drives blood pressure, in three hospitals that cannot share data?",
        run=model_of_three_hospitals,
    ),
)
