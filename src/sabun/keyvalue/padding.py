"""What padding cuts off: a padded report tells of at most `padding_length` keys, so whoever holds more is seen in part."""

from __future__ import annotations

import math

import numpy as np

from sabun.keyvalue.advisor import shares_kept
from sabun.keyvalue.client.terms import Terms

__all__ = ["cut_bound", "cut_note", "most_held", "share_kept"]


def most_held(terms: Terms) -> int:
    """How many keys a person may hold, as far as the study says."""
    keys = len(terms.keys)
    return keys if terms.keys_per_user is None else min(terms.keys_per_user, keys)


def cut_bound(terms: Terms) -> float:
    """How many times too small a frequency may be on average: 1 where nothing is cut off, NaN where nobody knows."""
    if terms.sampled or terms.padding_length == len(terms.keys):
        return 1.0
    return math.nan if terms.keys_per_user is None else max(1.0, terms.keys_per_user / terms.padding_length)


def share_kept(terms: Terms, f: float) -> float:
    """Which share of a key's holders is seen, as the advisor reckons it: people hold keys of that frequency independently."""
    if cut_bound(terms) == 1:
        return 1.0
    kept = shares_kept(len(terms.keys), most_held(terms), f)
    return float(np.interp(terms.padding_length, list(kept), list(kept.values())))


def cut_note(terms: Terms) -> str:
    """A warning where people may hold more keys than are padded to; empty where they may not."""
    most = most_held(terms)
    if terms.sampled or terms.padding_length >= most:
        return ""
    return (
        f"people may hold {most} keys, and padding to {terms.padding_length} cuts keys off whoever holds more: frequencies "
        "come out too small, by a bias that more people do not lessen and that intervals do not hold. "
        f"A plan says about how large it is; padding to {most} has none, and more noise."
    )
