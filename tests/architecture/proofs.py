"""Ties every `x.proof.md` to the `x.py` it proves.

A proof lists the functions and constants it proves, then the whole module, each with a digest of its code; it
cites tags that stand in the code as `# proof: tag`. When the code changes, the suite fails until a person has read the
proof against the change:

    python tests/architecture/proofs.py            show what is out of date
    python tests/architecture/proofs.py --stamp    write the new digests, after reading
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))
from sabun.audit import proofs as installed  # noqa: E402
from sabun.audit.digests import TAG, code_lines  # noqa: E402
from sabun.audit.proofs import LISTED, digest_of, listed, now, proved_module, span  # noqa: E402

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
_TAG_IN_PROOF = re.compile(r"\(tag: ([a-z0-9-]+)\)")


def proof_files() -> list[Path]:
    return [*installed.proof_files(SOURCE), *installed.proof_files(ROOT / "examples")]


def tags_in_proof(proof: Path) -> set[str]:
    return set(_TAG_IN_PROOF.findall(proof.read_text(encoding="utf-8")))


def tags_in_code(module: Path) -> set[str]:
    return set(TAG.findall(module.read_text(encoding="utf-8")))


def headings(proof: Path) -> list[str]:
    return re.findall(r"^## (.+)$", proof.read_text(encoding="utf-8"), re.MULTILINE)


def stray_tags(proof: Path) -> list[str]:
    """Tags that do not end a line of code inside something the proof lists."""
    module = proved_module(proof)
    spans = [span(module, name.strip("`")) for name in listed(proof) if not name.startswith("module")]
    lines = {line for found in spans if found for line in range(found[0], found[1] + 1)}
    home = {tag for line, text in code_lines(module).items() if line in lines for tag in TAG.findall(text)}
    return sorted(tags_in_code(module) - home)


def stamp(proof: Path) -> bool:
    """Writes the digests of the code as it is now, the module's too; returns whether anything changed."""
    before = proof.read_text(encoding="utf-8")
    own = f"module `{proved_module(proof).name}`"
    after = before
    if own not in listed(proof):
        found = list(LISTED.finditer(before))
        if not found:
            raise SystemExit(f"{proof}: list what it proves first, such as: - `name` · digest `{'0' * 12}`")
        last = found[-1]
        after = f"{before[: last.end()]}\n- {own} · digest `{'0' * 12}`{before[last.end() :]}"
    after = LISTED.sub(
        lambda match: f"- {match['name']} · digest `{digest_of(proof, match['name']) or match['digest']}`", after
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
