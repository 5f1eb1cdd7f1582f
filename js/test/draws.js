/** Reports of many new devices, counted: what a chi-square test of their law is made of. */

import { Client, Terms, unpack } from "../src/index.js";

/** How often each symbol (both rounds', where means are given) came up among `n` new devices. */
export async function draw({ terms: text, pairs, n, means }) {
  const terms = Terms.fromJson(text);
  const said = (report) => JSON.stringify(unpack(terms, report).symbol, (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value));
  const counts = {};
  for (let i = 0; i < n; i += 1) {
    const client = await Client.open(terms);
    let cell = said(await client.report(pairs));
    if (means) cell = `[${cell},${said(await client.report(pairs, { round: 1, means }))}]`;
    counts[cell] = (counts[cell] ?? 0) + 1;
  }
  return counts;
}
