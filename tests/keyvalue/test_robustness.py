from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.keyvalue import Study, index_uniformity_test, influence_bounds, report_size_test


@pytest.mark.parametrize(
    ("keys", "n", "studies"), [(2000, 2000, 1500), (2000, 400, 3000), (500, 25, 6000), (50, 50, 6000), (5, 15, 6000)]
)
def test_honest_studies_are_rarely_flagged_however_few_reports_a_key_has(keys: int, n: int, studies: int) -> None:
    """By normal tails 31 % were, at level 0.001 and one report per key."""
    asked = np.random.default_rng(keys + n).multinomial(n, np.full(keys, 1 / keys), size=studies)
    for level in (0.001, 0.05):
        flagged = sum(index_uniformity_test(one, significance=level).suspicious for one in asked)
        assert flagged <= studies * level + 4 * np.sqrt(studies * level) + 1


def test_the_tail_of_the_most_asked_key_is_the_binomial_one() -> None:
    found = index_uniformity_test([5, 1, 0, 0])
    exact = sum(np.prod(np.arange(6, 6 - k, -1)) / np.prod(np.arange(1, k + 1)) * 0.25**k * 0.75 ** (6 - k) for k in (5, 6))
    assert found.largest_p_value == pytest.approx(4 * exact)


def test_the_law_of_chi_square_is_reached_where_reports_are_many() -> None:
    from scipy.stats import chi2

    asked = np.random.default_rng(0).multinomial(10**6, np.full(50, 0.02), size=20)
    for one in asked:
        found = index_uniformity_test(one)
        assert found.p_value == pytest.approx(chi2.sf(found.chi_square, 49), rel=0.02)


@pytest.mark.parametrize(("keys", "n"), [(2000, 2000), (2000, 500), (300, 100)])
def test_aimed_reports_show_among_few_reports_per_key(keys: int, n: int) -> None:
    asked = np.random.default_rng(0).multinomial(n, np.full(keys, 1 / keys), size=20)
    asked[:, 7] += 12
    assert all(index_uniformity_test(one).suspicious for one in asked)


def largest_shares(keys: int, n: int, fraction: float, times: int) -> np.ndarray:
    dice, fakes = np.random.default_rng(keys + n), round(fraction * n)
    met, honest = (dice.multinomial(people, np.full(keys, 1 / keys), size=times) for people in (fakes, n - fakes))
    return np.asarray((met / np.maximum(met + honest, 1)).max(axis=1))


@pytest.mark.parametrize(("keys", "n", "fraction"), [(2000, 100_000, 0.01), (50, 100_000, 0.01), (20, 2000, 0.05)])
def test_the_bound_holds_for_every_key_of_an_assigned_study(keys: int, n: int, fraction: float) -> None:
    """With 2000 keys and 50 reports about each, some key meets nine times its part of the fakes: 0.0158 was stated."""
    study = Study(keys=list(range(keys)), epsilon=1.0)
    shares = largest_shares(keys, n, fraction, 400)
    loose, tight = (influence_bounds(study, fraction=fraction, n=n, significance=level) for level in (0.001, 0.2))
    assert (shares > loose.share).mean() <= 0.01
    assert 0.05 <= (shares > tight.share).mean() <= 0.25, "the level is what it says, not far below it"
    assert shares.mean() > influence_bounds(study, fraction=fraction).share
    assert loose.frequency_up / loose.share == pytest.approx(tight.frequency_up / tight.share)


def test_the_average_over_assignments_needs_no_number_of_people() -> None:
    """Given how many reports a key has, each is as likely a fake as any."""
    dice, fakes, honest, keys = np.random.default_rng(0), 50, 950, 20
    met, rest = (dice.multinomial(people, np.full(keys, 1 / keys), size=4000)[:, 0] for people in (fakes, honest))
    assert (met / (met + rest)).mean() == pytest.approx(0.05, abs=0.003)
    assert influence_bounds(Study(keys=list(range(keys)), epsilon=1.0), fraction=0.05).share == 0.05


def test_fakes_who_choose_their_key_all_meet_at_it() -> None:
    study = Study(keys=list(range(50)), epsilon=1.0, index_mode="chosen")
    assert influence_bounds(study, fraction=0.01).share == pytest.approx(0.01 / (0.01 + 0.99 / 50))
    assert 0.33 < influence_bounds(study, fraction=0.01, n=100_000).share < 0.40


def test_every_padded_report_is_about_every_key() -> None:
    study = Study(keys=list(range(50)), epsilon=1.0, protocol="pckv-ue", padding_length=3)
    assert influence_bounds(study, fraction=0.01) == influence_bounds(study, fraction=0.01, n=500)


@pytest.mark.parametrize("n", [1, 2, 10])
def test_with_hardly_anybody_a_key_may_be_all_fakes(n: int) -> None:
    assert influence_bounds(Study(keys=["a", "b"], epsilon=1.0), fraction=0.3, n=n).share == pytest.approx(1)
    assert influence_bounds(Study(keys=["a", "b"], epsilon=1.0), fraction=0, n=n).frequency_up == 0


def test_bad_arguments_of_the_bound_are_named() -> None:
    study = Study(keys=["a"], epsilon=1.0)
    with pytest.raises(ParameterError, match="n must be a whole number >= 1; got 0"):
        influence_bounds(study, fraction=0.1, n=0)
    with pytest.raises(ParameterError, match="significance must be at least 0 and below 1; got 2"):
        influence_bounds(study, fraction=0.1, n=10, significance=2)


@pytest.mark.parametrize(("keys", "reports"), [(3, 10), (5, 13), (8, 11)])
def test_honest_studies_of_a_few_reports_are_flagged_no_more_often_than_the_level(keys: int, reports: int) -> None:
    flagged = 0
    for spread in _spreads(reports, keys, reports):
        ways = math.factorial(keys) * math.factorial(reports)
        for part in spread:
            ways //= math.factorial(part)
        for times in Counter(spread).values():
            ways //= math.factorial(times)
        flagged += ways * index_uniformity_test(spread).suspicious
    assert 0 < flagged <= keys**reports * 0.001


def _spreads(reports: int, keys: int, most: int) -> Iterator[list[int]]:
    """Numbers of reports per key, falling, each arrangement once."""
    if keys == 0:
        yield from [[]] if reports == 0 else []
        return
    for first in range(min(reports, most), -1, -1):
        yield from ([first, *others] for others in _spreads(reports - first, keys - 1, first))


def test_the_older_name_of_the_significance_is_still_taken() -> None:
    assert index_uniformity_test([9, 1, 0, 0, 0, 0, 0, 0], level=0.5).suspicious
    for bad in (-1, 1, "x"):
        with pytest.raises(ParameterError, match="significance must be at least 0 and below 1"):
            index_uniformity_test([1, 2], significance=bad)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="significance must be at least 0 and below 1"):
            report_size_test(Study(keys=["a"], epsilon=1, protocol="pckv-ue"), [[1]], significance=bad)  # type: ignore[arg-type]
