from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.keyvalue_plans import foretold
from benchmarks.keyvalue_populations import SEEN, TUNED

from sabun.asking import Planned
from sabun.keyvalue import Study
from sabun.keyvalue.channel import Counts
from sabun.keyvalue.inversion import unbiased
from sabun.keyvalue.population import People


def test_errors_are_what_was_foretold_within_a_factor_of_three() -> None:
    """The paper's sets and three others, 36 cells; the whole grid is `python -m benchmarks.keyvalue_plans`."""
    sets = {name: TUNED[name] for name in ("gaussian", "linear", "power")}
    sets |= {name: SEEN[name] for name in ("geometric", "log-normal", "against")}
    found = foretold(sets, keys=(50,), seed=5, epsilons=(1.0, 3.0))
    assert len(found) == 36
    for place in (0, 1):
        assert np.mean([cell.right[place] for cell in found]) >= 0.9
        assert np.mean([cell.within[place] for cell in found]) >= 0.6, "eight of ten over the whole grid"


def test_a_plan_foretells_and_says_what_it_assumes() -> None:
    study = Study(keys=list("abcdefgh"), epsilon=1.0, value_range=(0, 10))
    plan = study.plan(n_records=40_000, frequency=0.2)
    assert isinstance(plan, Planned)
    assert [one.quantity for one in plan.forecasts] == [
        "error of the frequencies, root mean square over keys",
        "error of the means, root mean square over holders",
    ]
    for words in (
        "if there are keys with frequencies around 0.2",
        "means scattered by a quarter of the range",
        "eight of ten studies",
    ):
        assert words in str(plan)
    assert plan.to_dict()["forecasts"][0]["middle"] == plan.forecasts[0].middle
    assert not plan.vacuous


def test_who_knows_nothing_hears_the_best_and_the_worst() -> None:
    study = Study(keys=list(range(50)), epsilon=1.0)
    best_f, best_m, worst_f, worst_m = study.plan(n_records=50_000).forecasts
    for best, worst in ((best_f, worst_f), (best_m, worst_m)):
        assert best.quantity.endswith("at best")
        assert worst.quantity.endswith("at worst")
        assert best.quantity.partition(",")[0] == worst.quantity.partition(",")[0]
        assert best.middle < worst.middle, "rare keys are the best case of frequencies, the worst of means"
    told = Study(keys=list(range(50)), epsilon=1.0, typical_frequency=0.1)
    assert len(told.plan(n_records=50_000).forecasts) == 2, "the study's own guess is taken"


@pytest.mark.parametrize(("n", "vacuous"), [(50, True), (100_000, False)])
def test_a_plan_says_when_an_answer_will_tell_nothing(n: int, vacuous: bool) -> None:
    plan = Study(keys=list(range(50)), epsilon=0.5, protocol="kv3").plan(n_records=n)
    assert plan.vacuous is vacuous
    assert ("as far off as a guess" in str(plan)) is vacuous
    assert ("root mean square over keys" in str(plan)) is not vacuous, "no figure beside a guess"
    assert (plan.forecasts[0].middle >= 0.29) is vacuous
    assert all(math.isfinite(one.high) for one in plan.forecasts)


def test_a_plan_has_one_figure_for_each_error_and_says_what_belongs_to_it() -> None:
    plan = Study(keys=list(range(50)), epsilon=1.0).plan(n_records=50_000)
    lines = [line for line in str(plan).splitlines() if line.startswith("error of the")]
    assert len(lines) == 4
    for line, one in zip(lines, plan.forecasts, strict=True):
        assert f"about {one.middle:.3g} (in eight of ten studies {one.low:.3g} to {one.high:.3g}), if there are" in line
        assert one.assumed[0] in line
    assert "expected error" not in str(plan)


@pytest.mark.parametrize(("frequency", "weak"), [(0.05, True), (0.5, False)])
def test_what_cannot_be_learned_of_a_mean_is_blamed_on_no_single_cause(frequency: float, weak: bool) -> None:
    plan = Study(keys=list("abcd"), epsilon=1.0).plan(n_records=2000, frequency=frequency)
    assert not plan.vacuous
    assert f"Of one key with a frequency of {frequency:g} the interval reaches about" in str(plan)
    assert ("will not stand out from noise, so its mean cannot be learned" in str(plan)) is weak
    assert ("that of its mean" in str(plan)) is not weak, "no reach where nothing is learned"


def test_no_error_beyond_what_is_possible_is_told() -> None:
    plan = Study(keys=list("abcd"), epsilon=0.001).plan(n_records=2000, frequency=0.3)
    assert plan.frequency_error > 1
    assert str(plan).splitlines()[1:] == [
        "Even at best a frequency will be as far off as a guess. Ask more people, fewer keys or a larger epsilon."
    ]


@pytest.mark.parametrize("mean", [-0.6, 0.0, 0.6])
def test_planned_errors_are_those_of_many_studies(mean: float) -> None:
    """A mean is a quotient: what its two parts have in common counts, with its sign."""
    study, f = Study(keys=["a"], epsilon=3, protocol="kv3"), 0.5
    law = np.array([f * (1 + mean) / 2, f * (1 - mean) / 2, 1 - f]) @ study.channel.rows
    seen = np.random.default_rng(0).multinomial(5000, law, size=4000)
    found = unbiased(study.channel, Counts(plus=seen[:, 0], minus=seen[:, 1], total=np.full(4000, 5000)))
    plan = study.plan(n_records=5000, frequency=f, mean=mean)
    assert [plan.frequency_error, plan.mean_error] == pytest.approx([part.std() for part in found], rel=0.05)


CUT = Study(
    keys=list(range(200)), epsilon=1, protocol="auto-f", keys_per_user=20, typical_frequency=0.02, expected_reports=10**4
)
ZIPF = 0.02 * 200 / np.sum(1 / np.arange(1, 201)) / np.arange(1, 201)


@pytest.mark.parametrize("f", [ZIPF, np.full(200, 0.02)], ids=["zipf", "even"])
@pytest.mark.parametrize("n", [10_000, 1_000_000])
@pytest.mark.parametrize("protocol", ["set-f", "pckv-ue"])
def test_what_padding_cuts_off_is_foretold(f: np.ndarray, n: int, protocol: str) -> None:
    assert (CUT.protocol, CUT.terms.padding_length) == ("set-f", 1), "the advisor cuts keys off here"
    study = Study(keys=CUT.keys, epsilon=1, protocol=protocol, keys_per_user=20, typical_frequency=0.02, padding_length=1)
    found = study.simulate(f, np.zeros(200), n=n, random_state=0).estimate().frequency
    error = np.sqrt(np.mean((found - f) ** 2))
    best, worst = study.plan(n_records=n).forecasts[0], study.plan(n_records=n).forecasts[-1]
    assert 1 / 3 < error / best.middle < 3, "people here hold keys independently"
    assert best.middle <= worst.middle


KEYS, PEOPLE, AROUND = 100, 50_000, 0.06


def _held_by(tendencies: np.ndarray, most: int) -> People:
    """People who hold each key with a probability of their own, at most so many."""
    dice = np.random.default_rng(1).random((PEOPLE, KEYS))
    held = dice < tendencies[:, None]
    held &= np.where(held, dice, 2).argsort(axis=1).argsort(axis=1) < most if most < KEYS else held
    return People.of_table(np.where(held, 0.0, np.nan))


def _unequal(name: str) -> np.ndarray:
    dice = np.random.default_rng(2)
    if name == "heavy holders":
        return np.where(dice.random(PEOPLE) < 0.05, 0.6 * AROUND / 0.05, 0.4 * AROUND / 0.95)
    shape = {"geometric": 1.0, "negative binomial": 0.3}[name]
    return np.minimum(dice.gamma(shape, AROUND / shape, PEOPLE), 1.0)


@pytest.mark.parametrize("most", [None, 40])
@pytest.mark.parametrize("name", ["geometric", "negative binomial", "heavy holders"])
def test_errors_lie_between_both_forecasts_however_unequally_people_hold_keys(name: str, most: int | None) -> None:
    people = _held_by(_unequal(name), most or KEYS)
    f = people.moments(KEYS)[0]
    study = Study(keys=list(range(KEYS)), epsilon=6, protocol="set-f", padding_length=10, keys_per_user=most)
    found = study.simulate_people(people, random_state=0).estimate().frequency
    plan = study.plan(n_records=PEOPLE, frequency=AROUND)
    best, worst = plan.forecasts
    error = np.sqrt(np.mean((found - f) ** 2))
    assert error > 3 * best.middle, "the best case alone would be wrong here"
    assert error < 3 * worst.middle
    assert plan.bias < np.mean(f - found) < plan.worst_bias


def test_where_padding_may_cut_there_are_two_forecasts_of_each_with_what_they_assume() -> None:
    study = Study(keys=list(range(100)), epsilon=4, protocol="set", keys_per_user=30, padding_length=10)
    for frequency in (0.06, None):
        plan = study.plan(n_records=50_000, frequency=frequency)
        best_f, best_m, worst_f, worst_m = plan.forecasts
        for best, worst in ((best_f, worst_f), (best_m, worst_m)):
            assert best.quantity.endswith("at best")
            assert worst.quantity.endswith("at worst")
            assert best.middle < worst.middle
            assert best.assumed[-1] == "people who hold keys independently of each other, at most 30 each"
            assert worst.assumed[-1] == "people who hold 30 keys each, or none"
    assert plan.worst_bias == pytest.approx(0.5 * 2 / 3)
    assert plan.to_dict()["worst_bias"] == plan.worst_bias


def test_whether_a_plan_tells_nothing_goes_by_the_best_case_of_padding() -> None:
    study = Study(keys=list(range(100)), epsilon=4, protocol="set-f", padding_length=20)
    plan = study.plan(n_records=50_000, frequency=0.5)
    best, worst = plan.forecasts
    assert best.middle < 0.29 < worst.middle
    assert not plan.vacuous


@pytest.mark.parametrize("n", [100, 50_000])
def test_a_bias_that_is_hardly_reckoned_is_named_all_the_same(n: int) -> None:
    """A few people who hold every key are cut off, however small the bias where people hold keys independently."""
    study = Study(keys=list(range(100)), epsilon=6, protocol="set-f", padding_length=60)
    plan = study.plan(n_records=n, frequency=0.01)
    assert plan.bias < 1e-9
    assert plan.worst_bias == pytest.approx(0.004)
    told = study.plan(n_records=500_000, frequency=0.01)
    assert "comes out up to 0.004 too small" in str(told)
    assert "hardly any bias where people hold keys independently" in str(told)
    assert "with probability 0.95, not the truth." in str(told)
    assert "holds the truth" not in str(told)
    assert "e-" not in str(told), "no figure that means nothing"
    assert len(plan.forecasts) == 2


def test_a_plan_names_the_bias_of_padding_and_promises_no_cover_for_it() -> None:
    study = Study(keys=list("ABCDE"), epsilon=2, protocol="set", keys_per_user=4, padding_length=1)
    plan = study.plan(n_records=200_000, frequency=0.5)
    found = study.simulate([0.5] * 5, [0.0] * 5, n=200_000, random_state=0).estimate().frequency
    assert plan.bias == pytest.approx(0.5 - found.mean(), abs=0.02), "people here may hold five, by a chance of one in 32"
    assert "comes out between 0.3 and 0.375 too small, by how unequally people hold keys, however many answer" in str(plan)
    assert "people who hold keys independently of each other, at most 4 each" in str(plan)
    assert "holds what padding keeps (a frequency of about 0.125 to 0.2) with probability 0.95, not the truth." in str(plan)
    assert "holds the truth" not in str(plan)
    assert plan.to_dict()["bias"] == plan.bias


@pytest.mark.parametrize("terms", [{"protocol": "kv3"}, {"protocol": "set", "padding_length": 4}, {"protocol": "pckv-ue"}])
def test_a_plan_knows_no_bias_where_nothing_is_cut_off(terms: dict[str, Any]) -> None:
    plan = Study(keys=list("ABCDE"), epsilon=2, keys_per_user=4, **terms).plan(n_records=200_000, frequency=0.5)
    assert (plan.bias, plan.worst_bias, plan.bias_reckoning) == (0, 0, "")
    assert "worst_bias" not in plan.to_dict()
    assert len(plan.forecasts) == 2
    assert "independently" not in str(plan)
    assert "each holds the truth with probability 0.95." in str(plan)
