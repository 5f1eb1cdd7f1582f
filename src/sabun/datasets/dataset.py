"""What a loader returns, with the few things all loaders share."""

from __future__ import annotations

import csv
import lzma
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, final

from sabun.records import CategoryColumn, Schema

__all__ = ["CC_BY", "Dataset", "shipped_rows"]

CC_BY = "CC BY 4.0"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """A public data set, with what a private method would have to know about it beforehand.

    Attributes:
        name: Short name.
        data: pandas DataFrame with one named column for each column of the schema; missing cells are None or NaN.
        target: pandas Series of labels, one for each row.
        schema: Public bounds and categories of `data`, from documentation and not from the rows.
        label: The public list of the labels in `target`.
        licence: Under which terms the data may be used.
        source: Where they come from.
    """

    name: str
    data: Any = field(repr=False)
    target: Any = field(repr=False)
    schema: Schema = field(repr=False)
    label: CategoryColumn
    licence: str
    source: str

    def __len__(self) -> int:
        return len(self.data)

    def complete(self) -> Dataset:
        """The data set without the rows that have a missing cell, numbered anew."""
        whole = self.data.notna().all(axis=1)
        return Dataset(
            name=self.name,
            data=self.data[whole].reset_index(drop=True),
            target=self.target[whole].reset_index(drop=True),
            schema=self.schema,
            label=self.label,
            licence=self.licence,
            source=self.source,
        )


def shipped_rows(name: str) -> list[list[str]]:
    """The lines of a data file that comes with the package, the header first."""
    file = resources.files("sabun.datasets") / "data" / name
    return list(csv.reader(lzma.decompress(file.read_bytes()).decode("utf-8").splitlines()))
