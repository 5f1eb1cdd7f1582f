"""A table that is counted in pieces by an engine; to be given to `fit` in the place of the table."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from sabun.engine.counting import Task
from sabun.engine.engines import Engine, Step, engine_named, gathered
from sabun.engine.pieces import Piece, cut, plan_of
from sabun.engine.statistic import Elsewhere, Grouped, Statistic
from sabun.errors import DataError
from sabun.records import FileFormat

__all__ = ["Spread", "spread"]

State = TypeVar("State")


@final
@dataclass(frozen=True, kw_only=True)
class Spread(Elsewhere):
    """A table in pieces and who counts them; made by `spread`."""

    pieces: tuple[Piece, ...] = field(repr=False)
    engine: Engine
    progress: Step | None = field(default=None, repr=False)

    @property
    def form(self) -> FileFormat | None:
        """How texts in the files are written."""
        return self.pieces[0].part.form

    def names(self, form: FileFormat) -> tuple[str, ...] | None:
        """The columns of its first file.

        Raises:
            DataError: It cannot be read.
        """
        return self.pieces[0].part.written(form).names()

    def counted(self, statistic: Statistic[State]) -> State:
        """The state of all pieces, each counted once.

        Raises:
            DataError: As `sabun.engine.engines.gathered`.
        """
        task = Task.of(statistic, plan_of(self.pieces))
        reports = self.engine.reports(task, self.pieces)
        return gathered(reports, statistic, plan=task.plan, count=len(self.pieces), step=self.progress)

    @property
    def parts(self) -> int:
        """How many pieces there are."""
        return len(self.pieces)

    def grouped(self, grouped: Grouped[State]) -> State:
        """The state of rows that must meet, such as those of a person.

        Raises:
            DataError: As `sabun.engine.shuffle.shuffled`.
        """
        from sabun.engine.shuffle import shuffled

        return shuffled(self.engine, grouped, self.pieces, step=self.progress)


def spread(source: Any, *, engine: Any = "serial", progress: Step | None = None) -> Elsewhere:
    """A table to be counted in pieces where it lies: give the result to `fit` in the place of the table.

    The answer is the same to the bit as with the table itself, whatever the engine. Where a person may have several rows,
    `sabun.records.persons` takes it: ``persons(spread("visits/*.parquet", engine="processes:4"), id="patient")``.

    Args:
        source: A file, a folder of .parquet files, a pattern (``people/*.parquet``) or a list of them, which every worker must
            be able to read under the same name; or a Dask or Spark DataFrame.
        engine: ``serial``, ``processes:4``, ``dask`` (a cluster on this machine), ``dask://host:port``, ``spark``, or a Dask
            `Client` or Spark session you have.
        progress: Called with how many pieces are done and how many there are.

    Raises:
        DataError: There is no such table.
        ParameterError: There is no such engine.

    Example:
        >>> import sabun
        >>> from sabun.engine import spread
        >>> spread("no/such/*.parquet", engine="processes:2")
        Traceback (most recent call last):
        ...
        sabun.errors.DataError: 'no/such/*.parquet' must match at least one file; it matches none.
    """
    found = engine_named(engine)
    files = isinstance(source, str | os.PathLike | list | tuple)
    if not files and not (hasattr(found, "frame") and hasattr(source, "columns") and _home(source) == _home(found)):
        raise DataError(f"a table to spread must be files, or a frame of the engine's own; got {type(source).__name__}.")
    if not files:
        frame: Elsewhere = found.frame(source, progress)  # type: ignore[attr-defined]
        return frame
    return Spread(pieces=cut(source), engine=found, progress=progress)


def _home(thing: Any) -> str:
    """Whose frame or engine it is: ``dask`` or ``pyspark``."""
    module = type(thing).__module__
    return "dask" if "dask" in module else "pyspark" if "spark" in module else module
