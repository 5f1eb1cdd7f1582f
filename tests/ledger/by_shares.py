"""Ledgers that count by sums or by a Rényi order, for the tests about them."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

from sabun.errors import BudgetExceeded
from sabun.ledger import Budget, Ledger
from sabun.privacy import Price, discrete_gaussian_variance
from sabun.privacy.events import DiscreteGaussian

__all__ = ["ALL_FOR_THE_ORDER", "MILLIONTH", "charged", "create", "gaussian", "rewritten", "rows_of"]

MILLIONTH = Fraction(1, 10**6)
ALL_FOR_THE_ORDER = (0, 0, 1)


def gaussian(epsilon, delta, *, relation="replace-one"):
    """The price of discrete Gaussian noise calibrated to (epsilon, delta)."""
    variance = discrete_gaussian_variance(l2_squared=1, epsilon=epsilon, delta=delta)
    return Price(events=(DiscreteGaussian(sigma_squared=variance, l2_squared=1),), relation=relation)


def create(place, **terms):
    return Ledger.create(place, **({"name": "x", "unit": "patient", "epsilon": 3, "delta": "1e-6"} | terms))


def charged(ledger, guarantee, times, **more):
    """How many of so many tries are admitted before the first refusal."""
    for done in range(times):
        try:
            ledger.charge(guarantee, purpose="p", **more)
        except BudgetExceeded:
            return done
    return times


def rows_of(ledger):
    with ledger._store.reading() as view:
        return list(view.rows())


def rewritten(place, edit, change):
    """Writes a ledger anew with one record changed and every later hash fitting."""
    rows, previous = rows_of(Ledger.open(place)), None
    statements = ["DELETE FROM book"]
    for row in rows:
        record = json.loads(row.record)
        change(record)
        if previous is not None:
            record["previous"] = previous.hash
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        spent = Budget(*(Fraction(record["spent"][name]) for name in ("epsilon", "delta")))
        made = dataclasses.replace(row, body=record["body"], previous=record["previous"], spent=spent)
        standing = type(row.standing).from_dict(record["standing"])
        made = dataclasses.replace(made, standing=standing)
        assert made.record == text
        previous = made
        key = "NULL" if made.key is None else f"'{made.key}'"
        statements.append(f"INSERT INTO book VALUES ({made.sequence}, {made.entry}, {key}, '{made.record}', '{made.hash}')")
    edit(place, *statements)
