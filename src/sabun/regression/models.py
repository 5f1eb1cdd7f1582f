"""Fitted linear models: what may be published, what stays at home."""

from __future__ import annotations

import abc
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, final

import numpy as np

from sabun import checks
from sabun.asking import renamed
from sabun.errors import DataError, ParameterError, SimulatedError
from sabun.foreign import parse_json
from sabun.privacy.guarantee import Guarantee
from sabun.records import NumberColumn, open_source
from sabun.regression.coefficients import coefficient_lines
from sabun.regression.design import Floats
from sabun.regression.falling import remarks_on
from sabun.regression.intervals import Doubt, half_lengths, record_half_lengths
from sabun.regression.promise import joint_promise
from sabun.regression.saved import check_possible, check_promises, doubt_of, doubt_record, moved_of, spread_of
from sabun.regression.sound import TAILS, Measured, Sound, ends_of, sound_from
from sabun.regression.study import LARGEST_FILE, Study
from sabun.release import Release, derived
from sabun.release.files import read_whole, write_whole
from sabun.telling.measures import Measure, dates_of, units_of

__all__ = ["HomeModel", "Influence", "PublicModel"]

_FORMAT = "sabun-regression-model-1"
_KIND = "regression.model"
_ORIGIN = (
    "Computed from the organisations' releases alone; each of them was charged to its organisation's own ledger, or to none."
)
_ONE_TABLE = "No key says who made these releases, so one table may stand behind all of them: the promise is the sum of theirs."
_CAVEATS = (
    "95 % intervals hold sampling noise, privacy noise and the pull of the prior on coefficients no longer than the study's "
    "bound, whatever tails residuals{} have. They assume one linear model for all (residuals may vary more in one organisation "
    "than in another, not within one), no bias from shortened rows"
)
_JOINED = {
    "pool": "noisy sums added up; what noise hides counts less",
    "guard": "chosen between home data, releases and both",
    "mirror": "mirror averaging, as in the paper",
    "average": "coefficients averaged",
    "stack": "coefficients weighted by how well they fit the home data",
    "best": "coefficients of the release that fits the home data best",
}
_AT_HOME = " and that no release was made of the home data (name yours as own, at a terminal --own, and it is left out)"
_OLD_FILE = (
    "Written by an earlier version, which took the residual variance for known: its intervals may be too short. "
    "Combine the releases again."
)


@dataclass(frozen=True, kw_only=True)
class Influence:
    """What leaving one organisation out changes.

    Args:
        organisation: Which one.
        largest_shift: The largest change of a coefficient, in its standard errors.
        distance: Length of the change in row units.
    """

    organisation: str
    largest_shift: float
    distance: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Model(abc.ABC):
    """A linear model in the units of the study's columns."""

    study: Study
    method: str
    organisations: tuple[str, ...]
    beta: Floats
    covariance: Floats | None = None
    error: Floats | None = None
    variance: float | None = None
    doubt: Doubt | None = None
    moved: Floats | None = None
    sound: Sound | Callable[[], Sound] | None = field(default=None, repr=False)
    weights: tuple[float, ...] | None = None
    findings: tuple[str, ...] = ()
    influences: tuple[Influence, ...] = ()
    simulated: bool = False
    guarantees: tuple[Guarantee, ...] = ()
    ledger_rows: tuple[str | None, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why this model must not be taken for a private one; empty for a model of private releases."""
        found = []
        if self.simulated:
            found.append("NOT PRIVATE: made of releases drawn with a seeded coin.")
        if self.study.method == "paper":
            found.append("NOT PRIVATE: made of releases by eq. (8) of the paper as printed, which have no finite epsilon.")
        return tuple(found)

    @property
    def coef_(self) -> Floats:
        """Coefficients in original units, in the order of `feature_names_`."""
        return self._original[:-1].copy()

    @property
    def intercept_(self) -> float:
        """The constant in original units."""
        return float(self._original[-1])

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Names of the coefficients; a category gives one for each label."""
        return self.study.design.names

    @property
    def feature_ranges_(self) -> Floats:
        """How far each feature can move by its public bounds; a label's indicator moves by 1."""
        widths = {c.name: float(c.upper - c.lower) for c in self.study.features.columns if isinstance(c, NumberColumn)}
        return np.array([widths.get(name, 1.0) for name in self.feature_names_])

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What each coefficient counts, and last the constant: units of the target for one of the feature's."""
        goal, columns = Measure.of(self.study.target), {column.name: column for column in self.study.features.columns}
        return (*(goal.per(Measure.of(columns.get(name))) for name in self.feature_names_), goal)

    @property
    def cov_(self) -> Floats:
        """Posterior covariance of (coefficients, intercept) in original units; intervals hold the pull of its prior as well."""
        matrix, _ = self.study.design.original_units
        return np.asarray(matrix @ self._spreads()[0] @ matrix.T)

    @renamed(level="confidence")
    def conf_int(self, confidence: float = 0.95, *, tails: str = "any") -> Floats:
        """Confidence intervals of the coefficients: one row (low, high) for each.

        They hold sampling noise, privacy noise and, for coefficients no longer than the study's `coef_bound`, how far its prior
        can have pulled them towards 0 where noise hides a direction (features that are nearly equal). They assume one linear
        model for all organisations, whose residuals may differ in size; that no release was made of the home data; and no bias
        from shortened rows. See `sabun.regression.intervals`.

        Args:
            confidence: How likely each holds its coefficient.
            tails: Of residuals: `any`, or `light` to assume that what staged releases cut off them (beyond 2.5 deviations)
                cancels out. That makes intervals shorter in most tables, and wrong where a few targets lie far to one side.
        """
        return self._ends(np.eye(len(self.feature_names_) + 1), confidence, tails)[:-1]

    @renamed(level="confidence")
    def intercept_interval(
        self, confidence: float = 0.95, *, at: Mapping[str, float] | None = None, tails: str = "any"
    ) -> tuple[float, float]:
        """Confidence interval of the constant, or of what it is where `at` puts some features, which are at 0 otherwise."""
        row = np.array([*((at or {}).get(name, 0.0) for name in self.feature_names_), 1.0])
        low, high = self._ends(row[None, :], confidence, tails)[0].tolist()
        return low, high

    def predict(self, X: object) -> Floats:
        """Predictions for records; numbers outside the public bounds count as the nearest bound, as they did in the fit."""
        return self._line(self._values(X))

    @renamed(level="confidence")
    def predict_interval(self, X: object, confidence: float = 0.95) -> Floats:
        """Prediction intervals for new records: one row (low, high) for each.

        For a home model these are records of the home organisation; for a public one records of the organisations that
        released, as many of each as it has rows. Residuals are taken for normal.
        """
        return self._record_ends(self._values(X), confidence)

    def predictions(self, X: object) -> tuple[list[str], Floats]:
        """What `predict` says, beside 95 % intervals where the model knows any: names and columns, of one reading."""
        features = self._values(X)
        line = self._line(features)[:, None]
        if self.error is None:
            return ["prediction"], line
        return ["prediction", "low", "high"], np.hstack([line, self._record_ends(features, 0.95)])

    def _line(self, features: Floats) -> Floats:
        return np.asarray(features @ self.coef_ + self.intercept_)

    def _record_ends(self, features: Floats, confidence: float) -> Floats:
        return self._ends(np.column_stack([features, np.ones(len(features))]), confidence, "any", record_half_lengths)

    def score(self, X: object, y: object) -> float:
        """R squared on records of the caller; computed from raw data, so NOT PRIVATE for them."""
        target = self.study.design.encoded_target(y)
        rest, whole = np.sum((target - self.predict(X)) ** 2), np.sum((target - target.mean()) ** 2)
        return float(1 - rest / whole) if whole > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Coefficients with intervals in plain JSON types."""
        rows: list[dict[str, Any]] = [
            {"feature": name, "coef": float(c)} for name, c in zip(self.feature_names_, self.coef_, strict=True)
        ]
        rows.append({"feature": "intercept", "coef": self.intercept_})
        if self.covariance is not None:
            for row, pair in zip(rows, [*self.conf_int().tolist(), list(self.intercept_interval())], strict=True):
                row["interval"] = pair
        shares = None if self.weights is None else list(self.weights)
        facts = {"private_for_home": isinstance(self, PublicModel), "method": self.method, "weights": shares}
        facts |= {"simulated": self.simulated, "warnings": list(self.warnings)}
        facts |= {"guarantees": [guarantee.to_dict() for guarantee in self.guarantees]}
        return facts | {"organisations": list(self.organisations), "coefficients": rows, "findings": list(self.findings)}

    def __str__(self) -> str:
        lines = [*self.warnings, self._headline(), *coefficient_lines(self)]
        if self.covariance is not None:
            lines.append(_CAVEATS.format("" if isinstance(self, PublicModel) else " of releases") + self._assumed() + ".")
        return "\n".join([*lines, *self.findings])

    @abc.abstractmethod
    def _headline(self) -> str:
        """What this model is, whom it protects."""

    def _joined(self) -> str:
        """How the releases were joined, in words."""
        only = len(self.organisations) == 1 and isinstance(self, PublicModel)
        return "what that release gives by itself" if only else _JOINED.get(self.method, self.method)

    def _assumed(self) -> str:
        """What the intervals assume beside what all do."""
        return ""

    def _spreads(self) -> tuple[Floats, Floats]:
        if self.covariance is None or self.error is None:
            raise ParameterError(
                f"intervals must be asked of method 'pool'; got {self.method!r}. Released coefficients carry no precision."
            )
        return self.covariance, self.error

    def _ends(self, rows: Floats, confidence: float, tails: str, measure: Measured = half_lengths) -> Floats:
        """The interval of each row times (coefficients, intercept), in original units: low, high."""
        checks.one_of(TAILS, tails=tails)
        covariance, error = self._spreads()
        doubt = self.doubt or Doubt.none(len(self.beta), self.variance or 0.0)
        own = Sound(beta=self.beta, covariance=covariance, error=error, doubt=doubt)
        return ends_of(self.study, rows, own, self._sound if tails == "any" else None, self.moved, confidence, measure)

    @cached_property
    def _sound(self) -> Sound | None:
        """What intervals lie around where residuals were cut; made when it is first asked for, since a fit need not wait."""
        return self.sound() if callable(self.sound) else self.sound

    @cached_property
    def _original(self) -> Floats:
        matrix, shift = self.study.design.original_units
        return np.asarray(matrix @ self.beta + shift)

    def _values(self, X: object) -> Floats:
        encoded = open_source(X, schema=self.study.features).matrix()
        return self.study.design.feature_values(encoded)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PublicModel(_Model):
    """A model made of releases alone: it tells nothing that they do not, and is as private as they are.

    `guarantees` holds the promise of each release, in the order of `organisations`; `warnings` says where there is none.
    `ledger_rows` holds the hash of the ledger row that paid for it, or None.
    """

    def _headline(self) -> str:
        return f"Public model from {', '.join(self.organisations)}, made of releases only: {self._joined()}."

    def release(self) -> Release:
        """The model as a release of its own, to sign, save or report.

        Guarantee: it is a function of the organisations' releases, so each keeps its own promise, and nothing is charged. In a
        study that names its organisations each of them signed one release, and the promise of all is stated for someone in the
        table of one. Elsewhere nobody knows whose tables stand behind the releases, perhaps one behind all: the sum is stated.

        Raises:
            IncompatibleGuarantees: The releases protect different units or know different neighbours.
            ParameterError: The model used raw data, or was not made by `combine`.
        """
        _check_public(self, "release")
        value: dict[str, Any] = {
            "features": list(self.feature_names_),
            "coefficients": np.append(self.coef_, self.intercept_),
            "ranges": self.feature_ranges_,
            "target": self.study.target.name,
            "organisations": list(self.organisations),
            "method": self.method,
        }
        if self.covariance is not None:
            ends = np.vstack([self.conf_int(), self.intercept_interval()])
            value |= {"low": ends[:, 0], "high": ends[:, 1]}
        promise, known = joint_promise(self.study, self.organisations, self.guarantees, simulated=self.simulated)
        columns = {column.name: column for column in (*self.study.features.columns, self.study.target)}
        value |= dates_of(columns)
        facts = {"study_hash": self.study.hash, "ledger_rows": list(self.ledger_rows), **units_of(columns)}
        notes = (_ORIGIN, *(() if known else (_ONE_TABLE,)), *self.findings)
        return derived(value, kind=_KIND, promise=promise, facts=facts, notes=notes)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the model as JSON.

        Raises:
            SimulatedError: A release came from a seeded coin.
            ParameterError: The model used raw data.
        """
        _check_public(self, "save")
        if self.simulated:
            raise SimulatedError("NOT PRIVATE: a model to save must be made of private releases; one came from a seeded coin.")
        record = {
            "format": _FORMAT,
            "study": self.study.to_dict(),
            "method": self.method,
            "organisations": list(self.organisations),
            "beta": self.beta.tolist(),
            "covariance": None if self.covariance is None else self.covariance.tolist(),
            "error": None if self.error is None else self.error.tolist(),
            "variance": self.variance,
            "doubt": None if self.doubt is None else doubt_record(self.doubt),
            "guarantees": [guarantee.to_dict() for guarantee in self.guarantees],
            "ledger_rows": list(self.ledger_rows),
            "warnings": list(self.warnings),
        }
        if self.moved is not None:
            record["moved"] = self.moved.tolist()
        if self._sound is not None:
            record["sound"] = self._sound.to_dict()
        write_whole(path, json.dumps(record, indent=1, allow_nan=False).encode() + b"\n", overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads what `save` wrote.

        The file is no proof: whoever wrote it could have written other coefficients, or another study. Its numbers must be
        possible, and its promises those of its study.

        Raises:
            DataError: The file is missing or not a model.
        """
        content = read_whole(path, max_bytes=4 * LARGEST_FILE)
        try:
            record = parse_json(content, what="a model file", error=DataError)
            if record["format"] != _FORMAT:
                raise ValueError
            study = Study.from_dict(record["study"])
            beta = np.array(record["beta"], dtype=np.float64).reshape(study.width)
            covariance, error = (spread_of(record[name], study.width) for name in ("covariance", "error"))
            variance = None if record["variance"] is None else float(record["variance"])
            names = tuple(str(name) for name in record["organisations"])
            method = str(record["method"])
            promises = tuple(Guarantee.from_dict(promise) for promise in record["guarantees"])
            rows = tuple(None if row is None else str(row) for row in record["ledger_rows"])
            doubt, moved = doubt_of(record.get("doubt"), study.width), moved_of(record.get("moved"), study.width)
            sound = sound_from(record.get("sound"), study.width)
            check_possible(method, beta, covariance, error, variance)
            if error is None and any(part is not None for part in (doubt, moved, sound)):
                raise ValueError
            check_promises(study, names, promises)
            if not len(names) == len(promises) == len(rows) > 0:
                raise ValueError
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
            raise DataError(f"{os.fspath(path)} must be a model file written by PublicModel.save; it is not.") from None
        facts: dict[str, Any] = {"covariance": covariance, "error": error, "variance": variance, "doubt": doubt}
        notes = (*((_OLD_FILE,) if error is not None and doubt is None else ()), *remarks_on(beta, moved))
        facts |= {"findings": notes, "moved": moved, "sound": sound}
        facts |= {"guarantees": promises, "ledger_rows": rows}
        return cls(study=study, method=method, organisations=names, beta=beta, **facts)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class HomeModel(_Model):
    """A model that used the home organisation's raw data. NOT PRIVATE for that data: it stays at home.

    It can predict and explain itself there. It cannot be saved as a release or as a public model. Python can pickle it, as any
    object: such a file holds what the raw data gave, and stays at home as well.
    """

    def _headline(self) -> str:
        return (
            f"Home model from {', '.join(self.organisations)} with home data: {self._joined()}. "
            "NOT PRIVATE for the home data: keep it at home; share a model combined without home data instead."
        )

    def _assumed(self) -> str:
        return _AT_HOME


def _check_public(model: object, verb: str) -> None:
    """`PublicModel.save(home_model)` is a call that Python allows."""
    if not isinstance(model, PublicModel):
        raise ParameterError(f"NOT PRIVATE: a model to {verb} must be a PublicModel; one that used raw data stays at home.")
