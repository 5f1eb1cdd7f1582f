"""Every possible report of every possible person, counted out: what a small study really promises.

Values are taken at the two ends of their range: a report's probability is affine in each value, so nothing between is worse.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

from sabun.errors import ParameterError
from sabun.keyvalue.client.probabilities import JOINT, later_round
from sabun.keyvalue.client.terms import Terms

__all__ = ["enumerated_ratio", "privkv_epsilon", "report_law"]

_MOST_KEYS = 5
_States = tuple[int, ...]


def enumerated_ratio(terms: Terms) -> Fraction:
    """The largest ratio of one report's probabilities under any two people's data, exactly.

    Raises:
        ParameterError: The study has too many keys to count everything out.

    Example:
        >>> terms = Terms(keys=("a", "b"), epsilon=Fraction(2), protocol="kv3")
        >>> float(enumerated_ratio(terms)) <= math.exp(2)
        True
    """
    if len(terms.keys) > _MOST_KEYS:
        raise ParameterError(f"keys must be at most {_MOST_KEYS} to count everything out; got {len(terms.keys)}.")
    known = range(terms.signs + 1)
    laws = [report_law(terms, states) for states in itertools.product(known, repeat=len(terms.keys))]
    ratio = max(max(law[z] for law in laws) / min(law[z] for law in laws) for z in range(len(laws[0])))
    if terms.protocol == "privkvm":
        keep, turned = later_round(epsilon=terms.epsilon, rounds=terms.rounds, bits=terms.table_bits)
        # The worst people differ in the sign in every later round, whatever mean is published in between.
        ratio *= Fraction(keep, turned) ** (terms.rounds - 1)
    return ratio


def report_law(terms: Terms, states: _States) -> list[Fraction]:
    """The probabilities of all (first) reports of a person whose keys have those states: 0 absent, 1 plus, 2 minus."""
    if terms.sampled:
        # The asked key does not depend on the data; each (key, symbol) is one report.
        share = Fraction(1, len(states))
        return [share * entry for state in states for entry in _row(terms, state)]
    if terms.subsets:
        return _set_law(terms, states)
    law = _joint_law if terms.protocol in JOINT else _unary_law
    picks = _picks(states, terms.padding_length)
    laws = [(weight, law(terms, pick)) for weight, pick in picks]
    return [sum((weight * one[z] for weight, one in laws), Fraction(0)) for z in range(len(laws[0][1]))]


def _set_law(terms: Terms, states: _States) -> list[Fraction]:
    """Every subset counted out, for every way to cut what is held; each report in the order of the product of its symbols."""
    subset, keys, ell = terms.subset, len(states), terms.padding_length
    signs = terms.signs
    own = [signs * key + min(state, signs) - 1 for key, state in enumerate(states) if state]
    dummies = range(signs * keys, signs * keys + ell)
    held = [{*cut, *dummies[: ell - len(cut)]} for cut in itertools.combinations(own, min(ell, len(own)))]
    miss = Fraction(subset.accept, 1 << terms.table_bits)
    law = dict.fromkeys(itertools.product((0, 1, 2), repeat=keys), Fraction(0))
    whole = Fraction(0)
    for drawn in itertools.combinations(range(signs * keys + ell), subset.width):
        weight = sum((Fraction(1) if one & set(drawn) else miss for one in held), Fraction(0))
        said = [(signs * key in drawn, signs == 2 and 2 * key + 1 in drawn) for key in range(keys)]
        law[tuple(0 if plus == minus else 1 if plus else 2 for plus, minus in said)] += weight
        whole += weight
    return [share / whole for share in law.values() if share]


def privkv_epsilon(key_epsilon: float, value_epsilon: float) -> float:
    """What PrivKV with budgets (e1, e2) really costs: max{e2, e1 + ln(2/(1+e^-e2)), -e1 + ln((1+e^e2)/2)}.

    Example:
        >>> round(privkv_epsilon(1.0, 1.0), 4)
        1.3799
    """
    shown = key_epsilon + math.log(2 / (1 + math.exp(-value_epsilon)))
    hidden = -key_epsilon + math.log((1 + math.exp(value_epsilon)) / 2)
    return max(value_epsilon, shown, hidden)


def _row(terms: Terms, state: int) -> tuple[Fraction, ...]:
    """The law of the symbols 0, 1, 2 about one key; of 0 and 1 where no values are asked."""
    table = terms.table
    if terms.valueless:
        yes = table.keep if state else table.each
        return Fraction(table.size - yes, table.size), Fraction(yes, table.size)
    some = (table.each, table.each) if state == 0 else (table.keep, table.opposite)
    plus, minus = reversed(some) if state == 2 else some
    return tuple(Fraction(x, table.size) for x in (table.size - plus - minus, plus, minus))


def _picks(states: _States, padding: int) -> Iterator[tuple[Fraction, tuple[int, int] | None]]:
    own = [(key, state) for key, state in enumerate(states) if state]
    places = max(len(own), padding)
    yield from ((Fraction(1, places), pair) for pair in own)
    if places > len(own):
        yield Fraction(places - len(own), places), None


def _joint_law(terms: Terms, pick: tuple[int, int] | None) -> list[Fraction]:
    table, symbols = terms.table, 2 * len(terms.keys) + 1
    entries = [table.none_absent if pick is None else table.none_present] + [table.each] * (symbols - 1)
    if pick is not None:
        entries[2 * pick[0] + pick[1]] = table.keep
    return [Fraction(entry, table.size) for entry in entries]


def _unary_law(terms: Terms, pick: tuple[int, int] | None) -> list[Fraction]:
    rows = [_row(terms, pick[1] if pick is not None and pick[0] == key else 0) for key in range(len(terms.keys))]
    return [math.prod(choice, start=Fraction(1)) for choice in itertools.product(*rows)]
