from __future__ import annotations

import math
import secrets
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from sabun.keyvalue.client import Client, Table, Terms, table_for
from sabun.keyvalue.client.channel import joint_symbol, later_symbol, ternary_symbol, unary_symbols
from sabun.keyvalue.client.device import _pick
from sabun.keyvalue.client.probabilities import later_round

BITS = 12


def all_words(table: Table) -> range:
    return range(table.size)


@pytest.mark.parametrize("state", [0, 1, 2])
@pytest.mark.parametrize("protocol", ["kv3", "privkv", "privkv-tight"])
def test_all_words_together_give_exactly_the_table(protocol: str, state: int) -> None:
    table = table_for(protocol=protocol, epsilon=Fraction(2), keys=1, bits=BITS)
    found = Counter(ternary_symbol(table, state, word) for word in all_words(table))
    some = {1: table.each, 2: table.each} if state == 0 else {state: table.keep, 3 - state: table.opposite}
    assert found == {**some, 0: table.size - sum(some.values())}


def test_a_million_fresh_words_follow_the_table() -> None:
    table = table_for(protocol="kv3", epsilon=Fraction(1), keys=1)
    words = np.frombuffer(secrets.token_bytes(8 * 10**6), dtype="<u8")
    found = Counter({1: int((words < table.keep).sum()), 2: 0})
    found[2] = int((words < table.keep + table.opposite).sum()) - found[1]
    found[0] = len(words) - found[1] - found[2]
    law = {1: table.keep / table.size, 2: table.opposite / table.size, 0: table.none_present / table.size}
    assert chi_square(found, law) < 27.7  # 2 degrees of freedom: 1e-6
    edges = [0, table.keep - 1, table.keep, table.keep + table.opposite - 1, table.keep + table.opposite, table.size - 1]
    assert [ternary_symbol(table, 1, word) for word in edges] == [1, 1, 2, 2, 0, 0]


@pytest.mark.parametrize("picked", [None, (0, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("protocol", ["pckv-grr", "pckv-grr+"])
def test_all_words_together_give_exactly_the_joint_table(protocol: str, picked: tuple[int, int] | None) -> None:
    table = table_for(protocol=protocol, epsilon=Fraction(2), keys=3, padding=2, bits=BITS)
    found = Counter(joint_symbol(table, 3, picked, word) for word in all_words(table))
    expected = dict.fromkeys(range(1, 7), table.each) | {0: table.none_absent}
    if picked is not None:
        expected |= {0: table.none_present, 2 * picked[0] + picked[1]: table.keep}
    assert found == expected


def test_unary_symbols_use_their_own_words() -> None:
    table = table_for(protocol="pckv-ue", epsilon=Fraction(2), keys=3, bits=16)
    words = b"".join(word.to_bytes(2, "big") for word in (0, table.keep, 65535))
    assert unary_symbols(table, 3, (1, 1), words) == (1, 2, 0)
    assert unary_symbols(table, 3, None, words) == (1, ternary_symbol(table, 0, table.keep), 0)


@pytest.mark.parametrize("bits", [16, 20, 33, 64])
def test_unary_symbols_are_those_of_the_words_one_by_one(bits: int) -> None:
    """They are looked up by the first byte: every byte, both sides of every border, and bits above the table's are tried."""
    table, size = table_for(protocol="pckv-ue", epsilon=Fraction(1), keys=3, bits=bits), -(-bits // 8)
    borders = (table.each, 2 * table.each, table.keep, table.keep + table.opposite)
    words = [border + step for border in borders for step in (-1, 0)] + [0, table.size - 1]
    words += [int.from_bytes(bytes([byte]) + secrets.token_bytes(size - 1), "big") for byte in range(256)]
    words += [(1 << 8 * size) - 1, *(table.size + border for border in borders if bits % 8)]
    content, mask = b"".join(word.to_bytes(size, "big") for word in words), table.size - 1
    expected = [ternary_symbol(table, 0, word & mask) for word in words]
    assert unary_symbols(table, len(words), None, content) == tuple(expected)
    for place, state in ((4, 1), (5, 2), (len(words) - 1, 2)):
        own = ternary_symbol(table, state, words[place] & mask)
        assert unary_symbols(table, len(words), (place, state), content) == (*expected[:place], own, *expected[place + 1 :])


def test_later_rounds_of_privkvm_are_silent_half_of_the_time() -> None:
    keep, opposite = later_round(epsilon=Fraction(2), rounds=3, bits=BITS)
    found = Counter(later_symbol(keep, opposite, 2, word) for word in range(1 << BITS))
    assert found == {2: keep, 1: opposite, 0: 1 << (BITS - 1)}


def test_picking_is_uniform_over_own_pairs_and_dummies() -> None:
    found = Counter(tuple(_pick({3: 1, 5: 2}, 4)) for _ in range(20_000))
    assert set(found) == {((3, 1),), ((5, 2),), ()}
    # 6.5 standard deviations
    assert abs(found[((3, 1),)] - 5000) < 400
    assert abs(found[()] - 10_000) < 460
    assert _pick({}, 1) == []


@pytest.mark.parametrize("value", [-1.0, -0.25, 1.0])
def test_the_device_draws_from_its_table(value: float) -> None:
    """The whole client against the law: a wrong table (30 % more truth) is rejected, the right one is not."""
    terms = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3", rounds=12_000, answers="fresh")
    client = Client(terms)
    found = Counter(client.report({"a": value}, round=number)[-1] for number in range(12_000))
    table, plus = terms.table, (1 + value) / 2
    law = {
        1: plus * table.keep / table.size + (1 - plus) * table.opposite / table.size,
        2: (1 - plus) * table.keep / table.size + plus * table.opposite / table.size,
        0: table.none_present / table.size,
    }
    assert chi_square(found, law) < 30  # 2 degrees of freedom: 3e-7
    silent = law | {0: law[0] * 1.3}
    scale = sum(silent.values())
    assert chi_square(found, {symbol: share / scale for symbol, share in silent.items()}) > 30


def chi_square(found: Counter[int], law: dict[int, float]) -> float:
    total = sum(found.values())
    assert math.isclose(sum(law.values()), 1)
    return sum((found[symbol] - total * share) ** 2 / (total * share) for symbol, share in law.items())
