from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regression.worlds import unit_study
from sabun.errors import BoundsError, DataError, ParameterError
from sabun.ledger import Ledger
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, Study
from sabun.regression.releasing import request_key
from sabun.release import generate_key

FEATURES = Schema.of_bounds({"age": (0, 120), "bmi": (10, 60)})
DOSE = Column.number("dose", lower=0, upper=100)


def study(**terms: Any) -> Study:
    return Study(**({"features": FEATURES, "target": DOSE, "epsilon": 1} | terms))


def test_a_study_survives_its_file(tmp_path: Path) -> None:
    made = study(
        name="dose",
        delta="1e-7",
        organisations={"north": generate_key().public_key()},
        clip_radius="1.7",
        unit="patient",
        relation="add-remove",
    )
    made.save(tmp_path / "study.json")
    again = Study.load(tmp_path / "study.json")
    assert again == made
    assert again.hash == made.hash
    assert again.public_key("north").public_bytes_raw() == made.public_key("north").public_bytes_raw()


def test_every_term_changes_the_hash() -> None:
    base = study().hash
    changes: list[dict[str, Any]] = [
        {"epsilon": 2}, {"delta": "1e-7"}, {"unit": "patient"}, {"coef_bound": 3}, {"clip_radius": 1}, {"fit_intercept": False},
        {"relation": "add-remove"}, {"method": "objpert"}, {"records_per_person": 2}, {"name": "x"},
        {"organisations": {"a": generate_key().public_key()}}, {"target": Column.number("dose", lower=0, upper=101)},
        {"features": Schema.of_bounds({"age": (0, 120), "bmi": (10, 61)})},
    ]  # fmt: skip
    assert len({base, *(study(**change).hash for change in changes)}) == len(changes) + 1


def test_numbers_are_read_as_they_are_written() -> None:
    assert study(epsilon=0.1).hash == study(epsilon="1/10").hash
    assert study(epsilon=0.1).epsilon == Fraction(1, 10)


def test_auto_chooses_by_delta_and_width() -> None:
    assert study(method="auto").method == "staged"
    assert study(method="auto", delta=0).method == "ssp-laplace"
    wide = Schema.of_bounds([(0, 1)] * 9)
    assert study(method="auto", delta=0, features=wide).method == "objpert"


def test_pure_mechanisms_keep_delta_zero_whatever_is_asked() -> None:
    assert study(method="objpert", delta="1e-6").delta == 0
    assert study(method="ssp-laplace").delta == 0


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"epsilon": 0}, "epsilon must be finite and > 0; got 0"),
        ({"epsilon": float("nan")}, "epsilon must be a number; got nan"),
        ({"epsilon": "1e-9"}, "epsilon must be at least 1e-06"),
        ({"delta": 0}, "delta must be > 0 for method 'staged'; got 0. With delta 0 choose"),
        ({"delta": 1}, "delta must be at least 0 and below 1; got 1"),
        ({"delta": "1e-200"}, "delta must be 0 or at least 1e-100"),
        (
            {"method": "adassp"},
            "method must be one of 'staged', 'rounds', 'ssp-gauss', 'ssp-laplace', 'objpert', 'paper'",
        ),
        ({"relation": "local"}, "relation must be one of 'replace-one', 'add-remove'"),
        ({"coef_bound": 0}, "coef_bound must be finite and > 0"),
        ({"coef_bound": 1e12}, "coef_bound must be between 1e-09 and 1e"),
        ({"clip_radius": -1}, "clip_radius must be finite and > 0"),
        ({"records_per_person": 0}, "records_per_person must be a whole number >= 1"),
        ({"records_per_person": 10**6}, "records_per_person must be at most 10000"),
        ({"regularization": 1}, "regularization must be left out unless method is 'objpert' or 'paper'"),
        ({"regularization": -1, "method": "objpert"}, "regularization must be finite and >= 0"),
        ({"target": Column.number("age", lower=0, upper=1)}, "target must be no feature; got 'age'"),
        ({"features": Schema.of_bounds([(0, 1)] * 201)}, "features must be at most 200; got 202. Choose fewer features."),
        ({"organisations": {"a": "AAAA"}}, "the key of organisation 'a' must be an Ed25519 public key"),
        ({"organisations": {"a": generate_key()}}, "must be its public half; got a private key"),
        ({"organisations": ["a"]}, "organisations must be a mapping from names to public keys; got list"),
        ({"unit": " "}, "unit must be a non-empty string"),
        ({"fit_intercept": 1}, "fit_intercept must be True or False"),
    ],
)
def test_impossible_terms_are_refused(terms: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        study(**terms)
    assert message in str(caught.value)


def test_bounds_are_asked_for() -> None:
    with pytest.raises(BoundsError, match="features must be a Schema with public bounds; got NoneType"):
        study(features=None)
    with pytest.raises(BoundsError, match=r"target must be a Column.number with public bounds; got CategoryColumn"):
        study(target=Column.category("sex", ["F", "M"]))


def test_bounds_that_cannot_be_scaled_are_refused() -> None:
    """With a slope of infinity a cell of 0 would become NaN, whatever its public meaning."""
    with pytest.raises(BoundsError, match="bounds of the features must be further apart for their size"):
        study(features=Schema.of_bounds([(0.0, 1e-310)]))


def test_an_unknown_organisation_has_no_key() -> None:
    with pytest.raises(ParameterError, match="organisation must be one of 'a'; got 'b'"):
        study(organisations={"a": generate_key().public_key()}).public_key("b")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "fields of a study must be exactly"),
        ({"format": "other"}, "format must be 'sabun-regression-study-1'"),
        ({"epsilon": 1.0}, "epsilon must be an exact number as text"),
        ({"epsilon": "9" * 500}, "epsilon must be a short number such as"),
        ({"coef_bound": "1e999999999"}, "coef_bound must be a short number such as"),
    ],
)
def test_a_changed_file_is_refused(change: dict[str, Any], message: str) -> None:
    record = study().to_dict() | change
    with pytest.raises(ParameterError) as caught:
        Study.from_json(json.dumps(record))
    assert message in str(caught.value)


def test_files_that_are_no_study_are_refused(tmp_path: Path) -> None:
    for content in (b"{", b"[1]", b'{"a":1,"a":2}', b"[" * 100_000):
        (tmp_path / "s").write_bytes(content)
        with pytest.raises(ParameterError):
            Study.load(tmp_path / "s")
    (tmp_path / "s").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="must be UTF-8 text"):
        Study.load(tmp_path / "s")
    with pytest.raises(DataError, match=r"study file: .* must be a readable file"):
        Study.load(tmp_path / "none")
    (tmp_path / "big").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(DataError, match="at most 1048576 bytes"):
        Study.load(tmp_path / "big")


def test_organisations_with_long_names_do_not_share_a_retry_key(tmp_path: Path) -> None:
    """A key that is cut short would be that of another organisation, which the ledger then refuses as used."""
    terms, long = study(name="dose"), "clinic " * 40
    names = ["north", long + "north", long + "south", "x" * 124, "x" * 125, "x" * 126]
    names.append("sha256:" + hashlib.sha256(names[1].encode()).hexdigest())  # looks like what stands for a long name
    keys = [request_key(terms, name) for name in names]
    assert len(set(keys)) == len(names)
    assert keys[0] == f"regression {terms.hash} north"
    assert keys[3] == f"regression {terms.hash} {names[3]}"
    assert max(len(key or "") for key in keys) <= 200
    ledger = Ledger.create(tmp_path / "book", name="book", epsilon=9, delta="1e-4")
    rows = np.array([[30.0, 20.0], [60.0, 30.0]]), np.array([10.0, 20.0])
    first, other, again = (
        PrivateRidge(study=terms, organisation=name, ledger=ledger).fit(*rows).release_ for name in (*names[1:3], names[1])
    )
    assert again.to_json() == first.to_json() != other.to_json()
    assert ledger.spent.epsilon == 2


AGREED = unit_study(2, name="s", organisations={name: generate_key().public_key() for name in ("A", "B")})


def test_fractions_of_numpy_integers_are_made_plain() -> None:
    hundred: Any = np.int8(100)
    study = unit_study(epsilon=Fraction(hundred), coef_bound=Fraction(hundred), clip_radius=Fraction(hundred))
    for value in (study.epsilon, study.coef_bound, study.clip_radius, study.delta, study.ridge):
        assert isinstance(value, Fraction)
        assert type(value.numerator) is type(value.denominator) is int


@pytest.mark.parametrize("terms", [{"coef_bound": "1e10"}, {"coef_bound": "1e999"}, {"clip_radius": "1e999"}])
def test_amounts_beyond_the_public_range_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"must be between 1e-09 and 1e[+]09; got '10"):
        unit_study(**terms)
    with pytest.raises(ParameterError, match=r"epsilon must be at most 1e[+]09; got '10"):
        unit_study(epsilon="1e999")


def test_the_organisations_of_a_study_cannot_change() -> None:
    organisations: Any = AGREED.organisations
    with pytest.raises(TypeError):
        organisations["A"] = "x"
    with pytest.raises(dataclasses.FrozenInstanceError):
        organisations.pairs = ()
    for twin in (pickle.loads(pickle.dumps(AGREED)), copy.deepcopy(AGREED), Study.from_json(AGREED.to_json())):
        assert twin.hash == AGREED.hash
        assert twin == AGREED
        assert twin.organisations == dict(AGREED.organisations)


def test_a_target_with_a_logarithm_is_refused() -> None:
    with pytest.raises(ParameterError, match="target must be a column without log1p; got 'y'"):
        Study(features=Schema.of_bounds([(0, 1)]), target=Column.number("y", lower=0, upper=9, log1p=True), epsilon=1)


def test_a_single_label_beside_an_intercept_is_refused() -> None:
    features = Schema(columns=(Column.category("c", ["u"]),))
    with pytest.raises(ParameterError, match="features must be more than categories of one label beside an intercept"):
        Study(features=features, target=Column.number("y", lower=0, upper=1), epsilon=1)
