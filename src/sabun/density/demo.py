"""The demo's job on census records that come with the package (Adult): weights for a public table."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sabun.datasets import load_adult
from sabun.telling.demo import Bench, Job, Outcome

if TYPE_CHECKING:
    from sabun.telling.story import Chart

__all__ = ["JOBS"]

_DESCRIBED = ("age", "education-num", "hours-per-week", "sex", "marital-status")
_RICH = ">50K"


def weights_for_a_public_table(bench: Bench) -> Outcome:
    """Weights that make a table of mostly young people answer for everybody else."""
    from sabun.density import CoverageWarning, DensityRatio
    from sabun.density.marginals import marginals
    from sabun.telling.story import Answer

    people = load_adult()
    data = people.data.head(bench.rows(people.data))
    rich = (people.target.head(len(data)) == _RICH).to_numpy()
    public = _mostly_young(data["age"].to_numpy())
    columns = list(_DESCRIBED)
    bench.progress(0.2, "releasing one noisy average")
    model = DensityRatio(epsilon=0.5, schema=people.schema.select(_DESCRIBED), ledger=bench.census())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)  # its words are in the diagnostics, which are told below
        model.fit(private=data[~public][columns].reset_index(drop=True), public=data[public][columns].reset_index(drop=True))
    bench.progress(0.8, "asking questions")
    answer: Any = model.query(rich[public].astype(np.float64), bounds=(0, 1))
    chart = _comparison(data, rich, public, model.weights_)
    columns_drawn = marginals(model.release_, data[public][columns])
    return Outcome(
        release=model.release_,
        answer=Answer(
            big=f"{100 * answer.estimate:.1f} %",
            spread="without an interval"
            if answer.interval is None
            else f"± {50 * (answer.interval[1] - answer.interval[0]):.1f} % (95 %)",
            sentence="of the private people earn over $50,000, says the public table with the released weights.",
        ),
        remarks=(
            f"Without them it would say {100 * rich[public].mean():.1f} %. This data is public, so we may look: "
            f"{100 * rich[~public].mean():.1f} % do.",
            *model.diagnostics_.notes,
        ),
        charts=(*(() if chart is None else (chart,)), *columns_drawn),
    )


def _mostly_young(age: NDArray[np.int64]) -> NDArray[np.bool_]:
    """A biased public part: the older somebody is, the less likely to be in it; the same people each time."""
    spread = np.arange(len(age)) * 2654435761 % 2**32 / 2**32
    return np.asarray(spread < 0.16 * np.exp(-(age - 17) / 18))


def _comparison(data: Any, rich: NDArray[np.bool_], public: NDArray[np.bool_], weights: NDArray[np.float64]) -> Chart | None:
    from sabun.telling.charts import overlay

    questions = {
        "earn over $50,000": rich,
        "are 40 or older": data["age"].to_numpy() >= 40,
        "work over 40 hours": data["hours-per-week"].to_numpy() > 40,
        "studied over 12 years": data["education-num"].to_numpy() > 12,
        "are women": (data["sex"] == "Female").to_numpy(),
        "are married": (data["marital-status"] == "Married-civ-spouse").to_numpy(),
    }
    yes = np.array(list(questions.values()), dtype=np.float64)
    return overlay(
        list(questions),
        [
            ("weighted public", 100 * yes[:, public] @ weights / weights.sum()),
            ("public alone", 100 * yes[:, public].mean(axis=1)),
            ("private truth", 100 * yes[:, ~public].mean(axis=1)),
        ],
        title="What the public table says, with and without the weights",
        axis="share of people (%)",
        heading="people who …",
        note="The truth is drawn because this data is public. On private data nobody may draw it.",
    )


JOBS = (
    Job(
        name="density",
        question="Can a public table of mostly young people answer for everybody else?",
        run=weights_for_a_public_table,
    ),
)
