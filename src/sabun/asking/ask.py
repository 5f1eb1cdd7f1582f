"""What every question to a private table settles once: epsilon, delta, relation, unit, coin, ledger, retry key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

from sklearn.base import BaseEstimator

from sabun import checks
from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.privacy.amounts import AmountLike, exact, exact_positive
from sabun.privacy.guarantee import Guarantee
from sabun.privacy.noise import Coin, coin_for
from sabun.privacy.pricing import Price
from sabun.records import Schema
from sabun.release import Release, publish, refuse_seeded

__all__ = ["RELATIONS", "Ask", "Question"]

_TERMS = ("epsilon", "delta", "relation", "ledger", "retry_key", "random_state")

RELATIONS = ("replace-one", "add-remove")
"""The relations between tables, the usual one first."""


@final
@dataclass(frozen=True, kw_only=True)
class Ask:
    """The terms of one question, settled; made anew for each fit, since a seeded coin starts again.

    Args:
        epsilon: Privacy loss of the release, exact.
        delta: The same; None where the caller left it to the method.
        relation: Between which tables the promise holds.
        unit: Whom it protects.
        coin: What the noise is drawn from.
        ledger: The book to charge, or None.
        retry_key: Name under which a repeated question gets the same bytes for free.
    """

    epsilon: Fraction
    delta: Fraction | None
    relation: str
    unit: str
    coin: Coin
    ledger: Ledger | None
    retry_key: str | None = None

    @classmethod
    def of(
        cls,
        *,
        epsilon: AmountLike | None,
        delta: AmountLike | None = None,
        relation: str | None = None,
        ledger: Ledger | None = None,
        retry_key: str | None = None,
        random_state: int | None = None,
        relations: Sequence[str] = RELATIONS,
    ) -> Self:
        """Checks the terms; the ledger's relation and unit hold unless something else is said.

        Args:
            epsilon: Always required.
            delta: None leaves it to the method.
            relation: None takes the ledger's, or the first of `relations` without one.
            ledger: The book to charge, or None.
            retry_key: Only with a ledger.
            random_state: None for a private result; a whole number simulates.
            relations: Those the method can promise, its usual one first.

        Raises:
            ParameterError: A term breaks its rule.
        """
        checks.require(epsilon is not None, "given", "It has no default.", epsilon=epsilon)
        amount = exact_positive(epsilon, name="epsilon")  # type: ignore[arg-type]
        slack = None if delta is None else _slack(delta)
        checks.require(ledger is None or isinstance(ledger, Ledger), "a Ledger or None", ledger=ledger)
        stated = _relation(relation, ledger, relations)
        if retry_key is not None:
            checks.text(retry_key=retry_key)
        return cls(
            epsilon=amount,
            delta=slack,
            relation=stated,
            unit="record" if ledger is None else ledger.unit,
            coin=coin_for(random_state),
            ledger=ledger,
            retry_key=retry_key,
        )

    def must_be_payable(self) -> None:
        """Refuses a seeded coin with a ledger, before any data is read.

        Raises:
            SimulatedError: The result would not be private.
        """
        refuse_seeded(self.coin, self.ledger)

    def guarantee(
        self, mechanism: str, *, assumptions: Sequence[str] = (), epsilon: Fraction | float | None = None, **more: Any
    ) -> Guarantee:
        """A promise on these terms; `epsilon` where the method promises another one than was asked for."""
        terms: dict[str, Any] = {"delta": self.delta or Fraction(0), "relation": self.relation, "unit": self.unit} | more
        promised = self.epsilon if epsilon is None else epsilon
        return Guarantee(epsilon=promised, mechanism=mechanism, assumptions=tuple(assumptions), **terms)

    def answer(
        self,
        draw: Callable[[], Mapping[str, Any]],
        *,
        kind: str,
        promise: Guarantee,
        facts: Mapping[str, Any],
        subject: Sequence[str] = (),
        schema: Schema | None = None,
        notes: tuple[str, ...] = (),
        price: Price | None = None,
        apart: str = "",
    ) -> Release:
        """Reserves the charge, draws, commits: the single door out; see `sabun.release.publish`.

        Args:
            draw: Computes the noisy value; called at most once, after the charge.
            kind: Room and question, such as "outliers.count".
            promise: What `draw` keeps.
            facts: The public choices behind it; they are published, and a retry key is tied to them.
            subject: Public names of the columns it is about.
            schema: The public schema, whose hash goes into the provenance.
            notes: Sentences for the reader.
            price: What `draw` runs, where more is known than (epsilon, delta); see `sabun.privacy.Price`.
            apart: What else is public and tells this question from others, such as a digest of a public table.
        """
        return publish(
            kind=kind,
            guarantee=promise,
            parameters=facts,
            draw=draw,
            ledger=self.ledger,
            coin=self.coin,
            key=self.retry_key,
            subject=subject,
            schema_hash=None if schema is None else schema.hash,
            notes=notes,
            price=price,
            apart=apart,
        )


class Question(BaseEstimator):  # type: ignore[misc]
    """A public class that charges a ledger: keyword-only parameters, checked at construction and again at fit.

    A subclass writes its parameters down and says between which tables it can promise anything.
    """

    relations: ClassVar[Sequence[str]] = RELATIONS
    """Those the method can promise, its usual one first."""

    guarantee_: Guarantee
    release_: Release

    def _ask(self, **instead: Any) -> Ask:
        """The terms among the parameters, settled."""
        given: dict[str, Any] = {name: getattr(self, name, None) for name in _TERMS}
        return Ask.of(**(given | {"relations": self.relations} | instead))

    def __sklearn_tags__(self) -> Any:
        """Missing cells are taken, since no cell may raise; answers differ from one call to the next."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = getattr(self, "random_state", None) is None
        return tags

    def _learned(self, release: Release) -> Self:
        """Takes a release over; what a subclass learns from it, it reads off `release_`."""
        self.release_, self.guarantee_ = release, release.guarantee
        return self


def _relation(wanted: str | None, ledger: Ledger | None, possible: Sequence[str]) -> str:
    if wanted is None and ledger is not None and ledger.relation not in possible:
        raise ParameterError(
            f"ledger must be kept for {' or '.join(possible)} neighbours, the only ones this promise is about; "
            f"{ledger.name!r} is kept for {ledger.relation}. Charge another ledger."
        )
    stated = wanted or (possible[0] if ledger is None else ledger.relation)
    checks.one_of(possible, relation=stated)
    return stated


def _slack(delta: AmountLike) -> Fraction:
    read = exact(delta, name="delta")
    checks.require(0 <= read < 1, "at least 0 and below 1", delta=delta)
    return Fraction(read)
