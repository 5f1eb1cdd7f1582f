"""Running the command line as a person does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sabun
from sabun.cli import main

SOURCE = str(Path(sabun.__file__).parents[1])


def exit_code(*arguments: object) -> int:
    """Runs `sabun` in this process."""
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def process(*arguments: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs `sabun` in its own process."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SABUN", "FORCE_COLOR"))}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "sabun.cli", *map(str, arguments)],
        cwd=folder,
        env=clean | {"PYTHONPATH": SOURCE} | environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
