"""How `sabun density weights` weights a public table: read, tell the plan, draw."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sabun.errors import DataError
from sabun.records import Persons
from sabun.telling.terminal.asked import reading
from sabun.telling.terminal.foretelling import foretell
from sabun.telling.terminal.output import remark
from sabun.telling.terminal.progress import busy

if TYPE_CHECKING:
    from sabun.density import DensityRatio
    from sabun.release import Release

__all__ = ["restored", "weighted"]


def restored(release: Release, public: Any) -> DensityRatio:
    """What was released, beside its public table."""
    from sabun.density import DensityRatio

    with _told_otherwise():
        return DensityRatio.restore(release, public=public)


@contextmanager
def _told_otherwise() -> Iterator[None]:
    """No warning of Python about uncovered or crowded rows: the plan, the result, or its wider intervals say so."""
    from sabun.density import CoverageWarning, CrowdedWarning

    with warnings.catch_warnings():
        for kind in (CoverageWarning, CrowdedWarning):
            warnings.simplefilter("ignore", kind)
        yield


def weighted(ratio: DensityRatio, private: Any, public: Any, *, yes: bool, json: bool) -> dict[str, Any]:
    """Reads, tells the plan, releases; what `--json` says of the plan.

    Raises:
        DataError: A table does not fit, or persons come without a schema.
    """
    with _told_otherwise():
        if str(ratio.method) != "rkhs":
            told = foretell(ratio, n_records=None, told="No plan: only the default method has one.", yes=yes, json=json)
            with reading(private, "Reading the private table, drawing noise, weighting the public table"):
                ratio.fit(private=private, public=public)
            return told
        if isinstance(private, Persons):
            with reading(private, "Reading the tables"):
                people, count = _people(ratio.set_public(public), private)
            _advise(ratio, count, json=json)
            told = foretell(ratio, n_records=count, yes=yes, json=json)
            with busy("Drawing noise, weighting the public table"):
                ratio.fit(private=people, public=public)
            return told
        with reading(private, "Reading the tables"):
            ratio.set_public(public).partial_fit(private=private)
        with busy("Planning"):
            rows = ratio.n_public if ratio.rows_read is None else ratio.rows_read
            _advise(ratio, rows, json=json)
            told = foretell(ratio, n_records=rows, yes=yes, json=json)
        with busy("Drawing noise, weighting the public table"):
            ratio.finalize()
    return told


def _advise(ratio: DensityRatio, rows: int | None, *, json: bool) -> None:
    """Says of crowded columns what a plan would say, where there is none."""
    if rows is None and not json and ratio.crowding.advice is not None:
        remark(ratio.crowding.advice)


def _people(ratio: DensityRatio, private: Persons) -> tuple[Any, int | None]:
    """Persons read once, and how many a plan may be made for: their number where it is public, else a guess, if any."""
    from sabun.engine.by_person import here
    from sabun.records import open_source

    if ratio.schema is None:
        raise DataError("--id must come with --schema or --bounds, which say what a person's cells can hold.")
    people, count = open_source(here(private, schema=ratio.schema), schema=ratio.schema, by_person=True).held()
    return people, ratio.n_public if ratio.rows_read is None else count
