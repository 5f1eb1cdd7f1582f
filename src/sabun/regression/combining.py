"""One model out of many releases, with or without the home organisation's own data."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sabun import checks
from sabun.errors import DataError, ParameterError
from sabun.records import Schema, open_source
from sabun.regression.contribution import Contribution, read_all
from sabun.regression.design import UNIT, Floats
from sabun.regression.falling import fallen, remarks_on
from sabun.regression.intervals import Doubt
from sabun.regression.leaving_out import worth_pooling
from sabun.regression.mirror import CONVENTIONS, best_weights, mirror_weights, stacking_weights, theory_tau
from sabun.regression.models import HomeModel, PublicModel
from sabun.regression.plausibility import findings, influences
from sabun.regression.pooling import Posterior, pooled
from sabun.regression.shortening import remark_on_lengths
from sabun.regression.sound import sound_of
from sabun.regression.statistic import Moments
from sabun.regression.study import STAGED, STATISTICS, Study
from sabun.regression.sums import Home, Sums, home_sums, released_radius
from sabun.regression.twice import without_own
from sabun.release import Release

if TYPE_CHECKING:
    from sabun.ledger import Ledger, Receipt

__all__ = ["METHODS", "combine", "facts_of", "own_model"]

METHODS = ("pool", "guard", "mirror", "average", "stack", "best")
_NEED_HOME = ("guard", "mirror", "stack", "best")
_ORDERS = 8
_FEWEST_ROWS = 5
_UNUSED = "left out"
_ONE_RELEASE = "There is only one release: nothing is pooled."
_LEFT_OUT = (
    "Left out, since their noise, or residuals far larger than the others', would add more than their rows tell: {}. "
    "The model and its intervals, also those for new records, are made of the other releases alone."
)
_FEW_ROWS = (
    "The home data has too few rows to tell how much its residuals vary (it takes 3 more than there are coefficients): "
    "intervals reckon with as much as a target within its bounds can."
)


def combine(
    releases: Iterable[Any],
    X_home: object = None,
    y_home: object = None,
    *,
    method: str = "pool",
    study: Study | None = None,
    tau: float | str = "theory",
    convention: str = "jrt",
    own: str | os.PathLike[str] | Release | Receipt | Ledger | None = None,
) -> HomeModel | PublicModel:
    """Joins the releases of several organisations into one linear model.

    Guarantee: without home data the result is a function of releases (`PublicModel`), so each organisation keeps the
    guarantee of
    its own release. With home data it is not private for that data (`HomeModel`); for the others nothing changes.

    Args:
        releases: Paths of release files, or `Release` objects.
        X_home: The home organisation's features (a table, or a file that also holds the target); stays at home.
        y_home: Its targets; left out when X_home is a file or frame that holds them under the study's name.
        method: `pool` adds noisy sums up and trusts them as far as their noise lets it (the default, for the population of all
            organisations); releases whose noise is more than they tell are left out and named. `guard` chooses
            between pool with home data, pool without, and home alone (for the home organisation's own population). `mirror` is
            the paper's averaging. `average`, `stack` (weights on the simplex), `best` work on coefficients too.
        study: The study to trust: only releases made for it are taken, and where it names organisations, only those that they
            signed.
        tau: Temperature of `mirror`: "theory" or a number in squared scaled units of the target.
        convention: `jrt` or `paper`, see `mirror_weights`.
        own: Which release was made of the home data itself: it is left out, for those rows would count twice. The
            organisation's name, the hash of the ledger row that paid (or its `Receipt`), the release (or a `pathlib.Path` to
            it), or the home organisation's `Ledger`, whose rows may have paid for some of them or for none.

    Returns:
        A HomeModel if home data was given, else a PublicModel.

    Raises:
        ReleaseError: A release is damaged, forged, of another study, from an unknown organisation, or one sent two.
        ParameterError: A parameter breaks its rule.

    Example:
        >>> from sabun.regression import PrivateRidge
        >>> X = np.column_stack([np.linspace(-1, 1, 800), np.sin(np.arange(800))])
        >>> terms = {"epsilon": 5, "x_bounds": (-1, 1), "y_bounds": (-2, 2)}
        >>> releases = [PrivateRidge(**terms).fit(X[part::2], X[part::2, 0]).release_ for part in (0, 1)]
        >>> bool(abs(combine(releases).coef_[0] - 1) < 0.5)
        True
    """
    checks.one_of(METHODS, method=method)
    checks.one_of(CONVENTIONS, convention=convention)
    if tau != "theory":
        checks.positive(tau=tau)
    contributions = read_all(releases, study)
    terms = contributions[0].study
    left_out: tuple[str, ...] = ()
    if own is not None:
        if X_home is None:
            raise ParameterError("own must be left out without home data: a public model takes every release once.")
        contributions, left_out = without_own(contributions, own)
    home = None if X_home is None else _Home.of(terms, X_home, y_home)
    _check_method(method, terms, home)
    notes = left_out + findings(contributions)
    for note in notes:
        if note.startswith("Implausible"):
            warnings.warn(note, stacklevel=2)
    result = _combined(method, contributions, home, tau, convention)
    unused = result.pop(_UNUSED, ())
    notes += (_LEFT_OUT.format(", ".join(unused)),) if unused else ()
    notes += _remarks(contributions, home, result)
    notes += _on_lengths([one for one in contributions if one.organisation not in unused])
    facts: dict[str, Any] = {"study": terms, "method": method, "findings": notes, **result}
    facts["organisations"] = tuple(contribution.organisation for contribution in contributions)
    facts["guarantees"] = tuple(contribution.promise for contribution in contributions)
    facts["ledger_rows"] = tuple(contribution.ledger_row for contribution in contributions)
    facts["simulated"] = any(contribution.release.guarantee.simulated for contribution in contributions)
    return PublicModel(**facts) if home is None else HomeModel(**facts)


def own_model(study: Study, release: Release, first: Release | None = None) -> PublicModel:
    """The public model of one's own release, signed or not yet, or of two rounds."""
    name = release["organisation"] or "one organisation"
    contribution = Contribution(organisation=name, study=study, release=release, first=first)
    method = "pool" if study.method in STATISTICS else "average"
    result = _combined(method, [contribution], None, "theory", "jrt")
    result.pop(_UNUSED, None)
    facts: dict[str, Any] = {"organisations": (contribution.organisation,), "guarantees": (contribution.promise,), **result}
    remarks = *remarks_on(result["beta"], result.get("moved")), *_on_lengths([contribution])
    facts |= {"ledger_rows": (contribution.ledger_row,), "findings": remarks}
    return PublicModel(study=study, method=method, simulated=release.guarantee.simulated, **facts)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Home:
    """The home organisation's rows in row units, and their sums. PRIVATE."""

    rows: Floats
    targets: Floats
    sums: Home

    @classmethod
    def of(cls, study: Study, features: object, target: object) -> _Home:
        # Nothing is drawn for these rows, so none need be shortened; weighted ones would pass for rows with small residuals.
        design = replace(study.design, radius=None, weighted=False) if study.design.weighted else study.design
        near = design.scale / study.design.scale
        if target is None:
            together = Schema(columns=(*study.features.columns, study.target), file=study.features.file)
            table = open_source(features, schema=together).matrix()
            encoded, targets = table[:, :-1], table[:, -1]
        else:
            encoded = open_source(features, schema=study.features).matrix()
            targets = design.encoded_target(target)
        if len(targets) != len(encoded) or not len(encoded):
            raise DataError("home data must have at least one row, and as many targets as rows.")
        values = design.feature_values(encoded)
        body = np.empty(values.shape)
        constant, weights = design.whole_rows(values, body)
        rows = np.column_stack([body, np.broadcast_to(constant, (len(body),))]) if design.intercept else body
        moments = Moments(design=design)
        totals = moments.add(moments.zero(), (values, targets))
        rows = rows * (near / (UNIT * design.shrink))
        return cls(rows=rows, targets=design.whole_targets(targets, weights) / UNIT, sums=home_sums(study, totals, near))


def _remarks(contributions: Sequence[Contribution], home: _Home | None, result: Mapping[str, Any]) -> tuple[str, ...]:
    """What a reader of the model should know about its making."""
    if home is None:
        return (*((_ONE_RELEASE,) if len(contributions) == 1 else ()), *remarks_on(result["beta"], result.get("moved")))
    doubt: Doubt | None = result.get("doubt")
    return (_FEW_ROWS,) if doubt is not None and math.isinf(doubt.freedom) else ()


def _on_lengths(contributions: Sequence[Contribution]) -> tuple[str, ...]:
    """What shortened rows mean for the model, by the radii that were released."""
    staged = [one for one in contributions if one.study.method in STAGED]
    radii = [released_radius(one.study, one.value) for one in staged]
    return remark_on_lengths(staged[0].study, radii) if staged else ()


def _check_method(method: str, study: Study, home: _Home | None) -> None:
    if home is None and method in _NEED_HOME:
        raise ParameterError(f"method {method!r} must have home data; got none. Give it, or use 'pool'.")
    if method in ("pool", "guard") and study.method not in STATISTICS:
        raise ParameterError(
            f"method must be 'stack', 'mirror', 'average' or 'best' where releases are by {study.method!r}; got {method!r}. "
            "Released coefficients carry no precision to pool by."
        )
    if method == "guard" and home is not None and len(home.rows) < _FEWEST_ROWS:
        raise DataError(f"method 'guard' must have at least {_FEWEST_ROWS} home rows. Use 'pool'.")


def _combined(
    method: str, contributions: Sequence[Contribution], home: _Home | None, tau: float | str, convention: str
) -> dict[str, Any]:
    if method == "pool":
        return _pool(contributions, home)
    if method == "guard":
        assert home is not None
        return _guard(contributions, home)
    study = contributions[0].study
    candidates = np.array([_in_ball(contribution) for contribution in contributions])
    weights = _weights(method, candidates, study, home, tau, convention)
    return {"beta": weights @ candidates, "weights": tuple(weights.tolist())}


def _pool(contributions: Sequence[Contribution], home: _Home | None) -> dict[str, Any]:
    study = contributions[0].study
    sums = [contribution.sums() for contribution in contributions]
    own = None if home is None else home.sums
    kept = worth_pooling(study, sums, own)
    whole = pooled(study, kept, own)

    def without(place: int) -> Posterior:
        return pooled(study, worth_pooling(study, [*sums[:place], *sums[place + 1 :]], own), own)

    found = influences(contributions, whole, without) if len(sums) > 1 else ()
    facts = facts_of(fallen(study, kept, whole) if own is None else whole, study, kept, own)
    return {"influences": found, **facts, _UNUSED: _others(contributions, sums, kept)}


def _others(contributions: Sequence[Contribution], sums: Sequence[Sums], kept: Sequence[Sums]) -> tuple[str, ...]:
    """Who was left out of the pool."""
    used = {id(one) for one in kept}
    return tuple(one.organisation for one, own in zip(contributions, sums, strict=True) if id(own) not in used)


def facts_of(posterior: Posterior, study: Study, releases: Sequence[Sums], home: Home | None = None) -> dict[str, Any]:
    """What a model of the pool keeps of its posterior, and how to find what its intervals lie around."""
    found = {name: getattr(posterior, name) for name in ("beta", "covariance", "error", "variance", "doubt", "moved")}
    cut = any(one.refined is not None for one in releases)
    return found | {"sound": partial(sound_of, study, releases, home) if cut else None}


def _guard(contributions: Sequence[Contribution], home: _Home) -> dict[str, Any]:
    """Mirror averaging over {pool with home, pool, home} with exact leave-one-out losses where the home data was used."""
    study = contributions[0].study
    sums, own = [contribution.sums() for contribution in contributions], home.sums
    kept = worth_pooling(study, sums, own)
    both, others, alone = pooled(study, kept, own), pooled(study, kept), pooled(study, [], own)
    losses = []
    for posterior, used_home in ((both, True), (others, False), (alone, True)):
        residuals = home.targets - home.rows @ posterior.beta
        if used_home:
            leverage = np.einsum("ij,jk,ik->i", home.rows, posterior.covariance, home.rows) / posterior.weighed
            residuals = residuals / np.maximum(1 - leverage, 1e-3)
        losses.append(residuals**2)
    weights = mirror_weights(np.column_stack(losses), tau=8 * alone.variance, permutations=_ORDERS)
    beta = weights @ np.array([both.beta, others.beta, alone.beta])
    unused = _others(contributions, sums, kept)
    return {"beta": beta, "weights": tuple(weights.tolist()), "variance": alone.variance, _UNUSED: unused}


def _in_ball(contribution: Contribution) -> Floats:
    """The organisation's estimate, inside the ball that the theory of mirror averaging asks for (eq. 8 stays as printed)."""
    beta = contribution.beta()
    bound, length = float(contribution.study.coef_bound), float(np.linalg.norm(beta))
    return beta if contribution.study.method == "paper" or length <= bound else beta * (bound / length)


def _weights(method: str, candidates: Floats, study: Study, home: _Home | None, tau: float | str, convention: str) -> Floats:
    if method == "average" or home is None:
        return np.full(len(candidates), 1 / len(candidates))
    predictions = home.rows @ candidates.T
    if method == "stack":
        return stacking_weights(predictions, home.targets)
    losses = (home.targets[:, None] - predictions) ** 2
    if method == "best":
        return best_weights(losses)
    temperature = theory_tau(float(study.coef_bound)) if tau == "theory" else float(tau)
    return mirror_weights(losses, tau=temperature, convention=convention, permutations=_ORDERS if convention == "jrt" else 1)
