from __future__ import annotations

import copy
import pickle
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.keyvalue_advice import guessed, regrets

from sabun.errors import DataError, ParameterError
from sabun.keyvalue import People, Study
from sabun.keyvalue.advisor import AIMS, advise, shares_kept


def test_the_advisor_takes_kv3_for_dense_keys_and_sets_for_sparse_ones() -> None:
    assert Study(keys=list(range(50)), epsilon=2.0).protocol == "kv3"
    sparse = Study(keys=list(range(5000)), epsilon=1.0, keys_per_user=3)
    assert sparse.protocol == "set"
    assert sparse.padding_length in (1, 2, 3)
    assert "chosen by the advisor" in sparse.explain()
    assert "at most 3 keys per person" in sparse.explain()


def test_a_moderately_sparse_domain_at_high_epsilon_gets_the_joint_protocol() -> None:
    assert advise(keys=50, epsilon=Fraction(5), keys_per_user=5).best.protocol == "pckv-grr+"


@pytest.mark.parametrize(
    ("aim", "taken"),
    [
        ("both", {"kv3", "pckv-ue", "pckv-grr+", "set"}),
        ("f", {"rr-f", "set-f"}),
        ("m", {"kv3", "pckv-ue", "pckv-grr+", "set"}),
    ],
)
def test_the_advice_is_about_the_best_there_is(aim: str, taken: set[str]) -> None:
    """Every 71st of 17,136 studies, of 5,712 without values; all of them by `python -m benchmarks.keyvalue_advice`."""
    found = list(regrets(every=71, aim=aim))
    assert len(found) == (81 if aim == "f" else 242)
    assert np.mean([one.regret for one in found]) <= 0.005
    assert max(one.regret for one in found) <= 0.2
    assert max(one.widths for one in found) <= 0.2
    assert {one.taken for one in found} == taken


@pytest.mark.parametrize("aim", AIMS)
def test_a_typical_frequency_finds_the_padding_however_loose_the_bound(aim: str) -> None:
    """Bounds five standard deviations above what people hold; keys that are all alike are what the advisor supposes."""
    found = list(guessed(Fraction(1), every=7, aim=aim))
    assert max(one.regret for one in found if one.study[3] == "even") <= 0.01
    assert np.mean([one.regret for one in found]) <= 0.1


def test_the_share_that_padding_keeps_is_that_of_people_who_hold_keys_independently() -> None:
    dice = np.random.default_rng(1)
    for keys, most, f in ((20, 20, 0.2), (20, 3, 0.2), (300, 20, 0.02), (6, 4, 0.7), (5, 5, 1.0)):
        held = 1 + dice.binomial(keys - 1, f, size=400_000)
        held = held[held <= most]
        kept = shares_kept(keys, most, f)
        assert list(kept) == list(range(1, most + 1))
        assert list(kept.values()) == pytest.approx([np.minimum(1, ell / held).mean() for ell in kept], abs=0.005)
    wide = shares_kept(100_000, 5000, 0.05)
    assert len(wide) < 130
    assert max(wide) == 5000
    assert wide[5000] == 1.0
    assert shares_kept(1, 1, 0.5) == {1: 1.0}


@pytest.mark.parametrize("protocol", ["pckv-ue", "pckv-grr+", "set", "set-f"])
def test_the_error_told_with_a_typical_frequency_is_that_of_people(protocol: str) -> None:
    """Sampled people who hold two of 20 keys on average and nobody above 11: noise and bias together, at every padding."""
    keys, n, f, dice = 20, 20_000, 0.1, np.random.default_rng(3)
    aim = "f" if protocol == "set-f" else "both"
    advice = advise(
        keys=keys, epsilon=Fraction(4), keys_per_user=11, typical_frequency=Fraction(1, 10), expected_reports=n, aim=aim
    )
    ell = next(one.padding_length for one in advice.options if one.protocol == protocol)
    told = next(one.error for one in advice.options if one.protocol == protocol)
    assert 1 < ell < 8
    study = Study(keys=list(range(keys)), epsilon=4, protocol=protocol, padding_length=ell)
    squared = []
    for run in range(12):
        holds = dice.random((n, keys)) < f
        people = People(
            starts=np.append(0, np.cumsum(holds.sum(axis=1))), keys=np.nonzero(holds)[1], values=np.zeros(int(holds.sum()))
        )
        squared.append((study.simulate_people(people, random_state=run).estimate("unbiased").frequency - f) ** 2)
    assert np.sqrt(np.mean(squared)) == pytest.approx(told, rel=0.12)


def test_who_holds_one_key_is_asked_by_unary_encoding() -> None:
    assert advise(keys=1000, epsilon=Fraction(1), keys_per_user=1).best.protocol == "pckv-ue"
    assert advise(keys=6, epsilon=Fraction(1), keys_per_user=5).best.protocol == "kv3"
    guessed = advise(keys=1000, epsilon=Fraction(1), keys_per_user=8, typical_frequency=Fraction(1, 100), expected_reports=1000)
    assert guessed.best.padding_length < 8, "a little bias for much less noise"


def test_the_prediction_is_the_error_that_is_measured() -> None:
    keys, f = 40, 0.2
    for protocol, padding in (("kv3", None), ("pckv-ue", 40), ("pckv-grr+", 40), ("set", 40)):
        study = Study(keys=list(range(keys)), epsilon=2.0, protocol=protocol, padding_length=padding)
        runs = [study.simulate([f] * keys, [0.0] * keys, n=50_000, random_state=s).estimate("unbiased") for s in range(10)]
        found = np.sqrt(np.mean([(run.frequency - f) ** 2 for run in runs]))
        assert study.plan(n=50_000, frequency=f).frequency_error == pytest.approx(found, rel=0.15)


def test_a_study_survives_its_file(tmp_path: Path) -> None:
    study = Study(keys=["a", "b"], epsilon=0.1, keys_per_user=1, not_before="2026-01-01", expected_reports=10**6)
    study.save(tmp_path / "study.json")
    again = Study.load(tmp_path / "study.json")
    assert again.task_id == study.task_id
    assert again.explain() == study.explain()
    assert again == study
    assert pickle.loads(pickle.dumps(study)) == copy.deepcopy(study) == study


def test_a_study_cannot_be_changed() -> None:
    study = Study(keys=["a"], epsilon=1.0)
    with pytest.raises(AttributeError):
        study.epsilon = 2  # type: ignore[misc]


def test_damaged_studies_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff")
    with pytest.raises(DataError, match="a study must be ASCII text, as it was saved; it is not"):
        Study.load(tmp_path / "x")
    with pytest.raises(DataError, match="a study must be valid JSON"):
        Study.from_json("{")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1.0}, r"epsilon must be finite and > 0; got -1\.0\."),
        ({"epsilon": float("nan")}, "epsilon must be a number; got nan"),
        ({"epsilon": float("inf")}, "epsilon must be finite and > 0; got inf"),
        ({"epsilon": "much"}, "epsilon must be a number such as"),
        ({"keys": []}, "keys must be a list of 1 to"),
        ({"keys": "abc"}, "keys must be a list of names; got 'str'"),
        ({"keys": ["a", "a"]}, "keys must be distinct"),
        ({"protocol": "rappor"}, "protocol must be one of 'auto', 'auto-f', 'auto-m', 'kv3'"),
        ({"padding_length": 2, "protocol": "kv3"}, "padding_length must be 1 for 'kv3'; got 2"),
        ({"padding_length": 0, "protocol": "pckv-ue"}, "padding_length must be a whole number from 1 to 2; got 0"),
        ({"keys": 3, "protocol": "pckv-ue"}, "keys must be a list of names; got 'int'"),
        ({"keys": {"a"}}, "keys must be a list of names; got 'set'"),
        ({"keys_per_user": "x", "protocol": "pckv-ue"}, "keys_per_user must be a whole number from 1"),
        ({"padding_length": 1.5, "protocol": "pckv-ue"}, "padding_length must be a whole number from 1 to 2; got 1.5"),
        ({"rounds": "x"}, "rounds must be a whole number from 1"),
        ({"value_range": "ab"}, "value_range must be a pair"),
        ({"not_before": 3}, "not_before must be a date or None; got 3"),
        ({"not_after": "tomorrow"}, "not_after must be a date such as 2026-01-31; got 'tomorrow'"),
        ({"value_range": (1, 0)}, "value_range must be a pair with lower < upper"),
        ({"epsilon": 1e-9, "table_bits": 16}, "epsilon must be large enough to leave a trace in a table of 16 bits"),
    ],
)
def test_a_bad_parameter_is_named_at_construction(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Study(**{"keys": ["a", "b"], "epsilon": 1.0} | change)


def test_every_parameter_is_a_keyword() -> None:
    with pytest.raises(TypeError):
        Study(["a"], 1.0)  # type: ignore[misc]


def test_arrays_of_keys_are_lists_of_keys() -> None:
    assert Study(keys=np.arange(3), epsilon=1.0).keys == (0, 1, 2)  # type: ignore[arg-type]


def test_the_guarantee_is_the_one_of_the_table() -> None:
    promise = Study(keys=["a", "b"], epsilon=2, protocol="privkv").guarantee
    assert float(promise.epsilon) == pytest.approx(1.379885, abs=1e-6)
    assert (promise.relation, promise.model, promise.unit) == ("local", "local", "person")
    assert Study(keys=["a"], epsilon=Fraction(1, 3)).guarantee.epsilon <= Fraction(1, 3)


def test_a_device_that_refuses_is_a_parameter_error() -> None:
    with pytest.raises(ParameterError, match="the study asks for epsilon 2; this device accepts at most 1"):
        Study(keys=["a", "b"], epsilon=2.0).client(max_epsilon=1.0)


def test_a_plan_is_words_and_numbers() -> None:
    plan = Study(keys=list("abcd"), epsilon=1.0, value_range=(0, 10)).plan(n=10_000, frequency=0.3, mean=4.0)
    assert plan.reports_per_key == 2500
    assert str(plan).startswith("epsilon 1 per person; about 2500 reports per key.")
    assert plan.to_dict()["epsilon"] == 1.0
    assert Study(keys=list("abcd"), epsilon=0.5).plan(n=400, frequency=0.1).mean_is_weak
    with pytest.raises(ParameterError, match="mean must be within the value range; got 11"):
        Study(keys=list("abcd"), epsilon=1.0, value_range=(0, 10)).plan(n=10, mean=11)
    with pytest.raises(ParameterError, match="mean must be left out where no values are asked; got 5"):
        Study(keys=list("abcd"), epsilon=1.0, protocol="auto-f").plan(n=10, mean=5)
    with pytest.raises(ParameterError, match="frequency must be above 0 and at most 1; got 0"):
        Study(keys=list("abcd"), epsilon=1.0).plan(n=10, frequency=0)


def test_the_padding_is_never_biased_unless_somebody_says_so() -> None:
    assert Study(keys=list("abcd"), epsilon=1.0, protocol="pckv-ue").padding_length == 4
    assert Study(keys=list("abcd"), epsilon=1.0, protocol="pckv-ue", keys_per_user=2).padding_length == 2


def test_the_widest_range_works_for_devices_and_estimates() -> None:
    study = Study(keys=["a"], epsilon=1, value_range=(-1e100, 1e100))
    tally = study.tally()
    for held in ({"a": 1e100}, {"a": -1e100}, {"a": 0}, {}):
        tally.add(study.client().report(held))
    assert np.isfinite(tally.estimate().mean_interval).all()
