"""What padding cuts off: a padded report tells of at most `padding_length` keys, so whoever holds more is seen in part."""

from __future__ import annotations

import math

import numpy as np

from sabun.keyvalue.advisor import shares_kept
from sabun.keyvalue.client.terms import Terms

__all__ = ["cut_bound", "cut_note", "most_held", "shares_seen"]


def most_held(terms: Terms) -> int:
    """How many keys a person may hold, as far as the study says."""
    keys = len(terms.keys)
    return keys if terms.keys_per_user is None else min(terms.keys_per_user, keys)


def cut_bound(terms: Terms) -> float:
    """How many times too small a frequency may be on average: 1 where nothing is cut off, NaN where nobody knows."""
    if terms.sampled or terms.padding_length == len(terms.keys):
        return 1.0
    return math.nan if terms.keys_per_user is None else max(1.0, terms.keys_per_user / terms.padding_length)


def shares_seen(terms: Terms, f: float) -> dict[str, float]:
    """Which share of a key's holders is seen, at best and at worst, by what is supposed of people; all where none are cut.

    At best people hold keys of that frequency independently, as the advisor reckons; less cannot be kept than at worst.
    """
    if cut_bound(terms) == 1:
        return {"": 1.0}
    most = most_held(terms)
    kept = shares_kept(len(terms.keys), most, f)
    return {
        f"people who hold keys independently of each other, at most {most} each": float(
            np.interp(terms.padding_length, list(kept), list(kept.values()))
        ),
        f"people who hold {most} keys each, or none": terms.padding_length / most,
    }


def cut_note(terms: Terms) -> str:
    """A warning where people may hold more keys than are padded to; empty where they may not."""
    if cut_bound(terms) == 1:
        return ""
    most = most_held(terms)
    return (
        f"people may hold {most} keys, and padding to {terms.padding_length} cuts keys off whoever holds more: frequencies "
        "come out too small, by a bias that more people do not lessen and that intervals do not hold. "
        f"A plan says how large it may be; padding to {most} has none, and more noise."
    )
