"""A model's folder: what it takes to believe it, and what a signature covers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.terminal import exit_code
from learning.learning_samples import SCHEMA, people, points
from sabun.errors import DataError, ReleaseError
from sabun.learning import Card, PrivateClassifier, card, load_model, sign_model, verify
from sabun.learning.folder import CARD, FILES, MODEL, RELEASE, _digest_of, _list_of, _names, model_bytes
from sabun.learning.safetensors import tensors_to_bytes
from sabun.release import Release, generate_key, load_key
from sabun.release.tree import Frozen

GOLDEN = Path(__file__).parent / "golden"
OURS, THEIRS = generate_key(), generate_key()
TRUSTED = OURS.public_key()


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed folder whose classes were read off the labels."""
    place = tmp_path_factory.mktemp("signed") / "model"
    frame, label = people(300)
    with pytest.warns(UserWarning, match="read off y"):
        clf = PrivateClassifier(method="objective-perturbation", epsilon=40, schema=SCHEMA).fit(frame, label)
    clf.save(place)
    assert "signed by the trusted key" not in verify(place)
    sign_model(place, OURS)
    return place


@pytest.fixture
def copy(signed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(signed, tmp_path / "model"))


def relisted(folder: Path) -> None:
    """What a forger does last: a list of the files as they are now; only the key is missing."""
    release = Release.load(folder / RELEASE)
    digests = {name: _digest_of(folder / name, release) for name in _names(folder)}
    _list_of(digests, release).save(folder / FILES, overwrite=True)


def with_card(folder: Path, **changes: Any) -> None:
    known = Card.from_json((folder / CARD).read_bytes())
    (folder / CARD).write_bytes(replace(known, **changes).to_json())


def with_model(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes what a card says about the model."""
    model = json.loads((folder / CARD).read_bytes())["model"]
    change(model)
    with_card(folder, model=model)


def with_weights(folder: Path, raw: bytes) -> None:
    """Another model file, with its digest on the card."""
    import hashlib

    (folder / MODEL).write_bytes(raw)
    with_card(folder, sha256=hashlib.sha256(raw).hexdigest())


def wider(folder: Path) -> None:
    with_model(folder, lambda model: model["features"]["schema"]["columns"][0].update(upper=1000.0))


def turned(folder: Path) -> None:
    with_model(folder, lambda model: model["classes"].reverse())


def renamed(folder: Path) -> None:
    def change(model: dict[str, Any]) -> None:
        model["features"]["schema"]["columns"][0]["name"] = model["features"]["names"][0] = "height"

    with_model(folder, change)


def schemaless(folder: Path) -> None:
    width = Card.from_json((folder / CARD).read_bytes()).model["sizes"][0]
    with_model(folder, lambda model: model.update(features={"schema": None, "names": [f"x{i}" for i in range(width)]}))


def as_module(folder: Path) -> None:
    with_model(folder, lambda model: model.update(module="Sequential", parameters=7))


def more_tensors(folder: Path) -> None:
    tensors = {**load_model(folder).tensors(), "9.weight": np.ones((3, 3))}
    with_weights(folder, tensors_to_bytes(tensors, {"format": "pt", "made_by": "sabun"}))


def more_bytes(folder: Path) -> None:
    with_weights(folder, (folder / MODEL).read_bytes() + b"and more")


def other_weights(folder: Path) -> None:
    known = load_model(folder)
    with_weights(folder, model_bytes(replace(known, weights=known.weights + 1)))


MEANINGS = [wider, turned, renamed, schemaless, as_module, more_tensors, more_bytes, other_weights]


@pytest.mark.parametrize("change", MEANINGS)
def test_what_decides_a_prediction_cannot_be_changed_by_anybody(change: Callable[[Path], None], copy: Path) -> None:
    change(copy)
    relisted(copy)
    for refused in (verify, load_model):
        with pytest.raises(ReleaseError, match="must tell one story"):
            refused(copy)


def another_warning(folder: Path) -> None:
    with_card(folder, warnings=())


def another_software(folder: Path) -> None:
    with_card(folder, software={"numpy": "9"})


def one_more(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"junk")


@pytest.mark.parametrize("change", [another_warning, another_software, one_more])
def test_a_signature_covers_every_file(change: Callable[[Path], None], copy: Path) -> None:
    change(copy)
    with pytest.raises(ReleaseError, match=r"must be the file on the folder's list|is not on it"):
        verify(copy)
    with pytest.raises(ReleaseError, match=r"must be the file on the folder's list|is not on it"):
        sign_model(copy, THEIRS)
    relisted(copy)
    assert "who made it is not checked" in verify(copy)
    with pytest.raises(ReleaseError, match="the folder must be signed as a whole"):
        verify(copy, public_key=TRUSTED)
    sign_model(copy, THEIRS)
    with pytest.raises(ReleaseError, match="must be signed by a trusted key"):
        verify(copy, public_key=TRUSTED)


def test_a_folder_as_it_was_signed_passes(copy: Path) -> None:
    assert "every file is signed by the trusted key" in verify(copy, public_key=[THEIRS.public_key(), TRUSTED])
    Release.load(copy / RELEASE).sign(THEIRS).save(copy / RELEASE, overwrite=True)  # one more signature harms nobody
    assert "every file is signed by the trusted key" in verify(copy, public_key=TRUSTED)
    frame, label = people(300)
    assert load_model(copy).score(frame, label) > 0.7


@pytest.mark.parametrize("name", [MODEL, CARD, RELEASE, FILES])
def test_a_missing_file_is_noticed(name: str, copy: Path) -> None:
    (copy / name).unlink()
    with pytest.raises(ReleaseError):
        verify(copy)


def test_a_page_beside_a_model_does_not_stop_it_from_predicting(copy: Path) -> None:
    (copy / "release.html").write_text("a report")
    assert load_model(copy).classes == ("no", "yes")
    with pytest.raises(ReleaseError, match=r"'release.html' is not on it. Move away what does not belong to it"):
        verify(copy)


def test_a_file_on_the_list_that_is_missing_is_noticed(copy: Path) -> None:
    one_more(copy)
    relisted(copy)
    (copy / "model.onnx").unlink()
    with pytest.raises(ReleaseError, match=r"must hold every file on its list; 'model.onnx' is missing"):
        verify(copy)


def test_a_list_without_a_signature_does_not_pass_for_an_older_folder(copy: Path) -> None:
    (copy / FILES).unlink()
    Release.load(copy / RELEASE).sign(OURS).save(copy / RELEASE, overwrite=True)
    with pytest.raises(ReleaseError, match=r"the folder must hold files.json, the list of its files"):
        verify(copy, public_key=TRUSTED)


def test_a_folder_within_is_no_file(copy: Path, older: Path) -> None:
    for folder in (copy, older):
        (folder / "inner").mkdir()
        with pytest.raises(ReleaseError, match=r"'inner' is not on it|must hold plain files only"):
            sign_model(folder, OURS)


def test_another_release_is_no_list(copy: Path) -> None:
    shutil.copy(copy / RELEASE, copy / FILES)
    with pytest.raises(ReleaseError, match="must be the list of a model folder's files"):
        verify(copy)


def test_a_folder_that_contradicts_itself_is_not_signed(copy: Path) -> None:
    wider(copy)
    relisted(copy)
    with pytest.raises(ReleaseError, match="must tell one story"):
        sign_model(copy, OURS)


def test_overwriting_leaves_nothing_of_the_model_before(copy: Path) -> None:
    one_more(copy)
    frame, label = people(300)
    clf = PrivateClassifier(method="objective-perturbation", epsilon=4, schema=SCHEMA, classes=["no", "yes"]).fit(frame, label)
    with pytest.raises(DataError, match="exists already"):
        clf.save(copy)
    clf.save(copy, overwrite=True)
    assert "not above the promise" in verify(copy)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A folder of before there were lists, its release signed; the classes were read off the labels."""
    return Path(shutil.copytree(GOLDEN / "older-folder", tmp_path / "older"))


OLDER_KEY = load_key(GOLDEN / "older-folder.pub.pem")


def test_an_older_folder_is_read_and_verified_as_what_it_is(older: Path) -> None:
    assert load_model(older).classes == ("old", "young")
    (older / "state_dict.pt").write_bytes(b"junk")
    found = verify(older, public_key=OLDER_KEY)  # type: ignore[arg-type]
    assert "its release is signed by the trusted key" in found
    assert "which covers the promise, the weights, the columns with their bounds and categories, but not " in found
    assert "but not the words of the card, the classes in their order, state_dict.pt" in found
    with pytest.raises(ReleaseError, match="must be signed by a trusted key"):
        verify(older, public_key=TRUSTED)


@pytest.mark.parametrize("change", [change for change in MEANINGS if change is not turned])
def test_what_an_older_signature_covers_cannot_be_changed(change: Callable[[Path], None], older: Path) -> None:
    change(older)
    with pytest.raises(ReleaseError, match="must tell one story"):
        verify(older, public_key=OLDER_KEY)  # type: ignore[arg-type]


def test_an_older_folder_can_be_signed_as_a_whole(older: Path) -> None:
    sign_model(older, OURS)
    assert "every file is signed by the trusted key" in verify(older, public_key=TRUSTED)
    turned(older)
    with pytest.raises(ReleaseError, match=r"card.json must be the file on the folder's list"):
        verify(older, public_key=TRUSTED)


HUGE = 10**9
HOSTILE: list[tuple[str, Any]] = [
    ("sizes", [HUGE, HUGE, 2]),
    ("sizes", ["many", "more"]),
    ("sizes", "32"),
    ("sizes", [6.5, 2]),
    ("sizes", {}),
    ("sizes", [[6], 2]),
    ("classes", 2),
    ("classes", ["no"]),
    ("classes", [{"no": 1}, []]),
    ("features", []),
    ("features", {"schema": 5, "names": []}),
    ("features", {"schema": None, "names": 3}),
    ("features", {"schema": {"format": "x", "columns": [HUGE]}, "names": ["age"]}),
]


@pytest.mark.parametrize(("field", "value"), HOSTILE)
def test_a_hostile_card_is_refused_before_anything_is_built_from_it(field: str, value: Any, copy: Path, older: Path) -> None:
    for folder in (copy, older):
        record = json.loads((folder / CARD).read_bytes())
        record["model"][field] = value
        known = Card.from_json((folder / CARD).read_bytes())
        (folder / CARD).write_bytes(card._text(replace(known, model=record["model"]).to_dict()))
        for refused in (verify, load_model):
            with pytest.raises(ReleaseError):
                refused(folder)


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"format": "sabun-privacy-card-1"}', b"\xff\xfe", b"[]", b"9" * 10_000, b"null", b'{"a": 1, "a": 2}'],
    ids=["deep", "empty", "no text", "list", "digits", "null", "twice"],
)
def test_what_is_no_card_is_refused_in_words(content: bytes, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / CARD).write_bytes(content)
    with pytest.raises(ReleaseError, match="a privacy card must be JSON"):
        verify(copy)
    assert exit_code("learning", "card", str(copy)) == 4
    assert "a privacy card must be JSON" in capsys.readouterr().err


def test_a_card_too_large_to_be_one_is_not_read(copy: Path) -> None:
    with open(copy / CARD, "r+b") as file:
        file.truncate(card.LARGEST_CARD + 1)
    with pytest.raises(ReleaseError, match="must have at most"):
        verify(copy)


@pytest.mark.parametrize(
    "account",
    [
        {"rule": "objective", "objective_epsilon": "1", "regularisation": "0", "output_epsilon": "1"},
        {"rule": "parts", "pure": ["1"] * 10_001, "rho": "0", "delta": "0"},
        {"rule": "sampled-gaussian", "relation": "add-remove", "events": "many", "delta": "0.1"},
        {"rule": "sampled-gaussian", "relation": "add-remove", "events": [3], "delta": "0.1"},
        {"rule": ["objective"]},
    ],
)
def test_an_account_that_cannot_be_computed_is_refused_in_words(account: dict[str, Any], copy: Path) -> None:
    with_card(copy, account=account)
    with pytest.raises(ReleaseError, match="the card's account must hold numbers that prove its promise"):
        verify(copy)


@pytest.mark.parametrize("weights", ["many", np.zeros(3), np.zeros(14, dtype=np.int64), (1.0, 2.0), None])
def test_a_release_with_other_weights_is_refused_in_words(weights: Any, copy: Path) -> None:
    release = Release.load(copy / RELEASE)
    replace(release, value=Frozen({**release.value, "weights": weights})).save(copy / RELEASE, overwrite=True)
    with pytest.raises(ReleaseError, match="the card must describe the model"):
        verify(copy)


@pytest.mark.parametrize("raw", [b"", b"\xff" * 8, (1 << 62).to_bytes(8, "little") + b"{}", b"\x02\0\0\0\0\0\0\0[]"])
def test_nothing_is_read_out_of_a_hostile_model_file(raw: bytes, copy: Path) -> None:
    with_weights(copy, raw)
    with pytest.raises(ReleaseError, match="must tell one story"):
        load_model(copy)


def test_signing_and_verifying_by_hand(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sabun.release import save_key

    save_key(THEIRS, tmp_path / "them.pem")
    save_key(THEIRS.public_key(), tmp_path / "them.pub.pem")
    assert exit_code("learning", "sign", str(copy), "--key", str(tmp_path / "them.pem")) == 0
    assert "Signed every file in" in capsys.readouterr().out
    assert exit_code("learning", "verify", str(copy), "--key", str(tmp_path / "them.pub.pem")) == 0
    assert "every file is signed by the trusted key" in capsys.readouterr().out
    assert exit_code("learning", "sign", str(copy), "--key", str(tmp_path / "them.pub.pem"), "--json") == 2
    another_warning(copy)
    assert exit_code("learning", "verify", str(copy), "--key", str(tmp_path / "them.pub.pem")) == 4
    assert "card.json must be the file on the folder's list" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("name", [MODEL, CARD, RELEASE, FILES])
def test_a_pipe_for_a_file_is_refused_and_not_waited_for(name: str, copy: Path) -> None:
    (copy / name).unlink()
    os.mkfifo(copy / name)
    for ask in (verify, load_model):
        with pytest.raises(ReleaseError, match="a model folder must hold plain files only"):
            ask(copy)
    if name == CARD:
        assert exit_code("learning", "card", str(copy)) == 4


def test_a_model_changed_after_its_release_is_not_saved(tmp_path: Path) -> None:
    clf = PrivateClassifier(epsilon=1, classes=[0, 1], epochs=1).fit(*points(50))
    clf.model_.weights[0] += 1.0
    with pytest.raises(ReleaseError, match="the model must be the one that was released; its weights were changed since"):
        clf.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
