"""The terms of one release, checked and read exactly: what is asked for, what is published of it, what it promises."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, final

import numpy as np

from sabun import checks
from sabun.asking import Ask
from sabun.asking.method_settings import settings_of
from sabun.density.features import Features
from sabun.density.kernel import Floats
from sabun.density.method import Promise, Target
from sabun.density.settings import KINDS, DensitySettings
from sabun.errors import DataError, ParameterError
from sabun.privacy.guarantee import Guarantee
from sabun.records import Persons, Schema
from sabun.records.persons import assumptions_of, facts_of, terms_of

__all__ = ["Terms", "must_be_rows"]

_PUBLISHED = (
    *("method", "bandwidth", "standardize", "tau2", "regularization", "n_public", "basis_bounds", "clip_norm"),
    *("n_centers", "relation"),
)
_ASKED = ("epsilon", "delta", "relation", "ledger", "retry_key", "random_state")
_LEAST_EPSILON = Fraction(1, 10**9)
"""Below it the noise would not even fit in the floats that come after it."""


@final
@dataclass(frozen=True, kw_only=True)
class Terms:
    """The parameters of a `DensityRatio`, checked; kept from `set_public` on, for a change after it must not change half.

    `persons` says how private rows became persons, once that is known.
    """

    given: Mapping[str, Any]
    settings: DensitySettings
    target: Target
    persons: Persons | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], settle: Callable[..., Ask]) -> Self:
        """Checks every parameter by itself, then those that depend on each other.

        Args:
            given: The parameters.
            settle: Settles what every question has: `Question._ask`.
        """
        settings: DensitySettings = settings_of(given["method"], KINDS)
        schema = given["schema"]
        checks.require(schema is None or isinstance(schema, Schema), "a Schema or None", schema=schema)
        _check_columns(given["columns"], schema)
        checks.boolean(standardize=given["standardize"])
        checks.boolean(allow_large_delta=given["allow_large_delta"])
        if given["n_public"] is not None:
            checks.whole(minimum=1, n_public=given["n_public"])
        settings.check(schema)
        _check_relation(settings, given["relation"])
        ask = settle(relations=settings.relations)
        checks.require(ask.epsilon >= _LEAST_EPSILON, "at least 1e-9", "Less lets nothing through.", epsilon=given["epsilon"])
        if ask.delta and not settings.gaussian:
            raise ParameterError(
                f"delta must be None for method {settings.method!r}; got {given['delta']!r}. Its noise is Laplace noise."
            )
        target = Target(epsilon=ask.epsilon, delta=ask.delta or None, relation=ask.relation)
        return cls(given=given, settings=settings, target=target)

    def about(self, private: object) -> Self:
        """The same for that private table, whose rows may have to be made into persons first."""
        return replace(self, persons=terms_of(private))

    @property
    def asked(self) -> dict[str, Any]:
        """What is settled anew for the release, since a seeded coin starts again."""
        return {**{name: self.given[name] for name in _ASKED}, "relations": self.settings.relations}

    @property
    def standardizes(self) -> bool:
        """Whether points are in units of the public spread; a user's basis sees the records as they are."""
        return bool(self.given["standardize"]) and not self.settings.own_basis

    def facts(self) -> dict[str, Any]:
        """Public parameters worth publishing."""
        shown = self.settings.facts() | {name: self.given[name] for name in ("standardize", "n_public")}
        shown |= {"method": self.settings.method, "relation": self.target.relation}
        return {name: shown[name] for name in _PUBLISHED if shown[name] is not None} | facts_of(self.persons)

    def guarantee(self, ask: Ask, promise: Promise) -> Guarantee:
        """What a release promises, for the ledger's unit and relation."""
        relation = ask.relation
        if relation == "add-remove" and ask.ledger is not None and ask.ledger.relation == "replace-one":
            relation = "replace-one"  # the noise is calibrated for both, see embedding.proof.md
        assumptions = (
            *assumptions_of(self.persons, unit=ask.unit),
            "the public table and all settings were chosen without looking at the private one",
        )
        return ask.guarantee(
            promise.mechanism,
            assumptions=(*self._known(promise.assumptions), *assumptions),
            epsilon=promise.epsilon,
            delta=promise.delta,
            relation=relation,
        )

    def _known(self, assumptions: tuple[str, ...]) -> tuple[str, ...]:
        """What a method takes for granted, said of persons where they are what it counts."""
        rows, persons = "the number of private rows is public", "the number of persons is public"
        return tuple(persons if one == rows and self.persons is not None else one for one in assumptions)

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
            self.check_delta(declared)
            return
        if size < 1:
            raise DataError("the private table must have at least 1 row.")
        if declared is not None and declared != size:
            raise DataError(
                "the private table must have the number of rows that was declared for it; it has another one. "
                "Under replace-one that number is public."
            )
        self.check_delta(size)

    def check_delta(self, size: int | None) -> None:
        """Refuses a delta under which publishing somebody's record would be allowed."""
        if self.target.delta is None or size is None or self.given["allow_large_delta"]:
            return
        if self.target.delta * size >= 1:
            raise ParameterError(
                f"delta must be below 1 / (number of private rows); got {self.given['delta']!r}. A larger one allows "
                "publishing somebody's record. Choose a smaller delta, or allow it (allow_large_delta)."
            )


def must_be_rows(private: object) -> None:
    """Refuses persons where records come in pieces: the rows of one may lie in several.

    Raises:
        DataError: They are persons.
    """
    if isinstance(private, Persons):
        raise DataError("a table with several rows per person must be whole; got one as a piece. Pass it to fit.")


def _check_columns(columns: Any, schema: Schema | None) -> None:
    if columns is None:
        return
    good = isinstance(columns, list | tuple) and len(set(columns)) == len(columns) > 0
    checks.require(good and all(isinstance(name, str) for name in columns), "a list of distinct names", columns=columns)
    checks.require(schema is None, "None beside a schema", "Use schema.select([...]) instead.", columns=columns)


def _check_relation(settings: DensitySettings, wanted: Any) -> None:
    if wanted == "add-remove" and wanted not in settings.relations:
        raise ParameterError(
            f"relation must be 'replace-one' for method {settings.method!r}; got {wanted!r}. Its noise depends on the "
            "number of private rows, which add-remove keeps private: use method 'rkhs'."
        )
