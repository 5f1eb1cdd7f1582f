"""Fitted linear models: what may be published, what stays at home."""

from __future__ import annotations

import abc
import json
import os
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self, final

import numpy as np

from sabun import checks
from sabun.errors import DataError, ParameterError, SimulatedError
from sabun.privacy.guarantee import Guarantee
from sabun.records import open_source
from sabun.regression.design import Floats
from sabun.regression.study import LARGEST_FILE, Study
from sabun.release.files import read_whole, write_whole

__all__ = ["HomeModel", "Influence", "PublicModel", "quantile_of"]

_FORMAT = "sabun-regression-model-1"
_CAVEATS = "Intervals hold sampling and privacy noise; they assume one linear model for all and no shortened rows."


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
    variance: float | None = None
    weights: tuple[float, ...] | None = None
    findings: tuple[str, ...] = ()
    influences: tuple[Influence, ...] = ()
    simulated: bool = False
    guarantees: tuple[Guarantee, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why this model must not be taken for a private one; empty for a model of private releases."""
        found = []
        if self.simulated:
            found.append("NOT PRIVATE: made of releases drawn with a seeded coin.")
        if self.study.mechanism == "paper":
            found.append("NOT PRIVATE: made of releases by eq. (8) of the paper as printed, which have no finite epsilon.")
        return tuple(found)

    @property
    def coef_(self) -> Floats:
        """Coefficients in original units, in the order of `feature_names_`."""
        return self._original()[:-1]

    @property
    def intercept_(self) -> float:
        """The constant in original units."""
        return float(self._original()[-1])

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Names of the coefficients; a category gives one for each label."""
        return self.study.design.names

    @property
    def cov_(self) -> Floats:
        """Covariance of (coefficients, intercept) in original units."""
        if self.covariance is None:
            raise ParameterError(
                f"intervals must be asked of method 'pool'; got {self.method!r}. Released coefficients carry no precision."
            )
        matrix, _ = self.study.design.original_units()
        return np.asarray(matrix @ self.covariance @ matrix.T)

    def conf_int(self, level: float = 0.95) -> Floats:
        """Confidence intervals of the coefficients: one row (low, high) for each.

        They hold sampling noise and privacy noise. They assume one linear model for all organisations; bias from shortened rows
        is not in them.
        """
        reach = quantile_of(level) * np.sqrt(np.diag(self.cov_)[:-1])
        return np.column_stack([self.coef_ - reach, self.coef_ + reach])

    def intercept_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the constant."""
        reach = quantile_of(level) * float(np.sqrt(self.cov_[-1, -1]))
        return self.intercept_ - reach, self.intercept_ + reach

    def predict(self, X: object) -> Floats:
        """Predictions for records; numbers outside the public bounds count as the nearest bound, as they did in the fit."""
        return np.asarray(self._values(X) @ self.coef_ + self.intercept_)

    def predict_interval(self, X: object, level: float = 0.95) -> Floats:
        """Prediction intervals for new records: one row (low, high) for each."""
        values = np.column_stack([self._values(X), np.ones(len(self._values(X)))])
        assert self.variance is not None or self.covariance is None
        noise = (self.variance or 0.0) * self.study.design.target_range[1] ** 2
        spread = np.sqrt(np.einsum("ij,jk,ik->i", values, self.cov_, values) + noise)
        middle, reach = self.predict(X), quantile_of(level) * spread
        return np.column_stack([middle - reach, middle + reach])

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
        lines = [*self.warnings, self._headline()]
        for row in self.to_dict()["coefficients"]:
            span = "" if "interval" not in row else f"   [{row['interval'][0]:.4g}, {row['interval'][1]:.4g}]"
            lines.append(f"  {row['feature']:<24} {row['coef']:>12.5g}{span}")
        if self.covariance is not None:
            lines.append(_CAVEATS)
        return "\n".join([*lines, *self.findings])

    @abc.abstractmethod
    def _headline(self) -> str:
        """What this model is, whom it protects."""

    def _original(self) -> Floats:
        matrix, shift = self.study.design.original_units()
        return np.asarray(matrix @ self.beta + shift)

    def _values(self, X: object) -> Floats:
        encoded = open_source(X, schema=self.study.features).matrix()
        return self.study.design.feature_values(encoded)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PublicModel(_Model):
    """A model made of releases alone: it tells nothing that they do not, and is as private as they are.

    `guarantees` holds the promise of each release, in the order of `organisations`; `warnings` says where there is none.
    """

    def _headline(self) -> str:
        return f"Public model from {', '.join(self.organisations)} ({self.method}); made of releases only."

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the model as JSON.

        Raises:
            SimulatedError: A release came from a seeded coin.
            ParameterError: The model used raw data.
        """
        if not isinstance(self, PublicModel):
            raise ParameterError("NOT PRIVATE: a model to save must be a PublicModel; one that used raw data stays at home.")
        if self.simulated:
            raise SimulatedError("NOT PRIVATE: a model to save must be made of private releases; one came from a seeded coin.")
        record = {
            "format": _FORMAT,
            "study": self.study.to_dict(),
            "method": self.method,
            "organisations": list(self.organisations),
            "beta": self.beta.tolist(),
            "covariance": None if self.covariance is None else self.covariance.tolist(),
            "variance": self.variance,
            "guarantees": [guarantee.to_dict() for guarantee in self.guarantees],
            "warnings": list(self.warnings),
        }
        write_whole(path, json.dumps(record, indent=1, allow_nan=False).encode() + b"\n", overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads what `save` wrote.

        Raises:
            DataError: The file is missing or not a model.
        """
        content = read_whole(path, max_bytes=4 * LARGEST_FILE)
        try:
            record = json.loads(content)
            if record["format"] != _FORMAT:
                raise ValueError
            study = Study.from_dict(record["study"])
            beta = np.array(record["beta"], dtype=np.float64).reshape(study.width)
            given = record["covariance"]
            covariance = None if given is None else np.array(given, dtype=np.float64).reshape(study.width, study.width)
            variance = None if record["variance"] is None else float(record["variance"])
            names = tuple(str(name) for name in record["organisations"])
            method = str(record["method"])
            promises = tuple(Guarantee.from_dict(promise) for promise in record["guarantees"])
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
            raise DataError(f"{os.fspath(path)} must be a model file written by PublicModel.save; it is not.") from None
        parts = {"beta": beta, "covariance": covariance, "variance": variance, "guarantees": promises}
        return cls(study=study, method=method, organisations=names, **parts)  # type: ignore[arg-type]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class HomeModel(_Model):
    """A model that used the home organisation's raw data. NOT PRIVATE for that data: it stays at home.

    It can predict and explain itself there. It cannot be saved as a release or as a public model. Python can pickle it, as any
    object: such a file holds what the raw data gave, and stays at home as well.
    """

    def _headline(self) -> str:
        return (
            f"Home model from {', '.join(self.organisations)} with home data ({self.method}). "
            "NOT PRIVATE for the home data: keep it at home; share combine(...) without home data instead."
        )


def quantile_of(level: float) -> float:
    """The two-sided quantile of the normal distribution."""
    checks.require(checks.is_number(level) and 0 < level < 1, "above 0 and below 1", level=level)
    return NormalDist().inv_cdf((1 + float(level)) / 2)
