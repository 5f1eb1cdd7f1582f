"""Files of many reports: each preceded by its length (u32, big-endian), or one JSON report per line."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sabun.errors import DataError
from sabun.keyvalue.client import ClientError, from_json
from sabun.keyvalue.tally import Outcome, Tally

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["count_files", "read_holdings", "read_reports", "write_reports"]

_LONGEST = 1 << 26


def write_reports(path: str | os.PathLike[str], reports: Iterable[bytes]) -> int:
    """Writes reports to a new file; returns how many.

    Raises:
        DataError: The file exists.
    """
    written = 0
    try:
        with open(path, "xb") as file:
            for report in reports:
                file.write(len(report).to_bytes(4, "big") + report)
                written += 1
    except FileExistsError:
        raise DataError(f"{os.fspath(path)} must be a new file; it exists. Choose another name or remove it first.") from None
    return written


def read_reports(path: str | os.PathLike[str], study: Study) -> Iterator[bytes]:
    """The reports of a file; those in JSON come as bytes, a line that cannot be one as empty bytes.

    Raises:
        DataError: The file ends in the middle of a report.
    """
    content = Path(path).read_bytes()
    if content.lstrip()[:1] == b"{":
        yield from (_of_line(line, study) for line in content.splitlines() if line.strip())
        return
    place = 0
    while place < len(content):
        size = int.from_bytes(content[place : place + 4], "big")
        end = place + 4 + size
        if place + 4 > len(content) or size > _LONGEST or end > len(content):
            raise DataError(f"{os.fspath(path)} must hold whole reports, each after its length; it ends within one.")
        yield content[place + 4 : end]
        place = end


def count_files(tally: Tally, paths: Iterable[str | os.PathLike[str]]) -> tuple[Outcome, int]:
    """Counts the reports of several files once each; returns what became of them and how many were repeated.

    A report id counts once per round. The same bytes again are a harmless repetition; others under the same id are refused.
    """
    seen: dict[bytes, bytes] = {}
    accepted, repeated, position = 0, 0, -1
    rejected: list[tuple[int, str]] = []
    for path in paths:
        for report in read_reports(path, tally.study):
            position += 1
            known = seen.get(report[17:37])
            if known == report:
                repeated += 1
            elif known is not None:
                rejected.append((position, "a person must report once per round; this id came before with another answer."))
            else:
                part = tally.add_reports([report])
                rejected += [(position, reason) for _, reason in part.rejected]
                accepted += part.accepted
                if part.accepted:
                    seen[report[17:37]] = report
    return Outcome(accepted=accepted, rejected=tuple(rejected)), repeated


def read_holdings(path: str | os.PathLike[str], study: Study) -> Iterator[dict[str | int, float]]:
    """What people hold: one row each, one column per key, an empty cell for a key that is not held.

    Raises:
        DataError: A key of the study has no column.
    """
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        names = set(rows.fieldnames or ())
        missing = [key for key in study.terms.keys if str(key) not in names]
        if missing:
            raise DataError(f"{os.fspath(path)} must have a column for every key; {missing[0]!r} has none.")
        for row in rows:
            yield {key: value for key in study.terms.keys if (value := _cell(row, str(key))) is not None}


def _cell(row: Mapping[str, str | None], name: str) -> float | None:
    """A cell that is no number is a key that is not held: an error here would tell what somebody holds."""
    try:
        value = float(row[name] or "")
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _of_line(line: bytes, study: Study) -> bytes:
    try:
        return from_json(study.terms, line.decode("utf-8"))
    except (ClientError, UnicodeDecodeError):
        return b""
