"""What each method of `DensityRatio` can be told beside the terms of the question, and how that becomes a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, final

import numpy as np

from sabun import checks
from sabun.asking.ask import RELATIONS
from sabun.asking.method_settings import MethodSettings
from sabun.density.basis import BoundedBasis
from sabun.density.features import Features, chosen_rows, median_distance
from sabun.density.kernel import Floats, GaussianKernel
from sabun.density.logistic import Logistic
from sabun.density.method import Method, Target
from sabun.density.paper import FixedBasis, NoisyCentres, RawCentres
from sabun.density.rkhs import Embedding
from sabun.errors import BoundsError, DataError, ParameterError
from sabun.records import Schema

__all__ = [
    "FORMER",
    "KINDS",
    "METHODS",
    "DensitySettings",
    "JiElkanSettings",
    "RkhsSettings",
    "UlsifASettings",
    "UlsifBSettings",
    "UlsifCSettings",
    "UlsifParametricSettings",
]

FORMER: Mapping[str, Any] = {
    "n_centers": None,
    "bandwidth": "median",
    "centers": None,
    "tau2": 0.5,
    "regularization": 0.1,
    "bounds": None,
    "basis": None,
    "basis_bounds": None,
    "clip_norm": None,
    "accept_publishing_raw_records": False,
}
"""What `DensityRatio` once took for every method, with the value that meant "as usual"."""

_PUBLISHED = ("bandwidth", "tau2", "regularization", "basis_bounds", "clip_norm")
_USUAL_CENTRES = 50
_CLIP_QUANTILE = 0.95


class DensitySettings(MethodSettings, ABC):
    """What the settings of all methods share."""

    relations: ClassVar[Sequence[str]] = RELATIONS[:1]
    """Under which it can promise anything."""

    gaussian: ClassVar[bool] = False
    """Whether it has a mechanism with delta."""

    def check(self, schema: Schema | None) -> None:
        """Refuses a setting that breaks its rule; `schema` may stand in for bounds."""
        del schema
        for field in fields(self):  # type: ignore[arg-type]
            _CHECKS.get(field.name, _nothing)(getattr(self, field.name))

    @property
    def own_basis(self) -> bool:
        """Whether a function of the caller's sees the records, as they are."""
        return getattr(self, "basis", None) is not None

    def facts(self) -> dict[str, Any]:
        """What is published of them: for every method the same names, which old retry keys are tied to."""
        shown = {name: getattr(self, name, FORMER[name]) for name in _PUBLISHED}
        return {**shown, "n_centers": int(getattr(self, "n_centers", _USUAL_CENTRES))}

    @abstractmethod
    def plan(self, points: Floats, features: Features, target: Target, size: int | None) -> Method:
        """The method, planned from public points; `size` is the public number (or guess) of private rows."""


@final
@dataclass(frozen=True, kw_only=True)
class RkhsSettings(DensitySettings):
    """The default method: one noisy mean embedding, then weights that agree with it.

    Args:
        n_centers: Number of kernel centres, rows of the public table.
        bandwidth: Kernel width in units of standardised columns; "median" takes the public table's median distance.
        centers: Public centres (rows in the table's own units) instead of public rows.
        tau2: Variance of a query's part that the kernel cannot express; larger means more even weights.
    """

    method = "rkhs"
    relations = RELATIONS
    gaussian = True

    n_centers: int = 300
    bandwidth: float | str = "median"
    centers: Any = None
    tau2: float = 0.5

    def plan(self, points: Floats, features: Features, target: Target, size: int | None) -> Embedding:
        """The embedding."""
        return Embedding.of(
            points,
            _public_centres(self, points, features),
            bandwidth=_bandwidth(self, points),
            target=target,
            size=None if size is None else int(size),
            tau2=float(self.tau2),
        )


@final
@dataclass(frozen=True, kw_only=True)
class UlsifParametricSettings(DensitySettings):
    """The paper's section 3.1: a least-squares fit on a basis of the caller's own.

    Args:
        basis: Function of one record that returns a list of numbers.
        basis_bounds: Public bounds (lower, upper) that hold for each of those numbers; values outside are clipped.
        regularization: Penalty of the fit; a public constant, never tuned on private records.
    """

    method = "ulsif-parametric"

    basis: Callable[[Floats], Any] | None = None
    basis_bounds: tuple[float, float] | None = None
    regularization: float = 0.1

    def check(self, schema: Schema | None) -> None:
        """Needs a basis with bounds."""
        super().check(schema)
        if self.basis is None:
            raise ParameterError("basis must be a function of one record for method 'ulsif-parametric'; got None.")
        _must_be_bounded(self.basis, self.basis_bounds)

    def plan(self, points: Floats, features: Features, target: Target, size: int | None) -> FixedBasis:
        """The fit on the caller's basis."""
        del features, size
        return FixedBasis(basis=_basis(self, points), public=points, penalty=float(self.regularization), target=target)


@final
@dataclass(frozen=True, kw_only=True)
class UlsifASettings(DensitySettings):
    """The paper's method A: noisy copies of private rows as centres.

    Args:
        n_centers: Number of kernel centres.
        bandwidth: Kernel width in units of standardised columns; "median" takes the public table's median distance.
        bounds: Pairs (lower, upper), one for each column, when the schema does not have them.
        regularization: Penalty of the fit; a public constant, never tuned on private records.
    """

    method = "ulsif-a"

    n_centers: int = _USUAL_CENTRES
    bandwidth: float | str = "median"
    bounds: Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]] | None = None
    regularization: float = 0.1

    def check(self, schema: Schema | None) -> None:
        """Needs bounds, from here or from the schema."""
        super().check(schema)
        if self.bounds is None and schema is None:
            raise BoundsError(
                "method 'ulsif-a' adds noise to records and needs bounds. "
                "Bounds must not come from the data: pass bounds=[(lower, upper), …]."
            )

    def plan(self, points: Floats, features: Features, target: Target, size: int | None) -> NoisyCentres:
        """The fit on noisy centres."""
        del size
        return NoisyCentres(
            public=points,
            wanted=int(self.n_centers),
            bandwidth=_bandwidth(self, points, private_centres=True),
            penalty=float(self.regularization),
            target=target,
            box=_box(self.bounds, features),
        )


@final
@dataclass(frozen=True, kw_only=True)
class UlsifBSettings(DensitySettings):
    """The paper's method B: public rows as centres.

    Args:
        n_centers: Number of kernel centres, rows of the public table.
        bandwidth: Kernel width in units of standardised columns; "median" takes the public table's median distance.
        centers: Public centres (rows in the table's own units) instead of public rows.
        regularization: Penalty of the fit; a public constant, never tuned on private records.
    """

    method = "ulsif-b"

    n_centers: int = _USUAL_CENTRES
    bandwidth: float | str = "median"
    centers: Any = None
    regularization: float = 0.1

    def plan(self, points: Floats, features: Features, target: Target, size: int | None) -> FixedBasis:
        """The fit on kernels at public centres."""
        del size
        kernel = GaussianKernel.of(_public_centres(self, points, features), bandwidth=_bandwidth(self, points))
        return FixedBasis(basis=kernel, public=points, penalty=float(self.regularization), target=target)


@final
@dataclass(frozen=True, kw_only=True)
class UlsifCSettings(DensitySettings):
    """The paper's method C: private rows themselves as centres. They are published as they are.

    Args:
        n_centers: Number of kernel centres: so many private records are published.
        bandwidth: Kernel width in units of standardised columns; "median" takes the public table's median distance.
        accept_publishing_raw_records: It refuses without this.
        regularization: Penalty of the fit; a public constant, never tuned on private records.
    """

    method = "ulsif-c"

    n_centers: int = _USUAL_CENTRES
    bandwidth: float | str = "median"
    accept_publishing_raw_records: bool = False
    regularization: float = 0.1

    def check(self, schema: Schema | None) -> None:
        """Needs consent."""
        super().check(schema)
        checks.require(
            self.accept_publishing_raw_records,
            "True for method 'ulsif-c'",
            "It publishes n_centers private records exactly as they are. Use method 'rkhs' instead.",
            accept_publishing_raw_records=self.accept_publishing_raw_records,
        )

    def plan(self, points: Floats, features: Features, target: Target, size: int | None) -> RawCentres:
        """The fit on raw centres."""
        del features, size
        bandwidth, penalty = _bandwidth(self, points, private_centres=True), float(self.regularization)
        return RawCentres(public=points, wanted=int(self.n_centers), bandwidth=bandwidth, penalty=penalty, target=target)


@final
@dataclass(frozen=True, kw_only=True)
class JiElkanSettings(DensitySettings):
    """The baseline of Ji and Elkan: a private logistic regression.

    Args:
        basis: Function of one record that returns a list of numbers; a constant and the columns when left out.
        basis_bounds: Public bounds (lower, upper) that hold for each of those numbers; values outside are clipped.
        clip_norm: Longest feature vector; a public quantile of the public rows when left out.
        regularization: Penalty of the regression; a public constant, never tuned on private records.
    """

    method = "ji-elkan"
    gaussian = True

    basis: Callable[[Floats], Any] | None = None
    basis_bounds: tuple[float, float] | None = None
    clip_norm: float | None = None
    regularization: float = 0.1

    def check(self, schema: Schema | None) -> None:
        """A basis needs bounds."""
        super().check(schema)
        if self.basis is not None:
            _must_be_bounded(self.basis, self.basis_bounds)

    def plan(self, points: Floats, features: Features, target: Target, size: int | None) -> Logistic:
        """The regression."""
        del features, size
        basis = None if self.basis is None else _basis(self, points)
        norm = self.clip_norm
        if norm is None:
            plain = np.hstack([np.ones((len(points), 1)), points]) if basis is None else basis.values(points)
            with np.errstate(over="ignore"):
                norm = max(float(np.quantile(np.linalg.norm(plain, axis=1), _CLIP_QUANTILE)), 1e-6)
        return Logistic(public=points, basis=basis, clip_norm=float(norm), penalty=float(self.regularization), target=target)


KINDS = (RkhsSettings, UlsifParametricSettings, UlsifASettings, UlsifBSettings, UlsifCSettings, JiElkanSettings)
METHODS = tuple(kind.method for kind in KINDS)


def _nothing(value: Any) -> None:
    """What needs the public table is checked with it."""


def _check_bandwidth(value: Any) -> None:
    if isinstance(value, str):
        checks.one_of(("median",), bandwidth=value)
    else:
        checks.positive(bandwidth=value)


def _check_clip_norm(value: Any) -> None:
    if value is not None:
        checks.positive(clip_norm=value)


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "n_centers": lambda value: checks.whole(minimum=1, n_centers=value),
    "bandwidth": _check_bandwidth,
    "tau2": lambda value: checks.positive(tau2=value),
    "regularization": lambda value: checks.positive(regularization=value),
    "clip_norm": _check_clip_norm,
    "accept_publishing_raw_records": lambda value: checks.boolean(accept_publishing_raw_records=value),
}


def _must_be_bounded(basis: object, bounds: object) -> None:
    if basis is not None and bounds is None:
        raise BoundsError("basis has no bounds. Bounds must not come from the data: pass basis_bounds=(lower, upper).")


def _bandwidth(settings: Any, points: Floats, *, private_centres: bool = False) -> float:
    given = settings.bandwidth
    width = median_distance(points) if isinstance(given, str) else float(given)
    GaussianKernel.of(points[:1], bandwidth=width)  # its refusals must come before the charge
    # Private centres lie within 1e100, so that no row can make the scaled ones infinite.
    checks.require(not private_centres or width >= 1e-200, "at least 1e-200 for private centres", bandwidth=width)
    return width


def _public_centres(settings: RkhsSettings | UlsifBSettings, points: Floats, features: Features) -> Floats:
    if settings.centers is None:
        chosen: Floats = points[chosen_rows(len(points), int(settings.n_centers))]
        return chosen
    centres: Floats = features.points(settings.centers)
    if not len(centres) or not np.isfinite(centres).all():
        raise DataError("centers must be a table of finite numbers with at least one row; it is not.")
    return centres


def _basis(settings: Any, points: Floats) -> BoundedBasis:
    return BoundedBasis.of(settings.basis, settings.basis_bounds, example=points[0])


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
