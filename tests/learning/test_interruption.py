"""Ctrl-C on a real process, as a person presses it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.terminal import SOURCE, exit_code, process
from learning.learning_samples import people
from sabun.ledger import Ledger

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are a matter of POSIX")

TRAIN = "learning train people.csv --target answer --classes no,yes --bounds age=0:100 --bounds income=0:10000 --epsilon 2"
LONG = (*TRAIN.split(), "--method", "laplace-sgd", "--set", "epochs=150", "--ledger", "book", "--out", "model")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame, label = people(2000)
    frame.assign(answer=label).to_csv("people.csv", index=False)
    Ledger.create("book", name="book", relation="add-remove", epsilon=3)
    return tmp_path


def stopped(
    *arguments: str,
    when: Callable[[], bool],
    folder: Path,
    by: signal.Signals = signal.SIGINT,
    before: Callable[[], None] = lambda: None,
) -> tuple[int, str]:
    """Starts `sabun`, stops it (Ctrl-C) as soon as it is time; the exit code with what was said on stderr."""
    running = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "sabun.cli", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": SOURCE},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not when() and running.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    try:
        before()
    finally:
        running.send_signal(by)
    _, said = running.communicate(timeout=60)
    return running.returncode, said.decode()


def test_ctrl_c_leaves_a_run_that_the_same_command_finishes_at_no_further_cost(place: Path) -> None:
    command = (*LONG, "--checkpoint", "run")
    code, said = stopped(*command, when=(place / "run" / "run.state").exists, folder=place)
    assert code == 130
    assert "Give the same command again to go on: nothing is charged twice" in said
    assert Ledger.open("book").spent.epsilon == 2
    assert not (place / "model").exists()
    again = process(*command, folder=place)
    assert again.returncode == 0, again.stderr
    assert Ledger.open("book").spent.epsilon == 2
    assert not (place / "run" / "run.secret").exists()
    assert exit_code("learning", "verify", "model") == 0


def test_a_killed_run_goes_on(place: Path) -> None:
    command = (*LONG, "--checkpoint", "run")
    code, _ = stopped(*command, when=(place / "run" / "run.state").exists, folder=place, by=signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert (place / "run" / "run.secret").exists()
    assert exit_code(*command) == 0  # another process than the one that began
    assert Ledger.open("book").spent.epsilon == 2
    assert sorted(file.name for file in (place / "run").iterdir()) == ["run.lock"]


def test_two_processes_cannot_use_one_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = (*LONG, "--set", "epochs=100000", "--yes", "--checkpoint", "run")

    def intrude() -> None:
        assert exit_code(*command) == 4
        assert "must be used by one run at a time" in capsys.readouterr().err

    stopped(*command, when=(place / "run" / "run.state").exists, folder=place, by=signal.SIGKILL, before=intrude)
    assert len(Ledger.open("book").entries()) == 1


def test_ctrl_c_without_a_checkpoint_says_that_the_charge_stays(place: Path) -> None:
    code, said = stopped(*LONG, "--json", when=lambda: bool(Ledger.open("book").entries()), folder=place)
    assert code == 130
    message = json.loads(said)["error"]
    assert "epsilon 2 stays spent (entry 1) in 'book'" in message["message"]
    assert message["exit_code"] == 130
    assert Ledger.open("book").spent.epsilon == 2


def test_ctrl_c_before_the_first_step_says_that_there_is_nothing_to_go_on_with(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pressed(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sabun.learning.PrivateClassifier.fit", pressed)
    assert exit_code(*LONG, "--checkpoint", "run") == 130
    assert "interrupted; nothing was released, nothing was charged to 'book'" in capsys.readouterr().err
    assert Ledger.open("book").spent.epsilon == 0
