/** The device: a person's pairs go in, bytes come out, nothing else leaves. */

import { assignedIndex, checkSeed, reportId } from "./assignment.js";
import { ascii, hex, hmac, joined, sha256, u32, unhex } from "./bytes.js";
import { jointSymbol, laterSymbol, signOf, ternarySymbol, unarySymbols } from "./channel.js";
import { Coin } from "./coin.js";
import { Diary, pageOf } from "./diary.js";
import { add, compare, decimalText, exact, less, nearestDouble, ratioOf } from "./exact.js";
import { BudgetRefused, ClientError, DiaryError, StudyRefused, require } from "./refusals.js";
import { drawnSymbols, isKept, symbolsOf } from "./subsets.js";
import { Terms } from "./terms.js";
import { header, payload } from "./wire.js";

const WHOLE = 2 ** 53;
const STATIC = "static";
const NUMBER = /^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$/;
const NO = ["", "0", "0.0", "no", "false", "nan"];

/**
 * One person's device in one study.
 *
 * One report is `terms.certified`-LDP for everything the person holds. Asking again in the same round gives the identical bytes;
 * answers are remembered (`static`: the first for ever), and each round is booked in the diary before anything is drawn.
 */
export class Client {
  #diary;
  #coin;
  #hash;
  #limit;
  #static;
  #threshold;
  #place;
  #credential;
  #identity;

  /**
   * Opens a device.
   *
   * @throws {ClientError} An argument breaks its rule, the study asks for more than `maxEpsilon`, or the diary cannot be used.
   */
  static async open(terms, options = {}) {
    const client = new Client(terms, options);
    await client.#enrol(options);
    return client;
  }

  /** Use `Client.open`. */
  constructor(terms, options) {
    const { credential, seed = new Uint8Array(0), diary, maxEpsilon, random, hash = sha256 } = options;
    const { static: forever = false, clip = false } = options;
    require(terms instanceof Terms, "terms", "the Terms of a study", typeof terms);
    const long = credential === undefined || (credential instanceof Uint8Array && credential.length >= 16);
    require(long, "credential", "left out or at least 16 bytes", typeof credential);
    require(typeof forever === "boolean", "static", "true or false", forever);
    require(typeof clip === "boolean", "clip", "true or false", clip);
    require(!forever || terms.answers === "memoised", "static", "false where answers are fresh", forever);
    checkSeed(terms, seed, hash);
    const kept = diary !== undefined || (credential === undefined && maxEpsilon === undefined);
    require(kept, "diary", "given with credential or maxEpsilon", diary, "Pass one, or Diary.inMemory() if that is meant.");
    require(diary === undefined || diary instanceof Diary, "diary", "a Diary", typeof diary);
    this.terms = terms;
    this.#limit = limitOf(terms, maxEpsilon);
    this.#static = forever && terms.protocol !== "privkvm";
    const scale = scaleOf(terms.range);
    this.#threshold = (value) => placeIn(scale, value, clip);
    this.#coin = new Coin(random);
    this.#hash = hash;
    this.#diary = diary ?? Diary.inMemory({ random });
  }

  /** The key this device is asked about; null where the protocol picks one of the person's own. */
  get index() {
    return this.#place;
  }

  /** The device's book. */
  get diary() {
    return this.#diary;
  }

  /**
   * The bytes to send; booked and durable before they are handed over, and waiting for an `Uploader` from then on.
   *
   * `pairs` is a Map or an object from key to value; its contents never throw an error and are read before the diary is opened.
   *
   * @throws {ClientError} A rule is broken that has nothing to do with what the person holds.
   */
  async report(pairs, { round = 0, means, today } = {}) {
    const { terms } = this;
    require(typeof pairs === "object" && pairs !== null, "pairs", "a Map or an object from key to value", typeof pairs);
    const good = Number.isSafeInteger(round) && round >= 0 && round < terms.rounds;
    require(good, "round", `a whole number below ${terms.rounds}`, round);
    mustBeOpen(terms, today);
    const held = this.#thresholds(pairs);
    const published = this.#published(round, means);
    return this.#diary.change((book) => {
      const page = this.#page(book);
      if (page.sent[round] !== undefined) return bytesOf(page.sent[round]);
      this.#charge(book, page, round);
      const answer = this.#answer(bytesOf(book.secret), page, held, published);
      const report = joined(header(terms, round, this.#identity), answer);
      page.sent[round] = hex(report);
      page.waiting.push(round);
      return report;
    });
  }

  /** What `report` would silently leave out, in words for the developer; never to be sent anywhere. */
  check(pairs) {
    return [...entriesOf(pairs)].flatMap(([key, read]) => {
      if (this.terms.placeOf(key) === undefined) return [`key ${JSON.stringify(key)} is not in the study`];
      if (this.terms.valueless || this.#threshold(read()) !== null) return [];
      return [`the value of ${JSON.stringify(key)} is not a number in the study's range`];
    });
  }

  async #enrol({ credential, seed }) {
    const { terms } = this;
    const chosen = terms.sampled && terms.indexMode === "chosen";
    const [own, place] = await this.#diary.change((book) => {
      const page = pageOf(book, terms.taskId);
      if (page.credential !== null && credential !== undefined && page.credential !== hex(credential)) {
        throw new ClientError("credential must be the one this diary enrolled with; got another.");
      }
      page.credential ??= hex(credential ?? this.#coin.bytes(16));
      if (chosen) page.place ??= this.#coin.below(terms.keys.length);
      return [bytesOf(page.credential), page.place];
    });
    this.#credential = hex(own);
    this.#identity = reportId(terms, own, this.#hash);
    const assigned = terms.sampled && !chosen;
    this.#place = assigned ? assignedIndex(terms, this.#identity, seed, this.#hash) : place;
  }

  /** This study's page; a book that has forgotten it is another book, and would answer and pay anew. */
  #page(book) {
    const page = pageOf(book, this.terms.taskId);
    if (page.credential !== this.#credential) {
      throw new DiaryError("the diary must hold this study's enrolment; it was emptied meanwhile. Nothing was sent.");
    }
    return page;
  }

  #charge(book, page, round) {
    const frozen = this.#static && page.memory[STATIC] !== undefined;
    const paid = this.terms.protocol === "privkvm" ? Object.keys(page.charges).length > 0 : frozen;
    const cost = paid ? [0n, 1n] : this.terms.certified;
    const before = exact(book.spent);
    const total = add(before, cost);
    if (this.#limit !== null && compare(total, this.#limit) > 0) {
      throw new BudgetRefused(
        `this device has epsilon ${decimalText(less(this.#limit, before))} of ${decimalText(this.#limit)} left; this report ` +
          `needs ${decimalText(cost)}. Nothing was drawn, nothing was booked.`,
      );
    }
    book.spent = decimalText(total);
    page.charges[round] = decimalText(cost);
  }

  /** The payload: a remembered one, or a fresh one that is remembered. */
  #answer(secret, page, held, published) {
    const { terms } = this;
    if (terms.protocol === "privkvm") return this.#payload(this.#privkvm(held, published));
    if (terms.answers === "fresh") return this.#payload(this.#draw(this.#tossed(this.#picked([...held]))));
    const states = this.#states(secret, held);
    const name = this.#static ? STATIC : hex(this.#digest(secret, states));
    page.memory[name] ??= hex(this.#payload(this.#draw(this.#picked(states))));
    return bytesOf(page.memory[name]);
  }

  /** The state of each key that is present, the same for ever; of the asked key alone where only one is asked about. */
  #states(secret, held) {
    const asked = [...held].filter(([place]) => !this.terms.sampled || place === this.#place).sort(([a], [b]) => a - b);
    const message = ascii(`sign\0${this.terms.taskId}`);
    return asked.map(([place, threshold]) => {
      const digest = hmac(secret, joined(message, u32(place)), this.#hash);
      const word = Number(new DataView(digest.buffer).getBigUint64(0) >> 11n);
      return [place, signOf(threshold, word)];
    });
  }

  /** The name of a state in the diary, of one length for all. */
  #digest(secret, states) {
    const pieces = states.map(([place, state]) => joined(u32(place), Uint8Array.of(state)));
    return hmac(secret, joined(ascii("state\0"), ...pieces), this.#hash);
  }

  /** Where each held value stands in its range; whatever an odd object, key or value throws, the device must not. */
  #thresholds(pairs) {
    const found = new Map();
    try {
      for (const [key, read] of entriesOf(pairs)) {
        try {
          const place = this.terms.placeOf(key);
          const threshold = this.terms.valueless ? yes(read()) : this.#threshold(read());
          if (place !== undefined && threshold !== null) found.set(place, threshold);
        } catch {
          // this pair is absent, the others are read on
        }
      }
    } catch {
      // holds what was read until then
    }
    return found;
  }

  #published(round, means) {
    if (this.terms.protocol !== "privkvm" || round === 0) return null;
    const key = this.terms.keys[this.#place];
    const mean = means instanceof Map ? means.get(key) : means?.[key];
    const threshold = thresholdOf(this.terms.range, mean, false);
    require(threshold !== null, "means", "the published mean of every key, within the value range", typeof means);
    return threshold;
  }

  /** The pairs an answer is about: that of the asked key, one of the person's own (none for a dummy), or of sets all. */
  #picked(own) {
    const { terms } = this;
    if (terms.sampled) return own.filter(([place]) => place === this.#place);
    if (!terms.subsets) {
      const place = this.#coin.below(Math.max(own.length, terms.paddingLength));
      return own.slice(place, place + 1);
    }
    if (own.length <= terms.paddingLength) return own;
    return this.#coin.sample(own.length, terms.paddingLength).map((place) => own[place]);
  }

  /** Picked keys with signs that are tossed for this answer alone. */
  #tossed(picked) {
    return picked.map(([place, threshold]) => [place, signOf(threshold, this.#coin.sign())]);
  }

  #draw(about) {
    const { terms } = this;
    if (terms.subsets) return this.#drawnSet(about);
    const { table } = terms;
    const picked = about[0] ?? null;
    if (terms.sampled) return ternarySymbol(table, picked === null ? 0 : picked[1], this.#coin.word(table.bits));
    if (terms.joint) return jointSymbol(table, picked, this.#coin.word(table.bits));
    const keys = terms.keys.length;
    return unarySymbols(table, keys, picked, this.#coin.bytes(keys * ((table.bits + 7) >> 3)));
  }

  #drawnSet(held) {
    const { subset } = this.terms;
    const own = symbolsOf(subset, held);
    for (;;) {
      const drawn = this.#coin.sample(subset.symbols, subset.width);
      if (isKept(subset, own, drawn, this.#coin.word(subset.bits))) return drawnSymbols(subset, drawn);
    }
  }

  #privkvm(held, published) {
    const picked = this.#tossed(this.#picked([...held]));
    if (published === null) return this.#draw(picked);
    const state = picked.length > 0 ? picked[0][1] : signOf(published, this.#coin.sign());
    return laterSymbol(this.terms.laterTable, state, this.#coin.word(this.terms.tableBits));
  }

  #payload(symbol) {
    return payload(this.terms, this.terms.indexMode === "chosen" ? this.#place : null, symbol);
  }
}

/** Keys with a way to read their value: a value that throws must not take the others with it. */
function* entriesOf(pairs) {
  if (typeof pairs.entries === "function") {
    for (const [key, value] of pairs.entries()) yield [key, () => value];
  } else {
    for (const key of Object.keys(pairs)) yield [key, () => pairs[key]];
  }
}

/** A number as a device reads it: numbers, whole numbers of any length, true and false, and texts of a plain decimal. */
function numberOf(value) {
  if (typeof value === "number") return value;
  if (typeof value === "bigint" || typeof value === "boolean") return Number(value);
  return typeof value === "string" && NUMBER.test(value) ? Number(value) : NaN;
}

/** The threshold of a sure plus where a key is held, null where it is not. */
function yes(value) {
  const said = typeof value === "string" ? !NO.includes(value.trim().toLowerCase()) : Boolean(value);
  return said ? WHOLE : null;
}

function bytesOf(text) {
  const found = unhex(text);
  if (found === undefined) throw new DiaryError("the diary must hold bytes as hex; it does not. Nothing was sent.");
  return found;
}

/** Units per 1, in which both ends of a range are whole; the lower end and the length in them; the ends as doubles. */
function scaleOf([low, high]) {
  const units = low[1] * high[1];
  const ends = [low, high].map(nearestDouble);
  return { units, low: low[0] * high[1], span: high[0] * low[1] - low[0] * high[1], ends };
}

/** Where a value stands in a range, out of 2^53; null when it is no value of it. */
export const thresholdOf = (range, value, clip) => placeIn(scaleOf(range), value, clip);

function placeIn({ units, low, span, ends: [least, most] }, value, clip) {
  let number = numberOf(value);
  if (!(number >= least && number <= most)) {
    if (!clip || Number.isNaN(number)) return null;
    number = number < least ? least : most;
  }
  const [above, under] = ratioOf(number);
  // The double's exact ratio, never its text: floor((number - low) / (high - low) 2^53).
  const top = (above * units - low * under) << 53n;
  if (top < 0n) return 0;
  const place = top / (under * span);
  return place > BigInt(WHOLE) ? WHOLE : Number(place);
}

function limitOf(terms, maxEpsilon) {
  if (maxEpsilon === undefined) return null;
  const limit = ["number", "string"].includes(typeof maxEpsilon) ? exact(String(maxEpsilon)) : undefined;
  require(limit !== undefined, "maxEpsilon", "a finite number", maxEpsilon);
  if (compare(terms.certified, limit) > 0) {
    throw new StudyRefused(
      `the study asks for epsilon ${decimalText(terms.certified)}; this device accepts at most ${decimalText(limit)}. ` +
        "Nothing was drawn.",
    );
  }
  return limit;
}

function mustBeOpen({ notBefore, notAfter }, today = new Date().toISOString().slice(0, 10)) {
  if (notBefore !== null && today < notBefore) throw new StudyRefused(`the study opens on ${notBefore}; today is ${today}.`);
  if (notAfter !== null && today > notAfter) throw new StudyRefused(`the study closed on ${notAfter}; today is ${today}.`);
}
