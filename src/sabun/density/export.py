"""The weighted public table, as files that carry their guarantee."""

from __future__ import annotations

import io
import os
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from sabun import checks
from sabun.density.features import named
from sabun.density.kernel import Floats
from sabun.errors import DataError, ParameterError
from sabun.privacy.noise import Coin
from sabun.records import CategoryColumn, NumberColumn, Schema, open_unbounded
from sabun.records.cells import numbers
from sabun.records.forms import PLAIN, FileFormat
from sabun.records.sources import Stored, stored
from sabun.release import Release
from sabun.release.files import write_whole

__all__ = [
    "WEIGHT",
    "frame_of",
    "must_take_weights",
    "plainly",
    "read_back",
    "refuse_one_for_both",
    "resampled",
    "same_file",
    "table_of",
    "without_weights",
    "write_csv",
    "write_parquet",
]

WEIGHT = "weight"
"""Name of the column with the weights."""

_LABEL_LIKE = r"[+-]?0[0-9]|[A-Za-z]"
_WHOLE = r"[+-]?[0-9]{1,15}$"


def table_of(public: Any, schema: Schema | None = None) -> Any:
    """The public table in memory: files are read, flat lists become one column, anything else stays as it is.

    A file is read by the reader of private tables, so that a label is the same text in both.

    Args:
        public: A table, or the name of a file.
        schema: What was declared; the columns it calls labels stay text.
    """
    kept = stored(public)
    if kept is not None:
        columns = () if schema is None else schema.columns
        return _read(
            kept if schema is None else kept.written(schema.file),
            {column.name for column in columns if isinstance(column, CategoryColumn)},
        )
    if isinstance(public, list | tuple):
        public = np.asarray(public)
    return named(public)


def read_back(public: Any, schema: Schema | None) -> tuple[Any, Schema | None]:
    """The public table of a release, with the schema that reads it: the table as it was, or with its weights.

    Weighted tables are plain files, however the table was written that they were made of.

    Args:
        public: A table, or the name of a file.
        schema: What was declared about the table as it was.
    """
    if schema is not None and _has_weights(public):
        schema = replace(schema, file=PLAIN)
    return table_of(public, schema), schema


def _has_weights(public: Any) -> bool:
    """Whether a file is one that was written here: read as a plain one, it ends with the weights."""
    kept = stored(public)
    if kept is None:
        return False
    try:
        return open_unbounded(kept.written(PLAIN)).names[-1] == WEIGHT
    except DataError:
        return False


def without_weights(frame: Any, weights: Floats) -> Any:
    """A pandas frame without the column that holds the weights themselves: they are no figure of a record."""
    ours = WEIGHT in frame.columns and frame[WEIGHT].dtype.kind in "biuf"
    return frame.drop(columns=WEIGHT) if ours and np.allclose(frame[WEIGHT].to_numpy(dtype=float), weights) else frame


def plainly(frame: Any, schema: Schema | None) -> Any:
    """The table with its numbers written as in a plain file; cells that are none stay as they are."""
    if schema is None or schema.file.plain_numbers or not nw.from_native(frame, eager_only=True).implementation.is_pandas():
        return frame
    for column in schema.columns:
        if isinstance(column, NumberColumn) and not column.dates and frame[column.name].dtype.kind not in "biuf":
            texts = frame[column.name].tolist()
            found = numbers(texts, name=column.name, form=schema.file).tolist()
            frame = frame.assign(
                **{column.name: [text if np.isnan(x) else repr(x) for text, x in zip(texts, found, strict=True)]}
            )
    return frame


def same_file(one: Any, other: Any) -> bool:
    """Whether two names stand for one file, through links too; a folder is the same as each of its files."""
    return not _identities(one).isdisjoint(_identities(other))


def _identities(name: Any) -> set[object]:
    """What a file is known by: its name without links, which a new file has too, and its place on the disk."""
    found: set[object] = set()
    try:
        found.add(os.path.realpath(name))
        inside = [entry.path for entry in os.scandir(name)] if os.path.isdir(name) else []
        for path in (name, *inside):
            place = os.stat(path)
            found.add((place.st_dev, place.st_ino))
    except (OSError, ValueError):  # no such file, or no such name: whoever opens it says so
        pass
    return found


def refuse_one_for_both(private: Any, public: Any) -> None:
    """Refuses one file as both tables, by its name alone; no cell is looked at.

    Raises:
        ParameterError: The rows of the public table would be the private ones.
    """
    paths = all(isinstance(table, str | os.PathLike) for table in (private, public))
    if paths and same_file(private, public):
        raise ParameterError(
            f"private and public must be two files; got {str(private)!r} for both. The rows of the public table are published "
            "as they are, with a weight each: it must hold no private record."
        )


def frame_of(table: Any, weights: Floats, names: tuple[str, ...]) -> Any:
    """The table with one more column; an array becomes a pandas frame."""
    import pandas as pd

    if isinstance(table, np.ndarray):
        return pd.DataFrame(table, columns=list(names)).assign(**{WEIGHT: weights})
    frame = nw.from_native(table, eager_only=True)
    must_take_weights(frame.columns)
    column = nw.new_series(WEIGHT, weights, backend=frame.implementation)
    if frame.implementation.is_pandas():
        return frame.to_native().assign(**{WEIGHT: weights})
    return frame.with_columns(column).to_native()


def must_take_weights(names: Collection[str]) -> None:
    """Refuses a table that has such a column already.

    Raises:
        DataError: It has.
    """
    if WEIGHT in names:
        raise DataError(f"the public table must not have a column {WEIGHT!r} of its own. Rename it.")


def resampled(table: Any, weights: Floats, m: int, coin: Coin) -> Any:
    """m rows, each drawn with probability proportional to its weight."""
    checks.whole(minimum=1, m=m)
    steps = np.cumsum(weights)
    uniform = (coin.words(m) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    rows = np.minimum(np.searchsorted(steps, uniform * steps[-1], side="right"), len(weights) - 1)
    if isinstance(table, np.ndarray):
        return table[rows]
    return nw.from_native(table, eager_only=True)[rows.tolist()].to_native()


def write_csv(frame: Any, path: Any, release: Release, *, overwrite: bool) -> None:
    """A CSV file with the release beside it."""
    proof = release.to_json()
    text = io.BytesIO()
    _arrow_csv(frame, text)
    _write(path, text.getvalue(), proof, overwrite)


def write_parquet(frame: Any, path: Any, release: Release, *, overwrite: bool) -> None:
    """A Parquet file with guarantee and provenance in its metadata, and the release beside it."""
    from pyarrow import parquet

    proof = release.to_json()
    table = _arrow(frame)
    metadata = {**(table.schema.metadata or {}), b"sabun.guarantee": release.guarantee.to_json().encode()}
    metadata[b"sabun.kind"] = release.provenance.kind.encode()
    content = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata(metadata), content)
    _write(path, content.getvalue(), proof, overwrite)


def _read(path: Stored, labels: Collection[str]) -> Any:
    import pandas as pd
    import pyarrow as pa

    source = open_unbounded(path)
    pieces = list(source.tables())
    if not pieces:
        return pd.DataFrame(columns=list(source.names))
    table = pa.concat_tables(pieces)
    frame = table.to_pandas()
    for name in table.column_names:
        if pa.types.is_large_string(table[name].type) and name in frame.columns and name not in labels:
            frame[name] = _typed(frame[name], name, source.form)
    return frame


def _typed(texts: Any, name: str, form: FileFormat = PLAIN) -> Any:
    """A column of text as numbers when every cell that is not empty is one; `007` is a label, and so is `NA`."""
    trimmed = texts.fillna("").str.strip()
    filled = trimmed != ""
    found = numbers(trimmed.tolist(), name=name, form=form)
    if not filled.any() or np.isnan(found[filled]).any() or trimmed.str.match(_LABEL_LIKE).any():
        return texts
    if filled.all() and trimmed.str.match(_WHOLE).all():
        return found.astype(np.int64)
    return found


def _arrow(frame: Any) -> Any:
    return nw.from_native(frame, eager_only=True).to_arrow()


def _arrow_csv(frame: Any, file: Any) -> None:
    from pyarrow import csv

    csv.write_csv(_arrow(frame), file)


def _write(path: Any, content: bytes, proof: bytes, overwrite: bool) -> None:
    # The proof goes first: a weighted table never stands alone.
    write_whole(f"{os.fspath(path)}.release.json", proof, overwrite=overwrite)
    write_whole(path, content, overwrite=overwrite)
