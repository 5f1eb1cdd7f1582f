"""All a page says about one release: its story, its promise, its evidence, its origin."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from types import ModuleType
from typing import Any

from sabun.asking import renamed
from sabun.asking.directory import room_named
from sabun.errors import ParameterError
from sabun.ledger.wording import at_least
from sabun.privacy.amounts import plain
from sabun.release import Provenance, Release
from sabun.release.signature import TrustedKeys
from sabun.reports.proofs import Proof, proofs
from sabun.telling import generic
from sabun.telling.field_words import SPELLINGS, column_words, term
from sabun.telling.language import retold, said, speaking
from sabun.telling.measures import labels_in, measure_in
from sabun.telling.reading import Unfit
from sabun.telling.rounding import day
from sabun.telling.story import Answer, Chart, Grid, Story
from sabun.telling.words import count, guess, promise, shown, unit_word

__all__ = ["Chapter", "Facts", "Renderer", "charts_beside", "facts", "renderer_of"]

Renderer = Callable[[Release], Story]

_MOST_ROWS = 200
_OURS = ("mechanism", "relation", "study.relation", "study.target.kind", "study.target.unit", "study.unit")
_CHOSEN = {"sizes": "layers"}
"""Choices whose names are those of results of another kind."""
_BIN = re.compile(r"(-?[\d.]+) to (-?[\d.]+)")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One release, ready to be written down.

    Args:
        story: What depends on the kind.
        warnings: Loud sentences at the top; empty for a sound release.
        figures: Names and values of the guarantee's terms.
        promise: The guarantee in sentences.
        guess: The best guesser's share of right guesses in per cent, or None when there is no bound.
        assumptions: What must hold outside the code.
        own_proofs: Proofs of the room.
        hall_proofs: Proofs of what every release passes through.
        versions: A sentence when the release was made with another version than the proofs shown.
        origin: Where it comes from.
        parameters: The public choices.
        signature: Who stands behind the file.
        notes: What the publisher wrote to the reader.
    """

    story: Story
    warnings: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]
    promise: tuple[str, ...]
    guess: float | None
    assumptions: tuple[str, ...]
    own_proofs: tuple[Proof, ...]
    hall_proofs: tuple[Proof, ...]
    versions: str
    origin: Grid
    parameters: Grid
    signature: str
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One release in a page of several.

    Args:
        name: Short name for the address inside the page: letters, digits, hyphens.
        question: What was asked.
        facts: The release.
        answer: The answer to the question, where it is more than what every release of the kind says.
        file: Name of the release file beside the page, or empty.
        remarks: Sentences that stand under the answer.
        charts: Pictures beyond those of the release.
    """

    name: str
    question: str
    facts: Facts
    answer: Answer | None = None
    file: str = ""
    remarks: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()

    @property
    def said(self) -> Answer:
        """What stands in large letters."""
        return self.facts.story.answer if self.answer is None else self.answer


@renamed(trusted="trusted_key")
def facts(release: Release, *, trusted_key: TrustedKeys = None, lang: str | None = None) -> Facts:
    """Gathers what a page says; reads the release and the installed package, nothing else.

    Args:
        release: What to tell about.
        trusted_key: Public keys the reader trusts; with them, a release that none of them signed is refused.
        lang: "en" or "ja"; that of the locale when left out.

    Raises:
        ReleaseError: The signature does not fit the content, or is not by a trusted key.
    """
    with speaking(lang):
        return _facts(release, trusted_key)


def _facts(release: Release, trusted_key: TrustedKeys) -> Facts:
    own, hall = proofs(release.provenance.kind)
    return Facts(
        story=_story(release),
        warnings=_warnings(release),
        figures=_figures(release),
        promise=promise(generic.promised(release)),
        guess=guess(*release.guarantee.cost),
        assumptions=tuple(map(retold, release.guarantee.assumptions)),
        own_proofs=own,
        hall_proofs=hall,
        versions=_versions(release),
        origin=_origin(release),
        parameters=_parameters(release),
        signature=_signature(release, trusted_key),
        notes=tuple(map(retold, release.provenance.notes)),
    )


def renderer_of(kind: str) -> Renderer | None:
    """How releases of a kind are told by the room that its first word names."""
    part = _telling(kind)
    return None if part is None else part.story


def charts_beside(release: Release, public: Any) -> tuple[Chart, ...]:
    """Pictures of a public table that belongs to a release, from a room that knows of one (`story.beside`).

    Raises:
        ParameterError: Releases of this kind belong to no public table, or this table is another one.
    """
    beside = getattr(_telling(release.provenance.kind), "beside", None)
    if beside is None:
        kind = release.provenance.kind
        raise ParameterError(f"public must be left out for a release without weights; this one is {kind!r:.60}.")
    pictures: tuple[Chart, ...] = beside(release, public)
    return pictures


def _telling(kind: str) -> ModuleType | None:
    room = room_named(kind.partition(".")[0])
    return None if room is None else room.part("story")


def _story(release: Release) -> Story:
    renderer = renderer_of(release.provenance.kind)
    if renderer is not None:
        try:
            return renderer(release)
        except Unfit:
            pass  # another version's shape: the general page still shows everything
    return generic.story(release)


def _warnings(release: Release) -> tuple[str, ...]:
    found = []
    if release.guarantee.simulated:
        found.append(
            said("NOT PRIVATE: this result was drawn with a seeded coin, for trying things out only. Do not publish it.")
        )
    if math.isinf(release.guarantee.cost[0]):
        found.append(said("NO GUARANTEE: no finite epsilon holds for everything in this result together."))
    return tuple(found)


def _figures(release: Release) -> tuple[tuple[str, str], ...]:
    promised = generic.promised(release)
    epsilon, delta = promised.cost
    joint = said(" (all together)") if promised.scope == "per-parameter" else ""
    relations = {"replace-one": said("replace-one"), "add-remove": said("add-remove"), "local": said("local")}
    return (
        (said("epsilon") + joint, plain(epsilon)),
        (said("delta") + joint, plain(delta)),
        (said("protects"), said("one {unit}", unit=unit_word(promised.unit))),
        (said("relation"), relations[promised.relation]),
        (said("holds against"), said("everybody, the collector too") if promised.model == "local" else said("every reader")),
    )


def _versions(release: Release) -> str:
    made, here = release.provenance.software.get("sabun", said("unknown")), version("sabun")
    if made == here:
        return ""
    return said(
        "The release was made with Sabun {made}; the proofs below are those of Sabun {here}, which made this page.",
        made=made,
        here=here,
    )


def _origin(release: Release) -> Grid:
    origin = release.provenance
    rows = [
        (said("kind"), _kind(origin.kind)),
        (said("mechanism"), _mechanism(origin.mechanism)),
        (said("made"), origin.time.replace("T", " ").replace("Z", " UTC")),
    ]
    rows.append((said("software"), ", ".join(f"{name} {number}" for name, number in origin.software.items())))
    rows.append((said("ledger"), _charge(origin)))
    if origin.receipt is not None:
        rows.append((said("ledger row"), origin.receipt.entry_hash))
        rows.append((said("ledger note"), origin.receipt.note or said("none")))
    rows.append((said("schema hash"), origin.schema_hash or said("none: the table came without a schema file")))
    return Grid(title=said("Origin"), columns=(said("fact"), said("value")), rows=tuple(rows))


def _kind(kind: str) -> str:
    """The kind as the file has it, behind the room's name where a reader of the page's language has another word for it."""
    room = room_named(kind.partition(".")[0])
    title = "" if room is None else room.title
    return kind if (own := retold(title)) == title else said("{words} ({unit})", words=own, unit=kind)


def _mechanism(words: str) -> str:
    """A mechanism in the page's language; where a question stands before it, piece by piece."""
    what, _, how = words.partition(": ")
    if how and retold(what) != what and retold(how) != how:
        return said("{what}: {how}", what=retold(what), how=retold(how))
    return retold(words)


def _charge(origin: Provenance) -> str:
    """Who paid for it; what `Provenance.charge` says, in the page's language."""
    if (receipt := origin.receipt) is None:
        return said("not charged to a ledger")
    paid = f"epsilon {at_least(receipt.epsilon)}" + (f", delta {at_least(receipt.delta)}" if receipt.delta else "")
    return said("charged to {ledger!r} as entry {entry} ({paid})", ledger=receipt.ledger_name, entry=receipt.entry, paid=paid)


def _parameters(release: Release) -> Grid:
    found = list(generic.leaves(release.provenance.parameters))
    rows = tuple(
        (shown(term(_CHOSEN.get(name, name))), shown(_written(release, name, leaf))) for name, leaf in found[:_MOST_ROWS]
    )
    left = len(found) - _MOST_ROWS
    note = said("{more} in the release file.", more=count(left, "more choice")) if left > 0 else ""
    return Grid(title=said("Public choices"), columns=(said("name"), said("value")), rows=rows, note=note)


def _written(release: Release, name: str, leaf: Any) -> Any:
    """A choice as people write it: labels and dates instead of their codes, our own words in the page's language."""
    first, _, rest = name.partition(".")
    if name in _OURS and isinstance(leaf, str):
        return retold(leaf)
    if name == "groups" and release.provenance.parameters.get("by") is None and leaf == ("all",):
        return said("all")
    if name == "study.features.columns" and isinstance(leaf, tuple):
        return [column_words(one) if isinstance(one, Mapping) else one for one in leaf]
    if first == "where" and (labels := labels_in(release, rest)):
        return list(labels)
    if first == "where" and (ranges := _ranges(release, rest, leaf)):
        return ranges
    if first == "persons" and isinstance(leaf, str) and rest.startswith("rules."):
        return retold(leaf)
    if name == "persons.spelling" and isinstance(leaf, str):
        return said(SPELLINGS[leaf]) if leaf in SPELLINGS else leaf
    column = release.provenance.parameters.get("column") if first in ("bins", "edges") else rest if first == "where" else None
    return _dated(leaf) if measure_in(release, column).dates else leaf


def _ranges(release: Release, column: str, leaf: Any) -> list[str]:
    """What a condition takes of a column, in words; nothing where the file has something else there."""
    try:
        return [measure_in(release, column).within(low, high) for low, high in leaf]
    except (TypeError, ValueError, ArithmeticError):
        return []


def _dated(leaf: Any) -> Any:
    if isinstance(leaf, list | tuple):
        return [_dated(one) for one in leaf]
    if isinstance(leaf, str) and (bin_ := _BIN.fullmatch(leaf)) is not None:
        return said("{low} to {high}", low=_dated(float(bin_[1])), high=_dated(float(bin_[2])))
    return day(math.ceil(leaf)) if isinstance(leaf, float) else leaf


def _signature(release: Release, trusted: TrustedKeys) -> str:
    if release.signature is None and trusted is None:
        return said(
            "Not signed: nobody stands behind this file, and a change in it would not be noticed. What it says about a ledger "
            "is the file's own claim; only the owner of the ledger can confirm it."
        )
    signer = release.verify(trusted)
    if signer.trusted:
        return said("Signed by the trusted key {key}; nothing was changed since.", key=signer.fingerprint)
    return said(
        "Nothing was changed since it was signed by the key {key}. Whose key that is, this page cannot tell: compare the "
        "fingerprint with the publisher's.",
        key=signer.fingerprint,
    )
