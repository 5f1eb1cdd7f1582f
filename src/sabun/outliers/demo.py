"""The demo's job on census records that come with the package (Adult): how many people are unusual."""

from __future__ import annotations

from sabun.datasets import load_adult
from sabun.telling.demo import Bench, Job, Outcome

__all__ = ["JOBS"]

_UNUSUAL = ("age", "hours-per-week", "education-num")


def count_unusual_people(bench: Bench) -> Outcome:
    """A private number of outliers with an error bar."""
    from sabun.outliers import OutlierCount, inspect_outliers

    people = load_adult()
    table = people.data[list(_UNUSUAL)].head(bench.rows(people.data))
    schema = people.schema.select(_UNUSUAL)
    bench.progress(0.2, "counting neighbours")
    model = OutlierCount(k=5, radius=0.05, epsilon=1, schema=schema, ledger=bench.census()).fit(table)
    exact = inspect_outliers(table, k=5, radius=0.05, schema=schema).count
    return Outcome(
        release=model.release_,
        remarks=(
            "Unusual means here: fewer than 5 others of nearly the same age, working hours and years of education.",
            f"This table is public, so we may look: the exact number is {exact:,}.",
        ),
    )


JOBS = (Job(name="outliers", question="How many people in the census are unusual?", run=count_unusual_people),)
