"""Fake people who push chosen keys up: the attacks of Wu et al. 2022, for simulations.

m2ga   maximal gain: report '+' about a target whenever the protocol lets them
rkva   random key-value: follow the protocol with a target held at the largest value
rma    random messages: any valid report, at random
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.keyvalue.client.probabilities import JOINT, Table
from sabun.keyvalue.client.terms import Terms

__all__ = ["ATTACKS", "Attack", "absent_row", "fake_counts", "joint_counts", "present_row"]

ATTACKS = ("m2ga", "rkva", "rma")
_Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Attack:
    """Fake people among the real ones.

    Args:
        kind: `m2ga`, `rkva` or `rma`.
        fraction: Share of all reports that are fake.
        targets: Positions of the keys to push up.

    Raises:
        ParameterError: An argument breaks its rule.
    """

    kind: str
    fraction: float
    targets: tuple[int, ...]

    def __post_init__(self) -> None:
        checks.one_of(ATTACKS, kind=self.kind)
        checks.probability(fraction=self.fraction)
        for target in self.targets:
            checks.whole(minimum=0, target=target)
        checks.require(len(set(self.targets)) == len(self.targets) > 0, "distinct, at least one", targets=self.targets)
        object.__setattr__(self, "targets", tuple(int(target) for target in self.targets))

    def fakes(self, n: int) -> int:
        """How many fake people stand beside n real ones."""
        return round(n * self.fraction / (1 - self.fraction))


def fake_counts(terms: Terms, attack: Attack, fakes: int, generator: Any) -> _Counts:
    """What the fake reports add to the counters of a tally."""
    checks.require(max(attack.targets) < len(terms.keys), "positions of the study's keys", targets=attack.targets)
    if terms.sampled:
        return _sampled(terms, attack, fakes, generator)
    if terms.protocol in JOINT:
        return _joint(terms, attack, fakes, generator)
    if terms.subsets:
        return _subsets(terms, attack, fakes, generator)
    return _unary(terms, attack, fakes, generator)


def _sampled(terms: Terms, attack: Attack, fakes: int, generator: Any) -> _Counts:
    """Columns plus, minus, nothing. An assigned key is a target only by chance; elsewhere a fake looks like anybody else."""
    keys, table = len(terms.keys), terms.table
    targets = np.zeros(keys, dtype=bool)
    targets[list(attack.targets)] = True
    aims = terms.index_mode == "chosen" and attack.kind != "rma"
    shares = targets / targets.sum() if aims else np.full(keys, 1 / keys)
    asked = generator.multinomial(fakes, shares)
    if attack.kind == "rma":
        return np.asarray(generator.multinomial(asked, np.array([0.5, 0.0, 0.5]) if terms.valueless else np.full(3, 1 / 3)))
    plus = np.array([1.0, 0.0, 0.0]) if attack.kind == "m2ga" else present_row(table)
    rows = np.where(targets[:, None], plus, absent_row(table))
    return np.asarray(generator.multinomial(asked, rows))


def _unary(terms: Terms, attack: Attack, fakes: int, generator: Any) -> _Counts:
    """Columns plus, minus. Nothing stops a fake from claiming every target at once."""
    keys, table = len(terms.keys), terms.table
    rows = np.tile(absent_row(table), (keys, 1))
    if attack.kind == "rma":
        rows[:] = 1 / 3
    elif attack.kind == "m2ga":
        rows[list(attack.targets)] = (1.0, 0.0, 0.0)
    else:
        held = np.zeros(keys, dtype=np.int64)
        held[list(attack.targets)] = generator.multinomial(fakes, np.full(len(attack.targets), 1 / len(attack.targets)))
        drawn = generator.multinomial(held, present_row(table)) + generator.multinomial(fakes - held, absent_row(table))
        return np.asarray(drawn[:, :2])
    return np.asarray(generator.multinomial(fakes, rows)[:, :2])


def _subsets(terms: Terms, attack: Attack, fakes: int, generator: Any) -> _Counts:
    """Columns plus, minus. A fake can claim as many targets as a report has room for, or hold as many as the padding length."""
    keys, subset = len(terms.keys), terms.subset
    rows = np.tile(absent_row(terms.table), (keys, 1))
    chosen = list(attack.targets)
    if attack.kind == "rma":
        size, width = subset.symbols, subset.width
        # One sign without the other; without signs, the symbol.
        single = width / size if terms.valueless else width * (size - width) / (size * (size - 1))
        rows[:] = single, (terms.signs - 1) * single, 1 - terms.signs * single
    elif attack.kind == "m2ga":
        claimed = min(1.0, subset.width / len(chosen))
        rows[chosen] = claimed, 0.0, 1 - claimed
    else:
        held = min(1.0, terms.padding_length / len(chosen))
        rows[chosen] = held * present_row(terms.table) + (1 - held) * absent_row(terms.table)
    return np.asarray(generator.multinomial(fakes, rows)[:, :2])


def _joint(terms: Terms, attack: Attack, fakes: int, generator: Any) -> _Counts:
    keys, table = len(terms.keys), terms.table
    held = np.zeros((keys, 2), dtype=np.int64)
    held[list(attack.targets), 0] = generator.multinomial(fakes, np.full(len(attack.targets), 1 / len(attack.targets)))
    if attack.kind == "m2ga":
        return held
    if attack.kind == "rma":
        return np.asarray(generator.multinomial(fakes, np.full(2 * keys + 1, 1 / (2 * keys + 1)))[1:].reshape(keys, 2))
    return joint_counts(table, held, 0, generator)


def present_row(table: Table) -> NDArray[np.float64]:
    """The law of a symbol about a picked '+' key: plus, minus, nothing."""
    row = np.array([table.keep, table.opposite, table.size - table.keep - table.opposite], dtype=float)
    return np.asarray(row / row.sum())


def absent_row(table: Table) -> NDArray[np.float64]:
    """The law of a symbol about any other key."""
    row = np.array([table.each, (table.signs - 1) * table.each, table.size - table.signs * table.each], dtype=float)
    return np.asarray(row / row.sum())


def joint_counts(table: Table, picked: _Counts, dummies: int, generator: Any) -> _Counts:
    """Counts of the joint symbols of people who picked those pairs, or dummies.

    The law of a picked pair is a mixture: itself with (keep - each) / M, any of the 2d symbols with each / M, else nothing.
    """
    keys = len(picked)
    kept = generator.binomial(picked, (table.keep - table.each) / table.size)
    anywhere = 2 * keys * table.each
    loose = generator.binomial(picked.sum() - kept.sum(), anywhere / (table.size - table.keep + table.each))
    loose += generator.binomial(dummies, anywhere / table.size)
    return np.asarray(kept + generator.multinomial(loose, np.full(2 * keys, 1 / (2 * keys))).reshape(keys, 2))
