"""Laws that hold for every public class that releases something about private rows."""

from __future__ import annotations

import math
import pickle
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from contracts.registry import CASES, Entry
from sabun import Guarantee, Ledger, Release
from sabun.asking.evidence import Bench
from sabun.asking.settings import Settings
from sabun.audit.questions import checks_of
from sabun.errors import BudgetExceeded, ParameterError, SimulatedError
from sabun.privacy.renyi import grouped
from sabun.release.booking import booked

pytestmark = [
    pytest.mark.parametrize("entry", CASES),
    # A table this small is no use to anybody; that is not what is tried here.
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "much", None, True, [1]])
def test_a_bad_epsilon_is_refused_at_construction(entry: Entry, epsilon: object) -> None:
    with pytest.raises(ParameterError, match="epsilon must be"):
        entry.make(epsilon=epsilon)


@pytest.mark.parametrize("seed", [-1, 1.5, "seed", True])
def test_a_bad_seed_is_refused_at_construction(entry: Entry, seed: object) -> None:
    with pytest.raises(ParameterError, match="random_state must be"):
        entry.make(random_state=seed)


def test_positional_parameters_are_refused(entry: Entry) -> None:
    """All but a thing to work on, such as a module: it comes first, and has no default."""
    model = entry.make()
    first = [one for one in signature(type(model)).parameters.values() if one.kind is not one.KEYWORD_ONLY]
    assert [one.name for one in first if one.default is not one.empty] == []
    with pytest.raises(TypeError):
        type(model)(*(getattr(model, one.name) for one in first), 0.5)


def test_clones_and_pickles_keep_the_parameters(entry: Entry, tmp_path: Path) -> None:
    model = entry.make(ledger=entry.ledger(tmp_path / "book"))
    before = model.get_params()
    for twin in (clone(model), pickle.loads(pickle.dumps(model))):
        after = twin.get_params()
        assert after.keys() == before.keys()
        assert after["ledger"].remaining == before["ledger"].remaining
        names = before.keys() - {"ledger"}
        assert {name: _told(after[name]) for name in names} == {name: _told(before[name]) for name in names}


def _told(value: Any) -> Any:
    """What a parameter is, where two of the same are not equal by themselves: a module is its numbers."""
    return {name: part.tolist() for name, part in value.state_dict().items()} if hasattr(value, "state_dict") else value


def test_a_clone_spends_from_the_same_budget(entry: Entry, tmp_path: Path) -> None:
    ledger = entry.ledger(tmp_path / "book", epsilon=0.75, accounting="sums")
    model = entry.make(ledger=ledger)
    entry.fit(model)
    with pytest.raises(BudgetExceeded):
        entry.fit(clone(model))


def test_fit_returns_itself_with_its_guarantee(entry: Entry, tmp_path: Path) -> None:
    ledger = entry.ledger(tmp_path / "book")
    model = entry.make(ledger=ledger)
    assert entry.fit(model) is model
    assert isinstance(model.guarantee_, Guarantee)
    assert isinstance(model.release_, Release)
    assert model.release_.guarantee == model.guarantee_
    assert model.guarantee_.unit == "patient"
    assert not model.guarantee_.simulated
    assert model.release_.provenance.kind.startswith(entry.kind)


def test_the_ledger_is_charged_what_the_guarantee_says(entry: Entry, tmp_path: Path) -> None:
    ledger = entry.ledger(tmp_path / "book", epsilon=2)
    model = entry.fit(entry.make(ledger=ledger))
    assert tuple(ledger.spent) == model.guarantee_.as_replace_one().cost
    assert model.guarantee_.as_replace_one().epsilon <= 2 * 0.5


@pytest.mark.parametrize("law", range(2), ids=["charged first", "refused"])
def test_what_an_audit_lays_upon_every_class_holds(entry: Entry, law: int) -> None:
    check = [check for check in checks_of([entry.specimen], []) if not check.thorough][law]
    [case] = check.cases
    check.try_case(Bench(), case)


def test_a_seeded_result_is_never_private(entry: Entry, tmp_path: Path) -> None:
    model = entry.fit(entry.make(random_state=7))
    assert model.guarantee_.simulated
    assert str(model.release_).startswith("NOT PRIVATE")
    with pytest.raises(SimulatedError, match="NOT PRIVATE"):
        model.release_.save(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_a_seeded_result_is_refused_by_the_ledger(entry: Entry, tmp_path: Path) -> None:
    ledger = entry.ledger(tmp_path / "book")
    with pytest.raises(SimulatedError, match="not private"):
        entry.fit(entry.make(random_state=7, ledger=ledger))
    assert ledger.spent == (0, 0)


def test_the_same_seed_gives_the_same_result(entry: Entry) -> None:
    first, second = (entry.fit(entry.make(random_state=7)).release_.value for _ in range(2))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name], equal_nan=_is_float(first[name])) for name in first)


def _is_float(value: Any) -> bool:
    return np.asarray(value).dtype.kind == "f"


def test_a_release_survives_its_file(entry: Entry, tmp_path: Path) -> None:
    release = entry.fit(entry.make()).release_
    release.save(tmp_path / "release.json")
    loaded = Release.load(tmp_path / "release.json")
    assert loaded == release
    assert loaded.to_json() == release.to_json()


def test_a_ledger_that_protects_groups_is_charged_for_them_and_vouches_for_the_release(entry: Entry, tmp_path: Path) -> None:
    facts = {"epsilon": 4, "delta": 4 * entry.specimen.delta, "accounting": "sums", "group": 2}
    ledger = Ledger.create(tmp_path / "book", name="book", unit="patient", **facts)
    model = entry.fit(entry.make(ledger=ledger))
    assert tuple(ledger.spent) == grouped(*model.guarantee_.as_replace_one().cost, steps=2)
    assert booked(Release.from_json(model.release_.to_json()), ledger).entry == 1


def test_a_spoiled_parameter_is_noticed_before_data_is_touched(entry: Entry) -> None:
    model = entry.make()
    with pytest.raises(ParameterError, match="epsilon must be"):
        entry.fit(model.set_params(epsilon=-1))


def test_changing_one_setting_of_a_group_leaves_the_others_as_they_were(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its short name or with its group's, at once or one after the other: what was set before is still set."""
    usual = entry.make()
    groups = {name: value for name, value in usual.get_params(deep=False).items() if isinstance(value, Settings)}
    for group, held in groups.items():
        inner = held.get_params()
        if hasattr(type(held), "__post_init__"):  # what a value may be is not the point here
            monkeypatch.setattr(type(held), "__post_init__", lambda _: None)
        for changed in inner:
            for name in (changed, f"{group}__{changed}"):
                model = entry.make()
                model.set_params(**{f"{group}__{other}": _Marked(other) for other in inner if other != changed})
                model.set_params(**{name: _Marked("new")})
                found = getattr(model, group).get_params()
                assert {other: str(value) for other, value in found.items()} == {other: other for other in inner} | {
                    changed: "new"
                }
                for other, before in groups.items():
                    assert other == group or getattr(model, other) is before or getattr(model, other) == before


class _Marked(str):
    """A value that no setting has by default."""

    __slots__ = ()
