"""A whole fit of every mechanism of `sabun.regression`: is the noise that is drawn what the promise needs?

The farthest neighbours are fitted without noise, so that sensitivity and noise are in the units of what is released.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking.evidence import Bench, Checklist, zeros
from sabun.asking.evidence.needed import rho_of
from sabun.errors import InternalError
from sabun.privacy.calibration import analytic_gaussian_sigma
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, Study, ball, combine, perturbation, staged, stages
from sabun.regression.sharing import round_terms

__all__ = ["CHECKS"]

CHECKS = Checklist()


def _ridge(rows: NDArray[np.float64], **how: Any) -> Any:
    facts: dict[str, Any] = {"epsilon": 2.0, "x_bounds": [(-1, 1)] * 2, "y_bounds": (-1, 1), "fit_intercept": False}
    facts |= {"clip_radius": 1.0} | how
    return PrivateRidge(**facts).fit(rows[:, :2], rows[:, 2]).release_


def _rows_apart(degrees: float, length: float = 1.0) -> NDArray[np.float64]:
    """Two records (x, y) on the unit circle at that angle, with opposite targets."""
    angle = math.radians(degrees)
    return np.array([[1.0, 0.0, 1.0], [math.cos(angle) * length, math.sin(angle) * length, -1.0]])


def _sums(release: Any) -> NDArray[np.float64]:
    """Every number that is released, in the order in which noise is drawn for it."""
    value = release.value
    own = [value["gram"][0], value["gram"][2], *value["moment"]]
    return np.array(
        [*own, value["gram"][1], value["square"], *([] if value["count"] is None else [value["count"]])], dtype=float
    )


def _farthest(relation: str, **how: Any) -> list[NDArray[np.float64]]:
    """Changes of the released numbers between neighbours; among them the largest there are."""
    people = how.get("records_per_person", 1)
    changes = []
    wild = np.array([[1e9, 1e9, 1e9], [-1e9, 1e9, -1e9]])  # counts as the corner of its bounds, shortened to the ball
    for first, second in (*(_rows_apart(degrees) for degrees in (0, 30, 60, 90, 180)), wild):
        rest = np.tile([0.5, 0.0, 0.0], (3, 1))
        twin = [second] * people if relation == "replace-one" else []
        before, after = (np.vstack([rest, *more]) for more in ([first] * people, twin))
        changes.append(_sums(_ridge(before, relation=relation, **how)) - _sums(_ridge(after, relation=relation, **how)))
    return changes


@CHECKS("ssp-gauss", people=[1, 3], relation=["replace-one", "add-remove"])
def _sums_of_products_have_gaussian_noise_for_the_farthest_neighbours(bench: Bench, relation: str, people: int) -> None:
    heard = bench.heard
    how: dict[str, Any] = {"mechanism": "ssp-gauss", "delta": 1e-6, "records_per_person": people}
    heard.instead = zeros
    changes = _farthest(relation, **how)
    heard.draws.clear()
    release = _ridge(np.tile([0.5, 0.0, 0.0], (4, 1)), relation=relation, **how)
    variances = np.concatenate([[draw.parameter] * draw.count for draw in heard.draws])
    bench.must({draw.law for draw in heard.draws} == {"discrete_gaussian"}, "noise of another law was drawn.")
    bench.must(len(variances) == len(changes[0]), "not each sum has its noise.")
    rho = max(float((change**2 / variances).sum()) / 2 for change in changes)
    bench.enough(rho_of(2, 1e-6), rho, slack=0, waste=1.01)
    bench.must(
        (release.guarantee.epsilon, release.guarantee.delta) == (2, Fraction(1, 10**6)),
        "the promise is not what was asked for.",
    )


@CHECKS("staged", people=[1, 3], relation=["replace-one", "add-remove"])
def _staged_sums_have_noise_for_the_farthest_neighbours(bench: Bench, relation: str, people: int) -> None:
    """Around the same start and level for both, as composition has it; the start is any that pushes residuals to their ends."""
    heard = bench.heard
    bench.replace(staged, "_start", lambda *_: ((0, 0), -8))
    how: dict[str, Any] = {"method": "staged", "delta": 1e-6, "records_per_person": people}
    heard.instead = zeros
    spent = []
    for first, second in (
        *(_rows_apart(degrees) for degrees in (0, 30, 60, 90, 180)),
        np.array([[1e9] * 3, [-1e308, 1e9, -1e9]]),
    ):
        rest = np.tile([0.5, 0.0, 0.0], (300, 1))
        twin = [second] * people if relation == "replace-one" else []
        pair = []
        for more in ([first] * people, twin):
            heard.draws.clear()
            value = _ridge(np.vstack([rest, *more]), relation=relation, **how).value
            sums = [value["gram"][0], value["gram"][2], *value["moment"], value["gram"][1], value["square"]]
            sums += [] if value["count"] is None else [value["count"]]
            pair.append(
                np.array([*sums, *value["residual_moment"], value["residual_square"], value["residual_weight"]], dtype=float)
            )
        variances = np.concatenate([[draw.parameter] * draw.count for draw in heard.draws])
        bench.must({draw.law for draw in heard.draws} == {"rounded_gaussian"}, "noise of another law was drawn.")
        spent.append(float(((pair[0] - pair[1]) ** 2 / variances).sum()))
    sigma = analytic_gaussian_sigma(l2=1.0, epsilon=2, delta=1e-6)
    # No one pair is the farthest for both stages; the parts are tried one by one in tests/regression.
    bench.must(0.8 / sigma**2 < max(spent) <= 1 / sigma**2, "the farthest neighbours tell more than is promised, or far less.")


@CHECKS("rounds", people=[1, 3], relation=["replace-one", "add-remove"])
def _either_round_has_noise_for_the_farthest_neighbours(bench: Bench, relation: str, people: int) -> None:
    """Two files: each spends at most what it promises by itself, both at most what the study does."""
    heard = bench.heard
    study = Study(
        features=Schema.of_bounds([(-1, 1)] * 2),
        target=Column.number("y", lower=-1, upper=1),
        epsilon=2,
        delta="1e-6",
        method="rounds",
        relation=relation,
        records_per_person=people,
        fit_intercept=False,
        clip_radius=1,
    )
    rest = np.tile([0.5, 0.0, 0.0], (300, 1))
    heard.instead = zeros  # of the first round, too: around a wild model residuals are cut so far out that nothing reaches it
    made = PrivateRidge(study=study).fit(rest[:, :2], rest[:, 2])
    around = combine([made.release_])
    spent = []
    for first, second in (_rows_apart(degrees) for degrees in (0, 60, 90, 180)):
        pair: list[list[NDArray[np.float64]]] = []
        for more in ([first] * people, [second] * people if relation == "replace-one" else []):
            rows = np.vstack([rest, *more])
            heard.draws.clear()
            one = PrivateRidge(study=study).fit(rows[:, :2], rows[:, 2]).release_
            variances = [np.concatenate([[draw.parameter] * draw.count for draw in heard.draws])]
            # Around the same first round for both, as composition has it.
            frozen = replace(one, value=dict(made.release_.value) | {"rows": None if one.value["rows"] is None else len(rows)})
            heard.draws.clear()
            again = PrivateRidge(study=study).refine(rows[:, :2], rows[:, 2], first=frozen, around=around).release_.value
            variances.append(np.concatenate([[draw.parameter] * draw.count for draw in heard.draws]))
            residuals = [*again["residual_moment"], again["residual_square"], again["residual_weight"]]
            pair.append([_sums(one), np.array(residuals, dtype=float)])
        spent.append([float(((a - b) ** 2 / v).sum()) for a, b, v in zip(*pair, variances, strict=True)])
    epsilon, delta = round_terms(study)
    alone, both = (analytic_gaussian_sigma(l2=1.0, epsilon=e, delta=d) for e, d in ((epsilon, delta), (2, 1e-6)))
    farthest = np.max(spent, axis=0)
    bench.must((0.8 / alone**2 < farthest).all(), "a round has far more noise than it needs.")
    bench.must((farthest <= 1 / alone**2).all(), "a round tells more than it promises by itself.")
    bench.must(farthest.sum() <= 1 / both**2, "both rounds together tell more than the study promises.")


@CHECKS("staged", people=[1, 3])
def _the_lengths_of_rows_have_noise_for_the_farthest_neighbours(bench: Bench, people: int) -> None:
    heard = bench.heard
    heard.instead = zeros
    _ridge(np.tile([0.5, 0.0, 0.0], (4000, 1)), clip_radius=None, method="staged", delta=1e-6, records_per_person=people)
    lengths = heard.draws[0]
    bench.must(lengths.count == 4, "noise was drawn for other numbers than the four lengths.")
    sigma = analytic_gaussian_sigma(l2=1.0, epsilon=2, delta=1e-6)
    bench.enough(0.03 / sigma**2, 4 * (people * stages.SHARE) ** 2 / lengths.parameter, slack=1e-9, waste=1.01)


@CHECKS("ssp-laplace", people=[1, 3], relation=["replace-one", "add-remove"])
def _sums_of_products_have_laplace_noise_for_the_farthest_neighbours(bench: Bench, relation: str, people: int) -> None:
    heard = bench.heard
    how: dict[str, Any] = {"mechanism": "ssp-laplace", "records_per_person": people}
    heard.instead = zeros
    moved = max(float(np.linalg.norm(change)) for change in _farthest(relation, **how))
    heard.draws.clear()
    release = _ridge(np.tile([0.5, 0.0, 0.0], (4, 1)), relation=relation, **how)
    draw = heard.only("spherical_laplace")
    bench.must(draw.count == 6 + (relation == "add-remove"), "noise was drawn for other numbers than are released.")
    bench.enough(draw.parameter, moved / 2, slack=0, waste=1.01)
    bench.must((release.guarantee.epsilon, release.guarantee.delta) == (2, 0), "the promise is not what was asked for.")


@CHECKS("objpert", people=[1, 3], bound=[0.5, 2.0], relation=["replace-one", "add-remove"])
def _objective_perturbation_pays_for_gradient_and_curvature(bench: Bench, relation: str, bound: float, people: int) -> None:
    heard = bench.heard
    ridges: list[float] = []
    original = perturbation._rounded

    def listener(moments: Any, ridge: int, *rest: Any) -> Any:
        ridges.append(ridge / 2**ball.SCALE)
        return original(moments, ridge, *rest)

    bench.replace(perturbation, "_rounded", listener)
    release = _ridge(
        np.tile([0.5, 0.0, 0.0], (4, 1)), method="objpert", coef_bound=bound, relation=relation, records_per_person=people
    )
    # g = 2 (x't - y) x, over rows at every angle on either side of the longest t.
    angles = np.linspace(0, math.pi, 2001)
    gradients = 2 * (bound * np.cos(angles) + 1) * np.exp(1j * angles)
    farthest = np.abs(gradients).max() if relation == "add-remove" else np.abs(gradients - gradients.conj()).max()
    noise = heard.only("spherical_laplace").parameter / 2.0 ** (perturbation._DIGITS + ball.SCALE - 1)
    # x x' is added to A + R, whose eigenvalues are at least R: the determinant grows by 1 + 1/R for each row.
    spent = people * float(farthest) / noise + people * math.log1p(1 / ridges[0])
    bench.enough(2.0, spent, waste=1.01)
    bench.must((release.guarantee.epsilon, release.guarantee.delta) == (2, 0), "the promise is not what was asked for.")


@CHECKS("objpert")
def _a_solver_that_has_not_arrived_raises(bench: Bench) -> None:
    """Noise that was calibrated to a minimum is no noise for any other point."""
    rows = np.column_stack([np.linspace(-1, 1, 40), np.linspace(1, -1, 40) ** 3, np.linspace(-1, 1, 40)])
    bench.replace(ball, "_STEPS", 0)
    try:
        _ridge(rows, method="objpert", coef_bound=0.001)
    except InternalError:
        return
    bench.fail("it handed over whatever it had.")
