"""Ties every `x.proof.md` to the `x.py` it proves.

A proof lists the functions and constants it proves, then the whole module, each with a digest of its code (tools/digests.py);
it cites tags that stand in the code as `# proof: tag`. When the code changes, the suite fails until a person has read the
proof against the change:

    python tests/architecture/proofs.py            show what is out of date
    python tests/architecture/proofs.py --stamp    write the new digests, after reading
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import digests  # noqa: E402
from digests import TAG, code_lines  # noqa: E402

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
ADVICE = (
    "First read the proof against the change, every line of it: does the claim still hold, are the bounds still those the code "
    "uses, do the tags stand where the proof says? Only then: python tests/architecture/proofs.py --stamp"
)
_LISTED = re.compile(r"^- (?P<name>(?:module )?`[\w./]+`) · digest `(?P<digest>[0-9a-f]{12})`$", re.MULTILINE)
_TAG_IN_PROOF = re.compile(r"\(tag: ([a-z0-9-]+)\)")


def proof_files() -> list[Path]:
    return sorted([*SOURCE.rglob("*.proof.md"), *(ROOT / "examples").rglob("*.proof.md")])


def proved_module(proof: Path) -> Path:
    return proof.with_name(proof.name.removesuffix(".proof.md") + ".py")


def listed(proof: Path) -> dict[str, str]:
    """What the proof lists, as it is written there (`` `f` `` or `` module `x.py` ``), with the recorded digest."""
    return {match["name"]: match["digest"] for match in _LISTED.finditer(proof.read_text(encoding="utf-8"))}


def now(proof: Path) -> dict[str, str | None]:
    """The same things with the digest of the code as it is; None for what is not there."""
    return {item: _digest_of(proof, item) for item in listed(proof)}


def tags_in_proof(proof: Path) -> set[str]:
    return set(_TAG_IN_PROOF.findall(proof.read_text(encoding="utf-8")))


def tags_in_code(module: Path) -> set[str]:
    return set(TAG.findall(module.read_text(encoding="utf-8")))


def headings(proof: Path) -> list[str]:
    return re.findall(r"^## (.+)$", proof.read_text(encoding="utf-8"), re.MULTILINE)


def digest(module: Path, name: str | None = None) -> str | None:
    """Digest of one function, class or constant, or of the whole module; None when the module has no such name."""
    span = None if name is None else _span(module, name)
    return None if name is not None and span is None else digests.digest(module, span)


def stray_tags(proof: Path) -> list[str]:
    """Tags that do not end a line of code inside something the proof lists."""
    module = proved_module(proof)
    spans = [_span(module, name.strip("`")) for name in listed(proof) if not name.startswith("module")]
    lines = {line for span in spans if span for line in range(span[0], span[1] + 1)}
    home = {tag for line, text in code_lines(module).items() if line in lines for tag in TAG.findall(text)}
    return sorted(tags_in_code(module) - home)


def _digest_of(proof: Path, item: str) -> str | None:
    kind, _, name = item.rpartition(" ")
    name = name.strip("`")
    if not kind:
        return digest(proved_module(proof), name)
    return digest(proof.parent / name) if (proof.parent / name).is_file() else None


def _span(module: Path, name: str) -> tuple[int, int] | None:
    """First and last line of a function, class or constant, decorators included."""
    node: ast.AST = ast.parse(module.read_text(encoding="utf-8"))
    for part in name.split("."):
        found = [child for child in getattr(node, "body", []) if part in _names(child)]
        if not found:
            return None
        node = found[-1]
    first = min([node.lineno, *(line.lineno for line in getattr(node, "decorator_list", []))])  # type: ignore[attr-defined]
    return first, node.end_lineno  # type: ignore[attr-defined]


def _names(node: ast.AST) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)} | {getattr(node, "name", "")}


def stamp(proof: Path) -> bool:
    """Writes the digests of the code as it is now, the module's too; returns whether anything changed."""
    before = proof.read_text(encoding="utf-8")
    own = f"module `{proved_module(proof).name}`"
    after = before
    if own not in listed(proof):
        found = list(_LISTED.finditer(before))
        if not found:
            raise SystemExit(f"{proof}: list what it proves first, such as: - `name` · digest `{'0' * 12}`")
        last = found[-1]
        after = f"{before[: last.end()]}\n- {own} · digest `{'0' * 12}`{before[last.end() :]}"
    after = _LISTED.sub(
        lambda match: f"- {match['name']} · digest `{_digest_of(proof, match['name']) or match['digest']}`", after
    )
    proof.write_text(after, encoding="utf-8")
    return before != after


if __name__ == "__main__":
    changed = 0
    for path in proof_files():
        if "--stamp" in sys.argv:
            if stamp(path):
                print(f"stamped {path.relative_to(ROOT)}")
            continue
        current = now(path)
        for thing, recorded in listed(path).items():
            if current[thing] != recorded:
                changed += 1
                print(f"{path.relative_to(ROOT)}: {thing} changed since its proof was last read")
    if "--stamp" not in sys.argv:
        print(f"{changed} changed" + (f". {ADVICE}" if changed else ""))
