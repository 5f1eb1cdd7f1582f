"""A table or view of a database, by its URL: read in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, final

from sabun.errors import DataError, ParameterError
from sabun.records.forms import PLAIN, FileFormat
from sabun.records.texts import text_table

__all__ = ["DatabaseTable", "is_database"]

_BETWEEN = "::"
_RULE = "the database's URL, two colons and the table's name, such as postgresql://host/name::people"
_MOMENTS = {"DATE": "YYYY-MM-DD", "DATETIME": "YYYY-MM-DD HH24:MI:SS", "TIMESTAMP": "YYYY-MM-DD HH24:MI:SS"}


def is_database(text: object) -> bool:
    """Whether a name is that of a table in a database."""
    return isinstance(text, str) and "://" in text and _BETWEEN in text.partition("://")[2]


@final
@dataclass(frozen=True, kw_only=True)
class DatabaseTable:
    """A table or view.

    Args:
        url: The database, as SQLAlchemy names it; never shown, for it may hold a password.
        table: The table's name, with its schema's before a dot if it has one.
    """

    url: str = field(repr=False)
    table: str

    @classmethod
    def of(cls, text: str) -> Self:
        """The table of ``postgresql://host/name::people``.

        Raises:
            ParameterError: It looks otherwise.
        """
        url, _, table = text.rpartition(_BETWEEN)
        if not url or not table:
            raise ParameterError(f"a table of a database must be written as {_RULE}.")
        return cls(url=url, table=table)

    @property
    def name(self) -> str:
        """The table's name, for messages."""
        return self.table

    @property
    def form(self) -> FileFormat | None:
        """A database has numbers, not texts that write them."""
        return PLAIN

    def written(self, form: FileFormat) -> Self:
        """The same: see `form`."""
        return self

    def names(self) -> tuple[str, ...]:
        """Its columns.

        Raises:
            DataError: The database cannot be reached, or has no such table.
        """
        return tuple(column.name for column in self._reached(lambda engine: self._table(engine).columns))

    def check(self, names: Sequence[str]) -> None:
        """Refuses a table that lacks one of the named columns.

        Raises:
            DataError: As `names`, or a column is absent.
        """
        found = self.names()
        absent = [name for name in names if name not in found]
        if absent:
            raise DataError(f"table {self.table!r} has no column {absent[0]!r}. Its columns must include every declared name.")

    def chunks(self, names: Sequence[str], *, rows: int) -> Iterator[Any]:
        """Yields the named columns as tables of text.

        Raises:
            DataError: As `check`, or reading fails in the middle.
        """
        from sqlalchemy import select

        self.check(names)
        engine = self._engine()
        table = self._reached(self._table)
        asked = select(*(_as_it_is(table.columns[name], engine.dialect.name) for name in names))
        failed = False
        lines: Iterator[Any] = iter(())
        try:
            with engine.connect().execution_options(stream_results=True, yield_per=rows) as connection:
                try:
                    lines = connection.execute(asked).partitions(rows)
                except Exception:
                    failed = True
                while not failed:
                    some = None
                    try:
                        some = next(lines, None)
                    except Exception:  # a driver's words may quote cells
                        failed = True
                    if some is None:
                        break
                    yield text_table(names, zip(*some, strict=True), PLAIN)
        finally:
            engine.dispose()
        if failed:
            raise DataError(f"table {self.table!r} must be readable to its end; the database broke off.")

    def _table(self, engine: Any) -> Any:
        from sqlalchemy import MetaData, Table

        place, _, name = self.table.rpartition(".")
        return Table(name, MetaData(), schema=place or None, autoload_with=engine)

    def _engine(self) -> Any:
        try:
            from sqlalchemy import create_engine
        except ImportError:
            raise ParameterError(
                "a table of a database needs the extra that reads them. Install it with: pip install 'sabun[database]'"
            ) from None
        kind = self.url.partition("://")[0]
        made = None
        try:
            made = create_engine(self.url.replace("postgresql://", "postgresql+psycopg://", 1))
        except Exception:  # an unknown kind, or its driver is not installed; the words would show the URL
            made = None
        if made is None:
            raise ParameterError(f"a database's URL must be one that SQLAlchemy reads, its driver installed; got {kind!r:.30}.")
        return made

    def _reached(self, ask: Any) -> Any:
        engine = self._engine()
        found, problem = None, ""
        try:
            found = ask(engine)
        except Exception as error:  # its words may show the URL, or cells
            problem = "has no such table" if type(error).__name__ == "NoSuchTableError" else "cannot be reached"
        finally:
            engine.dispose()
        if problem:
            raise DataError(f"table {self.table!r} must be in a database that can be read; the database {problem}.")
        return found


def _as_it_is(column: Any, dialect: str) -> Any:
    """A column without what SQLAlchemy or a driver makes of its cells: both refuse some (a text among dates, a day `infinity`).

    PostgreSQL's driver reads moments itself; they become text on the server, which has one for each or null.
    """
    from sqlalchemy import func, null, type_coerce, types

    kind = str(column.type.__visit_name__).upper()
    if dialect == "postgresql" and kind in _MOMENTS:
        return func.to_char(column, _MOMENTS[kind]).label(column.name)
    if dialect == "postgresql" and kind in ("TIME", "INTERVAL"):
        return null().label(column.name)  # neither a number nor a label
    return type_coerce(column, types.NullType()).label(column.name)
