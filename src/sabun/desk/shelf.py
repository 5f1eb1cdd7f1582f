"""The files of one folder, by handles: a browser never names a path."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import final

from sabun.errors import ParameterError, SabunError
from sabun.records import FileFormat, FilePart, Schema
from sabun.records.csv_files import is_csv
from sabun.records.workbooks import is_workbook

__all__ = ["Item", "Shelf"]

_SCHEMA = ".schema.json"
_ENDING = re.compile(r"\.[^.]+(?:\.(?:gz|zst|bz2))?\Z", re.IGNORECASE)
_SQLITE = b"SQLite format 3\0"
_MOST = 2000
"""How many names of a folder are looked at: a page that lists more helps nobody."""


@final
@dataclass(frozen=True, kw_only=True)
class Item:
    """A file of the folder.

    Args:
        handle: What the browser calls it.
        path: Where it is.
    """

    handle: str
    path: Path

    @property
    def name(self) -> str:
        """What people call it."""
        return self.path.name

    @property
    def stem(self) -> str:
        """The same without what says how it is written: `people.2024` of `people.2024.csv.gz`."""
        return _ENDING.sub("", self.name)


@final
class Shelf:
    """The plain files of a folder: no links, nothing hidden, nothing below it, nothing outside.

    Args:
        folder: The folder.

    Raises:
        ParameterError: There is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ParameterError(f"folder must be a folder that exists; got {str(folder)!r}. Make it first.")
        self.folder = folder.resolve()
        self._key = secrets.token_bytes(32)

    def items(self) -> list[Item]:
        """Every file, by name."""
        with os.scandir(self.folder) as found:
            names = sorted(one.name for _, one in zip(range(_MOST), found, strict=False) if self._plain(one.name))
        return [Item(handle=self._handle(name), path=self.folder / name) for name in names]

    def _plain(self, name: str) -> bool:
        """Whether a name is a file's own: a link may lead anywhere."""
        if name.startswith("."):
            return False
        try:
            return stat.S_ISREG(os.lstat(self.folder / name).st_mode)
        except OSError:
            return False

    def _handle(self, name: str) -> str:
        return hmac.new(self._key, os.fsencode(name), hashlib.sha256).hexdigest()[:24]

    def tables(self) -> list[Item]:
        """Files that can be read as tables."""
        return [one for one in self.items() if _is_table(one.name)]

    def schemas(self) -> list[Item]:
        """Files that declare columns."""
        return [one for one in self.items() if one.name.endswith(_SCHEMA)]

    def ledgers(self) -> list[Item]:
        """Files that look like ledgers."""
        return [one for one in self.items() if one.path.suffix == ".ledger" and _begins(one.path, _SQLITE)]

    def found(self, handle: str, among: list[Item]) -> Item:
        """A file by its handle.

        Raises:
            ParameterError: There is none, or there is none any more.
        """
        for item in among:
            if hmac.compare_digest(item.handle.encode(), handle.encode("utf-8", "replace")):
                return item
        raise ParameterError("the file must be one of this folder; it is not, or not any more. Go back and choose again.")

    def schema_of(self, table: Item) -> Path:
        """Where the schema of a table is: `people.schema.json`, or `people.csv.schema.json` where several are called people.

        One that was written while a table was alone goes on for those whose columns it names.
        """
        own, shared = self.folder / f"{table.name}{_SCHEMA}", self.folder / f"{table.stem}{_SCHEMA}"
        if self._plain(own.name):
            return own
        return shared if self._alone(table) or self._names_columns_of(shared, table) else own

    def schema_for(self, table: Item) -> Path:
        """Where the schema of a table is to be written: never where it would be another table's too."""
        return self.schema_of(table) if self._alone(table) else self.folder / f"{table.name}{_SCHEMA}"

    def _alone(self, table: Item) -> bool:
        """Whether no other table goes by its name, or would have its schema under it."""
        near = [one for one in os.listdir(self.folder) if one.startswith(table.stem) and one != table.name]
        return not any(table.stem in (one, _ENDING.sub("", one)) and _is_table(one) and self._plain(one) for one in near)

    def _names_columns_of(self, schema: Path, table: Item) -> bool:
        if not self._plain(schema.name):
            return False
        try:
            declared = Schema.load(schema)
            return set(declared.names) <= set(_stamped_names(table.path, declared.file))
        except (OSError, SabunError):
            return False

    def declared(self, table: Item) -> Schema | None:
        """What is declared about a table's columns; None where that cannot be told yet."""
        path = self.schema_of(table)
        try:
            return Schema.load(path) if self._plain(path.name) else None
        except SabunError:
            return None

    def names(self, table: Item) -> tuple[str, ...]:
        """The columns of a table, those that are not declared too; none where they cannot be read."""
        declared = self.declared(table)
        try:
            return _stamped_names(table.path, FileFormat() if declared is None else declared.file)
        except (OSError, SabunError):
            return () if declared is None else declared.names

    def fresh(self, name: str, ending: str, *, taken: Collection[Path] = ()) -> Path:
        """A name that is free, and not about to be taken, like the one given."""
        for number in range(1, 10_000):
            path = self.folder / f"{name}{'' if number == 1 else f'-{number}'}{ending}"
            if path not in taken and not os.path.lexists(path):
                return path
        raise ParameterError(f"there must be a free name like {name!r} in the folder; there is none. Tidy it up.")


def _stamped_names(path: Path, form: FileFormat) -> tuple[str, ...]:
    found = os.stat(path)
    return _names(path, form, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=64)
def _names(path: Path, form: FileFormat, *_stamp: int) -> tuple[str, ...]:
    """Kept as long as the file stays: a workbook is read whole for its names."""
    return FilePart.of(path).written(form).names()


def _is_table(name: str) -> bool:
    path = Path(name)
    return is_csv(path) or is_workbook(path) or path.suffix == ".parquet"


def _begins(path: Path, with_: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(with_)) == with_
    except OSError:
        return False
