"""The staged release: its noise, its budget, its readings, what it is worth."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regression.worlds import CLINIC, clinic
from sabun.errors import DataError, ParameterError
from sabun.ledger import Ledger
from sabun.privacy.calibration import analytic_gaussian_delta
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema, chunks
from sabun.regression import PrivateRidge, Study, combine
from sabun.regression.contribution import Contribution
from sabun.regression.design import UNIT
from sabun.regression.plausibility import findings
from sabun.regression.sharing import QUERIES, _moved, _spent, plain_radius, shares_of, staged_price
from sabun.regression.staged import Reading, _chosen, add_staged_noise
from sabun.regression.stages import RADII, SHARE, Tally, radius_of
from sabun.regression.statistic import Labelled
from sabun.regression.sums import first_sums, sums_of


def boxed(width: int = 2, **terms: Any) -> Study:
    facts: dict[str, Any] = {"epsilon": 1, "fit_intercept": False, "coef_bound": 2}
    return Study(features=Schema.of_bounds([(-1, 1)] * width), target=Column.number("y", lower=-1, upper=1), **(facts | terms))


def table(rows: int, width: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, width))
    return X, np.clip(X @ np.full(width, 0.3) + rng.normal(0, 0.1, rows), -1, 1)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("people", [1, 7])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.01", "1e-9"), (1, "1e-6"), (30, "1e-3"), (10**6, "1e-6")])
@pytest.mark.parametrize("rows", [None, 3, 100, 10**6])
def test_what_is_shared_out_is_not_more_than_the_budget(
    relation: str, people: int, epsilon: Any, delta: str, rows: Any
) -> None:
    study = boxed(relation=relation, records_per_person=people, epsilon=epsilon, delta=delta)
    shares = shares_of(study, rows)
    spent = _spent(_moved(relation, people), shares)
    assert Fraction(99, 100) * shares.budget < sum(spent) <= shares.budget
    assert analytic_gaussian_delta(sigma=1 / math.sqrt(shares.budget), l2=1.0, epsilon=float(epsilon)) <= float(delta) * (
        1 + 1e-9
    )
    assert (shares.length is None) == (spent[0] == 0)
    assert (shares.second is None) == (spent[2] == 0)
    price = staged_price(study, rows)
    assert sum(event.rho() for event in price.events) >= sum(spent) / 2
    assert float(sum(event.rho() for event in price.events)) == pytest.approx(float(sum(spent)) / 2, rel=1e-9)


def test_the_radius_is_not_chosen_where_it_is_given_or_noise_would_choose() -> None:
    assert shares_of(boxed(), 10_000).length is not None
    assert shares_of(boxed(clip_radius=1), 10_000).length is None
    assert shares_of(boxed(), 10_000).radius == Fraction(3, 100)
    assert shares_of(boxed(), 200).radius == Fraction(10, 100)  # 3 % would buy noise of a quarter of the rows
    assert shares_of(boxed(), 90).length is None  # then no row is shortened: noise would choose
    assert shares_of(boxed(relation="add-remove"), None).length is not None
    assert shares_of(boxed(), 10_000).second is not None
    assert shares_of(boxed(), 20).second is None


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_noise_has_the_declared_variance_by_coordinate(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sabun.regression import staged

    study = boxed(2, relation=relation)
    # Radius, start and level differ from draw to draw; held fixed, what differs is the noise.
    monkeypatch.setattr(staged, "_start", lambda *_: ((100, -50), 0))
    monkeypatch.setattr(staged, "_chosen", lambda *_: 1)
    reading, coin = Reading.of(study, Labelled(*table(300))), seeded_coin(3)
    values = [add_staged_noise(study, reading, coin) for _ in range(400)]
    private = relation == "add-remove"
    shares = shares_of(study, None if private else 300)
    first, second = shares.first, shares.second
    assert second is not None
    _has_variance([value["gram"][0] for value in values], first)
    _has_variance([value["gram"][1] for value in values], first / 2)
    _has_variance([value["moment"][1] for value in values], first)
    _has_variance([value["square"] for value in values], first * (4 if private else 1))
    if private:
        _has_variance([value["count"] for value in values], first * 4 / UNIT**4)
    _has_variance([value["residual_moment"][0] for value in values], second)
    _has_variance([value["residual_square"] for value in values], second * 4 if private else second / 2)
    _has_variance([value["residual_weight"] for value in values], second * 16 / UNIT**2)


def _has_variance(drawn: list[int], variance: Fraction) -> None:
    """Within 5 standard errors of a variance of 400 normals, which is 35 %; whole numbers add a twelfth to a small variance."""
    ratio, error = float(np.var(np.array(drawn, dtype=float))) / (float(variance) + 1 / 12), 5 * math.sqrt(2 / len(drawn))
    assert abs(ratio - 1) < error


@pytest.mark.parametrize(("intercept", "last"), [(True, RADII - 1), (False, 8)])
def test_the_bisection_asks_at_most_four_lengths_and_finds_the_radius(intercept: bool, last: int) -> None:
    """Without a constant rows may be so short that rare long ones, which may be all that tells, would hardly count."""
    shares = shares_of(boxed(fit_intercept=intercept), 10**6)
    assert (shares.last, shares.lean > 0) == (last, intercept)
    for first in range(RADII + 1):
        sums = tuple(-shares.lean - 1 if step < first else -shares.lean for step in range(RADII))
        assert _chosen(Tally(rows=10, sums=sums), shares, [0] * QUERIES) == min(first, last)


def test_a_large_table_shortens_less_and_in_the_end_nothing() -> None:
    """Weights make another line the best one where none is true: that is to vanish as rows grow, whatever it costs a little."""
    assert [shares_of(boxed(4), rows).back for rows in (70_000, 72_000, 144_000, 10**6)] == [0, 1, 2, 4]
    assert shares_of(boxed(4, records_per_person=2), 288_000).back == 1  # as noisy as with a quarter of mu**2
    assert shares_of(boxed(4, relation="add-remove"), None).back == 0
    study, (X, y) = boxed(4, epsilon=30), table(4000, 4)
    longer, chosen = shares_of(study, 4000).back, Reading.of(study, Labelled(X / 8, y))
    value = add_staged_noise(study, chosen, seeded_coin(1))
    assert 1 < longer == 8 - value["radius"]


def test_each_length_of_the_bisection_has_a_draw_of_its_own() -> None:
    """Lengths alike for every radius: the draws alone decide, each once, in their order."""
    shares, alike = shares_of(boxed(fit_intercept=True), 10**6), Tally(rows=10, sums=(0,) * RADII)
    far = 10 * shares.lean + 10
    for signs in itertools.product((1, -1), repeat=QUERIES):
        low, high, drawn = 0, RADII - 1, iter(signs)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if next(drawn) > 0 else (middle + 1, high)
        assert _chosen(alike, shares, [sign * far for sign in signs]) == low


def test_short_rows_get_a_short_radius() -> None:
    study = boxed(4, epsilon=3)
    X, y = table(4000, 4)
    step = {
        scale: add_staged_noise(study, Reading.of(study, Labelled(X * scale, y)), seeded_coin(1))["radius"]
        for scale in (1, 0.1)
    }
    assert radius_of(study.design, step[0.1]) < 0.2 * radius_of(study.design, step[1])


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("short", [0.0, 0.02])
def test_rows_of_next_to_nothing_do_not_decide_the_radius(relation: str, short: float) -> None:
    """Without a constant most rows may be zero: they never fill a radius, and R was then a sixty-fourth of the longest row."""
    study = boxed(1, relation=relation)
    for share in (0.3, 0.6, 0.8):
        X, y = table(3000, 1)
        X[: int(share * len(X))] *= short
        steps = [add_staged_noise(study, Reading.of(study, Labelled(X, y)), seeded_coin(seed))["radius"] for seed in range(5)]
        assert max(steps) <= 4


def test_a_source_is_read_as_often_as_needed(tmp_path: Path) -> None:
    """In memory, in pieces, as a generator that can be read once: the same release."""
    study, (X, y) = boxed(epsilon=3), table(2000)
    together = np.column_stack([X, y])
    sources: list[Any] = [
        Labelled(X, y),
        together,
        chunks([together[:700], together[700:]]),
        chunks(piece for piece in (together[:700], together[700:])),
        chunks(lambda: iter([together])),
    ]
    found = [add_staged_noise(study, Reading.of(study, source), seeded_coin(5)) for source in sources]
    assert all(value == found[0] for value in found)


@pytest.mark.parametrize("sizes", [[500, 400, 400], [500, 500, 400], [500, 500, None]])
def test_a_table_that_changes_between_readings_is_refused_and_stays_charged(tmp_path: Path, sizes: list[int | None]) -> None:
    together, left = np.column_stack(table(500)), iter(sizes)
    book = Ledger.create(tmp_path / "book", name="book", epsilon=2, delta="1e-5")

    def pieces() -> Any:
        size = next(left)
        if size is None:
            raise DataError("gone. Nothing was charged.")
        return iter([together[:size]])

    bounds: dict[str, Any] = {"x_bounds": [(-1, 1)] * 2, "y_bounds": (-1, 1)}
    with pytest.raises(DataError, match=r"while it is read three times; it did not\. The charge stays spent") as caught:
        PrivateRidge(epsilon=1, ledger=book, **bounds).fit(chunks(pieces))
    assert "Nothing was charged" not in str(caught.value)
    assert book.spent.epsilon == 1


def test_weighting_keeps_a_linear_truth_at_every_radius() -> None:
    """Shortening the features alone makes slopes steeper: by far at a small radius."""
    X, y = table(20_000, 3)
    found = {}
    for method in ("staged", "ssp-gauss"):
        study = boxed(3, epsilon=1000, method=method, clip_radius="0.4", coef_bound=3)
        model = PrivateRidge(study=study, random_state=1).fit(X, y)
        found[method] = float(np.abs(model.coef_ - 0.3).max())
    assert found["staged"] < 0.02
    assert found["ssp-gauss"] > 0.1


def test_the_new_default_is_worth_its_name() -> None:
    """Features that fill a third of their bounds: the median error over 7 fixed worlds, against the former default."""
    found: dict[str, list[float]] = {"staged": [], "ssp-gauss": []}
    for seed in range(7):
        rng = np.random.default_rng(seed)
        beta = rng.normal(size=4)
        beta *= 0.8 / np.linalg.norm(beta)
        X = rng.uniform(-0.3, 0.3, (3000, 4))
        y = X @ beta + rng.normal(0, 0.1, 3000)
        for method, errors in found.items():
            study = boxed(4, method=method, coef_bound=2)
            fitted = [PrivateRidge(study=study, random_state=seed).fit(X[i::2], y[i::2]).release_ for i in range(2)]
            errors.append(float(np.sum((combine(fitted).coef_ - beta) ** 2)))
    assert np.median(found["staged"]) < 0.3 * np.median(found["ssp-gauss"])


def test_honest_staged_releases_are_plausible() -> None:
    for place, (epsilon, rows, relation) in enumerate(
        [
            ("0.1", 1, "replace-one"),
            (1, 400, "replace-one"),
            (100, 4000, "replace-one"),
            (1, 300, "add-remove"),
            (10**5, 50, "add-remove"),
        ]
    ):
        for corner in (False, True):
            X, y = table(rows, 3, place)
            if corner:
                X, y = np.sign(X), np.sign(y)
            release = (
                PrivateRidge(
                    epsilon=epsilon,
                    delta="1e-6",
                    relation=relation,
                    x_bounds=[(-1, 1)] * 3,
                    y_bounds=(-1, 1),
                    random_state=place,
                )
                .fit(X, y)
                .release_
            )
            study = Study.from_dict(release.provenance.parameters["study"])
            assert findings([Contribution(organisation="a", study=study, release=release)]) == ()


def test_forged_residuals_are_told() -> None:
    import dataclasses

    X, y = table(2000, 3)
    release = PrivateRidge(epsilon=3, x_bounds=[(-1, 1)] * 3, y_bounds=(-1, 1), random_state=1).fit(X, y).release_
    study = Study.from_dict(release.provenance.parameters["study"])
    for change in ({"residual_moment": [2000 * UNIT**2] * 4}, {"residual_square": -(10**13)}):
        forged = dataclasses.replace(release, value=dict(release.value) | change)
        assert findings([Contribution(organisation="a", study=study, release=forged)])


def test_units_of_a_staged_release_are_those_of_the_study() -> None:
    """With hardly any noise, both stages give the sums of weighted rows in units of the study."""
    study, (X, y) = boxed(3, epsilon=10**7, delta="1e-3"), table(3000, 3)
    value = add_staged_noise(study, Reading.of(study, Labelled(X, y)), seeded_coin(0))
    sums, scale = sums_of(study, value), study.design.scale
    radius = radius_of(study.design, value["radius"])
    weights = np.minimum(1, radius / np.linalg.norm(X, axis=1))
    rows, targets = X * weights[:, None] / scale, y * weights
    assert sums.gram == pytest.approx(rows.T @ rows, rel=2e-3, abs=0.5)
    assert sums.moment == pytest.approx(rows.T @ targets, rel=2e-3, abs=0.5)
    assert first_sums(study, value).moment == pytest.approx(sums.moment)
    refined = sums.refined
    assert refined is not None
    assert refined.moment == pytest.approx(rows.T @ targets, rel=1e-2, abs=1.0)
    assert refined.square == pytest.approx(targets @ targets, rel=2e-2)
    assert refined.weight == pytest.approx(weights @ weights, rel=1e-3)


def test_a_public_radius_without_a_choice() -> None:
    assert plain_radius(boxed(3).design, None) == 1.0
    assert plain_radius(boxed(3, fit_intercept=True).design, None) == pytest.approx(math.sqrt(2))
    assert plain_radius(boxed(3).design, Fraction(1, 2)) == 0.5


def test_sums_of_another_method_are_not_taken() -> None:
    X, y = clinic(100)
    staged, plain = (PrivateRidge(epsilon=1, method=method, **CLINIC) for method in ("staged", "ssp-gauss"))
    for reader, fitter in ((staged, plain), (plain, staged)):
        with pytest.raises(ParameterError, match="read on these terms"):
            fitter.fit(reader.read(X, y))


def test_a_black_box_audit_of_both_stages_stays_below_epsilon() -> None:
    """The farthest neighbours of the residual lemma; a threshold on the moment along their difference."""
    from regression.test_neighbours import lower_bound

    study = boxed(1, epsilon=2, delta="1e-6")
    trials, coin, scores = 250, seeded_coin(9), []
    for target in (1.0, -1.0):
        X, y = np.full((40, 1), 0.5), np.zeros(40)
        X[0], y[0] = 1.0, target
        reading = Reading.of(study, Labelled(X, y))
        values = [add_staged_noise(study, reading, coin) for _ in range(trials)]
        scores.append(np.array([float(sums_of(study, value).moment[0]) for value in values]))
    for cut in (-1.0, 0.0, 1.0):
        hits, others = (int((score > cut).sum()) for score in scores)
        assert lower_bound(hits, others, trials, 1e-6) <= 2


@pytest.mark.parametrize(("intercept", "low", "high"), [(True, -75, 25), (False, -67, 34)])
def test_lengths_are_whole_shares(intercept: bool, low: int, high: int) -> None:
    reading = Reading.of(boxed(fit_intercept=intercept), Labelled(*table(100)))
    assert reading.state.rows == 100
    assert all(low * SHARE <= number <= high * SHARE for number in reading.state.sums)
