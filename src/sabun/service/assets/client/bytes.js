/** Bytes: hex, numbers, SHA-256 and HMAC without `crypto.subtle`, which is asynchronous and needs a secure context. */

const words = (text) => Int32Array.from(text.match(/.{8}/g), (word) => parseInt(word, 16));
const START = words("6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19");
const K = words(
  "428a2f9871374491b5c0fbcfe9b5dba53956c25b59f111f1923f82a4ab1c5ed5d807aa9812835b01243185be550c7dc3" +
    "72be5d7480deb1fe9bdc06a7c19bf174e49b69c1efbe47860fc19dc6240ca1cc2de92c6f4a7484aa5cb0a9dc76f988da" +
    "983e5152a831c66db00327c8bf597fc7c6e00bf3d5a7914706ca63511429296727b70a852e1b21384d2c6dfc53380d13" +
    "650a7354766a0abb81c2c92e92722c85a2bfe8a1a81a664bc24b8b70c76c51a3d192e819d6990624f40e3585106aa070" +
    "19a4c1161e376c082748774c34b0bcb5391c0cb34ed8aa4a5b9cca4f682e6ff3748f82ee78a5636f84c878148cc70208" +
    "90befffaa4506cebbef9a3f7c67178f2",
);

const turn = (x, n) => (x >>> n) | (x << (32 - n));

/** SHA-256 of bytes. */
export function sha256(content) {
  const blocks = (content.length + 9 + 63) >> 6;
  const padded = new Uint8Array(blocks * 64);
  padded.set(content);
  padded[content.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(content.length) * 8n);
  const state = START.slice();
  const w = new Int32Array(64);
  for (let start = 0; start < padded.length; start += 64) {
    for (let i = 0; i < 16; i += 1) w[i] = view.getInt32(start + 4 * i);
    for (let i = 16; i < 64; i += 1) {
      const s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      const s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let a = state[0];
    let b = state[1];
    let c = state[2];
    let d = state[3];
    let e = state[4];
    let f = state[5];
    let g = state[6];
    let h = state[7];
    for (let i = 0; i < 64; i += 1) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const first = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + first) | 0;
      d = c;
      c = b;
      b = a;
      a = (first + second) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
  const digest = new Uint8Array(32);
  const said = new DataView(digest.buffer);
  for (let i = 0; i < 8; i += 1) said.setUint32(4 * i, state[i]);
  return digest;
}

/** HMAC-SHA-256. */
export function hmac(key, message, hash = sha256) {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? hash(key) : key);
  const inner = hash(joined(block.map((byte) => byte ^ 0x36), message));
  return hash(joined(block.map((byte) => byte ^ 0x5c), inner));
}

/** Several pieces as one. */
export function joined(...pieces) {
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** The bytes of an ASCII text. */
export const ascii = (text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

/** A number below 2^32 as four bytes. */
export const u32 = (number) => Uint8Array.of(number >>> 24, number >>> 16, number >>> 8, number);

/** Bytes as hex. */
export const hex = (content) => Array.from(content, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Hex as bytes; undefined for anything else. */
export function unhex(text) {
  if (typeof text !== "string" || !/^(?:[0-9a-f]{2})*$/.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Whether two pieces hold the same bytes, in a time that does not tell where they differ. */
export function same(first, second) {
  if (first.length !== second.length) return false;
  let differing = 0;
  first.forEach((byte, place) => {
    differing |= byte ^ second[place];
  });
  return differing === 0;
}

/** `size` bytes from `start` on as a BigInt of the lowest `bits` bits. */
export function wordAt(content, start, size, bits) {
  let high = 0;
  let low = 0;
  for (let i = 0; i < size; i += 1) {
    if (i < size - 4) high = high * 256 + content[start + i];
    else low = low * 256 + content[start + i];
  }
  return BigInt.asUintN(bits, (BigInt(high) << 32n) | BigInt(low));
}
