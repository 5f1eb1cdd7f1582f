"""A release that was read back: everything that is needed to answer questions, without any private record."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sabun.density.embedding import whitening
from sabun.density.features import Features
from sabun.density.kernel import Floats, GaussianKernel
from sabun.density.method import Method, Target
from sabun.density.rkhs import Embedding
from sabun.density.support import Support
from sabun.errors import DataError, ParameterError, ReleaseError
from sabun.records import Schema
from sabun.release import Release

__all__ = ["KIND", "features_from", "features_tree", "has_uncovered", "is_embedding", "must_be_made_for", "plan_from"]

KIND = "density.weights"
"""What `DensityRatio` releases are called."""

_CLOSE = 1e-4


def features_tree(features: Features) -> dict[str, Any]:
    """The public map from records to points, as a release holds it."""
    return {
        "columns": list(features.names),
        "schema": None if features.schema is None else features.schema.to_json(),
        "centre": features.centre,
        "scale": features.scale,
    }


def features_from(release: Release) -> Features:
    """Reads what `features_tree` wrote.

    Raises:
        ReleaseError: The release is of another kind, or damaged.
    """
    if release.provenance.kind != KIND:
        raise ReleaseError(f"the release must be of kind {KIND!r} made by method 'rkhs'; it is another one.")
    tree: Any = release.value.get("features")
    try:
        _must(isinstance(tree, Mapping))
        schema = None if tree["schema"] is None else Schema.from_json(str(tree["schema"]))
        centre, scale = np.array(tree["centre"], dtype=np.float64), np.array(tree["scale"], dtype=np.float64)
        names = tuple(str(name) for name in tree["columns"])
        width = len(names) if schema is None else schema.width
        _must(centre.shape == scale.shape == (width,))
    except (KeyError, TypeError, ValueError):
        raise ReleaseError("the release must hold the features its weights were made with; it is damaged.") from None
    return Features(names=names, schema=schema, centre=centre, scale=scale)


def digest_of(points: Floats) -> str:
    """Tells public tables apart, by their rows in their order."""
    return hashlib.sha256(np.ascontiguousarray(points).tobytes()).hexdigest()


def must_be_made_for(release: Release, plan: Method, features: Features, points: Floats, *, key: str | None) -> None:
    """Refuses weights that a retry key brought back for another public table.

    Raises:
        ParameterError: They belong beside other rows.
    """
    if not (_same_features(features, release) and _agrees(plan, release, points)):
        raise ParameterError(
            f"retry_key must stand for weights of this public table; {key!r} stands for those of another one. "
            "Nothing was charged. Pass that table, or choose another key."
        )


def plan_from(release: Release, points: Floats, target: Target) -> Embedding:
    """The plan behind a release, for the public rows it was made for.

    Raises:
        ReleaseError: The release is of another method, or damaged.
        DataError: The public table is not the one of the release.
    """
    if not is_embedding(release):
        raise ReleaseError(f"the release must be of kind {KIND!r} made by method 'rkhs'; it is another one.")
    smooth = has_uncovered(release)
    try:
        kernel = GaussianKernel(centres=np.ascontiguousarray(release["centres"]), factor=float(release["factor"]))
        axes, mean = (np.array(release[name], dtype=np.float64) for name in ("coordinates", "embedding"))
        _must(kernel.centres.shape[0] == points.shape[1])
        _must(axes.shape == (kernel.size, len(mean)))
        numbers = ("noise_sd", "private_rows", *(("uncovered", "level", "open") if smooth else ("penalty", "intercept")))
        _must(all(math.isfinite(float(release[name])) for name in numbers) and bool(np.isfinite(mean).all()))
        _must(float(release["noise_sd"]) > 0 and float(release["private_rows"]) >= 1)
        if smooth:
            _must(isinstance(release["converged"], bool))
        tau2 = float(release.provenance.parameters["tau2"])
        _must(math.isfinite(tau2) and tau2 > 0)
    except (KeyError, TypeError, ValueError, IndexError):
        raise ReleaseError("the release must hold the kernel its weights were made with; it is damaged.") from None
    plan = Embedding(
        kernel=kernel,
        white=whitening(kernel),
        axes=axes,
        variances=np.zeros(len(mean)),
        points=points,
        support=Support.of(points, kernel),
        target=target,
        size=len(points),
        tau2=tau2,
    )
    if not _agrees(plan, release, points):
        raise DataError("the public table must be the one the weights were made for, row by row; it is another one.")
    return plan


def is_embedding(release: Release) -> bool:
    """Whether the default method made it, which alone releases what intervals need."""
    return release.provenance.parameters.get("method") == "rkhs"


def has_uncovered(release: Release) -> bool:
    """Whether the release tells the share of uncovered rows; those of earlier versions do not."""
    return "uncovered" in release.value


def _same_features(features: Features, release: Release) -> bool:
    """Whether the release maps records to points in that very way."""
    tree: Any = release.value.get("features")
    if not isinstance(tree, Mapping):
        return False
    wanted = features_tree(features)
    numbers = all(np.array_equal(tree[name], wanted[name]) for name in ("centre", "scale"))
    return numbers and list(tree["columns"]) == wanted["columns"] and tree["schema"] == wanted["schema"]


def _agrees(plan: Method, release: Release, points: Floats) -> bool:
    """Whether the released ratio gives the released weights at those points: then they are the rows it was made for."""
    weights, tilt = np.asarray(release["weights"], dtype=np.float64), np.atleast_1d(release.value.get("tilt", ()))
    if len(weights) != len(points):
        return False
    if has_uncovered(release) and not (isinstance(plan, Embedding) and len(tilt) == len(plan.smoothness.landmarks)):
        return False
    return bool(np.allclose(plan.ratio(release.value, points), weights, atol=_CLOSE, rtol=_CLOSE))


def _must(condition: bool) -> None:
    if not condition:
        raise ValueError
