"""What a ledger was charged for, as people say it: its rows have words for programs."""

from __future__ import annotations

import re

from sabun.asking.directory import room_named
from sabun.telling.language import phrase, retold, said

__all__ = ["in_full", "in_short"]

_KINDS = {
    "subspace": phrase("choice of columns"),
    "classifier": phrase("classifier"),
    "regression": phrase("linear model"),
}
"""What is released, where its own word is for programs; by its room where that word is a method's."""

_DIGEST = re.compile(r" \(parameters ([0-9a-f]{64})\)$")


def in_short(purpose: str) -> str:
    """A purpose as people say it, without the digest of its parameters, which is for machines."""
    text = _DIGEST.sub("", purpose)
    found = re.fullmatch(r"([a-z]+)\.([a-z-]+)(?: on (.+))?", text)
    room = None if found is None else room_named(found[1])
    if found is None or room is None:
        return text
    told = {"room": retold(room.title), "what": retold(_KINDS.get(room.name) or _KINDS.get(found[2], found[2]))}
    if found[3] is None:
        return said("{room}: {what}", **told)
    return said("{room}: {what} ({columns})", **told, columns=retold(found[3]))


def in_full(purpose: str) -> str:
    """The same with the digest, which tells questions of the same words apart."""
    found = _DIGEST.search(purpose)
    return in_short(purpose) + ("" if found is None else said(" (parameters {digest})", digest=found[1]))
