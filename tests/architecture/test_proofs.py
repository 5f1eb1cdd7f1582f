from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from architecture import proofs
from sabun.audit.proofs import digest

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
def test_a_tag_ends_a_line_of_code_that_its_proof_lists(proof: Path) -> None:
    assert proofs.stray_tags(proof) == [], "list the function or constant that holds the tag, or put the tag where it belongs"


@pytest.mark.parametrize("proof", PROOFS, ids=IDS)
def test_a_proof_is_bound_to_its_whole_module(proof: Path) -> None:
    assert f"module `{proofs.proved_module(proof).name}`" in proofs.listed(proof), "python tests/architecture/proofs.py --stamp"


@pytest.mark.parametrize("proof", PROOFS, ids=IDS)
def test_the_proof_was_read_again_when_the_code_changed(proof: Path) -> None:
    now = proofs.now(proof)
    changed = [item for item, digest in proofs.listed(proof).items() if now[item] != digest]
    assert changed == [], proofs.ADVICE


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
    samplers = {
        "discrete_laplace",
        "discrete_gaussian",
        "spherical_laplace",
        "cubical_laplace",
        "rounded_gaussian",
        "rounded_gaussians",
        "bernoulli",
        "bernoulli_exp",
        "categorical",
    }
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sabun.privacy.noise"):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "noise":
            names.add(node.attr)
    return bool(names & samplers)


_MODULE = """LIMIT = 2
NOTE = 1


def f(a):
    return a + LIMIT  # proof: step
"""


def _digests(folder: Path, text: str) -> tuple[str | None, ...]:
    module = folder / "x.py"
    module.write_text(text)
    return digest(module), digest(module, "f"), digest(module, "LIMIT")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(a):\n", '(a):\n    """Says more,\n\n    in lines."""\n'),
        ("LIMIT = 2\n", '"""A module."""\nLIMIT = 2  # for a reason\n"""Two."""\n'),
        ("    return", "    # a comment\n\n    return"),
        ("# proof: step", "# because; # proof: step"),
    ],
)
def test_words_about_the_code_are_not_code(old: str, new: str, tmp_path: Path) -> None:
    assert _digests(tmp_path, _MODULE.replace(old, new)) == _digests(tmp_path, _MODULE)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("a + LIMIT", "a - LIMIT", (True, True, False)),
        ("LIMIT = 2", "LIMIT = 20", (True, False, True)),
        ("NOTE = 1", "NOTE = 3", (True, False, False)),
        ("  # proof: step", "", (True, True, False)),
        ("# proof: step", "# proof: other", (True, True, False)),
        ("a + LIMIT", 'a + """\n\n"""', (True, True, False)),
    ],
)
def test_a_change_is_noticed_wherever_it_is(old: str, new: str, changed: tuple[bool, ...], tmp_path: Path) -> None:
    pairs = zip(_digests(tmp_path, _MODULE), _digests(tmp_path, _MODULE.replace(old, new)), strict=True)
    assert tuple(before != after for before, after in pairs) == changed


def test_a_decorator_belongs_to_its_function(tmp_path: Path) -> None:
    assert _digests(tmp_path, _MODULE.replace("def f", "@cached\ndef f"))[1] != _digests(tmp_path, _MODULE)[1]


def test_the_digest_is_the_same_in_every_python(tmp_path: Path) -> None:
    """The value is written down: another Python, or another way of digesting, has to print it too."""
    assert _digests(tmp_path, _MODULE) == ("4964444d0d92", "63a1d2f4bc41", "7848907a8e3d")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("NOTE = 1", "NOTE = 1  # proof: step"),
        ("LIMIT = 2", "LIMIT = 2  # proof: step"),
        ("    return", "    # proof: step\n    return"),
    ],
)
def test_a_tag_in_the_wrong_place_is_noticed(old: str, new: str, tmp_path: Path) -> None:
    proof = tmp_path / "x.proof.md"
    proof.write_text("# X\nProves:\n\n- `f` · digest `000000000000`\n\n(tag: step)\n")
    (tmp_path / "x.py").write_text(_MODULE)
    assert proofs.stray_tags(proof) == []
    (tmp_path / "x.py").write_text(_MODULE.replace("  # proof: step", "").replace(old, new))
    assert proofs.stray_tags(proof) == ["step"]


def test_a_stamped_proof_is_up_to_date_until_the_module_changes(tmp_path: Path) -> None:
    proof = tmp_path / "x.proof.md"
    proof.write_text("# X\nProves:\n\n- `f` · digest `000000000000`\n\n(tag: step)\n")
    (tmp_path / "x.py").write_text(_MODULE)
    assert proofs.now(proof) != proofs.listed(proof)
    assert proofs.stamp(proof)
    assert list(proofs.listed(proof)) == ["`f`", "module `x.py`"]
    assert proofs.now(proof) == proofs.listed(proof)
    assert not proofs.stamp(proof)
    (tmp_path / "x.py").write_text(_MODULE.replace("NOTE = 1", "NOTE = 2"))
    assert [item for item, digest in proofs.listed(proof).items() if proofs.now(proof)[item] != digest] == ["module `x.py`"]


@pytest.mark.parametrize("proof", PROOFS, ids=IDS)
def test_the_tests_a_proof_names_exist(proof: Path) -> None:
    named = re.findall(r"`(tests/[\w/.-]+)`", proof.read_text(encoding="utf-8"))
    assert named, "a proof names the tests that stand behind it"
    assert [test for test in named if not (proofs.ROOT / test).exists()] == []
