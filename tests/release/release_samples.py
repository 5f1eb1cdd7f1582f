"""Releases the tests of this folder share."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sabun.privacy import Guarantee
from sabun.release import Provenance, Release

PROMISE = Guarantee(epsilon="1/3", unit="patient", mechanism="discrete Laplace", assumptions=("each patient has one row",))

VALUE: dict[str, Any] = {
    "count": 42,
    "mean": 0.1,
    "weights": np.array([0.5, -0.0, np.pi, np.inf, np.nan]),
    "table": np.arange(6, dtype=np.int32).reshape(2, 3),
    "names": ["größer", "b"],
    "limits": [float("inf"), float("-inf")],
    "share": Fraction(2, 7),
    "nested": {"array": 1, "ok": True, "none": None},
}


def sample(**changes: Any) -> Release:
    parts: dict[str, Any] = {
        "value": VALUE,
        "guarantee": PROMISE,
        "provenance": Provenance(
            kind="test count", mechanism="discrete Laplace", parameters={"column": "age"}, notes=("A note.",)
        ),
    }
    return Release(**(parts | changes))
