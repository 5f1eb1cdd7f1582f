"""A private table as it was asked for: as it is, in pieces over an engine, or with several rows per person."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from sabun.errors import ParameterError
from sabun.records import FilePart, Persons
from sabun.telling.terminal.progress import busy, progress_bar

__all__ = ["asked_files", "asked_table", "reading"]


@contextmanager
def asked_table(
    table: FilePart, *, engine: str | None, id: str | None = None, rules: Sequence[str] | None = None, quiet: bool = False
) -> Iterator[Any]:
    """What `fit` is given.

    Args:
        table: The file, folder or pattern.
        engine: Who counts it in pieces, if anybody: a bar on the terminal shows pieces done and time left, once for each
            reading.
        id: The column that tells persons apart, where they may have several rows.
        rules: Such as ``cost=mean``.
        quiet: Whether to show no bar.

    Raises:
        ParameterError: The options contradict each other, or a rule cannot be read.
    """
    if rules and id is None:
        raise ParameterError("--rule must come with --id, the column that tells persons apart.")
    with _bars(quiet=quiet) as step:
        asked: Any = table
        if engine is not None:
            from sabun.engine import spread

            asked = spread(table, engine=engine, progress=step)
        if id is not None:
            from sabun.records import persons

            asked = persons(asked, id=id, rules=dict(_rule(text) for text in rules or ()))
        yield asked


def reading(asked: Any, words: str = "Reading the table") -> AbstractContextManager[None]:
    """A sign on the terminal that a table is being read; pieces have a bar of their own."""
    return nullcontext() if _in_pieces(asked) else busy(words)


def asked_files(table: FilePart, *, engine: str | None) -> list[FilePart]:
    """The files of a table: itself, or those that an engine would read.

    Raises:
        DataError: There is none.
    """
    if engine is None or not isinstance(table, FilePart):  # a database's table is refused by whoever spreads it
        return [table]
    from sabun.engine.pieces import files_of

    return [FilePart(path=file, form=table.form) for file in files_of([table])]


def _in_pieces(asked: Any) -> bool:
    from sabun.engine import Elsewhere

    return isinstance(asked.table if isinstance(asked, Persons) else asked, Elsewhere)


@contextmanager
def _bars(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar for each reading: it comes with the first piece, and goes with the last, or with an error."""
    shown: list[tuple[AbstractContextManager[Any], Callable[[float, str], None]]] = []

    def close() -> None:
        while shown:
            shown.pop()[0].__exit__(None, None, None)

    def step(done: int, count: int) -> None:
        if not shown:
            bar = progress_bar("Counting pieces", quiet=quiet)
            shown.append((bar, bar.__enter__()))
        shown[0][1](done / count, f"{done} of {count}")
        if done == count:
            close()

    try:
        yield step
    finally:
        close()


def _rule(text: str) -> tuple[str, str]:
    name, found, rule = text.rpartition("=")
    if not found or not name:
        raise ParameterError(f"--rule must be a column and a rule, such as cost=mean; got {text!r:.60}.")
    return name, rule
