"""A machine that dies, folders that are copied: the key is in one file at most, and one result comes out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from learning.learning_samples import points
from sabun.errors import DataError, LedgerError
from sabun.learning import PrivateClassifier, checkpoint
from sabun.ledger import Ledger
from sabun.privacy import Guarantee

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


def test_a_resumed_run_finds_its_charge_without_reading_the_whole_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = book_in(tmp_path)
    interrupt(tmp_path / "run", book)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")

    def all_of_it(*given: object, **named: object) -> None:
        pytest.fail("the whole ledger was read")

    monkeypatch.setattr(Ledger, "entries", all_of_it)
    PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, **SETTINGS).fit(*points())
    with pytest.raises(LedgerError, match="already handed over"):
        PrivateClassifier(checkpoint=tmp_path / "copy", ledger=book, **SETTINGS).fit(*points())


@pytest.mark.parametrize("numbers", [(), (1,), (1, 2, 3), (1, 1), (1, 1, 3), (1, 1, 2), (1, 1, 1, 4, 2), (1, 2, 2, 2, 5)])
def test_no_attempt_to_hand_over_is_overlooked(numbers: tuple[int, ...], tmp_path: Path) -> None:
    book = book_in(tmp_path)
    receipt = book.charge(Guarantee(epsilon=1, relation="add-remove"), purpose="a run")
    free = Guarantee(epsilon=0, relation="add-remove")
    for place, number in enumerate(numbers):  # whoever looks before another is on disk takes the same number
        entry = book.reserve(free, purpose="result", key=checkpoint._marker(receipt, number))
        if place == len(numbers) - 1:
            entry.commit(b"bits")
    states = ["reserved"] * (len(numbers) - 1) + ["committed"] * bool(numbers)
    assert sorted(checkpoint._attempts(book, receipt)) == sorted(states)
