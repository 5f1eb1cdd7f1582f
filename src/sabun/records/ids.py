"""Ids as whole numbers of 128 bits that are equal where the ids are; many at a time, since every row has one.

A plain id of up to 16 bytes is its own key, byte for byte. Any other stands there by a hash under a secret that nobody knows:
one that is worked out for many plain ids at once, or a digest.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import sys
import unicodedata
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.records.cells import Cells, folded, label_positions, text_of
from sabun.records.files import objects_of

__all__ = ["SPELLINGS", "IdKeys", "Keys", "id_text", "id_texts", "numbered", "spelt"]

Keys = NDArray[np.uint64]
"""Two words for each row; both 0 where there is no id."""

SPELLINGS = ("text", "caseless", "number")

_WIDTH, _LONGEST = 16, 64
"""Bytes of a key, and of plain ids whose hash is worked out many at a time."""

_DIGITS = re.compile(r"[+-]?[0-9]+")
_ROUNDS = 4
_PLAIN = {"text": (0x21, 0x7E), "caseless": (0x21, 0x7E), "number": (0x30, 0x39)}
"""The first and last byte of which an id can be made that is compared as it is written."""

_MARKS = np.frombuffer(b"\0" * 14 + b"\x40\x80", dtype=np.uint64), np.frombuffer(b"\0" * 14 + b"\0\x80", dtype=np.uint64)
"""The highest bit of the last byte is set in hashes alone: bytes of plain ids are below 128. One before it, in quick ones."""

_UNITS = tuple((unit, 1) for unit in ("D", "s", "ms", "us", "ns"))
"""What arrow reads of numpy's days and moments."""

_ODD = np.uint64(0x9E3779B97F4A7C15)


def spelt(text: str | None, spelling: str) -> str:
    """An id as it is compared; empty for none."""
    if text is None:
        return ""
    plain = text.strip() if text.isascii() else unicodedata.normalize("NFKC", text).strip()
    if spelling == "caseless":
        return _without_case(plain)
    if spelling != "number" or not plain:
        return plain
    plain = folded(plain)
    if not _DIGITS.fullmatch(plain) or not plain.isascii():
        return ""
    sign = "-" if plain[0] == "-" and plain.strip("+-0") else ""
    return sign + (plain.lstrip("+-").lstrip("0") or "0")


def _without_case(plain: str) -> str:
    """The same for upper and lower case; its own results stay as they are."""
    if plain.isascii():
        return plain.lower()
    for _ in range(_ROUNDS):  # letters that fold into others which compose anew settle after two
        before, plain = plain, unicodedata.normalize("NFKC", plain.casefold()).strip()
        if plain == before:
            break
    return plain


@final
class IdKeys:
    """Makes keys of ids, all under one secret.

    Args:
        spelling: How ids are read.
        secret: For digests that others must find too; drawn anew when left out.
    """

    def __init__(self, spelling: str, *, secret: bytes | None = None) -> None:
        self._spelling, self._secret = spelling, secret or os.urandom(32)
        drawn = hashlib.shake_256(self._secret).digest(8 * 4 * (1 + _LONGEST // 4))
        self._weights = np.frombuffer(drawn, dtype=np.uint64).reshape(4, -1)

    def of(self, cells: Cells, *, name: str) -> Keys:
        """The key of each cell of a column.

        Raises:
            DataError: The column as a whole holds times of a day, durations, bytes, lists or complex numbers.
        """
        pieces = cells.chunks if type(cells).__name__ == "ChunkedArray" else [cells]
        found = [self._of_piece(_days_as_texts(piece), name) for piece in pieces or [_days_as_texts(cells)]]
        return np.concatenate([np.empty((0, 2), dtype=np.uint64), *found])

    def _of_piece(self, cells: Any, name: str) -> Keys:
        texts = _as_texts(cells)
        if texts is None:
            return self._one_by_one(cells, name)
        keys, plain = self._as_written(self._lowered(texts), _PLAIN[self._spelling])
        if not plain.all():
            import pyarrow as pa

            keys[~plain] = self._one_by_one(texts.filter(pa.array(~plain)), name)
        return keys

    def _lowered(self, texts: Any) -> Any:
        """What plain ids are compared as; the others are spelt one by one."""
        import pyarrow.compute as pc

        return pc.ascii_lower(texts) if self._spelling == "caseless" else texts

    def _one_by_one(self, cells: Any, name: str) -> Keys:
        """Each different text by itself."""
        seen: dict[str, int] = {}

        def place(text: str | None) -> int:
            return seen.setdefault(spelt(text, self._spelling), len(seen))

        who = label_positions(cells, place, name=name)
        import pyarrow as pa

        contents = [text.encode("utf-8", "surrogatepass") for text in seen]
        keys, plain = self._as_written(pa.array(contents, pa.large_binary()), _PLAIN["text"])
        for row in np.flatnonzero(~plain).tolist():
            if contents[row]:
                digest = hashlib.blake2b(contents[row], digest_size=_WIDTH, key=self._secret).digest()
                keys[row] = _marked(np.frombuffer(digest, dtype=np.uint64), 1)  # proof: digest-key
        return keys[who]

    def _as_written(self, texts: Any, letters: tuple[int, int]) -> tuple[Keys, NDArray[np.bool_]]:
        """Keys of the ids that are compared as they are written, with whose those are; zeros for the others."""
        content, plain = _plain_bytes(texts, letters)
        keys = content[:, :_WIDTH].copy().view(np.uint64).reshape(-1, 2)  # proof: own-key
        if content.shape[1] > _WIDTH:
            long = np.flatnonzero(content[:, _WIDTH])
            keys[long] = self._hashed(content[long])  # proof: hash-key
        return keys, plain

    def _hashed(self, content: NDArray[np.uint8]) -> Keys:
        """Four hashes of 32 bits each: sums of words times secret weights, of which the upper halves are taken."""
        words, found = content.view(np.uint32).astype(np.uint64), np.empty((len(content), 4), dtype=np.uint32)
        for place, weights in enumerate(self._weights):
            sums = np.full(len(words), weights[-1])
            for word, weight in zip(words.T, weights[:-1], strict=False):
                sums += word * weight
            found[:, place] = sums >> np.uint64(32)
        return _marked(found.view(np.uint64), 0)


def id_text(cell: Any) -> str | None:
    """The text of a cell that tells persons apart; a day as 2026-01-31, a moment with its time behind it."""
    if type(cell) is datetime.date:
        return cell.isoformat()
    return cell.isoformat(" ") if type(cell) in _moments() else text_of(cell)


def id_texts(column: Any, *, name: str) -> list[str | None]:
    """The texts of a column of a file, for its owner.

    Raises:
        DataError: As `IdKeys.of`: a question would refuse the column too.
    """
    IdKeys("text").of(column.slice(0, 0), name=name)
    return [id_text(cell) for cell in objects_of(column)]


def _moments() -> tuple[type, ...]:
    pandas = sys.modules.get("pandas")  # whoever has one of its moments has loaded it
    return (datetime.datetime,) if pandas is None else (datetime.datetime, pandas.Timestamp)


def _days_as_texts(cells: Any) -> Any:
    """A column of days or moments as texts, each cell by itself; any other column as it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(cells, np.ndarray):
        if cells.dtype.kind == "M" and np.datetime_data(cells.dtype) in _UNITS:
            cells = pa.array(cells)
        elif cells.dtype.kind == "O":
            cells = cells.tolist()
    if isinstance(cells, list):
        dated = (datetime.date, *_moments())
        return [id_text(cell) if type(cell) in dated else cell for cell in cells]
    if not isinstance(cells, pa.Array | pa.ChunkedArray):
        return cells
    held: Any = cells.type
    if not (pa.types.is_date(held) or pa.types.is_timestamp(held)):
        return cells
    return pc.cast(cells if pa.types.is_date(held) else pc.cast(cells, pa.timestamp(held.unit)), pa.large_string())


def _as_texts(cells: Any) -> Any:
    """A column of texts, or of whole numbers, as arrow has texts; None for any other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iu":
        cells = pa.array(cells)
    if not isinstance(cells, pa.Array):
        return None
    types, held = pa.types, cells.type
    if types.is_integer(held):
        cells = pc.cast(cells, pa.string())
    elif not (types.is_string(held) or types.is_large_string(held) or types.is_string_view(held)):
        return None
    return pc.cast(cells, pa.large_string())


def _marked(keys: Keys, kind: int) -> Keys:
    """Keys that no plain id has: quick hashes (0) and digests (1) are told apart too."""
    return keys & ~(_MARKS[0] | _MARKS[1]) | _MARKS[kind]


def _plain_bytes(texts: Any, letters: tuple[int, int]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The bytes of ids made of certain letters alone, with zeros after them, and whose those are; zeros for the others."""
    count, (_, ends, content) = len(texts), texts.buffers()
    if not count or content is None:
        return np.zeros((count, _WIDTH), dtype=np.uint8), np.zeros(count, dtype=np.bool_)
    places = np.frombuffer(ends, dtype=np.int64)[texts.offset : texts.offset + count + 1]
    whole, starts = np.frombuffer(content, dtype=np.uint8)[places[0] : places[-1]], places[:-1] - places[0]
    lengths, (low, high) = np.diff(places), letters
    plain = (lengths > 0) & (lengths <= _LONGEST)
    if len(whole) and (whole.min() < low or whole.max() > high):
        strange = np.append(0, np.cumsum((whole < low) | (whole > high)))
        plain &= strange[places[1:] - places[0]] == strange[starts]
    if letters == _PLAIN["number"] and len(whole):  # a zero in front is left out
        plain &= whole[np.minimum(starts, len(whole) - 1)] != low
    if texts.null_count:
        plain &= ~texts.is_null().to_numpy(zero_copy_only=False)
    found = np.flatnonzero(np.bincount(lengths[plain], minlength=1)).tolist()
    table = np.zeros((count, _WIDTH if not found or found[-1] <= _WIDTH else _LONGEST), dtype=np.uint8)
    for length in found:
        rows = np.flatnonzero(plain & (lengths == length))
        if len(rows) == count:  # all alike: they lie one after the other
            table[:, :length] = whole.reshape(-1, length)
        else:
            table[rows[:, None], np.arange(length)] = whole[starts[rows, None] + np.arange(length)]
    return table, plain


def numbered(keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A number for each key, equal where the keys are, in the order of first sight; and where each was seen first."""
    import pyarrow as pa

    mixed = keys[:, 0] ^ (keys[:, 1] * _ODD)
    who, first = _numbered(pa.array(mixed))
    same = keys[first]
    if keys[:, 1].any() and not np.array_equal(same[who], keys):  # two keys were mixed into one
        whole = np.ascontiguousarray(keys)
        return _numbered(pa.FixedSizeBinaryArray.from_buffers(pa.binary(_WIDTH), len(keys), [None, pa.py_buffer(whole)]))
    return who, first


def _numbered(values: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    encoded = values.dictionary_encode()
    who = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.empty(len(encoded.dictionary), dtype=np.int64)
    first[who[::-1]] = np.arange(len(who) - 1, -1, -1)  # of several the last one stays: the first
    return who, first
