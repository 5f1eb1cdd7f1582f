"""Real processes over torch.distributed on this machine: equal bits, a killed process, a run that goes on."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.terminal import exit_code
from learning.learning_samples import people
from sabun.errors import ParameterError
from sabun.learning import PrivateClassifier
from sabun.learning.crew import LostProcess, Rounding, crew_of, must_travel
from sabun.learning.settings import DpSgdSettings
from sabun.ledger import Ledger

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")
pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")


def rows() -> tuple[Any, Any]:
    drawn = np.random.default_rng(0).normal(size=(160, 5)).astype(np.float32)
    return drawn, (drawn.sum(axis=1) > 0).astype(np.int64)


def trainer(**settings: Any) -> Any:
    from sabun.learning.torch_modules import TorchTrainer

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2))
    usual = {"epsilon": 1, "delta": 1e-4, "n_public": 160, "epochs": 2, "sampling_rate": 0.2}
    return TorchTrainer(module, **usual | settings)


def test_two_processes_give_the_bits_of_one_with_the_same_shards() -> None:
    """The classifier's own network; three shards, so that one process has two."""
    drawn, answers = rows()
    found = [
        PrivateClassifier(
            method=DpSgdSettings(processes=processes, shards=3),
            epsilon=2,
            delta=1e-4,
            classes=[0, 1],
            epochs=1,
            hidden=(4,),
            random_state=5,
        ).fit(drawn.astype(np.float64), answers)
        for processes in (2, 1)
    ]
    assert found[0].release_["weights"].tobytes() == found[1].release_["weights"].tobytes()
    assert found[0].release_.provenance.parameters["shards"] == 3
    assert not multiprocessing.active_children()
    assert not torch.distributed.is_initialized()


def test_a_killed_process_ends_the_run_and_the_next_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    """Resumed twice, from copies: by two processes, and by one; charged once each."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    Ledger.create(here / "book", name="book", relation="add-remove", epsilon=1, delta=1e-3)

    def kill(share: float, words: str) -> None:
        if share >= 0.5:
            for process in multiprocessing.active_children():
                assert process.pid is not None
                os.kill(process.pid, signal.SIGKILL)

    def fitted(place: Path, **settings: Any) -> Any:
        return trainer(checkpoint=place / "run", ledger=Ledger.open(place / "book"), **settings).fit(*rows())

    with pytest.raises(LostProcess, match="every process of a run must last until it ends; one ended") as caught:
        fitted(here, processes=2, progress=kill)
    assert "checkpoint" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not torch.distributed.is_initialized()
    shutil.copytree(here, there)
    found = [fitted(here, processes=2), fitted(there, shards=2)]
    assert found[0].release_["model_sha256"] == found[1].release_["model_sha256"]
    for place in (here, there):
        assert Ledger.open(place / "book").spent.epsilon == 1
        assert not (place / "run" / "run.secret").exists()


def test_another_number_of_shards_does_not_go_on(tmp_path: Path) -> None:
    from sabun.errors import DataError

    def stop(share: float, words: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(checkpoint=tmp_path / "run", shards=2, progress=stop).fit(*rows())
    with pytest.raises(DataError, match="must go on with the same data, settings"):
        trainer(checkpoint=tmp_path / "run").fit(*rows())


def test_what_cannot_travel_is_refused_before_the_charge(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=1, delta=1e-3)

    class Hidden(torch.nn.Linear):
        """Of a function: no other process finds it."""

    module = Hidden(5, 2)
    with pytest.raises(ParameterError, match="module and loss must be such that another process can be sent them"):
        trainer(processes=2, ledger=book, loss=lambda out, y: out.sum(1)).fit(*rows())
    with pytest.raises(ParameterError):
        must_travel(module)
    assert book.entries() == ()


def test_whatever_decides_how_torch_rounds_is_taken_over() -> None:
    usual = Rounding.here()
    assert not usual.flushes
    try:
        torch.set_default_dtype(torch.float64)
        can_flush = torch.set_flush_denormal(True)
        torch.set_float32_matmul_precision("medium")
        odd = Rounding.here()
        assert (odd.type, odd.flushes, odd.precision) == (torch.float64, can_flush, "medium")
        usual.settle()
        assert Rounding.here() == usual
        pickle.loads(pickle.dumps(odd)).settle()
        assert Rounding.here() == odd
    finally:
        usual.settle()


@pytest.mark.parametrize("before", [pytest.param(None, marks=pytest.mark.long), "eth7"])
def test_a_group_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    if before is None:
        monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    else:
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", before)
    with crew_of(2):
        assert os.environ.get("GLOO_SOCKET_IFNAME") == before
    assert os.environ.get("GLOO_SOCKET_IFNAME") == before


def test_a_process_in_a_group_of_its_own_cannot_have_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(ParameterError, match="processes must be 1 in a process that has joined a group"):
        trainer(processes=2, random_state=1).fit(*rows())


def test_the_command_line_asks_for_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    @contextmanager
    def recorded(processes: int, **_: Any) -> Iterator[None]:
        asked.append(processes)
        yield None

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sabun.learning.classifier.crew_of", recorded)
    frame, label = people(200)
    frame.assign(answer=label).to_csv("people.csv", index=False)
    command = "learning train people.csv --target answer --classes no,yes --bounds age=0:100 --bounds income=0:10000 --yes"
    extra = "--epsilon 2 --set epochs=2 --method dp-sgd --processes 3 --out model"
    assert exit_code(*command.split(), *extra.split()) == 0
    assert asked == [3]
    other = extra.replace("dp-sgd", "noisy-centroids").replace("model", "other")
    assert exit_code(*command.split(), *other.split()) != 0
