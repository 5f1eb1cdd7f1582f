from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from architecture import proofs
from sabun.asking import rooms


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", proofs.ROOT / "tools" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TOOL = _tool()


@pytest.mark.parametrize("mutant", TOOL.MUTANTS, ids=lambda mutant: f"{mutant.room}: {mutant.name}")
def test_a_mutant_still_breaks_the_line_it_was_written_for(mutant: object) -> None:
    """`tools/mutants.py` is run by hand; a line that was rewritten since must be rewritten there too."""
    whole = (proofs.ROOT / mutant.file).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    broken = mutant.applied(whole)  # type: ignore[attr-defined]
    assert broken != whole
    compile(broken, mutant.file, "exec")  # type: ignore[attr-defined]


def test_every_room_has_mutants_and_tests_to_notice_them() -> None:
    assert {mutant.room for mutant in TOOL.MUTANTS} == set(TOOL.TESTS)
    assert {room.name for room in rooms()} <= set(TOOL.TESTS)
    missing = [
        name for names in TOOL.TESTS.values() for name in names if not (proofs.ROOT / "tests" / name.split()[0]).exists()
    ]
    assert missing == []
    assert len({(mutant.room, mutant.name) for mutant in TOOL.MUTANTS}) == len(TOOL.MUTANTS)
