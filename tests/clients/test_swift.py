"""The Swift client cannot be tried here: its checklist is what the golden vectors say, and it says that it is untested."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.swift_checklist import checklist

FOLDER = Path(__file__).parents[2] / "clients/swift"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the Swift client is not part of this archive")


def test_the_checklist_is_what_the_vectors_say() -> None:
    assert (FOLDER / "CHECKLIST.md").read_text(encoding="utf-8") == checklist()


def test_the_readme_says_that_nothing_was_compiled() -> None:
    assert "nothing here has been compiled or run" in (FOLDER / "README.md").read_text(encoding="utf-8")
