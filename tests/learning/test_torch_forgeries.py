"""Folders that somebody else may have written: nothing in them is run, followed, waited for, or believed."""

from __future__ import annotations

import base64
import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")
pytest.importorskip("safetensors", reason="needs the extra: pip install 'sabun[learning]'")

from torch import nn  # noqa: E402

from cli.terminal import exit_code  # noqa: E402
from sabun.errors import DataError, ReleaseError, SabunError  # noqa: E402
from sabun.learning import PrivateClassifier, load_model, sign_model, verify  # noqa: E402
from sabun.learning.folder import write_folder  # noqa: E402
from sabun.learning.torch_modules import TorchTrainer  # noqa: E402
from sabun.ledger import Ledger  # noqa: E402
from sabun.release import generate_key  # noqa: E402

ROWS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(np.int64)
needs_links = pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX systems")


@pytest.fixture(autouse=True)
def cheap_pricing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The accountant has tests of its own."""
    monkeypatch.setattr("sabun.learning.torch_modules.trainer.noise_multiplier", lambda *_: Fraction(1))
    monkeypatch.setattr("sabun.learning.torch_modules.run.spent_after", lambda *_: "1")


def trainer(**changes: Any) -> TorchTrainer:
    torch.manual_seed(0)
    facts = {"epsilon": 2, "delta": 1e-3, "sampling_rate": 0.3, "epochs": 2, "n_public": 60} | changes
    return TorchTrainer(facts.pop("module", None) or nn.Linear(4, 2), **facts)


def stop(share: float, words: str) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of an interrupted run."""
    with pytest.raises(KeyboardInterrupt):
        trainer(checkpoint=tmp_path / "run", progress=stop).fit(ROWS, LABELS)
    return tmp_path / "run"


def resumed(run: Path, **changes: Any) -> TorchTrainer:
    return trainer(checkpoint=run, **changes).fit(ROWS, LABELS)


class Bomb:
    """A pickle that leaves a mark where it is opened."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.mark),)


def tensor_file(mark: Path, place: Path) -> bytes:
    """The same inside a file of torch's own."""
    torch.save({"weight": Bomb(mark)}, place)
    return place.read_bytes()


@pytest.mark.parametrize("name", ["run.state", "run.secret", ".run.state.abc.part"])
@pytest.mark.parametrize("kind", ["pickle", "tensors"])
def test_a_checkpoint_runs_nothing(name: str, kind: str, run: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    raw = pickle.dumps(Bomb(mark)) if kind == "pickle" else tensor_file(mark, tmp_path / "bomb.pt")
    (run / name).write_bytes(raw)
    if name.endswith(".part"):  # what a crash may leave half-written is removed, whatever it holds
        resumed(run)
    else:
        with pytest.raises(SabunError):
            resumed(run)
    assert not mark.exists()


@needs_links
@pytest.mark.parametrize("name", ["run.secret", "run.state", ".run.state.abc.part", "run.lock"])
@pytest.mark.parametrize("begun", [False, True])
def test_a_link_in_a_checkpoint_folder_reaches_nobody_elses_file(name: str, begun: bool, run: Path, tmp_path: Path) -> None:
    if not begun:
        shutil.rmtree(run)
        run.mkdir()
    other, there = tmp_path / "other", b"a file of somebody's own, of no run"
    other.write_bytes(there)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(other)
    with pytest.raises(DataError, match=r"a checkpoint folder must hold plain files only; .* is a link, pipe or folder"):
        resumed(run)
    assert other.read_bytes() == there
    (run / name).unlink()
    (run / name).symlink_to(tmp_path / "not there yet")
    with pytest.raises(DataError, match="plain files only"):
        resumed(run)
    assert not (tmp_path / "not there yet").exists()


@needs_links
@pytest.mark.parametrize("name", ["run.secret", "run.state", ".run.state.abc.part"])
def test_a_pipe_in_a_checkpoint_folder_is_not_waited_for(name: str, run: Path) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with pytest.raises(DataError, match="plain files only"):
        resumed(run)


def record(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "run.state").read_bytes().partition(b"\n")[2]))


def without_tag(run: Path, **changes: Any) -> None:
    """A state as an older version wrote it, which anybody can write."""
    then = record(run)
    inner = {
        name: then[name] | value for name, value in changes.items() if isinstance(value, dict) and name in ("now", "before")
    }
    (run / "run.state").write_text(json.dumps(then | changes | inner))


@pytest.mark.parametrize(
    "changes",
    [
        {"fingerprint": "é"},
        {"fingerprint": "\ud800"},
        {"fingerprint": None},
        {"fingerprint": "0" * 64},
        {"now": {"step": float("inf")}},
        {"now": {"step": float("nan")}},
        {"now": {"step": "9" * 5000}},
        {"now": {"step": [1]}},
        {"now": {"weights": "é"}},
        {"now": {"weights": ""}},
        {"now": {"velocity": []}},
        {"now": [[[]]], "before": None},
        {"receipt": {"entry": 1}},
        {"receipt": []},
        {"receipt": "\ud800"},
    ],
    ids=lambda changes: re.sub(r"\W+", " ", ascii(changes))[:40],
)
def test_a_state_that_anybody_could_write_is_refused_in_words(changes: dict[str, Any], run: Path) -> None:
    without_tag(run, **changes)
    with pytest.raises(DataError):
        resumed(run)


@pytest.mark.parametrize(
    "state",
    [
        b"",
        b"\n",
        b"\n\n{}",
        b"null",
        b"[" * 100_000,
        b'{"now": ' * 50_000,
        b"\xff\xfe",
        b"1e999",
        b'{"a": 1, "a": 2}',
        bytes(64),
    ],
    ids=lambda state: ascii(state)[:20],
)
def test_a_state_that_is_no_state_is_refused_in_words(state: bytes, run: Path) -> None:
    (run / "run.state").write_bytes(state)
    with pytest.raises(DataError):
        resumed(run)


def test_a_state_of_any_size_is_not_read_into_memory(run: Path) -> None:
    with open(run / "run.state", "r+b") as opened:
        opened.truncate(3 << 30)  # a hole: it takes no place on a disk, and all of it in memory
    with pytest.raises(DataError, match=r"run\.state must be no longer than two states of this run"):
        resumed(run)


def classifier(**changes: Any) -> PrivateClassifier:
    facts = {"method": "laplace-sgd", "epsilon": 2, "hidden": (), "classes": [0, 1], "n_public": 60} | changes
    return PrivateClassifier(sampling_rate=0.3, epochs=2, **facts)


def test_a_checkpoint_of_the_other_trainer_is_refused_both_ways(run: Path, tmp_path: Path) -> None:
    """Their states have the same shape (a network without hidden layers is one linear layer), and nothing else in common."""
    with pytest.raises(KeyboardInterrupt):
        classifier(checkpoint=tmp_path / "other", progress=stop).fit(ROWS.astype(float), LABELS)
    assert record(run).keys() == record(tmp_path / "other").keys()
    assert len(record(run)["now"]["weights"]) == len(record(tmp_path / "other")["now"]["weights"])
    with pytest.raises(DataError, match="must go on with the same data, settings, software and machine"):
        resumed(tmp_path / "other")
    with pytest.raises(DataError, match="must go on with the same data, settings, software and machine"):
        classifier(checkpoint=run).fit(ROWS.astype(float), LABELS)
    resumed(run)
    classifier(checkpoint=tmp_path / "other").fit(ROWS.astype(float), LABELS)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 3},
        {"delta": 1e-4},
        {"sampling_rate": 0.4},
        {"epochs": 3},
        {"n_public": 61},
        {"n_public": None},
        {"relation": "replace-one"},
        {"input_bound": 1e5},
        {"module": nn.Linear(4, 3)},
        {"module": nn.Linear(4, 2, bias=False)},
    ],
    ids=str,
)
def test_a_checkpoint_of_other_terms_is_refused(change: dict[str, Any], run: Path) -> None:
    with pytest.raises(DataError, match=r"must go on with the same data|must be whole"):
        resumed(run, **change)
    resumed(run)


def test_a_run_goes_on_in_the_ledger_it_was_charged_to_alone(tmp_path: Path) -> None:
    first, second = (Ledger.create(tmp_path / name, name=name, relation="add-remove", epsilon=9, delta=0.1) for name in "ab")
    with pytest.raises(KeyboardInterrupt):
        trainer(checkpoint=tmp_path / "run", ledger=first, progress=stop).fit(ROWS, LABELS)
    for other in (None, second):
        with pytest.raises(DataError, match="ledger"):
            resumed(tmp_path / "run", ledger=other)
    assert second.entries() == ()
    resumed(tmp_path / "run", ledger=first)
    assert first.spent.epsilon == 2


def safetensors(header: bytes, numbers: bytes = b"", *, length: int | None = None) -> bytes:
    return (len(header) if length is None else length).to_bytes(8, "little") + header + numbers


def tensor(start: int, end: int, shape: list[int]) -> dict[str, Any]:
    return {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}


HOSTILE = {
    "a header without end": safetensors(b"{}", length=2**63 - 1),
    "numbers of any size": safetensors(json.dumps({"weight": tensor(0, 2**62, [2**60])}).encode()),
    "numbers that overlap": safetensors(json.dumps({"a": tensor(0, 8, [2]), "b": tensor(4, 12, [2])}).encode(), bytes(12)),
    "one name twice": safetensors(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{}}', bytes(4)),
    "no end of brackets": safetensors(b"[" * 100_000),
    "nothing": b"",
}


@pytest.fixture(scope="module")
def handed_over(tmp_path_factory: pytest.TempPathFactory) -> tuple[TorchTrainer, Path]:
    place = tmp_path_factory.mktemp("model") / "model"
    done = TorchTrainer(nn.Linear(4, 2), n_public=60, delta=1e-3, sampling_rate=1.0, epochs=1).fit(ROWS, LABELS)
    done.save(place)
    return done, place


def forged(handed_over: tuple[TorchTrainer, Path], place: Path, **files: bytes) -> Path:
    """A folder in which everything fits together, as anybody can make one without a key: the list is that of its files."""
    done, whole = handed_over
    raw = {name: (whole / name).read_bytes() for name in ("model.safetensors", "state_dict.pt")}
    write_folder(place, raw | files, card=done.card_, release=done.release_, overwrite=False)
    return place


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_is_read_out_of_the_model_file_of_a_module(name: str, handed_over: Any, tmp_path: Path) -> None:
    place = forged(handed_over, tmp_path / "model", **{"model.safetensors": HOSTILE[name]})
    for look in (verify, load_model, lambda folder: sign_model(folder, generate_key())):
        with pytest.raises(ReleaseError, match="SHA-256"):
            look(place)


@pytest.mark.parametrize(("name", "kind"), [("state_dict.pt", "tensors"), ("model.onnx", "pickle"), ("more.pkl", "pickle")])
def test_a_model_folder_runs_nothing(name: str, kind: str, handed_over: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    raw = pickle.dumps(Bomb(mark)) if kind == "pickle" else tensor_file(mark, tmp_path / "bomb.pt")
    place = forged(handed_over, tmp_path / "model", **{name: raw})
    assert "who made it is not checked" in verify(place)
    assert exit_code("learning", "verify", str(place)) == 0
    assert exit_code("learning", "card", str(place)) == 0
    with pytest.raises(ReleaseError, match="it holds a torch module"):
        load_model(place)
    sign_model(place, generate_key())
    assert not mark.exists()
    if kind == "tensors":  # what a reader is told to do
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            torch.load(place / name, weights_only=True)
        assert not mark.exists()


def test_nothing_is_read_out_of_onnx_that_points_elsewhere(handed_over: Any, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="needs the extra: pip install 'sabun[learning]'")
    (tmp_path / "secret").write_bytes(bytes(32))
    weight = onnx.TensorProto(name="weight", data_type=1, dims=[8], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", "../secret"), ("offset", "0"), ("length", str(2**62))):
        weight.external_data.add(key=key, value=value)
    graph = onnx.helper.make_graph([], "graph", [], [], initializer=[weight])
    raw = onnx.helper.make_model(graph).SerializeToString()
    place = forged(handed_over, tmp_path / "model", **{"model.onnx": raw})
    assert "who made it is not checked" in verify(place)
    (place / "model.onnx").write_bytes(raw[:-1])
    with pytest.raises(ReleaseError, match=r"model\.onnx must be the file on the folder's list"):
        verify(place)


@pytest.mark.parametrize("step", [0, 1])
def test_what_is_tagged_is_the_state_byte_by_byte(step: int, run: Path) -> None:
    """A name twice, other spaces, other weights: without the key nobody can write what is believed."""
    tag, _, body = (run / "run.state").read_bytes().partition(b"\n")
    weights = base64.b64encode(np.full(10, 7.0).tobytes()).decode()
    more = json.dumps({"step": step, "weights": weights, "velocity": weights})
    for changed in (body[:-1] + b', "now": ' + more.encode() + b"}", body + b" ", body.replace(b", ", b",", 1)):
        (run / "run.state").write_bytes(tag + b"\n" + changed)
        with pytest.raises(DataError, match=r"run\.state must be as this run wrote it"):
            resumed(run)
