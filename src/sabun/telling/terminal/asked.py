"""A private table as it was asked for: as it is, in pieces over an engine, or with several rows per person."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeAlias, final

import typer

from sabun.errors import ParameterError
from sabun.records import FilePart, Persons
from sabun.telling.terminal.progress import busy, progress_bar
from sabun.telling.terminal.written import widened

__all__ = ["ANY_COLUMN", "EVERY_ROW", "AskedPersons", "Spelling", "as_persons", "asked_files", "asked_table", "reading"]

ANY_COLUMN = "ANY COLUMN"
"""What an option takes that names a column of the table, declared or not."""

_Id: TypeAlias = Annotated[
    str | None,
    typer.Option("--id", metavar=ANY_COLUMN, help="The column that tells persons apart, where a person may have several rows."),
]
_Rules: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--rule", help="With --id, how a person's cells become one: cost=mean, age=last, sex=mode; repeat it."),
]
_Order: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--order", metavar=ANY_COLUMN, help="With --id, the column of numbers or dates that says what is first and last."
    ),
]
Spelling: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--spelling",
        metavar="text|caseless|number",
        help="With --id: text; caseless, where A12 and a12 are one id; or number, where 007 and 7 are.",
    ),
]
_Memory: TypeAlias = Annotated[
    str | None,
    typer.Option("--memory", help="With --id, about how much persons may take until others wait on disk: 500M, 4G."),
]
_OPTIONS = {"id": _Id, "rule": _Rules, "order": _Order, "spelling": Spelling, "memory": _Memory}

_SIZE = re.compile(r"([0-9]{1,12}) ?([kmgt]?)i?b?", re.IGNORECASE)


@final
@dataclass(frozen=True, kw_only=True)
class AskedPersons:
    """What was said about persons with several rows each; nothing where none of its options was given."""

    id: str | None = None
    rules: tuple[tuple[str, str], ...] = ()
    how: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, *, id: str | None, rule: list[str] | None, memory: str | None, **said: str | None) -> Self:
        """Of the options as they were typed.

        Raises:
            ParameterError: One comes without an id, or cannot be read.
        """
        told = {name: value for name, value in {"rule": rule or None, "memory": memory, **said}.items() if value is not None}
        if id is None and told:
            raise ParameterError(f"--{next(iter(told))} must come with --id, the column that tells persons apart.")
        how: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        how |= {} if memory is None else {"memory": _bytes(memory)}
        return cls(id=id, rules=tuple(map(_rule, rule or ())), how=tuple(how.items()))

    def table(self, table: Any) -> Any:
        """That table as it is, or with several rows per person.

        Raises:
            ParameterError: A rule, or the spelling of ids, is not known.
        """
        if self.id is None:
            return table
        from sabun.records import persons

        return persons(table, id=self.id, rules=dict(self.rules), **dict(self.how))


EVERY_ROW = AskedPersons()
"""Nothing was said: each row is one person's."""


def as_persons(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options about persons with several rows each, in the place of its parameter `persons`."""
    return widened(command, _OPTIONS, lambda given: given | {"persons": AskedPersons.of(**_taken(given))}, instead="persons")


def _taken(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given.pop(name, None) for name in _OPTIONS}


@contextmanager
def asked_table(
    table: FilePart, *, engine: str | None, persons: AskedPersons = EVERY_ROW, quiet: bool = False
) -> Iterator[Any]:
    """What `fit` is given.

    Args:
        table: The file, folder or pattern.
        engine: Who counts it in pieces, if anybody: a bar on the terminal shows pieces done and time left, once for each
            reading.
        persons: What was said about persons.
        quiet: Whether to show no bar.

    Raises:
        ParameterError: There is no such engine, rule or spelling.
    """
    with _bars(quiet=quiet, counts=persons.id is None) as step:
        asked: Any = table
        if engine is not None:
            from sabun.engine import spread

            asked = spread(table, engine=engine, progress=step)
        yield persons.table(asked)


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
def _bars(*, quiet: bool, counts: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar for each reading: it comes with the first piece, and goes with the last, or with an error.

    Where rows belong to persons it counts nothing aloud: how many pieces there are goes with how many rows.
    """
    shown: list[tuple[AbstractContextManager[Any], Callable[[float, str], None]]] = []

    def close() -> None:
        while shown:
            shown.pop()[0].__exit__(None, None, None)

    def step(done: int, count: int) -> None:
        if not shown:
            bar = progress_bar("Counting pieces", quiet=quiet)
            shown.append((bar, bar.__enter__()))
        shown[0][1](done / count, f"{done} of {count}" if counts else "")
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


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise ParameterError(f"--memory must be a number of bytes, such as 500M or 4G; got {text!r:.60}.")
    return int(found[1]) << 10 * " kmgt".index(found[2].lower() or " ")
