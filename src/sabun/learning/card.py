"""The privacy card: what a model promises, with the numbers to recompute it; JSON, beside every exported model.

A card holds public facts only: no seeds, no keys, no counts of private rows.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final
from warnings import warn

from sabun.errors import IncompatibleGuarantees, ReleaseError
from sabun.foreign import parse_json
from sabun.learning.recompute import recompute, recompute_alone
from sabun.privacy import Guarantee, plain
from sabun.privacy.guarantee import LARGE_EPSILON

__all__ = ["FORMAT", "LARGEST_CARD", "Card", "surely", "warn_of_delta", "warnings_for"]

FORMAT = "sabun-privacy-card-1"
LARGEST_CARD = 1 << 24
"""Bytes: a card has the names of columns and classes, never the weights."""

_COVERED = ("every weight and bias, together", "anything computed from the model without looking at the records again")
_NOT_COVERED = (
    "the choice of architecture and settings, if it was made by looking at the data",
    "other training runs on the same records, unless they were charged to the same ledger",
    "scores measured on private records",
    "scaling or selection of columns done on the data before training",
)


_UNKNOWN = 1000
"""Where nobody may know the number of records, they are taken to be as many."""

_REPLACE_ONLY = ("objective", "weight-noise", "noisy-updates")


@final
@dataclass(frozen=True, kw_only=True)
class Card:
    """One model's card.

    Args:
        guarantee: The promise.
        account: The numbers it follows from.
        model: Shape, classes, features.
        parameters: Public settings of the run.
        sha256: Digest of the model file.
        software: Names and versions.
        randomness: Where the noise came from.
        warnings: Sentences for the reader.
    """

    guarantee: Guarantee
    account: Mapping[str, Any]
    model: Mapping[str, Any]
    parameters: Mapping[str, Any]
    sha256: str
    software: Mapping[str, str]
    randomness: str
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, with a digest of all of them: it finds accidents, not forgers; those a signature finds."""
        facts = self._facts()
        return facts | {"card_sha256": hashlib.sha256(_text(facts)).hexdigest()}

    def _facts(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "model_sha256": self.sha256,
            "guarantee": self.guarantee.to_dict(),
            "equivalent": _equivalent(self.guarantee),
            "account": dict(self.account),
            "accountant": dict(self.software),
            "parameters": dict(self.parameters),
            "model": dict(self.model),
            "covered": list(_COVERED),
            "not_covered": list(_NOT_COVERED),
            "randomness": self.randomness,
            "warnings": list(self.warnings),
        }

    def to_json(self) -> bytes:
        """Readable JSON; equal cards give equal bytes."""
        return _text(self.to_dict())

    @classmethod
    def from_json(cls, content: bytes) -> Card:
        """Reads what `to_json` wrote.

        Raises:
            ReleaseError: It is no card, or a field is missing or of the wrong kind.
        """
        try:
            record = parse_json(content, what="a privacy card", error=ReleaseError)
            if record["format"] != FORMAT:
                raise KeyError
            card = cls(
                guarantee=Guarantee.from_dict(record["guarantee"]),
                account=dict(record["account"]),
                model=dict(record["model"]),
                parameters=dict(record["parameters"]),
                sha256=str(record["model_sha256"]),
                software={str(name): str(version) for name, version in record["accountant"].items()},
                randomness=str(record["randomness"]),
                warnings=tuple(map(str, record["warnings"])),
            )
            same = card.to_json() == content
            str(card)  # whoever reads it next must be able to show it
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError):
            raise ReleaseError(f"a privacy card must be JSON of format {FORMAT!r} with all its fields; this is not.") from None
        if not same:
            raise ReleaseError("a privacy card must be as it was written; this one was edited or reformatted.")
        return card

    def check(self, model_file: bytes) -> str:
        """Recomputes the promise; returns a sentence that says what was found.

        Raises:
            ReleaseError: The model file is another, or the numbers do not support the promise.
        """
        if hashlib.sha256(model_file).hexdigest() != self.sha256:
            raise ReleaseError("the model file must be the one on the card; its SHA-256 differs. It was changed or replaced.")
        try:
            epsilon, delta = recompute(self.account)
            alone = None if self.guarantee.scope == "joint" else recompute_alone(self.account)
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError):
            raise ReleaseError("the card's account must hold numbers that prove its promise; it cannot be read.") from None
        sizes = _sizes(self.model)
        weights = sum((a + 1) * b for a, b in itertools.pairwise(sizes)) if sizes else self.account.get("n_weights")
        if self.account.get("n_weights", weights) != weights:
            raise ReleaseError("the card's account must be about all weights of the model; it is about another number of them.")
        if self.account.get("rule") in _REPLACE_ONLY and self.guarantee.relation != "replace-one":
            raise ReleaseError("the card's account must be about the neighbours that its promise names; it is about others.")
        if self.account.get("relation", self.guarantee.relation) != self.guarantee.relation:
            raise ReleaseError("the card's account must be about the neighbours that its promise names; it is about others.")
        promised_epsilon, promised_delta = self.guarantee.cost
        if epsilon > promised_epsilon or delta > promised_delta:
            raise ReleaseError(
                f"the card must promise no less than its numbers prove: epsilon {plain(epsilon)}, delta {plain(delta)}; "
                f"it claims epsilon {plain(promised_epsilon)}, delta {plain(promised_delta)}."
            )
        if alone is not None and alone > self.guarantee.epsilon:
            raise ReleaseError(
                f"the card must promise no less than its numbers prove: epsilon {plain(alone)} for each weight by itself; "
                f"it claims {plain(self.guarantee.epsilon)}."
            )
        return f"recomputed joint epsilon {plain(epsilon)} at delta {plain(delta)}: not above the promise"

    def __str__(self) -> str:
        lines = [f"Privacy card of {_named(self.model)}."]
        lines += [f"Promise: {self.guarantee}", f"Mechanism: {self.guarantee.mechanism}.", f"Randomness: {self.randomness}."]
        lines += ["Covered: " + "; ".join(_COVERED) + ".", "Not covered: " + "; ".join(_NOT_COVERED) + "."]
        lines += [f"Warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


def _text(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _named(model: Mapping[str, Any]) -> str:
    if "module" in model:
        return f"a torch module {model['module']} with {model['parameters']} parameters"
    return f"a model with sizes {'-'.join(map(str, _sizes(model)))}, {len(model['classes'])} classes"


def _sizes(model: Mapping[str, Any]) -> list[int]:
    """The sizes of a model's layers; none for a torch module.

    Raises:
        ReleaseError: They are no whole numbers.
    """
    sizes = model.get("sizes")
    if not isinstance(sizes, list) or not all(type(size) is int and size > 0 for size in sizes):
        raise ReleaseError("the sizes on a card must be a list of whole numbers above 0; they are not. Ask for it again.")
    return sizes


def warnings_for(guarantee: Guarantee, n_records: int | None, *, noisy: bool = False) -> tuple[str, ...]:
    """What a reader of a card with that promise must be told.

    Args:
        guarantee: The promise.
        n_records: The number of records, if anybody may know it: declared, or surely so many by a noisy count.
        noisy: Whether it comes from a noisy count that was paid for; see `surely`.
    """
    epsilon, delta = guarantee.cost
    found = []
    if epsilon > LARGE_EPSILON:
        found.append(f"joint epsilon {plain(epsilon)} is above {LARGE_EPSILON}: such a promise means little to a single person")
    if n_records is None and delta * _UNKNOWN > 1:
        found.append(
            f"delta {plain(delta)} is not below one over the number of records in a table of {math.ceil(1 / delta)} or more: "
            "to publish a whole record in the clear would keep such a promise"
        )
    about = f"at least {n_records}, by a noisy count" if noisy else f"{n_records}"
    if n_records is not None and delta * n_records >= 1:
        found.append(
            f"delta {plain(delta)} is not below one over the number of records ({about}): "
            "to publish a whole record in the clear would keep such a promise"
        )
    elif n_records is not None and delta * 10 * n_records > 1:
        found.append(
            f"delta {plain(delta)} is above a tenth of one over the number of records ({about}): "
            "with such a probability a record may be exposed entirely"
        )
    return tuple(found)


def _equivalent(guarantee: Guarantee) -> dict[str, Any]:
    """The same promise in the other relation, where there is a sound way."""
    try:
        other = guarantee.as_replace_one()
    except IncompatibleGuarantees:
        return {}
    epsilon, delta = other.cost
    return {"replace-one": {"epsilon": str(epsilon), "delta": str(delta)}}


def surely(noisy_count: int | None, count_epsilon: Fraction) -> int | None:
    """How many records there are at least, but for one noisy count in a thousand; None where it does not tell.

    The noise is discrete Laplace of scale 1 / count_epsilon: it is t or more with a probability below exp(-t count_epsilon).
    """
    if noisy_count is None:
        return None
    least = noisy_count - math.ceil(math.log(1000) / float(count_epsilon))
    return least if least >= 1 else None


def warn_of_delta(guarantee: Guarantee, least: int | None, *, n_public: int | None) -> None:
    """Warns the caller of the caller where delta would allow to publish a whole record: by what a noisy count says `surely`, or
    where it says nothing by its size alone. Where the number of records is public it was refused before."""
    delta = guarantee.cost[1]
    large = delta * _UNKNOWN > 1 if least is None else delta * least >= 1
    if n_public is None and large:
        *_, words = warnings_for(guarantee, least, noisy=least is not None)
        warn(f"{words}. Choose a smaller delta.", stacklevel=3)
