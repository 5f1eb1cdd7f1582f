"""Files of many reports: each preceded by its length (u32, big-endian), or one JSON report per line."""

from __future__ import annotations

import csv
import math
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError
from sabun.keyvalue.client import ClientError, from_json, report_size
from sabun.keyvalue.client.terms import Terms
from sabun.ledger.journal import sync_folder

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["read_holdings", "read_reports", "report_blocks", "write_reports"]

_LONGEST = 1 << 26
_AT_ONCE = 1 << 23
"""Bytes read at a time."""


def write_reports(path: str | os.PathLike[str], reports: Iterable[bytes]) -> int:
    """Writes reports to a new file, all or none; returns how many.

    Raises:
        DataError: The file exists.
    """
    place, written = Path(path), 0
    if place.exists():
        raise _exists(place)
    part = place.with_name(f"{place.name}.{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            for report in reports:
                file.write(len(report).to_bytes(4, "big") + report)
                written += 1
            file.flush()
            os.fsync(file.fileno())
        _publish(part, place)
        sync_folder(place.parent)
    finally:
        part.unlink(missing_ok=True)
    return written


def _publish(part: Path, place: Path) -> None:
    """Gives a finished file its name, unless somebody else has taken it."""
    try:
        os.link(part, place)
    except FileExistsError:
        raise _exists(place) from None
    except OSError:  # a file system without hard links
        if place.exists():
            raise _exists(place) from None
        part.rename(place)


def _exists(place: Path) -> DataError:
    return DataError(f"{place} must be a new file; it exists. Choose another name or remove it first.")


def read_reports(path: str | os.PathLike[str], study: Study) -> Iterator[bytes]:
    """The reports of a file; those in JSON come as bytes, a line that cannot be one as empty bytes.

    Raises:
        DataError: The file ends in the middle of a report.
    """
    return (bytes(report) for block in report_blocks(Path(path), study.terms) for report in block)


def report_blocks(path: Path, terms: Terms) -> Iterator[NDArray[np.uint8] | list[bytes]]:
    """The reports of a file in bounded memory, in order: many of the study's size as rows of one array, others in lists.

    Raises:
        DataError: The file ends in the middle of a report, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            start = file.read(_AT_ONCE)
            if start.lstrip()[:1] == b"{":
                for lines in _lines(file, start):
                    yield [_of_line(line, terms) for line in lines if line.strip()]
            else:
                yield from _framed(file, start, path, report_size(terms))
    except OSError:
        pass
    else:
        return
    raise DataError(f"{path} must be a file of reports that can be read; it cannot.")


def _framed(file: IO[bytes], held: bytes, path: Path, size: int) -> Iterator[NDArray[np.uint8] | list[bytes]]:
    """Reports after their lengths. Runs of the study's size are looked for in steps that double, and anew after others."""
    frame, run, place = 4 + size, 1, 0
    while True:
        count = min(run, (len(held) - place) // frame)
        if count:
            rows = np.frombuffer(held, dtype=np.uint8, count=count * frame, offset=place).reshape(count, frame)
            fitting = (rows[:, :4] == np.frombuffer(size.to_bytes(4, "big"), dtype=np.uint8)).all(axis=1)
            whole = count if fitting.all() else int(fitting.argmin())
            run = 2 * run if whole == count else 1
            place += whole * frame
            if whole:
                yield rows[:whole, 4:]
            if whole == count:
                continue
        length = int.from_bytes(held[place : place + 4], "big")
        end = place + 4 + length
        if place + 4 <= len(held) and end <= len(held):
            yield [held[place + 4 : end]]
            place = end
            continue
        more = file.read(max(_AT_ONCE, end - len(held))) if length <= _LONGEST else b""
        held, place = held[place:] + more, 0
        if not held:
            return
        if not more:
            raise DataError(f"{os.fspath(path)} must hold whole reports, each after its length; it ends within one.")


def _lines(file: IO[bytes], held: bytes) -> Iterator[list[bytes]]:
    """The lines of a file, some at a time."""
    while more := file.read(_AT_ONCE):
        *lines, held = (held + more).splitlines(keepends=True)
        yield lines
    yield held.splitlines()


def read_holdings(
    path: str | os.PathLike[str], study: Study, odd: Counter[str] | None = None, *, encoding: str = "utf-8"
) -> Iterator[dict[str | int, Any]]:
    """What people hold: one line each after the header, one column per key, an empty cell for a key that is not held.

    Where no values are asked, cells are handed on as texts, for the device to tell yes from no.

    Every line is a person, a blank one somebody who holds nothing; a line or a cell that cannot be read is not held. An error,
    or a line left out, would tell what somebody holds. Only a file in which lines cannot be told apart is refused, as a whole.

    Args:
        path: The file.
        study: The study, for its keys.
        encoding: How the file is encoded.
        odd: Counts under `cells` those that are filled but no number: private, for whoever holds the file.

    Raises:
        DataError: A key of the study has no column, or two (the header is public); or a cell runs over a line break, so that
            the number of reports would tell what stands in it. Nothing was yielded.
    """
    with open(path, encoding="utf-8-sig" if encoding == "utf-8" else encoding, errors="replace", newline="\n") as file:
        if any(map(_runs_over, file)):
            raise DataError(
                f"{os.fspath(path)} must hold one person in each line; at least one cell runs over a line break, or a "
                "quotation mark is never closed. Mend the file."
            )
        file.seek(0)
        names = _split(file.readline())
        for key in study.terms.keys:
            if names.count(str(key)) != 1:
                found = "two" if str(key) in names else "none"
                strange = f" It is not in {encoding}: say how it is written, such as --encoding cp932 (Shift-JIS)."
                advice = strange if any("\ufffd" in name for name in names) else ""
                raise DataError(f"{os.fspath(path)} must have a column for every key; {key!r} has {found}.{advice}")
        read = _text if study.terms.valueless else _cell
        columns = {key: names.index(str(key)) for key in study.terms.keys}
        for line in file:
            row = _split(line)
            yield {key: value for key, column in columns.items() if (value := read(row, column, odd)) is not None}


def _split(line: str) -> list[str]:
    """The cells of one line; none where it is no line of a CSV file."""
    return next(iter(_rows([line.rstrip("\r\n")])), [])


def _runs_over(line: str) -> bool:
    """Whether another line break stands in a line, or a quotation mark that it opens takes in the next line."""
    bare = line.removesuffix("\n").removesuffix("\r")
    return "\r" in bare or ('"' in bare and len(_rows([bare + "\n", "next"])) == 1)


def _rows(lines: list[str]) -> list[list[str]]:
    """The rows that lines hold; none where they are no lines of a CSV file."""
    # A cell may be as long as its line, however long that is.
    limit = csv.field_size_limit(max(1, *map(len, lines)) + 5)
    try:
        return list(csv.reader(lines))
    except csv.Error:
        return []
    finally:
        csv.field_size_limit(limit)


def _cell(row: Sequence[str], column: int, odd: Counter[str] | None) -> float | None:
    if column >= len(row) or not row[column].strip():
        return None
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if math.isnan(value) and odd is not None:
        odd["cells"] += 1
    return None if math.isnan(value) else value


def _text(row: Sequence[str], column: int, _: Counter[str] | None) -> str | None:
    return row[column] if column < len(row) else None


def _of_line(line: bytes, terms: Terms) -> bytes:
    try:
        return from_json(terms, line.decode("utf-8"))
    except (ClientError, UnicodeDecodeError):
        return b""
