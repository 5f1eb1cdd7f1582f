from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from sabun.errors import DataError
from sabun.learning import PrivateClassifier


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
