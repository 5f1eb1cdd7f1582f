"""One report as bytes of a fixed size, or as JSON for people who debug.

    ver u8 | task 16 bytes | round u32 | report id 16 bytes | [index u32] | symbol

All numbers big-endian. The symbol is one byte (sampled protocols: 0 nothing, 1 plus, 2 minus, of `rr-f` 0 nothing and 1 yes;
the index is there when the device chose it), a u32 (joint protocols: 0 nothing, 1 + 2k plus and 2 + 2k minus for key k), or two
bits per key (unary encoding and sets: 0 nothing, 1 plus, 2 minus, of `set-f` 0 nothing and 1 yes; key 0 in the highest bits of
the first byte). The size depends on the study alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .probabilities import JOINT, PER_KEY
from .refusals import ReportError
from .terms import Terms

__all__ = [
    "HEADER",
    "VERSION",
    "Report",
    "from_json",
    "header",
    "pack",
    "pack_symbols",
    "payload",
    "report_size",
    "to_json",
    "unpack",
    "unpack_symbols",
]

VERSION = 1
_VERSION = bytes([VERSION])
HEADER = 37
_DIGITS = b"0123".ljust(256, b"x")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What one device says in one round.

    Attributes:
        round: Which round it answers.
        report_id: 16 bytes bound to the credential; the same in every round of a study.
        index: The key it is about, where the device chose it; otherwise None.
        symbol: A whole number, or for unary encoding and sets one of 0, 1, 2 per key.
    """

    round: int
    report_id: bytes
    index: int | None
    symbol: int | tuple[int, ...]


def payload_size(terms: Terms) -> int:
    """Bytes after the header."""
    if terms.sampled:
        return 5 if terms.index_mode == "chosen" else 1
    return 4 if terms.protocol in JOINT else -(-len(terms.keys) // 4)


def report_size(terms: Terms) -> int:
    """Bytes of a report: the same for every person of a study."""
    return HEADER + payload_size(terms)


def header(task: bytes, round_number: int, identity: bytes) -> bytes:
    """What stands before the payload: nothing in it depends on what a person holds."""
    return _VERSION + task + round_number.to_bytes(4, "big") + identity


def payload(terms: Terms, index: int | None, symbol: int | tuple[int, ...]) -> bytes:
    """The symbol, with the key it is about where the device chose it."""
    if isinstance(symbol, tuple):
        return pack_symbols(symbol)
    if terms.protocol in JOINT:
        return symbol.to_bytes(4, "big")
    return (b"" if index is None else index.to_bytes(4, "big")) + bytes((symbol,))


def pack(terms: Terms, report: Report) -> bytes:
    """The report as bytes."""
    return header(terms.short_id, report.round, report.report_id) + payload(terms, report.index, report.symbol)


def unpack(terms: Terms, content: bytes) -> Report:
    """Reads a report; never repairs one.

    Raises:
        ReportError: The bytes are no report of this study.
    """
    if len(content) != report_size(terms):
        raise ReportError(f"a report of this study must have {report_size(terms)} bytes; got {len(content)}.")
    if content[0] != VERSION:
        raise ReportError(f"version must be {VERSION}; got {content[0]}.")
    if content[1:17] != terms.short_id:
        raise ReportError("the report must belong to this study; it names another.")
    round_number = int.from_bytes(content[17:21], "big")
    if round_number >= terms.rounds:
        raise ReportError(f"round must be below {terms.rounds}; got {round_number}.")
    index, symbol = _unpacked(terms, content[HEADER:])
    return Report(round=round_number, report_id=content[21:HEADER], index=index, symbol=symbol)


def _unpacked(terms: Terms, content: bytes) -> tuple[int | None, int | tuple[int, ...]]:
    keys = len(terms.keys)
    if terms.protocol in PER_KEY:
        symbols = unpack_symbols(content, keys)
        if terms.valueless and 2 in symbols:
            raise ReportError("each symbol must be 0 or 1 where no values are asked; they are not.")
        if terms.subsets and keys - symbols.count(0) > terms.subset.width:
            raise ReportError(f"a report must speak of at most {terms.subset.width} keys; it speaks of more.")
        return None, symbols
    if terms.protocol in JOINT:
        symbol = int.from_bytes(content, "big")
        if symbol > 2 * keys:
            raise ReportError(f"symbol must be at most {2 * keys}; got {symbol}.")
        return None, symbol
    index = int.from_bytes(content[:4], "big") if terms.index_mode == "chosen" else None
    if index is not None and index >= keys:
        raise ReportError(f"index must be below {keys}; got {index}.")
    if content[-1] > terms.signs:
        raise ReportError(f"symbol must be {'0, 1 or 2' if terms.signs == 2 else '0 or 1'}; got {content[-1]}.")
    return index, content[-1]


def pack_symbols(symbols: Sequence[int]) -> bytes:
    """Two bits per key."""
    digits = bytes(symbols).translate(_DIGITS)
    size = -(-len(digits) // 4)
    return int(digits.ljust(4 * size, b"0"), 4).to_bytes(size, "big")  # two bits are a digit to base 4


def unpack_symbols(payload: bytes, keys: int) -> tuple[int, ...]:
    """What `pack_symbols` wrote.

    Raises:
        ReportError: A symbol is 3, or the padding is not zero.
    """
    symbols = [byte >> shift & 3 for byte in payload for shift in (6, 4, 2, 0)]
    if 3 in symbols or any(symbols[keys:]):
        raise ReportError("each symbol must be 0, 1 or 2, with zeros after the last key; they are not.")
    return tuple(symbols[:keys])


def to_json(terms: Terms, content: bytes) -> str:
    """The JSON form of a report, for debugging."""
    report = unpack(terms, content)
    symbol = list(report.symbol) if isinstance(report.symbol, tuple) else report.symbol
    record = {"version": VERSION, "task": terms.short_id.hex(), "round": report.round, "id": report.report_id.hex()}
    return _text(record | {"index": report.index, "symbol": symbol})


def from_json(terms: Terms, text: str) -> bytes:
    """The bytes of a report in its JSON form, checked like any other.

    Raises:
        ReportError: It is no report of this study.
    """
    try:
        record = json.loads(text)
        content = _bytes_of(terms, record)
        same = to_json(terms, content) == _text(record)  # as texts: to Python, true and 1.0 equal 1
    except ReportError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise ReportError("a report must be a JSON object as `to_json` writes it; it is not.") from None
    if not same:
        raise ReportError("a report must name version, task, round, id, index and symbol of this study; it does not.")
    return content


def _text(record: dict[str, Any]) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def _bytes_of(terms: Terms, record: dict[str, Any]) -> bytes:
    symbol = record["symbol"]
    whole = isinstance(symbol, int) and not isinstance(symbol, bool)
    if terms.protocol in PER_KEY:
        good = isinstance(symbol, list) and len(symbol) == len(terms.keys) and all(entry in (0, 1, 2) for entry in symbol)
    else:
        good = whole and 0 <= symbol <= (2 * len(terms.keys) if terms.protocol in JOINT else 2)
    if not good:
        raise ReportError("symbol must be one that this study's protocol knows; it is not.")
    value = tuple(symbol) if isinstance(symbol, list) else symbol
    return pack(
        terms, Report(round=record["round"], report_id=bytes.fromhex(record["id"]), index=record["index"], symbol=value)
    )
