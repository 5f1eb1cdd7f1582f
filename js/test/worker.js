/** One of several processes that report from one diary: `node worker.js FOLDER VALUE`. */

import { readFileSync } from "node:fs";
import { Client } from "../src/index.js";
import { hex } from "../src/bytes.js";
import { diaryIn } from "../src/node.js";
import { studyOf } from "./behaviour.js";

const vectors = JSON.parse(readFileSync(new URL("../../src/sabun/keyvalue/wire-vectors.json", import.meta.url)));
const terms = studyOf(vectors, "pckv-ue", { rounds: 25 });
const client = await Client.open(terms, { diary: diaryIn(process.argv[2]) });
for (let round = 0; round < 25; round += 1) {
  const report = await client.report({ LINE: Number(process.argv[3]) / 4 }, { round });
  process.stdout.write(`${round} ${hex(report)}\n`);
}
