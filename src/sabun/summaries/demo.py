"""The demo's job on made-up patients: a count."""

from __future__ import annotations

import numpy as np

from sabun.records import Schema
from sabun.telling.demo import Bench, Job, Outcome

__all__ = ["JOBS", "count_old_patients"]

_PATIENTS = 1000


def count_old_patients(bench: Bench) -> Outcome:
    """A private count over a made-up table."""
    from sabun.summaries import Count

    ledger = bench.ledger("clinic", unit="patient", epsilon=3)
    ages = 18 + np.arange(_PATIENTS) * 37 % 82
    schema = Schema.of_bounds({"age": (0, 120)})
    asked = Count(epsilon=0.5, schema=schema, where={"age": (65, None)}, ledger=ledger).fit(ages.reshape(-1, 1))
    exact = int((ages >= 65).sum())
    return Outcome(release=asked.release_, remarks=(f"This table is made up, so we may look: the exact count is {exact}.",))


JOBS = (Job(name="count", question="How many of the patients are 65 or older?", run=count_old_patients),)
