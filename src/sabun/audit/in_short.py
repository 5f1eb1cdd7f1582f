"""A promise on a few lines: what is claimed, where it is proved, what was tried, what is taken for granted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from sabun.asking.evidence import Finding
from sabun.audit import proofs
from sabun.audit.named import kind_of

__all__ = ["Summary", "summaries"]


@final
@dataclass(frozen=True, kw_only=True)
class Summary:
    """One promise.

    Args:
        room: The room, or the part of the hall, that makes it.
        mechanism: What makes it.
        claim: What the nearest of its proofs claims.
        proofs: The proofs it rests on: files below the package, the nearest first.
        tested: How many findings there are about it, by how far they go, and how many failed.
        assumes: What it takes for granted.
        whole_claim: All that the nearest proof claims.
        preconditions: What that proof wants of the code and of whoever calls it.
    """

    room: str
    mechanism: str
    claim: str
    proofs: tuple[str, ...]
    tested: dict[str, int]
    assumes: tuple[str, ...]
    whole_claim: str
    preconditions: str


def summaries(findings: Sequence[Finding]) -> Iterator[Summary]:
    """A summary for each promise whose proofs were looked at."""
    for one in findings:
        if one.proofs:
            files = _nearest_first(one)
            nearest = proofs.package() / files[0]
            yield Summary(
                room=one.room,
                mechanism=one.mechanism,
                claim=proofs.claim(nearest),
                proofs=tuple(files),
                tested=dict(Counter(map(_result, _about(one, findings)))),
                assumes=one.assumes,
                whole_claim=proofs.section(nearest, "Claim"),
                preconditions=proofs.section(nearest, "Preconditions"),
            )


def _result(finding: Finding) -> str:
    return "failed" if finding.passed is False else finding.absent or finding.shown or ""


def _about(one: Finding, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings about the same: those that name a class name nothing else."""
    own = set(one.mechanism.split(", "))
    for other in findings:
        names = set(other.mechanism.split(", "))
        whole = any(kind_of(other.room, name) == "classes" for name in names)
        if other.room == one.room and (names <= own if whole else names & own):
            yield other


def _nearest_first(one: Finding) -> list[str]:
    """Proofs of its own room before those of the hall; before all, the one that is called like it or speaks of privacy."""
    name = _letters(one.mechanism)

    def distance(file: str) -> tuple[bool, bool, bool]:
        stem = _letters(file.rpartition("/")[2].removesuffix(proofs.ENDING)).rstrip("s")
        words = proofs.claim(proofs.package() / file)
        return (
            not file.startswith(f"{one.room}/"),
            stem not in name,
            "DP" not in words and "differentially private" not in words,
        )

    return sorted(one.proofs, key=distance)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())
