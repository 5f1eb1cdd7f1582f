"""Tables in ten public folds: which rows tune, which rows test, how well a method does on them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sabun.datasets import load_adult
from sabun.errors import DataError
from sabun.learning.classifier import PrivateClassifier
from sabun.learning.features import Features, Labels
from sabun.learning.network import Network
from sabun.learning.plain_training import PlainTraining
from sabun.learning.stream import Stream
from sabun.learning.training import Data
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, NumberColumn, Schema

__all__ = ["TEST_FOLDS", "Score", "Split", "Study", "plain_scores", "score", "studies"]

TEST_FOLDS = (1, 2, 3, 4, 5)
"""Folds on which results are measured. Fold 0 judges settings, which are tried on models of folds 6 to 9: no row does both."""

_HISTOGRAM_COLUMNS = ("age", "education-num", "marital-status", "capital-gain", "hours-per-week")
_DIGIT_LEVELS = 16.0
_MOONS = 20_000

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Training rows, test rows."""


class Score(NamedTuple):
    """How well a model does on rows it has not seen."""

    accuracy: float
    macro_f1: float
    joint_epsilon: float = math.inf
    """What all weights together cost, as the model's own guarantee says."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """A public table with its labels.

    Args:
        name: Short name.
        data: A pandas frame.
        target: A pandas series.
        schema: Public bounds and categories; None takes the numbers as they are.
        classes: The public list of labels.
    """

    name: str
    data: Any
    target: Any
    schema: Schema | None
    classes: tuple[Any, ...]

    @cached_property
    def parts(self) -> list[NDArray[np.intp]]:
        """Ten folds in one public order."""
        return np.array_split(np.argsort(seeded_coin(1).words(len(self.target))), 10)

    def split(self, fold: int) -> Split:
        """All other folds to train on, one to test on."""
        return np.concatenate([part for place, part in enumerate(self.parts) if place != fold]), self.parts[fold]

    @property
    def tuning(self) -> Split:
        """The rows on which settings are chosen; none of them is in a fold that tests."""
        return np.concatenate(self.parts[max(TEST_FOLDS) + 1 :]), self.parts[0]


@cache
def studies() -> dict[str, Study]:
    """All tables by name."""
    found = [*_adult(), _digits(), _moons()]
    return {study.name: study for study in found}


def score(study: Study, split: Split, *, seed: int | None, **settings: Any) -> Score:
    """One run of a method, simulated where there is a seed, judged on the split's test rows."""
    train, test = split
    chosen = {"method": "dp-sgd"} | settings  # whatever the default is by now
    clf = PrivateClassifier(schema=study.schema, classes=list(study.classes), random_state=seed, **chosen)
    with warnings.catch_warnings():
        if study.schema is None:  # so it was decided, and settings were chosen for the numbers as they are
            warnings.filterwarnings("ignore", message="without a schema", category=UserWarning)
        clf.fit(study.data.iloc[train], study.target.iloc[train])
    found = _judged(study.target.iloc[test].to_numpy(), clf.predict(study.data.iloc[test]))
    return found._replace(joint_epsilon=float(clf.guarantee_.cost[0]))


def plain_scores(
    study: Study, split: Split, *, hidden: tuple[int, ...], epochs: Sequence[int], learning_rate: float, decay: float = 0.001
) -> Iterator[Score]:
    """Training without privacy in batches of 50, judged after each of the given numbers of epochs."""
    features, labels = Features.of(study.data, study.schema), Labels(classes=study.classes, declared=True)
    rows, codes = features.rows(study.data), labels.codes(study.target)
    train, test = split
    network, weights, done = Network(sizes=(features.width, *hidden, len(study.classes))), None, 0
    for total in epochs:
        training = PlainTraining(network=network, epochs=total - done, batch_size=50, learning_rate=learning_rate, decay=decay)
        key = total.to_bytes(32, "big")
        weights, done = training.run(Data(rows=rows[train], labels=codes[train]), Stream(key), start=weights), total
        yield _judged(codes[test], network.probabilities(weights, rows[test]).argmax(axis=1))


def _judged(truth: NDArray[Any], found: NDArray[Any]) -> Score:
    parts = []
    for label in np.unique(truth):
        hits = float(((truth == label) & (found == label)).sum())
        parts.append(2 * hits / float((truth == label).sum() + (found == label).sum()))
    return Score(accuracy=float((truth == found).mean()), macro_f1=float(np.mean(parts)))


def _adult() -> Iterator[Study]:
    """Complete rows: of the whole table, or of its training part where the whole is out of reach; in three encodings."""
    try:
        table = load_adult("all").complete()
    except DataError:
        table = load_adult().complete()
    plain = [
        NumberColumn(name=c.name, lower=c.lower, upper=c.upper, missing=c.missing)
        for c in table.schema.columns
        if isinstance(c, NumberColumn)
    ]
    paper = table.schema.replacing(*plain)
    few = list(_HISTOGRAM_COLUMNS)
    common = {"target": table.target, "classes": tuple(table.label.categories)}
    yield Study(name="adult", data=table.data, schema=table.schema, **common)
    yield Study(name="adult, plain", data=table.data, schema=paper, **common)
    yield Study(name="adult, five columns", data=table.data[few], schema=paper.select(few), **common)


def _digits() -> Study:
    import pandas
    from sklearn.datasets import load_digits

    rows, labels = load_digits(return_X_y=True)
    names = [f"pixel {place}" for place in range(rows.shape[1])]
    schema = Schema(columns=tuple(Column.number(name, lower=0, upper=1) for name in names))
    frame, target = pandas.DataFrame(rows / _DIGIT_LEVELS, columns=names), pandas.Series(labels)
    return Study(name="digits", data=frame, target=target, schema=schema, classes=tuple(range(10)))


def _moons() -> Study:
    """Two interleaving half-circles from a public generator: no straight line parts them."""
    import pandas
    from sklearn.datasets import make_moons

    rows, labels = make_moons(_MOONS, noise=0.2, random_state=0)
    return Study(name="moons", data=pandas.DataFrame(rows), target=pandas.Series(labels), schema=None, classes=(0, 1))
