from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["audit", "classifier", "network", "poisson", "stream", "synthesis.domain"])
def test_examples_in_docstrings_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"sabun.learning.{name}"))
    assert found.attempted > 0
    assert found.failed == 0
