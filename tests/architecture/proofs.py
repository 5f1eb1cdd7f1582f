"""Ties every `x.proof.md` to the `x.py` it proves.

A proof lists the functions it proves with a digest of their code (without docstrings and comments), and cites tags that
stand in the code as `# proof: tag`. When a proved function changes, its digest changes and the suite fails until a person
has read the proof again:

    python tests/architecture/proofs.py            show what is out of date
    python tests/architecture/proofs.py --stamp    write the new digests, after reading
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sabun"
HEADINGS = (
    ("Claim",),
    ("Preconditions",),
    ("Sensitivity lemma", "Lemmas"),
    ("Proof",),
    ("Errors do not depend on private data",),
    ("Numerics",),
    ("Tests that stand behind it",),
    ("Sources",),
)
_LISTED = re.compile(r"^- `(?P<name>[\w.]+)` · digest `(?P<digest>[0-9a-f]{12})`$", re.MULTILINE)
_TAG_IN_CODE = re.compile(r"# proof: ([a-z0-9-]+)")
_TAG_IN_PROOF = re.compile(r"\(tag: ([a-z0-9-]+)\)")


def proof_files() -> list[Path]:
    return sorted([*SOURCE.rglob("*.proof.md"), *(ROOT / "examples").rglob("*.proof.md")])


def proved_module(proof: Path) -> Path:
    return proof.with_name(proof.name.removesuffix(".proof.md") + ".py")


def listed(proof: Path) -> dict[str, str]:
    return {match["name"]: match["digest"] for match in _LISTED.finditer(proof.read_text(encoding="utf-8"))}


def tags_in_proof(proof: Path) -> set[str]:
    return set(_TAG_IN_PROOF.findall(proof.read_text(encoding="utf-8")))


def tags_in_code(module: Path) -> set[str]:
    return set(_TAG_IN_CODE.findall(module.read_text(encoding="utf-8")))


def headings(proof: Path) -> list[str]:
    return re.findall(r"^## (.+)$", proof.read_text(encoding="utf-8"), re.MULTILINE)


def digest(module: Path, name: str) -> str | None:
    """Digest of one function's or class's code, or None when the module has no such name."""
    node: ast.AST = ast.parse(module.read_text(encoding="utf-8"))
    for part in name.split("."):
        found = [child for child in getattr(node, "body", []) if getattr(child, "name", None) == part]
        if not found:
            return None
        node = found[-1]
    _drop_docstrings(node)
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()[:12]


def _drop_docstrings(node: ast.AST) -> None:
    for child in ast.walk(node):
        body = getattr(child, "body", None)
        if isinstance(body, list) and body and isinstance(child, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(child):
            child.body = body[1:]


def stamp(proof: Path) -> bool:
    """Writes the digests of the code as it is now; returns whether anything changed."""
    before = proof.read_text(encoding="utf-8")
    module = proved_module(proof)
    after = _LISTED.sub(
        lambda match: f"- `{match['name']}` · digest `{digest(module, match['name']) or match['digest']}`", before
    )
    proof.write_text(after, encoding="utf-8")
    return before != after


if __name__ == "__main__":
    for path in proof_files():
        if "--stamp" in sys.argv:
            if stamp(path):
                print(f"stamped {path.relative_to(ROOT)}")
            continue
        for function, recorded in listed(path).items():
            if digest(proved_module(path), function) != recorded:
                print(f"{path.relative_to(ROOT)}: {function} changed since its proof was last read")
