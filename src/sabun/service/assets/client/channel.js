/**
 * From a state and a fresh word to a symbol: the only step in which a person's data meets the coin.
 *
 * A state of a key is 0 (absent), 1 (plus) or 2 (minus); a word is a BigInt of `table.bits` fresh bits. All pure.
 */

import { wordAt } from "./bytes.js";

export const SIGN_BITS = 53;

/** The sign of a value whose place in its range is threshold / 2^53. */
export const signOf = (threshold, word) => (word < threshold ? 1 : 2);

/** A symbol about one key: 0 nothing, 1 plus, 2 minus; where no values are asked, 1 is yes and 2 is never said. */
export function ternarySymbol(table, state, word) {
  if (state === 0) return word < table.each ? 1 : word < BigInt(table.signs) * table.each ? 2 : 0;
  if (word < table.keep) return state;
  return word < table.keep + table.opposite ? 3 - state : 0;
}

/** A symbol of PrivKVM after its first round. */
export function laterSymbol([keep, opposite], state, word) {
  if (word < keep) return state;
  return word < keep + opposite ? 3 - state : 0;
}

/** One symbol over all keys: 0 nothing, 1 + 2k plus, 2 + 2k minus; `picked` is [key, state] or null for a dummy. */
export function jointSymbol(table, picked, word) {
  if (picked === null) return word < table.noneAbsent ? 0 : 1 + Number((word - table.noneAbsent) / table.each);
  const own = picked[0] * 2 + picked[1];
  if (word < table.keep) return own;
  if (word < table.keep + table.nonePresent) return 0;
  const other = 1 + Number((word - table.keep - table.nonePresent) / table.each);
  return other < own ? other : other + 1;
}

/** One symbol per key; `words` holds table.bits / 8 rounded up bytes per key, of which the lowest bits count. */
export function unarySymbols(table, keys, picked, words) {
  const size = (table.bits + 7) >> 3;
  const symbols = new Uint8Array(keys);
  for (let key = 0; key < keys; key += 1) {
    const state = picked !== null && picked[0] === key ? picked[1] : 0;
    symbols[key] = ternarySymbol(table, state, wordAt(words, key * size, size, table.bits));
  }
  return symbols;
}
