"""A private table as it was asked for: as it is, in pieces over an engine, or with several rows per person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sabun.errors import ParameterError
from sabun.records import FilePart
from sabun.telling.terminal.progress import busy, progress_bar

__all__ = ["asked_table", "of_persons"]


@contextmanager
def asked_table(table: FilePart, *, id: str | None, rules: Sequence[str] | None, engine: str | None = None) -> Iterator[Any]:
    """What `fit` is given, while a sign on the terminal says that it is being read.

    Args:
        table: The file, folder or pattern.
        id: The column that tells persons apart, where they may have several rows.
        rules: Such as ``cost=mean``.
        engine: Who counts it in pieces, if anybody.

    Raises:
        ParameterError: The options contradict each other, or a rule cannot be read.
    """
    if engine is not None and id is not None:
        raise ParameterError("--engine must be left out with --id: the rows of a person may lie in several pieces.")
    asked = of_persons(table, id=id, rules=rules)
    if engine is not None:
        from sabun.engine import spread

        with progress_bar("Counting pieces") as step:
            yield spread(table, engine=engine, progress=lambda done, count: step(done / count, f"{done} of {count}"))
        return
    with busy("Reading the table"):
        yield asked


def of_persons(table: FilePart, *, id: str | None, rules: Sequence[str] | None) -> Any:
    """A table as it is, or with several rows per person, as `--id` and `--rule` say.

    Raises:
        ParameterError: There is a rule without an id, or it cannot be read.
    """
    if rules and id is None:
        raise ParameterError("--rule must come with --id, the column that tells persons apart.")
    if id is None:
        return table
    from sabun.records import persons

    return persons(table, id=id, rules=dict(_rule(text) for text in rules or ()))


def _rule(text: str) -> tuple[str, str]:
    name, found, rule = text.rpartition("=")
    if not found or not name:
        raise ParameterError(f"--rule must be a column and a rule, such as cost=mean; got {text!r:.60}.")
    return name, rule
