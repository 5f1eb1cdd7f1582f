"""A synthetic table as a product of its own: rows that look like the records, with their guarantee beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.errors import ParameterError
from sabun.learning.network import Floats
from sabun.learning.synthesis.domain import Domain
from sabun.records import Schema
from sabun.release import Release
from sabun.release.files import write_whole

__all__ = ["SyntheticTable"]


@final
@dataclass(frozen=True, kw_only=True)
class SyntheticTable:
    """Made by `PrivateClassifier(method="anonymizing-first").fit(...)`, as `synthetic_`.

    Args:
        columns: Plain values by column name, the label's last.
        target: Name of the label's column.
        release: The release it came with.
    """

    columns: dict[str, list[Any]] = field(repr=False)
    target: str
    release: Release

    @classmethod
    def of(
        cls, release: Release, matrix: Floats, codes: NDArray[np.int64], *, schema: Schema, classes: Sequence[Any]
    ) -> SyntheticTable:
        """The table that a release holds, from its encoded rows and the positions of their labels."""
        columns = Domain(schema=schema, bins=2).frame(matrix)
        target = "label"
        while target in columns:
            target += "_"
        columns[target] = [classes[int(code)] for code in codes]
        return cls(columns=columns, target=target, release=release)

    def __len__(self) -> int:
        return len(self.columns[self.target])

    def to_frame(self) -> Any:
        """A pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes a .csv or .parquet file, with the release (which holds the guarantee) beside it as `<name>.release.json`.

        Raises:
            SimulatedError: The table came from a seeded coin.
            ParameterError: The name ends in something else.
            DataError: A file exists and `overwrite` is False.
        """
        target = Path(path)
        if target.suffix not in (".csv", ".parquet"):
            raise ParameterError(f"path must end in .csv or .parquet; got {target.name!r}.")
        promise = self.release.to_json()
        write_whole(target, self._bytes(target.suffix), overwrite=overwrite)
        write_whole(target.with_name(target.name + ".release.json"), promise, overwrite=overwrite)

    def _bytes(self, ending: str) -> bytes:
        import io

        import pyarrow as pa
        from pyarrow import csv, parquet

        table = pa.table({name: pa.array(values) for name, values in self.columns.items()})
        sink = io.BytesIO()
        csv.write_csv(table, sink) if ending == ".csv" else parquet.write_table(table, sink)
        return sink.getvalue()
