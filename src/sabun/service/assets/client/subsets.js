/**
 * The `set` protocols: a report is a random subset of all signed keys, likelier when it meets what the person holds.
 *
 * d keys, l = padding length, D = signs·d + l symbols; S the l symbols a person holds, padded with dummies or cut; w the width.
 */

import { ceil, compare, less, over, times, add } from "./exact.js";

/** The largest padding length: the width is found in rationals, whose length grows with it. */
export const LONGEST = 256;

/** The subsets of a study; `growth` is a rational not above exp(epsilon). */
export function subsetFor({ growth, keys, padding, bits, signs }) {
  const accept = ceil(over([1n << BigInt(bits), 1n], growth));
  const of = (width) => ({ keys, padding, bits, accept, width, signs, symbols: signs * keys + padding });
  let [low, high] = [1, keys];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(noise(of(middle)), noise(of(middle + 1))) <= 0) high = middle;
    else low = middle + 1;
  }
  return of(low);
}

/** What a report says of one key: the held sign alone, the other alone, and one given sign of a key not held. */
export function lawOf({ padding, bits, accept, width, signs, symbols }) {
  const [size, drawn, held] = [BigInt(symbols), BigInt(width), BigInt(padding)];
  const rest = [(1n << BigInt(bits)) - accept, 1n << BigInt(bits)];
  const but = (chance) => less([1n, 1n], times(chance, rest));
  const all = but(misses(held, size - drawn, size));
  if (signs === 1) {
    const share = over([drawn, size], all);
    return [share, [0n, 1n], times(share, but(misses(held, size - drawn, size - 1n)))];
  }
  const other = misses(held - 1n, size - 1n - drawn, size - 2n);
  const absent = times(other, [size - drawn - held, size - 1n - held]);
  const scale = over([drawn * (size - drawn), size * (size - 1n)], all);
  return [scale, times(scale, but(other)), times(scale, but(absent))];
}

/** S: plus of key k is 2k, minus 2k + 1 (k itself without signs); dummies fill it up. At most `padding` pairs are given. */
export function symbolsOf(subset, held) {
  const first = subset.signs * subset.keys;
  const own = held.map(([key, state]) => subset.signs * key + state - 1);
  for (let dummy = first; own.length < subset.padding; dummy += 1) own.push(dummy);
  return new Set(own);
}

/** Whether a drawn subset is the report; `word` is fresh and uniform below 2^bits. */
export const isKept = (subset, own, drawn, word) => drawn.some((symbol) => own.has(symbol)) || word < subset.accept;

/** What a subset says of each key: 1 plus, 2 minus, 0 nothing or both. */
export function drawnSymbols(subset, drawn) {
  const found = new Uint8Array(subset.keys);
  for (const symbol of drawn) {
    if (symbol < subset.signs * subset.keys) found[Math.floor(symbol / subset.signs)] += 1 + (symbol % subset.signs);
  }
  return found.map((said) => said % 3);
}

/** The chance that `held` given symbols of `all` lie among the `rest` that were not drawn. */
function misses(held, rest, all) {
  let [top, bottom] = [1n, 1n];
  for (let i = 0n; i < held; i += 1n) {
    top *= rest > i ? rest - i : 0n;
    bottom *= all - i;
  }
  return [top, bottom];
}

/** n times the variances of frequency and, with signs, of frequency times mean, of a key that nobody holds; together. */
function noise(subset) {
  const [keep, opposite, each] = lawOf(subset);
  const said = times([BigInt(subset.signs), 1n], each);
  const gap = less(add(keep, opposite), said);
  if (gap[0] <= 0n) return [10n ** 30n, 1n];
  const frequency = over(times(said, less([1n, 1n], said)), times(gap, gap));
  const apart = less(keep, opposite);
  return subset.signs === 1 ? frequency : add(frequency, over(said, times(apart, apart)));
}
