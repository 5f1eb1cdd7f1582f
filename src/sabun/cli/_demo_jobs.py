"""The jobs of `sabun demo`, in order.

Because the data are public or made up, a job may say how far its private answer is from the exact one. On private data nobody
can.
"""

from __future__ import annotations

from sabun.cli._demo import Job
from sabun.cli._demo_census import count_unusual_people, handed_over_model, weights_for_a_public_table
from sabun.cli._demo_clinic import count_old_patients, model_of_three_hospitals
from sabun.cli._demo_phones import usage_of_apps

__all__ = ["JOBS"]

JOBS: tuple[Job, ...] = (
    Job(name="count", question="How many of the patients are 65 or older?", run=count_old_patients),
    Job(name="outliers", question="How many people in the census are unusual?", run=count_unusual_people),
    Job(
        name="density",
        question="Can a public table of mostly young people answer for everybody else?",
        run=weights_for_a_public_table,
    ),
    Job(
        name="regression",
        question="What drives blood pressure, in three hospitals that cannot share data?",
        run=model_of_three_hospitals,
    ),
    Job(name="keyvalue", question="Which apps do people use, and how much?", run=usage_of_apps),
    Job(name="learning", question="Who earns over $50,000? A model to hand over.", run=handed_over_model),
)
