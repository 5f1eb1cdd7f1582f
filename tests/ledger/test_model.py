"""The ledger against a plain list: any order of operations, on disk, on a server and on a store of our own."""

from __future__ import annotations

import math
import shutil
import tempfile
from contextlib import contextmanager
from copy import deepcopy
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sabun.errors import BudgetExceeded, LedgerError, ParameterError
from sabun.ledger import Ledger
from sabun.privacy.guarantee import Guarantee

BUDGET = (Fraction(1), Fraction(1, 10**6))
AMOUNTS = st.sampled_from(["1/10", "1/3", "0.25", "0", "1", "2", "1/7"])
DELTAS = st.sampled_from(["0", "0", "1e-7", "1/3000000", "2e-6"])
KEYS = st.sampled_from([None, None, "a", "b"])
PURPOSES = st.sampled_from(["p", "q"])


class MemoryStore:
    """The smallest store that keeps the laws of `sabun.ledger.store` (less surviving a crash)."""

    place = "memory"

    def __init__(self):
        self.kept, self.payloads = [], {}

    def create(self, first):
        self.kept.append(first)

    @contextmanager
    def reading(self):
        yield self

    @contextmanager
    def writing(self):
        before = list(self.kept), dict(self.payloads)
        try:
            yield self
        except BaseException:
            self.kept, self.payloads = before
            raise

    def last(self):
        return self.kept[-1]

    def at(self, sequence):
        return self.kept[sequence] if sequence < len(self.kept) else None

    def rows(self, after=-1, *, limit=None):
        return iter(self.kept[after + 1 :][:limit])

    def of_entry(self, entry):
        return [row for row in self.kept if row.entry == entry]

    def with_key(self, key):
        return [row for row in self.kept if row.key == key]

    def payload(self, entry):
        return self.payloads.get(entry)

    def counts(self):
        return len(self.kept), len(self.payloads)

    def append(self, row):
        self.kept.append(row)

    def keep(self, entry, payload):
        self.payloads[entry] = payload

    def inspect(self):
        pass


class LedgerModel(RuleBasedStateMachine):
    """Every operation is done twice: by the ledger, and on a list of dictionaries."""

    reservations = Bundle("reservations")
    accounting = "sums"

    def place(self):
        return MemoryStore()

    @initialize()
    def create(self):
        self.at = self.place()
        self.ledger = Ledger.create(self.at, name="model", epsilon=BUDGET[0], delta=BUDGET[1], accounting=self.accounting)
        self.model = []
        self.commits = 0

    def spent(self):
        live = [item for item in self.model if item["state"] != "voided"]
        return sum(item["epsilon"] for item in live), sum(item["delta"] for item in live)

    def expected_error(self, guarantee, purpose, key):
        uses = [item for item in self.model if key is not None and item["key"] == key and item["state"] != "voided"]
        if any((item["guarantee"], item["purpose"]) != (guarantee, purpose) for item in uses):
            return ParameterError
        if any(item["state"] == "committed" for item in uses):
            return ParameterError
        return None if self.fits(guarantee) else BudgetExceeded

    def fits(self, guarantee):
        return all(used + new <= top for used, new, top in zip(self.spent(), guarantee.cost, BUDGET, strict=True))

    def booked(self, guarantee, purpose, key, state):
        epsilon, delta = guarantee.cost
        item = {"guarantee": guarantee, "purpose": purpose, "key": key, "epsilon": epsilon, "delta": delta, "state": state}
        self.model.append(item | {"payload": b"", "order": 0})
        return len(self.model) - 1

    def given_back(self, item):
        """What else follows from a void."""

    @rule(target=reservations, epsilon=AMOUNTS, delta=DELTAS, purpose=PURPOSES, key=KEYS)
    def reserve(self, epsilon, delta, purpose, key):
        guarantee = Guarantee(epsilon=epsilon, delta=delta)
        error = self.expected_error(guarantee, purpose, key)
        if error is None:
            reservation = self.ledger.reserve(guarantee, purpose=purpose, key=key)
            return reservation, self.booked(guarantee, purpose, key, "reserved")
        with pytest.raises(error):
            self.ledger.reserve(guarantee, purpose=purpose, key=key)
        return None, None

    @rule(epsilon=AMOUNTS, delta=DELTAS, purpose=PURPOSES, key=KEYS)
    def charge(self, epsilon, delta, purpose, key):
        guarantee = Guarantee(epsilon=epsilon, delta=delta)
        error = self.expected_error(guarantee, purpose, key)
        if error is None:
            self.ledger.charge(guarantee, purpose=purpose, key=key)
            self.commits += 1
            self.model[self.booked(guarantee, purpose, key, "committed")]["order"] = self.commits
        else:
            with pytest.raises(error):
                self.ledger.charge(guarantee, purpose=purpose, key=key)

    @rule(pair=reservations, payload=st.binary(max_size=8))
    def commit(self, pair, payload):
        reservation, number = pair
        if reservation is None:
            return
        item = self.model[number]
        if item["state"] != "reserved":
            with pytest.raises(LedgerError):
                reservation.commit(payload)
            return
        reservation.commit(payload)
        self.commits += 1
        item.update(state="committed", payload=payload, order=self.commits)

    @rule(pair=reservations, touched=st.booleans())
    def void(self, pair, touched):
        reservation, number = pair
        if reservation is None:
            return
        item = self.model[number]
        if touched and item["state"] == "reserved":
            reservation.touch()
        if item["state"] != "reserved" or reservation.touched:
            with pytest.raises(LedgerError):
                reservation.void()
        else:
            reservation.void()
            item["state"] = "voided"
            self.given_back(item)

    @rule(pair=consumes(reservations))
    def lose(self, pair):
        """A crash: the object is gone and its charge stays."""

    @rule(key=st.sampled_from(["a", "b"]), epsilon=AMOUNTS, delta=DELTAS, purpose=PURPOSES)
    def recall(self, key, epsilon, delta, purpose):
        guarantee = Guarantee(epsilon=epsilon, delta=delta)
        uses = [item for item in self.model if item["key"] == key and item["state"] != "voided"]
        if any((item["guarantee"], item["purpose"]) != (guarantee, purpose) for item in uses):
            with pytest.raises(ParameterError):
                self.ledger.recall(key, guarantee=guarantee, purpose=purpose)
            return
        done = sorted((item for item in uses if item["state"] == "committed"), key=lambda item: item["order"])
        found = self.ledger.recall(key, guarantee=guarantee, purpose=purpose)
        assert (None if found is None else found[1]) == (done[0]["payload"] if done else None)

    @precondition(lambda self: len(self.ledger.accounts()) < 3)
    @rule()
    def open_account(self):
        """A change of terms that leaves the whole as it was: whatever came before it, the book must still be readable."""
        self.ledger.open_account(f"account {len(self.ledger.accounts())}", "1/2", reason="r")
        Ledger.open(self.at)

    @rule()
    def reopen(self):
        self.ledger = Ledger.open(self.at)

    @rule()
    def copy(self):
        self.ledger = deepcopy(self.ledger)

    def admitted(self):
        return all(used <= top for used, top in zip(self.spent(), BUDGET, strict=True))

    @invariant()
    def sums_agree_and_stay_within_the_budget(self):
        assert self.ledger.spent == self.spent()
        assert self.admitted()

    def teardown(self):
        if not hasattr(self, "ledger"):
            return
        states = [(entry.purpose, entry.key, entry.epsilon, entry.delta, entry.state) for entry in self.ledger.entries()]
        assert states == [tuple(item[name] for name in ("purpose", "key", "epsilon", "delta", "state")) for item in self.model]
        assert self.ledger.verify().entries == len(self.model)


class LedgerByShares(LedgerModel):
    """The same rules in a ledger that counts by sums or by an order, its rule written down anew."""

    accounting = "shares"

    def live(self, *more):
        kept = [(item["epsilon"], item["delta"]) for item in self.model if item["state"] != "voided"]
        return [*kept, *more]

    def by_shares(self, amounts):
        """Deltas within two fifths of delta; epsilons by their sum, or randomized response at order 23 with half of delta."""
        order = 23
        cost = sum(math.log((math.exp(order * e) + math.exp((1 - order) * e)) / (1 + math.exp(e))) for e, _ in amounts)
        most = (order - 1) * (BUDGET[0] - math.log1p(-1 / order)) + math.log(order * BUDGET[1] / 2)
        sums = sum(epsilon for epsilon, _ in amounts) <= BUDGET[0]
        return sum(delta for _, delta in amounts) <= BUDGET[1] * Fraction(2, 5) and (sums or cost <= most)

    def fits(self, guarantee):
        asked = self.live(guarantee.cost)
        return (self.first_by_sums and super().fits(guarantee)) or (not self.first_by_sums and self.by_shares(asked))

    deciding = None
    """The charge that decided by which rule all count; none any more once it was voided with nothing else charged."""

    @property
    def first_by_sums(self):
        """Whether the deciding charge fitted no share, so that sums decide."""
        return self.deciding is not None and not self.by_shares([(self.deciding["epsilon"], self.deciding["delta"])])

    def booked(self, guarantee, purpose, key, state):
        index = super().booked(guarantee, purpose, key, state)
        self.deciding = self.deciding or self.model[index]
        return index

    def given_back(self, item):
        if item is self.deciding and self.spent() == (0, 0):
            self.deciding = None

    def expected_error(self, guarantee, purpose, key):
        if self.deciding is None and not self.by_shares([guarantee.cost]) and LedgerModel.fits(self, guarantee):
            self.deciding = {"epsilon": guarantee.cost[0], "delta": guarantee.cost[1]}
            error = super().expected_error(guarantee, purpose, key)
            self.deciding = None
            return error
        return super().expected_error(guarantee, purpose, key)

    def admitted(self):
        return self.by_shares(self.live()) or (self.first_by_sums and super().admitted())


class LedgerOnDisk(LedgerModel):
    """The same rules on a real file."""

    def place(self):
        self.folder = tempfile.mkdtemp()
        return Path(self.folder) / "model.ledger"

    def teardown(self):
        super().teardown()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


def test_the_ledger_does_what_a_list_would_do_in_memory():
    run_state_machine_as_test(LedgerModel, settings=settings(max_examples=60, stateful_step_count=40, deadline=None))


def test_a_ledger_by_shares_does_what_a_list_would_do():
    assert Ledger.create(MemoryStore(), name="m", epsilon=1, delta=BUDGET[1]).to_dict()["standing"]["shares"]["order"] == 23
    run_state_machine_as_test(LedgerByShares, settings=settings(max_examples=30, stateful_step_count=40, deadline=None))


def test_the_ledger_does_what_a_list_would_do_on_disk():
    run_state_machine_as_test(LedgerOnDisk, settings=settings(max_examples=15, stateful_step_count=25, deadline=None))


def test_the_ledger_does_what_a_list_would_do_on_a_server(running):
    class LedgerOnServer(LedgerModel):
        """The same rules on a real server."""

        def place(self):
            return running.place()

    run_state_machine_as_test(LedgerOnServer, settings=settings(max_examples=8, stateful_step_count=25, deadline=None))
