"""Reports as they come: bytes to arrays, each bad one refused by itself; what `sabun.keyvalue.Collector` checks, at once.

What is kept of a report is its answer in a fixed number of bytes: 3 · index + symbol for protocols that ask about one key, else
the payload as it came. `answers_of` reads many of them back for the counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.keyvalue import Study
from sabun.keyvalue.client import assigned_indices
from sabun.keyvalue.client.probabilities import JOINT, PER_KEY
from sabun.keyvalue.client.wire import HEADER, header, report_size
from sabun.keyvalue.statistic import Answers

__all__ = ["REASONS", "Arrival", "answers_of", "read_reports"]

REASONS = {
    "length": "it has another size than reports of this study",
    "version": "it is in another version of the wire format",
    "study": "it belongs to another study",
    "round": "it answers another round",
    "index": "it names a key that the study does not have",
    "symbol": "it says what no device of this study says",
    "enrolment": "its id was not issued",
    "conflict": "its id came before with another answer",
    "early": "the round is not open yet",
    "late": "the round is closed",
}
"""Why a report is refused: codes that clients may rely on, and what they mean."""
_CODES = tuple(REASONS)
_WORD = np.dtype(">u4")
_ID = slice(21, HEADER)


@final
@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One request's reports, taken apart.

    Args:
        ids: Report ids of those that are well formed.
        answers: What they say.
        positions: Where they stood in the request.
        rejected: Position and reason of the others.
    """

    ids: Sequence[bytes]
    answers: Sequence[bytes]
    positions: Sequence[int]
    rejected: Sequence[tuple[int, str]] = field(default=())


def read_reports(study: Study, number: int, content: bytes | Sequence[bytes], *, seed: bytes = b"") -> Arrival:
    """Takes reports apart: bytes back to back, or one by one.

    Args:
        study: The study they were sent for.
        number: The round they were sent for.
        content: The reports. What is left over after the last whole one counts as one that is cut off.
        seed: The study's seed, where it committed to one.
    """
    size = report_size(study.terms)
    if isinstance(content, bytes):
        whole = len(content) // size
        body, places = content[: whole * size], np.arange(whole)
        rejected = [(whole, "length")] if len(content) % size else []
    else:
        body = b"".join(report for report in content if len(report) == size)
        places = np.array([place for place, report in enumerate(content) if len(report) == size], dtype=np.intp)
        rejected = [(place, "length") for place, report in enumerate(content) if len(report) != size]
    rows = np.frombuffer(body, dtype=np.uint8).reshape(-1, size)
    reasons = _reasons(study, number, rows)
    good = reasons < 0
    rejected += [(int(place), _CODES[code]) for place, code in zip(places[~good], reasons[~good].tolist(), strict=True)]
    rows, places = (rows, places) if good.all() else (rows[good], places[good])
    ids = _pieces(rows[:, _ID], 16)
    return Arrival(ids=ids, answers=_answers(study, rows, ids, seed), positions=places.tolist(), rejected=sorted(rejected))


def _reasons(study: Study, number: int, rows: NDArray[np.uint8]) -> NDArray[np.int8]:
    """For each row the first reason to refuse it, -1 for none."""
    terms, keys = study.terms, len(study.terms.keys)
    found = np.full(len(rows), -1, dtype=np.int8)

    def refuse(bad: NDArray[np.bool_], reason: str) -> None:
        found[bad & (found < 0)] = _CODES.index(reason)

    same = rows[:, :21] == np.frombuffer(header(terms.short_id, number, b""), dtype=np.uint8)
    refuse(~same[:, 0], "version")
    refuse(~same[:, 1:17].all(axis=1), "study")
    refuse(~same[:, 17:].all(axis=1), "round")
    if terms.protocol in PER_KEY:
        symbols = _symbols(rows[:, HEADER:])
        refuse((symbols == 3).any(axis=1) | symbols[:, keys:].any(axis=1), "symbol")
        if terms.valueless:
            refuse((symbols == 2).any(axis=1), "symbol")
        if terms.subsets:
            refuse((symbols > 0).sum(axis=1) > terms.subset.width, "symbol")
    elif terms.protocol in JOINT:
        refuse(_words(rows[:, HEADER:]) > 2 * keys, "symbol")
    else:
        if terms.index_mode == "chosen":
            refuse(_words(rows[:, HEADER : HEADER + 4]) >= keys, "index")
        refuse(rows[:, -1] > terms.signs, "symbol")
    return found


def _answers(study: Study, rows: NDArray[np.uint8], ids: Sequence[bytes], seed: bytes) -> list[bytes]:
    terms = study.terms
    if not terms.sampled:
        return _pieces(rows[:, HEADER:], rows.shape[1] - HEADER)
    if terms.index_mode == "chosen":
        index = _words(rows[:, HEADER : HEADER + 4])
    else:
        index = np.array(assigned_indices(terms, ids, seed), dtype=np.int64)
    return _pieces((3 * index + rows[:, -1]).astype(_WORD), 4)


def answers_of(study: Study, answers: bytes, *, part: int) -> Answers:
    """What was kept of many reports, for the counters.

    Args:
        study: Their study.
        answers: The bytes of all of them, back to back.
        part: Whose counters they go to (PrivKVM's rounds have counters each).
    """
    terms = study.terms
    if terms.protocol in PER_KEY:
        width = report_size(terms) - HEADER
        table = _symbols(np.frombuffer(answers, dtype=np.uint8).reshape(-1, width))
        return Answers(symbols=table[:, : len(terms.keys)], part=part)
    words = np.frombuffer(answers, dtype=_WORD).astype(np.int64)
    return Answers(symbols=words % 3, indices=words // 3, part=part) if terms.sampled else Answers(symbols=words, part=part)


def _symbols(payload: NDArray[np.uint8]) -> NDArray[Any]:
    """Two bits per key, the first key in the highest bits."""
    pairs = payload[:, :, None] >> np.array([6, 4, 2, 0], dtype=np.uint8) & 3
    return pairs.reshape(len(payload), 4 * payload.shape[1])


def _words(columns: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.ascontiguousarray(columns).view(_WORD)[:, 0].astype(np.int64)


def _pieces(rows: NDArray[Any], width: int) -> list[bytes]:
    content = rows.tobytes()
    return [content[place : place + width] for place in range(0, len(content), width)]
