"""The demo's job on census records that come with the package (Adult): a model to hand over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabun.datasets import load_adult
from sabun.telling.demo import Bench, Job, Outcome

if TYPE_CHECKING:
    from sabun.telling.story import Chart

__all__ = ["JOBS"]


def handed_over_model(bench: Bench) -> Outcome:
    """A network trained on personal records, measured on others."""
    from sabun.learning import PrivateClassifier
    from sabun.telling.story import Answer

    people = load_adult()
    rows = bench.rows(people.data)
    train = int(0.8 * rows)
    data, target = people.data.head(rows), people.target.head(rows)
    model = PrivateClassifier(
        epsilon=2,
        delta=1e-6,
        schema=people.schema,
        classes=list(people.label.categories),
        epochs=10 if bench.quick else None,
        ledger=bench.census(),
        progress=bench.progress,
    ).fit(data[:train], target[:train])
    model.save(bench.folder / "income-model")
    right = model.score(data[train:], target[train:])
    usual = float((target[train:] == people.label.categories[0]).mean())
    return Outcome(
        release=model.release_,
        answer=Answer(
            big=f"{100 * right:.1f} % right",
            sentence=f"on {rows - train:,} people it has not seen; always guessing the commoner class, {100 * usual:.1f} %.",
        ),
        remarks=("The model is in the folder income-model, with its privacy card.",),
        charts=_accuracy(right, usual),
    )


def _accuracy(right: float, usual: float) -> tuple[Chart, ...]:
    from sabun.telling.charts import bars

    chart = bars(
        ["this model", "always the commoner class"],
        100 * np.array([right, usual]),
        title="How often it is right",
        axis="right on people it has not seen (%)",
        heading="who guesses",
        note="Measured on public rows that were not used in training.",
    )
    return () if chart is None else (chart,)


JOBS = (Job(name="learning", question="Who earns over $50,000? A model to hand over.", run=handed_over_model),)
