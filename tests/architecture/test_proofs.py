from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from architecture import proofs

PROOFS = proofs.proof_files()
IDS = [str(path.relative_to(proofs.ROOT)) for path in PROOFS]


def test_the_house_has_proofs() -> None:
    assert len(PROOFS) >= 8


@pytest.mark.parametrize("proof", PROOFS, ids=IDS)
def test_a_proof_stands_beside_the_code_it_proves(proof: Path) -> None:
    assert proofs.proved_module(proof).is_file()
    assert proofs.listed(proof), "a proof lists the functions it proves"


@pytest.mark.parametrize("proof", PROOFS, ids=IDS)
def test_a_proof_has_the_house_shape(proof: Path) -> None:
    found = proofs.headings(proof)
    assert len(found) == len(proofs.HEADINGS)
    assert all(heading in allowed for heading, allowed in zip(found, proofs.HEADINGS, strict=True)), found


@pytest.mark.parametrize("proof", PROOFS, ids=IDS)
def test_tags_in_proof_and_code_match_one_to_one(proof: Path) -> None:
    assert proofs.tags_in_proof(proof) == proofs.tags_in_code(proofs.proved_module(proof))


@pytest.mark.parametrize("proof", PROOFS, ids=IDS)
def test_the_proof_was_read_again_when_the_code_changed(proof: Path) -> None:
    module = proofs.proved_module(proof)
    now = {name: proofs.digest(module, name) for name in proofs.listed(proof)}
    assert proofs.listed(proof) == now, "read the proof again, then: python tests/architecture/proofs.py --stamp"


def test_every_module_that_tosses_the_coin_brings_its_proof() -> None:
    missing = [
        str(module.relative_to(proofs.SOURCE))
        for module in sorted(proofs.SOURCE.rglob("*.py"))
        if _draws_noise(module) and not module.with_suffix(".proof.md").is_file()
    ]
    assert missing == []


def _draws_noise(module: Path) -> bool:
    """Whether a module outside the noise room calls a sampler of `sabun.privacy.noise`."""
    room = module.relative_to(proofs.SOURCE).parts
    if room[:2] == ("privacy", "noise") or room[0] in {"cli", "reports", "audit", "datasets"}:
        return False
    samplers = {"discrete_laplace", "discrete_gaussian", "spherical_laplace", "bernoulli", "bernoulli_exp", "categorical"}
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sabun.privacy.noise"):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "noise":
            names.add(node.attr)
    return bool(names & samplers)


def test_a_changed_function_is_noticed(tmp_path: Path) -> None:
    module = tmp_path / "x.py"
    module.write_text('def f(a):\n    """Says one thing."""\n    return a\n')
    first = proofs.digest(module, "f")
    module.write_text('def f(a):\n    """Says another."""\n    # with a comment\n    return a\n')
    assert proofs.digest(module, "f") == first
    module.write_text("def f(a):\n    return a + 1\n")
    assert proofs.digest(module, "f") != first


@pytest.mark.parametrize("proof", PROOFS, ids=IDS)
def test_the_tests_a_proof_names_exist(proof: Path) -> None:
    named = re.findall(r"`(tests/[\w/.-]+)`", proof.read_text(encoding="utf-8"))
    assert named, "a proof names the tests that stand behind it"
    assert [test for test in named if not (proofs.ROOT / test).exists()] == []
