"""Attacks that once succeeded, kept so that they cannot succeed again."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from learning.learning_samples import points
from sabun.errors import DataError, LedgerError, ParameterError, ReleaseError
from sabun.learning import PrivateClassifier, checkpoint, verify
from sabun.learning.account import recompute_alone
from sabun.learning.audit import canary_audit
from sabun.learning.clipping import PIECE, SENSITIVITY, ClippedSum
from sabun.learning.network import Network
from sabun.learning.verbs import train as train_verb
from sabun.ledger import Ledger

SETTINGS: dict[str, Any] = {"epsilon": 2, "delta": 1e-3, "sampling_rate": 0.2, "epochs": 1, "classes": [0, 1], "hidden": ()}

ERASING = 6
"""The write to disk with which the key is overwritten: after one of the key, two of the first state, two of the last."""


@pytest.fixture(autouse=True)
def _unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pricing the steps so far is tested elsewhere."""
    monkeypatch.setattr("sabun.learning.dpsgd.DpSgd.spent_after", lambda self, step: "0")


class Crash(BaseException):
    pass


def crash_after(calls: int) -> Any:
    """A stand-in for fsync after which the machine dies so many calls later."""
    real, left = os.fsync, [calls]

    def fsync(handle: int) -> None:
        real(handle)
        left[0] -= 1
        if left[0] == 0:
            raise Crash

    return fsync


def interrupt(folder: Path, book: Ledger | None = None) -> None:
    def listen(share: float, words: str) -> None:
        if words.startswith("step 3 "):
            raise Crash

    with pytest.raises(Crash):
        PrivateClassifier(checkpoint=folder, progress=listen, ledger=book, **SETTINGS).fit(*points())


def book_in(folder: Path) -> Ledger:
    return Ledger.create(folder / "book", name="book", relation="add-remove", epsilon=9, delta=0.1)


def left_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.name != "run.lock")


def test_a_key_in_a_half_written_file_does_not_outlive_the_run(tmp_path: Path) -> None:
    interrupt(tmp_path)
    (tmp_path / ".run.secret.0123456789abcdef.part").write_bytes((tmp_path / "run.secret").read_bytes())
    (tmp_path / ".run.state.0123456789abcdef.part").write_text("{")
    PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    assert left_in(tmp_path) == []


def test_a_crash_just_after_a_file_got_its_name_does_not_spoil_the_run(tmp_path: Path) -> None:
    interrupt(tmp_path)
    os.link(tmp_path / "run.state", tmp_path / ".run.state.0123456789abcdef.part")
    PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 5, 6])
def test_a_crash_at_any_write_leaves_the_key_in_one_file_at_most(
    calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[bytes] = []
    real = checkpoint._write_key

    def noted(file: Path, key: bytes) -> None:
        keys.append(key)
        real(file, key)

    monkeypatch.setattr(checkpoint, "_write_key", noted)
    with monkeypatch.context() as dying:
        dying.setattr(os, "fsync", crash_after(calls))
        with pytest.raises(Crash):
            PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert file.name == "run.secret" or not any(key in content or key.hex().encode() in content for key in keys)
    if calls == ERASING:
        with pytest.raises(DataError, match="must still have its key; it has none, since it was finished or the key was"):
            PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    else:
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    assert left_in(tmp_path) == []


def test_a_crash_between_the_result_and_the_erasure_is_cleaned_at_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = book_in(tmp_path)
    for resumed in (False, True):
        folder = tmp_path / f"run-{resumed}"
        if resumed:
            interrupt(folder, book)

        def dies(place: Path) -> None:
            if (place / "run.secret").exists():
                raise Crash

        with monkeypatch.context() as dying:
            dying.setattr(checkpoint, "_wipe", dies)
            with pytest.raises(Crash):
                PrivateClassifier(checkpoint=folder, ledger=book, **SETTINGS).fit(*points())
        assert "run.secret" in left_in(folder)
        with pytest.raises(LedgerError, match=r"the run's result was already handed over\. Its key was erased now"):
            PrivateClassifier(checkpoint=folder, ledger=book, **SETTINGS).fit(*points())
        assert left_in(folder) == []


def test_a_key_without_a_state_starts_a_new_run(tmp_path: Path) -> None:
    interrupt(tmp_path)
    (tmp_path / "run.state").unlink()
    PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    assert left_in(tmp_path) == []


def test_a_state_without_its_key_is_erased_and_refused(tmp_path: Path) -> None:
    interrupt(tmp_path)
    (tmp_path / "run.secret").unlink()
    with pytest.raises(DataError, match=r"What was left was erased now\. Call again to start a new run"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    assert left_in(tmp_path) == []


def test_another_ledger_does_not_erase_an_open_run(tmp_path: Path) -> None:
    interrupt(tmp_path / "run", book_in(tmp_path))
    other = Ledger.create(tmp_path / "other", name="other", relation="add-remove", epsilon=9, delta=0.1)
    with pytest.raises(LedgerError, match=r"it does not\. It is another ledger"):
        PrivateClassifier(checkpoint=tmp_path / "run", ledger=other, **SETTINGS).fit(*points())
    assert left_in(tmp_path / "run") == ["run.secret", "run.state"]


def test_the_key_never_overwrites_a_file(tmp_path: Path) -> None:
    (tmp_path / "run.secret").write_text("mine")
    with pytest.raises(DataError, match="must be a place that can be written"):
        checkpoint._write_key(tmp_path / "run.secret", b"0" * 32)


def test_a_resumed_run_keeps_its_result_and_no_copy_goes_on(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    interrupt(tmp_path / "run", book)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    clf = PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, **SETTINGS).fit(*points())
    assert book.spent.epsilon == 2
    assert [entry.state for entry in book.entries()] == ["reserved", "committed"]
    assert [int(entry.epsilon) for entry in book.entries()] == [2, 0]
    assert book.entries()[1].payload_size == len(clf.release_.to_json())
    book.verify()
    with pytest.raises(LedgerError, match="already handed over"):
        PrivateClassifier(checkpoint=tmp_path / "copy", ledger=book, **SETTINGS).fit(*points())
    assert left_in(tmp_path / "copy") == []


def test_two_copies_at_once_hand_over_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = book_in(tmp_path)
    interrupt(tmp_path / "run", book)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, **SETTINGS).fit(*points())
    monkeypatch.setattr(checkpoint, "_must_be_charged", lambda *given: None)  # the copy had looked before the other was done
    with pytest.raises(LedgerError, match="Another copy of the checkpoint folder was faster"):
        PrivateClassifier(checkpoint=tmp_path / "copy", ledger=book, **SETTINGS).fit(*points())
    assert left_in(tmp_path / "copy") == []


NETWORK = Network(sizes=(105, 32, 2))
FIRST = NETWORK.layers(NETWORK.initial())[0][0]


def balanced_row(generator: np.random.Generator) -> np.ndarray:
    """A row between 0 and 1 whose hidden inputs are all zero but for rounding."""
    ends = [linprog(generator.normal(size=105), A_eq=FIRST.T, b_eq=np.zeros(32), bounds=[(0, 1)] * 105).x for _ in range(4)]
    row = sum(ends) / 5
    for _ in range(3):
        row = np.clip(row - FIRST @ np.linalg.solve(FIRST.T @ FIRST, FIRST.T @ row), 0, 1)
    return np.asarray(row)


@pytest.mark.parametrize(("before", "piece"), [(0, PIECE), (1, PIECE), (PIECE - 1, PIECE), (PIECE, PIECE), (63, 64), (64, 64)])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_neighbour_does_not_flip_hidden_units_of_others(norm: str, before: int, piece: int) -> None:
    generator = np.random.default_rng(5)
    weights, clipped = NETWORK.initial(), ClippedSum(NETWORK, clip_norm=1.0, norm=norm, piece=piece)
    rows = np.concatenate([generator.random((before, 105)), [balanced_row(generator) for _ in range(3)]])
    labels = generator.integers(0, 2, len(rows))
    whole = clipped(weights, rows, labels)
    for gone in range(max(0, before - 1), len(rows)):
        change = whole - clipped(weights, np.delete(rows, gone, 0), np.delete(labels, gone))
        assert (np.abs(change).sum() if norm == "l1" else np.linalg.norm(change)) <= SENSITIVITY


@pytest.mark.parametrize("piece", [64, 80, 128, 208, 256, 336, 432, PIECE, 560, 608, 640])
@pytest.mark.parametrize("sizes", [(1, 2), (3, 2), (105, 32, 2), (13, 1, 3), (64, 64, 64, 10)])
def test_the_matrix_library_computes_an_example_the_same_wherever_it_stands(sizes: tuple[int, ...], piece: int) -> None:
    network, generator = Network(sizes=sizes), np.random.default_rng(1)
    weights = generator.normal(size=network.n_weights)
    rows, labels = generator.normal(size=(piece, sizes[0])), generator.integers(0, sizes[-1], piece)
    whole = network.activity(weights, rows, labels)
    for shift in (1, 3, 37):
        moved = network.activity(weights, np.roll(rows, shift, axis=0), np.roll(labels, shift))
        for a, b in zip(whole.inputs + whole.errors, moved.inputs + moved.errors, strict=True):
            assert np.array_equal(np.roll(b, -shift, axis=1), a)
        assert np.array_equal(np.roll(network.squared_norms(moved), -shift), network.squared_norms(whole))
        assert np.array_equal(np.roll(network.l1_norms(moved), -shift), network.l1_norms(whole))
    others = np.zeros_like(rows)
    others[59] = rows[59]
    alone = network.activity(weights, others, labels)
    for a, b in zip(whole.inputs + whole.errors, alone.inputs + alone.errors, strict=True):
        assert np.array_equal(a[:, 59], b[:, 59])
    assert np.array_equal(network.squared_norms(whole)[59], network.squared_norms(alone)[59])
    assert np.array_equal(network.l1_norms(whole)[59], network.l1_norms(alone)[59])


def test_an_endless_row_does_not_change_how_others_are_summed() -> None:
    generator = np.random.default_rng(2)
    clipped = ClippedSum(NETWORK, clip_norm=1.0)
    rows, labels = generator.random((5, 105)), generator.integers(0, 2, 5)
    endless = np.concatenate([rows, np.full((1, 105), 1e300)])
    with_it = clipped(NETWORK.initial(), endless, np.append(labels, 0))
    assert np.array_equal(with_it, clipped(NETWORK.initial(), rows, labels))


def test_the_promise_says_what_it_assumes_of_the_matrix_library() -> None:
    for method in ("dp-sgd", "laplace-sgd"):
        clf = PrivateClassifier(method=method, epsilon=8, classes=[0, 1], random_state=1, epochs=1).fit(*points(50))
        assert any("the matrix library computes a row of a product the same" in words for words in clf.guarantee_.assumptions)


@pytest.mark.parametrize("name", ["clip_norm", "threshold", "weight_bound"])
@pytest.mark.parametrize("value", [1e-300, 9e-7, 2e6, float("inf")])
def test_bounds_that_would_bound_nothing_are_refused(name: str, value: float) -> None:
    change: dict[str, Any] = {name: value}
    with pytest.raises(ParameterError, match=f"{name} must be between 1e-06 and 1000000; got"):
        PrivateClassifier(**change)


@pytest.mark.parametrize("method", ["dp-sgd", "laplace-sgd", "objective-perturbation", "anonymizing-first", "learning-first"])
def test_an_epsilon_too_small_to_draw_noise_for_is_refused_before_the_charge(method: str) -> None:
    with pytest.raises(ParameterError, match="epsilon must be at least 1e-06; got"):
        PrivateClassifier(method=method, epsilon="1e-9")
    with pytest.raises(ParameterError, match="joint_epsilon must be at least 1e-06; got"):
        PrivateClassifier(method="learning-first", joint_epsilon="1e-9")


def test_noise_too_large_to_calibrate_is_refused_before_the_charge(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    for folder in (None, tmp_path / "run"):
        with pytest.raises(ParameterError, match="epsilon must be large enough for noise below 1e6 times the clip norm"):
            PrivateClassifier(epsilon="1e-6", delta=1e-6, classes=[0, 1], ledger=book, checkpoint=folder).fit(*points(50))
    assert book.entries() == ()


@pytest.mark.parametrize("method", ["learning-first", "anonymized-learning"])
def test_a_card_cannot_claim_less_for_each_weight_than_its_numbers_prove(method: str, tmp_path: Path) -> None:
    clf = PrivateClassifier(method=method, epsilon=1, classes=[0, 1], hidden=(8,), epochs=1, batch_size=50).fit(*points(200))
    assert clf.guarantee_.scope == "per-parameter"
    assert recompute_alone(clf.card_.account) == clf.guarantee_.epsilon
    less = dataclasses.replace(clf.guarantee_, epsilon=Fraction(1, 100))
    clf.card_ = dataclasses.replace(clf.card_, guarantee=less)
    clf.release_ = dataclasses.replace(clf.release_, guarantee=less)
    clf.save(tmp_path / "model", allow_per_parameter=True)
    with pytest.raises(ReleaseError, match=r"for each weight by itself; it claims 0\.01"):
        verify(tmp_path / "model")


def test_an_account_about_all_weights_proves_nothing_about_one() -> None:
    with pytest.raises(ParameterError, match="rule must be one of"):
        recompute_alone({"rule": "objective", "epsilon": "1"})


@pytest.mark.parametrize("labels", [[0.25, 0.75], [b"secret", "other"]])
def test_an_error_about_labels_does_not_show_them(labels: list[Any]) -> None:
    y = np.array([labels[i % 2] for i in range(20)], dtype=object)
    with pytest.raises(DataError, match="y must hold labels that are text, whole numbers or booleans") as caught:
        PrivateClassifier().fit(np.zeros((20, 2)), y)
    assert not any(word in str(caught.value) for word in ("0.25", "0.75", "secret", "other"))
    assert caught.value.__suppress_context__


def test_progress_of_learning_first_says_nothing_about_the_number_of_labelled_rows() -> None:
    heard: dict[int, list[str]] = {}
    for known in (40, 120):
        X, y = points(200)
        y = y.astype(object)
        y[known:] = "unknown"
        words: list[str] = heard.setdefault(known, [])
        PrivateClassifier(
            method="learning-first",
            classes=[0, 1],
            hidden=(),
            epochs=2,
            batch_size=10,
            progress=lambda share, said, words=words: words.append(said),  # type: ignore[misc]
        ).fit(X, y)
    said = ["epoch 1 of 2, epsilon so far at most 0", "epoch 2 of 2, epsilon so far at most 0"]
    assert heard[40] == heard[120] == said


def test_a_model_changed_after_its_release_is_not_saved(tmp_path: Path) -> None:
    clf = PrivateClassifier(epsilon=8, classes=[0, 1], epochs=1).fit(*points(50))
    clf.model_.weights[0] += 1.0
    with pytest.raises(ReleaseError, match="the model must be the one that was released; its weights were changed since"):
        clf.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_the_canary_audit_says_which_neighbours_it_tests() -> None:
    for relation, words in (("replace-one", "another row in its place: replace-one"), ("add-remove", "no row: add-remove")):
        clf = PrivateClassifier(method="laplace-sgd", epsilon=8, classes=[0, 1], epochs=1, relation=relation)
        assert f"{words} neighbours" in str(canary_audit(clf, *points(100), canaries=10))


def test_the_command_says_that_labels_are_read_off_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,y\n" + "".join(f"{i / 50},{'yes' if i > 25 else 'no'}\n" for i in range(50)))
    for classes in (None, "no,yes"):
        train_verb(table, target="y", out=tmp_path / f"model-{classes}", bounds=["a=0:1"], classes=classes, epsilon="8")
        assert ("Notice: the list of labels is read off the data" in capsys.readouterr().out) == (classes is None)
    assert json.loads((tmp_path / "model-None" / "card.json").read_text())["guarantee"]
