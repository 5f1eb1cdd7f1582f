from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.learning_samples import SCHEMA, people
from sabun.errors import ParameterError
from sabun.learning.recompute import recompute
from sabun.learning.synthesis.bayes_net import BayesNet
from sabun.learning.synthesis.domain import Domain
from sabun.learning.synthesis.histogram import Histogram
from sabun.learning.synthesis.marginals import conditional, noisy_counts
from sabun.learning.synthesis.microaggregation import Microaggregation
from sabun.learning.synthesis.structure import SENSITIVITY, _exponential, grow_tree, score
from sabun.privacy.noise import os_coin, seeded_coin

DOMAIN = Domain(schema=SCHEMA, bins=4)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_one_record_changes_a_score_by_at_most_its_sensitivity(data: st.DataObject) -> None:
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)), 2)
    count = data.draw(st.integers(1, 25))
    cells = [data.draw(st.lists(st.integers(0, size - 1), min_size=count + 1, max_size=count + 1)) for size in shape]
    left, right, labels = (np.array(column) for column in cells)
    whole = score(left[:count], right[:count], labels[:count], shape)
    less = score(left[: count - 1], right[: count - 1], labels[: count - 1], shape)
    replaced = score(*(np.r_[column[: count - 1], column[count]] for column in (left, right, labels)), shape)
    assert abs(whole - less) <= SENSITIVITY["add-remove"]
    assert abs(whole - replaced) <= SENSITIVITY["replace-one"]


def test_a_sensitivity_of_three_would_be_too_small() -> None:
    # Everybody in one cell, then one record elsewhere: the cell counts 1, the expectation moves by almost 3 more.
    sizes = []
    for count in range(1, 12):
        ones = np.zeros(count, dtype=int)
        sizes.append(abs(score(np.r_[ones, 1], np.r_[ones, 1], np.r_[ones, 0], (2, 2, 1)) - score(ones, ones, ones, (2, 2, 1))))
    assert max(sizes) > 3


def test_the_exponential_draw_has_its_exact_law() -> None:
    pairs = [(1, 0), (2, 0), (3, 0)]
    scores = {(1, 0): Fraction(0), (2, 0): Fraction(2), (3, 0): Fraction(3)}
    coin, drawn = seeded_coin(1), Counter()
    for _ in range(6000):
        drawn[_exponential(pairs, scores, Fraction(1, 2), coin)] += 1
    weights = np.exp([0, 1, 1.5])
    for pair, share in zip(pairs, weights / weights.sum(), strict=True):
        assert abs(drawn[pair] / 6000 - share) < 0.03


def test_the_tree_finds_the_column_that_explains() -> None:
    generator = np.random.default_rng(0)
    first, third = generator.integers(0, 3, 4000), generator.integers(0, 3, 4000)
    codes = np.stack([first, first, third], axis=1)
    labels = generator.integers(0, 2, 4000)
    tree = grow_tree(codes, labels, (3, 3, 3), 2, epsilon=Fraction(1), relation="add-remove", coin=os_coin())
    assert (1, 0) in tree
    assert tree[0][0] == 0
    assert len(tree) == 3


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(0, 5))
def test_one_record_is_in_one_cell(cells: list[int], other: int) -> None:
    before, after = np.bincount(cells, minlength=6), np.bincount([*cells[:-1], other], minlength=6)
    assert np.abs(before - after).sum() <= 2
    assert ((before - after) ** 2).sum() <= 2


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(1, 50)])
def test_noise_on_counts_has_the_stated_deviation(rho: Fraction) -> None:
    cells = np.zeros(10, dtype=np.int64)
    noisy, deviation = noisy_counts(cells, 20_000, epsilon=Fraction(1, 2), rho=rho, relation="replace-one", coin=os_coin())
    assert noisy[1:].std() == pytest.approx(deviation, rel=0.05)
    assert len(noisy) == 20_000


def test_conditionals_are_probabilities_even_of_nothing() -> None:
    table = conditional(np.full((2, 3, 4), -5.0), 2.0)
    np.testing.assert_allclose(table.sum(axis=-1), 1.0)
    assert (table > 0).all()


@pytest.mark.parametrize(("delta", "relation"), [("0", "add-remove"), ("1/100000", "replace-one"), ("1/100000", "add-remove")])
def test_the_parts_of_a_bayesian_network_add_up_to_its_price(delta: str, relation: str) -> None:
    net = BayesNet(domain=DOMAIN, classes=2, epsilon=Fraction(1), delta=Fraction(delta), relation=relation)
    epsilon, found = recompute(net.account())
    assert Fraction(97, 100) < epsilon <= 1
    assert found == Fraction(delta)


def test_a_synthetic_table_has_the_size_asked_for_whatever_the_records() -> None:
    net = BayesNet(domain=DOMAIN, classes=2, epsilon=Fraction(1), delta=Fraction(0), relation="add-remove")
    for count in (0, 1, 300):
        frame, label = people(max(count, 1))
        codes = DOMAIN.codes(SCHEMA.encode(frame))[:count]
        made, labels = net.draw(codes, (label[:count] == "yes").astype(np.int64), n_rows=50, coin=os_coin())
        assert made.shape == (50, 4)
        assert labels.shape == (50,)
        assert (made >= 0).all()
        assert (made < np.array(DOMAIN.sizes)).all()


def test_a_synthetic_table_keeps_what_the_label_says() -> None:
    frame, label = people(4000)
    codes, labels = DOMAIN.codes(SCHEMA.encode(frame)), (label == "yes").astype(np.int64)
    net = BayesNet(domain=DOMAIN, classes=2, epsilon=Fraction(4), delta=Fraction(0), relation="add-remove")
    made, made_labels = net.draw(codes, labels, n_rows=4000, coin=os_coin())
    assert abs(made_labels.mean() - labels.mean()) < 0.05
    assert abs(made[made_labels == 1, 0].mean() - codes[labels == 1, 0].mean()) < 0.2


def test_cells_and_values_are_inverse_to_each_other() -> None:
    frame, _ = people(200)
    codes = DOMAIN.codes(SCHEMA.encode(frame))
    assert (DOMAIN.codes(DOMAIN.matrix(codes, coin=os_coin())) == codes).all()


def test_a_histogram_of_too_many_cells_is_refused() -> None:
    with pytest.raises(ParameterError, match="cells of a histogram must be at most 2000000"):
        Histogram(domain=Domain(schema=SCHEMA, bins=2000), classes=2, epsilon=Fraction(1), relation="add-remove")


def test_a_histogram_of_few_cells_is_close_to_the_records() -> None:
    frame, label = people(3000)
    histogram = Histogram(domain=DOMAIN, classes=2, epsilon=Fraction(5), relation="add-remove")
    made, labels = histogram.draw(
        DOMAIN.codes(SCHEMA.encode(frame)), (label == "yes").astype(np.int64), n_rows=3000, coin=os_coin()
    )
    assert abs(labels.mean() - (label == "yes").mean()) < 0.06
    assert made.shape == (3000, 4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_replacing_a_record_changes_each_groups_sum_by_at_most_one_record(seed: int) -> None:
    generator = np.random.default_rng(seed)
    aggregation = Microaggregation(schema=SCHEMA, classes=2, epsilon=Fraction(1), group_size=4, n_records=19)
    frame, label = people(20, seed)
    rows = SCHEMA.design(SCHEMA.encode(frame), to=(0.0, 1.0))
    labels = (label == "yes").astype(np.int64)
    place = int(generator.integers(0, 19))
    changed = np.arange(19)
    changed[place] = 19
    sums = []
    for members in (np.arange(19), changed):
        silent = _NoNoise()
        inputs, _ = aggregation.means(rows[members], labels[members], coin=silent)  # type: ignore[arg-type]
        sums.append(inputs)
    # Without noise the means differ by at most the distance of two records over the group size, group by group.
    assert (np.abs(sums[0] - sums[1]).sum(axis=1) * aggregation.members <= aggregation.record_steps / 1024 + 1e-9).all()


def test_the_table_of_groups_has_the_mean_of_its_group_for_each_record() -> None:
    frame, label = people(110, 3)
    frame.loc[:, "sex"] = "X"  # none of the declared ones
    rows = SCHEMA.design(SCHEMA.encode(frame), to=(0.0, 1.0))
    labels = (label == "yes").astype(np.int64)
    grouped = Microaggregation(schema=SCHEMA, classes=2, epsilon=Fraction(1), group_size=50, n_records=110)
    assert grouped.members.tolist() == [50, 50, 10]
    means, _ = grouped.means(rows, labels, coin=_NoNoise())  # type: ignore[arg-type]
    table = grouped.records(means)
    assert table.shape == (110, 4)
    order = np.argsort(rows[:, 0], kind="stable")  # records are put in order by age first
    for place in (slice(0, 50), slice(50, 100), slice(100, 110)):
        own = rows[order[place]].mean(axis=0)
        assert np.allclose(table[place, 0], 100 * own[0], atol=0.2)
        assert np.allclose(table[place, 1], np.expm1(own[1] * np.log1p(10_000)), rtol=0.02)
        assert (table[place, 2] == -1).all()
        assert (table[place, 3] == own[4:].argmax()).all()


class _NoNoise:
    """Stands for a coin; the sampler below ignores it."""


@pytest.fixture(autouse=True)
def _silence(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "group" in request.node.name:
        monkeypatch.setattr(
            "sabun.learning.synthesis.microaggregation.discrete_laplace",
            lambda scale, *, coin, size: np.zeros(size, dtype=np.int64),
        )


def test_grouping_columns_one_by_one_and_joining_again_is_not_private() -> None:
    """Each column in its own groups: the pattern of group numbers is released exactly, at any noise."""

    def pattern(rows: list[tuple[float, float]]) -> int:
        codes = []
        for column in zip(*rows, strict=True):
            order = np.argsort(column)
            groups = np.empty(len(column), dtype=int)
            groups[order] = np.arange(len(column)) // 2
            codes.append(groups)
        return len(set(zip(*codes, strict=True)))

    assert pattern([(0.1, 0.1), (0.2, 0.2), (0.8, 0.8), (0.9, 0.9)]) == 2
    assert pattern([(0.1, 0.1), (0.2, 0.95), (0.8, 0.8), (0.9, 0.9)]) == 4
