"""The proofs that come with the package: each lists what it proves with a digest of that code, as it was when it was read.

An installed module that is not the one its proof was read against shows here, whoever changed it. What ties proofs to the
source tree beyond that (their shape, their tags) is in the project's tests.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import FrameType

from sabun.asking.evidence import Bench, Checklist
from sabun.audit import digests

__all__ = ["LISTED", "checks", "claim", "digest", "listed", "now", "proof_files", "proved_module", "resting", "section", "span"]

ENDING = ".proof.md"
_SENTENCE = re.compile(r"(?<=[^\d]\.) (?=[A-Z`*(\d])")
LISTED = re.compile(r"^- (?P<name>(?:module )?`[\w./]+`) · digest `(?P<digest>[0-9a-f]{12})`$", re.MULTILINE)


def package() -> Path:
    """Where the package is installed."""
    return Path(str(resources.files("sabun")))


def proof_files(place: Path | None = None) -> list[Path]:
    """Every proof below a folder; of the installed package when left out."""
    return sorted((place or package()).rglob(f"*{ENDING}"))


def proved_module(proof: Path) -> Path:
    """The module that a proof stands beside."""
    return proof.with_name(proof.name.removesuffix(ENDING) + ".py")


def listed(proof: Path) -> dict[str, str]:
    """What the proof lists, as it is written there (`` `f` `` or `` module `x.py` ``), with the recorded digest."""
    return {match["name"]: match["digest"] for match in LISTED.finditer(proof.read_text(encoding="utf-8"))}


def claim(proof: Path) -> str:
    """The first sentence of what the proof claims, with those before it that say of what they speak; … where more follow."""
    sentences = _SENTENCE.split(section(proof, "Claim"))
    spoken = next((place for place, one in enumerate(sentences) if not one.startswith(("Let ", "Write "))), 0)
    return " ".join(sentences[: spoken + 1]) + (" …" if len(sentences) > spoken + 1 else "")


def section(proof: Path, title: str) -> str:
    """One section of a proof on one line; empty where it has none."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", proof.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return " ".join(found[1].split()) if found else ""


def now(proof: Path) -> dict[str, str | None]:
    """The same things with the digest of the code as it is; None for what is not there."""
    return {item: digest_of(proof, item) for item in listed(proof)}


def digest_of(proof: Path, item: str) -> str | None:
    """The digest of one thing that a proof lists."""
    kind, _, name = item.rpartition(" ")
    name = name.strip("`")
    if not kind:
        return digest(proved_module(proof), name)
    return digest(proof.parent / name) if (proof.parent / name).is_file() else None


def digest(module: Path, name: str | None = None) -> str | None:
    """Digest of one function, class or constant, or of the whole module; None when the module has no such name."""
    lines = None if name is None else span(module, name)
    return None if name is not None and lines is None else digests.digest(module, lines)


def span(module: Path, name: str) -> tuple[int, int] | None:
    """First and last line of a function, class or constant, decorators included."""
    node: ast.AST = _parsed(module.read_text(encoding="utf-8"))
    for part in name.split("."):
        found = [child for child in getattr(node, "body", []) if part in _names(child)]
        if not found:
            return None
        node = found[-1]
    first = min([node.lineno, *(line.lineno for line in getattr(node, "decorator_list", []))])  # type: ignore[attr-defined]
    return first, node.end_lineno  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module:
    """A module's tree: a proof asks for one name after another."""
    return ast.parse(text)


def _names(node: ast.AST) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)} | {getattr(node, "name", "")}


def resting(call: Callable[[], object]) -> list[Path]:
    """The proofs of modules that took part while something ran."""
    home, seen = str(package()), set[str]()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        """Hears of calls alone, since no frame gets a watcher of its own: a profiler would hear of every return besides."""
        del event, argument
        if frame.f_code.co_filename.startswith(home):
            seen.add(frame.f_code.co_filename)

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        call()
    finally:
        sys.settrace(before)
    return [proof for proof in proof_files() if str(proved_module(proof)) in seen]


def checks() -> dict[str, Checklist]:
    """For each part of the package that has proofs, the check that they are about what is installed."""
    found: dict[str, Checklist] = {}
    for proof in proof_files():
        part = proof.relative_to(package()).parts[0]
        found.setdefault(part, Checklist())
    for part, checklist in found.items():
        checklist("proofs", part=(part,))(_every_proof_is_about_the_module_that_is_installed)
    return found


def _every_proof_is_about_the_module_that_is_installed(bench: Bench, part: str) -> str:
    files, items = proof_files(package() / part), 0
    bench.must(files, "no proof came with the package.")
    for proof in files:
        current, own = now(proof), f"module `{proved_module(proof).name}`"
        recorded = listed(proof)
        bench.must(own in recorded, f"{proof.name} is not bound to its module.")
        for item, wanted in recorded.items():
            bench.must(current[item] == wanted, f"{proof.name}: {item} is not what was proved.")
        items += len(recorded)
    return f"{len(files)} proofs, {items} digests"
