from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regression.worlds import clinic, unit_study
from sabun.errors import ParameterError, ReleaseError
from sabun.privacy.guarantee import Guarantee
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, PublicModel, Study, combine, read_all
from sabun.regression.carrier import received
from sabun.regression.contribution import read_one
from sabun.regression.promise import guarantee_of
from sabun.release import Provenance, Release, generate_key

KEYS = {name: generate_key() for name in ("north", "east", "south")}


def study(**terms: Any) -> Study:
    facts: dict[str, Any] = {
        "name": "dose",
        "features": Schema.of_bounds([(0, 120), (10, 60)]),
        "target": Column.number("y", lower=0, upper=100),
        "epsilon": 2,
        "organisations": {name: key.public_key() for name, key in KEYS.items()},
    }
    return Study(**(facts | terms))


STUDY = study()


def released(organisation: str, terms: Study = STUDY, key: str | None = None, rows: int = 400) -> Release:
    X, y = clinic(rows, seed=len(organisation))
    return PrivateRidge(study=terms, organisation=organisation, signing_key=KEYS[key or organisation]).fit(X, y).release_


NORTH, EAST = released("north"), released("east")


def changed(release: Release, **value: Any) -> Release:
    """A release with other numbers, as a clumsy or malicious sender would make it, signed by its own key."""
    forged = Release(value=dict(release.value) | value, guarantee=release.guarantee, provenance=release.provenance)
    return forged.sign(KEYS["north"])


def test_honest_releases_are_read(tmp_path: Path) -> None:
    NORTH.save(tmp_path / "north.json")
    found = read_all([tmp_path / "north.json", EAST], STUDY)
    assert [contribution.organisation for contribution in found] == ["north", "east"]
    assert (tmp_path / "north.json").stat().st_size < 4000


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    content = NORTH.to_json().replace(b'"rows":400', b'"rows":401')
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(ReleaseError, match=r"organisation 'north'\): the release must be as it was signed"):
        read_all([tmp_path / "x.json"], STUDY)


def test_another_organisations_signature_is_refused() -> None:
    with pytest.raises(ReleaseError, match=r"organisation 'north'\): the release must be signed by a trusted key"):
        read_all([released("north", key="east")], STUDY)
    unsigned = PrivateRidge(study=STUDY, organisation="north").fit(*clinic(100)).release_
    with pytest.raises(ReleaseError, match="must be signed; it is not"):
        read_all([unsigned], STUDY)


def test_another_study_is_refused() -> None:
    other = study(coef_bound=3)
    with pytest.raises(ReleaseError, match=f"must be made for study {STUDY.hash[:12]}; it is for {other.hash[:12]}"):
        read_all([released("north", other)], STUDY)
    with pytest.raises(ReleaseError, match="releases must be made for one study; 'east' is of another than 'north'"):
        read_all([NORTH, released("east", other)])


def test_an_organisation_counts_once() -> None:
    with pytest.raises(ReleaseError, match="each organisation must send one release; 'north' sent two"):
        read_all([NORTH, released("north")], STUDY)
    loose = PrivateRidge(epsilon=1, x_bounds=[(0, 120), (10, 60)], y_bounds=(0, 100)).fit(*clinic(50)).release_
    with pytest.raises(ReleaseError, match="sent two"):
        read_all([loose, loose])


def test_an_unknown_organisation_is_refused() -> None:
    with pytest.raises(ReleaseError, match="organisation must be one of 'east', 'north', 'south'; got 'west'"):
        read_all([changed(NORTH, organisation="west")], STUDY)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"gram": [1, 2]}, "gram must be 6 whole numbers of at most 62 bits"),
        ({"gram": [1.5] * 6}, "gram must be 6 whole numbers"),
        ({"moment": [True] * 3}, "moment must be 3 whole numbers"),
        ({"square": None}, "square must be 1 whole numbers"),
        ({"square": 2**63}, "square must be 1 whole numbers of at most 62 bits"),
        ({"rows": -1}, "rows must be a whole number"),
        ({"rows": None}, "rows must be a whole number"),
        ({"count": 5}, "count must be left out"),
        ({"extra": 1}, "must hold exactly count, gram, level, moment, organisation, radius, residual_moment"),
        ({"radius": 13}, "radius must be from 0 to 12"),
        ({"radius": True}, "radius must be from 0 to 12"),
        ({"level": 5}, "level must be a whole number from -40 to 4"),
        ({"start": [1]}, "start must be"),
        ({"start": [2**27, 0, 0]}, "start must be whole numbers of at most 26 bits"),
        ({"residual_moment": [0.5, 1, 2]}, "residual_moment must be"),
        ({"residual_weight": None}, "residual_square and residual_weight must be"),
    ],
)
def test_numbers_of_the_wrong_kind_are_refused(value: dict[str, Any], message: str) -> None:
    with pytest.raises(ReleaseError) as caught:
        read_all([changed(NORTH, **value)], STUDY)
    assert message in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    plain = Release(value={"a": 1}, guarantee=Guarantee(epsilon=1), provenance=Provenance(kind="count", mechanism="m"))
    with pytest.raises(ReleaseError, match="must be a regression release; got kind 'count'"):
        read_all([plain])
    bare = Release(value={"a": 1}, guarantee=Guarantee(epsilon=1), provenance=Provenance(kind="regression.x", mechanism="m"))
    with pytest.raises(ReleaseError, match="must carry its study"):
        read_all([bare])
    facts = dict(NORTH.provenance.parameters) | {"study_hash": "0" * 64}
    kind = "regression.ssp-gauss"
    lying = Release(
        value=NORTH.value, guarantee=NORTH.guarantee, provenance=Provenance(kind=kind, mechanism="m", parameters=facts)
    )
    with pytest.raises(ReleaseError, match="must carry the hash of its own study"):
        read_all([lying])
    (tmp_path / "big.json").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(ReleaseError, match="must have at most 1048576 bytes"):
        read_all([tmp_path / "big.json"])
    with pytest.raises(ParameterError, match="releases must hold at least one release; got none"):
        read_all([])
    with pytest.raises(ParameterError, match="a release must be a path or a Release; got int"):
        read_all([5])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_mangled_file_is_read_or_crashes(data: st.DataObject) -> None:
    """Fuzz: cut, flip or splice bytes of a signed release; the only exception is ReleaseError."""
    content = bytearray(NORTH.to_json())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    if bytes(content) == NORTH.to_json():
        return
    with pytest.raises(ReleaseError):
        read_all([Release.from_json(bytes(content))], STUDY)


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3), lambda c: st.lists(c, max_size=3), max_leaves=5
    )
)
def test_any_signed_nonsense_is_refused_by_name(nonsense: Any) -> None:
    try:
        forged = changed(NORTH, gram=nonsense)
    except ParameterError:
        return
    with pytest.raises(ReleaseError, match="gram must be 6 whole numbers"):
        read_all([forged], STUDY)


@pytest.mark.filterwarnings("ignore:Implausible")
@pytest.mark.parametrize(
    ("value", "what"),
    [
        ({"gram": [10**15] * 6}, "products of features that are too large"),
        ({"moment": [10**15] * 3}, "products with the target that are too large"),
        ({"square": -(10**12)}, "squares of the target that cannot be"),
        ({"gram": [-(10**10)] * 6}, "feature products that no data can have"),
    ],
)
def test_implausible_numbers_name_their_organisation(value: dict[str, Any], what: str) -> None:
    found = combine([changed(NORTH, **value), EAST], study=STUDY).findings
    assert f"Implausible: 'north' sent {what}. Ask that organisation before you use it." in found
    assert not any("east" in note for note in found)


def test_an_implausible_release_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="Implausible: 'north' sent squares of the target that cannot be"):
        combine([changed(NORTH, square=-(10**12)), EAST], study=STUDY)


def test_honest_releases_are_plausible() -> None:
    assert not any("Implausible" in note for note in combine([NORTH, EAST], study=STUDY).findings)
    assert combine([NORTH], study=STUDY).findings[0] == "There is only one release: nothing is pooled."


def test_influence_points_at_the_organisation_that_flipped_its_signs() -> None:
    south = released("south", rows=3000)
    flipped = Release(
        value=dict(south.value) | {part: [-entry for entry in south[part]] for part in ("moment", "residual_moment", "start")},
        guarantee=south.guarantee,
        provenance=south.provenance,
    ).sign(KEYS["south"])
    model = combine([released("north", rows=3000), released("east", rows=3000), flipped], study=STUDY)
    assert model.influences[0].organisation == "south"
    assert model.influences[0].largest_shift > 20  # an honest one of three: about 1


def test_a_release_file_never_holds_data_or_its_hash() -> None:
    record = json.loads(NORTH.to_json())
    sums = {"organisation", "gram", "moment", "square", "count", "rows"}
    assert set(record["value"]) == sums | {"radius", "start", "level", "residual_moment", "residual_square", "residual_weight"}
    assert set(record["provenance"]["parameters"]) == {"study", "study_hash", "organisation"}


def test_outside_a_study_privacy_may_differ_but_bounds_may_not() -> None:
    X, y = clinic(300)
    terms: dict[str, Any] = {"x_bounds": [(0, 120), (10, 60)], "y_bounds": (0, 100)}
    one = PrivateRidge(epsilon=1, **terms).fit(X, y).release_
    two = PrivateRidge(epsilon=2, **terms).fit(X, y).release_
    assert np.isfinite(combine([one, two]).coef_).all()
    with pytest.raises(ReleaseError, match="Agree on columns, target, bounds, radius and method first"):
        combine([one, PrivateRidge(epsilon=1, x_bounds=[(0, 121), (10, 60)], y_bounds=(0, 100)).fit(X, y).release_])
    with pytest.raises(ReleaseError, match="of another than"):
        combine([one, PrivateRidge(epsilon=1, method="objpert", **terms).fit(X, y).release_])


def test_sums_of_every_kind_pool_together(tmp_path: Path) -> None:
    """A file of an earlier version has its sums alone; read into the same units they add up."""
    X, y = clinic(3000)
    terms: dict[str, Any] = {"x_bounds": [(0, 120), (10, 60)], "y_bounds": (0, 100), "epsilon": 3}
    kinds = ("staged", "ssp-gauss", "ssp-laplace")
    releases = [PrivateRidge(method=kind, **terms).fit(X[i::3], y[i::3]).release_ for i, kind in enumerate(kinds)]
    for order in ([0, 1, 2], [2, 1, 0]):
        model = combine([releases[place] for place in order])
        assert abs(model.coef_[0] - 0.3) < 0.15
        model.save(tmp_path / f"{order[0]}.json")
        assert np.allclose(PublicModel.load(tmp_path / f"{order[0]}.json").coef_, model.coef_)
        assert len(model.guarantees) == 3


ZEROS = np.zeros((5, 2)), np.zeros(5)


def with_value(**values: Any) -> Release:
    return dataclasses.replace(NORTH, value=dict(NORTH.value) | values, signature=None)


def with_facts(**facts: Any) -> Release:
    provenance = dataclasses.replace(NORTH.provenance, parameters=dict(NORTH.provenance.parameters) | facts)
    return dataclasses.replace(NORTH, provenance=provenance, signature=None)


def with_term(**terms: Any) -> Release:
    return with_facts(study=json.loads(STUDY.to_json()) | terms)


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
    for number, signed in enumerate((release, release.sign(KEYS["north"]))):
        with pytest.raises(ReleaseError):
            read_one(signed, STUDY)
        with pytest.raises(ReleaseError):
            read_one(signed)
        signed.save(tmp_path / f"{number}.json")
    EAST.save(tmp_path / "good.json")
    good, bad = received(tmp_path, STUDY)
    assert [contribution.organisation for contribution in good] == ["east"]
    assert len(bad) == 2


def test_a_release_must_promise_what_its_study_says() -> None:
    """Every field but words: another amount, relation, unit or scope is another promise."""
    own = NORTH.guarantee
    others = {"relation": "add-remove", "unit": "visit", "scope": "per-parameter"}
    words = {"mechanism", "assumptions", "simulated", "joint_epsilon", "joint_delta", "model"}  # which follow from the others
    for name in {part.name for part in dataclasses.fields(own)} - words:
        joint = {} if name == "scope" else {"joint_epsilon": None, "joint_delta": None}
        modest = dataclasses.replace(own, **{name: others.get(name, Fraction(1, 10**7))}, **joint)
        with pytest.raises(ReleaseError, match=f"{name} of its guarantee must be that of its study"):
            read_one(dataclasses.replace(NORTH, guarantee=modest, signature=None).sign(KEYS["north"]), STUDY)


@pytest.mark.parametrize("numbers", [np.array([np.nan, 0.0]), np.array([np.inf, 0.0]), np.array([1, 2], dtype=np.int8)])
def test_estimates_that_are_no_numbers_are_refused(numbers: Any) -> None:
    release = PrivateRidge(study=unit_study(method="paper")).fit(*ZEROS).release_
    changed = dataclasses.replace(release, value=dict(release.value) | {"estimate": numbers})
    with pytest.raises(ReleaseError, match="estimate must be an array of 2 finite numbers"):
        combine([changed], method="average")


def test_a_copy_signed_again_is_still_a_copy() -> None:
    release = PrivateRidge(study=unit_study()).fit(*ZEROS).release_
    for pair in ([release, release.sign(KEYS["north"])], [release.sign(KEYS["east"]), release.sign(KEYS["north"])]):
        with pytest.raises(ReleaseError, match="each organisation must send one release"):
            combine(pair)


def test_a_copy_under_another_name_is_still_a_copy() -> None:
    keys = {name: generate_key() for name in ("a", "b")}
    agreed = Study(
        features=Schema.of_bounds([(-1, 1)]),
        target=Column.number("y", lower=-1, upper=1),
        epsilon=1,
        name="s",
        organisations={name: key.public_key() for name, key in keys.items()},
    )
    first = PrivateRidge(study=agreed, organisation="a", signing_key=keys["a"]).fit(np.zeros((5, 1)), np.zeros(5)).release_
    copied = dataclasses.replace(first, value=dict(first.value) | {"organisation": "b"}, signature=None).sign(keys["b"])
    with pytest.raises(ReleaseError, match="each organisation must send one release; 'b' sent two, or a copy of another's"):
        combine([first, copied], study=agreed)


def test_a_file_whose_noise_no_number_can_hold_is_a_bad_release() -> None:
    terms = Study.from_dict(
        json.loads(STUDY.to_json())
        | {"organisations": {}, "mechanism": "ssp-laplace", "epsilon": "1/1000000", "records_per_person": 10_000, "delta": "0"}
    )
    facts = dict(NORTH.provenance.parameters) | {"study": json.loads(terms.to_json()), "study_hash": terms.hash}
    origin = dataclasses.replace(NORTH.provenance, kind="regression.ssp-laplace", parameters=facts)
    forged = Release(value=dict(NORTH.value), guarantee=guarantee_of(terms), provenance=origin)
    with pytest.raises(ReleaseError, match="must carry its study: epsilon must be larger for so many records per person"):
        read_one(forged)
