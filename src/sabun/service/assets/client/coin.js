/** Even choices from the operating system's bits. */

import { wordAt } from "./bytes.js";
import { ClientError } from "./refusals.js";

const MOST_AT_ONCE = 65_536; // getRandomValues refuses more

/** Where a device's bits come from; `fill` puts fresh random bytes into an array of at most 65,536. */
export class Coin {
  #fill;
  #pool = new Uint8Array(1024);
  #used = 1024;

  constructor(fill) {
    const system = globalThis.crypto;
    if (fill === undefined && typeof system?.getRandomValues !== "function") {
      throw new ClientError("crypto.getRandomValues must be there; it is not. Load a polyfill of it, or pass `random`.");
    }
    this.#fill = fill ?? ((array) => system.getRandomValues(array));
  }

  /** Fresh random bytes. */
  bytes(size) {
    const fresh = new Uint8Array(size);
    for (let start = 0; start < size; start += MOST_AT_ONCE) this.#fill(fresh.subarray(start, start + MOST_AT_ONCE));
    return fresh;
  }

  /** A few bytes out of a pool, each handed out once. */
  #few(size) {
    if (this.#used + size > this.#pool.length) {
      this.#fill(this.#pool);
      this.#used = 0;
    }
    const start = this.#used;
    this.#used += size;
    const taken = this.#pool.slice(start, this.#used);
    this.#pool.fill(0, start, this.#used);
    return taken;
  }

  /** A BigInt of `bits` fresh bits, at most 64. */
  word(bits) {
    const size = (bits + 7) >> 3;
    return wordAt(this.#few(size), 0, size, bits);
  }

  /** A whole number of 53 fresh bits. */
  sign() {
    return Number(this.word(53));
  }

  /** A whole number below `limit` (at most 2^32), exactly uniform: by rejection, never a remainder alone. */
  below(limit) {
    const fair = Math.floor(2 ** 32 / limit) * limit;
    for (;;) {
      const drawn = Number(this.word(32));
      if (drawn < fair) return drawn % limit;
    }
  }

  /** `count` distinct whole numbers below `limit`, every choice as likely. */
  sample(limit, count) {
    const moved = new Map();
    const drawn = [];
    for (let i = 0; i < count; i += 1) {
      const place = i + this.below(limit - i);
      drawn.push(moved.get(place) ?? place);
      moved.set(place, moved.get(i) ?? i);
    }
    return drawn;
  }
}
