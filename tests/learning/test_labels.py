from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sabun.errors import DataError, ParameterError
from sabun.learning import PrivateClassifier
from sabun.learning.features import Labels
from sabun.ledger import Ledger


def test_labels_read_off_the_data_are_warned_about() -> None:
    X, y = np.zeros((20, 2)), np.arange(20) % 2
    with pytest.warns(UserWarning, match="the list of labels was read off y, where one person's label may stand alone"):
        clf = PrivateClassifier(epsilon=1, delta=1e-3, random_state=1).fit(X, y)
    assert any("was read off y" in warning for warning in clf.card_.warnings)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the list of labels")
        clf = PrivateClassifier(epsilon=1, delta=1e-3, classes=[0, 1], random_state=1).fit(X, y)
    assert not any("was read off y" in warning for warning in clf.card_.warnings)


def test_many_labels_without_a_list_are_refused_before_they_are_published() -> None:
    X, y = np.zeros((300, 2)), np.arange(300)
    with pytest.raises(DataError, match="y must hold at most 100 different labels where no list of them is given"):
        PrivateClassifier(epsilon=1, delta=1e-4).fit(X, y)


@pytest.mark.parametrize("labels", [[0.25, 0.75], [b"secret", "other"]])
def test_an_error_about_labels_does_not_show_them(labels: list[Any]) -> None:
    y = np.array([labels[i % 2] for i in range(20)], dtype=object)
    with pytest.raises(DataError, match="y must hold labels that are text, whole numbers or booleans") as caught:
        PrivateClassifier().fit(np.zeros((20, 2)), y)
    assert not any(word in str(caught.value) for word in ("0.25", "0.75", "secret", "other"))
    assert caught.value.__suppress_context__


BOOLEANS = np.array([True, False, True])


@pytest.mark.parametrize(
    "y",
    [
        BOOLEANS,
        BOOLEANS.astype(object),
        BOOLEANS.tolist(),
        BOOLEANS.astype(str),
        pd.Series(BOOLEANS),
        pd.Series(BOOLEANS).astype("boolean"),
        pd.DataFrame({"y": BOOLEANS}),
        BOOLEANS.astype(int),
        BOOLEANS.astype(float),
        BOOLEANS.astype(int).astype(str),
    ],
)
@pytest.mark.parametrize("classes", [[0, 1], [False, True], ["0", "1"], ["false", "true"]])
def test_zero_and_one_are_also_false_and_true(y: Any, classes: list[Any]) -> None:
    assert Labels.of(y, classes).codes(y).tolist() == [1, 0, 1]
    assert Labels.of(y, classes[::-1]).codes(y).tolist() == [0, 1, 0]


def test_each_label_is_read_by_itself_whatever_the_others_are() -> None:
    y = np.array([True, 0, "1", "false", None, np.nan, "yes", 2], dtype=object)
    assert Labels.of(y, [0, 1]).codes(y).tolist() == [1, 0, 1, 0, -1, -1, -1, -1]
    assert Labels.of(y, [0, 1, 2]).codes(y).tolist() == [-1, 0, 1, -1, -1, -1, -1, 2]


@pytest.mark.parametrize("objects", [False, True])
def test_a_model_of_boolean_labels_learns_what_one_of_numbers_does(objects: bool) -> None:
    X = np.random.default_rng(0).random((2000, 2))
    y = X[:, 0] > 0.5
    how: dict[str, Any] = {"epsilon": 8, "delta": 1e-5, "classes": [0, 1], "random_state": 1}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="without a schema")
        one, two = (PrivateClassifier(**how).fit(X, labels.astype(object) if objects else labels) for labels in (y, y * 1))
    assert np.array_equal(one.release_["weights"], two.release_["weights"])
    assert one.score(X, y) == two.score(X, y * 1) > 0.8


TYPES = {
    "booleans among names": (BOOLEANS, ["yes", "no"]),
    "booleans among three numbers": (BOOLEANS, [0, 1, 2]),
    "booleans of pandas": (pd.Series([True, None, False], dtype="boolean"), ["yes", "no"]),
    "a frame of booleans": (pd.DataFrame({"y": BOOLEANS}), ["yes", "no"]),
    "numbers among names": (np.arange(3), ["yes", "no"]),
    "numbers among words that only look like numbers": (np.arange(3), ["01", "1e3"]),
    "fractions among names": (np.array([0.0, np.nan, 1.0]), ["yes", "no"]),
    "numbers of pandas": (pd.Series([1, None, 0], dtype="Int64"), ["yes", "no"]),
}


@pytest.mark.parametrize("name", TYPES)
def test_a_type_that_no_class_can_have_is_refused_before_the_charge(name: str, tmp_path: Path) -> None:
    y, classes = TYPES[name]
    book = Ledger.create(tmp_path / "book", name="book", epsilon=9, delta=0.1)
    kind = "booleans" if "booleans" in name else "numbers"
    with pytest.raises(ParameterError, match=f"classes must be labels that y can hold, a column of {kind}"):
        PrivateClassifier(epsilon=1, delta=1e-3, classes=classes, ledger=book).fit(np.zeros((3, 2)), y)
    assert book.spent.epsilon == 0


@pytest.mark.parametrize("kind", ["list", "object", "text", "category"])
def test_nothing_is_refused_where_values_would_decide(kind: str) -> None:
    """A list of booleans, or a column of objects that are, is one of booleans until somebody's cell is something else."""
    y: Any = {
        "list": [True, False, True],
        "object": BOOLEANS.astype(object),
        "text": np.array(["a", "b", "c"]),
        "category": pd.Series(BOOLEANS).astype("category"),
    }[kind]
    for classes in (["yes", "no"], [5, 6]):
        assert Labels.of(y, classes).codes(y).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("y", [np.array([1, 2]), np.array([1.0, 2.5]), pd.Series([1, 2])])
def test_numbers_meet_classes_that_are_numbers_however_written(y: Any) -> None:
    for classes in (["1", "other"], [7, 8], ["2.5", "no"]):
        assert len(Labels.of(y, classes).codes(y)) == 2


@pytest.mark.filterwarnings("ignore:without a schema")
def test_a_noisy_count_of_few_rows_is_warned_of() -> None:
    X, y = np.random.default_rng(0).random((5000, 2)), np.array(["Yes!", "No!"])[np.arange(5000) % 2]
    how: dict[str, Any] = {"epsilon": 30, "delta": 1e-6, "random_state": 2}
    with pytest.warns(UserWarning, match="few rows counted, by the noisy number of them in the release") as heard:
        clf = PrivateClassifier(classes=["yes", "no"], **how).fit(X, y)
    assert f"({clf.release_['noisy_count']})" in str([each.message for each in heard])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="few rows")
        PrivateClassifier(classes=["Yes!", "No!"], **how).fit(X, y)
