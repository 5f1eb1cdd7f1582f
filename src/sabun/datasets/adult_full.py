"""The whole Adult table, which does not come with the package: from a folder, from the cache, or from OpenML."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import tempfile
import urllib.request
import zlib
from pathlib import Path

from sabun.errors import DataError

__all__ = ["arff_rows", "full_rows"]

_URL = "https://api.openml.org/data/v1/download/1595261/adult.arff"
_FILE = "adult.csv.gz"
_DIGEST = "e5e94b1d4a8ba70a7ba42d441e9ca265c2dded4102b3cb57e24627babe3c9385"
"""SHA-256 of the 48,842 lines of cells joined by commas, sorted: whatever order a source has them in."""

_SECONDS = 60
_MOST_BYTES = 50_000_000
_WHAT_TO_DO = f"Put {_FILE} into a folder and name that folder in the environment variable SABUN_DATA."


def full_rows(names: list[str]) -> list[list[str]]:
    """All 48,842 rows with cells in the order of the names, checked against the known digest.

    Raises:
        DataError: The table is neither in the folder nor within reach, or is not the known one.
    """
    folder = os.environ.get("SABUN_DATA")
    if folder and (Path(folder) / _FILE).is_file():
        return _checked(_csv_rows(Path(folder) / _FILE, names), str(Path(folder) / _FILE))
    cached = _cache_folder() / _FILE
    if not cached.is_file():
        rows = _checked(arff_rows(_downloaded(_URL), names), _URL)
        _keep(cached, names, rows)
        return rows
    return _checked(_csv_rows(cached, names), str(cached))


def arff_rows(text: str, names: list[str]) -> list[list[str]]:
    """The rows of an ARFF text in the order of the names, written as the original writes them.

    OpenML calls the last column ``class`` and quotes some values; whole numbers may come with a decimal point.
    """
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if line.strip().lower() == "@data"), len(lines))
    attributes = [line.split(None, 2)[1].strip("'\"") for line in lines[:start] if line.lower().startswith("@attribute")]
    found = ["income" if name == "class" else name for name in attributes]
    body = [line for line in lines[start + 1 :] if line.strip() and not line.startswith("%")]
    rows = csv.reader(body, quotechar="'", skipinitialspace=True)
    return _ordered(found, [[_cell(cell) for cell in row] for row in rows], names)


def _cell(text: str) -> str:
    stripped = text.strip().strip('"').rstrip(".")
    whole, point, rest = stripped.partition(".")
    return whole if point and whole.isdecimal() and not rest.strip("0") else stripped


def _ordered(found: list[str], rows: list[list[str]], names: list[str]) -> list[list[str]]:
    if not set(names) <= set(found) or any(len(row) != len(found) for row in rows):
        return []
    places = [found.index(name) for name in names]
    return [[row[place] for place in places] for row in rows]


def _csv_rows(path: Path, names: list[str]) -> list[list[str]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            found, *rows = csv.reader(file)
    except (OSError, EOFError, ValueError, zlib.error, csv.Error):
        return []
    return _ordered(found, rows, names)


def _checked(rows: list[list[str]], where: str) -> list[list[str]]:
    text = "\n".join(sorted(",".join(row) for row in rows))
    if hashlib.sha256(text.encode()).hexdigest() != _DIGEST:
        raise DataError(f"{where} must hold the known Adult table; its SHA-256 differs. Remove it, or: {_WHAT_TO_DO}")
    return rows


def _downloaded(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            content: bytes = answer.read(_MOST_BYTES)
    except (OSError, ValueError):
        raise DataError(f"the full Adult table cannot be downloaded from {url}. {_WHAT_TO_DO}") from None
    return content.decode("utf-8", "replace")


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "sabun"


def _keep(path: Path, names: list[str], rows: list[list[str]]) -> None:
    """Writes the table into the cache in one step; a cache that cannot be written to is not an error."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *rows])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(gzip.compress(text.getvalue().encode()))
        os.replace(file.name, path)
    except OSError:
        return
