"""Ids as whole numbers of 128 bits that are equal where the ids are; many at a time, since every row has one.

A plain id of up to 16 bytes is its own key, byte for byte. Any other stands there by a digest under a key that nobody knows.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.records.cells import Cells, folded, label_positions

__all__ = ["SPELLINGS", "IdKeys", "Keys", "numbered", "spelt"]

Keys = NDArray[np.uint64]
"""Two words for each row; both 0 where there is no id."""

SPELLINGS = ("text", "number")

_WIDTH = 16
_DIGITS = re.compile(r"[+-]?[0-9]+")
_PLAIN = {"text": (0x21, 0x7E), "number": (0x30, 0x39)}
"""The first and last byte of which an id can be made that is compared as it is written."""

_DIGEST_MARK = np.uint64(1 << 63)
"""Set in the last word of a digest, and in no plain id: its bytes are below 128."""

_ODD = np.uint64(0x9E3779B97F4A7C15)


def spelt(text: str | None, spelling: str) -> str:
    """An id as it is compared; empty for none."""
    if text is None:
        return ""
    plain = text.strip() if text.isascii() else unicodedata.normalize("NFKC", text).strip()
    if spelling != "number" or not plain:
        return plain
    plain = folded(plain)
    if not _DIGITS.fullmatch(plain) or not plain.isascii():
        return ""
    sign = "-" if plain[0] == "-" and plain.strip("+-0") else ""
    return sign + (plain.lstrip("+-").lstrip("0") or "0")


@final
class IdKeys:
    """Makes keys of ids, all under one secret.

    Args:
        spelling: How ids are read.
        secret: For digests that others must find too; drawn anew when left out.
    """

    def __init__(self, spelling: str, *, secret: bytes | None = None) -> None:
        self._spelling, self._secret = spelling, secret or os.urandom(32)

    def of(self, cells: Cells, *, name: str) -> Keys:
        """The key of each cell of a column.

        Raises:
            DataError: The column as a whole holds dates, bytes, lists or complex numbers.
        """
        pieces = cells.chunks if type(cells).__name__ == "ChunkedArray" else [cells]
        return np.concatenate([np.empty((0, 2), dtype=np.uint64), *(self._of_piece(piece, name) for piece in pieces)])

    def _of_piece(self, cells: Any, name: str) -> Keys:
        texts = _as_texts(cells)
        if texts is None:
            return self._one_by_one(cells, name)
        keys, plain = _as_written(texts, self._spelling)
        if not plain.all():
            import pyarrow as pa

            keys[~plain] = self._one_by_one(texts.filter(pa.array(~plain)), name)
        return keys

    def _one_by_one(self, cells: Any, name: str) -> Keys:
        """Each different text by itself."""
        seen: dict[str, int] = {}

        def place(text: str | None) -> int:
            return seen.setdefault(spelt(text, self._spelling), len(seen))

        who = label_positions(cells, place, name=name)
        found = [self._key(text) for text in seen]
        return np.frombuffer(b"".join(found), dtype=np.uint64).reshape(-1, 2)[who]

    def _key(self, text: str) -> bytes:
        content = text.encode("utf-8", "surrogatepass")
        low, high = _PLAIN["text"]
        if len(content) <= _WIDTH and all(low <= byte <= high for byte in content):
            return content.ljust(_WIDTH, b"\0")  # proof: own-key
        digest = bytearray(hashlib.blake2b(content, digest_size=_WIDTH, key=self._secret).digest())
        digest[-1] |= 0x80  # proof: digest-key
        return bytes(digest)


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


def _as_written(texts: Any, spelling: str) -> tuple[Keys, NDArray[np.bool_]]:
    """The bytes of ids that are compared as they are written, with whose those are; zeros for the others."""
    count, (_, ends, content) = len(texts), texts.buffers()
    words = np.zeros((count, _WIDTH // 8), dtype=np.uint64)
    if not count or content is None:
        return words, np.zeros(count, dtype=np.bool_)
    places = np.frombuffer(ends, dtype=np.int64)[texts.offset : texts.offset + count + 1]
    letters, starts = np.frombuffer(content, dtype=np.uint8)[places[0] : places[-1]], places[:-1] - places[0]
    lengths = np.diff(places)
    low, high = _PLAIN[spelling]
    plain = (lengths > 0) & (lengths <= _WIDTH)
    if len(letters) and (letters.min() < low or letters.max() > high):
        strange = np.append(0, np.cumsum((letters < low) | (letters > high)))
        plain &= strange[places[1:] - places[0]] == strange[starts]
    if spelling == "number" and len(letters):  # a zero in front is left out
        plain &= letters[np.minimum(starts, len(letters) - 1)] != low
    if texts.null_count:
        plain &= ~texts.is_null().to_numpy(zero_copy_only=False)
    table = words.view(np.uint8)
    for length in np.flatnonzero(np.bincount(lengths[plain], minlength=1)).tolist():
        rows = np.flatnonzero(plain & (lengths == length))
        if len(rows) == count:  # all alike: they lie one after the other
            table[:, :length] = letters.reshape(-1, length)
        else:
            table[rows[:, None], np.arange(length)] = letters[starts[rows, None] + np.arange(length)]
    return words, plain


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
