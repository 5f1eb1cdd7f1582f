"""The ledger: charge first, then toss the coin."""

from __future__ import annotations

import importlib.metadata
import os
import re
import secrets
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from types import TracebackType
from typing import Any, Self

from sabun import checks
from sabun.errors import LedgerError
from sabun.ledger.admission import Price, budget_of, check_words, price
from sabun.ledger.chain import Book, check_payload, inspected, opened, read_entry
from sabun.ledger.keys import answer, check_key, refuse_answered
from sabun.ledger.opening import store_at
from sabun.ledger.outlook import Outlook
from sabun.ledger.reservation import Reservation, keep_result
from sabun.ledger.row import Row, first_row, next_row, seal_of, total_after
from sabun.ledger.sqlite_store import SqliteStore
from sabun.ledger.statement import Budget, Entry, Receipt, Terms, Verification
from sabun.ledger.store import Store
from sabun.ledger.wording import page, refusal
from sabun.privacy.amounts import AmountLike
from sabun.privacy.guarantee import RELATIONS, Guarantee

__all__ = ["Ledger"]


class Ledger:
    """A durable budget for one protected dataset.

    Guarantee: whatever was released through the ledger, in any number of processes and with any crashes, is together
    (budget.epsilon, budget.delta)-differentially private for the ledger's unit and relation. See `ledger.proof.md`.

    The ledger guards against accidents, races and edited files: before each charge its tables, its first row and its newest
    rows are checked, 64 of them, so that a long ledger opens as quickly as a short one; what was forged further back shows in
    `verify`, which reads all of it. It cannot guard against someone who copies the file, spends from both copies, cuts off or
    writes anew its newest rows (or all), or deletes it: keep `verify().head_hash` elsewhere when that matters. The file may be
    moved or renamed when nobody uses it, after a crash together with the `-journal` beside it; it must not have a second name:
    a hard link is refused, and a mount of the single file (instead of its folder) into two containers is not supported. A
    handle holds no open file: it can be shared by threads, pickled, deep-copied (as scikit-learn's `clone` does) or inherited
    by a fork, and always means the same file.

    Idempotency keys: `recall` returns the bytes committed under a key, for free. A key that was reserved but never committed
    (a crash) stays spent, and the next reservation with it pays again, because the noise may have been seen.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(folder.name + "/clinic.ledger", name="clinic-2026", unit="patient", epsilon=1)
        >>> receipt = ledger.charge(Guarantee(epsilon=0.1, unit="patient"), purpose="count of visits")
        >>> ledger.remaining.epsilon
        Fraction(9, 10)
        >>> folder.cleanup()
    """

    def __init__(self, store: Store, *, book: Book, remark: str = "") -> None:
        self._store = store
        self._outlook = Outlook(store, book)
        self._remark = remark
        self._made: list[Receipt] = []
        self._unsure: list[Receipt] = []

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | Store,
        *,
        name: str,
        unit: str = "record",
        relation: str = "replace-one",
        epsilon: AmountLike,
        delta: AmountLike = 0,
    ) -> Self:
        """Makes a new ledger; its terms can never be changed.

        Args:
            path: A free path on a local disk, or `postgresql://USER@HOST/DATABASE?ledger=NAME` (or another `Store`).
            name: What people call it; it stands in receipts and refusals.
            unit: Whose data is protected, in your word ("patient").
            relation: `replace-one`, `add-remove` or `local`.
            epsilon: The whole budget, finite and above zero; 0.1 is read as one tenth.
            delta: The whole budget for delta, at least 0 and below 1.

        Raises:
            ParameterError: A term breaks its rule.
            LedgerError: The path is taken or cannot be written.
        """
        checks.text(name=name, unit=unit)
        check_words(name=name, unit=unit)
        checks.one_of(RELATIONS, relation=relation)
        terms = Terms(name=name, unit=unit, relation=relation, budget=budget_of(epsilon, delta))
        store, first = store_at(path), first_row(terms, software=_software())
        store.create(first)
        return cls(store, book=Book(terms=terms, head=first))

    @classmethod
    def open(cls, path: str | os.PathLike[str] | Store, *, remark: str = "") -> Self:
        """Opens a ledger that exists; its first row and its newest ones are checked, `verify` reads them all.

        Args:
            path: Where it is: a file's path, or `postgresql://USER@HOST/DATABASE?ledger=NAME`.
            remark: Words kept with each charge made through this handle, beside its purpose. Public: no private data.

        Raises:
            LedgerError: There is none, or it is not one, or it is damaged or was changed.
        """
        checks.require(isinstance(remark, str), "a text", remark=remark)
        check_words(remark=remark)
        store = store_at(path)
        with store.reading() as view:
            return cls(store, book=opened(view, place=store.place), remark=remark)

    @property
    def name(self) -> str:
        """What people call it."""
        return self._outlook.terms.name

    @property
    def unit(self) -> str:
        """Whose data is protected."""
        return self._outlook.terms.unit

    @property
    def relation(self) -> str:
        """The neighbour relation of the budget."""
        return self._outlook.terms.relation

    @property
    def budget(self) -> Budget:
        """The whole budget."""
        return self._outlook.terms.budget

    @property
    def spent(self) -> Budget:
        """What is gone: every reservation that was not voided."""
        return self._outlook.head().spent

    @property
    def remaining(self) -> Budget:
        """What is left, exactly."""
        return self.budget.minus(self.spent)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The charges made through this handle, oldest first; a result that was recalled made none.

        One whose writing was interrupted, or that the disk reported as failed, is looked up: it counts unless it is not there.
        """
        return tuple(dict.fromkeys((*self._made, *filter(self._outlook.may_hold, self._unsure))))

    def reserve(self, guarantee: Guarantee, *, purpose: str, key: str | None = None) -> Reservation:
        """Books a charge durably; draw noise only after this has returned.

        Args:
            guarantee: The promise of the release to come; its joint cost is booked. An add-remove guarantee in a replace-one
                ledger is restated first, which the receipt's `note` says.
            purpose: What it is for, in words. Public: never put private data here.
            key: An idempotency key for `recall`, at most 200 printable characters.

        Raises:
            BudgetExceeded: It does not fit; nothing was charged.
            SimulatedError: The guarantee is of a seeded run.
            IncompatibleGuarantees: Wrong unit or relation.
            ParameterError: The key already has a result, or was used for something else.
            LedgerError: The ledger cannot be written, or went back in time.
        """
        token = secrets.token_bytes(32)
        row = self._booked(guarantee, purpose, key, token)
        return Reservation(self._store, row, self._receipt(row), token=token)  # proof: durable-before-return

    def _booked(self, guarantee: Guarantee, purpose: str, key: str | None, token: bytes, *, result: bytes | None = None) -> Row:
        """The reserving row, once it is on disk; with a result, so is the row that closes it."""
        cost = price(guarantee, self._outlook.terms)
        checks.text(purpose=purpose)
        check_words(purpose=purpose)
        check_key(key)
        with self._outlook.charging() as (view, book):  # proof: one-writer
            if key is not None:
                refuse_answered(view, key, guarantee, purpose)
            last = book.head  # proof: recomputed
            amount = self._affordable(last.spent, cost)
            row = next_row(
                last,
                kind="reserve",
                entry=last.entries + 1,
                body=_body(guarantee, purpose, cost, amount, self._remark) | {"void_seal": seal_of(token)},
                amount=amount,
                key=key,
            )
            view.append(row)
            newest = row if result is None else keep_result(view, row, result)
            receipt = self._receipt(row)
            self._unsure.append(receipt)  # before it is on disk: an interrupt on the way must not hide a charge
        self._made.append(receipt)
        self._unsure.remove(receipt)
        self._outlook.has_written(newest)
        return row

    def _affordable(self, spent: Budget, cost: Price) -> Budget:
        """The amount to book, or the refusal."""
        if isinstance(cost.epsilon, Fraction) and isinstance(cost.delta, Fraction):
            amount = Budget(cost.epsilon, cost.delta)
            after = total_after(spent, "reserve", amount)
            if after.epsilon <= self.budget.epsilon and after.delta <= self.budget.delta:  # proof: filter
                return amount
        raise refusal(self._outlook.terms, self.budget.minus(spent), cost)

    def charge(self, guarantee: Guarantee, *, purpose: str, key: str | None = None) -> Receipt:
        """Books a charge whose result is kept elsewhere: `reserve` and `commit` with no bytes, in one change of the file.

        A repeated key is refused, not free: with no kept bytes to return, a free retry could hide a second draw.

        Raises:
            BudgetExceeded: It does not fit; nothing was charged.
            ParameterError: The key was charged before. Every other error is as in `reserve`.
        """
        return self._receipt(self._booked(guarantee, purpose, key, secrets.token_bytes(32), result=b""))

    def recall(self, key: str, *, guarantee: Guarantee, purpose: str) -> tuple[Receipt, bytes] | None:
        """The receipt with the identical bytes that were committed under a key; costs nothing.

        Returns:
            None when the key has no result yet (never used, voided, or reserved by someone who crashed).

        Raises:
            ParameterError: The key was used for another guarantee or purpose.
            LedgerError: The kept bytes were changed.
        """
        price(guarantee, self._outlook.terms)
        checks.text(purpose=purpose)
        checks.text(key=key)
        check_key(key)
        with self._outlook.reading() as (view, _):
            found = answer(view, key, guarantee, purpose)
            if found is None:
                return None
            reserved, committed = found
            payload = view.payload(reserved.entry)
            check_payload(reserved.entry, payload, committed.body.get("payload_sha256"), place=self._store.place)
        assert payload is not None
        return self._receipt(reserved), payload

    def kept(self, entry: int) -> bytes:
        """The bytes committed with a charge, for whoever lost the file they were written to; costs nothing.

        Raises:
            ParameterError: There is no such entry, or no result was kept with it.
            LedgerError: The kept bytes were changed.
        """
        with self._outlook.reading() as (view, book):
            found = self._outlook.entry(view, book, entry)
            has_result = found is not None and bool(found.payload_size)
            checks.require(has_result, f"an entry of {self.name!r} with a kept result", entry=entry)
            assert found is not None
            payload = view.payload(entry)
            check_payload(entry, payload, found.payload_sha256, place=self._store.place)
        assert payload is not None
        return payload

    def entry(self, number: int) -> Entry:
        """One charge as it stands now, found by its number: as quickly in a long ledger as in a short one.

        Raises:
            ParameterError: There is no such entry.
        """
        with self._outlook.reading() as (view, book):
            found = self._outlook.entry(view, book, number)
        checks.require(found is not None, f"the number of an entry of {self.name!r}", number=number)
        assert found is not None
        return found

    def entries(self, *, last: int | None = None) -> tuple[Entry, ...]:
        """Every charge as it stands now, oldest first; the whole chain is checked on the way.

        Args:
            last: Only so many of the newest, which needs no reading of the whole ledger.
        """
        return self._outlook.standing(last)[1]

    def with_key(self, key: str) -> tuple[Entry, ...]:
        """The charges made under an idempotency key, oldest first; as quickly in a long ledger as in a short one."""
        checks.text(key=key)
        check_key(key)
        with self._outlook.reading() as (view, _):
            return tuple(read_entry(view, row.entry, place=self._store.place) for row in view.with_key(key))

    def verify(self, *, expect_head: str | None = None, progress: Callable[[float, str], None] | None = None) -> Verification:
        """Reads the whole ledger again: chain, sums, states, kept bytes, SQLite's own pages; others may charge meanwhile.

        A row changed alone cannot hide; but rows cut off the *end*, or a chain written anew from any row on (the newest one is
        enough), are sound in themselves. Only someone who kept an earlier head can notice that: pass it here, and it must still
        be part of the chain.

        Args:
            expect_head: A `head_hash` of an earlier check, or the `entry_hash` of any receipt.
            progress: Called now and then with the share that is done (0 to 1) and with words.

        Raises:
            LedgerError: Something was changed, or the expected hash is gone.
        """
        good = expect_head is None or (isinstance(expect_head, str) and re.fullmatch("[0-9a-f]{64}", expect_head) is not None)
        checks.require(good, "64 hexadecimal digits", expect_head=expect_head)
        self._outlook.must_be_open()
        self._store.inspect()
        return inspected(self._outlook.view, place=self._store.place, expect_head=expect_head, progress=progress)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copies the ledger while nobody writes to it; a copy made by other means may catch a charge half written.

        A backup is for restoring after a loss, never for charging: two copies do not know of each other.

        Raises:
            LedgerError: The path is taken or cannot be written, or the ledger is not kept in a file.
        """
        if not isinstance(self._store, SqliteStore):
            raise LedgerError(f"a ledger must be kept in a file to be copied; {self._store.place} is not.")
        self._outlook.must_be_open()
        self._store.backup(path)

    def records(self) -> Iterator[str]:
        """Every row as it was hashed, oldest first: the hash of one is the SHA-256 of its text, and stands in the next."""
        return self._outlook.records()

    def show(self, *, last: int | None = 20) -> str:
        """The ledger as a page of text: terms, sums, a line for each of the newest entries (None: for every entry)."""
        head, entries = self._outlook.standing(last)
        return page(self._outlook.terms, head.spent, entries, earlier=head.entries - len(entries))

    def to_dict(self, *, last: int | None = None) -> dict[str, Any]:
        """The ledger in plain JSON types; amounts are exact text such as "1/10". `last` is as in `entries`."""
        head, entries = self._outlook.standing(last)
        return {
            "name": self.name,
            "unit": self.unit,
            "relation": self.relation,
            "budget": self.budget.to_dict(),
            "spent": head.spent.to_dict(),
            "remaining": self.budget.minus(head.spent).to_dict(),
            "entries": [entry.to_dict() for entry in entries],
            "head_hash": head.hash,
        }

    def close(self) -> None:
        """Ends this handle; the file stays, as do reservations already made."""
        self._outlook.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The same handle: a copy of an estimator must spend from the same budget, never from a second one."""
        return self

    def __repr__(self) -> str:
        return f"<Ledger {self.name!r} at {self._store.place}>"

    def _receipt(self, row: Row) -> Receipt:
        return Receipt(
            ledger_name=self.name,
            entry=row.entry,
            entry_hash=row.hash,
            epsilon=row.amount.epsilon,
            delta=row.amount.delta,
            relation=self.relation,
            unit=self.unit,
            note=row.body["note"],
            time=row.time,
        )


def _body(guarantee: Guarantee, purpose: str, cost: Price, amount: Budget, remark: str) -> dict[str, Any]:
    body = {"purpose": purpose, "guarantee": guarantee.to_dict(), "note": cost.note, "software": _software()}
    return body | amount.to_dict() | ({"remark": remark} if remark else {})


@cache
def _software() -> str:
    try:
        return f"sabun {importlib.metadata.version('sabun')}"
    except importlib.metadata.PackageNotFoundError:
        return "sabun, not installed"
