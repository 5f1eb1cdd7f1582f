"""The home organisation's own release beside its own data: the same rows twice.

Numbers cannot tell: similar tables of other organisations look as much alike. What tells is a name, or who paid.
"""

from __future__ import annotations

import os

from sabun.errors import ParameterError
from sabun.ledger import Ledger, Receipt
from sabun.regression.contribution import Contribution, read_one
from sabun.release import Release

__all__ = ["without_own"]


def without_own(contributions: tuple[Contribution, ...], own: object) -> tuple[tuple[Contribution, ...], tuple[str, ...]]:
    """The releases that were not made of the home data, with a sentence about each of the others.

    Args:
        contributions: All releases.
        own: An organisation's name, a ledger row's hash, a `Receipt`, a `Release`, the path of one, or a `Ledger`.

    Raises:
        ParameterError: None of them is meant, though a certain one should be; or nothing would be left.
    """
    marks = _marks(own)
    found = [place for place, one in enumerate(contributions) if marks & one.marks]
    if not found and not isinstance(own, Ledger):
        known = ", ".join(repr(one.organisation) for one in contributions)
        raise ParameterError(
            f"own must be one of the releases; got {_shown(own)}, and they are of {known}. "
            "Leave it out if none of them was made of the home data."
        )
    if len(found) == len(contributions):
        raise ParameterError(
            "releases must hold one that was not made of the home data; all are the home organisation's own. "
            "Ask others for theirs."
        )
    notes = tuple(
        f"Left out the release of {contributions[place].organisation!r}: it was made of the home data, whose rows count once."
        for place in found
    )
    return tuple(one for place, one in enumerate(contributions) if place not in found), notes


def _marks(own: object) -> set[str | bytes | None]:
    if isinstance(own, Ledger):
        return {entry.entry_hash for entry in own.entries()}
    if isinstance(own, Receipt):
        return {own.entry_hash}
    if isinstance(own, Release | os.PathLike):
        return {read_one(own, label="own").numbers}
    if isinstance(own, str) and own:
        return {own}
    raise ParameterError(
        f"own must be a name, the hash of a ledger row, a Receipt, a Release, a path or a Ledger; got {type(own).__name__}."
    )


def _shown(own: object) -> str:
    return repr(own)[:80] if isinstance(own, str | os.PathLike) else f"a {type(own).__name__}"
