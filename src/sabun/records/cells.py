"""One cell at a time: from whatever a table holds to a number or to a label's text.

Every function here is a pure map of one cell to one result, so that changing one record changes one row of the output. No cell
can raise: what cannot be read becomes NaN (numbers) or None (texts). Only the *type* of a whole column, which is public, may be
refused. A cell's type is compared exactly and nothing is ever asked of an object of another type: its methods are foreign code,
which could raise, warn, print or never return.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError
from sabun.records.forms import PLAIN, FileFormat

__all__ = ["Cells", "Floats", "folded", "label_positions", "numbers", "text_of"]

Floats: TypeAlias = NDArray[np.float64]

Cells: TypeAlias = Any
"""One column of cells: a one-dimensional numpy array, a pyarrow array, or a list of Python objects."""

_BLANKS = " \t\n\r\x0b\x0c"
_WORDS = {
    "true": 1.0,
    "false": 0.0,
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
}
# Types by identity: a set of the types themselves would ask a foreign type for its hash, which is foreign code too.
_TEXTS = frozenset(map(id, (str, np.str_)))
_BOOLEANS = frozenset(map(id, (bool, np.bool_)))
_INTEGERS = frozenset(map(id, (int, *(np.dtype(code).type for code in "bhilqBHILQ"))))
_REALS = frozenset(map(id, (float, Fraction, *(np.dtype(code).type for code in "efdg"))))
_NUMBERS = _BOOLEANS | _INTEGERS | _REALS | {id(Decimal)}
_WHAT_TO_DO = "Turn it into numbers or text first, or leave it out of the schema; dates are declared by Column.date."


def numbers(cells: Cells, *, name: str, form: FileFormat = PLAIN) -> Floats:
    """Reads a column as numbers.

    Edge cases:
        | cell | result |
        |---|---|
        | finite number, decimal text such as ``-1.5e3`` (blanks around it are ignored) | the nearest float64 |
        | number or text beyond float64, ``inf`` | +inf or -inf |
        | ``True``/``False``, as a boolean or as text in any case | 1 or 0 |
        | null, NaN, empty or any other text, an object of any other type (or of a subclass of these) | NaN |

    Args:
        cells: The column.
        name: Its name, for the message when the column's type is refused.
        form: How texts write numbers.

    Returns:
        A float64 array of the same length.

    Raises:
        DataError: The column as a whole holds dates, bytes, lists or complex numbers.
    """
    if isinstance(cells, list):
        return _numbers_from_objects(cells, form)
    if isinstance(cells, np.ndarray):
        return _numbers_from_numpy(cells, name, form)
    return _numbers_from_arrow(cells, name, form)


def label_positions(cells: Cells, position: Callable[[str | None], int], *, name: str) -> NDArray[np.int64]:
    """Applies a public map from a cell's text to a position, to each cell of a column.

    The text of a whole number has no decimal point (``1.0`` reads ``1``), that of a boolean is ``true`` or ``false``; null and
    NaN have none.

    Args:
        cells: The column.
        position: The map; it sees each distinct text once or more.
        name: The column's name, for the message when its type is refused.

    Raises:
        DataError: The column as a whole holds dates, bytes, lists or complex numbers.
    """
    if isinstance(cells, np.ndarray):
        _refuse_numpy(cells, name)
        if cells.dtype.kind in "biuf":
            return _positions_of_numeric(cells, position)
        cells = cells.tolist()
    if isinstance(cells, list):
        with np.errstate(all="ignore"):
            return np.array([position(text_of(cell)) for cell in cells], dtype=np.int64)
    return _positions_from_arrow(cells, position, name)


def folded(text: str) -> str:
    """The second spelling a label is looked up under: booleans in lower case, decimals without trailing zeros.

    Example:
        >>> folded("TRUE"), folded("1.0"), folded("0.50"), folded("250")
        ('true', '1', '0.5', '250')
    """
    if text.lower() in ("true", "false"):
        return text.lower()
    whole, point, rest = text.partition(".")
    if not point or not _all_digits(whole.removeprefix("-" if whole[:1] == "-" else "+")) or not _all_digits(rest or "0"):
        return text
    rest = rest.rstrip("0")
    return f"{whole}.{rest}" if rest else whole


def _all_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _numbers_from_numpy(cells: NDArray[Any], name: str, form: FileFormat) -> Floats:
    _refuse_numpy(cells, name)
    if cells.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # a warning about an overflow would speak of a private cell
            return cells.astype(np.float64)
    return _numbers_from_objects(cells.tolist(), form)


def _refuse_numpy(cells: NDArray[Any], name: str) -> None:
    kinds = {"M": "dates", "m": "durations", "c": "complex numbers", "S": "bytes", "V": "structured records"}
    if cells.dtype.kind in kinds:
        raise DataError(f"column {name!r} must hold numbers or text; got {kinds[cells.dtype.kind]}. {_WHAT_TO_DO}")


def _numbers_from_objects(cells: Sequence[object], form: FileFormat) -> Floats:
    with np.errstate(all="ignore"):  # a long double beyond float64 would warn
        read = [_number_or_text(cell) for cell in cells]
    result = np.array([math.nan if isinstance(item, str) else item for item in read], dtype=np.float64)
    where = [index for index, item in enumerate(read) if isinstance(item, str)]
    if where:
        result[where] = _numbers_from_texts(_arrow_texts([item for item in read if isinstance(item, str)]), form)
    return result


def _inner(cell: Any) -> Any:
    """What an array without dimensions holds; any other cell as it is."""
    return cell[()] if type(cell) is np.ndarray and cell.ndim == 0 else cell


def _number_or_text(cell: object) -> float | str:
    cell = _inner(cell)
    kind = id(type(cell))
    if kind in _TEXTS:
        return str(cell)
    if kind not in _NUMBERS:
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]
    except OverflowError:  # a whole number or fraction beyond float64 lies beyond every bound
        return math.copysign(math.inf, 1 if cell > 0 else -1)  # type: ignore[operator]
    except ValueError:  # a signalling NaN
        return math.nan


def text_of(cell: Any) -> str | None:
    """The text of a cell: a whole number without a point, a boolean as true or false; None for what has none."""
    cell = _inner(cell)
    kind = id(type(cell))
    if kind in _TEXTS:
        return str(cell).strip(_BLANKS)
    if kind in _BOOLEANS:
        return "true" if cell else "false"
    if kind in _INTEGERS:
        return _integer_text(int(cell))
    if kind == id(Decimal):
        return folded(format(cell, "f")) if cell.is_finite() and abs(cell.adjusted()) < 400 else None
    if kind not in _REALS:
        return None
    try:
        return _float_text(float(cell))
    except OverflowError:  # a fraction beyond float64
        return None


def _integer_text(value: int) -> str | None:
    try:
        return str(value)
    except ValueError:  # longer than Python prints
        return None


def _float_text(value: float) -> str | None:
    if math.isnan(value):
        return None
    return str(int(value)) if value.is_integer() else repr(value)


def _positions_of_numeric(cells: NDArray[Any], position: Callable[[str | None], int]) -> NDArray[np.int64]:
    distinct, inverse = np.unique(cells, return_inverse=True)
    return np.asarray(label_positions(distinct.tolist(), position, name="")[inverse])


def _arrow_texts(texts: list[str]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(texts, type=pa.large_string())
    except UnicodeEncodeError:  # half a character is no part of any number
        return pa.array([text.encode("utf-8", "replace").decode() for text in texts], type=pa.large_string())


def _numbers_from_texts(texts: Any, form: FileFormat) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    # What the library reads of its own accord is read by the rule alike (a test compares them), only faster: best as it is,
    # then without blanks and empty cells.
    if form.plain_numbers:
        with contextlib.suppress(pa.ArrowInvalid):
            return _nan_for_null(pc.cast(texts, pa.float64()))
    trimmed = pc.ascii_trim_whitespace(texts)
    if form.plain_numbers:
        with contextlib.suppress(pa.ArrowInvalid):
            return _nan_for_null(pc.cast(pc.if_else(pc.equal(pc.binary_length(trimmed), 0), None, trimmed), pa.float64()))
    return _numbers_by_rule(trimmed, form)


def _numbers_by_rule(trimmed: Any, form: FileFormat) -> Floats:
    """Numbers of texts without blanks around them, some of which are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    written = pc.if_else(pc.match_substring_regex(trimmed, form.number), trimmed, None)
    for sign, plain in ((form.thousands, ""), (form.decimal, ".")):
        written = written if sign == plain else pc.replace_substring(written, sign, plain)
    result = _nan_for_null(pc.cast(written, pa.float64()))
    word = _nan_for_null(pc.cast(pc.index_in(pc.ascii_lower(trimmed), pa.array(_WORDS, type=pa.large_string())), pa.float64()))
    is_word = ~np.isnan(word)
    if is_word.any():
        result[is_word] = np.array([*_WORDS.values()])[word[is_word].astype(np.int64)]
    return result


def _nan_for_null(values: Any) -> Floats:
    """A writable float64 array of a double-typed arrow array, with NaN for null."""
    import pyarrow.compute as pc

    whole = pc.fill_null(values, math.nan) if values.null_count else values
    result = np.array(whole.to_numpy(zero_copy_only=False), dtype=np.float64)
    result[np.isnan(result)] = math.nan  # one NaN: `-nan` and `nan` differ in a bit
    return result


def _numbers_from_arrow(cells: Any, name: str, form: FileFormat) -> Floats:
    kind = _arrow_kind(cells.type, name)
    return np.concatenate([np.empty(0), *(_numbers_of_piece(piece, kind, form) for piece in _pieces(cells))])


def _numbers_of_piece(piece: Any, kind: str, form: FileFormat) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(piece, pa.DictionaryArray):
        return _through_dictionary(piece, lambda entries: _numbers_of_piece(entries, kind, form), np.float64(math.nan))
    if kind == "text":
        return _numbers_from_texts(pc.cast(piece, pa.large_string()), form)
    if kind == "null":
        return np.full(len(piece), math.nan)
    if kind == "decimal":
        return _numbers_from_objects(piece.to_pylist(), form)
    if kind == "boolean":
        piece = pc.cast(piece, pa.uint8())
    return _nan_for_null(pc.cast(piece, pa.float64(), safe=False))


def _positions_from_arrow(cells: Any, position: Callable[[str | None], int], name: str) -> NDArray[np.int64]:
    kind = _arrow_kind(cells.type, name)
    pieces = [_positions_of_piece(piece, kind, position) for piece in _pieces(cells)]
    return np.concatenate([np.empty(0, dtype=np.int64), *pieces])


def _positions_of_piece(piece: Any, kind: str, position: Callable[[str | None], int]) -> NDArray[np.int64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(piece, pa.DictionaryArray):
        return _through_dictionary(
            piece, lambda entries: _positions_of_piece(entries, kind, position), np.int64(position(None))
        )
    if kind in ("decimal", "null", "boolean"):
        return label_positions(piece.to_pylist(), position, name="")
    if kind == "text":
        encoded = pc.dictionary_encode(pc.ascii_trim_whitespace(pc.cast(piece, pa.large_string())))
        distinct = [_decoded(value) for value in encoded.dictionary.cast(pa.large_binary()).to_pylist()]
    else:
        encoded = pc.dictionary_encode(pc.cast(piece, pa.float64()) if pa.types.is_floating(piece.type) else piece)
        distinct = [text_of(value) for value in encoded.dictionary.to_pylist()]
    table = np.array([*(position(text) for text in distinct), position(None)], dtype=np.int64)
    return table[_places(encoded)]


def _through_dictionary(piece: Any, read: Callable[[Any], NDArray[Any]], missing: np.generic) -> NDArray[Any]:
    """Reads the entries that stand in some cell, then gives each cell what its entry says.

    Writing every cell out instead could pass what a text column can hold (2 GiB), for the length of one cell.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    places, entries = _places(piece), piece.dictionary
    used = np.flatnonzero(np.bincount(places, minlength=len(entries) + 1)[:-1])
    if pa.types.is_string_view(entries.type):  # which pyarrow cannot take entries from
        entries = pc.cast(entries, pa.large_string())
    table = np.full(len(entries) + 1, missing)
    table[used] = read(entries.take(pa.array(used, type=pa.int64())))
    return table[places]


def _places(encoded: Any) -> NDArray[np.int64]:
    """The entry of each cell of a dictionary array; null, or a number outside the dictionary, is the place after the last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(encoded.dictionary)
    indices = pc.fill_null(pc.cast(encoded.indices, pa.int64(), safe=False), count).to_numpy(zero_copy_only=False)
    return np.where((indices < 0) | (indices > count), count, indices)


def _decoded(text: bytes) -> str | None:
    """A file of another program may hold text that is none."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _pieces(cells: Any) -> list[Any]:
    """A column as the contiguous arrays it is made of.

    They are never put together: whether that works (in the index type of a dictionary, in 2 GiB of text) depends on cells.
    """
    import pyarrow as pa

    return list(cells.chunks) if isinstance(cells, pa.ChunkedArray) else [cells]


def _arrow_kind(held: Any, name: str) -> str:
    """The word for what a column of a type holds; a dictionary holds what its entries are.

    Raises:
        DataError: Columns of that type are not read, whatever their cells.
    """
    import pyarrow as pa

    types = pa.types
    while types.is_dictionary(held):
        held = held.value_type
    texts = types.is_string(held) or types.is_large_string(held) or types.is_string_view(held)
    if texts or types.is_integer(held) or types.is_floating(held):
        return "text" if texts else "numeric"
    for word, matches in (("boolean", types.is_boolean), ("null", types.is_null), ("decimal", types.is_decimal)):
        if matches(held):
            return word
    refused = "dates or times" if types.is_temporal(held) else "nested, binary or extension cells"
    raise DataError(f"column {name!r} must hold numbers or text; got {refused}. {_WHAT_TO_DO}")
