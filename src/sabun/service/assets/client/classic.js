/** The two classics the key-value protocols are made of: randomized response for words, Harmony for numbers. */

import { signOf } from "./channel.js";
import { Coin } from "./coin.js";
import { add, ceil, exact, floor, over, ratioOf, times } from "./exact.js";
import { growthOf } from "./probabilities.js";
import { ClientError, require } from "./refusals.js";

const SIZE = 1n << 64n;

/** Randomized response over d categories: the truth with probability E/(E+d-1), any other with 1/(E+d-1) each. */
export class RandomizedResponse {
  #coin;

  constructor({ categories, epsilon, random }) {
    const words = Array.isArray(categories) && categories.every((word) => typeof word === "string");
    const distinct = words && categories.length >= 2 && new Set(categories).size === categories.length;
    require(distinct, "categories", "at least two distinct words", categories);
    this.categories = Object.freeze([...categories]);
    this.epsilon = positive(epsilon);
    const others = BigInt(categories.length - 1);
    /** How often, out of 2^64, one given other category is answered. */
    this.each = ceil(over([SIZE, 1n], add(growthOf(this.epsilon), [others, 1n])));
    /** How often, out of 2^64, the truth is answered. */
    this.keep = SIZE - others * this.each;
    require(this.keep > this.each, "epsilon", "large enough to leave a trace", epsilon);
    this.#coin = new Coin(random);
  }

  /** The position of the category to send. */
  answer(category) {
    const own = this.categories.indexOf(category);
    if (own < 0) throw new ClientError("category must be one of the public list; it is not.");
    return this.answerOf(own, this.#coin.word(64));
  }

  /** The answer a fresh word gives; pure. */
  answerOf(own, word) {
    if (word < this.keep) return own;
    const other = Number((word - this.keep) / this.each);
    return other < own ? other : other + 1;
  }
}

/** Harmony: a number in [-1, 1] becomes a sign, the sign is answered by randomized response. */
export class Harmony {
  #coin;

  constructor({ epsilon, random }) {
    this.epsilon = positive(epsilon);
    const growth = growthOf(this.epsilon);
    /** How often, out of 2^64, the sign is kept. */
    this.keep = floor(over(times([SIZE, 1n], growth), add(growth, [1n, 1n])));
    require(this.keep < SIZE && this.keep > SIZE / 2n, "epsilon", "large enough to leave a trace", epsilon);
    this.#coin = new Coin(random);
  }

  /** 1 for plus, 2 for minus; a value that is no number in [-1, 1] is answered as 0, for silence would be an answer. */
  answer(value) {
    const inside = typeof value === "number" && value >= -1 && value <= 1 ? value : 0;
    const threshold = Number(floor(times(add(ratioOf(inside), [1n, 1n]), [1n << 52n, 1n])));
    return this.answerOf(signOf(threshold, this.#coin.sign()), this.#coin.word(64));
  }

  /** The answer a fresh word gives; pure. */
  answerOf(sign, word) {
    return word < this.keep ? sign : 3 - sign;
  }
}

function positive(epsilon) {
  const number = exact(String(epsilon));
  require(number !== undefined && number[0] > 0n, "epsilon", "finite and > 0", epsilon);
  return number;
}
