"""What one organisation's release promises, from the study alone."""

from __future__ import annotations

import math
from fractions import Fraction

from sabun.privacy.guarantee import Guarantee
from sabun.records import Persons
from sabun.regression.paper import warning_of
from sabun.regression.study import Study

__all__ = ["guarantee_of"]

_NAMES = {
    "staged": "rounded Gaussian noise on sums of weighted rows, then of residuals",
    "ssp-gauss": "discrete Gaussian noise on sums of products",
    "ssp-laplace": "spherical Laplace noise on sums of products",
    "objpert": "objective perturbation over a ball, rounded to a grid",
    "paper": "eq. (8) of the paper as printed",
}


def guarantee_of(study: Study, persons: Persons | None = None) -> Guarantee:
    """The promise about one organisation's release, whose rows may have been made into persons first."""
    rows = "one row" if study.records_per_person == 1 else f"{study.records_per_person} rows"
    own = f"each {study.unit} has at most {rows} in the organisation's table"
    assumptions = [
        *((own,) if persons is None else persons.assumptions),
        f"a {study.unit} in the tables of several organisations gets the sum of their epsilons",
        "bounds, radius and all other terms of the study were chosen without looking at the data",
    ]
    if study.relation == "replace-one":
        assumptions.append(f"the number of {'rows' if persons is None else 'persons'} is public")
        if study.records_per_person > 1:
            assumptions.append(f"how many rows one {study.unit} has is not hidden: they are replaced by as many others")
    if study.method == "paper":
        assumptions.append(warning_of(study).rstrip("."))
    broken = study.method == "paper"
    return Guarantee(
        epsilon=math.inf if broken else Fraction(study.epsilon),
        delta=Fraction(0) if broken else Fraction(study.delta or 0),
        relation=study.relation,
        unit=study.unit,
        mechanism=_NAMES[study.method],
        assumptions=tuple(assumptions),
    )
