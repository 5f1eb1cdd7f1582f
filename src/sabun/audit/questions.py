"""Laws for every public class that charges a ledger, tried on the specimen its room shows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking.evidence import ROWS, Bench, Check, Checklist, Specimen
from sabun.audit.black_box import mechanism
from sabun.audit.drowning import drowned
from sabun.audit.repeats import independent
from sabun.audit.replay import replayed
from sabun.errors import BudgetExceeded
from sabun.ledger import Ledger
from sabun.privacy import Guarantee, Price
from sabun.privacy.composition import tight_epsilon
from sabun.privacy.noise import coin
from sabun.telling.harness import timed

__all__ = ["book_of", "checks_of", "files_in"]


def checks_of(specimens: Iterable[Specimen], variants: Iterable[Specimen]) -> Iterator[Check]:
    """What is laid upon every class, and upon every mechanism of a class in each way that it can be asked."""
    checklist = Checklist()
    for specimen in specimens:
        for law in _OF_CLASSES:
            checklist(specimen.question, needs=specimen.needs, thorough=law in _THOROUGH, specimen=(specimen,))(law)
    ways: dict[tuple[str, tuple[str, ...], str], list[Specimen]] = {}
    for one in variants:
        ways.setdefault((one.question, one.mechanisms, one.needs), []).append(one)
    for (question, mechanisms, needs), many in ways.items():
        for law in _OF_WAYS:
            checklist(question, *mechanisms, needs=needs, specimen=many if law in _EACH_WAY else many[:1])(law)
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
    with _ledger(specimen, epsilon=9) as (ledger, path):

        def watched(self: Any, count: int) -> Any:
            seen.append(Ledger.open(path).spent.epsilon > 0)
            return words(self, count)

        prices: list[Price | None] = []
        reserve = Ledger.reserve

        def noted(self: Ledger, guarantee: Guarantee, **how: Any) -> Any:
            prices.append(how.get("price"))
            return reserve(self, guarantee, **how)

        model = specimen.make(ledger=ledger)
        bench.replace(Ledger, "reserve", noted)
        bench.replace(coin._OsCoin, "words", watched)
        specimen.fit(model, ROWS)
        bench.must(seen, "no coin was tossed at all.")
        bench.must(all(seen), "a coin was tossed before the charge.")
        bench.must(tuple(ledger.spent) == model.guarantee_.as_replace_one().cost, "the charge is not what the guarantee says.")
        for price in prices:
            if price is not None:
                _fits(bench, price, model.guarantee_)
    return f"charged before each of {len(seen)} words of entropy" if len(seen) > 1 else "charged before the one toss"


def _fits(bench: Bench, price: Price, guarantee: Guarantee) -> None:
    """Noise is made as small as its promise allows: parts that lose far less than was promised were not stated as they run."""
    epsilon, delta = (Fraction(part) for part in guarantee.cost)
    implied = tight_epsilon(price.events, delta=delta) if delta else price.epsilon(delta=delta, near=epsilon)
    # One who is replaced is taken away and another added, so that a price of the one kind may be half of the other's promise.
    most = Fraction(11, 10) if price.relation == guarantee.relation else Fraction(3)
    told = f"it is priced at an epsilon of {implied}, and promises {epsilon}."
    bench.must(implied is not None and most * implied >= epsilon, told)


def _a_refused_budget_tosses_no_coin_and_leaves_every_byte_and_counter_as_it_was(bench: Bench, specimen: Specimen) -> str:
    def tossed(self: Any, count: int) -> Any:
        del self, count
        bench.fail("the coin was tossed.")

    bench.replace(coin._OsCoin, "words", tossed)
    told = _refused(bench, specimen)
    if "checkpoint" in specimen.make().get_params():  # the key of a run is drawn first, for the folder to hold
        bench.put_back()
        _refused(bench, specimen, checkpoint="kept")
    return told


def _refused(bench: Bench, specimen: Specimen, **more: Any) -> str:
    with _ledger(specimen, epsilon=0.01) as (ledger, path), chdir(path.parent):
        model = specimen.make(ledger=ledger, **more)
        before, own, rows = files_in(path.parent), _terms(model), ROWS.copy()
        try:
            specimen.fit(model, rows)
        except BudgetExceeded as refusal:
            bench.must(
                "Nothing was released, nothing was charged" in str(refusal), "the refusal does not say what it did not do."
            )
        else:
            bench.fail("the ledger did not refuse.")
        bench.must(not any(ledger.spent) and not ledger.entries(), "something was charged.")
        bench.must(not hasattr(model, "release_") and not hasattr(model, "guarantee_"), "something was released.")
        bench.must(_terms(model) == own, "what the caller asked for was changed.")
        bench.must(np.array_equal(rows, ROWS), "the caller's table was changed.")
        after = files_in(path.parent)
        bench.must(after.keys() == before.keys(), f"other files are there: {sorted(after.keys() ^ before.keys())}.")
        bench.must(after == before, "a file was written to.")
    return f"{len(before)} files, the same bytes"


def _terms(model: Any) -> dict[str, str]:
    return {name: repr(value) for name, value in model.get_params(deep=False).items() if name != "ledger"}


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its bytes; locks and shared memory of a database are no content."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith(("-shm", ".lock")))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _neighbours_replayed_with_the_same_noisy_numbers_release_the_same_bits_so_no_float_tells_more(
    bench: Bench, specimen: Specimen
) -> str:
    return replayed(bench, specimen)


def _huge_noise_drowns_everything_that_is_released(bench: Bench, specimen: Specimen) -> str:
    return drowned(bench, specimen)


def _no_two_draws_of_a_fit_come_out_alike(bench: Bench, specimen: Specimen) -> str:
    return independent(bench, specimen)


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

_OF_CLASSES = (
    _the_charge_is_on_disk_before_any_coin_is_tossed,
    _a_refused_budget_tosses_no_coin_and_leaves_every_byte_and_counter_as_it_was,
    _an_attack_on_the_digits_of_released_numbers_does_not_tell_neighbours_apart,
)
_EACH_WAY = (
    _neighbours_replayed_with_the_same_noisy_numbers_release_the_same_bits_so_no_float_tells_more,
    _huge_noise_drowns_everything_that_is_released,
    _no_two_draws_of_a_fit_come_out_alike,
)
_OF_WAYS = (
    _the_charge_is_on_disk_before_any_coin_is_tossed,
    *_EACH_WAY,
)
