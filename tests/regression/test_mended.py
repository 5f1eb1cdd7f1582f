"""Breaks that an adversarial reading found, each kept as a test."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.terminal import exit_code
from regression.worlds import CLINIC, clinic, totals, unit_study
from sabun.errors import ParameterError, ReleaseError
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, PublicModel, Study, combine
from sabun.regression.carrier import received
from sabun.regression.contribution import read_one
from sabun.regression.perturbation import perturbed_minimiser
from sabun.regression.releasing import guarantee_of
from sabun.regression.sensitivity import gradient_diameter, noise_share, sufficient_l2_squared
from sabun.regression.sufficient import gauss_variance
from sabun.release import Release, generate_key

KEY, OTHER = generate_key(), generate_key()
STUDY = unit_study(2, name="s", organisations={"A": KEY.public_key(), "B": OTHER.public_key()})
ZEROS = np.zeros((5, 2)), np.zeros(5)
A_RELEASE = PrivateRidge(study=STUDY, organisation="A", key=KEY).fit(*ZEROS).release_
B_RELEASE = PrivateRidge(study=STUDY, organisation="B", key=OTHER).fit(*ZEROS).release_


def with_value(**values: Any) -> Release:
    return dataclasses.replace(A_RELEASE, value=dict(A_RELEASE.value) | values, signature=None)


def with_facts(**facts: Any) -> Release:
    provenance = dataclasses.replace(A_RELEASE.provenance, parameters=dict(A_RELEASE.provenance.parameters) | facts)
    return dataclasses.replace(A_RELEASE, provenance=provenance, signature=None)


def with_term(**terms: Any) -> Release:
    return with_facts(study=json.loads(STUDY.to_json()) | terms)


# Small integers of numpy wrap around when they are squared, and equal a plain integer as the key of a cache.


@pytest.mark.parametrize("people", [np.int8(100), np.int16(256), np.uint8(16), np.int64(100)])
def test_numpy_integers_give_the_noise_of_plain_ones(people: Any) -> None:
    first, plain = unit_study(records_per_person=people), unit_study(records_per_person=int(people))
    assert type(first.records_per_person) is int
    assert gauss_variance(first) == gauss_variance(plain) > gauss_variance(unit_study()) * (int(people) ** 2 - 1)
    assert first.hash == plain.hash


def test_fractions_of_numpy_integers_are_made_plain() -> None:
    hundred: Any = np.int8(100)
    study = unit_study(epsilon=Fraction(hundred), coef_bound=Fraction(hundred), clip_radius=Fraction(hundred))
    for value in (study.epsilon, study.coef_bound, study.clip_radius, study.delta, study.ridge):
        assert isinstance(value, Fraction)
        assert type(value.numerator) is type(value.denominator) is int


def test_sensitivities_do_not_wrap() -> None:
    small: Any = np.int8(100)
    three: Any = np.int8(3)
    assert sufficient_l2_squared("replace-one", records_per_person=small) == Fraction(9, 2) * 10_000
    assert gradient_diameter(Fraction(small), "replace-one") == gradient_diameter(Fraction(100), "replace-one")
    given = noise_share(Fraction(small), ridge=Fraction(three), records_per_person=small)
    assert given == noise_share(Fraction(100), ridge=Fraction(3), records_per_person=100)


# A very large bound for the coefficients.


@pytest.mark.parametrize(("epsilon", "bound"), [("20", "1e9"), ("100", "1e9"), ("50", "1e7")])
@pytest.mark.parametrize("cell", [0.0, 1.0])
def test_a_very_large_ball_never_ends_in_an_error(epsilon: str, bound: str, cell: float) -> None:
    study = unit_study(1, epsilon=epsilon, mechanism="objpert", coef_bound=bound)
    moments = totals(study.design, np.array([[cell]]), np.array([0.0]))
    for seed in range(300):
        [found] = perturbed_minimiser(study, moments, seeded_coin(seed))["coefficients"]
        assert abs(found) <= Fraction(bound) * 2**20


@pytest.mark.parametrize("terms", [{"coef_bound": "1e10"}, {"coef_bound": "1e999"}, {"clip_radius": "1e999"}])
def test_amounts_beyond_the_public_range_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"must be between 1e-09 and 1e[+]09; got '10"):
        unit_study(**terms)
    with pytest.raises(ParameterError, match=r"epsilon must be at most 1e[+]09; got '10"):
        unit_study(epsilon="1e999")


# Files that somebody made up.


@pytest.mark.parametrize(
    "release",
    [
        with_value(organisation={"a": 1}),
        with_value(organisation=[1]),
        with_value(organisation=np.arange(3)),
        with_term(coef_bound="1e999"),
        with_term(epsilon="1/0"),
        with_term(ridge="1e-999"),
        with_term(mechanism={}),
        with_term(organisations=[1]),
        with_term(epsilon=np.arange(3)),
        with_term(format=np.arange(3)),
        with_facts(study_hash=np.arange(3)),
        with_facts(study=np.arange(3)),
        with_value(rows=np.arange(3)),
        with_value(gram={"a": 1}),
    ],
)
def test_a_made_up_file_is_refused_without_harm_to_the_others(release: Release, tmp_path: Path) -> None:
    for number, signed in enumerate((release, release.sign(KEY))):
        with pytest.raises(ReleaseError):
            read_one(signed, STUDY)
        with pytest.raises(ReleaseError):
            read_one(signed)
        signed.save(tmp_path / f"{number}.json")
    B_RELEASE.save(tmp_path / "good.json")
    good, bad = received(tmp_path, STUDY)
    assert [contribution.organisation for contribution in good] == ["B"]
    assert len(bad) == 2


def test_a_release_must_promise_what_its_study_says() -> None:
    modest = dataclasses.replace(A_RELEASE.guarantee, epsilon=Fraction(1, 10), joint_epsilon=Fraction(1, 10))
    with pytest.raises(ReleaseError, match="epsilon of its guarantee must be that of its study"):
        read_one(dataclasses.replace(A_RELEASE, guarantee=modest, signature=None).sign(KEY), STUDY)


def test_a_carrier_needs_a_study_with_keys(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="study must name organisations with their keys; got none"):
        received(tmp_path, unit_study())


@pytest.mark.parametrize("numbers", [np.array([np.nan, 0.0]), np.array([np.inf, 0.0]), np.array([1, 2], dtype=np.int8)])
def test_estimates_that_are_no_numbers_are_refused(numbers: Any) -> None:
    release = PrivateRidge(study=unit_study(mechanism="paper")).fit(*ZEROS).release_
    changed = dataclasses.replace(release, value=dict(release.value) | {"estimate": numbers})
    with pytest.raises(ReleaseError, match="estimate must be an array of 2 finite numbers"):
        combine([changed], method="average")


def test_a_copy_signed_again_is_still_a_copy() -> None:
    release = PrivateRidge(study=unit_study()).fit(*ZEROS).release_
    for pair in ([release, release.sign(KEY)], [release.sign(OTHER), release.sign(KEY)]):
        with pytest.raises(ReleaseError, match="each organisation must send one release"):
            combine(pair)


# Terms that contradict the study.


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (
            {"mechanism": "objpert"},
            "mechanism must be left out, or the study's 'ssp-gauss', when a study says it; got 'objpert'",
        ),
        ({"records_per_person": 50}, "records_per_person must be left out, or the study's 1, when a study says it; got 50"),
        ({"coef_bound": 7}, "coef_bound must be left out, or the study's 1, when a study says it; got 7"),
    ],
)
def test_a_term_that_contradicts_the_study_is_refused(terms: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        PrivateRidge(study=STUDY, organisation="A", **terms)
    assert message in str(caught.value)


def test_an_intercept_that_contradicts_the_study_is_refused() -> None:
    study = Study(features=Schema.of_bounds([(0, 1)]), target=Column.number("y", lower=0, upper=1), epsilon=1)
    with pytest.raises(ParameterError, match="fit_intercept must be left out, or the study's True"):
        PrivateRidge(study=study, fit_intercept=False)


def test_a_term_that_agrees_with_the_study_is_taken() -> None:
    model = PrivateRidge(study=STUDY, organisation="A", coef_bound="1", fit_intercept=False, records_per_person=1)
    assert model.fit(*ZEROS).study_.hash == STUDY.hash


@pytest.mark.parametrize("option", [("--relation", "add-remove"), ("--mechanism", "objpert"), ("--columns", "x0")])
def test_an_option_that_the_study_says_is_refused(
    option: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit_study().save(tmp_path / "s.json")
    (tmp_path / "d.csv").write_text("x0,x1,y\n0,0,0\n")
    files = [str(tmp_path / "d.csv"), "--study", str(tmp_path / "s.json"), "--out", str(tmp_path / "r.json"), "--yes"]
    assert exit_code("regression", "fit", *files, *option) != 0
    shown = capsys.readouterr()
    assert f"{option[0]} must be left out with --study, which says it." in " ".join((shown.err + shown.out).split())


# What a model says about itself.


def test_a_model_without_privacy_says_so_everywhere(tmp_path: Path) -> None:
    X, y = clinic(50)
    printed = combine([PrivateRidge(epsilon=1, mechanism="paper", **CLINIC).fit(X, y).release_], method="average")
    seeded = combine([PrivateRidge(epsilon=1, random_state=1, **CLINIC).fit(X, y).release_])
    for model, word in ((printed, "eq. (8)"), (seeded, "seeded coin")):
        [warning] = model.to_dict()["warnings"]
        assert warning.startswith("NOT PRIVATE")
        assert word in warning
        assert warning in str(model)
    assert printed.to_dict()["guarantees"][0]["epsilon"] == "inf"
    assert seeded.to_dict()["simulated"] is True
    assert isinstance(printed, PublicModel)
    printed.save(tmp_path / "m.json")
    assert "NOT PRIVATE" in (tmp_path / "m.json").read_text()
    assert "NOT PRIVATE" in str(PublicModel.load(tmp_path / "m.json"))


def test_a_saved_model_keeps_the_guarantees(tmp_path: Path) -> None:
    model = combine([A_RELEASE, B_RELEASE], study=STUDY)
    assert isinstance(model, PublicModel)
    assert model.warnings == ()
    model.save(tmp_path / "m.json")
    assert PublicModel.load(tmp_path / "m.json").guarantees == (A_RELEASE.guarantee, B_RELEASE.guarantee)


def test_a_home_model_cannot_be_saved_as_a_public_one(tmp_path: Path) -> None:
    home: Any = combine([A_RELEASE, B_RELEASE], *ZEROS, study=STUDY)
    with pytest.raises(ParameterError, match="a model to save must be a PublicModel; one that used raw data stays at home"):
        PublicModel.save(home, tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()
    assert "NOT PRIVATE for the home data" in str(pickle.loads(pickle.dumps(home)))


# Studies.


def test_the_organisations_of_a_study_cannot_change() -> None:
    organisations: Any = STUDY.organisations
    with pytest.raises(TypeError):
        organisations["A"] = "x"
    with pytest.raises(dataclasses.FrozenInstanceError):
        organisations.pairs = ()
    for twin in (pickle.loads(pickle.dumps(STUDY)), copy.deepcopy(STUDY), Study.from_json(STUDY.to_json())):
        assert twin.hash == STUDY.hash
        assert twin == STUDY
        assert twin.organisations == dict(STUDY.organisations)


def test_a_target_with_a_logarithm_is_refused() -> None:
    with pytest.raises(ParameterError, match="target must be a column without log1p; got 'y'"):
        Study(features=Schema.of_bounds([(0, 1)]), target=Column.number("y", lower=0, upper=9, log1p=True), epsilon=1)


def test_a_single_label_beside_an_intercept_is_refused() -> None:
    features = Schema(columns=(Column.category("c", ["u"]),))
    with pytest.raises(ParameterError, match="features must be more than categories of one label beside an intercept"):
        Study(features=features, target=Column.number("y", lower=0, upper=1), epsilon=1)


def test_several_rows_of_a_person_are_not_said_to_be_hidden() -> None:
    words = "how many rows one record has is not hidden: they are replaced by as many others"
    assert words in guarantee_of(unit_study(records_per_person=3)).assumptions
    assert words not in guarantee_of(unit_study(records_per_person=3, relation="add-remove")).assumptions
    assert words not in guarantee_of(unit_study()).assumptions
