"""Laws of the ledger: what is booked stays booked, whoever changes it is noticed, and many charges add up as they must."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sabun.asking.evidence import Bench, Checklist
from sabun.asking.evidence.needed import gaussian_delta
from sabun.audit.altered import altered
from sabun.errors import BudgetExceeded, LedgerError, SabunError
from sabun.ledger import Ledger
from sabun.ledger.row import Row
from sabun.privacy import Guarantee, compose
from sabun.privacy.composition import tight_epsilon
from sabun.privacy.events import (
    KINDS,
    Approximate,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    SampledGaussian,
)

__all__ = ["CHECKS", "OF_COMPOSITION"]

CHECKS = Checklist()
OF_COMPOSITION = Checklist()

_TENTH = Guarantee(epsilon=Fraction(1, 10), delta=Fraction(1, 10**7), mechanism="made up")


@contextmanager
def _ledger(**terms: Any) -> Iterator[tuple[Ledger, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book"
        facts: dict[str, Any] = {"epsilon": 1, "delta": Fraction(1, 10**5), "accounting": "sums"} | terms
        yield Ledger.create(path, name="book", unit="record", **facts), path


@CHECKS("budget", accounting=["sums", "shares"])
def _charges_add_up_to_the_last_one_and_no_further(bench: Bench, accounting: str) -> str:
    """Ten tenths are one, exactly; the eleventh is refused and leaves the book as it was."""
    with _ledger(accounting=accounting) as (ledger, path):
        for number in range(10):
            bench.must(ledger.spent.epsilon == Fraction(number, 10), f"{ledger.spent} was spent after {number} charges.")
            ledger.charge(_TENTH, purpose="x")
            bench.must(Ledger.open(path).spent.epsilon == Fraction(number + 1, 10), "a charge is not in the book on disk.")
        bench.must(ledger.spent.delta == Fraction(10, 10**7), f"{ledger.spent.delta} of delta was spent.")
        before = path.read_bytes()
        try:
            ledger.charge(_TENTH, purpose="x")
        except BudgetExceeded:
            bench.must(path.read_bytes() == before, "a refusal wrote to the book.")
        else:
            bench.fail("more than everything was spent.")
        bench.must(len(Ledger.open(path).entries()) == 10, "a refusal left an entry.")
    return "ten tenths of epsilon, ten of delta; the eleventh refused, the file the same"


@CHECKS("budget")
def _delta_alone_is_enough_to_refuse(bench: Bench) -> None:
    with _ledger(epsilon=1000, delta=Fraction(3, 10**7)) as (ledger, _):
        for _ in range(3):
            ledger.charge(_TENTH, purpose="x")
        try:
            ledger.charge(_TENTH, purpose="x")
        except BudgetExceeded:
            return
        bench.fail("more delta than there is was spent.")


@CHECKS("reservation")
def _a_charge_comes_back_only_before_data_was_touched_and_only_once(bench: Bench) -> None:
    with _ledger() as (ledger, path):
        given_back = ledger.reserve(_TENTH, purpose="x")
        bench.must(Ledger.open(path).spent.epsilon == Fraction(1, 10), "a reservation is not charged.")
        given_back.void()
        bench.must(not any(Ledger.open(path).spent), "what was voided stays charged.")
        _refused(bench, given_back.void, "it was given back twice")
        _refused(bench, lambda: given_back.commit(b"x"), "a voided charge got a result")
        touched = ledger.reserve(_TENTH, purpose="x")
        touched.touch()
        _refused(bench, touched.void, "it was given back after data was touched")
        touched.commit(b"result")
        _refused(bench, lambda: touched.commit(b"another"), "two results for one charge")
        _refused(bench, touched.void, "it was given back after its result was kept")
        bench.must(Ledger.open(path).spent.epsilon == Fraction(1, 10), "the charge is not in the book.")


def _refused(bench: Bench, call: Any, words: str) -> None:
    try:
        call()
    except SabunError:
        return
    bench.fail(f"{words}.")


@CHECKS("reservation")
def _a_key_returns_the_same_bytes_and_only_to_the_same_question(bench: Bench) -> None:
    with _ledger() as (ledger, _):
        made = ledger.reserve(_TENTH, purpose="x", key="k")
        made.touch()
        made.commit(b"result")
        found = ledger.recall("k", guarantee=_TENTH, purpose="x")
        bench.must(found is not None and found[1] == b"result", "other bytes came back.")
        bench.must(ledger.spent.epsilon == Fraction(1, 10), "a repeat was charged.")
        for changed in altered(_TENTH.to_dict()):
            with suppress(SabunError):
                other = Guarantee.from_dict(changed.record)
                if other != _TENTH:
                    _refused(
                        bench, lambda asked=other: ledger.recall("k", guarantee=asked, purpose="x"), f"another {changed.way}"
                    )
        _refused(bench, lambda: ledger.recall("k", guarantee=_TENTH, purpose="y"), "another purpose got its bytes")


@CHECKS("book")
def _every_altered_field_of_a_row_is_refused(bench: Bench) -> str:
    """A byte changed in place, and forgeries with a fitting hash of every number that later rows build upon."""
    with _ledger(accounting="shares") as (ledger, path):
        for _ in range(3):
            made = ledger.reserve(_TENTH, purpose="x")
            made.touch()
            made.commit(b"result")
        rows, tried = _rows(path), 0
        for sequence, record, own in rows:
            for changed in altered(json.loads(record)):
                text = json.dumps(changed.record, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
                _refused(bench, lambda text=text, own=own: Row.read(text, own, place="here"), f"row {sequence}, {changed.way}")
                tried += 1
        original = path.read_bytes()
        for name in ("sequence", "entry", "entries", "previous", "spent", "standing", "kind"):
            sequence, record, _ = rows[-1]
            for changed in altered(json.loads(record)[name]):
                forged = json.loads(record) | {name: changed.record}
                text = json.dumps(forged, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
                _rewrite(path, sequence, text)
                _refused(bench, lambda: Ledger.open(path).verify(), f"a forged {name}{changed.way} was taken")
                path.write_bytes(original)
                tried += 1
        bench.must(Ledger.open(path).verify().entries == 3, "the book itself was broken on the way.")
    return f"{tried} changes, all refused"


def _rows(path: Path) -> list[tuple[int, str, str]]:
    with closing(sqlite3.connect(path)) as base:
        table, columns = _table(base)
        found = base.execute(f"SELECT sequence, {columns[0]}, {columns[1]} FROM {table} ORDER BY sequence").fetchall()
    return [(int(number), str(record), str(own)) for number, record, own in found]


def _table(base: sqlite3.Connection) -> tuple[str, tuple[str, str]]:
    """The table of rows, with the names of the record and its hash, as any database tool shows them."""
    for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = [row[1] for row in base.execute(f"PRAGMA table_info({name})").fetchall()]
        if "record" in columns and "hash" in columns:
            return str(name), ("record", "hash")
    raise LedgerError("the book must have a table of rows; it has none.")


def _rewrite(path: Path, sequence: int, text: str) -> None:
    own = hashlib.sha256(text.encode("ascii")).hexdigest()
    with closing(sqlite3.connect(path)) as base:
        table, _ = _table(base)
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            base.execute(f"DROP TRIGGER {name}")
        base.execute(f"UPDATE {table} SET record = ?, hash = ? WHERE sequence = ?", (text, own, sequence))
        base.commit()


@CHECKS("book")
def _a_charge_waits_for_the_disk(bench: Bench) -> str:
    """SQLite's own word: every commit syncs the file and its journal, and the journal goes away only after that."""
    asked: list[str] = []
    true = sqlite3.connect

    def connect(*given: Any, **how: Any) -> Any:
        base = true(*given, **how)
        base.set_trace_callback(asked.append)
        return base

    bench.replace(sqlite3, "connect", connect)
    with _ledger() as (ledger, _):
        asked.clear()
        ledger.reserve(_TENTH, purpose="x")
    settings = " ".join(asked).lower().replace(" ", "")
    bench.must("synchronous=extra" in settings or "synchronous=3" in settings, "a commit may be lost with the power.")
    bench.must(not any(f"journal_mode={mode}" in settings for mode in ("off", "memory")), "a crash would break the book.")
    return "synchronous=EXTRA: the file, its journal and their folder"


_STATED = [(Fraction(1, 10), Fraction(1, 10**7)), (Fraction(3, 7), Fraction(0)), (Fraction(2), Fraction(1, 10**9))]


@OF_COMPOSITION("composition", count=[1, 2, 7])
def _stated_losses_with_a_delta_add_up(bench: Bench, count: int) -> str:
    """Sums by hand; and for the accountant the tosses that lose exactly so much, several of each kind, counted out."""
    whole = compose([Guarantee(epsilon=e, delta=d, mechanism="m") for e, d in _STATED] * count)
    delta = count * sum(d for _, d in _STATED)
    bench.must(whole.epsilon == count * sum(e for e, _ in _STATED), f"epsilon adds up to {whole.epsilon}.")
    bench.must(whole.delta == delta, f"delta adds up to {whole.delta}.")
    room = 20 * delta
    found = float(tight_epsilon([Approximate(epsilon=e, delta=d, count=count) for e, d in _STATED], delta=room))
    bench.must(
        _tossed(count, found) <= float(room) * (1 + 1e-6), f"delta is {_tossed(count, found):.3g} at epsilon {found:.4f}."
    )
    bench.must(_tossed(count, found * 0.9 - 0.01) > float(room), f"epsilon {found:.4f} is far above what is needed.")
    return f"{count} of each: epsilon {found:.4f}, {float(whole.epsilon):.4f} by sums"


def _tossed(count: int, epsilon: float) -> float:
    """delta of so many tosses of each kind, with odds e^epsilon, each betrayed with its delta (Kairouz, Oh, Viswanath 2015)."""
    safe, missed = 1.0, 0.0
    for _, delta in _STATED:
        safe *= (1 - float(delta)) ** count
    for heads in itertools.product(range(count + 1), repeat=len(_STATED)):
        ways, logs = 1.0, 0.0
        for (each, _), many in zip(_STATED, heads, strict=True):
            ways *= math.comb(count, many) / (1 + math.exp(float(each))) ** count
            logs += many * float(each)
        against = sum((count - many) * float(each) for (each, _), many in zip(_STATED, heads, strict=True))
        missed += ways * max(math.exp(logs) - math.exp(epsilon + against), 0.0)
    return 1 - safe * (1 - missed)


@OF_COMPOSITION("composition", count=[1, 3, 20])
def _gaussian_noise_of_several_runs_adds_up_in_squares(bench: Bench, count: int) -> str:
    """k runs of deviation s are one run of deviation s / sqrt(k): Balle and Wang's formula, neither below nor far above."""
    delta, told = 1e-5, []
    kinds: list[tuple[Event, float]] = [
        (Gaussian(noise_multiplier=Fraction(8), count=count), 8.0),
        (DiscreteGaussian(sigma_squared=Fraction(64 * 10**6), l2_squared=Fraction(10**6), count=count), 8.0),
    ]
    for event, sigma in kinds:
        found = float(tight_epsilon([event], delta=delta))
        exact = gaussian_delta(sigma / math.sqrt(count), found)
        bench.must(exact <= delta * (1 + 1e-6), f"{type(event).__name__}: delta is {exact:.3g} at epsilon {found:.4f}.")
        loose = gaussian_delta(sigma / math.sqrt(count), found * 0.8)
        bench.must(loose > delta, f"{type(event).__name__}: epsilon {found:.4f} is far above what is needed.")
        told.append(f"{found:.4f}")
    return f"{count} runs: epsilon {' and '.join(told)}"


@OF_COMPOSITION("composition", count=[1, 4])
def _laplace_and_gaussian_noise_together_lose_no_less_than_either(bench: Bench, count: int) -> None:
    pure = DiscreteLaplace(scale=Fraction(20), sensitivity=1, count=count)
    normal = Gaussian(noise_multiplier=Fraction(10), count=count)
    both = float(tight_epsilon([pure, normal], delta=1e-5))
    alone = [float(tight_epsilon([one], delta=1e-5)) for one in (pure, normal)]
    bench.must(both >= max(alone) and both <= sum(alone) * (1 + 1e-6), f"{both} together, {alone} alone.")
    heads = 1 / (1 + math.exp(-count / 20))
    most = heads * gaussian_delta(10 / math.sqrt(count), both - count / 20)
    bench.must(most <= 1e-5 * 1.2 or both >= alone[1] + count / 20 * 0.3, "less than noise of that size loses.")


_EVERY: tuple[Event, ...] = (
    Approximate(epsilon=Fraction(1, 10), delta=Fraction(1, 10**7)),
    Gaussian(noise_multiplier=Fraction(80)),
    SampledGaussian(noise_multiplier=Fraction(8), sampling_probability=Fraction(1, 10)),
    DiscreteGaussian(sigma_squared=Fraction(80**2), l2_squared=Fraction(1)),
    DiscreteLaplace(scale=Fraction(100)),
    BoundedRange(epsilon=Fraction(1, 10)),
)


@OF_COMPOSITION("composition")
def _every_kind_of_event_counts_beside_every_other_and_as_often_as_it_ran(bench: Bench) -> str:
    """Two kinds together lose more than either; so many runs of one are so many events of one run, at any price."""
    bench.must({type(one) for one in _EVERY} == set(KINDS), "a kind of event is not tried here.")
    delta = 3e-7  # less than five runs of the first state together
    alone = {one.kind: tight_epsilon([one], delta=delta) for one in _EVERY}
    for one, other in itertools.combinations(_EVERY, 2):
        both, more = tight_epsilon([one, other], delta=delta), max(alone[one.kind], alone[other.kind])
        bench.must(both > more or both == more == math.inf, f"{one.kind} and {other.kind}: {float(both):.4f} together.")
    for one in _EVERY:
        many, copies = replace(one, count=5), [one] * 5
        found, added = (float(tight_epsilon(events, delta=delta)) for events in ([many], copies))
        bench.must(math.isclose(found, added, rel_tol=1e-3), f"{one.kind}: {found} for 5 runs, {added} added up.")
        for order, steps in ((3, 1), (9, 1), (9, 2)):
            each, all_ = one.cost(order, steps=steps), many.cost(order, steps=steps)
            bench.must((each is None) == (all_ is None), f"{one.kind}: a price for some runs only.")
            if each is not None and all_ is not None:
                near = all(abs(whole - 5 * part) <= 1e-9 * whole for whole, part in zip(all_, each, strict=True))
                bench.must(near, f"{one.kind}: 5 runs cost {all_}, one {each}.")
    return f"{len(_EVERY)} kinds, {len(_EVERY) * (len(_EVERY) - 1) // 2} pairs"


@OF_COMPOSITION("composition", order=[3, 9])
def _a_sampled_gaussian_over_two_steps_costs_what_the_triangle_says(bench: Bench, order: int) -> str:
    """D_a(P, R) <= (a - 1/2) / (a - 1) D_2a(P, Q) + D_(2a-1)(Q, R), each integrated on a line, neither below nor far above."""
    probability, sigma = 0.1, 2.0
    event = SampledGaussian(noise_multiplier=Fraction(2), sampling_probability=Fraction(1, 10))
    x = np.linspace(-60.0, 90.0, 300_001)
    plain = np.exp(-(x**2) / (2 * sigma**2)) / math.sqrt(2 * math.pi * sigma**2)
    ratio = (1 - probability) + probability * np.exp((2 * x - 1) / (2 * sigma**2))

    def divergence(alpha: int) -> float:
        return math.log(float(np.sum(plain * ratio**alpha) * (x[1] - x[0]))) / (alpha - 1)

    needed = (order - 0.5) / (order - 1) * divergence(2 * order) + divergence(2 * order - 1)
    for steps, least in ((1, divergence(order)), (2, needed)):
        found = event.cost(order, steps=steps)
        bench.must(found is not None, "no price is known.")
        assert found is not None
        bench.enough(float(found.tau), least, slack=1e-6, waste=1 + 1e-6)
    return f"order {order}: {needed:.6f}"


@OF_COMPOSITION("promises")
def _one_seeded_part_makes_the_whole_a_simulation(bench: Bench) -> None:
    plain = Guarantee(epsilon=Fraction(1, 2), delta=Fraction(1, 10**6), relation="add-remove", mechanism="m")
    for parts in itertools.product((plain, plain.as_simulated()), repeat=3):
        bench.must(compose(parts).simulated == any(part.simulated for part in parts), "a seeded part passes for private.")
    for same in (Guarantee.as_replace_one, Guarantee.as_joint, lambda one: Guarantee.from_dict(one.to_dict())):
        bench.must(same(plain.as_simulated()).simulated and not same(plain).simulated, "a promise lost its mark on the way.")
