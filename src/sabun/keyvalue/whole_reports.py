"""Many reports of one size as one array of bytes: which look right, and what they say; see `client/wire.py` for the format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sabun.keyvalue.client import assigned_indices
from sabun.keyvalue.client.probabilities import JOINT, PER_KEY
from sabun.keyvalue.client.terms import Terms
from sabun.keyvalue.client.wire import HEADER, VERSION, report_size
from sabun.keyvalue.collector import ID, Collector
from sabun.keyvalue.statistic import Answers

__all__ = ["Bytes", "answers_of", "looks_right", "payload_of"]

Bytes: TypeAlias = NDArray[np.uint8]
"""One report in each row."""

_SYMBOLS = 1 << 20
"""Symbols written out at a time."""

_SHIFTS = np.array([6, 4, 2, 0], dtype=np.uint8)


def payload_of(terms: Terms) -> int:
    """Bytes after the header."""
    return report_size(terms) - HEADER


def looks_right(collector: Collector, reports: Bytes) -> NDArray[np.bool_]:
    """Which of them the collector would take; where this says no, the collector is to be asked."""
    terms = collector.terms
    right = (reports[:, 0] == VERSION) & (reports[:, 1 : ID.start] == np.frombuffer(terms.short_id, dtype=np.uint8)).all(axis=1)
    rounds = _numbers(reports[:, ID.start : ID.start + 4])
    right &= (rounds < terms.rounds) if collector.together else (rounds == collector.round)
    if collector.enrolled is not None:
        ids = np.ascontiguousarray(reports[:, ID.start + 4 : HEADER]).view("S16").ravel()
        right &= np.isin(ids, collector.enrolled_ids)
    right &= _possible(terms, reports[:, HEADER:])
    return right if collector.assigns else np.zeros_like(right)


def _possible(terms: Terms, said: Bytes) -> NDArray[np.bool_]:
    keys = len(terms.keys)
    if terms.protocol in PER_KEY:
        return np.concatenate([_possible_symbols(terms, part) for part in _portions(said, keys)])
    if terms.protocol in JOINT:
        return _numbers(said) <= 2 * keys
    right = said[:, -1] <= terms.signs
    return right & (_numbers(said[:, :4]) < keys) if terms.index_mode == "chosen" else right


def _possible_symbols(terms: Terms, said: Bytes) -> NDArray[np.bool_]:
    symbols = _symbols(said)
    right: NDArray[np.bool_] = (symbols <= (1 if terms.valueless else 2)).all(axis=1) & (
        symbols[:, len(terms.keys) :] == 0
    ).all(axis=1)
    if terms.subsets:
        right &= (symbols > 0).sum(axis=1) <= terms.subset.width
    return right


def answers_of(collector: Collector, keys: NDArray[Any], said: NDArray[Any]) -> Iterator[Answers]:
    """What reports say that count.

    Args:
        collector: Whose reports they are.
        keys: Round and id of each.
        said: What stands after the header.
    """
    terms = collector.terms
    size = max(1, _SYMBOLS // (len(terms.keys) if terms.protocol in PER_KEY else 1))
    for start in range(0, len(keys), size):
        part = slice(start, start + size)
        head, body = _bytes(keys[part]), _bytes(said[part])
        rounds = _numbers(head[:, :4]) if collector.together else np.zeros(len(head), dtype=np.int64)
        for number in np.unique(rounds).tolist():
            chosen = rounds == number
            yield _answers(collector, head[chosen, 4:], body[chosen], number)


def _answers(collector: Collector, ids: Bytes, said: Bytes, part: int) -> Answers:
    terms = collector.terms
    if terms.protocol in PER_KEY:
        return Answers(symbols=_symbols(said)[:, : len(terms.keys)].astype(np.int64), part=part)
    if terms.protocol in JOINT:
        return Answers(symbols=_numbers(said), part=part)
    if terms.index_mode == "chosen":
        places = _numbers(said[:, :4])
    else:
        seed, raw = collector.seed or b"", ids.tobytes()
        places = np.array(assigned_indices(terms, (raw[at : at + 16] for at in range(0, len(raw), 16)), seed), dtype=np.int64)
    return Answers(symbols=said[:, -1].astype(np.int64), indices=places, part=part)


def _bytes(fields: NDArray[Any]) -> Bytes:
    """Byte strings of one length as rows of bytes."""
    return np.frombuffer(fields.tobytes(), dtype=np.uint8).reshape(len(fields), fields.dtype.itemsize)


def _numbers(four: Bytes) -> NDArray[np.int64]:
    """Whole numbers of four bytes, big-endian."""
    return np.ascontiguousarray(four).view(">u4").ravel().astype(np.int64)


def _symbols(said: Bytes) -> Bytes:
    """Two bits each."""
    return ((said[:, :, None] >> _SHIFTS) & np.uint8(3)).reshape(len(said), -1)


def _portions(said: Bytes, keys: int) -> list[Bytes]:
    size = max(1, _SYMBOLS // keys)
    return [said[start : start + size] for start in range(0, max(len(said), 1), size)]
