/**
 * The integer tables every protocol draws from, with the epsilon they really have.
 *
 * M = 2^bits, E a rational not above exp(epsilon); whatever is uncertain is rounded towards more noise.
 */

import { add, ceil, compare, expDown, floor, larger, less, logUp, over, smaller, times } from "./exact.js";
import { ClientError } from "./refusals.js";
import { LONGEST, lawOf, subsetFor } from "./subsets.js";

export const SAMPLED = ["kv3", "privkv", "privkv-tight", "privkvm", "rr-f"];
export const JOINT = ["pckv-grr", "pckv-grr+"];
export const SETS = ["set", "set-f"];
export const PER_KEY = ["pckv-ue", ...SETS];
export const PADDED = ["pckv-ue", ...JOINT, ...SETS];
export const VALUELESS = ["rr-f", "set-f"];
/** Every protocol a device knows. */
export const PROTOCOLS = [...SAMPLED, ...PADDED];

const whole = (number) => [BigInt(number), 1n];

/** A rational not above exp(epsilon); beyond what a table can hold anyway, a smaller one. */
export const growthOf = (epsilon) => expDown(smaller(epsilon, whole(100)));

/** The table a protocol draws from (its first round, where it has several); of sets, what its reports say of one key. */
export function tableFor({ protocol, epsilon, keys, padding = 1, rounds = 1, bits = 64 }) {
  const size = 1n << BigInt(bits);
  const growth = growthOf(epsilon);
  const share = (others) => ceil(over([size, 1n], add(growth, whole(others))));
  switch (protocol) {
    case "kv3": {
      const each = share(2);
      return single(bits, size - 2n * each, each, each);
    }
    case "rr-f": {
      const each = share(1);
      return single(bits, size - each, 0n, each, 1);
    }
    case "privkv-tight": {
      const each = share(3);
      return single(bits, size - 3n * each, each, each);
    }
    case "privkv":
    case "privkvm": {
      const half = over(epsilon, whole(2));
      return privkv(bits, growthOf(half), growthOf(over(half, whole(protocol === "privkvm" ? rounds : 1))));
    }
    case "pckv-ue": {
      const keep = kept(size / 2n, growth);
      return single(bits, keep, size / 2n - keep, share(3));
    }
    case "set":
    case "set-f": {
      const subset = subsetsOf({ protocol, epsilon, keys, padding, bits });
      const [keep, opposite, each] = lawOf(subset).map((chance) => seen(chance));
      return single(64, keep, opposite, each, subset.signs);
    }
    default:
      return joint(protocol, bits, growth, BigInt(keys), BigInt(padding));
  }
}

/** How a device of a `set` protocol draws. */
export function subsetsOf({ protocol = "set", epsilon, keys, padding, bits = 64 }) {
  if (padding > LONGEST) {
    throw new ClientError(`padding_length must be at most ${LONGEST} for '${protocol}'; got ${padding}. Name keys_per_user.`);
  }
  return subsetFor({ growth: growthOf(epsilon), keys, padding, bits, signs: VALUELESS.includes(protocol) ? 1 : 2 });
}

/** PrivKVM after its first round: how often, out of 2^bits, a sign is kept or turned. */
export function laterRound({ epsilon, rounds, bits = 64 }) {
  const half = 1n << BigInt(bits - 1);
  const keep = kept(half, growthOf(over(epsilon, whole(2 * rounds))));
  return [keep, half - keep];
}

/** The epsilon of one person's whole participation, from the entries that are drawn from, rounded up. */
export function certifiedEpsilon(facts) {
  const { protocol, epsilon, padding = 1, rounds = 1, bits = 64 } = facts;
  const table = tableFor(facts);
  const worst = SETS.includes(protocol) ? [1n << BigInt(bits), subsetsOf(facts).accept] : worstRatio(protocol, table, padding);
  let [total, holds] = [logUp(worst), compare(worst, growthOf(epsilon)) <= 0];
  if (protocol === "privkvm") {
    total = add(total, times(whole(rounds - 1), logUp(laterRound({ epsilon, rounds, bits }))));
    holds = compare(total, epsilon) <= 0;
  }
  if (!holds) {
    throw new ClientError(`epsilon must be large enough for a table of ${bits} bits; it is not. Choose a larger epsilon.`);
  }
  return smaller([ceil(times(total, whole(10n ** 15n))), 10n ** 15n], epsilon);
}

/** The largest ratio of the probabilities of one report under two people's data. */
function worstRatio(protocol, table, padding) {
  if (JOINT.includes(protocol)) {
    const sign = add([1n, 1n], over(less([table.keep, table.each], [1n, 1n]), whole(padding)));
    return larger(sign, [table.noneAbsent, table.nonePresent]);
  }
  if (table.signs === 1) return larger([table.keep, table.each], [table.noneAbsent, table.nonePresent]);
  const present = [table.keep, table.opposite, table.nonePresent];
  const turned = [table.opposite, table.keep, table.nonePresent];
  const absent = [table.each, table.each, table.noneAbsent];
  if (protocol === "pckv-ue") {
    const likelihoods = present.map((entry, i) => [entry, absent[i]]);
    return over(likelihoods.reduce(larger, [1n, 1n]), likelihoods.reduce(smaller, [1n, 1n]));
  }
  const rows = [present, turned, absent];
  return rows.flatMap((first) => rows.flatMap((second) => first.map((entry, i) => [entry, second[i]]))).reduce(larger);
}

const kept = (size, growth) => floor(over(times([size, 1n], growth), add(growth, [1n, 1n])));

function seen(chance) {
  const entry = floor(times(chance, [1n << 64n, 1n]));
  return chance[0] === 0n || entry > 0n ? entry : 1n;
}

function privkv(bits, keyGrowth, valueGrowth) {
  const size = 1n << BigInt(bits);
  const each = ceil(over([size, 1n], times([2n, 1n], add(keyGrowth, [1n, 1n]))));
  const some = size - 2n * each;
  const keep = kept(some, valueGrowth);
  return single(bits, keep, some - keep, each);
}

function joint(protocol, bits, growth, keys, padding) {
  const size = 1n << BigInt(bits);
  const grr = protocol === "pckv-grr";
  const below = grr
    ? add(times([padding, 1n], less(growth, [1n, 1n])), [2n * (keys + padding), 1n])
    : add(times([padding, 1n], growth), [2n * keys, 1n]);
  const each = ceil(over([size, 1n], below));
  const dummies = grr ? 2n * padding : padding;
  const keep = size - (2n * keys - 1n + dummies) * each;
  return traced({ bits, keep, opposite: each, each, nonePresent: dummies * each, noneAbsent: size - 2n * keys * each, signs: 2 });
}

function single(bits, keep, opposite, each, signs = 2) {
  const size = 1n << BigInt(bits);
  const [nonePresent, noneAbsent] = [size - keep - opposite, size - BigInt(signs) * each];
  return traced({ bits, keep, opposite, each, nonePresent, noneAbsent, signs });
}

/** A table that tells something apart, or a refusal. */
function traced(table) {
  const { bits, keep, opposite, each, signs } = table;
  const shows = keep + opposite > BigInt(signs) * each;
  if (!(keep > opposite && opposite >= BigInt(signs - 1) && keep > each && each >= 1n && shows)) {
    throw new ClientError(
      `epsilon must be large enough to leave a trace in a table of ${bits} bits; it is not. ` +
        "Choose a larger epsilon, fewer keys or more table_bits.",
    );
  }
  return Object.freeze(table);
}
