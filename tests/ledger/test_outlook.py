"""What is said of a charge when the disk says no: never less than what may have happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sabun import Guarantee, Ledger
from sabun.errors import LedgerError
from sabun.ledger.store import Unavailable

ABOUT_FILES = True

MEANS = {True: "Nothing may be released for this charge.", False: "Nothing was charged."}


def _failing(real: Callable[[], Any], *, kept: bool, written: bool) -> Callable[[], Any]:
    """A change after which the place says no, whether or not it kept what was written."""

    @contextmanager
    def change() -> Iterator[Any]:
        refusal = Unavailable("The disk says no.", "Try again.", written=written)
        with real() as view:
            yield view
            if not kept:
                raise refusal
        raise refusal

    return change


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("act", ["charge", "reserve"])
def test_a_refusal_of_the_disk_says_whether_the_charge_may_stand(
    ledger: Ledger, promise: Callable[..., Guarantee], act: str, written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger._store, "writing", _failing(ledger._store.writing, kept=False, written=written))
    with pytest.raises(Unavailable, match="The disk says no") as caught:
        getattr(ledger, act)(promise(), purpose="p")
    assert [words in str(caught.value) for words in (MEANS[written], MEANS[not written])] == [True, False]


@pytest.mark.parametrize("kept", [True, False])
def test_a_charge_that_cannot_be_looked_up_counts_until_it_is_known_not_to_be_there(
    ledger: Ledger, promise: Callable[..., Guarantee], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> Any:
        raise LedgerError("It cannot be read.")

    with monkeypatch.context() as broken:
        broken.setattr(ledger._store, "writing", _failing(ledger._store.writing, kept=kept, written=True))
        broken.setattr(ledger._store, "reading", unreadable)
        with pytest.raises(Unavailable):
            ledger.reserve(promise(), purpose="p")
        assert [receipt.entry for receipt in ledger.receipts] == [1], "it may be in the book"
    assert len(ledger.receipts) == len(ledger.entries()) == kept
