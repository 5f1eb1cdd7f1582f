"""Laws for every public class that charges a ledger, tried on the specimen its room shows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking.evidence import ROWS, Bench, Check, Checklist, Specimen
from sabun.audit.black_box import mechanism
from sabun.audit.replay import replayed
from sabun.errors import BudgetExceeded
from sabun.ledger import Ledger
from sabun.privacy.noise import coin
from sabun.telling.harness import timed

__all__ = ["book_of", "checks_of"]


def checks_of(specimen: Specimen) -> Iterator[Check]:
    """What is laid upon the class of a specimen."""
    checklist = Checklist()
    for law in _LAWS:
        checklist(specimen.question, needs=specimen.needs, thorough=law in _THOROUGH, specimen=(specimen,))(law)
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
        bench.must(not any(ledger.spent), "something was charged.")
        bench.must(not hasattr(model, "release_") and not hasattr(model, "guarantee_"), "something was released.")


def _neighbours_replayed_with_the_same_noisy_numbers_release_the_same_bits_so_no_float_tells_more(
    bench: Bench, specimen: Specimen
) -> str:
    return replayed(bench, specimen)


_SECONDS = 180.0
"""What the attack on the digits of one class may take."""


def _an_attack_on_the_digits_of_released_numbers_does_not_tell_neighbours_apart(bench: Bench, specimen: Specimen) -> str:
    """Every number of a release, before and after a row was replaced (Mironov 2012), by an audit from outside."""

    def released(rows: Any) -> NDArray[np.float64]:
        return np.array(list(_numbers(specimen.fit(specimen.make(), rows).release_.value)), dtype=np.float64)

    changed = ROWS.copy()
    changed[0] = 1.0
    first, seconds = timed(lambda: released(ROWS))
    if not first.size:
        return "no number is released"
    runs = min(20_000, max(200, int(_SECONDS / seconds / 2)))
    found = mechanism(
        released, [(ROWS, changed)], float(specimen.make().epsilon), delta=float(specimen.delta), runs=runs, confidence=1 - 1e-9
    )
    bench.must(not found.refuted, str(found))
    return f"at least epsilon {found.epsilon:.3f} of {float(found.claim):g}, from {found.runs} fits of each"


_NOTHING = -1e300
"""Stands for an answer that the noise left undefined."""


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _numbers(part)
    elif isinstance(value, list | tuple | np.ndarray):
        for part in value:
            yield from _numbers(part)
    elif value is None:
        yield _NOTHING
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
        yield float(value)


_THOROUGH = (_an_attack_on_the_digits_of_released_numbers_does_not_tell_neighbours_apart,)
"""What takes minutes for each class: fitting it thousands of times."""

_LAWS = (
    _the_charge_is_on_disk_before_any_coin_is_tossed,
    _a_refused_budget_tosses_no_coin_and_charges_nothing,
    _neighbours_replayed_with_the_same_noisy_numbers_release_the_same_bits_so_no_float_tells_more,
    _an_attack_on_the_digits_of_released_numbers_does_not_tell_neighbours_apart,
)
