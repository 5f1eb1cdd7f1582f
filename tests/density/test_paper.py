from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sabun import Ledger
from sabun.density import DensityRatio
from sabun.density.kernel import GaussianKernel
from sabun.density.method import Target
from sabun.density.paper import FixedBasis, NoisyCentres, _sample, amplified, fitted, normalised
from sabun.errors import BoundsError, DataError, ParameterError
from sabun.privacy.noise import os_coin, seeded_coin

RNG = np.random.default_rng(0)
PRIVATE, PUBLIC = RNG.normal(2, 0.5, (800, 1)), RNG.normal(1, 1, (120, 1))
METHODS = {
    "ulsif-a": {"bounds": [(-3, 5)]},
    "ulsif-b": {},
    "ulsif-c": {"accept_publishing_raw_records": True},
    "ulsif-parametric": {"basis": lambda x: [1.0, min(max(x[0], -3), 5) / 5 + 0.6], "basis_bounds": (0, 2)},
    "ji-elkan": {},
}


CENTRES = {method: {"n_centers": 20} if method in ("ulsif-a", "ulsif-b", "ulsif-c") else {} for method in METHODS}


def test_amplification_of_the_published_setting() -> None:
    found = [float(amplified(Fraction(e), sampled=50, of=2000)) for e in ("0.1", "1", "10")]
    assert found == pytest.approx([1.650, 4.245, 13.689], abs=5e-4)


def test_amplification_is_rounded_down() -> None:
    for epsilon, size in itertools.product(("0.001", "0.5", "7"), (50, 51, 10**9)):
        inner = amplified(Fraction(epsilon), sampled=50, of=size)
        assert math.log1p(50 / size * math.expm1(inner)) <= float(Fraction(epsilon)) * (1 + 1e-12)
        assert inner >= Fraction(epsilon) * (1 - Fraction(1, 10**9))


def test_samples_are_uniform_without_repetition() -> None:
    coin = seeded_coin(1)
    drawn = Counter(tuple(_sample(4, 2, coin)) for _ in range(6000))
    assert set(drawn) == set(itertools.permutations(range(4), 2))
    assert max(abs(count / 500 - 1) for count in drawn.values()) < 0.2
    assert sorted(_sample(5, 5, coin)) == list(range(5))


def test_method_a_on_a_tiny_domain_keeps_half_of_epsilon_for_its_centres() -> None:
    """All outputs of sampling one of n rows from {0, 1} with noise on {0, 1}: the exact ratio is below the amplified bound."""
    epsilon, size = Fraction(1), 4
    inner = float(amplified(epsilon / 2, sampled=1, of=size))

    def output(table: tuple[int, ...]) -> list[float]:
        """A two-point mechanism that is exactly inner-DP under replacing the sampled row."""
        stay = math.exp(inner) / (1 + math.exp(inner))
        ones = sum(table) / size
        return [ones * (1 - stay) + (1 - ones) * stay, ones * stay + (1 - ones) * (1 - stay)]

    for table in itertools.product((0, 1), repeat=size):
        for place in range(size):
            other = (*table[:place], 1 - table[place], *table[place + 1 :])
            ratio = max(a / b for a, b in zip(output(table), output(other), strict=True))
            assert math.log(ratio) <= float(epsilon / 2) + 1e-12


def test_the_solution_is_the_ridge_solution_clipped() -> None:
    values, h = RNG.random((40, 5)), RNG.normal(size=5)
    alpha = fitted(h, values, penalty=0.3)
    raw = np.linalg.inv(values.T @ values / 40 + 0.3 * np.eye(5)) @ h
    assert np.allclose(alpha, np.maximum(0, raw))


@pytest.mark.parametrize("raw", [np.zeros(4), np.full(4, 1e-200), np.array([np.nan, 1, 1, 1])])
def test_weights_that_vanish_become_even(raw: np.ndarray) -> None:
    assert np.array_equal(normalised(raw), np.ones(4))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [0.01, 100.0])
def test_every_method_releases_weights_with_its_true_guarantee(method: str, epsilon: float) -> None:
    ratio = DensityRatio(epsilon=epsilon, method=method, **CENTRES[method], **METHODS[method]).fit(
        private=PRIVATE, public=PUBLIC
    )
    assert (ratio.weights_ >= 0).all()
    assert ratio.weights_.mean() == pytest.approx(1)
    assert np.allclose(ratio.predict(PUBLIC), ratio.weights_)
    assert ratio.guarantee_.relation == "replace-one"
    assert ratio.guarantee_.epsilon == Fraction(repr(epsilon))
    assert ratio.guarantee_.delta == (Fraction(20, 800) if method == "ulsif-c" else 0)
    with pytest.raises(ParameterError, match="method must be 'rkhs' for an interval"):
        ratio.query(0)
    with pytest.raises(ParameterError, match="method must be 'rkhs' for a support score"):
        ratio.support_score(PUBLIC)
    with pytest.raises(ParameterError, match="method must be 'rkhs' for a plan"):
        ratio.plan(public=PUBLIC, n_records=100)


@pytest.mark.parametrize("method", ["ulsif-a", "ulsif-c", "ji-elkan"])
def test_methods_that_need_all_rows_do_not_stream(method: str) -> None:
    with pytest.raises(ParameterError, match="to stream; got"):
        DensityRatio(epsilon=1, method=method, **METHODS[method]).set_public(PUBLIC).partial_fit(private=PRIVATE)


def test_method_b_streams() -> None:
    whole = DensityRatio(epsilon=1, method="ulsif-b", random_state=1).fit(private=PRIVATE, public=PUBLIC)
    part = DensityRatio(epsilon=1, method="ulsif-b", random_state=1).set_public(PUBLIC)
    for chunk in np.array_split(PRIVATE[::-1], 5):
        part.partial_fit(private=chunk)
    assert np.array_equal(part.finalize().weights_, whole.weights_)


def test_the_centres_of_method_c_are_rows_of_the_private_table() -> None:
    """Why it must be asked for in so many words: the release holds people's records as they are."""
    ratio = DensityRatio(epsilon=1, method="ulsif-c", n_centers=10, standardize=False, **METHODS["ulsif-c"])
    released = ratio.fit(private=PRIVATE, public=PUBLIC).release_["centres"]
    assert np.isin(released, PRIVATE).all()
    assert any("10 private records are published as they are" in words for words in ratio.guarantee_.assumptions)


def test_the_centres_of_method_a_are_not() -> None:
    ratio = DensityRatio(epsilon=1, method="ulsif-a", n_centers=10, standardize=False, bounds=[(-3, 5)])
    assert not np.isin(ratio.fit(private=PRIVATE, public=PUBLIC).release_["centres"], PRIVATE).any()


def test_sampling_more_rows_than_there_are_is_refused() -> None:
    for method in ("ulsif-a", "ulsif-c"):
        with pytest.raises(DataError, match="at least n_centers = 900 rows"):
            DensityRatio(epsilon=1, method=method, n_centers=900, **METHODS[method]).fit(private=PRIVATE, public=PUBLIC)


@pytest.mark.parametrize("bounds", [[(0, 1), (0, 1)], [(1, 0)], [(0, np.inf)], [(0,)], {"x1": (0, 1)}])
def test_impossible_boxes_are_refused(bounds: object) -> None:
    with pytest.raises(BoundsError, match="bounds must be"):
        DensityRatio(epsilon=1, method="ulsif-a", bounds=bounds).fit(private=PRIVATE, public=PUBLIC)


@pytest.mark.parametrize(
    ("bounds", "public"),
    [((-1e308, 1e308), np.array([[0.0], [1.0]])), ((-1e308, 1e307), np.array([[0.0], [0.1]])), ((0, 1), 1e18 + PUBLIC * 1e9)],
)
def test_boxes_without_a_usable_width_are_refused(bounds: tuple[float, float], public: np.ndarray) -> None:
    with pytest.raises(BoundsError, match="bounds must be apart by a finite width above 0"):
        DensityRatio(epsilon=1, method="ulsif-a", bounds=[bounds]).set_public(public)


def test_bandwidths_that_a_private_row_could_overflow_are_refused() -> None:
    for method in ("ulsif-a", "ulsif-c"):
        with pytest.raises(ParameterError, match="bandwidth must be at least 1e-200 for private centres"):
            DensityRatio(epsilon=1, method=method, bandwidth=1e-250, **METHODS[method]).set_public(PUBLIC)


def test_a_penalty_that_vanishes_is_refused_before_the_charge(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=1)
    twice = {"basis": lambda x: [1e30, 1e30], "basis_bounds": (0, 1e30)}
    with pytest.raises(ParameterError, match="regularization must be large enough for a fit on the public table"):
        DensityRatio(epsilon=1, method="ulsif-parametric", ledger=book, **twice).fit(private=PRIVATE, public=PUBLIC)
    assert book.remaining.epsilon == 1
    assert list(fitted(np.ones(2), np.full((4, 2), 1e30), penalty=0.1)) == [0, 0]


def noise_scale(basis: object, rows: int) -> Fraction:
    plan = FixedBasis(
        basis=basis, public=PUBLIC, penalty=0.1, target=Target(epsilon=Fraction(1), delta=None, relation="replace-one")
    )
    del rows
    return plan._noise().l1


def test_erratum_2_the_papers_sensitivity_is_half_of_what_a_signed_basis_needs() -> None:
    from sabun.density.basis import BoundedBasis

    basis = BoundedBasis.of(lambda x: np.sign(x), (-1.0, 1.0), example=np.ones(3))
    change = basis.sums(np.ones((1, 3))) - basis.sums(-np.ones((1, 3)))
    found = sum(abs(int(value)) for value in change)
    paper = 3 * 2**30  # b C in our units
    assert found == 2 * paper == noise_scale(basis, 1)


def test_erratum_3_a_noise_scale_that_depends_on_n_is_not_private_under_removal() -> None:
    """log density ratio of Laplace noise with scales bC/(n eps) and bC/((n-1) eps) grows without bound."""
    b, n, epsilon = 50, 20, 1.0

    def loss(length: float) -> float:
        return abs(b * math.log(n / (n - 1)) - length * epsilon * (n - (n - 1)) / b)

    assert loss(1.0) == pytest.approx(2.5, abs=0.1)
    assert loss(1000.0) > 17
    with pytest.raises(ParameterError, match="relation must be 'replace-one' for method 'ulsif-b'"):
        DensityRatio(epsilon=1, method="ulsif-b", relation="add-remove")


def test_erratum_8_tuning_on_private_rows_leaks() -> None:
    """Leave-one-out on the private table is deterministic: one replaced record can flip its choice."""
    from sabun.density import ULSIF

    flips = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        private, public = rng.normal(2, 0.5, (60, 1)), rng.normal(1, 1, (50, 1))
        search = {"sigma": [0.2, 0.3, 0.5, 0.7, 1.0, 1.5], "centers": public[:20]}
        first = ULSIF(**search).fit(private=private, public=public)
        for value in (-3.0, 0.0, 1.0, 5.0):
            changed = private.copy()
            changed[0] = value
            other = ULSIF(**search).fit(private=changed, public=public)
            flips += (other.sigma_, other.lam_) != (first.sigma_, first.lam_)
    assert flips > 0


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_are_not_finite_take_the_same_path(method: str) -> None:
    private = PRIVATE.copy()
    private[:300] = np.array([[np.nan], [np.inf], [-np.inf], [1e308], [-1e308], [1e-320]] * 50)
    ratio = DensityRatio(epsilon=1, method=method, **CENTRES[method], **METHODS[method]).fit(private=private, public=PUBLIC)
    assert np.isfinite(ratio.weights_).all()
    plain = DensityRatio(epsilon=1, method=method, **CENTRES[method], **METHODS[method]).fit(private=PRIVATE, public=PUBLIC)
    shapes = [{name: np.shape(value) for name, value in r.release_.value.items()} for r in (ratio, plain)]
    assert shapes[0] == shapes[1]


def test_kernel_sums_stay_inside_the_papers_sensitivity() -> None:
    kernel = GaussianKernel.of(np.zeros((6, 1)), bandwidth=1.0)
    near, far = kernel.sums(np.zeros((1, 1))), kernel.sums(np.full((1, 1), 1e9))
    assert sum(int(a - b) for a, b in zip(near, far, strict=True)) == noise_scale(kernel, 1)


def test_noisy_rows_may_lie_anywhere_but_stay_finite() -> None:
    plan = NoisyCentres(
        public=PUBLIC, wanted=5, bandwidth=1.0, penalty=0.1, box=np.array([[-3.0, 5.0]]),
        target=Target(epsilon=Fraction(1, 10**9), delta=None, relation="replace-one"),
    )  # fmt: skip
    drawn = plan.draw(PRIVATE, os_coin())
    assert np.isfinite(drawn["centres"]).all()
    assert np.isfinite(drawn["weights"]).all()


def test_method_a_spends_epsilon_once_over_both_of_its_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Erratum 4: epsilon for the centres and epsilon again for h would be 2 epsilon."""
    from sabun.density import paper

    spent: list[Fraction] = []
    honest = paper.ManhattanNoise.add

    def recorded(self: object, vector: object, *, coin: object) -> list[int]:
        spent.append(self.epsilon)
        return honest(self, vector, coin=coin)

    monkeypatch.setattr(paper.ManhattanNoise, "add", recorded)
    DensityRatio(epsilon=1, method="ulsif-a", n_centers=20, bounds=[(-3, 5)]).fit(private=PRIVATE, public=PUBLIC)
    centres, h = spent
    assert h == Fraction(1, 2)
    assert math.log1p(20 / 800 * math.expm1(centres)) == pytest.approx(0.5)


def test_methods_b_and_c_spend_epsilon_on_h(monkeypatch: pytest.MonkeyPatch) -> None:
    from sabun.density import paper

    spent: list[tuple[Fraction, Fraction]] = []
    honest = paper.ManhattanNoise.add

    def recorded(self: object, vector: object, *, coin: object) -> list[int]:
        spent.append((self.epsilon, self.l1))
        return honest(self, vector, coin=coin)

    monkeypatch.setattr(paper.ManhattanNoise, "add", recorded)
    for method in ("ulsif-b", "ulsif-c"):
        DensityRatio(epsilon=1, method=method, **CENTRES[method], **METHODS[method]).fit(private=PRIVATE, public=PUBLIC)
    assert spent == [(Fraction(1), Fraction(20 * 2**30))] * 2


def test_the_noise_on_centres_covers_a_row_that_crosses_the_whole_box(monkeypatch: pytest.MonkeyPatch) -> None:
    from sabun.density import paper

    drawn: list[tuple[list[int], Fraction]] = []

    def recorded(self: object, vector: object, *, coin: object) -> list[int]:
        drawn.append((list(vector), self.l1))
        return list(vector)

    monkeypatch.setattr(paper.ManhattanNoise, "add", recorded)
    public = np.random.default_rng(1).normal(size=(30, 2))
    for private in (np.full((4, 2), -1e9), np.full((4, 2), 1e9), np.full((4, 2), np.nan)):
        DensityRatio(epsilon=1, method="ulsif-a", n_centers=4, bounds=[(-3, 5), (0, 1)]).fit(private=private, public=public)
    (low, l1), _, (high, _), _, (middle, _), _ = drawn
    one_row = sum(abs(a - b) for a, b in zip(low[:2], high[:2], strict=True))
    assert one_row == l1 == 2 * 2**30, "two columns, each across its box"
    assert sum(abs(a - b) for a, b in zip(low[:2], middle[:2], strict=True)) <= l1
