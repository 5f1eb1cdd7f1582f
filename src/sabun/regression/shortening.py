"""What a radius does to long rows, in words: they count less, and where no line is true another one is then the best.

A row of length |x| beyond the radius R is multiplied by R / |x|, and so is its target: it counts (R / |x|)**2 times as much as
a row within R. The longest row there can be has the length sqrt(coefficients). Both are public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from sabun.regression.study import STAGED, Study

__all__ = ["least_weight", "remark_on_lengths"]

_SHORTENED = (
    "Rows longer than the radius ({radius}; no row is longer than {longest}) count less, down to {share} times as much as "
    "others: where no line is true, another line is then the best one. If you doubt the line, agree on clip_radius={whole}, "
    "with which all rows count alike."
)


def least_weight(study: Study, radius: float) -> float:
    """How much the longest possible row counts beside one within the radius."""
    return min(radius**2 / study.width, 1.0)


def remark_on_lengths(study: Study, radii: Iterable[float]) -> tuple[str, ...]:
    """What to say of rows weighted to these radii; nothing where none is shortened."""
    if study.method not in STAGED:
        return ()
    radius, longest = min(radii), math.sqrt(study.width)
    share = least_weight(study, radius)
    if share > 1 - 1e-9:
        return ()
    whole = math.ceil(longest * 100 - 1e-9) / 100  # rounded up: a little too long shortens no row either
    numbers = {"radius": f"{radius:.3g}", "longest": f"{longest:.3g}", "share": f"{share:.3g}", "whole": f"{whole:g}"}
    return (_SHORTENED.format(**numbers),)
