"""What scikit-learn's users expect to be told of X and y, in its own words; shapes only, never cells."""

from __future__ import annotations

import warnings

import numpy as np

from sabun.errors import DataError

__all__ = ["check_shape", "check_target"]


def check_shape(X: object, *, owner: object, columns: int | None = None) -> None:
    """Refuses an array that has not rows and columns or, once the estimator is fitted, another number of columns.

    Raises:
        DataError: It is such an array.
    """
    if not isinstance(X, np.ndarray):
        return
    if X.ndim != 2:
        raise DataError(f"X must have 2 dimensions (rows, columns); got {X.ndim}. Reshape your data with X.reshape(-1, 1).")
    if columns not in (None, X.shape[1]):
        name = type(owner).__name__
        raise DataError(f"X has {X.shape[1]} features, but {name} is expecting {columns} features as input.")


def check_target(y: object, *, owner: object) -> None:
    """Refuses a target that is not there; warns of a column where a plain list of targets is usual.

    Raises:
        DataError: y is None.
    """
    if y is None:
        raise DataError(f"{type(owner).__name__} requires y to be passed, but the target y is None.")
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        words = "A column-vector y was passed when a 1d array was expected: it is read as one. Use y.ravel()."
        warnings.warn(words, DataConversionWarning, stacklevel=4)
