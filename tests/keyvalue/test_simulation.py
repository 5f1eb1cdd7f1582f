from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.keyvalue import Attack, People, Study, index_uniformity_test, influence_bounds, report_size_test
from sabun.keyvalue.client.probabilities import table_for
from sabun.keyvalue.enumeration import report_law
from sabun.keyvalue.simulation import generator_of, pick_probabilities, sampled_reports

F, M = np.array([0.5, 0.3, 0.1, 0.9]), np.array([0.2, -0.8, 1.0, 0.0])


def made_up(n: int, seed: int = 0) -> People:
    dice = np.random.default_rng(seed)
    held = dice.random((n, 4)) < F
    return People.of_table(np.where(held, M, np.nan))


@pytest.mark.parametrize("protocol", ["kv3", "privkv", "privkv-tight", "pckv-ue", "pckv-grr", "pckv-grr+"])
def test_counts_of_a_simulation_have_the_law_of_single_people(protocol: str) -> None:
    """Both simulators against the enumerated law of one report, by the mean of each counter."""
    padding = 2 if protocol.startswith("pckv") else None
    study = Study(keys=list(range(4)), epsilon=1.5, protocol=protocol, padding_length=padding)
    n, expected = 200_000, expected_shares(study)
    quick = study.simulate(F, M, n=n, random_state=1).counts()
    one_by_one = study.simulate_people(made_up(n), random_state=2).counts()
    for counts in (quick, one_by_one):
        found = np.column_stack([counts.plus, counts.minus]) / n
        assert np.abs(found - expected).max() < 6 * np.sqrt(0.25 / n)


def expected_shares(study: Study) -> np.ndarray:
    """The probability that a report of a random person counts as + or - of each key, from the exact law."""
    total = np.zeros((4, 2))
    for code in range(81):
        states = tuple(code // 3**key % 3 for key in range(4))
        weight = np.prod([[1 - F[k], F[k] * (1 + M[k]) / 2, F[k] * (1 - M[k]) / 2][state] for k, state in enumerate(states)])
        if weight > 0:
            total += weight * marginal(study, states)
    return total


def marginal(study: Study, states: tuple[int, ...]) -> np.ndarray:
    law = np.array([float(entry) for entry in report_law(study.terms, states)])
    if study.terms.sampled:
        return law.reshape(4, 3)[:, 1:]
    if study.protocol == "pckv-ue":
        shaped = law.reshape(3, 3, 3, 3)
        axes = range(4)
        return np.array([shaped.sum(axis=tuple(a for a in axes if a != key))[1:] for key in axes])
    return law[1:].reshape(4, 2)


def test_pick_probabilities_are_the_expected_share_of_a_holder() -> None:
    f = np.array([0.2, 0.5, 1.0, 0.0, 0.7])
    for padding in (1, 2, 5):
        found = pick_probabilities(f, padding)
        for key in range(5):
            others = np.delete(f, key)
            exact = 0.0
            for code in range(16):
                held = [code >> k & 1 for k in range(4)]
                weight = np.prod([p if h else 1 - p for p, h in zip(others, held, strict=True)])
                exact += weight / max(1 + sum(held), padding)
            assert found[key] == pytest.approx(exact, abs=1e-12)


def test_a_seed_gives_the_same_tally_and_no_seed_another() -> None:
    study = Study(keys=list(range(4)), epsilon=1.0)
    assert study.simulate(F, M, n=1000, random_state=5) == study.simulate(F, M, n=1000, random_state=5)
    assert study.simulate(F, M, n=1000) != study.simulate(F, M, n=1000)


def test_everybody_is_asked_once() -> None:
    study = Study(keys=list(range(4)), epsilon=1.0)
    index, symbol = sampled_reports(study, made_up(5000), random_state=0)
    assert np.bincount(index, minlength=4).sum() == 5000
    assert set(symbol) == {0, 1, 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"frequencies": [0.5]}, r"frequencies must be one number per key \(4\)"),
        ({"frequencies": [2, 0, 0, 0]}, "frequencies must be numbers from 0 to 1"),
        ({"means": [np.nan] * 4}, "means must be numbers from -1.0 to 1.0"),
        ({"n": 0}, "n must be a whole number >= 1; got 0"),
        ({"n": 10**10}, "n must be at most 1000000000"),
        ({"random_state": "x"}, "random_state must be None or a whole number >= 0; got 'x'"),
        ({"attack": Attack(kind="m2ga", fraction=0.1, targets=(4,))}, "targets must be positions of the study's keys"),
    ],
)
def test_bad_parameters_of_a_simulation_are_named(arguments: dict[str, Any], message: str) -> None:
    study = Study(keys=list(range(4)), epsilon=1.0)
    with pytest.raises(ParameterError, match=message):
        study.simulate(**{"frequencies": F, "means": M, "n": 10, "random_state": 0} | arguments)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([0, 1], [0, 1], [0.5, 0.5]), "starts must begin with 0"),
        (([0, 2], [1, 0], [0.5, 0.5]), "keys must be >= 0, sorted and distinct for each person"),
        (([0, 1], [0], [1.5]), r"values must be numbers in \[-1, 1\]"),
        (([0, 1], [0], [np.nan]), r"values must be numbers in \[-1, 1\]"),
    ],
)
def test_people_that_do_not_fit_together_are_refused(arrays: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        People(starts=arrays[0], keys=arrays[1], values=arrays[2])


def test_people_know_their_moments() -> None:
    f, m = People.of_table([[0.5, np.nan], [1.0, np.nan]]).moments(2)
    assert (f.tolist(), m[0]) == ([1.0, 0.0], 0.75)
    assert np.isnan(m[1])
    with pytest.raises(ParameterError, match="table must have two dimensions; got 1"):
        People.of_table([1.0])
    with pytest.raises(ParameterError, match="keys must be below the number of the study's keys; got 1"):
        Study(keys=["a"], epsilon=1.0).simulate_people(People.of_table([[np.nan, 0.5]]), random_state=0)
    with pytest.raises(ParameterError, match="protocol must be one that asks once; got 'privkvm'"):
        Study(keys=["a"], epsilon=1.0, protocol="privkvm").simulate_people(People.of_table([[0.5]]), random_state=0)


POWER = (1 + 0.01 * np.arange(50)) ** -11.0
TARGETS = tuple(range(45, 50))


def gain(protocol: str, kind: str, mode: str, method: str = "mle", padding: int | None = None) -> float:
    study = Study(keys=list(range(50)), epsilon=1.0, protocol=protocol, index_mode=mode, padding_length=padding)
    attack = Attack(kind=kind, fraction=0.01, targets=TARGETS)

    def average(who: Attack | None) -> np.ndarray:
        runs = [study.simulate(POWER, 2 * POWER - 1, n=100_000, random_state=s, attack=who).estimate(method) for s in range(6)]
        return np.mean([run.frequency for run in runs], axis=0)

    before, after = average(None), average(attack)
    return float((after - before)[list(TARGETS)].sum())


def test_assigned_keys_are_the_best_defence() -> None:
    aimed, assigned = gain("kv3", "m2ga", "chosen"), gain("kv3", "m2ga", "assigned")
    assert 0.6 < aimed < 0.9
    assert assigned < aimed / 8


def test_em_is_no_defence() -> None:
    assert gain("privkv", "m2ga", "chosen", "em") > 0.9 * gain("privkv", "m2ga", "chosen", "ye")


def test_unary_encoding_lets_fakes_claim_every_target_at_once() -> None:
    assert gain("pckv-ue", "m2ga", "assigned", padding=15) > 3 * gain("kv3", "m2ga", "chosen")


def test_following_the_protocol_gains_less_than_breaking_it() -> None:
    assert gain("kv3", "rma", "chosen") < gain("kv3", "rkva", "chosen") < gain("kv3", "m2ga", "chosen")
    for protocol in ("pckv-ue", "pckv-grr+"):
        assert gain(protocol, "rkva", "chosen", padding=5) < gain(protocol, "m2ga", "chosen", padding=5)
        assert gain(protocol, "rma", "chosen", padding=5) < gain(protocol, "m2ga", "chosen", padding=5)


def test_the_bound_holds_for_assigned_keys() -> None:
    study = Study(keys=list(range(50)), epsilon=1.0)
    bound = influence_bounds(study, fraction=0.01)
    attack = Attack(kind="m2ga", fraction=0.01, targets=(49,))

    def average(who: Attack | None) -> float:
        runs = [
            study.simulate(POWER, 2 * POWER - 1, n=10**6, random_state=s, attack=who).estimate("unbiased") for s in range(20)
        ]
        return float(np.mean([run.frequency[49] for run in runs]))

    assert 0.7 * bound.frequency_up < average(attack) - average(None) < 1.3 * bound.frequency_up


@pytest.mark.parametrize(
    ("epsilon", "up", "product"), [(0.1, 10.5, 29.5), (1.0, 1.58, 2.75), (2.0, 1.16, 1.47), (5.0, 1.01, 1.02)]
)
def test_lower_epsilon_is_easier_to_poison(epsilon: float, up: float, product: float) -> None:
    bound = influence_bounds(Study(keys=["a"], epsilon=epsilon), fraction=0.5)
    assert bound.frequency_up / 0.5 == pytest.approx(up, rel=0.01)
    assert bound.product / 0.5 - 1 == pytest.approx(product, rel=0.01)


def test_aimed_reports_show_in_the_index() -> None:
    study = Study(keys=list(range(50)), epsilon=1.0, index_mode="chosen")
    attack = Attack(kind="m2ga", fraction=0.01, targets=(49,))
    alarms = [
        index_uniformity_test(study.simulate(POWER, 2 * POWER - 1, n=100_000, random_state=s, attack=a).counts()).suspicious
        for a in (None, attack)
        for s in range(25)
    ]
    assert not any(alarms[:25])
    assert all(alarms[25:])
    with pytest.raises(ParameterError, match="counts must be two keys or more, with reports"):
        index_uniformity_test([3])


def test_unary_reports_that_claim_too_much_show() -> None:
    study = Study(keys=list(range(200)), epsilon=3.0, protocol="pckv-ue", padding_length=3)
    table = study.terms.table
    dice = np.random.default_rng(0)
    honest = dice.choice(3, size=(2000, 200), p=[1 - float(table.b), float(table.b) / 2, float(table.b) / 2])
    greedy = honest.copy()
    greedy[0, :60] = 1
    assert report_size_test(study, honest).suspicious.size == 0
    assert report_size_test(study, greedy).suspicious.tolist() == [0]
    with pytest.raises(ParameterError, match="protocol must be 'pckv-ue'; got 'kv3'"):
        report_size_test(Study(keys=["a"], epsilon=1.0), [[0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "ddos"}, "kind must be one of 'm2ga', 'rkva', 'rma'; got 'ddos'"),
        ({"fraction": 1}, "fraction must be at least 0 and below 1; got 1"),
        ({"targets": ()}, "targets must be distinct, at least one"),
        ({"targets": (-1,)}, "target must be a whole number >= 0; got -1"),
    ],
)
def test_bad_attacks_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Attack(**{"kind": "m2ga", "fraction": 0.1, "targets": (0,)} | arguments)


def test_privkvm_has_the_frequency_of_its_first_round_and_a_biased_mean() -> None:
    """E[m after c rounds] = m - (1-f)^(c-1) (m - m of the first round)."""
    f, m = 0.05, 0.8
    study = Study(keys=["k"], epsilon=4.0, protocol="privkvm", rounds=3)
    found = study.simulate([f], [m], n=10**8, random_state=0)
    table = study.terms.table
    first = m * f * float(table.a) / (f * float(table.a) + (1 - f) * float(table.b))
    assert found.estimate().mean[0] == pytest.approx(m - (1 - f) ** 2 * (m - first), abs=0.01)
    assert found.estimate().frequency[0] == pytest.approx(f, abs=0.002)
    assert found.estimate("mle").mean[0] == pytest.approx(m, abs=0.02)


def test_the_generator_is_numpy_and_the_table_is_exact() -> None:
    assert generator_of(3).integers(10) == generator_of(3).integers(10)
    assert table_for(protocol="kv3", epsilon=Fraction(1), keys=1).bits == 64
