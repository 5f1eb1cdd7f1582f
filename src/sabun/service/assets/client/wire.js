/**
 * One report as bytes of a fixed size: ver u8 | task 16 bytes | round u32 | report id 16 bytes | [index u32] | symbol.
 *
 * The symbol is one byte (sampled protocols), a u32 (joint ones) or two bits per key (unary encoding and sets).
 */

import { hex, joined, same, u32 } from "./bytes.js";
import { ReportError } from "./refusals.js";

export const VERSION = 1;
export const HEADER = 37;

/** Bytes of a report: the same for every person of a study. */
export function reportSize(terms) {
  if (terms.sampled) return HEADER + (terms.indexMode === "chosen" ? 5 : 1);
  return HEADER + (terms.joint ? 4 : Math.ceil(terms.keys.length / 4));
}

/** What stands before the payload: nothing in it depends on what a person holds. */
export const header = (terms, round, identity) => joined(Uint8Array.of(VERSION), terms.shortId, u32(round), identity);

/** The symbol, with the key it is about where the device chose it. */
export function payload(terms, index, symbol) {
  if (terms.perKey) return packSymbols(symbol);
  if (terms.joint) return u32(symbol);
  return joined(index === null ? new Uint8Array(0) : u32(index), Uint8Array.of(symbol));
}

/** The report as bytes. */
export const pack = (terms, { round, reportId, index, symbol }) =>
  joined(header(terms, round, reportId), payload(terms, index, symbol));

/**
 * Reads a report; never repairs one.
 *
 * @throws {ReportError} The bytes are no report of this study.
 */
export function unpack(terms, content) {
  const size = reportSize(terms);
  if (content.length !== size) throw new ReportError(`a report of this study must have ${size} bytes; got ${content.length}.`);
  if (content[0] !== VERSION) throw new ReportError(`version must be ${VERSION}; got ${content[0]}.`);
  if (!same(content.subarray(1, 17), terms.shortId)) {
    throw new ReportError("the report must belong to this study; it names another.");
  }
  const view = new DataView(content.buffer, content.byteOffset);
  const round = view.getUint32(17);
  if (round >= terms.rounds) throw new ReportError(`round must be below ${terms.rounds}; got ${round}.`);
  const reportId = content.slice(21, HEADER);
  if (terms.perKey) return { round, reportId, index: null, symbol: unpackedSymbols(terms, content.subarray(HEADER)) };
  if (terms.joint) {
    const symbol = view.getUint32(HEADER);
    const most = 2 * terms.keys.length;
    if (symbol > most) throw new ReportError(`symbol must be at most ${most}; got ${symbol}.`);
    return { round, reportId, index: null, symbol };
  }
  const index = terms.indexMode === "chosen" ? view.getUint32(HEADER) : null;
  const symbol = content[size - 1];
  if (index !== null && index >= terms.keys.length) throw new ReportError(`index must be below ${terms.keys.length}; got ${index}.`);
  if (symbol > terms.signs) throw new ReportError(`symbol must be at most ${terms.signs}; got ${symbol}.`);
  return { round, reportId, index, symbol };
}

/** The JSON form of a report, for people who debug. */
export function toJson(terms, content) {
  const { round, reportId, index, symbol } = unpack(terms, content);
  const said = typeof symbol === "number" ? symbol : Array.from(symbol);
  return JSON.stringify({ id: hex(reportId), index, round, symbol: said, task: hex(terms.shortId), version: VERSION });
}

function packSymbols(symbols) {
  const packed = new Uint8Array(Math.ceil(symbols.length / 4));
  symbols.forEach((symbol, key) => {
    packed[key >> 2] |= symbol << (6 - 2 * (key & 3));
  });
  return packed;
}

function unpackedSymbols(terms, content) {
  const all = Uint8Array.from({ length: content.length * 4 }, (_, key) => (content[key >> 2] >> (6 - 2 * (key & 3))) & 3);
  const symbols = all.slice(0, terms.keys.length);
  if (all.includes(3) || all.subarray(terms.keys.length).some(Boolean)) {
    throw new ReportError("each symbol must be 0, 1 or 2, with zeros after the last key; they are not.");
  }
  if (terms.valueless && symbols.includes(2)) {
    throw new ReportError("each symbol must be 0 or 1 where no values are asked; they are not.");
  }
  if (terms.subsets && symbols.filter(Boolean).length > terms.subset.width) {
    throw new ReportError(`a report must speak of at most ${terms.subset.width} keys; it speaks of more.`);
  }
  return symbols;
}
