"""The `set` protocol: subsets of all signed keys."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from sabun.errors import ParameterError
from sabun.keyvalue import Attack, People, Study
from sabun.keyvalue.client import Client, ClientError, Report, ReportError, Terms, pack, subsets, unpack
from sabun.keyvalue.client.bounds import exp_down
from sabun.keyvalue.client.subsets import Subset, drawn_symbols, is_kept, subset_for, symbols_of
from sabun.keyvalue.simulation import pick_probabilities


def made(keys: int, padding: int, width: int, epsilon: Fraction = Fraction(1), signs: int = 2) -> Subset:
    accept = subset_for(growth=exp_down(epsilon), keys=keys, padding=padding, bits=64).accept
    return Subset(keys=keys, padding=padding, bits=64, accept=accept, width=width, signs=signs)


@pytest.mark.parametrize("signs", [2, 1])
@pytest.mark.parametrize(("keys", "padding", "width"), [(1, 1, 1), (3, 1, 2), (3, 2, 3), (4, 3, 2), (4, 2, 4)])
def test_what_is_said_of_one_key_is_counted_out(keys: int, padding: int, width: int, signs: int) -> None:
    """Of the first key, held as plus or not at all, whatever else is held."""
    subset = made(keys, padding, width, signs=signs)
    miss = Fraction(subset.accept, 1 << 64)
    for other in range(min(padding, keys - 1) + 1):
        rest = [(key, 1 + key % signs) for key in range(1, other + 1)]
        for held in ([(0, 1), *rest], rest):
            if len(held) > padding:
                continue
            own, told, whole = symbols_of(subset, held), Counter[int](), Fraction(0)
            assert len(own) == padding
            for drawn in itertools.combinations(range(subset.symbols), width):
                weight = Fraction(1) if own & set(drawn) else miss
                told[drawn_symbols(subset, drawn)[0]] += weight  # type: ignore[assignment]
                whole += weight
            keep, opposite, each = subset.law
            assert (told[1] / whole, told[2] / whole) == (
                (keep, opposite) if held[:1] == [(0, 1)] else (each, (signs - 1) * each)
            )


@given(st.fractions(Fraction(1, 10), 8, max_denominator=20), st.integers(1, 400), st.integers(1, 12), st.sampled_from([1, 2]))
@settings(deadline=None, max_examples=60)
def test_the_promise_is_one_ratio_and_the_width_the_best(epsilon: Fraction, keys: int, padding: int, signs: int) -> None:
    subset = subset_for(growth=exp_down(epsilon), keys=keys, padding=padding, bits=64, signs=signs)
    assert subset.ratio <= exp_down(epsilon)
    assert math.log(subset.ratio) == pytest.approx(float(epsilon), rel=1e-12)
    assert 1 <= subset.width <= keys
    keep, opposite, each = subset.law
    assert keep > each >= opposite >= 0
    assert (opposite > 0) is (signs == 2)
    assert keep + opposite > signs * each


@pytest.mark.parametrize("signs", [1, 2])
@pytest.mark.parametrize(("keys", "padding", "epsilon"), [(30, 1, "0.2"), (30, 4, "1"), (12, 12, "2"), (25, 3, "5")])
def test_no_other_width_is_less_noisy(keys: int, padding: int, epsilon: str, signs: int) -> None:
    """The search halves, so it trusts that noise falls and then rises; here every width is tried."""
    found = subset_for(growth=exp_down(Fraction(epsilon)), keys=keys, padding=padding, bits=64, signs=signs)
    noise = [subsets._noise(dataclasses.replace(found, width=width)) for width in range(1, keys + 1)]
    assert subsets._noise(found) == min(noise)


def test_a_subset_that_meets_is_kept_and_another_as_often_as_its_number_says() -> None:
    subset = made(3, 2, 2)
    own = symbols_of(subset, [(0, 1)])
    assert own == {0, 6}
    for word in (0, subset.accept - 1, subset.accept, 2**64 - 1):
        assert is_kept(subset, own, [0, 3], word)
        assert is_kept(subset, own, [3, 6], word)
        assert is_kept(subset, own, [3, 7], word) is (word < subset.accept)
    assert drawn_symbols(subset, [0, 3, 4, 5, 7]) == (1, 2, 0), "both signs say nothing, dummies say nothing"


@pytest.mark.parametrize("answers", ["fresh", "memoised"])
def test_devices_draw_that_law(answers: str) -> None:
    """Chi-square of all reports about four keys, one pair held of two that are allowed; fails once in a million."""
    terms = Terms(keys=tuple("abcd"), epsilon=Fraction(1), protocol="set", padding_length=2, rounds=10**6, answers=answers)
    subset, runs = terms.subset, 4000
    own, law = symbols_of(subset, [(1, 1)]), Counter[tuple[int, ...]]()
    for drawn in itertools.combinations(range(subset.symbols), subset.width):
        law[drawn_symbols(subset, drawn)] += 1 if own & set(drawn) else subset.accept / 2**64  # type: ignore[assignment]
    device = Client(terms)
    found: Counter[tuple[int, ...]] = Counter()
    for number in range(runs):
        one = device if answers == "fresh" else Client(terms)
        found[unpack(terms, one.report({"b": 1.0}, round=number)).symbol] += 1  # type: ignore[index]
    whole = sum(law.values())
    expected = {said: runs * share / whole for said, share in law.items()}
    assert set(found) <= set(expected)
    distance = sum((found[said] - share) ** 2 / share for said, share in expected.items())
    assert distance < chi2.isf(1e-6, len(expected) - 1)


def test_who_holds_more_is_cut_evenly() -> None:
    """Three pairs, room for one: each key is told of a third as much as if it were held alone; 6 standard deviations."""
    terms = Terms(keys=tuple("abc"), epsilon=Fraction(6), protocol="set", padding_length=1, rounds=10**6, answers="fresh")
    device, runs = Client(terms), 3000
    told = np.zeros(3)
    for number in range(runs):
        told += np.array(unpack(terms, device.report({"a": 1.0, "b": 1.0, "c": 1.0}, round=number)).symbol) == 1
    keep, _, each = (float(share) for share in terms.subset.law)
    expected = keep / 3 + 2 * each / 3
    assert np.abs(told / runs - expected).max() < 6 * math.sqrt(expected / runs)


def test_no_report_speaks_of_more_keys_than_a_subset_holds() -> None:
    terms = Terms(keys=tuple("abcdefgh"), epsilon=Fraction(2), protocol="set", padding_length=2)
    width = terms.subset.width
    assert width < 8
    full = pack(terms, Report(round=0, report_id=bytes(16), index=None, symbol=(1,) * width + (0,) * (8 - width)))
    assert unpack(terms, full).symbol[0] == 1  # type: ignore[index]
    many = pack(terms, Report(round=0, report_id=bytes(16), index=None, symbol=(1,) * (width + 1) + (0,) * (7 - width)))
    with pytest.raises(ReportError, match=f"a report must speak of at most {width} keys; it speaks of more"):
        unpack(terms, many)


def test_long_padding_is_refused() -> None:
    with pytest.raises(ClientError, match="padding_length must be at most 256 for 'set'; got 300"):
        Terms(keys=tuple(range(400)), epsilon=Fraction(1), protocol="set", padding_length=300)
    with pytest.raises(ParameterError, match="padding_length must be at most 256"):
        Study(keys=list(range(400)), epsilon=1, protocol="set")


def test_sparse_keys_are_known_far_better_than_by_unary_encoding() -> None:
    """d = 100, four keys each, epsilon 1, Zipf: variances 36 and 32 instead of 162 and 105; 40 runs of real counts."""
    weights = 1 / np.arange(1, 101)
    f, m = np.minimum(4 * weights / weights.sum(), 0.9), np.full(100, 0.5)
    errors = {}
    for protocol in ("set", "pckv-ue"):
        study = Study(keys=list(range(100)), epsilon=1, protocol=protocol, padding_length=4)
        foretold = float(np.mean(study.channel.frequency_variance(f, 20_000)))
        cut = study.simulate(f, m, n=10**7, random_state=0).estimate("unbiased").frequency  # what padding leaves of them
        runs = [study.simulate(f, m, n=20_000, random_state=run).estimate("unbiased").frequency for run in range(1, 41)]
        errors[protocol] = float(np.mean([(run - cut) ** 2 for run in runs]))
        assert errors[protocol] == pytest.approx(foretold, rel=0.15)
    assert errors["set"] < 0.3 * errors["pckv-ue"]


def test_devices_and_simulations_agree() -> None:
    keys, ell = 12, 2
    study = Study(keys=list(range(keys)), epsilon=2, protocol="set", padding_length=ell)
    people = People.of_table([[0.6 if key in (person % keys, 3) else np.nan for key in range(keys)] for person in range(1200)])
    tally = study.tally()
    for person in range(1200):
        tally.add(study.client().report({person % keys: 0.6, 3: 0.6}))
    simulated = np.mean([study.simulate_people(people, random_state=run).counts().plus for run in range(20)], axis=0)
    spread = np.sqrt(np.maximum(simulated, 1) * (1 + 1 / 20))
    assert np.abs(tally.counts().plus - simulated).max() < 6 * spread.max()
    found = tally.estimate()
    truth = people.moments(keys)[0]
    assert ((found.frequency_interval[:, 0] - 0.05 <= truth) & (truth <= found.frequency_interval[:, 1] + 0.05)).all()


@pytest.mark.parametrize("kind", ["m2ga", "rkva", "rma"])
def test_fakes_reach_as_many_targets_as_a_report_has_room_for(kind: str) -> None:
    study = Study(keys=list(range(40)), epsilon=1, protocol="set", padding_length=3)
    f = np.full(40, 0.05)

    def gain(targets: int) -> float:
        attack = Attack(kind=kind, fraction=0.05, targets=tuple(range(targets)))
        runs = [
            [
                study.simulate(f, np.zeros(40), n=50_000, random_state=run, attack=who).estimate("unbiased").frequency[0]
                for who in (attack, None)
            ]
            for run in range(4)
        ]
        return float(np.mean([one - other for one, other in runs]))

    one, many = gain(1), gain(40)
    if kind == "rma":
        assert abs(one) < 0.1
    else:
        assert one > (0.25 if kind == "m2ga" else 0.03)
        assert many < 0.5 * one


def test_intervals_of_sets_cover_what_they_say() -> None:
    """30 runs of 60 keys, 1,800 intervals: within .93 and .975 (four standard deviations below the lowest)."""
    study = Study(keys=list(range(60)), epsilon=1, protocol="set", padding_length=3)
    f, m = 1.2 / (np.arange(60) + 4), np.linspace(-0.9, 0.9, 60)
    cut = 3 * f * pick_probabilities(f, 3)
    covered = np.zeros(2)
    for run in range(30):
        found = study.simulate(f, m, n=30_000, random_state=run).estimate()
        for place, (ends, truth) in enumerate(((found.frequency_interval, cut), (found.mean_interval, m))):
            covered[place] += np.mean((ends[:, 0] <= truth + 1e-9) & (truth <= ends[:, 1] + 1e-9)) / 30
    assert 0.93 <= covered[0] <= 0.975
    assert covered[1] >= 0.93
