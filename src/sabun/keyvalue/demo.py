"""The demo's job on made-up phones: each runs the real device code, and only its report leaves it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sabun.privacy.noise import seeded_coin, uniform_below
from sabun.telling.demo import Bench, Job, Outcome

__all__ = ["APPS", "JOBS", "made_up"]

APPS = {
    "Messages": (0.90, 0.4),
    "Camera": (0.75, -0.2),
    "Maps": (0.60, -0.5),
    "Music": (0.45, 0.6),
    "Games": (0.30, 0.8),
    "Bank": (0.20, -0.8),
    "Diet diary": (0.08, 0.1),
}
"""Share of people who use each, with the mean use among them (-1 rarely, 1 all day)."""

_FINE = 10_000
_EVERY = 500


def usage_of_apps(bench: Bench) -> Outcome:
    """Devices report, a tally counts, frequencies and means come out."""
    from sabun.keyvalue import Study

    people = 2000 if bench.quick else 20_000
    study = Study(keys=list(APPS), epsilon=2)
    study.save(bench.folder / "apps.study.json")
    tally = study.tally()
    holds, uses = made_up(people)
    names = list(APPS)
    for person in range(people):
        held: dict[str | int, float] = {names[app]: float(uses[person, app]) for app in np.flatnonzero(holds[person])}
        tally.add(study.client().report(held))
        if person % _EVERY == 0:
            bench.progress(person / people, f"phone {person:,} of {people:,}")
    found = tally.estimate()
    truth = holds.mean(axis=0)
    inside = int(((found.frequency_interval[:, 0] <= truth) & (truth <= found.frequency_interval[:, 1])).sum())
    return Outcome(
        release=found.release(),
        remarks=(
            f"{people:,} made-up phones each ran the device code and sent {study.report_bytes} bytes; nothing else left them.",
            f"The people are made up, so we may look: {inside} of the {len(names)} true shares lie in their intervals.",
        ),
        payer="none in the middle; each phone booked the cost in a diary of its own",
    )


def made_up(people: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Who uses which app, and how much; the same people in every demo."""
    coin = seeded_coin(1)
    shape = (people, len(APPS))
    chance = np.asarray(uniform_below(_FINE, coin=coin, size=people * len(APPS)), dtype=np.float64).reshape(shape) / _FINE
    scatter = np.asarray(uniform_below(_FINE, coin=coin, size=people * len(APPS)), dtype=np.float64).reshape(shape) / _FINE
    shares, means = (np.array(column) for column in zip(*APPS.values(), strict=True))
    return chance < shares, np.clip(means + 0.4 * (scatter - 0.5), -1, 1)


JOBS = (Job(name="keyvalue", question="Which apps do people use, and how much?", run=usage_of_apps),)
