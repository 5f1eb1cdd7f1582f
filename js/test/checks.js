/** The golden vectors, checked one by one; the same in Node and in a browser. */

import * as sabun from "../src/index.js";
import { hmac, hex, sha256, ascii, unhex } from "../src/bytes.js";
import { jointSymbol, ternarySymbol, unarySymbols } from "../src/channel.js";
import { decimalText, exact, nearestDouble, ratioOf } from "../src/exact.js";
import { certifiedEpsilon, laterRound, subsetsOf, tableFor } from "../src/probabilities.js";
import { drawnSymbols, isKept, symbolsOf } from "../src/subsets.js";
import { thresholdOf } from "../src/device.js";

const ENTRIES = ["keep", "opposite", "each", "nonePresent", "noneAbsent"];
const entriesOf = (table) => ENTRIES.map((name) => String(table[name]));

export const bitsOf = (double) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, double);
  return hex(new Uint8Array(view.buffer));
};

export const doubleOf = (bits) => new DataView(unhex(bits).buffer).getFloat64(0);

/** How many comparisons were equal, and the first that were not. */
export function check(vectors) {
  const failures = [];
  let passed = 0;
  const equal = (what, found, expected) => {
    if (JSON.stringify(found) === JSON.stringify(expected)) passed += 1;
    else failures.push(`${what}: ${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
  };
  equal("sha256", hex(sha256(ascii("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  equal("sha256 of none", hex(sha256(ascii(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const long = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
  equal("hmac", hex(hmac(ascii("key"), ascii("The quick brown fox jumps over the lazy dog"))), long);
  vectors.studies.forEach((study) => checkStudy(study, equal));
  vectors.tables.forEach((facts) => checkTable(facts, equal));
  for (const { range, ends, cases } of vectors.thresholds) {
    const rationals = range.map(exact);
    equal(`ends of ${range}`, rationals.map(nearestDouble).map(bitsOf), ends);
    equal(`texts of ${range}`, rationals.map(decimalText), range);
    for (const [bits, plain, clipped] of cases) {
      const place = [false, true].map((clip) => thresholdOf(rationals, doubleOf(bits), clip));
      equal(`threshold of ${bits} in ${range}`, place.map((found) => found && String(found)), [plain, clipped].map(zero));
    }
  }
  for (const [text, bits] of vectors.doubles) {
    const number = exact(text);
    equal(`nearest double of ${text}`, bitsOf(nearestDouble(number)), bits);
    equal(`ratio of ${bits}`, nearestDouble(ratioOf(doubleOf(bits))) - doubleOf(bits), 0);
  }
  for (const { epsilon, keys, bits, picked, words, symbols } of vectors.unary) {
    const table = tableFor({ protocol: "pckv-ue", epsilon: exact(epsilon), keys, padding: 2, bits });
    equal("unary", Array.from(unarySymbols(table, keys, picked, unhex(words))), symbols);
  }
  for (const { terms: text, task_id: task, ends, seed, asked } of vectors.odd_studies) {
    const terms = sabun.Terms.fromJson(text);
    equal("task", terms.taskId, task);
    equal("ends", terms.range.map(nearestDouble).map(bitsOf), ends);
    for (const [credential, identity, index] of asked) {
      equal("id", hex(sabun.reportId(terms, unhex(credential))), identity);
      equal("index", sabun.assignedIndex(terms, unhex(identity), unhex(seed)), index);
    }
  }
  return { passed, failures: failures.slice(0, 20), failed: failures.length };
}

const zero = (text) => (text === "0" ? 0 : text);

function checkStudy(study, equal) {
  const { name } = study;
  const terms = sabun.Terms.fromJson(study.terms);
  equal(`${name} task`, terms.taskId, study.task_id);
  const { keep, opposite, each, none_present: nonePresent, none_absent: noneAbsent } = study.table;
  equal(`${name} table`, entriesOf(terms.table), [keep, opposite, each, nonePresent, noneAbsent]);
  equal(`${name} certified`, decimalText(terms.certified), decimalText(exact(study.certified_epsilon)));
  const identity = sabun.reportId(terms, unhex(study.credential));
  equal(`${name} id`, hex(identity), study.report_id);
  if (terms.sampled) equal(`${name} index`, sabun.assignedIndex(terms, identity), study.assigned_index);
  if (terms.subsets) equal(`${name} subset`, [String(terms.subset.accept), terms.subset.width], [study.accept, study.width]);
  for (const given of study.symbols) {
    const word = BigInt(given.word);
    if (terms.subsets) {
      const own = symbolsOf(terms.subset, given.held);
      equal(`${name} own`, [...own].sort((a, b) => a - b), given.own);
      equal(`${name} kept`, isKept(terms.subset, own, given.drawn, word), given.kept);
      equal(`${name} said`, Array.from(drawnSymbols(terms.subset, given.drawn)), given.symbol);
    } else if (terms.sampled) equal(`${name} symbol`, ternarySymbol(terms.table, given.state, word), given.symbol);
    else equal(`${name} symbol`, jointSymbol(terms.table, given.picked, word), given.symbol);
  }
  for (const { bytes, json } of study.reports) {
    equal(`${name} json`, sabun.toJson(terms, unhex(bytes)), json);
    equal(`${name} bytes`, hex(sabun.pack(terms, sabun.unpack(terms, unhex(bytes)))), bytes);
  }
}

function checkTable(given, equal) {
  const facts = { ...given, epsilon: exact(given.epsilon) };
  const name = `${given.protocol} ${given.epsilon} ${given.keys} ${given.bits}`;
  let found = null;
  try {
    certifiedEpsilon(facts);
    found = tableFor(facts);
  } catch (error) {
    if (!(error instanceof sabun.ClientError)) throw error;
  }
  equal(`${name} table`, found && entriesOf(found), given.table);
  if (found === null || given.table === null) return;
  equal(`${name} certified`, decimalText(certifiedEpsilon(facts)), given.certified);
  if (given.later) equal(`${name} later`, laterRound(facts).map(String), given.later);
  if (given.width) {
    const { accept, width } = subsetsOf(facts);
    equal(`${name} subset`, [String(accept), width], [given.accept, given.width]);
  }
}
