"""What several organisations agree on before anybody looks at a record."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, final

from sabun import checks
from sabun.asking import renamed
from sabun.errors import BoundsError, DataError, ParameterError, ReleaseError
from sabun.foreign import parse_json
from sabun.privacy.amounts import Amount, AmountLike, exact, exact_positive
from sabun.records import Column, NumberColumn, Schema
from sabun.regression.design import Design
from sabun.regression.membership import PublicKeys
from sabun.release.files import read_whole, write_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["LARGEST_FILE", "MECHANISMS", "MOST_FEATURES", "PURE", "STAGED", "STATISTICS", "Study"]

MECHANISMS = ("staged", "rounds", "ssp-gauss", "ssp-laplace", "objpert", "paper")
STAGED = ("staged", "rounds")
"""Methods that weight rows and release residuals around a first model: their own in one file, all organisations' in two."""
STATISTICS = (*STAGED, "ssp-gauss", "ssp-laplace")
"""Methods that release sums, which pool; the others release coefficients."""
PURE = ("ssp-laplace", "objpert")
"""Methods whose delta is exactly zero."""
MOST_FEATURES = 200
LARGEST_FILE = 2**20

_FORMAT = "sabun-regression-study-1"
_RELATIONS = ("replace-one", "add-remove")
_DEFAULT_DELTA = Fraction(1, 10**6)
_SMALLEST_EPSILON = Fraction(1, 10**6)
_LARGEST_EPSILON = 10**9
_AMOUNTS = ("clip_radius", "coef_bound", "delta", "epsilon", "ridge")
_NEWER = {"mechanism": "method", "ridge": "regularization"}
"""What a study file calls otherwise: its words stay, for every release carries the hash of its study."""
# An exponent of more than three digits would make a number too long to hold.
_AMOUNT = re.compile(r"-?[0-9./]{1,160}([eE][+-]?[0-9]{1,3})?", re.ASCII)
_FIELDS = (
    "clip_radius",
    "coef_bound",
    "delta",
    "epsilon",
    "features",
    "fit_intercept",
    "format",
    "mechanism",
    "name",
    "organisations",
    "records_per_person",
    "relation",
    "ridge",
    "target",
    "unit",
)


@final
@renamed(**_NEWER)
@dataclass(frozen=True, kw_only=True)
class Study:
    """The public terms of one regression over organisations that cannot share data.

    Everything here is fixed before anybody looks at a record. Its canonical JSON has a hash that every release carries, so a
    release can be used only with the study it was made for.

    Args:
        features: The columns and their public bounds. A category gives one coefficient for each label; beside an intercept its
            first label is the one that the others are compared with.
        target: The number to predict, with its public bounds.
        epsilon: Privacy of each organisation's release; with `rounds`, of its two together.
        delta: The same; 1e-6 for `staged`, `rounds` and `ssp-gauss` when left out, 0 for the pure methods whatever is asked.
        method: `staged`, `rounds`, `ssp-gauss`, `ssp-laplace`, `objpert`, `paper`, or `auto` (see docs/jobs/regression.md).
        fit_intercept: Whether the model has a constant; without one, nothing is centred.
        clip_radius: Rows longer than this in scaled units are shortened to it (with `staged`, weighted down together with
            their target). When left out, `staged` chooses one privately for each organisation, and the others take
            sqrt(features + intercept), which shortens none.
        coef_bound: A public guess of the largest length of the coefficient vector, constant included, in units in which the
            longest row has length 1 (in scaled units, times the largest length of a row there). `objpert` and `paper` need it
            for privacy, the others as the scale of a prior and for their intervals.
        relation: `replace-one` (the number of rows is public) or `add-remove` (it is not).
        unit: Whom a row speaks of ("patient").
        records_per_person: The most rows one unit can have in an organisation. Under `replace-one` the number of rows is
            public, so that how many of them one unit has is not hidden; use `add-remove` where it must be.
        regularization: A public constant added to the diagonal of `objpert` (default 0) or `paper` (default 1).
        name: What people call it; None for a fit outside a study.
        organisations: Names with public keys (base64 of 32 bytes, or Ed25519 keys), the only ones whose releases count.
            Without any, nobody's signature can be checked.

    Example:
        >>> study = Study(features=Schema.of_bounds({"age": (0, 120), "bmi": (10, 60)}),
        ...               target=Column.number("dose", lower=0, upper=100), epsilon=1, unit="patient")
        >>> study.width, len(study.hash)
        (3, 64)
    """

    features: Schema
    target: NumberColumn
    epsilon: AmountLike
    delta: AmountLike | None = None
    method: str = "staged"
    fit_intercept: bool = True
    clip_radius: AmountLike | None = None
    coef_bound: AmountLike = Fraction(2)
    relation: str = "replace-one"
    unit: str = "record"
    records_per_person: int = 1
    regularization: AmountLike | None = None
    name: str | None = None
    organisations: Mapping[str, Any] = field(default_factory=PublicKeys)

    def __post_init__(self) -> None:
        self._check_words()
        for key in _AMOUNTS:
            _readable(_NEWER.get(key, key), getattr(self, key))
        self._set("records_per_person", int(self.records_per_person))  # a small integer of numpy would wrap when squared
        epsilon = _plain(exact_positive(self.epsilon, name="epsilon"))
        checks.require(epsilon >= _SMALLEST_EPSILON, "at least 1e-06", "The noise would drown any data.", epsilon=str(epsilon))
        checks.require(epsilon <= _LARGEST_EPSILON, "at most 1e+09", "It promises nothing.", epsilon=str(epsilon)[:40])
        self._set("epsilon", epsilon)
        self._set("coef_bound", _short(exact_positive(self.coef_bound, name="coef_bound"), "coef_bound"))
        if self.clip_radius is not None:
            self._set("clip_radius", _short(exact_positive(self.clip_radius, name="clip_radius"), "clip_radius"))
        if self.method == "auto":
            self._set("method", self._automatic())
        self._set("delta", self._settled_delta())
        self._set("regularization", self._settled_regularization())
        self._set("organisations", PublicKeys.of(self.organisations))
        some = bool(self.design.names)
        checks.require(some, "more than categories of one label beside an intercept", features=list(self.features.names))
        if not self.design.is_finite:
            raise BoundsError("bounds of the features must be further apart for their size: they cannot be scaled to [-1, 1].")
        checks.require(self.width <= MOST_FEATURES, f"at most {MOST_FEATURES}", "Choose fewer features.", features=self.width)

    def _check_words(self) -> None:
        if not isinstance(self.features, Schema):
            raise BoundsError(f"features must be a Schema with public bounds; got {type(self.features).__name__}.")
        if not isinstance(self.target, NumberColumn):
            raise BoundsError(f"target must be a Column.number with public bounds; got {type(self.target).__name__}.")
        good = self.target.name not in self.features.names
        checks.require(good, "no feature", "Leave the target out of the features.", target=self.target.name)
        advice = "Take the logarithm before, and declare the bounds of that."
        checks.require(not self.target.log1p, "a column without log1p", advice, target=self.target.name)
        checks.one_of((*MECHANISMS, "auto"), method=self.method)
        checks.one_of(_RELATIONS, relation=self.relation)
        checks.boolean(fit_intercept=self.fit_intercept)
        checks.text(unit=self.unit)
        if self.name is not None:
            checks.text(name=self.name)
        checks.whole(minimum=1, records_per_person=self.records_per_person)
        checks.require(self.records_per_person <= 10_000, "at most 10000", records_per_person=self.records_per_person)

    def _automatic(self) -> str:
        if self.delta is None or exact(self.delta, name="delta") > 0:
            return "staged"
        return "ssp-laplace" if self.width <= 8 else "objpert"

    def _settled_delta(self) -> Fraction:
        delta = _DEFAULT_DELTA if self.delta is None else exact(self.delta, name="delta")
        checks.require(0 <= delta < 1, "at least 0 and below 1", delta=self.delta)
        if self.method in PURE:
            return Fraction(0)
        advice = "With delta 0 choose the method 'ssp-laplace' or 'objpert'."
        checks.require(delta > 0 or self.method == "paper", f"> 0 for method {self.method!r}", advice, delta=self.delta)
        checks.require(delta == 0 or delta >= Fraction(1, 10**100), "0 or at least 1e-100", delta=self.delta)
        return _plain(delta)

    def _settled_regularization(self) -> Fraction:
        if self.regularization is None:
            return Fraction(1 if self.method == "paper" else 0)
        asked = exact(self.regularization, name="regularization")
        checks.require(
            self.method in ("objpert", "paper") or asked == 0,
            "left out unless method is 'objpert' or 'paper'",
            "The others take the scale of their prior from coef_bound.",
            regularization=self.regularization,
        )
        good = isinstance(asked, Fraction) and asked >= 0
        checks.require(good, "finite and >= 0", regularization=self.regularization)
        return _short(Fraction(asked), "regularization")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def width(self) -> int:
        """How many coefficients the model has, the intercept included."""
        return self.design.width

    @cached_property
    def design(self) -> Design:
        """The public map from a record to a row of the unit ball."""
        radius = None if self.clip_radius is None else float(self.clip_radius)
        weighted = self.method in STAGED and radius is not None
        return Design(
            features=self.features, target=self.target, intercept=self.fit_intercept, radius=radius, weighted=weighted
        )

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def public_key(self, organisation: str) -> Ed25519PublicKey:
        """The key that an organisation signs with.

        Raises:
            ParameterError: The study does not name the organisation.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        known = sorted(self.organisations)
        checks.require(organisation in known, f"one of {', '.join(map(repr, known)) or '(none)'}", organisation=organisation)
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(self.organisations[organisation]))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; amounts are exact text such as "1/10"."""
        record: dict[str, Any] = {key: getattr(self, key) for key in _FIELDS if key != "format"}
        for key in _AMOUNTS:
            record[key] = None if record[key] is None else str(record[key])
        record["features"], record["target"] = self.features.to_dict(), self.target.to_dict()
        record["organisations"] = dict(self.organisations)
        return record | {"format": _FORMAT}

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Reads what `to_dict` wrote; unknown or absent fields are refused."""
        if not isinstance(record, Mapping):
            raise ParameterError(f"a study must be a JSON object; got {type(record).__name__}.")
        wrong = sorted(set(record) ^ set(_FIELDS))
        checks.require(not wrong, f"exactly {', '.join(_FIELDS)}", "Check these.", **{"fields of a study": wrong})
        checks.require(record["format"] == _FORMAT, repr(_FORMAT), format=record["format"])
        values = {key: record[key] for key in _FIELDS if key != "format"}
        for key in _AMOUNTS:
            good = values[key] is None or isinstance(values[key], str)
            checks.require(good, "an exact number as text, such as '1/10'", **{key: values[key]})
        values["features"] = Schema.from_dict(values["features"])
        target = Column.from_dict(values["target"])
        if not isinstance(target, NumberColumn):
            raise BoundsError("target must be a number column with public bounds; got a category column.")
        return cls(**(values | {"target": target}))

    def to_json(self) -> str:
        """Canonical JSON: equal text for equal studies."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads canonical or hand-written JSON; a key that stands twice is refused."""
        return cls.from_dict(parse_json(text, what="a study", error=ParameterError))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the study as JSON that people can read."""
        text = json.dumps(self.to_dict(), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        write_whole(path, text.encode() + b"\n", overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a study file.

        Raises:
            DataError: There is no such file, it is larger than a megabyte, or it is no UTF-8 text.
            ParameterError: It agrees on something impossible.
        """
        try:
            text = read_whole(path, max_bytes=LARGEST_FILE).decode("utf-8")
        except ReleaseError as error:
            raise DataError(f"study file: {error}") from None
        except UnicodeDecodeError:
            raise DataError(f"study file {os.fspath(path)!r} must be UTF-8 text.") from None
        return cls.from_json(text)

    def __hash__(self) -> int:
        return hash(self.hash)


def _readable(name: str, value: object) -> None:
    """Refuses text that would take forever to read as a number."""
    good = not isinstance(value, str) or _AMOUNT.fullmatch(value) is not None
    checks.require(good, "a short number such as 0.5, 1/3 or 1e-6", **{name: value if good else str(value)[:60]})


def _short(value: Fraction, name: str) -> Fraction:
    value = _plain(value)
    good = Fraction(1, 10**9) <= value <= 10**9 or value == 0
    checks.require(good and value.denominator < 10**30, "between 1e-09 and 1e+09", **{name: str(value)[:40]})
    return value


def _plain(value: Amount) -> Fraction:
    """The same rational, made of Python's own whole numbers: those of another library can wrap around."""
    exactly = Fraction(value)
    return Fraction(int(exactly.numerator), int(exactly.denominator))
