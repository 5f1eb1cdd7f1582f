/**
 * Exact numbers: rationals of BigInts, exponentials and logarithms with a known side, doubles as the ratios they are.
 *
 * A rational is `[n, d]` with d > 0, not always in lowest terms.
 */

const FRACTION = 512n; // bits after the point: far more than the 60 digits the integers of a table hang on
const ONE = 1n << FRACTION;
const MOST_BITS = 13_000;
const LONGEST = 4000;

const bitLength = (n) => (n === 0n ? 0 : n.toString(16).length * 4 - Math.clz32(parseInt(n.toString(16)[0], 16)) + 28);
const gcd = (a, b) => {
  while (b) [a, b] = [b, a % b];
  return a;
};
const abs = (n) => (n < 0n ? -n : n);

/** n / d in lowest terms, d > 0. */
export function ratio(n, d = 1n) {
  const common = gcd(abs(n), abs(d)) * (d < 0n ? -1n : 1n);
  return [n / common, d / common];
}

export const add = ([a, b], [c, d]) => [a * d + c * b, b * d];
export const less = ([a, b], [c, d]) => [a * d - c * b, b * d];
export const times = ([a, b], [c, d]) => [a * c, b * d];
export const over = ([a, b], [c, d]) => (c < 0n ? [-a * d, -b * c] : [a * d, b * c]);
export const compare = ([a, b], [c, d]) => (a * d < c * b ? -1 : a * d > c * b ? 1 : 0);
export const smaller = (p, q) => (compare(p, q) <= 0 ? p : q);
export const larger = (p, q) => (compare(p, q) >= 0 ? p : q);

/** The largest whole number not above n / d. */
export function floor([n, d]) {
  const whole = n / d;
  return n % d < 0n ? whole - 1n : whole;
}

export const ceil = ([n, d]) => -floor([-n, d]);

/** Reads a decimal (`-1.25`, `3e-4`) or a ratio (`1/3`); undefined for anything else, or a number of absurd length. */
export function exact(text) {
  if (text.length > LONGEST) return undefined;
  const fraction = /^([-+]?\d+)\/(\d+)$/.exec(text);
  if (fraction) {
    const under = BigInt(fraction[2]);
    return under === 0n ? undefined : short(ratio(BigInt(fraction[1]), under));
  }
  const decimal = /^([-+]?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d{1,5}))?$/.exec(text);
  if (!decimal || Math.abs(Number(decimal[4] ?? 0)) > 1000) return undefined;
  const digits = BigInt(decimal[2] + (decimal[3] ?? ""));
  const places = (decimal[3] ?? "").length - Number(decimal[4] ?? 0);
  const signed = decimal[1] === "-" ? -digits : digits;
  return short(places >= 0 ? ratio(signed, 10n ** BigInt(places)) : [signed * 10n ** BigInt(-places), 1n]);
}

const short = (number) => (Math.max(bitLength(abs(number[0])), bitLength(number[1])) > MOST_BITS ? undefined : number);

/** A rational as a plain decimal where it is one of at most 40 places, otherwise as a ratio; `exact` reads it back. */
export function decimalText(number) {
  const [n, d] = ratio(...number);
  for (let places = 0, scale = 1n; places <= 40; places += 1, scale *= 10n) {
    if ((n * scale) % d !== 0n) continue;
    const digits = abs((n * scale) / d).toString().padStart(places + 1, "0");
    const whole = places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`;
    return (n < 0n ? "-" : "") + whole;
  }
  return `${n}/${d}`;
}

/** A rational not above exp(value), for value >= 0: every step is cut off. */
export function expDown([n, d]) {
  const halvings = 16n;
  const small = (n << FRACTION) / d >> halvings;
  let sum = 0n;
  for (let term = ONE, i = 1n; term > 0n; i += 1n) {
    sum += term;
    term = (term * small >> FRACTION) / i;
  }
  for (let i = 0n; i < halvings; i += 1n) sum = sum * sum >> FRACTION;
  return [sum, ONE];
}

/** A rational not below ln(value), for value > 0. */
export function logUp([n, d]) {
  const power = BigInt(bitLength(n) - bitLength(d));
  const [x, y] = power >= 0n ? [n, d << power] : [n << -power, d];
  const total = power * twiceArtanh(1n, 3n) + twiceArtanh(x - y, x + y); // ln 2 = 2 artanh(1/3)
  return [total + (ONE >> 448n), ONE]; // what was cut off is far less
}

function twiceArtanh(n, d) {
  const z = (n << FRACTION) / d;
  const square = z * z >> FRACTION;
  let sum = 0n;
  for (let power = z, i = 1n; power !== 0n && power !== -1n; i += 2n) {
    sum += power / i;
    power = power * square >> FRACTION;
  }
  return 2n * sum;
}

/** The double nearest to a rational, ties to even. */
export function nearestDouble([n, d]) {
  if (n === 0n) return 0;
  const size = abs(n);
  const shift = 55 - (bitLength(size) - bitLength(d));
  const [top, bottom] = shift >= 0 ? [size << BigInt(shift), d] : [size, d << BigInt(-shift)];
  const quotient = top / bottom;
  // At most 53 bits stay, fewer where the last of them would stand below 2^-1074; whatever is cut makes a half more than one.
  const cut = BigInt(Math.max(bitLength(quotient) - 53, shift - 1074));
  const half = 1n << (cut - 1n);
  const rest = quotient & ((1n << cut) - 1n);
  let kept = quotient >> cut;
  if (rest > half || (rest === half && (top % bottom !== 0n || kept & 1n))) kept += 1n;
  const double = Number(kept) * 2 ** (Number(cut) - shift);
  return n < 0n ? -double : double;
}

/** A finite double as the ratio it is. */
export function ratioOf(double) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, double);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & ((1n << 52n) - 1n);
  const digits = exponent === 0 ? fraction : fraction | (1n << 52n);
  const power = Math.max(exponent, 1) - 1075;
  const signed = bits >> 63n ? -digits : digits;
  return power >= 0 ? [signed << BigInt(power), 1n] : [signed, 1n << BigInt(-power)];
}
