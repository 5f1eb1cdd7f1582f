"""The regression paper's claims with what the run found. The paper has no experiments: these are ours.

Every number in a sentence here is computed from the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Literal, TypeAlias

from sabun.regression.evaluation import Cell
from sabun.regression.mirror import theory_tau
from sabun.telling.reproduction import Claim, Table

__all__ = ["claims", "default", "posterior_delta", "summary"]

_Cells: TypeAlias = Mapping[tuple[str, str], Sequence[Cell]]
_Verdict: TypeAlias = Literal["holds", "holds in part", "does not hold"]


def posterior_delta(epsilon: float) -> float:
    """A delta that one draw from a normal posterior at least has at epsilon: one feature, prior N(0, 1), noise N(0, 1).

    Neighbours: one record (1, 1), posterior N(1/2, 1/2), against (0, 0), posterior N(0, 1). The log ratio of their densities,
    theta**2/2 - theta + 1/4 - log(2)/2, has no bound.
    """
    wide, narrow = NormalDist(0.0, 1.0), NormalDist(0.5, math.sqrt(0.5))
    # Outside the two places where the log ratio is epsilon, the wide law is more than e**epsilon times as dense.
    root = math.sqrt(1 - 2 * (0.25 - math.log(2) / 2 - epsilon))
    below, above = 1 - root, 1 + root
    mass = [law.cdf(below) + law.cdf(2 * law.mean - above) for law in (wide, narrow)]
    return mass[0] - math.exp(epsilon) * mass[1]


def claims(cells: _Cells, *, eq8: Table, theorem: Table, organisations: int, zero: float) -> tuple[Claim, ...]:
    """What the paper says, in its order."""
    return (
        _narrow(cells),
        _posterior(),
        _release(eq8),
        _oracle(cells, organisations, zero),
        _theorem_three(theorem),
        _price(theorem),
        _helps(cells),
        _better(cells),
    )


def summary(cells: _Cells, *, theorem: Table) -> str:
    """What holds and what does not, in a few sentences."""
    helps, bound = _helps(cells), _theorem_three(theorem)
    return (
        f"The paper has no experiments; these are ours. Its release (8) is not private for any epsilon; {helps.found}. Its "
        "Theorem "
        f"3 {bound.verdict}: {bound.found}."
    )


def default(cells: _Cells) -> str:
    """What Sabun does instead, with how much less its error is."""
    pairs = _pairs(cells, "narrow", ("ssp-gauss", "pool"), ("objpert", "mirror"))
    ratios = sorted(theirs / ours for ours, theirs in pairs)
    return (
        "Each organisation releases noisy sums (in two stages, `staged`; measured here is `ssp-gauss`), which pool: a "
        "guarantee that holds, intervals, and a median "
        "relative "
        f"error {ratios[0]:.1f} to {ratios[-1]:,.0f} times smaller than mirror averaging's where each sees a narrow region."
    )


def _pairs(cells: _Cells, setting: str, one: tuple[str, str], other: tuple[str, str]) -> list[tuple[float, float]]:
    """Median errors of two ways in the same worlds, at every size and epsilon; a way is a mechanism and what is made of it."""
    both = zip(cells[setting, one[0]], cells[setting, other[0]], strict=True)
    return [(first.errors[one[1]], second.errors[other[1]]) for first, second in both]


def _won(pairs: Sequence[tuple[float, float]]) -> int:
    return sum(one < other for one, other in pairs)


def _narrow(cells: _Cells) -> Claim:
    pairs = _pairs(cells, "narrow", ("ssp-gauss", "all raw data"), ("ssp-gauss", "alone"))
    return Claim(
        text="where an organisation sees a narrow region, the others' data would make its model better",
        where="2.2",
        verdict="holds" if _won(pairs) == len(pairs) else "holds in part",
        found=f"with all raw data the error is {min(b / a for a, b in pairs):.0f} to {max(b / a for a, b in pairs):,.0f} times "
        "smaller than at home alone",
    )


def _posterior() -> Claim:
    found = posterior_delta(1.0)
    return Claim(
        text="with normal noise, one draw from the posterior is differentially private by itself [Wang 15]",
        where="3.1.1",
        verdict="holds in part",
        found=f"only on a bounded set of coefficients, as the cited work has it: without, one record needs delta {found:.2g} "
        "at "
        f"epsilon 1 and {posterior_delta(10.0):.1g} at epsilon 10 (R10)",
    )


def _release(eq8: Table) -> Claim:
    at = {row[0]: row for row in eq8.rows}
    return Claim(
        text="the estimate (8) is epsilon-differentially private",
        where="3.1.1, (8)",
        verdict="does not hold",
        found=f"for no epsilon: at the claimed epsilon 1, delta is at least {at[1.0][2]:.3g}; at delta 1e-6 its epsilon is "
        "at least "
        f"{at[1.0][4]:.3g}",
    )


def _oracle(cells: _Cells, organisations: int, zero: float) -> Claim:
    """Where all draw from one law: the inequality is about that of the home data, so it says nothing of narrow regions."""
    worst = 0.0
    for cell in cells["iid", "objpert"]:
        allowed = theory_tau(1.0) * math.log(organisations) / cell.rows / zero
        worst = max(worst, (cell.means["mirror"] - cell.means["best single"]) / allowed)
    return Claim(
        text="mirror averaging is worse than the best single estimate by at most tau log(M) / n0 on average",
        where="3.1.2, (9) and (10)",
        verdict="holds" if worst <= 1 else "does not hold",
        found=f"at most {100 * worst:.0f} % of what is allowed, over all settings with one law everywhere",
    )


def _theorem_three(theorem: Table) -> Claim:
    rows = [tuple(float(str(cell)) for cell in row) for row in theorem.rows]
    holds = all(row[6] <= row[4] for row in rows)
    idle = all(row[4] > row[5] for row in rows)
    return Claim(
        text="the risk of the aggregate is bounded by (13)",
        where="3.2, Theorem 3",
        verdict="holds" if holds else "does not hold",
        found=f"measured {rows[0][6]:.2g} against a bound of {rows[0][4]:.3g} at {rows[0][0]:,.0f} rows, {rows[-1][6]:.2g} "
        "against "
        f"{rows[-1][4]:.3g} at {rows[-1][0]:,.0f}; the bound is {'always' if idle else 'not always'} above "
        f"{rows[0][5]:.3g}, what answering zero costs",
    )


def _price(theorem: Table) -> Claim:
    first, last = (tuple(float(str(cell)) for cell in theorem.rows[place]) for place in (0, -1))
    more = math.log(last[0] / first[0])
    slope = math.log(last[7] / first[7]) / more
    return Claim(
        text="the price of privacy is O(M / (epsilon (n - n0)))",
        where="3.2, after Theorem 3",
        verdict="holds",
        found=f"as an upper bound, which is loose: the exact price falls like n to the power {slope:.2f}, not -1, and at "
        f"{first[0]:,.0f} rows is {first[2] / first[7]:,.0f} times smaller than the term in (13)",
    )


def _helps(cells: _Cells) -> Claim:
    iid = _pairs(cells, "iid", ("objpert", "mirror"), ("ssp-gauss", "alone"))
    narrow = _pairs(cells, "narrow", ("objpert", "mirror"), ("ssp-gauss", "alone"))
    won, of = _won(iid) + _won(narrow), len(iid) + len(narrow)
    verdict: _Verdict = "holds" if won == of else "holds in part" if won else "does not hold"
    return Claim(
        text="exchanging private estimates and averaging them improves accuracy through more data",
        where="1 and 4",
        verdict=verdict,
        found=f"(8) made sound, then averaged, beats the home organisation alone at {_won(iid)} of {len(iid)} settings with "
        "one law "
        f"everywhere, at {_won(narrow)} of {len(narrow)} with narrow regions",
    )


def _better(cells: _Cells) -> Claim:
    pairs = [pair for s in ("iid", "narrow") for pair in _pairs(cells, s, ("ssp-gauss", "pool"), ("objpert", "mirror"))]
    return Claim(
        text="better private estimators make distributed learning better",
        where="4",
        verdict="holds" if _won(pairs) > len(pairs) / 2 else "does not hold",
        found=f"pooled noisy sums beat averaged estimates at {_won(pairs)} of {len(pairs)} settings",
    )
