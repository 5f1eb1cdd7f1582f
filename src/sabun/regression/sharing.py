"""How the method `staged` shares its budget: lengths of rows, first sums, residual sums; from public numbers alone.

Notation: Gaussian mechanisms whose statistics move by at most d_i and whose noise has the variance V_i compose to mu with
mu**2 = sum d_i**2 / V_i, however each depends on the answers before it. mu is the largest for which the analytic Gaussian
mechanism promises (epsilon, delta). Variances are in squared units of the released whole numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.errors import InternalError
from sabun.privacy.amounts import ratio
from sabun.privacy.calibration import analytic_gaussian_sigma
from sabun.privacy.events import Gaussian
from sabun.privacy.pricing import Price
from sabun.regression.design import UNIT, Design
from sabun.regression.sensitivity import length_reach, residual_l2_squared, sufficient_l2_squared
from sabun.regression.stages import RADII, SHARE, radius_of
from sabun.regression.study import Study

__all__ = [
    "QUERIES",
    "Shares",
    "plain_radius",
    "released_shares",
    "round_terms",
    "shares_of",
    "staged_price",
    "undivided_variance",
]

QUERIES = 4
"""So many lengths are asked for: a bisection of the ladder of radii."""

_FIRST = Fraction(50, 97)
"""Which share of what is left the first sums have, where residuals are released too."""
_GRID = UNIT**2
_RADII = ((Fraction(3, 100), 6), (Fraction(10, 100), 4))
"""Which share of the budget the radius is chosen with: the first for which so many deviations of a length fit into the rows."""
_LEAN = 1.5
"""A radius counts as filled when a length misses it by up to so many deviations: too long costs little, too short much."""
_SHORTEST = 8
"""Without a constant, the last step of the ladder that may be chosen: a sixteenth of the longest row. Rare long rows may be all
that tells a coefficient, and they count down to 1/256."""
_SPARE = 1000
"""The radius is a step longer than rows fill where each coefficient has so many rows times mu**2, two where it has twice."""
_CLEAR = 12
"""Residuals are released where each coefficient has so many rows, in standard deviations of mu = 1 noise: rows times mu."""
_MOST_NOISE = 2.0**55
_NOTHING = Fraction(0)
_STEPS = 1000
"""A round promises a whole number of this part of epsilon."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Variances of the noise.

    Args:
        budget: mu**2.
        radius: Which share of it the radius is chosen with; 0 where it is not.
        length: Of each question about lengths; None where the radius is not chosen.
        first: On the diagonal of A and on c.
        second: On the sums of residuals; None where the first sums are all there is.
        back: By how many steps the radius is longer than the one that rows fill.
        last: The shortest step of the ladder that may be chosen.
        leans: Whether a radius counts as filled that noise may have made seem too long.
    """

    budget: Fraction
    radius: Fraction
    length: Fraction | None
    first: Fraction
    second: Fraction | None
    back: int = 0
    last: int = RADII - 1
    leans: bool = True

    @property
    def lean(self) -> int:
        """By how much a noisy length may fall short of its threshold, in units of 1 / SHARE."""
        return round(_LEAN * math.sqrt(self.length)) if self.leans and self.length is not None else 0


@functools.lru_cache(maxsize=256)
def shares_of(study: Study, rows: int | None) -> Shares:
    """How the budget of a study is shared by a table.

    Args:
        study: Its terms.
        rows: How many rows the table has, where that is public; None where it is not.

    Raises:
        ParameterError: The noise would not fit into 64-bit whole numbers.
    """
    budget, people = _budget(*_amounts(study)), int(study.records_per_person)
    each = math.sqrt(QUERIES * _moved(study.relation, people)[0] / budget)
    shares = (share for share, many in _RADII if rows is None or many * each <= SHARE * rows * math.sqrt(share))
    radius = next(shares, _NOTHING) if study.clip_radius is None else _NOTHING
    # Where noise hides the first model, residuals around it are no smaller than targets: one stage then has all of the budget.
    twice = rows is None or rows**2 * budget >= (_CLEAR * study.width * people) ** 2
    whole = replace(_shared(study, radius, twice), back=_back(study.width, rows, budget / people**2))
    # Short rows hardly ask for a shorter radius without a constant: what noise forgives there would end at the longest.
    return whole if study.fit_intercept else replace(whole, last=_SHORTEST, leans=False)


def _back(width: int, rows: int | None, budget: Fraction) -> int:
    """Weights make another line the best one where none is true. Noise that is small beside sampling may as well be larger."""
    spare = Fraction(0) if rows is None else rows * budget / (_SPARE * width)
    return min(math.floor(spare).bit_length(), RADII - 1)


def released_shares(study: Study, value: Mapping[str, Any]) -> Shares:
    """How the budget of a release was shared, as its numbers show; rules of another version may have decided it."""
    return _released(study, value["rows"], value["radius"] is not None, value.get("start") is not None)


@functools.lru_cache(maxsize=256)
def _released(study: Study, rows: int | None, chosen: bool, twice: bool) -> Shares:
    return _shared(study, shares_of(study, rows).radius if chosen else _NOTHING, twice)


def _shared(study: Study, radius: Fraction, twice: bool) -> Shares:
    rounds, people = study.method == "rounds", int(study.records_per_person)
    return _shares(study.relation, people, *_amounts(study), radius, twice or rounds, rounds)


@functools.lru_cache(maxsize=256, typed=True)
def _shares(
    relation: str, people: int, epsilon: Fraction, delta: Fraction, radius: Fraction, twice: bool, rounds: bool
) -> Shares:
    budget, moved = _budget(epsilon, delta), _moved(relation, people)
    left = budget * (1 - radius)
    first = left * (_FIRST if twice else 1)
    if rounds:
        each = _budget(*_of_a_round(epsilon, delta))
        first, left = each - budget * radius, 2 * each - budget * radius
    shares = Shares(
        budget=budget,
        radius=radius,
        length=_up(QUERIES * moved[0] / (radius * budget)) if radius else None,
        first=_up(moved[1] / first),
        second=_up(moved[2] / (left - first)) if twice else None,
    )
    spent = _spent(moved, shares)
    if sum(spent) > budget or (rounds and max(spent[0] + spent[1], spent[2]) > each):  # proof: within-budget
        raise InternalError("a budget was shared out more than once.")
    advice = "The noise would not fit into 64-bit numbers."
    good = math.sqrt(max(shares.first, shares.second or 0) * 16) < _MOST_NOISE
    checks.require(good, "larger for so many records per person", advice, epsilon=str(epsilon))
    return shares


def round_terms(study: Study) -> tuple[Fraction, Fraction]:
    """Epsilon and delta that each round of `rounds` promises by itself; both together promise those of the study."""
    return _of_a_round(*_amounts(study))


@functools.lru_cache(maxsize=256)
def staged_price(study: Study, rows: int | None, *, second: bool = False) -> Price:
    """What a ledger with a Rényi order may book for a release: all of `staged`, or one round of `rounds`."""
    spent = _spent(_moved(study.relation, int(study.records_per_person)), shares_of(study, rows))
    if study.method == "rounds":
        spent = (Fraction(0), Fraction(0), spent[2]) if second else (*spent[:2], Fraction(0))
    events = [Gaussian(noise_multiplier=_multiplier(part)) for part in spent if part]  # proof: price
    return Price(events=tuple(events), relation=study.relation)


def undivided_variance(study: Study) -> Fraction:
    """Of the noise on the diagonal of A if first sums over whole rows had all of the budget; it depends on no table."""
    return _moved(study.relation, int(study.records_per_person))[1] / _budget(*_amounts(study))


def plain_radius(design: Design, clip_radius: object) -> float:
    """The radius of a release that names none: the study's own, or (in earlier files) of rows that fill their bounds evenly."""
    if clip_radius is not None:
        return float(clip_radius)  # type: ignore[arg-type]
    features = design.width - design.intercept
    return min(math.sqrt(design.intercept + features / 3), radius_of(design, 0))


def _amounts(study: Study) -> tuple[Fraction, Fraction]:
    return Fraction(study.epsilon), Fraction(study.delta or 0)


@functools.lru_cache(maxsize=256)
def _of_a_round(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """The largest part of epsilon, with half of delta, for which two rounds keep within mu**2."""
    whole, low, high = _budget(epsilon, delta), 1, _STEPS
    while high - low > 1:
        middle = (low + high) // 2
        fits = 2 * _budget(epsilon * middle / _STEPS, delta / 2) <= whole  # proof: two-rounds
        low, high = (middle, high) if fits else (low, middle)
    return epsilon * low / _STEPS, delta / 2


@functools.lru_cache(maxsize=256)
def _budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """mu**2, rounded down."""
    sigma = ratio(analytic_gaussian_sigma(l2=1.0, epsilon=epsilon, delta=delta))
    return Fraction(math.floor(2**80 / sigma**2), 2**80)  # proof: mu


def _moved(relation: str, people: int) -> tuple[Fraction, Fraction, Fraction]:
    """Squared sensitivities of one length, of the first sums, of the residual sums, in their units."""
    length = (length_reach(relation, records_per_person=people) * SHARE) ** 2
    first = sufficient_l2_squared(relation, records_per_person=people) * _GRID**2
    return length, first, residual_l2_squared(relation, records_per_person=people) * _GRID**2


def _spent(moved: tuple[Fraction, Fraction, Fraction], shares: Shares) -> tuple[Fraction, Fraction, Fraction]:
    """The part of mu**2 that each stage takes."""
    asked = QUERIES * moved[0] / shares.length if shares.length else Fraction(0)
    return asked, moved[1] / shares.first, moved[2] / shares.second if shares.second else Fraction(0)


def _up(variance: Fraction) -> Fraction:
    return Fraction(math.ceil(variance * 2**20), 2**20)


def _multiplier(spent: Fraction) -> Fraction:
    """1 / mu for a part of mu**2, rounded down."""
    return Fraction(math.isqrt(math.floor(2**120 / spent)), 2**60)
