from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from learning.learning_samples import SCHEMA, people, points
from sabun.errors import DataError, ParameterError
from sabun.learning import PlainClassifier, membership_inference
from sabun.release import Release


def test_the_reference_learns_a_mixed_table() -> None:
    frame, label = people(600)
    plain = PlainClassifier(schema=SCHEMA, classes=["no", "yes"], hidden=(8,), epochs=60, learning_rate=0.2)
    plain.fit(frame[:400], label[:400])
    assert plain.score(frame[400:], label[400:]) > 0.85
    assert plain.predict_proba(frame[:3]).shape == (3, 2)
    assert set(plain.predict(frame)) <= {"no", "yes"}


def test_it_makes_no_promise_and_cannot_be_handed_over() -> None:
    plain = PlainClassifier().fit(*points(60))
    assert not any(hasattr(plain, name) for name in ("guarantee_", "release_", "card_", "save"))
    assert not any(isinstance(part, Release) for part in vars(plain).values())
    assert "NOT PRIVATE" in (PlainClassifier.__doc__ or "")


def test_it_follows_scikit_learn() -> None:
    X, y = points(80)
    plain = clone(PlainClassifier(epochs=3, random_state=4)).fit(X, y)
    assert (pickle.loads(pickle.dumps(plain)).predict(X) == plain.predict(X)).all()
    assert (clone(plain).fit(X, y).model_.weights == plain.model_.weights).all()
    with pytest.raises(NotFittedError, match="PlainClassifier must be fitted first"):
        PlainClassifier().predict(X)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number >= 1"),
        ({"learning_rate": -1.0}, "learning_rate must be"),
        ({"decay": -1.0}, "decay must be a number >= 0"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_a_bad_setting_is_refused(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        PlainClassifier(**bad)  # type: ignore[arg-type]


def test_unequal_lengths_are_refused() -> None:
    X, y = points(50)
    with pytest.raises(DataError, match="X and y must have as many rows as each other"):
        PlainClassifier().fit(X, y[:49])


def test_a_model_that_learned_by_heart_is_open_to_membership_inference() -> None:
    generator = np.random.default_rng(2)
    X, y = generator.normal(size=(80, 40)), generator.integers(0, 2, 80)
    plain = PlainClassifier(hidden=(32,), epochs=200, batch_size=10, learning_rate=0.5, classes=[0, 1]).fit(X[:40], y[:40])
    found = membership_inference(plain.model_, members=(X[:40], y[:40]), others=(X[40:], y[40:]))
    assert found.auc > 0.8
