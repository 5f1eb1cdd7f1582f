"""How good a model is on rows it was not trained on: how often it is right, whether its probabilities are, and for whom.

No noise is added: what is measured on private rows is private, and the result says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import DataError
from sabun.learning.features import Labels
from sabun.learning.model import Model
from sabun.learning.network import Floats
from sabun.telling.words import count, plural

__all__ = ["Evaluation", "Right", "compared", "evaluate"]

_BINS = 10
_MISS = 0.05
_PRIVATE = (
    "NOT PRIVATE: measured without noise on rows of a private table. These figures are for their owner; publish neither them "
    "nor a choice made by them."
)


@final
@dataclass(frozen=True, kw_only=True)
class Right:
    """How many of some rows were predicted right.

    Args:
        rows: How many there are.
        right: How many of them were predicted right.
    """

    rows: int
    right: int

    @property
    def share(self) -> float | None:
        """The share; None of no rows."""
        return self.right / self.rows if self.rows else None

    @property
    def interval(self) -> tuple[float, float]:
        """Holds the share in all rows of this kind with probability 0.95 (Clopper and Pearson)."""
        from scipy.stats import beta

        low = 0.0 if self.right == 0 else float(beta.ppf(_MISS / 2, self.right, self.rows - self.right + 1))
        high = 1.0 if self.right == self.rows else float(beta.isf(_MISS / 2, self.right + 1, self.rows - self.right))
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"rows": self.rows, "right": self.right, "share": self.share, "interval": list(self.interval)}

    def told(self, thing: str) -> str:
        """The share of so many things."""
        low, high = self.interval
        if self.share is None:
            return f"no {plural(thing)}"
        return f"{self.share:.1%} of {count(self.rows, thing)} ({low:.1%} to {high:.1%})"

    def __str__(self) -> str:
        return self.told("row")


@final
@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What a table says about a model.

    Args:
        overall: All rows with a known class.
        guess: The same for always naming the class that is most common among them.
        groups: The same by public group.
        calibration: For each tenth of the scale: mean probability that the model named, rows, rows it was right about.
        unknown: Rows whose label is no class of the model; they are left out.
        private: Whether the rows are private.
        persons: Whether each row was made of all rows of one person.
    """

    overall: Right
    guess: Right
    groups: dict[str, Right]
    calibration: tuple[tuple[float, Right], ...]
    unknown: int
    private: bool
    persons: bool = False

    @property
    def calibration_error(self) -> float | None:
        """The mean distance of what the model said from how often it was right, weighted by rows."""
        if not self.overall.rows:
            return None
        gaps = (one.rows * abs(said - (one.share or 0.0)) for said, one in self.calibration)
        return float(sum(gaps)) / self.overall.rows

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "private": self.private,
            "unit": "person" if self.persons else "row",
            "accuracy": self.overall.to_dict(),
            "most_common_class": self.guess.to_dict(),
            "groups": {name: right.to_dict() for name, right in self.groups.items()},
            "calibration": [{"said": said} | right.to_dict() for said, right in self.calibration],
            "calibration_error": self.calibration_error,
            "unknown_labels": self.unknown,
        }

    def __str__(self) -> str:
        lines, thing = [_PRIVATE] if self.private else [], "person" if self.persons else "row"
        guess = self.guess.told(thing)
        lines += [
            f"Right about {self.overall.told(thing)}.",
            f"Always naming the most common class would be right about {guess}.",
        ]
        if self.unknown:
            lines.append(f"Left out: {count(self.unknown, thing)} whose label is no class of the model.")
        lines += [f"  {name}: {right.told(thing)}" for name, right in self.groups.items()]
        if self.calibration_error is not None:
            lines.append(f"Its probabilities are off by {self.calibration_error:.3f} on average:")
            lines += [f"  said {said:.2f}, right about {right.told(thing)}" for said, right in self.calibration]
        return "\n".join(lines)


def evaluate(
    model: Model,
    X: object,
    y: object,
    *,
    groups: Sequence[object] | None = None,
    of_groups: Sequence[str] = (),
    private: bool = True,
) -> Evaluation:
    """Predicts every row and compares.

    Args:
        model: As `load_model` reads it.
        X: Rows that the model was not trained on.
        y: Their classes.
        groups: A public label for each row, to see for whom the model is good.
        of_groups: The labels there can be; a row with another one is in no group.
        private: Whether the rows are private; the result says so.

    Raises:
        DataError: The tables do not fit the model or each other.
    """
    checks.boolean(private=private)
    codes, said = Labels(classes=model.classes, declared=True).codes(y), model.predict_proba(X)
    if len(codes) != len(said) or (groups is not None and len(groups) != len(codes)):
        raise DataError("the rows, their classes and their groups must be as many as each other; they are not.")
    return compared(model, said, codes, groups=groups, of_groups=of_groups, private=private)


def compared(
    model: Model,
    said: Floats,
    codes: NDArray[np.int64],
    *,
    groups: Sequence[object] | None,
    of_groups: Sequence[str],
    private: bool,
    persons: bool = False,
) -> Evaluation:
    """What probabilities are worth beside the true classes; see `evaluate`.

    Args:
        model: Which one said them.
        said: Its probabilities.
        codes: The places of the true classes in its list, -1 for another label.
        groups: As in `evaluate`.
        of_groups: As in `evaluate`.
        private: As in `evaluate`.
        persons: Whether each row was made of all rows of one person.
    """
    known = codes >= 0
    hit, sure = said.argmax(axis=1) == codes, said.max(axis=1)
    counts = np.bincount(codes[known], minlength=len(model.classes))
    bins = np.minimum((sure * _BINS).astype(np.int64), _BINS - 1)
    tenths = [known & (bins == place) for place in range(_BINS)]
    named = np.array([] if groups is None else [str(label).strip() for label in groups])
    return Evaluation(
        overall=_right(hit, known),
        guess=Right(rows=int(known.sum()), right=int(counts.max(initial=0))),
        groups={name: _right(hit, known & (named == name)) for name in of_groups} if groups is not None else {},
        calibration=tuple((float(sure[part].mean()), _right(hit, part)) for part in tenths if part.any()),
        unknown=int((~known).sum()),
        private=private,
        persons=persons,
    )


def _right(hit: NDArray[np.bool_], which: NDArray[np.bool_]) -> Right:
    return Right(rows=int(which.sum()), right=int((hit & which).sum()))
