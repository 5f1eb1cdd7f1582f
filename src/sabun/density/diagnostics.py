"""Can the weights be trusted? Judged from released quantities only."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabun.density.answers import effective_size
from sabun.density.crowding import NOWHERE, Crowding
from sabun.density.inference import Inference
from sabun.density.kernel import Floats

__all__ = ["CoverageWarning", "Diagnostics", "diagnosed"]

_FEW = 30
_LEVEL = 0.95
_MOST_UNCOVERED = 0.1
_MISFIT = 1.5


class CoverageWarning(UserWarning):
    """The public table does not seem to cover the private one."""


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """Signs of trouble, all of them post-processing of the release.

    Attributes:
        effective_size: How many unweighted public rows the weighted ones are worth.
        largest_weight: The largest weight; one is the mean.
        residual: Distance between the weighted public embedding and the released one of the covered rows.
        explained: The size of that distance that noise and the sizes of both tables would explain.
        embedding_norm: Length of the released embedding.
        uncovered: The share of private rows off the public support, estimated.
        uncovered_interval: Where that share lies (95 %).
        covered: False when the public table does not seem to cover the private one.
        notes: What to think of it, in words.
    """

    effective_size: float
    largest_weight: float
    residual: float | None = None
    explained: float | None = None
    embedding_norm: float | None = None
    uncovered: float | None = None
    uncovered_interval: tuple[float, float] | None = None
    covered: bool = True
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        found = dataclasses.asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def diagnosed(weights: Floats, inference: Inference | None = None, crowding: Crowding = NOWHERE) -> Diagnostics:
    """Diagnoses weights; with what the release says about errors also their coverage."""
    size, largest = effective_size(weights), float(weights.max())
    notes = [] if size >= _FEW else [f"the weighted table is worth only {size:.0f} rows: expect wide intervals"]
    if inference is None:
        return Diagnostics(effective_size=size, largest_weight=largest, notes=tuple(notes))
    residual, explained = inference.misfit()
    low, high = inference.uncovered(_LEVEL)
    covered = low <= _MOST_UNCOVERED and residual <= _MISFIT * explained
    if low > _MOST_UNCOVERED:
        notes.append(
            f"the public table does not cover {low:.0%} to {high:.0%} of the private rows: answers are about the others"
        )
    if residual > _MISFIT * explained:
        notes.append("no smooth weights on the public table reproduce the released embedding")
    if inference.reason is not None:
        notes.append(f"answers have no interval: {inference.reason}")
    elif crowding.columns:
        notes.append(f"some answers have no interval: {crowding.reason}")
    return Diagnostics(
        effective_size=size,
        largest_weight=largest,
        residual=residual,
        explained=explained,
        embedding_norm=float(np.linalg.norm(inference.released["embedding"])),
        uncovered=min(1.0, max(0.0, float(inference.released["uncovered"]))),
        uncovered_interval=(low, high),
        covered=covered,
        notes=tuple(notes),
    )
