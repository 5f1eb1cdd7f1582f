"""What a ledger tells: its terms, what is used, what is left, what was charged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.ledger import changes
from sabun.ledger.amounts import write_amount
from sabun.ledger.chain import Book, check_payload, inspected, read_entry
from sabun.ledger.keys import check_key
from sabun.ledger.outlook import Outlook
from sabun.ledger.prospects import Forecast, Rest, forecast, rest, uses
from sabun.ledger.shares import Held
from sabun.ledger.standing import Standing
from sabun.ledger.statement import Budget, Entry, Verification
from sabun.ledger.store import Store
from sabun.ledger.wording import page
from sabun.privacy.amounts import AmountLike

__all__ = ["View"]


class View:
    """What every ledger tells, without the right to change it; `Ledger` has that too."""

    def __init__(self, store: Store, *, book: Book, account: str = "") -> None:
        self._store = store
        self._outlook = Outlook(store, book)
        self._account = account

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
    def group(self) -> int:
        """How many units are protected together."""
        return self._outlook.terms.group

    @property
    def budget(self) -> Budget:
        """The whole budget as it stands."""
        terms = self._outlook.terms
        return terms.budget if terms.ceiling is None else Budget(self._standing().limit, terms.budget.delta)

    @property
    def promised(self) -> Budget:
        """What all releases together keep for ever: the budget, or the ceiling where one was declared."""
        return self._outlook.terms.promised

    @property
    def spent(self) -> Budget:
        """The sums of what was stated: of every reservation that was not voided.

        No guarantee by itself: a ledger that counts by a Rényi order too admits more than its budget of them.
        """
        return self._outlook.head().spent

    @property
    def remaining(self) -> Budget:
        """The largest epsilon and delta of one more release of which nothing else is known.

        Exact where the sums decide, else rounded down to six decimals; through an account, what is left to that.
        """
        return changes.remaining(self._standing(), self._account)

    @property
    def whole(self) -> Budget:
        """What `remaining` begins with: the budget, but of delta only the share for releases that state no price."""
        return changes.whole(self._standing(), self._account)

    @property
    def share_used(self) -> Fraction:
        """How much of the budget is gone, from 0 to 1; through an account, of its limit where less of that is left."""
        return max(limits.share_used(used) for limits, used in self._held_to())

    def delta_used(self, account: str = "") -> Fraction:
        """How much of delta is gone, of the whole or of an account: of the share for releases known by (epsilon, delta) alone.

        With that gone little may be left to ask, however much of the budget is.
        """
        limits, used = changes.held_to(self._standing(), account)[-1]
        return limits.delta_used(used)

    def forecast(self, epsilon: AmountLike) -> Forecast:
        """What one more question of an epsilon (with no delta) would take, and how many such are left.

        Through an account, to that and to the whole.

        Raises:
            ParameterError: Epsilon breaks its rule.
        """
        return forecast(self._held_to(), self._outlook.terms, epsilon)

    def rest(self, *, delta: AmountLike | None = None) -> Rest:
        """What to ask for in one last release with Gaussian noise that takes all that is left.

        Args:
            delta: The delta that the release is to state; None takes a share of the ledger's.

        Raises:
            ParameterError: Nothing is left for such a release.
        """
        return rest(self._held_to(), self._outlook.terms, delta=delta)

    def uses(self, by: str = "purpose") -> dict[str, Fraction]:
        """What the budget went on: the share of the whole that the charges of each purpose or account take, largest first.

        Args:
            by: `purpose`, or `account` (charges to none have an empty name).
        """
        checks.one_of(("purpose", "account"), by=by)
        named = ((getattr(entry, by), entry) for entry in self.entries())
        return uses(*changes.held_to(self._standing(), "")[0], named)

    def accounts(self) -> dict[str, Fraction]:
        """The accounts by name, each with the share of its limit that is used."""
        standing = self._standing()
        own = {name: changes.held_to(standing, name)[-1] for name in standing.accounts}
        return {name: limits.share_used(used) for name, (limits, used) in own.items()}

    def _standing(self) -> Standing:
        with self._outlook.reading() as (_, book):
            return book.standing

    def _held_to(self) -> tuple[Held, ...]:
        return changes.held_to(self._standing(), self._account)

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

    def records(self) -> Iterator[str]:
        """Every row as it was hashed, oldest first: the hash of one is the SHA-256 of its text, and stands in the next."""
        return self._outlook.records()

    def show(self, *, last: int | None = 20, epsilon: AmountLike | None = None) -> str:
        """The ledger as a page of text: terms, what is used, a line for each of the newest entries (None: for every entry).

        Args:
            last: How many entries to list.
            epsilon: A size of question to tell the cost of, beside the usual ones.
        """
        head, entries = self._outlook.standing(last)
        book, sizes = Book(terms=self._outlook.terms, head=head), (None if epsilon is None else (epsilon,))
        earlier, held = head.entries - len(entries), changes.held_to(book.standing, self._account)
        return page(
            book.terms, book.standing, head.spent, entries, earlier=earlier, sizes=sizes, held=held, account=self._account
        )

    def to_dict(self, *, last: int | None = None) -> dict[str, Any]:
        """The ledger in plain JSON types; amounts are exact text such as "1/10". `last` is as in `entries`.

        The sums of what was stated are `spent` where they decide, else `stated_sum`: those may pass the budget.
        """
        head, entries = self._outlook.standing(last)
        book = Book(terms=self._outlook.terms, head=head)
        used = max(limits.share_used(used) for limits, used in changes.held_to(book.standing, self._account))
        return {
            "name": self.name,
            "unit": self.unit,
            "relation": self.relation,
            "budget": Budget(book.standing.limit, book.standing.delta).to_dict(),
            "spent" if book.standing.rule == "sums" else "stated_sum": head.spent.to_dict(),
            "share_used": write_amount(used),
            "remaining": changes.remaining(book.standing, self._account).to_dict(),
            "standing": book.standing.to_dict() | {"promised": book.terms.promised.to_dict(), "group": book.terms.group},
            "entries": [entry.to_dict() for entry in entries],
            "head_hash": head.hash,
        }

    def close(self) -> None:
        """Ends this handle; the file stays, as do reservations already made."""
        self._outlook.close()
