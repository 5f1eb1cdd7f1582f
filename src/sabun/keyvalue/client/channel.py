"""From a state and a fresh word to a symbol: the only step in which a person's data meets the coin.

Notation: a *state* of a key is 0 (absent), 1 (plus) or 2 (minus); a *word* is a fresh uniform number of `table.bits` bits.
Every function here is pure, so another implementation can be checked against it word by word; proved in channel.proof.md.
"""

from __future__ import annotations

from .tables import Table

__all__ = ["SIGN_BITS", "joint_symbol", "later_symbol", "sign_of", "ternary_symbol", "unary_symbols"]

SIGN_BITS = 53


def sign_of(threshold: int, word: int) -> int:
    """The sign of a value whose place in its range is threshold / 2**SIGN_BITS: 1 (plus) in that share of all words, else 2."""
    return 1 if word < threshold else 2  # proof: sign


def ternary_symbol(table: Table, state: int, word: int) -> int:
    """A symbol about one key: 0 nothing, 1 plus, 2 minus."""
    if state == 0:
        return 1 if word < table.each else 2 if word < 2 * table.each else 0  # proof: absent-row
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
    drawn = [int.from_bytes(words[start : start + size], "big") & mask for start in range(0, keys * size, size)]
    plus, some = table.each, 2 * table.each
    symbols = [1 if word < plus else 2 if word < some else 0 for word in drawn]  # proof: each-key
    if picked is not None:
        symbols[picked[0]] = ternary_symbol(table, picked[1], drawn[picked[0]])
    return tuple(symbols)
