"""What every command that charges a ledger shares: looking before it pays, telling what it paid, losing nothing."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias, final

import typer

from sabun import checks
from sabun.errors import DataError, ParameterError, SabunError
from sabun.ledger import Ledger
from sabun.ledger.address import shown, with_account
from sabun.ledger.wording import at_least, at_most
from sabun.privacy.amounts import AmountLike, exact, plain
from sabun.privacy.guarantee import LARGE_EPSILON
from sabun.release.publish import SAME
from sabun.telling.generic import of_persons, promised
from sabun.telling.terminal.output import print_line, warn

if TYPE_CHECKING:
    from sabun.ledger import Entry, Receipt
    from sabun.records import FilePart
    from sabun.release import Release

__all__ = [
    "Again",
    "Interrupted",
    "Label",
    "LedgerFile",
    "Payment",
    "Purpose",
    "ResultNotWritten",
    "asked_name",
    "charged",
    "warn_if_large",
]

LedgerFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="The ledger to charge: its file, or its address on a server (postgresql://…); ::NAME after it charges an account.",
    ),
]
Purpose: TypeAlias = Annotated[
    str | None, typer.Option("--purpose", help="A note for the ledger, such as 'annual report'; public, like all of it.")
]

Label: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--label",
        help="A public name of the table, its file's name when left out: the same question about the same name is free.",
    ),
]
Again: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--again", help="Draw anew and pay, even if the ledger kept an answer; a later repeat without it returns the first one."
    ),
]


def asked_name(table: FilePart, label: str | None, again: bool) -> str:
    """The public name under which a question is free the second time; empty where it shall be drawn anew.

    What was said about how the table is written is part of it: another sheet, or another decimal sign, is another table.

    Raises:
        ParameterError: The label is empty.
    """
    if label is not None:
        checks.text(label=label)
    name = label or (str(table) if "*" in table.name else table.name)
    written = {} if table.form is None else table.form.to_dict() if table.form.said is None else table.form.own
    said = ", ".join(f"{part} {value!r}" for part, value in written.items())
    return "" if again else f"{name} ({said})" if said else name


class Interrupted(Exception):
    """The command was stopped; the words say what stays spent."""


class ResultNotWritten(DataError):
    """A result that is paid for could not be written; the words say where it is now."""


_payments: ContextVar[list[Payment] | None] = ContextVar("sabun_payments", default=None)
"""Those of the command that runs; an error that no payment explains is explained by them."""


@final
@dataclass(frozen=True, kw_only=True)
class Payment:
    """One command's dealings with a ledger, or with none; a context that explains what an interruption leaves behind.

    Args:
        book: The ledger.
        file: Its file or address, as it was typed.
        checkpoint: Folder an interrupted run can go on from.
    """

    book: Ledger | None
    file: str | None
    checkpoint: Path | None = None

    @classmethod
    def of(cls, file: str | None, purpose: str | None, *, table: str = "", checkpoint: Path | None = None) -> Self:
        """Opens the ledger that was named, if any; `table` is the public name under which the same question is free."""
        if file is None and purpose is not None:
            raise ParameterError("purpose must come with a ledger that keeps it; got none. Pass --ledger.")
        place, account = (None, "") if file is None else with_account(file)
        book = None if place is None else Ledger.open(place, remark=purpose or "", account=account, table=table)
        made = cls(book=book, file=place, checkpoint=checkpoint)
        _of_this_command().append(made)
        return made

    def relation(self, stated: str | None) -> str:
        """Between which tables a release promises: as was said, else as the ledger does, else as is usual."""
        return stated or ("replace-one" if self.book is None else self.book.relation)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        from sabun.release import ResultNotKept

        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(self._left_behind()) from None
        if isinstance(error, ResultNotKept):
            raise _handed_over(str(error.__cause__), error.release) from None

    @contextmanager
    def writing(self, release: Release) -> Iterator[None]:
        """Around the writing of a result that is paid for: where that fails, the result is handed over in another way."""
        try:
            yield
        except (DataError, OSError) as error:
            reason = str(error) if isinstance(error, DataError) else f"the operating system refuses: {error.strerror}."
            receipt = release.provenance.receipt
            if receipt is None:
                raise _handed_over(reason, release) from None
            raise ResultNotWritten(
                f"{reason} The charge stands, and the ledger kept the result. {self._way_back(receipt)}"
            ) from None

    def save(self, release: Release, out: Path | None) -> None:
        """Saves a release where that was asked for; see `writing`."""
        if out is not None:
            with self.writing(release):
                release.save(out)

    def tell(self, release: Release, out: Path | None = None) -> None:
        """Prints the promise, who paid for it, where the release is, what is left."""
        if made := of_persons(release):  # a sum of means is no total: the answer above must not be read as one
            print_line(made)
        print_line(str(promised(release)))
        warn_if_large(release.guarantee.cost[0])
        print_line(self._charge(release))
        if out is not None:
            print_line(f"Saved as {str(out)!r}.", style="green")
        self.tell_left()

    def tell_left(self) -> None:
        """Prints what is left in the ledger."""
        if self.book is not None:
            print_line(f"{self.book.name!r} has {_left(self.book)} left.")

    def _charge(self, release: Release) -> str:
        receipt = release.provenance.receipt
        if receipt is None:
            return "No ledger was given: this cost is written down nowhere."
        if not self.paid_before(release):
            return f"Ledger: {release.provenance.charge}."
        again = (
            f"the same result again, {self._why(receipt)}"
            if self.checkpoint is None
            else "this run went on from its checkpoint"
        )
        return f"Ledger: already paid ({receipt.ledger_name!r}, entry {receipt.entry}): {again}; nothing was charged."

    def _why(self, receipt: Receipt) -> str:
        """Why an answer was not drawn anew."""
        entry = self._entry(receipt)
        if self.book is not None and entry is not None and (entry.key or "").startswith(SAME):
            return f"for the same was asked of {self.book.table!r} before (--again draws anew and pays)"
        return "whatever table was named"

    def facts(self, release: Release) -> dict[str, Any]:
        """The same in plain JSON types."""
        receipt = release.provenance.receipt
        return {
            "guarantee": release.guarantee.to_dict(),
            "entry": None if receipt is None else receipt.entry,
            "already_paid": self.paid_before(release),
            "remaining": None if self.book is None else self.book.remaining.to_dict(),
        }

    def record(self, release: Release, out: Path | None) -> dict[str, Any]:
        """The same, with the place where the release was saved."""
        return self.facts(release) | {"out": None if out is None else str(out)}

    def paid_before(self, release: Release) -> bool:
        """Whether an earlier command paid for the result."""
        receipt = release.provenance.receipt
        return self.book is not None and receipt is not None and receipt not in self.book.receipts

    def stands(self) -> str:
        """What this command charged and where the results are, in words; empty when it charged nothing."""
        return " ".join(self._stands(receipt) for receipt in (self.book.receipts if self.book is not None else ()))

    def _stands(self, receipt: Receipt) -> str:
        match self._state(receipt):
            case "committed":
                return f"Entry {receipt.entry} is paid for, and the ledger kept its result. {self._recovery(receipt)}"
            case "voided":
                return f"Entry {receipt.entry} was given back."
        return f"Entry {receipt.entry} is charged: epsilon {at_least(receipt.epsilon)} stays spent in {receipt.ledger_name!r}."

    def _entry(self, receipt: Receipt) -> Entry | None:
        """The charge as it stands; None where it cannot be looked up, for something went wrong already."""
        try:
            return None if self.book is None else self.book.entry(receipt.entry)
        except SabunError:
            return None

    def _state(self, receipt: Receipt) -> str:
        entry = self._entry(receipt)
        return "reserved" if entry is None else entry.state

    def _recovery(self, receipt: Receipt) -> str:
        return f"Get it with: sabun ledger recover {shlex.quote(shown(self.file or ''))} {receipt.entry} --out FILE"

    def _way_back(self, receipt: Receipt) -> str:
        entry = self._entry(receipt)
        if entry is not None and entry.key is not None:
            return "Give the same command again, with an --out that can be written: it costs nothing."
        return self._recovery(receipt)

    def _left_behind(self) -> str:
        if self.checkpoint is not None and self.checkpoint.exists():
            return (
                f"interrupted; nothing was released. The run is kept in {self.checkpoint}, which holds a secret. "
                "Give the same command again to go on: nothing is charged twice."
            )
        if self.book is None:
            return "interrupted; nothing was released."
        states = [(receipt, self._state(receipt)) for receipt in self.book.receipts]
        kept = [receipt for receipt, state in states if state == "committed"]
        if kept:
            return f"interrupted; the result is paid for, and the ledger kept it. {self._way_back(kept[-1])}"
        gone = [receipt for receipt, state in states if state == "reserved"]
        if gone:
            spent = "; ".join(f"epsilon {at_least(one.epsilon)} stays spent (entry {one.entry})" for one in gone)
            return f"interrupted; nothing was released, but records may have been read: {spent} in {self.book.name!r}."
        return f"interrupted; nothing was released, nothing was charged to {self.book.name!r}."


def charged(*, anew: bool = False) -> str:
    """What the command that runs has charged, in words; empty when nothing. `anew` forgets the command before."""
    if anew:
        _payments.set([])
    return " ".join(filter(None, (payment.stands() for payment in _of_this_command())))


def _of_this_command() -> list[Payment]:
    found = _payments.get()
    if found is None:
        _payments.set(found := [])
    return found


def _handed_over(reason: str, release: Release) -> ResultNotWritten:
    """Prints a result that is kept nowhere else; the error that says where."""
    text, place = release.to_json().decode("utf-8") + "\n", "stdout"
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        sys.stderr.write(text)
        place = "stderr"
    return ResultNotWritten(f"{reason} The result was drawn, so it is printed on {place} instead: keep it.")


def warn_if_large(epsilon: AmountLike) -> None:
    """One line on stderr about a promise that is hardly one."""
    amount = exact(epsilon)
    if amount > LARGE_EPSILON:
        factor = "any number of" if math.isinf(amount) else f"e^{plain(amount)}"
        warn(
            f"epsilon {plain(amount)} protects hardly anybody: one person's data may make an outcome {factor} times as likely. "
            f"Choose at most {LARGE_EPSILON}, better 1 or less."
        )


def _left(book: Ledger) -> str:
    amounts = zip(("epsilon", "delta"), book.remaining, book.whole, strict=True)
    return " and ".join(f"{word} {at_most(left)} of {at_most(whole)}" for word, left, whole in amounts if whole)
