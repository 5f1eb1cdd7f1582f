from __future__ import annotations

import base64
import copy
import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from release.release_samples import PROMISE, sample
from sabun.errors import DataError, ParameterError, ReleaseError, SimulatedError
from sabun.privacy import Guarantee
from sabun.release import Release, generate_key
from sabun.release.encoding import canonical
from sabun.release.provenance import Provenance
from sabun.release.tree import DTYPES

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.fractions()
    | arrays.arrays(dtype=st.sampled_from(DTYPES), shape=arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
)
names = st.text(min_size=1, max_size=6) | st.sampled_from(["array", "float", "fraction", "mapping", "dtype", "shape"])
trees = st.recursive(leaves, lambda tree: st.lists(tree, max_size=3) | st.dictionaries(names, tree, max_size=3), max_leaves=6)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return set(one) == set(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, float):
        return isinstance(other, float) and (repr(one) == repr(other))
    return type(one) is type(other) and bool(one == other)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(names, trees, min_size=1, max_size=4))
def test_every_value_survives_the_round_trip_exactly(value: dict[str, Any]) -> None:
    release = sample(value=value)
    content = release.to_json()
    again = Release.from_json(content)
    assert same(value, dict(again.value))
    assert again.to_json() == content
    assert again == release


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(names, trees, max_size=4), st.lists(st.text(st.characters(), min_size=1), max_size=2))
def test_a_provenance_that_can_be_made_can_be_written(facts: dict[str, Any], notes: list[str]) -> None:
    """So a draft whose promise can be written is a release that can be, and it is not tried again."""
    try:
        made = Provenance(kind="k", mechanism="m", parameters=facts, notes=tuple(notes))
    except ParameterError:
        return
    assert Provenance.from_dict(json.loads(canonical(made.to_dict()))).to_dict() == made.to_dict()


def test_the_document_says_what_it_is() -> None:
    document = json.loads(sample().to_json())
    assert (document["format"], document["version"]) == ("sabun-release", 1)
    assert set(document) == {"format", "version", "value", "guarantee", "provenance"}
    assert document["guarantee"]["epsilon"] == "1/3"
    assert document["value"]["limits"] == [{"float": "inf"}, {"float": "-inf"}]
    assert document["value"]["table"]["dtype"] == "<i4"


def test_values_are_read_by_name() -> None:
    release = sample()
    assert release["count"] == release.value["count"] == 42
    assert math.copysign(1, release["weights"][1]) == -1


def test_releases_are_compared_by_content() -> None:
    release = sample()
    assert release == Release.from_json(release.to_json())
    assert hash(release) == hash(Release.from_json(release.to_json()))
    assert release != sample(value={"count": 43})
    assert release != "a release"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda release: pickle.loads(pickle.dumps(release))])
def test_a_copied_release_is_the_same_and_still_read_only(copied: Callable[[Release], Release]) -> None:
    again = copied(sample())
    assert again == sample(provenance=again.provenance)
    assert not again["weights"].flags.writeable


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"value": {}}, "value must hold at least one named result"),
        ({"value": 3}, "value must be a mapping"),
        ({"guarantee": None}, "guarantee must be a Guarantee; got NoneType"),
        ({"provenance": {}}, "provenance must be a Provenance; got dict"),
        ({"signature": b""}, "signature must be a Signature or None; got bytes"),
    ],
)
def test_a_release_is_complete_when_it_is_made(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        sample(**changes)


def test_plain_words_have_the_value_the_promise_and_the_ledger() -> None:
    words = str(sample())
    for part in (
        "test count (discrete Laplace)",
        "count: 42",
        "weights: array of shape 5 (float64)",
        "one patient is replaced",
    ):
        assert part in words
    assert "not charged to a ledger" in words
    assert "A note." in words
    assert repr(sample()) == "<Release 'test count': count, limits, mean, names, nested, share, table, weights>"
    assert "list of 1000 results" in str(sample(value={"many": [0] * 1000}))
    assert "…" in str(sample(value={"long": "x" * 1000}))


# --- simulated results


def test_a_simulated_result_can_be_read_but_not_leave(tmp_path: Path) -> None:
    release = sample(guarantee=PROMISE.as_simulated())
    assert release["count"] == 42
    assert str(release).startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in repr(release)
    for leave in (release.to_json, lambda: release.save(tmp_path / "x.json"), lambda: release.sign(generate_key())):
        with pytest.raises(SimulatedError, match=r"^NOT PRIVATE"):
            leave()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_claims_to_be_simulated_is_refused() -> None:
    document = json.loads(sample().to_json())
    document["guarantee"]["simulated"] = True
    with pytest.raises(SimulatedError, match="NOT PRIVATE"):
        Release.from_json(canonical(document))


# --- damaged documents


def edited(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = json.loads(sample().to_json())
    change(document)
    return canonical(document)


def put(*path: str, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = to

    return change


ARRAY = {"array": base64.b64encode(bytes(16)).decode(), "dtype": "<f8", "shape": [2]}
DEEP: Any = [1]
for _ in range(20):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("format", to="other"), "format 'sabun-release'; it is not"),
        (put("format", to="sabun-schema-1"), "format 'sabun-release'; this one is 'sabun-schema-1'"),
        (put("version", to=2), "version must be 1"),
        (put("version", to=True), "version must be 1"),
        (put("extra", to=1), "the release must not have the field 'extra'"),
        (lambda d: d.pop("value"), "the release must have the field 'value'"),
        (put("value", to=[]), "value must be a JSON object of names and values; got a list"),
        (put("value", to={}), "at least one named result"),
        (put("value", "x", to=ARRAY | {"dtype": "|O"}), r"value.x.dtype must be one of"),
        (put("value", "x", to=ARRAY | {"dtype": ["<f8"]}), r"value.x.dtype must be one of"),
        (put("value", "x", to=ARRAY | {"shape": [3]}), "value.x must hold 24 bytes for its shape; got 16"),
        (put("value", "x", to=ARRAY | {"shape": [-2]}), r"value.x.shape must be a list"),
        (put("value", "x", to=ARRAY | {"shape": [True, 2]}), r"value.x.shape must be a list"),
        (put("value", "x", to=ARRAY | {"shape": [1] * 33}), r"at most 32"),
        (put("value", "x", to=ARRAY | {"array": "", "shape": [2**62, 2**62, 0]}), "fits in memory"),
        (put("value", "x", to=ARRAY | {"array": "!!"}), "value.x.array must be base64"),
        (put("value", "x", to=ARRAY | {"array": "é"}), "value.x.array must be base64"),
        (put("value", "x", to=ARRAY | {"array": 5}), "value.x.array must be base64"),
        (put("value", "x", to={"array": "AgA=", "dtype": "|b1", "shape": [2]}), "0 or 1 in each byte"),
        (put("value", "x", to=ARRAY | {"order": "F"}), "value.x must not have the field 'order'"),
        (put("value", "x", to={"array": ""}), "value.x must have the field 'dtype'"),
        (put("value", "x", to={"float": "NaN"}), "value.x.float must be 'nan'"),
        (put("value", "x", to={"fraction": "1/0"}), "denominator above 0"),
        (put("value", "x", to={"fraction": "1e9"}), "value.x.fraction must be text such as"),
        (put("value", "x", to={"fraction": "1/3", "float": "nan"}), "value.x must have one tag"),
        (put("value", "x", to={"mapping": 3}), "value.x.mapping must be a JSON object"),
        (put("value", "x", to={"mapping": {"needless": 1}}), "canonical form"),
        (put("value", "x", to={"fraction": "2/6"}), "canonical form"),
        (put("value", "x", to=DEEP), "nest at most 16 deep"),
        (put("value", "x", to=2**64), "at most 64 bits"),
        (put("value", "x", to=10**30), "at most 64 bits"),
        (put("value", "x", to={"fraction": "9" * 4001}), "fraction must be text such as"),
        (put("guarantee", to=3), "guarantee must be a JSON object"),
        (put("guarantee", "epsilon", to=0.5), "guarantee.epsilon must be an exact fraction"),
        (put("guarantee", "epsilon", to="1e999999999"), "guarantee.epsilon must be an exact fraction"),
        (put("guarantee", "epsilon", to="1/0"), "guarantee: epsilon must be"),
        (put("guarantee", "epsilon", to="1/2"), "joint_epsilon must equal epsilon"),
        (put("guarantee", "relation", to="twins"), "guarantee: relation must be one of"),
        (put("guarantee", "relation", to=["x"]), "guarantee: relation must be one of"),
        (put("guarantee", "unit", to=5), "guarantee: unit must be"),
        (put("guarantee", "simulated", to=0), "guarantee: simulated must be"),
        (put("guarantee", "extra", to=0), "guarantee: .*extra"),
        (lambda d: d["guarantee"].pop("scope"), "guarantee: .*scope"),
        (put("provenance", to=[]), "provenance must be a JSON object; got a list"),
        (put("provenance", "extra", to=1), "provenance must not have the field 'extra'"),
        (put("provenance", "kind", to=""), "provenance: kind must be"),
        (put("provenance", "kind", to=3), "provenance: kind must be"),
        (put("provenance", "time", to="yesterday"), "provenance: time must be a UTC time"),
        (put("provenance", "time", to=5), "provenance: time must be a UTC time"),
        (put("provenance", "software", "numpy", to=2), "software.numpy must be"),
        (put("provenance", "parameters", to=None), "provenance.parameters must be a JSON object"),
        (put("provenance", "notes", to="a"), "provenance.notes must be a list"),
        (put("provenance", "notes", to=[1]), "provenance: notes must be a tuple of sentences"),
        (put("provenance", "schema_hash", to=7), "provenance: schema_hash must be"),
        (put("provenance", "receipt", to=7), "provenance.receipt must be a JSON object or null"),
        (put("provenance", "receipt", to={"epsilon": "1e99999999"}), "provenance.receipt.epsilon must be an exact fraction"),
        (put("provenance", "receipt", to={"entry": 1}), "provenance.receipt: receipt must have exactly the fields"),
        (put("signature", to=None), "signature must be a JSON object; got null"),
        (put("signature", to={"algorithm": "rsa", "public_key": "", "signature": ""}), "signature.algorithm must be 'ed25519'"),
        (
            put("signature", to={"algorithm": "ed25519", "public_key": "", "signature": ""}),
            "signature.public_key must be 32 bytes",
        ),
        (put("signature", to={"algorithm": "ed25519", "public_key": 1, "signature": ""}), "signature must hold base64"),
    ],
)
def test_a_damaged_document_is_refused_with_what_and_where(change: Callable[[dict[str, Any]], object], words: str) -> None:
    with pytest.raises(ReleaseError, match=words):
        Release.from_json(edited(change))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "valid JSON; line 1, column 1"),
        (b"\xff", "UTF-8 text; byte 0"),
        (b"\xef\xbb\xbf{}", "valid JSON"),
        (b"[]", "format 'sabun-release'"),
        (b'{"a":1,"a":2}', "key twice; got 'a'"),
        (b'{"a":NaN}', "a release must have finite numbers; got"),
        (b'{"a":-Infinity}', "a release must have finite numbers; got"),
        (b'{"a":1e999}', "64-bit floating point"),
        (b"[" * 100_000, "nest at most 64 deep"),
        (b'{"a":' + b"9" * 5000 + b"}", "integers of at most 1000 digits"),
    ],
)
def test_what_is_not_strict_json_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(ReleaseError, match=words):
        Release.from_json(content)


@pytest.mark.parametrize("spoil", [lambda c: c + b"\n", lambda c: b" " + c, lambda c: c.replace(b'":', b'": ', 1)])
def test_a_reformatted_document_is_refused(spoil: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ReleaseError, match="canonical form, byte for byte"):
        Release.from_json(spoil(sample().to_json()))


def test_text_is_read_like_bytes() -> None:
    release = sample()
    assert Release.from_json(release.to_json().decode()) == release


def test_the_size_is_checked_before_anything_is_parsed() -> None:
    with pytest.raises(ReleaseError, match=r"at most 10 bytes; got 11\. Pass a larger max_bytes"):
        Release.from_json(b"not json at", max_bytes=10)


def test_amounts_too_long_to_read_back_are_refused_when_made() -> None:
    with pytest.raises(ParameterError, match="epsilon must be a fraction of at most 4000 digits"):
        dataclasses.replace(PROMISE, epsilon=Fraction(1, 10**4001), joint_epsilon=None)
    longest = dataclasses.replace(PROMISE, epsilon=Fraction(1, 10**3999), joint_epsilon=None)
    assert Release.from_json(sample(guarantee=longest).to_json()).guarantee == longest


# --- files


def test_saved_releases_load_equal(tmp_path: Path) -> None:
    path = tmp_path / "count.json"
    sample_ = sample()
    sample_.save(path)
    assert Release.load(path) == sample_
    assert path.read_bytes() == sample_.to_json()
    assert [file.name for file in tmp_path.iterdir()] == ["count.json"]


def test_an_existing_file_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "count.json"
    sample().save(path)
    with pytest.raises(DataError, match="must be a new file; it exists already"):
        sample(value={"count": 1}).save(path)
    assert Release.load(path)["count"] == 42
    sample(value={"count": 1}).save(path, overwrite=True)
    assert Release.load(path)["count"] == 1


def test_a_crash_while_writing_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "count.json"
    sample().save(path)
    before = path.read_bytes()

    def no_disk(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_disk)
    with pytest.raises(DataError, match="can be written; the system says: No space left"):
        sample(value={"count": 1}).save(path, overwrite=True)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["count.json"]


def test_a_name_taken_while_writing_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "count.json"
    path.write_bytes(b"theirs")
    monkeypatch.setattr(Path, "exists", lambda self: False)
    with pytest.raises(DataError, match="exists already"):
        sample().save(path)
    assert path.read_bytes() == b"theirs"


def test_a_file_system_without_links_still_gets_whole_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: object, target: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.link", no_links)
    sample().save(tmp_path / "count.json")
    assert [file.name for file in tmp_path.iterdir()] == ["count.json"]


def test_load_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="No such file"):
        Release.load(tmp_path / "missing.json")
    with pytest.raises(ReleaseError, match="Is a directory"):
        Release.load(tmp_path)
    path = tmp_path / "bad.json"
    path.write_bytes(b"{")
    with pytest.raises(ReleaseError, match=r"bad\.json: a release must be valid JSON"):
        Release.load(path)
    with pytest.raises(ReleaseError, match="at most 0 bytes"):
        Release.load(path, max_bytes=0)
    with pytest.raises(DataError, match="No such file"):
        sample().save(tmp_path / "no folder" / "x.json")


def test_a_note_cannot_pass_for_a_line_of_ours() -> None:
    claim = "Signed by AAAAAA-BBBBBB, a key you trust."
    origin = Provenance(kind="count", mechanism="discrete Laplace", notes=(claim,), software={"sabun": "1"})
    lines = str(Release(value={"count": 1}, guarantee=Guarantee(epsilon=1), provenance=origin)).splitlines()
    assert f"Note: {claim}" in lines
    assert [line for line in lines if line.startswith("Signed by")] == []
    with pytest.raises(ParameterError) as caught:
        Provenance(kind="count", mechanism="m", software={"a\nSigned by us": ""})
    assert "\n" not in str(caught.value)
