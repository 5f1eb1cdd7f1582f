"""The ledger: charge first, then toss the coin."""

from __future__ import annotations

import importlib.metadata
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import TracebackType
from typing import Any, Self, final

from sabun import checks
from sabun.errors import LedgerError
from sabun.ledger import changes
from sabun.ledger.admission import amount_in, asked, booking, budget_of, check_words, warn_if_cheap
from sabun.ledger.chain import Book, append, check_payload, opened
from sabun.ledger.keys import answer, check_key, refuse_answered
from sabun.ledger.opening import store_at
from sabun.ledger.reservation import Reservation, keep_result
from sabun.ledger.row import Row, first_row, next_row, seal_of
from sabun.ledger.sqlite_store import SqliteStore
from sabun.ledger.standing import Standing
from sabun.ledger.statement import Receipt, Terms
from sabun.ledger.store import Store
from sabun.ledger.view import View
from sabun.privacy.amounts import AmountLike
from sabun.privacy.guarantee import RELATIONS, Guarantee
from sabun.privacy.pricing import Price

__all__ = ["Ledger"]


@final
class Ledger(View):
    """A durable budget for one protected dataset.

    Guarantee: whatever was released through the ledger, in any number of processes and with any crashes, is together
    (promised.epsilon, promised.delta)-differentially private for the ledger's unit and relation. See `ledger.proof.md`.

    A ledger with a delta counts two ways at once, by sums and by one Rényi order with shares of delta, and admits what either
    admits (`shares.proof.md`): a hundred small questions cost much less than their sum. With `accounting="sums"`, or without a
    delta, it counts by sums alone.

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

    def __init__(self, store: Store, *, book: Book, remark: str = "", account: str = "", table: str = "") -> None:
        super().__init__(store, book=book, account=account)
        self._remark, self._table = remark, table
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
        ceiling: AmountLike | None = None,
        group: int = 1,
        accounts: Mapping[str, AmountLike] | None = None,
        accounting: str = "shares",
        order: int | None = None,
        shares: Sequence[AmountLike] | None = None,
    ) -> Self:
        """Makes a new ledger. Its budget grows at most to the ceiling declared here, never without a reason on record.

        Args:
            path: A free path on a local disk, or `postgresql://USER@HOST/DATABASE?ledger=NAME` (or another `Store`).
            name: What people call it; it stands in receipts and refusals.
            unit: Whose data is protected, in your word ("patient").
            relation: `replace-one`, `add-remove` or `local`.
            epsilon: The whole budget, finite and above zero; 0.1 is read as one tenth.
            delta: The whole budget for delta, at least 0 and below 1.
            ceiling: The epsilon that `raise_to` may raise the budget to; every promise is made for it.
            group: How many units one change may concern together; every charge is priced for that many.
            accounts: Names with limits as parts of the whole, such as {"cardiology": "1/3"}.
            accounting: `shares` (with a delta: by sums or by a Rényi order, whichever admits) or `sums`.
            order: The Rényi order; None takes the one that leaves room for the most Gaussian noise.
            shares: Three parts of delta: for deltas that priced releases state where sums decide, for releases known by
                (epsilon, delta) alone, for the order; None takes 1/10, 2/5 and 1/2.

        Raises:
            ParameterError: A term breaks its rule.
            LedgerError: The path is taken or cannot be written.
        """
        checks.text(name=name, unit=unit)
        check_words(name=name, unit=unit)
        checks.one_of(RELATIONS, relation=relation)
        budget = budget_of(epsilon, delta)
        top, size = changes.ceiling_of(ceiling, budget), changes.group_of(group)
        terms = Terms(name=name, unit=unit, relation=relation, budget=budget, ceiling=top, group=size)
        standing = changes.beginning(terms, accounts=accounts, accounting=accounting, order=order, shares=shares)
        store, first = store_at(path), first_row(terms, software=_software(), standing=standing)
        store.create(first)
        return cls(store, book=Book(terms=terms, head=first))

    @classmethod
    def open(cls, path: str | os.PathLike[str] | Store, *, remark: str = "", account: str = "", table: str = "") -> Self:
        """Opens a ledger that exists; its first row and its newest ones are checked, `verify` reads them all.

        Args:
            path: Where it is: a file's path, or `postgresql://USER@HOST/DATABASE?ledger=NAME`.
            remark: Words kept with each charge made through this handle, beside its purpose. Public: no private data.
            account: The account that charges through this handle go to; empty for the whole budget alone.
            table: A public name of the table that is asked through this handle. The same question about the same name then
                returns the answer that was kept, for nothing; a table that changes gets a new name on a public schedule.
                Empty: every question is drawn and charged anew, unless it has a retry key.

        Raises:
            ParameterError: It has no such account.
            LedgerError: There is none, or it is not one, or it is damaged or was changed.
        """
        checks.require(isinstance(remark, str), "a text", remark=remark)
        checks.require(isinstance(table, str), "a text", table=table)
        check_words(remark=remark, table=table)
        store = store_at(path)
        with store.reading() as view:
            book = opened(view, place=store.place)
        known = book.standing.accounts
        checks.require(account == "" or account in known, f"an account of {book.terms.name!r}", account=account)
        return cls(store, book=book, remark=remark, account=account, table=table)

    @property
    def table(self) -> str:
        """The public name of the table that is asked through this handle; empty where it has none."""
        return self._table

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The charges made through this handle, oldest first; a result that was recalled made none.

        One whose writing was interrupted, or that the disk reported as failed, is looked up: it counts unless it is not there.
        """
        return tuple(dict.fromkeys((*self._made, *filter(self._outlook.may_hold, self._unsure))))

    def reserve(self, guarantee: Guarantee, *, purpose: str, key: str | None = None, price: Price | None = None) -> Reservation:
        """Books a charge durably; draw noise only after this has returned.

        Args:
            guarantee: The promise of the release to come; its joint cost is booked. An add-remove guarantee in a replace-one
                ledger is restated first, which the receipt's `note` says.
            purpose: What it is for, in words. Public: never put private data here.
            key: An idempotency key for `recall`, at most 200 printable characters.
            price: What is run for it, where that is known: a ledger that counts by a Rényi order then books what that costs.

        Raises:
            BudgetExceeded: It does not fit; nothing was charged.
            SimulatedError: The guarantee is of a seeded run.
            IncompatibleGuarantees: Wrong unit or relation.
            ParameterError: The key already has a result, or was used for something else.
            LedgerError: The ledger cannot be written, or went back in time.
        """
        token = secrets.token_bytes(32)
        row = self._booked(guarantee, purpose, key, token, price)
        return Reservation(
            self._store, row, self._receipt(row), token=token, terms=self._outlook.terms
        )  # proof: durable-before-return

    def _booked(
        self,
        guarantee: Guarantee,
        purpose: str,
        key: str | None,
        token: bytes,
        price: Price | None,
        *,
        result: bytes | None = None,
    ) -> Row:
        """The reserving row, once it is on disk; with a result, so is the row that closes it."""
        wanted = asked(guarantee, self._outlook.terms, price)
        checks.text(purpose=purpose)
        check_words(purpose=purpose)
        check_key(key)
        warn_if_cheap(guarantee, price)
        wanted.prepare(self._outlook.shares)
        with self._outlook.charging() as (view, book):  # proof: one-writer
            if key is not None:
                refuse_answered(view, key, guarantee, purpose)
            last, standing = book.head, book.standing  # proof: recomputed
            amount = booking(standing, wanted, account=self._account)  # proof: admitted
            if amount is None:
                raise changes.refused(self._outlook.terms, standing, wanted, self._account)
            words = {"purpose": purpose, "guarantee": guarantee.to_dict(), "note": wanted.note, "software": _software()}
            body = words | amount | ({"remark": self._remark} if self._remark else {}) | {"void_seal": seal_of(token)}
            row = next_row(last, kind="reserve", entry=last.entries + 1, body=body, amount=amount_in(body), key=key)
            append(view, row, row, terms=book.terms, place=self._store.place)
            newest = row if result is None else keep_result(view, row, result, terms=book.terms, place=self._store.place)
            receipt = self._receipt(row)
            self._unsure.append(receipt)  # before it is on disk: an interrupt on the way must not hide a charge
        self._made.append(receipt)
        self._unsure.remove(receipt)
        self._outlook.has_written(newest)
        return row

    def charge(self, guarantee: Guarantee, *, purpose: str, key: str | None = None, price: Price | None = None) -> Receipt:
        """Books a charge whose result is kept elsewhere: `reserve` and `commit` with no bytes, in one change of the file.

        A repeated key is refused, not free: with no kept bytes to return, a free retry could hide a second draw.

        Raises:
            BudgetExceeded: It does not fit; nothing was charged.
            ParameterError: The key was charged before. Every other error is as in `reserve`.
        """
        return self._receipt(self._booked(guarantee, purpose, key, secrets.token_bytes(32), price, result=b""))

    def recall(self, key: str, *, guarantee: Guarantee, purpose: str) -> tuple[Receipt, bytes] | None:
        """The receipt with the identical bytes that were committed under a key; costs nothing.

        Returns:
            None when the key has no result yet (never used, voided, or reserved by someone who crashed).

        Raises:
            ParameterError: The key was used for another guarantee or purpose.
            LedgerError: The kept bytes were changed.
        """
        asked(guarantee, self._outlook.terms)
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

    def raise_to(self, epsilon: AmountLike, *, reason: str) -> None:
        """Raises the budget, never above the ceiling declared at creation: an entry of its own, chained like the rest.

        Raises:
            ParameterError: Epsilon is not above the present budget, or above the ceiling, or there is none.
        """
        self._change(lambda standing: changes.raised(self._outlook.terms, standing, epsilon), reason)

    def open_account(self, name: str, part: AmountLike, *, reason: str) -> None:
        """Opens an account whose limit is a part of the whole.

        Raises:
            ParameterError: The name is taken, or the part is not above 0 and at most 1.
        """
        self._change(lambda standing: changes.opened(standing, name, part), reason)

    def convert(self, *, reason: str, order: int | None = None, shares: Sequence[AmountLike] | None = None) -> None:
        """Takes up counting by shares in a ledger that counts by sums; what was charged before keeps its epsilon and delta.

        Raises:
            ParameterError: It has no delta left, or counts by shares already, or an account would be beyond its new limits.
        """
        self._change(lambda standing: changes.converted(standing, order=order, shares=shares), reason)

    def _change(self, make: Callable[[Standing], dict[str, Any]], reason: str) -> None:
        checks.text(reason=reason)
        check_words(reason=reason)
        with self._outlook.charging() as (view, book):
            body = make(book.standing) | {"reason": reason, "software": _software()}
            row = changes.change_row(book, body)
            append(view, row, row, terms=book.terms, place=self._store.place)
        self._outlook.has_written(row)

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
            group=self.group,
        )


@cache
def _software() -> str:
    try:
        return f"sabun {importlib.metadata.version('sabun')}"
    except importlib.metadata.PackageNotFoundError:
        return "sabun, not installed"
