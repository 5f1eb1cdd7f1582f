"""Laws for every public class that charges a ledger, tried on the specimen its room shows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sabun.asking.evidence import ROWS, Bench, Check, Checklist, Specimen
from sabun.errors import BudgetExceeded
from sabun.ledger import Ledger
from sabun.privacy.noise import coin

__all__ = ["book_of", "checks_of"]


def checks_of(specimen: Specimen) -> Iterator[Check]:
    """What is laid upon the class of a specimen."""
    checklist = Checklist()
    for law in _LAWS:
        checklist(specimen.question, needs=specimen.needs, specimen=(specimen,))(law)
    yield from checklist


def book_of(specimen: Specimen, path: Path, *, epsilon: float = 1.0, accounting: str = "shares") -> Ledger:
    """A new ledger for one specimen."""
    return Ledger.create(path, name="book", unit="patient", epsilon=epsilon, delta=specimen.delta, accounting=accounting)


@contextmanager
def _ledger(specimen: Specimen, *, epsilon: float) -> Iterator[tuple[Ledger, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book"
        yield book_of(specimen, path, epsilon=epsilon), path


def _the_charge_is_on_disk_before_any_coin_is_tossed(bench: Bench, specimen: Specimen) -> str:
    seen: list[bool] = []
    words = coin._OsCoin.words
    with _ledger(specimen, epsilon=2) as (ledger, path):

        def watched(self: Any, count: int) -> Any:
            seen.append(Ledger.open(path).spent.epsilon > 0)
            return words(self, count)

        model = specimen.make(ledger=ledger)
        bench.replace(coin._OsCoin, "words", watched)
        specimen.fit(model, ROWS)
        bench.must(seen, "no coin was tossed at all.")
        bench.must(all(seen), "a coin was tossed before the charge.")
        bench.must(tuple(ledger.spent) == model.guarantee_.as_replace_one().cost, "the charge is not what the guarantee says.")
    return f"charged before each of {len(seen)} words of entropy" if len(seen) > 1 else "charged before the one toss"


def _a_refused_budget_tosses_no_coin_and_charges_nothing(bench: Bench, specimen: Specimen) -> None:
    def tossed(self: Any, count: int) -> Any:
        del self, count
        bench.fail("the coin was tossed.")

    with _ledger(specimen, epsilon=0.01) as (ledger, _):
        bench.replace(coin._OsCoin, "words", tossed)
        model = specimen.make(ledger=ledger)
        try:
            specimen.fit(model, ROWS)
        except BudgetExceeded as refusal:
            bench.must("Nothing was released, nothing was charged" in str(refusal))
        else:
            bench.fail("the ledger did not refuse.")
        bench.must(ledger.spent == (0, 0), "something was charged.")
        bench.must(not hasattr(model, "release_") and not hasattr(model, "guarantee_"), "something was released.")


_LAWS = (_the_charge_is_on_disk_before_any_coin_is_tossed, _a_refused_budget_tosses_no_coin_and_charges_nothing)
