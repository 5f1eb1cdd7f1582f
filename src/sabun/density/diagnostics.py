"""Can the weights be trusted? Judged from released quantities only."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabun.density.answers import effective_size
from sabun.density.kernel import Floats

__all__ = ["CoverageWarning", "Diagnostics", "diagnosed"]

_FEW = 30
_SHORT = 0.15


class CoverageWarning(UserWarning):
    """The public table does not seem to cover the private one."""


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """Signs of trouble, all of them post-processing of the release.

    Attributes:
        effective_size: How many unweighted public rows the weighted ones are worth.
        largest_weight: The largest weight; one is the mean.
        residual: Distance between the weighted public embedding and the released one.
        explained: The size of that distance that noise and the public sample's size would explain.
        embedding_norm: Length of the released embedding; near zero when the private table lies off the public support.
        covered: False when the public table does not seem to cover the private one.
        notes: What to think of it, in words.
    """

    effective_size: float
    largest_weight: float
    residual: float | None = None
    explained: float | None = None
    embedding_norm: float | None = None
    covered: bool = True
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {**dataclasses.asdict(self), "notes": list(self.notes)}


def diagnosed(
    weights: Floats, points: Floats | None = None, target: Floats | None = None, noise_sd: float = 0.0
) -> Diagnostics:
    """Diagnoses weights; with public points and the released embedding also their coverage."""
    size, largest = effective_size(weights), float(weights.max())
    notes = [] if size >= _FEW else [f"the weighted table is worth only {size:.0f} rows: expect wide intervals"]
    if points is None or target is None:
        return Diagnostics(effective_size=size, largest_weight=largest, notes=tuple(notes))
    residual = float(np.linalg.norm(points.T @ weights / len(weights) - target))
    length = float(np.linalg.norm(target))
    typical = float(np.linalg.norm(points.mean(axis=0)))
    noise = noise_sd * math.sqrt(len(target))
    explained = 2 * noise + 1.5 * math.sqrt(float(points.var(axis=0).sum()) / len(weights))
    covered = True
    if residual > explained:
        covered = False
        notes.append("the public table does not cover the private one: no weights reproduce the released embedding")
    if length < _SHORT * typical + noise and typical > 2 * noise:
        covered = False
        notes.append("the released embedding is nearly zero: most private records are far from every public one")
    return Diagnostics(
        effective_size=size,
        largest_weight=largest,
        residual=residual,
        explained=explained,
        embedding_norm=length,
        covered=covered,
        notes=tuple(notes),
    )
