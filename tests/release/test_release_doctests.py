from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import sabun.release


@pytest.mark.parametrize(
    "name", ["sabun.release", *(found.name for found in pkgutil.iter_modules(sabun.release.__path__, "sabun.release."))]
)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_exported_name_exists() -> None:
    for found in pkgutil.iter_modules(sabun.release.__path__, "sabun.release."):
        module = importlib.import_module(found.name)
        assert all(hasattr(module, name) for name in module.__all__)
