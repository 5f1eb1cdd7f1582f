from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning.learning_samples import points
from sabun.errors import DataError, LedgerError
from sabun.learning import PrivateClassifier, checkpoint
from sabun.ledger import Ledger

SETTINGS: dict[str, Any] = {"epsilon": 2, "delta": 1e-3, "sampling_rate": 0.2, "epochs": 3}


@pytest.fixture(autouse=True)
def _unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pricing the steps so far is tested elsewhere."""
    monkeypatch.setattr("sabun.learning.dpsgd.DpSgd.spent_after", lambda self, step: "0")


class Interrupted(Exception):
    pass


def stop_at(step: int) -> Any:
    def listen(share: float, words: str) -> None:
        if words.startswith(f"step {step} "):
            raise Interrupted

    return listen


def interrupt(folder: Path, *, step: int = 8, X: Any = None, y: Any = None, **changes: Any) -> None:
    rows, labels = points()
    with pytest.raises(Interrupted):
        PrivateClassifier(checkpoint=folder, progress=stop_at(step), **(SETTINGS | changes)).fit(
            rows if X is None else X, labels if y is None else y
        )


def saved(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.state").read_text()))


def key_of(folder: Path) -> bytes:
    return (folder / "run.secret").read_bytes()


def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path: Path) -> None:
    interrupt(tmp_path)
    key = key_of(tmp_path)
    resumed = PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    # The uninterrupted run under the same key, from the beginning.
    from sabun.learning.methods import calibrated
    from sabun.learning.stream import Stream
    from sabun.learning.training import unheard

    clf = PrivateClassifier(**SETTINGS)
    problem, data = clf._opened(clf._check(), *points())
    *_, last = calibrated(clf._check(), problem).states(data, Stream(key), progress=unheard)  # type: ignore[attr-defined]
    assert (resumed.model_.weights == last.weights).all()


def test_one_run_is_charged_once_however_often_it_is_interrupted(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    for step in (3, 7, 12):
        interrupt(tmp_path / "run", step=step, ledger=book)
    clf = PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, **SETTINGS).fit(*points())
    assert book.spent.epsilon == 2
    assert clf.release_.provenance.receipt is not None
    assert clf.release_.provenance.receipt.entry == 1
    book.verify()


def test_an_uninterrupted_run_commits_its_result(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, **SETTINGS).fit(*points())
    assert [entry.state for entry in book.entries()] == ["committed"]


def test_the_key_is_for_the_owner_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    interrupt(tmp_path)
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "run.secret").stat().st_mode) == 0o600
    key = key_of(tmp_path).hex()
    clf = PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    assert not (tmp_path / "run.secret").exists()
    clf.save(tmp_path / "model")
    assert all(key not in (tmp_path / "model" / name).read_text() for name in ("card.json", "release.json"))


def edited() -> tuple[Any, Any]:
    rows, labels = points()
    rows = rows.copy()
    rows[17, 1] += 1e-9
    return rows, labels


def reordered() -> tuple[Any, Any]:
    rows, labels = points()
    order = np.r_[1, 0, 2 : len(rows)]
    return rows[order], labels[order]


@pytest.mark.parametrize("change", [edited, reordered])
def test_other_rows_are_refused(change: Any, tmp_path: Path) -> None:
    interrupt(tmp_path)
    with pytest.raises(DataError, match="must go on with the same data, settings, software and machine"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*change())


@pytest.mark.parametrize("change", [{"epsilon": 1}, {"clip_norm": 2.0}, {"learning_rate": 0.5}, {"momentum": 0.5}])
def test_other_settings_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    interrupt(tmp_path)
    with pytest.raises(DataError, match="must go on with the same data"):
        PrivateClassifier(checkpoint=tmp_path, **(SETTINGS | change)).fit(*points())


def test_other_threads_or_libraries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    with pytest.raises(DataError, match="must go on with the same data"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())


def test_a_step_that_does_not_repeat_bit_for_bit_is_refused(tmp_path: Path) -> None:
    interrupt(tmp_path)
    record = saved(tmp_path)
    record["now"]["weights"] = record["before"]["weights"]
    (tmp_path / "run.state").write_text(json.dumps(record))
    with pytest.raises(DataError, match="must go on with the same data"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    interrupt(tmp_path)
    (tmp_path / "run.state").write_text("{}")
    with pytest.raises(DataError, match="the checkpoint files must be whole; they cannot be read"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())


def test_the_ledger_must_be_the_same_and_its_charge_open(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=9, delta=0.1)
    other = Ledger.create(tmp_path / "other", name="other", relation="add-remove", epsilon=9, delta=0.1)
    interrupt(tmp_path / "run", ledger=book)
    with pytest.raises(LedgerError, match="must hold the open charge of this run"):
        PrivateClassifier(checkpoint=tmp_path / "run", ledger=other, **SETTINGS).fit(*points())
    with pytest.raises(DataError, match="ledger must be given exactly when the interrupted run had one"):
        PrivateClassifier(checkpoint=tmp_path / "run", **SETTINGS).fit(*points())


@pytest.mark.skipif(os.name != "posix", reason="locks are a matter of POSIX")
def test_two_runs_cannot_share_a_folder(tmp_path: Path) -> None:
    with checkpoint._only_one(tmp_path / "run.lock"), pytest.raises(DataError, match="must be used by one run at a time"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
