"""From exact sums to a release: the guarantee, the checks that can still refuse, the one way out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sabun.errors import DataError, ParameterError
from sabun.privacy.guarantee import Guarantee
from sabun.privacy.noise import Coin
from sabun.regression.contribution import KIND
from sabun.regression.moments import Moments
from sabun.regression.perturbation import perturbed_minimiser
from sabun.regression.printed import printed_estimate, warning_of
from sabun.regression.study import STATISTICS, Study
from sabun.regression.sufficient import add_noise, noise_level
from sabun.release import Release, publish

if TYPE_CHECKING:
    from sabun.ledger import Ledger

__all__ = ["guarantee_of", "release_moments", "request_key"]

_NAMES = {
    "ssp-gauss": "discrete Gaussian noise on sums of products",
    "ssp-laplace": "spherical Laplace noise on sums of products",
    "objpert": "objective perturbation over a ball, rounded to a grid",
    "paper": "eq. (8) of the paper as printed",
}


def guarantee_of(study: Study) -> Guarantee:
    """The promise about one organisation's release."""
    rows = "one row" if study.records_per_person == 1 else f"{study.records_per_person} rows"
    assumptions = [
        f"each {study.unit} has at most {rows} in the organisation's table",
        f"a {study.unit} in the tables of several organisations gets the sum of their epsilons",
        "bounds, radius and all other terms of the study were chosen without looking at the data",
    ]
    if study.relation == "replace-one":
        assumptions.append("the number of rows is public")
    if study.mechanism == "paper":
        assumptions.append(warning_of(study).rstrip("."))
    broken = study.mechanism == "paper"
    return Guarantee(
        epsilon=math.inf if broken else Fraction(study.epsilon),
        delta=Fraction(0) if broken else Fraction(study.delta or 0),
        relation=study.relation,
        unit=study.unit,
        mechanism=_NAMES[study.mechanism],
        assumptions=tuple(assumptions),
    )


def request_key(study: Study, organisation: str | None) -> str | None:
    """The idempotency key of an organisation's release in a study; None outside a study."""
    return None if study.name is None or organisation is None else f"regression {study.hash} {organisation}"[:200]


def release_moments(
    study: Study, moments: Moments, *, coin: Coin, organisation: str | None = None, ledger: Ledger | None = None
) -> Release:
    """Charges the ledger, adds the noise, returns the release.

    In a study, the ledger returns the identical bytes when the same organisation asks again; nothing is charged then.

    Raises:
        DataError: There are no rows although their number is public.
        ParameterError: delta is too large for so many rows.
        BudgetExceeded: The ledger refuses; nothing was released, nothing was charged.
    """
    _check_rows(study, moments)
    if study.mechanism in STATISTICS:
        noise_level(study)
    draws = {"objpert": perturbed_minimiser, "paper": printed_estimate}
    mechanism = draws.get(study.mechanism, add_noise)

    def draw() -> Mapping[str, Any]:
        return {"organisation": organisation, **mechanism(study, moments, coin)}

    return publish(
        kind=KIND + study.mechanism,
        guarantee=guarantee_of(study),
        parameters={"study": study.to_dict(), "study_hash": study.hash, "organisation": organisation},
        draw=draw,
        ledger=ledger,
        coin=coin,
        key=None if ledger is None else request_key(study, organisation),
        schema_hash=study.features.hash,
        notes=(warning_of(study),) if study.mechanism == "paper" else (),
    )


def _check_rows(study: Study, moments: Moments) -> None:
    """Refusals that depend on the number of rows, which is public exactly under replace-one."""
    if study.relation != "replace-one":
        return
    if moments.rows == 0:
        raise DataError("the table must have at least one row; it has none.")
    if study.mechanism == "ssp-gauss" and Fraction(study.delta or 0) * moments.rows >= 1:
        raise ParameterError(
            f"delta must be below 1 / (number of rows); got {float(study.delta or 0):g}. "
            "Choose a smaller one before the study begins."
        )
