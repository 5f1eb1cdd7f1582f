/** The terms of a study: everything a device has to know, in one hashed document. */

import { ascii, hex, sha256 } from "./bytes.js";
import { compare, decimalText, exact, nearestDouble } from "./exact.js";
import { JOINT, PER_KEY, PROTOCOLS, SAMPLED, SETS, VALUELESS } from "./probabilities.js";
import { certifiedEpsilon, laterRound, subsetsOf, tableFor } from "./probabilities.js";
import { ClientError, require, shown } from "./refusals.js";

const FIELDS =
  "answers epsilon expected_reports index_commitment index_mode keys keys_per_user min_batch not_after not_before " +
  "padding_length protocol requested rounds table_bits typical_frequency value_range version";
const ADVISED = ["auto", "auto-f", "auto-m"];
const FARTHEST = [10n ** 100n, 1n];
const MOST_KEYS = 2 ** 24;
const NUMBERS_IN_JSON = /"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g;

/** A study as a device knows it; made by `Terms.fromJson`. */
export class Terms {
  /**
   * Reads the canonical JSON of a study, letter for letter.
   *
   * @throws {ClientError} It is no study, not in its canonical form, or one whose table cannot keep its promise.
   */
  static fromJson(text, { hash = sha256 } = {}) {
    require(typeof text === "string", "a study", "a text of JSON", typeof text);
    const canonical = text.trim();
    const record = parsed(canonical);
    const terms = new Terms(record);
    if (written(terms.record) !== canonical) {
      throw new ClientError("a study must be in its canonical form; this one was edited or reformatted. Use it as it was saved.");
    }
    const digest = hash(ascii(canonical));
    return Object.freeze(Object.assign(terms, { json: canonical, taskId: hex(digest), shortId: digest.slice(0, 16) }));
  }

  /** Use `fromJson`. */
  constructor(record) {
    const { protocol } = record;
    this.keys = checkedKeys(record.keys);
    this.epsilon = amount("epsilon", record.epsilon);
    require(this.epsilon[0] > 0n, "epsilon", "finite and > 0", record.epsilon);
    this.range = checkedRange(record.value_range);
    choice("protocol", protocol, PROTOCOLS);
    choice("answers", record.answers, ["memoised", "fresh"]);
    choice("index_mode", record.index_mode, ["assigned", "chosen"]);
    checkCounts(record, this.keys.length);
    checkFacts(record);
    checkDates(record);
    Object.assign(this, {
      protocol,
      answers: record.answers,
      indexMode: record.index_mode,
      indexCommitment: record.index_commitment,
      paddingLength: record.padding_length,
      rounds: record.rounds,
      tableBits: record.table_bits,
      minBatch: record.min_batch,
      notBefore: record.not_before,
      notAfter: record.not_after,
      sampled: SAMPLED.includes(protocol),
      joint: JOINT.includes(protocol),
      perKey: PER_KEY.includes(protocol),
      subsets: SETS.includes(protocol),
      valueless: VALUELESS.includes(protocol),
      signs: VALUELESS.includes(protocol) ? 1 : 2,
    });
    const facts = { protocol, epsilon: this.epsilon, keys: this.keys.length, bits: this.tableBits };
    Object.assign(facts, { padding: this.paddingLength, rounds: this.rounds });
    // Computed now: a table that cannot keep its promise must not come into being.
    this.certified = certifiedEpsilon(facts);
    this.table = tableFor(facts);
    this.subset = this.subsets ? subsetsOf(facts) : null;
    this.laterTable = protocol === "privkvm" ? laterRound(facts) : null;
    const texts = typeof this.keys[0] === "string";
    const places = new Map(this.keys.map((key, place) => [String(key), place]));
    const names = texts ? ["string"] : ["string", "number", "bigint"];
    /** Where a key stands in the list; undefined when it is not in it. */
    this.placeOf = (key) => (names.includes(typeof key) ? places.get(String(key)) : undefined);
    this.record = {
      ...record,
      epsilon: decimalText(this.epsilon),
      value_range: this.range.map(decimalText),
      typical_frequency: record.typical_frequency === null ? null : decimalText(exact(record.typical_frequency)),
    };
  }
}

function parsed(text) {
  let record;
  try {
    // Whole numbers beyond 2^53 must not be rounded: they travel as texts through the parser.
    const safe = text.replace(NUMBERS_IN_JSON, (token) => (token[0] === '"' ? token : `{"whole":"${token}"}`));
    record = JSON.parse(safe, (_, value) => (typeof value?.whole === "string" ? wholeOf(BigInt(value.whole)) : value));
  } catch {
    throw new ClientError("a study must be valid JSON; it could not be parsed.");
  }
  const plain = typeof record === "object" && record !== null && !Array.isArray(record);
  if (!plain || Object.keys(record).sort().join(" ") !== FIELDS) {
    throw new ClientError("a study must have exactly the fields of version 1; it has others.");
  }
  if (record.version !== 1) {
    throw new ClientError("version must be 1; got another. A newer Sabun may be able to read this study.");
  }
  return record;
}

const wholeOf = (number) => (BigInt.asIntN(54, number) === number ? Number(number) : number);

/** Canonical JSON: names sorted, no blanks, everything but printable ASCII escaped. */
function written(value) {
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (value === null || typeof value === "number" || typeof value === "bigint") return String(value);
  if (typeof value === "string") return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escaped);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${written(name)}:${written(value[name])}`).join(",")}}`;
}

const escaped = (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;

const isWhole = (value) => typeof value === "bigint" || Number.isSafeInteger(value);

function checkedKeys(keys) {
  require(Array.isArray(keys), "keys", "a list of names", typeof keys);
  require(keys.length >= 1 && keys.length <= MOST_KEYS, "keys", `a list of 1 to ${MOST_KEYS} names`, `${keys.length} names`);
  const words = keys.every((key) => typeof key === "string" && key !== "");
  require(words || keys.every(isWhole), "keys", "all texts or all whole numbers, none of them empty", keys);
  require(!words || keys.every(isWritable), "keys", "texts without surrogates", "a lone half of a character");
  require(new Set(keys).size === keys.length, "keys", "distinct", "one twice", "Name each once.");
  return Object.freeze([...keys]);
}

/** Two halves of a character are written like the whole one in JSON, and would share its task id. */
function isWritable(key) {
  try {
    return encodeURIComponent(key) !== "";
  } catch {
    return false;
  }
}

function amount(name, text) {
  const number = typeof text === "string" ? exact(text) : undefined;
  require(number !== undefined, name, "a finite number as a text", text);
  return number;
}

function checkedRange(ends) {
  require(Array.isArray(ends) && ends.length === 2, "value_range", "a pair (lower, upper)", ends);
  const [low, high] = ends.map((end) => amount("value_range", end));
  const near = compare([-FARTHEST[0], 1n], low) <= 0 && compare(high, FARTHEST) <= 0 && compare(low, high) < 0;
  const apart = near && nearestDouble(low) < nearestDouble(high);
  require(apart, "value_range", "a pair with lower < upper, both within 1e100 of 0", ends);
  return [low, high];
}

function choice(name, value, options) {
  require(options.includes(value), name, `one of ${options.join(", ")}`, value);
}

function whole(name, value, low, high) {
  require(isWhole(value) && value >= low && value <= high, name, `a whole number from ${low} to ${high}`, value);
}

function checkCounts(record, keys) {
  whole("padding_length", record.padding_length, 1, keys);
  whole("rounds", record.rounds, 1, 2 ** 32 - 1);
  whole("table_bits", record.table_bits, 16, 64);
  whole("min_batch", record.min_batch, 1, 2 ** 62);
  const alone = SAMPLED.includes(record.protocol);
  require(!alone || record.padding_length === 1, "padding_length", `1 for '${record.protocol}'`, record.padding_length);
  require(record.protocol !== "privkvm" || record.rounds >= 2, "rounds", "at least 2 for 'privkvm'", record.rounds);
  if (record.index_commitment !== null) {
    const given = record.index_commitment;
    require(/^[0-9a-f]{64}$/.test(given), "index_commitment", "null or a SHA-256 in hex", given);
    const assigned = alone && record.index_mode === "assigned";
    require(assigned, "index_commitment", "left out unless the server assigns keys", given);
  }
}

function checkFacts(record) {
  for (const name of ["keys_per_user", "expected_reports"]) {
    if (record[name] !== null) whole(name, record[name], 1, 2 ** 62);
  }
  if (record.typical_frequency !== null) {
    const [n, d] = amount("typical_frequency", record.typical_frequency);
    require(n > 0n && n <= d, "typical_frequency", "above 0 and at most 1", record.typical_frequency);
  }
  choice("requested", record.requested, [...ADVISED, record.protocol]);
}

function checkDates(record) {
  for (const name of ["not_before", "not_after"]) {
    require(record[name] === null || isDate(record[name]), name, "a date or null", record[name]);
  }
  const { not_before: first, not_after: last } = record;
  require(first === null || last === null || first <= last, "not_after", `at least ${shown(first)}`, last);
}

function isDate(text) {
  if (typeof text !== "string" || !/^\d{4}-\d\d-\d\d$/.test(text) || text < "0001") return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === text;
}

