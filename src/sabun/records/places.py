"""Where a file is, on this machine or behind a URL, and how it is opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from sabun.errors import DataError, ParameterError

__all__ = ["Place", "guarded", "is_here", "is_remote", "place_of", "raw_bytes", "readable"]

Place: TypeAlias = Path
"""A path on this machine, or one of `universal_pathlib` that behaves like it."""


def is_remote(text: object) -> bool:
    """Whether a name is a URL."""
    return isinstance(text, str) and "://" in text


def place_of(name: str | os.PathLike[str]) -> Place:
    """The place of a file's name or URL (``s3://bucket/people.parquet``, ``https://…``).

    Raises:
        ParameterError: It is a URL, and the extra that reads URLs is not installed, or nobody knows its kind.
    """
    if isinstance(name, Path) or not is_remote(os.fspath(name)):
        return name if isinstance(name, Path) else Path(name)
    try:
        from upath import UPath
    except ImportError:
        raise ParameterError(
            "a table behind a URL needs the extra that reads them. Install it with: pip install 'sabun[remote]'"
        ) from None
    kind = os.fspath(name).partition("://")[0]
    try:
        found: Any = UPath(os.fspath(name))
    except (ValueError, ImportError):
        raise ParameterError(
            f"a table's URL must be of a kind that can be read here; got {kind!r:.20}. Its package (such as s3fs for s3, "
            "gcsfs for gs) must be installed."
        ) from None
    return found  # type: ignore[no-any-return]


def is_here(place: Place) -> bool:
    """Whether a place is a file of this machine's own."""
    return type(place).__module__.partition(".")[0] == "pathlib"


def readable(place: Place) -> Any:
    """What pyarrow opens: a name on this machine, an open file behind a URL."""
    return str(place) if is_here(place) else place.open("rb")


def raw_bytes(place: Place) -> Any:
    """The bytes of a file, unpacked where its name says that it is packed."""
    import pyarrow as pa

    packed = {"gz": "gzip", "zst": "zstd", "bz2": "bz2"}.get(place.name.lower().rpartition(".")[2])
    return pa.input_stream(readable(place), compression=packed)


def guarded(opened: Any, message: str) -> Iterator[Any]:
    """The batches of a reader as tables; its errors become ours, without a trace of their text."""
    import pyarrow as pa

    batches: Iterator[Any] = iter(())
    failed = False
    try:
        batches = iter(opened())
    except (pa.ArrowException, OSError, UnicodeError):
        failed = True
    while not failed:
        batch = None
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError, UnicodeError):
            failed = True
        if batch is not None:
            yield pa.Table.from_batches([batch])
        elif not failed:
            return
    raise DataError(message)
