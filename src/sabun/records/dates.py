"""One cell at a time: from a date, as a date or as text, to the number of days since 1970-01-01.

The rules of `cells`: each cell by itself, none can raise, what cannot be read is NaN.
"""

from __future__ import annotations

import datetime
import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError
from sabun.records.cells import Cells, Floats

__all__ = ["days", "days_of", "iso_of"]

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_TEXT = (
    r"^\s*(?P<y>[0-9]{4})(?:-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})|/(?P<m2>[0-9]{1,2})/(?P<d2>[0-9]{1,2})"
    r"|年(?P<m3>[0-9]{1,2})月(?P<d3>[0-9]{1,2})日|(?P<m4>[0-9]{2})(?P<d4>[0-9]{2}))(?:[T ][0-9:.,+Zz-]*)?\s*$"
)
"""2024-03-01, 2024/3/1, 2024年3月1日, 20240301; a time of day after it is left out."""


def days_of(text: str) -> float:
    """The day of a date in ISO form; NaN for other text.

    Example:
        >>> days_of("1970-01-02"), days_of("2024/3/1"), days_of("soon")
        (1.0, 19783.0, nan)
    """
    return float(days([text], name="")[0])


def iso_of(day: float) -> str:
    """The date of a day, as 2024-03-01."""
    return datetime.date.fromordinal(_EPOCH + math.floor(day)).isoformat()


def days(cells: Cells, *, name: str) -> Floats:
    """Reads a column as days.

    Edge cases:
        | cell | result |
        |---|---|
        | date, date with a time (the time is left out, a time zone kept as it is written) | its day |
        | text such as ``2024-03-01``, ``2024/3/1``, ``2024年3月1日``, ``20240301``, also with a time after it | its day |
        | a day that does not exist, null, a number, anything else | NaN |

    Raises:
        DataError: The column as a whole holds bytes, lists, durations or complex numbers.
    """
    if isinstance(cells, list):
        return _of_objects(cells)
    if isinstance(cells, np.ndarray):
        return _of_numpy(cells, name)
    pieces = cells.chunks if hasattr(cells, "chunks") else [cells]
    return np.concatenate([np.empty(0), *(_of_arrow(piece, name) for piece in pieces)])


def _of_numpy(cells: NDArray[Any], name: str) -> Floats:
    if cells.dtype.kind == "M":
        whole = cells.astype("datetime64[D]")
        return np.where(np.isnat(whole), np.nan, whole.astype(np.int64).astype(np.float64))
    if cells.dtype.kind in "mcSV":
        raise DataError(f"column {name!r} must hold dates or text; got another kind of cells. Leave it out of the schema.")
    return _of_objects(cells.tolist())


def _of_arrow(piece: Any, name: str) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = piece.type
    if pa.types.is_dictionary(kind):
        piece = piece.dictionary_decode()
        kind = piece.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        if getattr(kind, "tz", None) is not None:
            piece = pc.local_timestamp(piece)
        whole = pc.cast(pc.cast(piece, pa.date32(), safe=False), pa.int32())
        return np.array(pc.fill_null(pc.cast(whole, pa.float64()), math.nan).to_numpy(zero_copy_only=False))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _of_texts(pc.cast(piece, pa.large_string()))
    if pa.types.is_nested(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind) or pa.types.is_binary(kind):
        raise DataError(f"column {name!r} must hold dates or text; got another kind of cells. Leave it out of the schema.")
    return np.full(len(piece), math.nan)


def _of_objects(cells: list[Any]) -> Floats:
    import pyarrow as pa

    stamp = getattr(sys.modules.get("pandas"), "Timestamp", None)
    result = np.full(len(cells), math.nan)
    texts: list[tuple[int, str]] = []
    for place, cell in enumerate(cells):
        kind = type(cell)
        if kind is str or kind is np.str_:
            texts.append((place, str(cell).encode("utf-8", "replace").decode()))
        elif kind is datetime.date or kind is datetime.datetime or (stamp is not None and kind is stamp):
            result[place] = cell.toordinal() - _EPOCH
        elif kind is np.datetime64 and not np.isnat(cell):
            result[place] = float(cell.astype("datetime64[D]").astype(np.int64))
    if texts:
        result[[place for place, _ in texts]] = _of_texts(pa.array([text for _, text in texts], type=pa.large_string()))
    return result


def _of_texts(texts: Any) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.extract_regex(texts, _TEXT)

    def field(*names: str) -> NDArray[np.int64]:
        """The one of the alternatives that matched; 0 where none did."""
        parts = [pc.struct_field(found, name) for name in names]
        whole = [pc.cast(pc.fill_null(pc.if_else(pc.equal(part, ""), None, part), "0"), pa.int64()) for part in parts]
        return np.asarray(np.maximum.reduce([part.to_numpy(zero_copy_only=False) for part in whole]))

    year, month, day = field("y"), field("m", "m2", "m3", "m4"), field("d", "d2", "d3", "d4")
    real = (year > 0) & (month >= 1) & (month <= 12) & (day >= 1)
    first = (np.where(real, (year - 1970) * 12 + month - 1, 0)).astype("datetime64[M]")
    start = first.astype("datetime64[D]").astype(np.int64)
    length = (first + 1).astype("datetime64[D]").astype(np.int64) - start
    real &= day <= length
    return np.where(real, (start + day - 1).astype(np.float64), math.nan)
