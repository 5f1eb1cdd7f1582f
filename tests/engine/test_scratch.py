"""Folders for rows that must meet: what a killed process leaves is its owner's alone, and goes with the next question."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sabun.engine.scratch import scratch


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_process_left_is_removed_by_the_next(temporary: Path, end: signal.Signals) -> None:
    script = (
        "import os, pathlib, sys\n"
        "from sabun.engine.scratch import scratch\n"
        "with scratch('sabun-') as folder:\n"
        "    pathlib.Path(folder, 'rows').write_text('private')\n"
        f"    os.kill(os.getpid(), {int(end)})\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, timeout=300)
    assert done.returncode == -end
    (left,) = temporary.iterdir()
    assert (left / "rows").exists()
    assert left.stat().st_mode & 0o077 == 0
    with scratch("sabun-") as folder:
        assert list(temporary.iterdir()) == [Path(folder)]
    assert list(temporary.iterdir()) == []


def test_what_somebody_works_with_stays_and_so_does_what_is_not_ours(temporary: Path) -> None:
    (temporary / "sabun-notes").mkdir()
    (temporary / "sabun-link").symlink_to(temporary / "sabun-notes")
    (temporary / "sabun-file").touch()
    with scratch("sabun-") as one, scratch("sabun-crew-") as other:
        Path(one, "rows").touch()
        with scratch("sabun-"):
            assert Path(one, "rows").exists()
            assert Path(other).exists()
        assert {file.stat().st_mode & 0o077 for file in Path(other).iterdir()} == {0}
    assert {file.name for file in temporary.iterdir()} == {"sabun-notes", "sabun-link", "sabun-file"}


def test_where_there_are_no_locks_nothing_is_swept_and_all_goes_on(monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with scratch("sabun-") as folder:
        assert Path(folder).is_dir()
    assert list(temporary.iterdir()) == []
