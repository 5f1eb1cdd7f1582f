"""Two rounds: what each promises, what both do together, what is refused, what they are worth."""

from __future__ import annotations

import dataclasses
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regression.test_staged import _has_variance, boxed, table
from sabun.errors import DataError, ParameterError, ReleaseError
from sabun.ledger import Ledger
from sabun.privacy.calibration import analytic_gaussian_delta
from sabun.privacy.noise import seeded_coin
from sabun.regression import PrivateRidge, PublicModel, Study, combine, sharing
from sabun.regression.contribution import read_all
from sabun.regression.design import UNIT
from sabun.regression.plausibility import findings
from sabun.regression.promise import guarantee_of
from sabun.regression.second_round import add_second_noise
from sabun.regression.sharing import _moved, _spent, round_terms, shares_of, staged_price
from sabun.regression.simulation import errors_of, simulated_study, world
from sabun.regression.sums import sums_of


def ridge(study: Study, name: str | None = None, **how: Any) -> PrivateRidge:
    return PrivateRidge(study=study, organisation=name, **how)


def parts(study: Study, names: tuple[str, ...] = ("a", "b")) -> tuple[dict[str, Any], dict[str, Any]]:
    """First rounds of some organisations, and their tables."""
    tables = {name: table(1500, study.width, place) for place, name in enumerate(names)}
    return {name: ridge(study, name).fit(*tables[name]).release_ for name in names}, tables


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("people", [1, 7])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.01", "1e-9"), (1, "1e-6"), (30, "1e-3"), (10**6, "1e-6")])
@pytest.mark.parametrize("rows", [None, 3, 10**6])
def test_each_round_keeps_its_own_promise_and_both_the_study_s(
    relation: str, people: int, epsilon: Any, delta: str, rows: Any
) -> None:
    study = boxed(method="rounds", relation=relation, records_per_person=people, epsilon=epsilon, delta=delta)
    shares, own = shares_of(study, rows), round_terms(study)
    asked, first, second = _spent(_moved(relation, people), shares)
    assert shares.second is not None
    assert asked + first + second <= shares.budget
    for part in (asked + first, second):
        assert 0.98 * float(shares.budget) / 2 < part
        assert analytic_gaussian_delta(sigma=1 / math.sqrt(part), l2=1.0, epsilon=float(own[0])) <= float(own[1]) * (1 + 1e-9)
    for number, spent in ((False, asked + first), (True, second)):
        price = staged_price(study, rows, second=number)
        assert sum(event.rho() for event in price.events) >= spent / 2
        assert float(sum(event.rho() for event in price.events)) == pytest.approx(float(spent) / 2, rel=1e-9)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_residuals_of_the_second_round_have_the_declared_noise(relation: str) -> None:
    study = boxed(2, method="rounds", relation=relation)
    first, tables = parts(study, ("a",))
    second = ridge(study, "a").read_again(*tables["a"], first=first["a"], around=combine([first["a"]]))
    coin = seeded_coin(3)
    values = [add_second_noise(second, coin) for _ in range(400)]
    private = relation == "add-remove"
    noise = shares_of(study, None if private else 1500).second
    assert noise is not None
    _has_variance([value["residual_moment"][0] for value in values], noise)
    _has_variance([value["residual_square"] for value in values], noise * 4 if private else noise / 2)
    _has_variance([value["residual_weight"] for value in values], noise * 16 / UNIT**2)


def test_files_of_both_rounds_make_one_contribution(tmp_path: Path) -> None:
    study = boxed(2, method="rounds", epsilon=3, name="s")
    first, tables = parts(study)
    for name, release in first.items():
        release.save(tmp_path / f"{name}-1.json")
    around = combine([tmp_path / "a-1.json", tmp_path / "b-1.json"], study=study)
    assert isinstance(around, PublicModel)
    around.save(tmp_path / "round-1.json")
    for name in first:
        made = ridge(study, name).refine(*tables[name], first=tmp_path / f"{name}-1.json", around=tmp_path / "round-1.json")
        made.release_.save(tmp_path / f"{name}-2.json")
        assert {"gram", "moment", "square", "radius"}.isdisjoint(made.release_.value)  # they are in the first file
    files = sorted(tmp_path.glob("?-?.json"))
    found = read_all(files, study)
    assert [one.organisation for one in found] == ["a", "b"]
    assert all(sums_of(study, one.value).refined is not None for one in found)
    assert findings(found) == ()
    model = combine(files, study=study)
    assert all((promise.epsilon, promise.delta) == (3, Fraction(1, 10**6)) for promise in model.guarantees)
    assert np.abs(model.coef_ - 0.3).max() < 0.15
    one_dropped = combine(files[:3], study=study)  # b released no second round
    assert one_dropped.organisations == ("a", "b")
    for own in ("a", first["a"], tmp_path / "a-2.json"):
        assert combine(files, *tables["a"], study=study, own=own).organisations == ("b",)
    made.model_.save(tmp_path / "own.json")
    assert PublicModel.load(tmp_path / "own.json").guarantees == (guarantee_of(study),)


def test_a_promise_is_that_of_one_round_and_says_what_both_make() -> None:
    study = boxed(2, method="rounds", epsilon=3)
    first, tables = parts(study, ("a",))
    second = ridge(study, "a").refine(*tables["a"], first=first["a"], around=combine([first["a"]]))
    for release in (first["a"], second.release_):
        assert (release.guarantee.epsilon, release.guarantee.delta) == round_terms(study)
        assert any("both together promise epsilon 3, delta 1e-06" in words for words in release.guarantee.assumptions)
    assert float(round_terms(study)[0]) == pytest.approx(2.1, abs=0.1)
    assert str(second.plan(n_records=1000)).splitlines()[1].startswith("In two rounds; each by itself promises epsilon 2")


def test_each_round_is_charged_and_a_repeated_second_round_is_free(tmp_path: Path) -> None:
    study = boxed(2, method="rounds", name="s")
    book = Ledger.create(tmp_path / "book", name="book", epsilon=2, delta="1e-5")
    X, y = table(1500)
    first = ridge(study, "a", ledger=book).fit(X, y).release_
    again = ridge(study, "a", ledger=book).refine(X, y, first=first, around=combine([first]))
    same = ridge(study, "a", ledger=book).refine(X, y, first=first, around=combine([first]))
    assert same.release_ == again.release_
    assert [receipt.epsilon for receipt in book.receipts] == [round_terms(study)[0]] * 2
    other = dataclasses.replace(combine([first]), beta=np.array([0.5, 0.5]))
    with pytest.raises(ParameterError, match="key"):  # a second round around another model is another question
        ridge(study, "a", ledger=book).refine(X, y, first=first, around=other)


def test_what_is_no_first_round_of_this_study_is_refused() -> None:
    study, other = boxed(2, method="rounds"), boxed(2, method="rounds", epsilon=2)
    first, tables = parts(study)
    around = combine(list(first.values()))
    X, y = tables["a"]
    second = ridge(study, "a").refine(X, y, first=first["a"], around=around).release_
    cases: list[tuple[Any, Any, Any, str]] = [
        (study, first["b"], around, "by the same organisation"),
        (study, second, around, "release of the first round"),
        (study, first["a"], combine([parts(other, ("a",))[0]["a"]]), "public model of the first rounds of this study"),
        (study, first["a"], combine(list(first.values()), X, y), "public model of the first rounds of this study"),
        (study, None, around, "given together"),
        (boxed(2), first["a"], around, "must be 'rounds'"),
    ]
    for terms, own, model, words in cases:
        with pytest.raises(ParameterError, match=words):
            ridge(terms, "a").refine(X, y, first=own, around=model)
    with pytest.raises(ReleaseError, match="must be made for study"):
        ridge(other, "a").refine(X, y, first=first["a"], around=around)
    for rows, targets in ((X[:-1], y[:-1]), (np.vstack([X, X[:1]]), np.append(y, y[:1]))):
        with pytest.raises(DataError, match=r"another number of rows\. Nothing was charged"):
            ridge(study, "a").refine(rows, targets, first=first["a"], around=around)
    residuals = ridge(study, "a").read_again(X, y, first=first["a"], around=around)
    with pytest.raises(ParameterError, match="read on these terms"):
        ridge(study, "b").fit(residuals)


def test_a_second_round_needs_its_first_beside_it_once() -> None:
    study = boxed(2, method="rounds")
    first, tables = parts(study)
    around = combine(list(first.values()))
    a, b = (ridge(study, name).refine(*tables[name], first=first[name], around=around).release_ for name in first)
    for releases in ([a], [a, first["b"]], [first["a"], a, a], [first["a"], a, first["b"], b, a]):
        with pytest.raises(ReleaseError, match="whose first must be beside it, once"):
            combine(releases)
    with pytest.raises(ReleaseError, match="sent two, or a copy"):
        combine([first["a"], first["a"], a])
    forged = dataclasses.replace(a, value=dict(a.value) | {"rows": 1499})
    with pytest.raises(ReleaseError, match="whose first must be beside it"):
        combine([first["a"], forged])
    for change in ({"first": 3}, {"level": 99}, {"start": [2**40, 0]}, {"residual_moment": [0]}):
        with pytest.raises(ReleaseError):
            combine([first["a"], dataclasses.replace(a, value=dict(a.value) | change)])
    wild = dataclasses.replace(a, value=dict(a.value) | {"residual_moment": [1500 * UNIT**2 * 3] * 2})
    with pytest.warns(UserWarning, match="Implausible: 'a'"):
        combine([first["a"], wild])


def test_two_rounds_are_worth_more_where_each_sees_its_own_corner() -> None:
    """Medians of 5 fixed worlds of 10 organisations: the public model of two rounds against that of one file."""
    found = {}
    for method in ("staged", "rounds"):
        study = simulated_study(features=5, epsilon=1, method=method)
        worlds = [world(features=5, rows=1000, organisations=10, setting="narrow", seed=seed) for seed in range(5)]
        errors = [errors_of(one, study, coin=seeded_coin(seed), mirror=False) for seed, one in enumerate(worlds)]
        found[method] = float(np.median([error["public"] for error in errors]))
    assert found["rounds"] < 0.8 * found["staged"]


def test_tags_of_the_shared_budget_that_proofs_cite_are_there() -> None:
    folder = Path(sharing.__file__).parent
    code = (folder / "sharing.py").read_text(encoding="utf-8")
    for proof in ("staged.proof.md", "second_round.proof.md"):
        cited = re.findall(r"`sharing\.py`, tag `([a-z-]+)`", (folder / proof).read_text(encoding="utf-8"))
        assert len(cited) >= 2
        assert all(f"# proof: {tag}\n" in code for tag in cited)


def test_the_command_line_goes_through_both_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cli.terminal import exit_code

    def command(*words: str) -> int:
        return exit_code("regression", *words)

    monkeypatch.chdir(tmp_path)
    X, y = table(1500)
    np.savetxt("t.csv", np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    bounds = ["--bounds", "a=-1:1", "--bounds", "b=-1:1", "--bounds", "y=-1:1", "--target", "y", "--epsilon", "2"]
    assert command("study", "init", "s.json", "--name", "s", *bounds, "--method", "rounds") == 0
    assert "Both releases of an organisation together promise: epsilon = 2" in capsys.readouterr().out
    assert exit_code("ledger", "create", "book", "--name", "book", "--epsilon", "4", "--delta", "1e-5") == 0
    north = ["--study", "s.json", "--organisation", "north", "--ledger", "book"]
    assert command("fit", "t.csv", *north, "--out", "one.json") == 0
    assert command("combine", "one.json", "--study", "s.json", "--out", "model.json") == 0
    second = ["refine", "t.csv", *north, "--first", "one.json", "--around", "model.json"]
    assert command(*second, "--out", "one.json") == 2  # a file that is there is not written over, and nothing is charged
    assert command(*second, "--out", "two.json") == 0
    assert command(*second, "--out", "two.json") == 0  # the same request: the same bytes, for free
    assert [entry.state for entry in Ledger.open("book").entries()] == ["committed"] * 2
    assert command("combine", "one.json", "two.json", "--study", "s.json", "--json") == 0
    assert command("verify", "two.json", "--study", "s.json") == 0
    capsys.readouterr()
    assert command("combine", "two.json", "--study", "s.json") == 4
    assert "whose first must be beside it" in capsys.readouterr().err
    assert command("study", "narrow", "s.json", "one.json", "--epsilon", "1", "--method", "staged", "--out", "n.json") == 0
    assert "a: a number from" in capsys.readouterr().out
    assert Study.load("n.json").method == "staged"
