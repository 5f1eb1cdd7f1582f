"""A private table as it was asked for: as it is, in pieces over an engine, or with several rows per person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sabun.errors import ParameterError
from sabun.records import FilePart
from sabun.telling.terminal.progress import busy, progress_bar

__all__ = ["asked_table"]


@contextmanager
def asked_table(table: FilePart, *, engine: str | None, id: str | None, rules: Sequence[str] | None) -> Iterator[Any]:
    """What `fit` is given, while a sign on the terminal says that it is being read.

    Args:
        table: The file, folder or pattern.
        engine: Who counts it in pieces, if anybody.
        id: The column that tells persons apart, where they may have several rows.
        rules: Such as ``cost=mean``.

    Raises:
        ParameterError: The options contradict each other, or a rule cannot be read.
    """
    if engine is not None and id is not None:
        raise ParameterError("--engine must be left out with --id: the rows of a person may lie in several pieces.")
    if rules and id is None:
        raise ParameterError("--rule must come with --id, the column that tells persons apart.")
    if engine is not None:
        from sabun.engine import spread

        with progress_bar("Counting pieces") as step:
            yield spread(table, engine=engine, progress=lambda done, count: step(done / count, f"{done} of {count}"))
        return
    with busy("Reading the table"):
        if id is None:
            yield table
        else:
            from sabun.records import persons

            yield persons(table, id=id, rules=dict(_rule(text) for text in rules or ()))


def _rule(text: str) -> tuple[str, str]:
    name, found, rule = text.rpartition("=")
    if not found or not name:
        raise ParameterError(f"--rule must be a column and a rule, such as cost=mean; got {text!r:.60}.")
    return name, rule
