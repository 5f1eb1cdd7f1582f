"""From a state and a fresh word to a symbol: the only step in which a person's data meets the coin.

Notation: a *state* of a key is 0 (absent), 1 (plus) or 2 (minus); a *word* is a fresh uniform number of `table.bits` bits.
Every function here is pure, so another implementation can be checked against it word by word; proved in channel.proof.md.
"""

from __future__ import annotations

from functools import lru_cache

from .probabilities import Table

__all__ = ["SIGN_BITS", "joint_symbol", "later_symbol", "sign_of", "ternary_symbol", "unary_symbols"]

SIGN_BITS = 53
_READ_ON = 3


def sign_of(threshold: int, word: int) -> int:
    """The sign of a value whose place in its range is threshold / 2**SIGN_BITS: 1 (plus) in that share of all words, else 2."""
    return 1 if word < threshold else 2  # proof: sign


def ternary_symbol(table: Table, state: int, word: int) -> int:
    """A symbol about one key: 0 nothing, 1 plus, 2 minus; where no values are asked, 1 is yes and 2 is never said."""
    if state == 0:
        return 1 if word < table.each else 2 if word < table.signs * table.each else 0  # proof: absent-row
    if word < table.keep:
        return state  # proof: present-row
    return 3 - state if word < table.keep + table.opposite else 0


def later_symbol(keep: int, opposite: int, state: int, word: int) -> int:
    """A symbol of PrivKVM after its first round; an absent key comes with the sign of the last published mean."""
    if word < keep:
        return state
    return 3 - state if word < keep + opposite else 0  # proof: half-silent


def joint_symbol(table: Table, keys: int, picked: tuple[int, int] | None, word: int) -> int:
    """One symbol over all keys: 0 nothing, 1 + 2k plus, 2 + 2k minus; `picked` is (key, state) or None for a dummy."""
    if picked is None:
        return 0 if word < table.none_absent else 1 + (word - table.none_absent) // table.each  # proof: dummy-row
    own = picked[0] * 2 + picked[1]
    if word < table.keep:
        return own
    if word < table.keep + table.none_present:
        return 0
    other = 1 + (word - table.keep - table.none_present) // table.each  # proof: other-symbols
    return other if other < own else other + 1


def unary_symbols(table: Table, keys: int, picked: tuple[int, int] | None, words: bytes) -> tuple[int, ...]:
    """One symbol per key; `words` holds table.bits / 8 rounded up bytes per key, of which the lowest bits count."""
    size, mask = -(-table.bits // 8), table.size - 1

    def word(key: int) -> int:
        return int.from_bytes(words[key * size : (key + 1) * size], "big") & mask

    # Ninety-nine words of a hundred show their symbol by the first byte: all keys are looked up in one step, few are read on.
    symbols = bytearray(words[: keys * size : size].translate(_by_first_byte(table)))  # proof: first-byte
    unclear = symbols.find(_READ_ON)
    while unclear >= 0:
        symbols[unclear] = ternary_symbol(table, 0, word(unclear))  # proof: each-key
        unclear = symbols.find(_READ_ON, unclear)
    if picked is not None:
        symbols[picked[0]] = ternary_symbol(table, picked[1], word(picked[0]))
    return tuple(symbols)


@lru_cache(maxsize=64)
def _by_first_byte(table: Table) -> bytes:
    """What an absent key says, by the first byte of its word; `_READ_ON` where a border of the table falls within the byte."""
    rest = (1 << 8 * (-(-table.bits // 8) - 1)) - 1
    least = [byte * (rest + 1) & (table.size - 1) for byte in range(256)]
    ends = [(ternary_symbol(table, 0, word), ternary_symbol(table, 0, word | rest)) for word in least]
    return bytes(first if first == last else _READ_ON for first, last in ends)
