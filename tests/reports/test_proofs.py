from __future__ import annotations

from pathlib import Path

import sabun
from sabun.reports.proofs import proofs

SOURCE = Path(sabun.__file__).parent
ROOT = Path(__file__).resolve().parents[2]


def test_every_proof_file_is_found() -> None:
    rooms = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.proof.md")}
    found = {proof.name for room in rooms for group in proofs(f"{room}.x") for proof in group}
    assert found == {f"sabun/{path.relative_to(SOURCE).as_posix()}" for path in SOURCE.rglob("*.proof.md")}


def test_a_proof_has_a_title_a_claim_and_tests() -> None:
    own, hall = proofs("private count")
    assert own == ()
    publish = next(proof for proof in hall if proof.name == "sabun/release/publish.proof.md")
    assert publish.title
    assert publish.claim
    assert "tests/release/test_publish.py" in publish.tests


def test_the_tests_that_a_proof_names_exist() -> None:
    named = {test for proof in proofs("x")[1] for test in proof.tests}
    assert named
    assert [test for test in sorted(named) if not (ROOT / test).exists()] == []


def test_a_kind_cannot_name_a_folder_of_its_own() -> None:
    assert proofs("../../etc.x")[0] == ()
    assert proofs("release.x")[0] == ()
