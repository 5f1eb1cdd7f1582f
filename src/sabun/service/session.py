"""What the store asks of a database: transactions, and the few statements that SQLite and PostgreSQL do not share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sabun.errors import SabunError

__all__ = ["Database", "Session", "StoreUnavailable"]


class StoreUnavailable(SabunError):
    """The database did not do what it was asked; nothing of the change is kept, or nobody knows: ask again."""

    exit_code = 4


class Session(Protocol):
    """One transaction. Statements are written with `?`.

    Attributes:
        to_change: What stands after a SELECT of rows that are about to be changed.
    """

    to_change: str

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What a statement gives; nothing for one that changes rows."""

    def stream(self, statement: str, *values: object, at_once: int) -> Iterator[tuple[Any, ...]]:
        """The same, some rows at a time."""

    def keep_reports(self, round: int, reports: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Adds the reports whose ids are new; returns those that are not, with the answers that were there before."""

    def enrolled(self, study: int, ids: Collection[bytes]) -> set[bytes]:
        """Those of the ids that were issued."""

    def hold(self, round: int, *, alone: bool) -> None:
        """Waits until nobody closes the round (until nobody adds to it, with `alone`), and keeps it so to the end."""

    def make_place(self, round: int) -> None:
        """Makes room for the reports of a new round."""

    def drop_place(self, round: int) -> None:
        """Deletes all reports of a round."""


class Database(Protocol):
    """Where the tables are. A connection belongs to one thread.

    Attributes:
        name: What kind of database it is.
    """

    name: str

    def change(self) -> AbstractContextManager[Session]:
        """One transaction that is on disk when it ends well, and was never there when it does not.

        Raises:
            StoreUnavailable: The database cannot, for now.
        """

    def look(self) -> AbstractContextManager[Session]:
        """A transaction that sees one moment and changes nothing.

        Raises:
            StoreUnavailable: The database cannot, for now.
        """

    def scrub(self) -> bool:
        """Writes over what the database still keeps of deletions and of the order of changes, where that is its business.

        Returns:
            False where somebody looks at it just now: ask again.
        """

    def close(self) -> None:
        """Ends every connection of this process."""
