"""What one organisation's release promises, from the study alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sabun.errors import ParameterError
from sabun.privacy.amounts import plain
from sabun.privacy.guarantee import Guarantee
from sabun.records import Persons
from sabun.regression.paper import warning_of
from sabun.regression.sharing import round_terms
from sabun.regression.study import Study

__all__ = ["ONE_OF_TWO", "guarantee_of", "joint_promise", "release_promise"]

ONE_OF_TWO = "this is one of two rounds"
"""How the sentence begins by which the promise of one round speaks of the other."""

_NAMES = {
    "staged": "rounded Gaussian noise on sums of weighted rows, then of residuals",
    "rounds": "rounded Gaussian noise on sums of weighted rows, in a second round on sums of residuals",
    "ssp-gauss": "discrete Gaussian noise on sums of products",
    "ssp-laplace": "spherical Laplace noise on sums of products",
    "objpert": "objective perturbation over a ball, rounded to a grid",
    "paper": "eq. (8) of the paper as printed",
}


def guarantee_of(study: Study, persons: Persons | None = None) -> Guarantee:
    """The promise about all that one organisation releases in a study: one file, or two of `rounds` together.

    Its rows may have been made into persons first.
    """
    rows = "one row" if study.records_per_person == 1 else f"{study.records_per_person} rows"
    own = f"each {study.unit} has at most {rows} in the organisation's table"
    assumptions = [
        *((own,) if persons is None else persons.assumptions),
        f"a {study.unit} in the tables of several organisations gets the sum of their epsilons",
        "bounds, radius and all other terms of the study were chosen without looking at the data",
    ]
    if study.relation == "replace-one":
        assumptions.append("the number of rows is public" if persons is None else "the number of persons is public")
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


@functools.lru_cache(maxsize=256)
def release_promise(study: Study, persons: Persons | None = None) -> Guarantee:
    """The promise of one file: with `rounds` that of either round by itself, which is also what a ledger is charged."""
    whole = guarantee_of(study, persons)
    if study.method != "rounds":
        return whole
    epsilon, delta = round_terms(study)
    together = (
        f"{ONE_OF_TWO}, each with this promise; both together promise epsilon {plain(Fraction(study.epsilon))}, "
        f"delta {plain(Fraction(study.delta or 0))}, if each was released once"
    )
    return replace(
        whole,
        epsilon=epsilon,
        delta=delta,
        joint_epsilon=None,
        joint_delta=None,
        assumptions=(*whole.assumptions, together),
    )


def joint_promise(
    study: Study, organisations: Sequence[str], promises: Sequence[Guarantee], *, simulated: bool
) -> tuple[Guarantee, bool]:
    """What releases promise together, with whether it is known that different organisations made them.

    Raises:
        ParameterError: There is no promise.
        IncompatibleGuarantees: They protect different units or know different neighbours.
    """
    if not promises:
        raise ParameterError("a model to release must know the promises of its releases; it has none. Make it with combine.")
    first, *others = promises
    names = set(organisations)
    if len(names) == len(promises) and names <= set(study.organisations):
        # One study, so one promise: what it says about somebody who is in several tables stands among its assumptions.
        return replace(first, simulated=simulated), True
    return sum(others, first), not others
