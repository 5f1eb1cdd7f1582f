"""Linear regression over distributed data (Minami et al.): the theorem evaluated, the missing experiments supplied."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabun.privacy.noise import seeded_coin
from sabun.regression.evaluation import Cell, grid
from sabun.regression.mirror import mirror_weights, theory_tau
from sabun.regression.paper import least_delta
from sabun.regression.reproduction.claims import claims, default, summary
from sabun.regression.reproduction.items import ITEMS
from sabun.regression.simulation import simulate
from sabun.regression.theorem_three import RiskBound, risk_bound
from sabun.telling.reproduction import Figure, Progress, Reproduction, Table, drawn

__all__ = ["ITEMS", "bound_at", "reproduce"]

_PAPER = "Linear Regression for Distributed Data Set Using Differentially Private Aggregation (Minami, Arai, Sato, Nakagawa)"
_ERRATA = (
    "Eq. (8) is not epsilon-DP for any epsilon: it minimises over all vectors, and the gradient has no bound there.",
    "Projecting eq. (8) to the ball afterwards does not repair it; the minimiser over the ball does.",
    "The noise constant is right for add-remove neighbours, the paper's definition is replace-one (there up to 1.299 epsilon).",
    "The paper prints no zeta or Lambda; with the loss (y - x'b)^2 they are zeta = 2 (B + Y) and Lambda = 2.",
    "From eq. (7) the sign of b/2n in eq. (8) is minus; harmless, since b is symmetric.",
    "Only the total ridge n lambda + Delta/2 matters for privacy; adding Lambda/epsilon to a large n lambda is unnecessary.",
    "Privacy needs a bounded target, Assumption 2-3 allows another; Theorem 3 needs one distribution, the motivation has many.",
    "Eq. (10) averages the weights after each record; the oracle inequality holds for those before each record.",
    "At the temperature of Theorem 3 mirror averaging tells only coarse differences: close estimates weigh nearly the same.",
    "Theorem 3 is vacuous at realistic sizes and competes with the best single estimate, so that more organisations only cost "
    "log M in it; the aggregate is not private for D^0.",
    "A draw from the normal posterior (cited as private by itself) is so only where the coefficients are bounded.",
)
_FEATURES, _ORGANISATIONS, _CONFIDENCE = 5, 10, 0.95
_ZERO = 0.64 / (_FEATURES + 2)
"""The risk of answering zero in the made-up worlds."""


def reproduce(*, quick: bool, progress: Progress) -> Reproduction:
    """Runs the paper's method beside ours; `quick` uses fewer worlds and sizes."""
    repeats, rows = (4, (200, 1000)) if quick else (12, (50, 200, 1000, 5000))
    tables, cells = [_eq8()], {}
    steps = [(setting, mechanism) for setting in ("iid", "narrow") for mechanism in ("paper", "objpert", "ssp-gauss")]
    for place, (setting, mechanism) in enumerate(steps):
        progress(place / (len(steps) + 2), f"{setting}: {mechanism}")
        found = grid(
            setting,
            repeats=repeats,
            organisations=(_ORGANISATIONS,),
            rows=rows,
            epsilons=("0.5", "1", "10"),
            method=mechanism,
        )
        cells[setting, mechanism] = list(found)
    tables.append(_comparison(cells))
    progress(len(steps) / (len(steps) + 2), "Theorem 3")
    bounds = _theorem(quick)
    tables += [bounds, _weights()]
    progress(1.0, "done")
    return Reproduction(
        room="regression",
        paper=_PAPER,
        summary=summary(cells, theorem=bounds),
        tables=tuple(tables),
        figures=(_rows_figure(cells), _theorem_figure(bounds)),
        errata=_ERRATA,
        settings={
            "features": _FEATURES,
            "organisations": _ORGANISATIONS,
            "rows": list(rows),
            "worlds": repeats,
            "seeds": "0..worlds-1",
            "quick": quick,
        },
        claims=claims(cells, eq8=tables[0], theorem=bounds, organisations=_ORGANISATIONS, zero=_ZERO),
        default=default(cells),
    )


def _eq8() -> Table:
    rows = []
    for epsilon in (0.1, 0.5, 1.0, 2.0, 10.0):
        found = [least_delta(epsilon, claimed=epsilon, ridge=ridge) for ridge in (0.0, 1.0)]
        rows.append((epsilon, 0.0, *found, _true_epsilon(epsilon)))
    return Table(
        name="eq-8",
        title="What eq. (8) as printed really promises (one feature, B = Y = 1)",
        columns=(
            "epsilon claimed",
            "delta claimed",
            "delta at least, n lambda = 0",
            "delta at least, n lambda = 1",
            "epsilon at delta 1e-6",
        ),
        rows=tuple(rows),
        note="Exact integration of two neighbours. The last column is the least epsilon with delta 1e-6 (n lambda = 0).",
    )


def _true_epsilon(claimed: float) -> float:
    low, high = claimed, 100 * claimed + 10
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if least_delta(middle, claimed=claimed) > 1e-6 else (low, middle)
    return high


def _comparison(cells: dict[tuple[str, str], list[Cell]]) -> Table:
    rows = []
    for setting in ("iid", "narrow"):
        for ours, paper, ball in zip(
            cells[setting, "ssp-gauss"], cells[setting, "paper"], cells[setting, "objpert"], strict=True
        ):
            errors = ours.errors
            single = (paper.errors["mirror"], ball.errors["mirror"])
            rows.append(
                (
                    setting,
                    ours.rows,
                    ours.epsilon,
                    errors["alone"],
                    *single,
                    errors["public"],
                    errors["pool"],
                    errors["all raw data"],
                )
            )
    return Table(
        name="methods",
        title=f"Median relative excess risk, {_ORGANISATIONS} organisations, {_FEATURES} features (1 = beta is 0)",
        columns=(
            "setting",
            "rows each",
            "epsilon",
            "home alone",
            "eq. (8) + mirror (not private)",
            "over the ball + mirror",
            "ours, releases only",
            "ours, with home data",
            "all raw data",
        ),
        rows=tuple(rows),
        note="delta = 1e-6 for ours, 0 for objective perturbation; replace-one neighbours.",
    )


def _theorem(quick: bool) -> Table:
    """Right side of eq. (13) with its best lambda, beside what is measured."""
    rows: list[tuple[Any, ...]] = []
    for size in (1000, 4000) if quick else (1000, 4000, 16_000):
        bound = bound_at(size)
        measured = simulate(
            n_records=size,
            features=_FEATURES,
            organisations=_ORGANISATIONS,
            epsilon=1,
            method="objpert",
            repeats=3 if quick else 6,
        )
        terms = (bound.ridge_terms, bound.privacy_term, bound.mixing_term, bound.total, bound.risk_of_zero)
        rows.append((size, *terms, measured["mirror"] * _ZERO, _price(size)))
    return Table(
        name="theorem-3",
        title="Theorem 3 evaluated: epsilon = 1, ten organisations, best lambda in [0.001, 1]",
        columns=(
            "rows each",
            "ridge terms",
            "privacy term",
            "mixing term",
            "right side of (13)",
            "risk of beta = 0",
            "measured risk",
            "true privacy price (formula)",
        ),
        rows=tuple(rows),
        note="Its privacy term falls like 1/n, the true price like 1/n^2. `sabun regression risk-bound` tells it for other "
        "studies.",
    )


def bound_at(size: int) -> RiskBound:
    """(13) at its best lambda in [0.001, 1]."""
    terms = {"n_records": size, "organisations": _ORGANISATIONS, "features": _FEATURES, "epsilon": 1}
    found = (risk_bound(**terms, confidence=_CONFIDENCE, regularization=float(one)) for one in np.logspace(-3, 0, 200))
    return min(found, key=lambda bound: bound.total)


def _price(size: int) -> float:
    """(p + 1) (zeta / epsilon)^2 tr[S (n S + R)^-2]: what the noise of objective perturbation really costs."""
    curvature, ridge = 1 / (_FEATURES + 2), 2.0
    return (_FEATURES + 1) * 4.0**2 * _FEATURES * curvature / (size * curvature + ridge) ** 2 / _ORGANISATIONS


def _weights() -> Table:
    rows = []
    for count, candidates in ((500, 10), (2000, 50)):
        coin = seeded_coin(count)
        noise = (coin.words(count * candidates) >> np.uint64(11)).astype(np.float64).reshape(count, candidates) * 2.0**-53
        losses = 0.04 + 0.05 * noise * np.linspace(0.5, 1.5, candidates)
        found = [float(mirror_weights(losses, tau=theory_tau(1.0), convention=c).max()) for c in ("jrt", "paper")]
        rows.append((candidates, count, 1 / candidates, *found))
    return Table(
        name="mirror-weights",
        title="Largest weight of eq. (10) at the temperature of the theory",
        columns=("organisations", "home rows", "equal weight", "largest weight (jrt)", "largest weight (paper)"),
        rows=tuple(rows),
        note="At that temperature estimates that are close to each other keep nearly equal weights.",
    )


def _rows_figure(cells: dict[tuple[str, str], list[Cell]]) -> Figure:
    def draw(axes: Any) -> None:
        for mechanism, method, label in (
            ("ssp-gauss", "alone", "home alone"),
            ("paper", "mirror", "eq. (8) + mirror (not private)"),
            ("objpert", "mirror", "over the ball + mirror"),
            ("ssp-gauss", "pool", "ours, with home data"),
            ("ssp-gauss", "all raw data", "all raw data"),
        ):
            chosen = [cell for cell in cells["narrow", mechanism] if cell.epsilon == "1"]
            axes.plot([cell.rows for cell in chosen], [cell.errors[method] for cell in chosen], marker="o", label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("rows of each organisation")
        axes.set_ylabel("relative excess risk")
        axes.legend(frameon=False, fontsize=8)

    note = "Narrow regions, ten organisations, epsilon 1. Below 1 is better than predicting nothing."
    return drawn(name="regression-narrow", title="Each organisation sees its own corner", draw=draw, note=note)


def _theorem_figure(bounds: Table) -> Figure:
    def draw(axes: Any) -> None:
        sizes = [row[0] for row in bounds.rows]
        for column, label in (
            (4, "right side of (13)"),
            (5, "risk of beta = 0"),
            (6, "measured"),
            (7, "privacy price, formula"),
        ):
            axes.plot(sizes, [row[column] for row in bounds.rows], marker="o", label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("rows of each organisation")
        axes.set_ylabel("excess risk")
        axes.legend(frameon=False, fontsize=8)

    idle = all(float(str(row[4])) > float(str(row[5])) for row in bounds.rows)
    note = f"The bound of Theorem 3 lies {'above' if idle else 'not always above'} the risk of predicting nothing."
    return drawn(name="regression-theorem-3", title="Theorem 3 beside what is measured", draw=draw, note=note)
