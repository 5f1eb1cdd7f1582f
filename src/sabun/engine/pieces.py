"""A table on disk cut into numbered pieces, each with a mark that tells whether its file is still the one that was cut.

Marks and the number of rows behind them are PRIVATE: a footer holds row counts and extremes. They stay with the owner and the
workers, and are in no release, ledger, retry key or message.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from sabun import checks
from sabun.errors import DataError
from sabun.records import FilePart, row_groups, table_files
from sabun.records.files import same_file
from sabun.records.forms import FileFormat
from sabun.records.places import Place, is_here, place_of

__all__ = ["Piece", "cut", "files_of", "plan_of", "whole_files"]

_ROWS = 1 << 20
"""About how many rows a piece has, where a file can be cut; a matter of speed that cannot change any result."""

_FOOTER = 1 << 16
"""Bytes at the end of a file that are looked at: a Parquet file's footer, or most of it, lies there."""

_VERSIONS = ("ETag", "etag", "generation", "mtime", "LastModified", "last_modified", "modified", "updated", "created")
"""Under one of these names a store says which version of a file it has; the first that there is counts."""


@final
@dataclass(frozen=True, kw_only=True)
class Piece:
    """One piece of a plan.

    Args:
        number: Its place in the plan, from 0.
        part: Where its rows are.
        mark: What its file looked like when it was cut; PRIVATE.
    """

    number: int
    part: FilePart
    mark: str = field(repr=False)

    def must_be_unchanged(self) -> None:
        """Refuses a file that is not the one that was cut.

        Raises:
            DataError: It changed, or is gone.
        """
        if _mark(self.part.path) != self.mark:
            raise self.changed()

    def changed(self) -> DataError:
        """What is said of a file that is not the one that was cut."""
        return DataError(
            f"{self.part.path.name} (piece {self.number}) must stay as it is while it is read; it was changed or removed. "
            "Nothing was charged. Ask again when nobody writes to it."
        )


def cut(source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, rows: int = _ROWS) -> tuple[Piece, ...]:
    """Cuts files into pieces: Parquet files between row groups, others not at all.

    Args:
        source: A file, a folder of .parquet files, a pattern such as ``people/*.parquet``, or several of them.
        rows: About how many rows a piece should have.

    Raises:
        DataError: There is no such file, it is of another kind, or a file is named twice.

    Example:
        >>> cut("no/such/file.csv")
        Traceback (most recent call last):
        ...
        sabun.errors.DataError: 'no/such/file.csv' must be a file or folder; there is none of that name.
    """
    checks.whole(minimum=1, rows=rows)
    files = files_of([source] if isinstance(source, str | os.PathLike) else list(source))
    form = source.form if isinstance(source, FilePart) else None
    parts = [(part, mark) for file, mark in [(file, _mark(file)) for file in files] for part in _parts(file, rows, form)]
    return tuple(Piece(number=number, part=part, mark=mark) for number, (part, mark) in enumerate(parts))


def whole_files(files: Sequence[Place]) -> tuple[Piece, ...]:
    """Files of whatever kind as pieces, one each.

    Raises:
        DataError: There is none, or one cannot be read.
    """
    if not files:
        raise DataError("there must be at least one file; got none.")
    marks = [_mark(file) for file in files]
    for file, mark in zip(files, marks, strict=True):
        if not mark:
            raise DataError(f"{str(file)!r} must be a file that can be read; it is not.")
    return tuple(
        Piece(number=number, part=FilePart(path=file), mark=mark)
        for number, (file, mark) in enumerate(zip(files, marks, strict=True))
    )


def plan_of(pieces: Sequence[Piece]) -> str:
    """A digest that tells one plan from another; PRIVATE, as the marks are."""
    told = [f"{piece.number}\0{piece.part.path}\0{piece.part.groups}\0{piece.mark}" for piece in pieces]
    return hashlib.sha256("\n".join(told).encode("utf-8", "surrogateescape")).hexdigest()


def _parts(file: Place, rows: int, form: FileFormat | None) -> list[FilePart]:
    sizes = row_groups(file)
    if sizes is None:
        return [FilePart(path=file, form=form)]
    bunches: list[list[int]] = []
    held = rows
    for number, size in enumerate(sizes):
        if held >= rows:
            bunches.append([])
            held = 0
        bunches[-1].append(number)
        held += size
    # A file without rows is a piece too: that it was looked at is part of the proof that nothing is missing.
    return [FilePart(path=file, groups=tuple(bunch), form=form) for bunch in bunches or [[]]]


def files_of(sources: Sequence[str | os.PathLike[str]]) -> list[Place]:
    """The files of tables, folders and patterns, each once.

    Raises:
        DataError: There is none, or one is named twice.
    """
    if not sources:
        raise DataError("a table must be at least one file; got none.")
    found = [file for source in sources for file in _found(source)]
    seen: set[object] = set()
    for file in found:
        if same_file(file) in seen:
            raise DataError(f"{file.name} must be named once; the same file comes twice, and its rows would count twice.")
        seen.add(same_file(file))
    return found


def _found(source: str | os.PathLike[str]) -> list[Place]:
    place = place_of(os.fspath(source))
    if not glob.has_magic(str(place)) or place.exists():
        return table_files(place)
    matched = _matching(place)
    if not matched:
        raise DataError(f"{os.fspath(source)!r} must match at least one file; it matches none.")
    return [file for path in matched for file in table_files(path)]


def _matching(pattern: Place) -> list[Place]:
    if is_here(pattern):
        return sorted(place_of(name) for name in glob.glob(str(pattern), recursive=True))
    remote: Any = pattern
    return sorted(place_of(f"{remote.protocol}://{name}") for name in remote.fs.glob(remote.path))


def _mark(file: Place) -> str:
    try:
        with file.open("rb") as opened:
            size = opened.seek(0, os.SEEK_END)
            # No device or inode, workers may see the file through another mount; of a store, nothing but the version.
            time = _times(os.fstat(opened.fileno())) if is_here(file) else _key(file)
            opened.seek(max(size - _FOOTER, 0))
            end = opened.read()
    except OSError:
        return ""
    return hashlib.sha256(f"{size}\0{time}\0".encode() + end).hexdigest()


def _times(status: os.stat_result) -> str:
    """When a file was written to; the second of them nobody can set back, as a copy that keeps times does with the first."""
    return f"{status.st_mtime_ns} {status.st_ctime_ns}"


def _key(file: Any) -> str:
    """What a store behind a URL says of a file's version, asked anew: a listing says other things than the file's head."""
    file.fs.invalidate_cache(file.path)
    told = file.fs.info(file.path)
    return next((str(told[name]) for name in _VERSIONS if told.get(name)), "")
