"""What stands behind a guarantee: the proofs that come with the package and the tests they name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

__all__ = ["Proof", "proof_named", "proofs"]

HALL = ("release", "ledger", "privacy")
_ENDING = ".proof.md"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One proof file.

    Args:
        name: Where it lies in the package, e.g. "sabun/ledger/ledger.proof.md".
        title: Its first line.
        claim: What it proves, in its own words.
        tests: The test files it names.
    """

    name: str
    title: str
    claim: str
    tests: tuple[str, ...]


def proofs(kind: str) -> tuple[tuple[Proof, ...], tuple[Proof, ...]]:
    """The proofs of the room a release comes from, then those of the hall every release passes through."""
    room = kind.partition(".")[0]
    everything = _all()
    own = tuple(proof for proof in everything if room not in HALL and proof.name.startswith(f"sabun/{room}/"))
    hall = tuple(proof for proof in everything if proof.name.split("/")[1] in HALL)
    return own, hall


def proof_named(name: str) -> Proof | None:
    """The proof of that name, if it came with the package."""
    return next((proof for proof in _all() if proof.name == name), None)


@cache
def _all() -> tuple[Proof, ...]:
    return tuple(sorted(_below(resources.files("sabun"), "sabun"), key=lambda proof: proof.name))


def _below(folder: Traversable, name: str) -> list[Proof]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.name.startswith((".", "_")):
            found += _below(entry, f"{name}/{entry.name}")
        elif entry.name.endswith(_ENDING):
            found.append(_read(f"{name}/{entry.name}", entry.read_text(encoding="utf-8")))
    return found


def _read(name: str, text: str) -> Proof:
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL))
    title = re.search(r"^# (.+)$", text, flags=re.MULTILINE)
    tests = re.findall(r"tests/[\w/]+(?:\.py)?|\btest_\w+\.py", sections.get("Tests that stand behind it", ""))
    folder = "tests/" + "/".join(name.split("/")[1:-1])  # where a name without a folder is looked for
    return Proof(
        name=name,
        title=title[1].strip() if title else name,
        claim=" ".join(sections.get("Claim", "").split()),
        tests=tuple(dict.fromkeys(test if "/" in test else f"{folder}/{test}" for test in tests)),
    )
