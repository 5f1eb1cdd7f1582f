"""From exact sums to a release: the checks that can still refuse, the one way out."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from sabun.asking import Ask
from sabun.errors import DataError, ParameterError
from sabun.ledger.keys import LONGEST_KEY
from sabun.records import Persons
from sabun.records.persons import facts_of
from sabun.regression.contribution import KIND
from sabun.regression.paper import printed_estimate, warning_of
from sabun.regression.perturbation import perturbed_minimiser
from sabun.regression.promise import release_promise
from sabun.regression.second_round import Second, add_second_noise
from sabun.regression.sharing import staged_price
from sabun.regression.staged import Reading, add_staged_noise
from sabun.regression.statistic import Totals
from sabun.regression.study import STAGED, STATISTICS, Study
from sabun.regression.sufficient import add_noise, noise_level, price_of
from sabun.release import Release
from sabun.release.tree import Frozen

__all__ = ["release_second", "release_totals", "request_key"]

_DIGEST = "sha256:"
_PUBLISHED = (
    "Published, all under the one promise: the radius that rows were weighted to, noisy sums of products, and (where rows are "
    "enough) the model and the level that residuals were taken around, noisy sums of residuals."
)


_FIRST = (
    "Published in this first of two rounds: the radius that rows were weighted to and noisy sums of products. The second round "
    "releases noisy sums of residuals around the model that all organisations' first rounds give."
)
_SECOND = (
    "Published in this second of two rounds: noisy sums of residuals around a public model. The first round was "
    "released before; combine both."
)


def request_key(study: Study, organisation: str | None, *, second: bool = False) -> str | None:
    """The idempotency key of an organisation's release in a study; None outside a study.

    A name too long for a key stands in it by its digest: cut short, two organisations would share a key. So does one that looks
    like such a digest.
    """
    if study.name is None or organisation is None:
        return None
    room = "regression-2" if second else "regression"
    whole = f"{room} {study.hash} {organisation}"
    digest = hashlib.sha256(organisation.encode("utf-8", "surrogatepass")).hexdigest()
    short = len(whole) <= LONGEST_KEY and not organisation.startswith(_DIGEST)
    return whole if short else f"{room} {study.hash} {_DIGEST}{digest}"


def release_totals(
    study: Study, totals: Totals | Reading, ask: Ask, *, organisation: str | None = None, persons: Persons | None = None
) -> Release:
    """Charges the ledger, adds the noise, returns the release.

    In a study, the ledger returns the identical bytes when the same organisation asks again; nothing is charged then.

    Raises:
        DataError: There are no rows although their number is public.
        ParameterError: delta is too large for so many rows.
        BudgetExceeded: The ledger refuses; nothing was released, nothing was charged.
    """
    rows = totals.state.rows if isinstance(totals, Reading) else totals.rows
    _check_rows(study, rows)
    if study.method in STATISTICS:
        noise_level(study)
    public = rows if study.relation == "replace-one" else None
    price = staged_price(study, public) if study.method in STAGED else price_of(study)
    draws = {**dict.fromkeys(STAGED, add_staged_noise), "objpert": perturbed_minimiser, "paper": printed_estimate}
    mechanism: Callable[..., Mapping[str, Any]] = draws.get(study.method, add_noise)  # type: ignore[assignment]

    def draw() -> Mapping[str, Any]:
        return {"organisation": organisation, **mechanism(study, totals, ask.coin)}

    return ask.answer(
        draw,
        kind=KIND + study.method,
        promise=release_promise(study, persons),
        facts=_with(_terms(study, organisation, 1 if study.method == "rounds" else None), facts_of(persons)),
        subject=(study.target.name, *study.features.names),
        schema=study.features,
        notes=_notes(study),
        price=price,
    )


def release_second(second: Second, ask: Ask, *, organisation: str | None = None) -> Release:
    """Charges the ledger for the second round, adds the noise, returns the release.

    Raises:
        BudgetExceeded: The ledger refuses; nothing was released, nothing was charged.
    """
    study = second.study

    def draw() -> Mapping[str, Any]:
        return {"organisation": organisation, **add_second_noise(second, ask.coin)}

    return ask.answer(
        draw,
        kind=KIND + study.method,
        promise=release_promise(study, second.persons),
        facts=_with(_terms(study, organisation, 2), second.facts | facts_of(second.persons)),
        subject=(study.target.name, *study.features.names),
        schema=study.features,
        notes=(_SECOND,),
        price=staged_price(study, second.first.value["rows"], second=True),
    )


@functools.lru_cache(maxsize=256)
def _terms(study: Study, organisation: str | None, number: int | None) -> Frozen:
    """What a release says of its study; `number` is that of the round, where there are two."""
    terms = {"study": study.to_dict(), "study_hash": study.hash, "organisation": organisation}
    return Frozen(terms if number is None else terms | {"round": number}, where="parameters")


def _with(facts: Frozen, more: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**facts, **more} if more else facts


def _notes(study: Study) -> tuple[str, ...]:
    if study.method == "paper":
        return (warning_of(study),)
    return {"staged": (_PUBLISHED,), "rounds": (_FIRST,)}.get(study.method, ())


def _check_rows(study: Study, rows: int) -> None:
    """Refusals that depend on the number of rows, which is public exactly under replace-one."""
    if study.relation != "replace-one":
        return
    if rows == 0:
        raise DataError("the table must have at least one row; it has none.")
    if study.method in (*STAGED, "ssp-gauss") and Fraction(study.delta or 0) * rows >= 1:
        raise ParameterError(
            f"delta must be below 1 / (number of rows); got {float(study.delta or 0):g}. "
            "Choose a smaller one before the study begins."
        )
