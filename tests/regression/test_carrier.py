"""The Flower carrier, with real SuperLink and SuperNode processes on localhost."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from regression.test_exchange import EAST, NORTH, STUDY
from regression.worlds import unit_study
from sabun.errors import DataError, ParameterError
from sabun.regression import combine
from sabun.regression.carrier import received, write_app

PATIENCE = 150


def flower_programs() -> Path | None:
    """Where Flower's programs are: beside what SABUN_FLOWER_PYTHON names, in .venv-flower, or beside this interpreter."""
    named = os.environ.get("SABUN_FLOWER_PYTHON")
    if named:
        return Path(named).parent
    own = Path(__file__).resolve().parents[2] / ".venv-flower" / "bin"
    if (own / "flower-superlink").exists():
        return own
    return Path(sys.executable).parent if importlib.util.find_spec("flwr") else None


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def running(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """A process with everything it starts, ended together."""
    with open(folder / f"{Path(command[0]).name}-{free_port()}.log", "w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@pytest.mark.skipif(flower_programs() is None, reason="needs the extra: pip install 'sabun[flower]'")
def test_files_travel_from_outboxes_to_a_coordinator_and_are_verified_there(tmp_path: Path) -> None:
    programs = flower_programs()
    assert programs is not None
    link, inbox = free_port(), tmp_path / "inbox"
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{link}"\ninsecure = true\n'
    )
    path = f"{programs}:{os.environ['PATH']}"
    environment = os.environ | {"FLWR_HOME": str(home), "HOME": str(tmp_path), "FLWR_TELEMETRY_ENABLED": "0", "PATH": path}
    environment.pop("PYTHONPATH", None)
    app = write_app(tmp_path / "app")
    with ExitStack() as stack:
        there = ["--insecure", "--host", "127.0.0.1"]
        superlink = [
            str(programs / "flower-superlink"),
            *there,
            "--port",
            str(link),
            "--disable-runtime-dependency-installation",
        ]
        stack.enter_context(running(superlink, tmp_path, environment))
        for name, release in (("north", NORTH), ("east", EAST)):
            outbox = tmp_path / name
            outbox.mkdir()
            release.save(outbox / f"{name}.json")
            (outbox / "patients.csv").write_text("must,stay\n")
            where = ["--superlink", f"127.0.0.1:{link}", "--port", str(free_port()), "--node-config", f'outbox="{outbox}"']
            stack.enter_context(running([str(programs / "flower-supernode"), *there, *where], tmp_path, environment))
        (tmp_path / "east" / "forged.json").write_bytes(NORTH.to_json().replace(b'"rows":400', b'"rows":401'))
        submit = [str(programs / "flwr"), "run", str(app), "here", "--run-config", f'inbox="{inbox}" nodes=2']
        until(lambda: subprocess.run(submit, cwd=tmp_path, env=environment, capture_output=True).returncode == 0)
        until(lambda: inbox.is_dir() and len(list(inbox.iterdir())) == 3)
    good, bad = received(inbox, STUDY)
    assert sorted(contribution.organisation for contribution in good) == ["east", "north"]
    assert len(bad) == 1
    assert "it was changed or forged" in bad[0]
    model = combine([contribution.release for contribution in good], study=STUDY)
    assert model.organisations == tuple(contribution.organisation for contribution in good)


def until(done) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "Flower did not answer in time"
        time.sleep(0.5)


def test_the_app_reads_an_outbox_and_nothing_else(tmp_path: Path) -> None:
    app = write_app(tmp_path / "app")
    source = (app / "sabun_carrier" / "client_app.py").read_text()
    assert "sabun.regression" not in source
    assert "discrete_gaussian" not in source
    assert sorted(path.name for path in app.rglob("*.py")) == ["__init__.py", "client_app.py", "server_app.py"]
    with pytest.raises(DataError, match="must be a new folder; it exists already"):
        write_app(tmp_path / "app")


def test_an_inbox_is_checked_file_by_file(tmp_path: Path) -> None:
    NORTH.save(tmp_path / "a.json")
    (tmp_path / "b.json").write_text("{}")
    good, bad = received(tmp_path, STUDY)
    assert [contribution.organisation for contribution in good] == ["north"]
    assert len(bad) == 1
    with pytest.raises(DataError, match="must be a folder; there is none of that name"):
        received(tmp_path / "none", STUDY)


def test_a_carrier_needs_a_study_with_keys(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="study must name organisations with their keys; got none"):
        received(tmp_path, unit_study())


@pytest.fixture
def server_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The coordinator's half of the carrier, with nothing but names where Flower stands."""
    app, serverapp = types.ModuleType("flwr.app"), types.ModuleType("flwr.serverapp")
    for name in ("Context", "Message", "RecordDict"):
        setattr(app, name, type(name, (), {"__init__": lambda self, *a, **k: None}))
    app.MessageType = types.SimpleNamespace(QUERY="query")  # type: ignore[attr-defined]
    serverapp.Grid = object  # type: ignore[attr-defined]
    serverapp.ServerApp = lambda: types.SimpleNamespace(main=lambda: lambda made: made)  # type: ignore[attr-defined]
    for name, module in (("flwr", types.ModuleType("flwr")), ("flwr.app", app), ("flwr.serverapp", serverapp)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(write_app(tmp_path / "app")))
    for name in ("sabun_carrier", "sabun_carrier.server_app"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("sabun_carrier.server_app")


def reply(records: object, *, error: bool = False) -> Any:
    return types.SimpleNamespace(content=types.SimpleNamespace(config_records=records), has_error=lambda: error)


def carried(server_app: Any, folder: Path, *replies: Any) -> list[bytes]:
    grid = types.SimpleNamespace(
        get_node_ids=lambda: range(len(replies)), send_and_receive=lambda questions, timeout: list(replies)
    )
    server_app.main(grid, types.SimpleNamespace(run_config={"inbox": str(folder), "nodes": len(replies)}))
    return sorted(path.read_bytes() for path in folder.iterdir())


def test_one_odd_reply_does_not_lose_the_others(server_app: Any, tmp_path: Path) -> None:
    """A reply without an outbox ended the run, and what came after it was lost."""
    odd = [reply({}), reply({"outbox": {"contents": 5}}), reply(None), reply({"outbox": {"contents": [5, "x"]}})]
    good = reply({"outbox": {"contents": [b"{}"]}})
    broken = reply({"outbox": {"contents": [b"lost"]}}, error=True)
    assert carried(server_app, tmp_path / "inbox", *odd, broken, good) == [b"{}"]


def test_one_node_cannot_fill_the_inbox(server_app: Any, tmp_path: Path) -> None:
    many = reply({"outbox": {"contents": [b"%d" % number for number in range(3000)]}})
    assert len(carried(server_app, tmp_path / "inbox", many)) == 100
    long = reply({"outbox": {"contents": [b"x" * (2**20 + 1)]}})
    assert carried(server_app, tmp_path / "other", long) == []
