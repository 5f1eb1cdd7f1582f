"""The parameters of `DensityRatio`, checked, read exactly, turned into a plan."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sabun import checks
from sabun.density.basis import BoundedBasis
from sabun.density.features import Features, chosen_rows, median_distance
from sabun.density.kernel import Floats, GaussianKernel
from sabun.density.logistic import Logistic
from sabun.density.method import Method, Promise, Target
from sabun.density.paper import FixedBasis, NoisyCentres, RawCentres
from sabun.density.plan import DensityPlan
from sabun.density.rkhs import Embedding
from sabun.errors import BoundsError, DataError, ParameterError
from sabun.ledger import Ledger
from sabun.privacy.amounts import exact_positive
from sabun.privacy.guarantee import Guarantee
from sabun.privacy.noise import coin_for
from sabun.records import Schema

__all__ = ["METHODS", "Options"]

METHODS = ("rkhs", "ulsif-parametric", "ulsif-a", "ulsif-b", "ulsif-c", "ji-elkan")
_WITH_DELTA = ("rkhs", "ji-elkan")
_CENTRES = {"rkhs": 300}
_OTHER_CENTRES = 50
_CLIP_QUANTILE = 0.95
_LEAST_EPSILON = Fraction(1, 10**9)
"""Below it the noise would not even fit in the floats that come after it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Checked parameters."""

    given: Mapping[str, Any]
    target: Target

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Checks every parameter by itself, then those that depend on each other."""
        checks.one_of(METHODS, method=given["method"])
        ledger, schema = given["ledger"], given["schema"]
        checks.require(ledger is None or isinstance(ledger, Ledger), "a Ledger or None", ledger=ledger)
        checks.require(schema is None or isinstance(schema, Schema), "a Schema or None", schema=schema)
        _check_columns(given["columns"], schema)
        _check_numbers(given)
        coin_for(given["random_state"])
        target = _target(given)
        _check_method(given, target)
        return cls(given=given, target=target)

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.given["method"])

    @property
    def standardizes(self) -> bool:
        """Whether points are in units of the public spread; a user's basis sees the records as they are."""
        return bool(self.given["standardize"]) and self.given["basis"] is None

    def facts(self) -> dict[str, Any]:
        """Public parameters worth publishing."""
        names = ("method", "bandwidth", "standardize", "tau2", "regularization", "n_public", "basis_bounds", "clip_norm")
        shown = {name: self.given[name] for name in names if self.given[name] is not None}
        return {**shown, "n_centers": self._centres, "relation": self.target.relation}

    def guarantee(self, promise: Promise) -> Guarantee:
        """What a release promises, for the ledger's unit and relation."""
        ledger, relation = self.given["ledger"], self.target.relation
        unit = "record" if ledger is None else ledger.unit
        if relation == "add-remove" and ledger is not None and ledger.relation == "replace-one":
            relation = "replace-one"  # the noise is calibrated for both, see embedding.proof.md
        assumptions = (
            f"each {unit} has at most one row",
            "the public table and all settings were chosen without looking at the private one",
        )
        return Guarantee(
            epsilon=promise.epsilon,
            delta=promise.delta,
            relation=relation,
            unit=unit,
            assumptions=(*promise.assumptions, *assumptions),
            mechanism=promise.mechanism,
        )

    def digest(self, points: Floats, features: Features) -> str:
        """Names the public table, the map from records to points, and the settings; parts that share it may be merged."""
        schema = None if features.schema is None else features.schema.to_json()
        settings = (sorted(self.facts().items()), self.target, features.names, schema, points.shape)
        found = hashlib.sha256(repr(settings).encode())
        for array in (features.centre, features.scale, points):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def check_size(self, size: int) -> None:
        """Refuses sizes that a public number of rows rules out."""
        declared = self.given["n_public"]
        if self.target.relation == "add-remove":
            self._check_delta(declared)
            return
        if size < 1:
            raise DataError("the private table must have at least 1 row.")
        if declared is not None and declared != size:
            raise DataError(
                "the private table must have n_public rows; it has another number. Under replace-one that number is public."
            )
        self._check_delta(size)

    def plan(self, points: Floats, features: Features) -> Method:
        """The method, planned from public points."""
        penalty = float(self.given["regularization"])
        if self.method == "ji-elkan":
            return self._logistic(points, penalty)
        if self.method == "ulsif-parametric":
            return FixedBasis(basis=self._basis(points), public=points, penalty=penalty, target=self.target)
        if self.method == "rkhs":
            return self._embedding(points, self._public_centres(points, features))
        bandwidth = self._bandwidth(points)
        GaussianKernel.of(points[:1], bandwidth=bandwidth)  # its refusals must come before the charge
        if self.method == "ulsif-b":
            kernel = GaussianKernel.of(self._public_centres(points, features), bandwidth=bandwidth)
            return FixedBasis(basis=kernel, public=points, penalty=penalty, target=self.target)
        # Private centres lie within 1e100, so that no row can make the scaled ones infinite.
        checks.require(bandwidth >= 1e-200, "at least 1e-200 for private centres", bandwidth=bandwidth)
        shared: dict[str, Any] = {"public": points, "wanted": self._centres, "bandwidth": bandwidth, "penalty": penalty}
        if self.method == "ulsif-c":
            return RawCentres(**shared, target=self.target)
        return NoisyCentres(**shared, target=self.target, box=_box(self.given["bounds"], features))

    def forecast(self, points: Floats, private_size: int) -> DensityPlan:
        """What `method="rkhs"` would cost and achieve."""
        checks.require(self.method == "rkhs", "'rkhs' for a plan", method=self.method)
        self._check_delta(private_size)
        plan = self._embedding(points, points[chosen_rows(len(points), self._centres)])
        rank, noise = plan.rank(private_size), plan.noise_sd(private_size)
        spread = float(plan.variances.sum())
        return DensityPlan(
            epsilon=self.target.epsilon,
            delta=self.target.delta or Fraction(0),
            relation=self.target.relation,
            private_rows=private_size,
            public_rows=len(points),
            rank=rank,
            noise_sd=noise,
            noise_error=noise * math.sqrt(rank),
            private_sampling_error=math.sqrt(spread / private_size),
            public_sampling_error=math.sqrt(spread / len(points)),
            paper_noise_sd=math.sqrt(2) * plan.kernel.size / (private_size * float(self.target.epsilon)),
        )

    @property
    def _centres(self) -> int:
        wanted = self.given["n_centers"]
        return int(wanted) if wanted is not None else _CENTRES.get(self.method, _OTHER_CENTRES)

    def _bandwidth(self, points: Floats) -> float:
        given = self.given["bandwidth"]
        return median_distance(points) if isinstance(given, str) else float(given)

    def _embedding(self, points: Floats, centres: Floats) -> Embedding:
        return Embedding.of(
            points,
            centres,
            bandwidth=self._bandwidth(points),
            target=self.target,
            size=None if self.given["n_public"] is None else int(self.given["n_public"]),
            tau2=float(self.given["tau2"]),
        )

    def _public_centres(self, points: Floats, features: Features) -> Floats:
        if self.given["centers"] is None:
            chosen: Floats = points[chosen_rows(len(points), self._centres)]
            return chosen
        centres: Floats = features.points(self.given["centers"])
        if not len(centres) or not np.isfinite(centres).all():
            raise DataError("centers must be a table of finite numbers with at least one row; it is not.")
        return centres

    def _basis(self, points: Floats) -> BoundedBasis:
        return BoundedBasis.of(self.given["basis"], self.given["basis_bounds"], example=points[0])

    def _logistic(self, points: Floats, penalty: float) -> Logistic:
        basis = None if self.given["basis"] is None else self._basis(points)
        plain = np.hstack([np.ones((len(points), 1)), points]) if basis is None else basis.values(points)
        norm = self.given["clip_norm"]
        if norm is None:
            with np.errstate(over="ignore"):
                norm = max(float(np.quantile(np.linalg.norm(plain, axis=1), _CLIP_QUANTILE)), 1e-6)
        return Logistic(public=points, basis=basis, clip_norm=float(norm), penalty=penalty, target=self.target)

    def _check_delta(self, size: int | None) -> None:
        if self.target.delta is None or size is None or self.given["allow_large_delta"]:
            return
        if self.target.delta * size >= 1:
            raise ParameterError(
                f"delta must be below 1 / (number of private rows); got {self.given['delta']!r}. A larger one allows "
                "publishing somebody's record. Choose a smaller delta, or allow it (allow_large_delta)."
            )


def _check_columns(columns: Any, schema: Schema | None) -> None:
    if columns is None:
        return
    good = isinstance(columns, list | tuple) and len(set(columns)) == len(columns) > 0
    checks.require(good and all(isinstance(name, str) for name in columns), "a list of distinct names", columns=columns)
    checks.require(schema is None, "None beside a schema", "Use schema.select([...]) instead.", columns=columns)


def _check_numbers(given: Mapping[str, Any]) -> None:
    for name in ("tau2", "regularization"):
        checks.positive(**{name: given[name]})
    for name in ("standardize", "accept_publishing_raw_records", "allow_large_delta"):
        checks.boolean(**{name: given[name]})
    for name in ("n_centers", "n_public"):
        if given[name] is not None:
            checks.whole(minimum=1, **{name: given[name]})
    if isinstance(given["bandwidth"], str):
        checks.one_of(("median",), bandwidth=given["bandwidth"])
    else:
        checks.positive(bandwidth=given["bandwidth"])
    if given["clip_norm"] is not None:
        checks.positive(clip_norm=given["clip_norm"])


def _target(given: Mapping[str, Any]) -> Target:
    epsilon = exact_positive(given["epsilon"], name="epsilon")
    checks.require(epsilon >= _LEAST_EPSILON, "at least 1e-9", "Less lets nothing through.", epsilon=given["epsilon"])
    delta = None if given["delta"] is None or given["delta"] == 0 else exact_positive(given["delta"], name="delta")
    checks.require(delta is None or delta < 1, "above 0 and below 1", delta=given["delta"])
    ledger = given["ledger"]
    relation = given["relation"] or ("replace-one" if ledger is None else ledger.relation)
    checks.one_of(("replace-one", "add-remove"), relation=relation)
    return Target(epsilon=epsilon, delta=delta, relation=relation)


def _check_method(given: Mapping[str, Any], target: Target) -> None:
    method = given["method"]
    if method != "rkhs" and target.relation != "replace-one":
        raise ParameterError(
            f"relation must be 'replace-one' for method {method!r}; got {target.relation!r}. Its noise depends on the "
            "number of private rows, which add-remove keeps private: use method 'rkhs'."
        )
    if target.delta is not None and method not in _WITH_DELTA:
        raise ParameterError(f"delta must be None for method {method!r}; got {given['delta']!r}. Its noise is Laplace noise.")
    if method == "ulsif-c" and not given["accept_publishing_raw_records"]:
        raise ParameterError(
            f"accept_publishing_raw_records must be True for method 'ulsif-c'; got {given['accept_publishing_raw_records']!r}. "
            "It publishes n_centers private records exactly as they are. Use method 'rkhs' instead."
        )
    if method == "ulsif-parametric" and given["basis"] is None:
        raise ParameterError("basis must be a function of one record for method 'ulsif-parametric'; got None.")
    if given["basis"] is not None and given["basis_bounds"] is None:
        raise BoundsError("basis has no bounds. Bounds must not come from the data: pass basis_bounds=(lower, upper).")
    if given["basis"] is not None and method not in ("ulsif-parametric", "ji-elkan"):
        raise ParameterError(f"basis must be None for method {method!r}; got a function.")
    if method == "ulsif-a" and given["bounds"] is None and given["schema"] is None:
        raise BoundsError(
            "method 'ulsif-a' adds noise to records and needs bounds. "
            "Bounds must not come from the data: pass bounds=[(lower, upper), …]."
        )


def _box(bounds: Any, features: Features) -> Floats:
    """The public box of the points, in their own units."""
    if bounds is None:
        raw = np.array(
            [(0.0, 1.0) if "=" in name else (-1.0, 1.0) for name in (features.schema.features if features.schema else ())]
        )
    else:
        pairs = [bounds.get(name) for name in features.names] if isinstance(bounds, Mapping) else list(bounds)
        if len(pairs) != len(features.centre) or any(pair is None or len(pair) != 2 for pair in pairs):
            raise BoundsError(f"bounds must be one pair (lower, upper) for each of the {len(features.centre)} columns.")
        raw = np.array(pairs, dtype=np.float64)
    if not (np.isfinite(raw).all() and (raw[:, 0] < raw[:, 1]).all()):
        raise BoundsError("bounds must be finite with lower < upper in every column.")
    with np.errstate(all="ignore"):
        box: Floats = (raw - features.centre[:, None]) * features.scale[:, None]
        width = box[:, 1] - box[:, 0]
    if not (np.isfinite(box).all() and np.isfinite(width).all() and (width > 0).all()):
        raise BoundsError(
            "bounds must be apart by a finite width above 0, also in units of the public spread; in a column they are not. "
            "Choose bounds that real records can reach."
        )
    return box
