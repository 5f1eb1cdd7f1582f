from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import sabun

MODULES = [name for _, name, _ in pkgutil.walk_packages(sabun.__path__, "sabun.") if not name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)).failed == 0
