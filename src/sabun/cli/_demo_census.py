"""The demo's jobs on census records that come with the package (Adult): outliers, weights, a model to hand over."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sabun.cli._demo import Bench, Outcome
from sabun.datasets import load_adult
from sabun.records import Schema

if TYPE_CHECKING:
    from sabun.datasets import Dataset
    from sabun.ledger import Ledger
    from sabun.reports import Chart

__all__ = ["count_unusual_people", "handed_over_model", "weights_for_a_public_table"]

_UNUSUAL = ("age", "hours-per-week", "education-num")
_DESCRIBED = ("age", "education-num", "hours-per-week", "sex", "marital-status")
_RICH = ">50K"
_QUICK = 8000


def count_unusual_people(bench: Bench) -> Outcome:
    """A private number of outliers with an error bar."""
    from sabun.outliers import OutlierCount, inspect_outliers

    people = load_adult()
    table = people.data[list(_UNUSUAL)].head(_rows(bench, people))
    schema = _schema(people, _UNUSUAL)
    bench.progress(0.2, "counting neighbours")
    model = OutlierCount(k=5, radius=0.05, epsilon=1, schema=schema, ledger=_ledger(bench)).fit(table)
    exact = inspect_outliers(table, k=5, radius=0.05, schema=schema).count
    return Outcome(
        release=model.release_,
        remarks=(
            "Unusual means here: fewer than 5 others of nearly the same age, working hours and years of education.",
            f"This table is public, so we may look: the exact number is {exact:,}.",
        ),
    )


def weights_for_a_public_table(bench: Bench) -> Outcome:
    """Weights that make a table of mostly young people answer for everybody else."""
    from sabun.density import CoverageWarning, DensityRatio
    from sabun.reports import Answer
    from sabun.reports.marginals import marginals

    people = load_adult()
    data = people.data.head(_rows(bench, people))
    rich = (people.target.head(len(data)) == _RICH).to_numpy()
    public = _mostly_young(data["age"].to_numpy())
    columns = list(_DESCRIBED)
    bench.progress(0.2, "releasing one noisy average")
    model = DensityRatio(epsilon=0.5, schema=_schema(people, _DESCRIBED), ledger=_ledger(bench))
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
    from sabun.reports.charts import overlay

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


def handed_over_model(bench: Bench) -> Outcome:
    """A network trained on personal records, measured on others."""
    from sabun.learning import PrivateClassifier
    from sabun.reports import Answer

    people = load_adult()
    rows = _rows(bench, people)
    train = int(0.8 * rows)
    data, target = people.data.head(rows), people.target.head(rows)
    model = PrivateClassifier(
        method="dp-sgd",
        epsilon=2,
        delta=1e-6,
        schema=people.schema,
        classes=list(people.label.categories),
        epochs=10 if bench.quick else None,
        ledger=_ledger(bench),
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
    from sabun.reports.charts import bars

    chart = bars(
        ["this model", "always the commoner class"],
        100 * np.array([right, usual]),
        title="How often it is right",
        axis="right on people it has not seen (%)",
        heading="who guesses",
        note="Measured on public rows that were not used in training.",
    )
    return () if chart is None else (chart,)


def _rows(bench: Bench, people: Dataset) -> int:
    return _QUICK if bench.quick else len(people.data)


def _schema(people: Dataset, names: tuple[str, ...]) -> Schema:
    return Schema(columns=tuple(people.schema[name] for name in names))


def _ledger(bench: Bench) -> Ledger:
    """One budget for everything that is asked about these people."""
    return bench.ledger("census", unit="person", epsilon=4, delta="1e-5")
