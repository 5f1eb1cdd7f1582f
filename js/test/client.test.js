import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client, Diary, Harmony, RandomizedResponse, memoryStorage, plainStorage, Terms } from "../src/index.js";
import { hex } from "../src/bytes.js";
import { Coin } from "../src/coin.js";
import { diaryIn, folderStorage } from "../src/node.js";
import { behave, studyOf } from "./behaviour.js";
import { check } from "./checks.js";

const vectors = JSON.parse(readFileSync(new URL("../../src/sabun/keyvalue/wire-vectors.json", import.meta.url)));
const folder = () => mkdtempSync(join(tmpdir(), "sabun-"));

test("the golden vectors", () => {
  const { passed, failures } = check(vectors);
  assert.deepEqual(failures, []);
  assert.ok(passed > 2000, `${passed}`);
  console.log(`${passed} checks`);
});

const storages = {
  memory: () => memoryStorage(),
  "plain reading and writing": () => {
    let kept = null;
    const later = () => new Promise((done) => setImmediate(done));
    return plainStorage({ read: async () => (await later(), kept), write: async (text) => (await later(), (kept = text)) });
  },
  "a folder": () => folderStorage(folder()),
};

for (const [name, made] of Object.entries(storages)) {
  test(`a diary in ${name}`, async () => {
    assert.equal((await behave(vectors, made)).length, 14);
  });
}

test("several processes share a folder, and one that is killed loses nothing it gave away", async () => {
  const place = folder();
  const worker = fileURLToPath(new URL("./worker.js", import.meta.url));
  const started = Array.from({ length: 4 }, (_, i) => spawn(process.execPath, [worker, place, String(i)], { stdio: ["ignore", "pipe", "inherit"] }));
  const lines = started.map((child) => {
    let text = "";
    child.stdout.on("data", (piece) => {
      text += piece;
      if (child === started[0] && text.split("\n").length > 5) child.kill("SIGKILL");
    });
    return new Promise((done) => child.on("close", () => done(text.split("\n").slice(0, -1))));
  });
  const given = (await Promise.all(lines)).flat().map((line) => line.split(" "));
  const byRound = new Map();
  for (const [round, report] of given) {
    assert.equal(byRound.get(round) ?? report, report, "two answers for one round");
    byRound.set(round, report);
  }
  assert.equal(byRound.size, 25);
  const terms = studyOf(vectors, "pckv-ue", { rounds: 25 });
  const [n, d] = await diaryIn(place).spent();
  assert.equal(n * terms.certified[1], 25n * terms.certified[0] * d);
  assert.ok(readdirSync(place).length <= 12, "old generations are removed");
});

test("a diary that is broken is refused, not begun anew", async () => {
  for (const text of ["", "{", "{}", '{"version":1,"secret":"00","spent":"0","studies":{}}', "null"]) {
    const diary = new Diary(plainStorage({ read: async () => text, write: async () => assert.fail("written") }));
    await assert.rejects(Client.open(studyOf(vectors, "kv3"), { diary }), { name: "DiaryError" });
  }
});

test("a diary that cannot be written hands nothing over", async () => {
  let full = false;
  let kept = null;
  const write = async (text) => {
    if (full) throw new Error("secret contents");
    kept = text;
  };
  const client = await Client.open(studyOf(vectors, "kv3"), { diary: new Diary(plainStorage({ read: async () => kept, write })) });
  full = true;
  await assert.rejects(client.report({ LINE: 1 }), (error) => error.name === "DiaryError" && !error.message.includes("secret"));
});

test("studies that were edited, or break a rule, are refused", () => {
  const text = vectors.studies[0].terms;
  const record = JSON.parse(text);
  const changed = [{ epsilon: "0" }, { epsilon: "1e5000" }, { epsilon: 1.5 }, { protocol: "kv4" }, { table_bits: 65 }, { padding_length: 2 }];
  changed.push({ value_range: ["1", "1"] }, { value_range: ["0", "1/0"] }, { keys: ["a", "a"] }, { keys: [""] }, { keys: [1, "a"] }, { keys: ["\ud800"] });
  changed.push({ not_before: "2026-02-30" }, { not_before: "2026-02-02", not_after: "2026-02-01" }, { version: 2 }, { extra: 1 }, { rounds: 0 });
  changed.push({ min_batch: 1.5 }, { index_commitment: "ab" }, { requested: "set" }, { typical_frequency: "2" }, { keys: [true, false] }, { epsilon: "1e-30" });
  for (const change of changed) {
    const odd = JSON.stringify(Object.fromEntries(Object.entries({ ...record, ...change }).sort()));
    assert.throws(() => Terms.fromJson(odd), { name: "ClientError" }, JSON.stringify(change));
  }
  for (const odd of ["", "[]", "null", text.replace("1.5", "1.50"), text.replace(",", ", "), text.replace("\\u5730", "地"), text + "x"]) {
    assert.throws(() => Terms.fromJson(odd), { name: "ClientError" }, odd.slice(0, 60));
  }
  assert.equal(Terms.fromJson(`${text}\n`).taskId, vectors.studies[0].task_id);
});

test("dates are kept to", async () => {
  const client = await Client.open(studyOf(vectors, "kv3", { not_before: "2026-01-02", not_after: "2026-01-03" }));
  for (const today of ["2026-01-01", "2026-01-04"]) await assert.rejects(client.report({}, { today }), { name: "StudyRefused" });
  assert.equal((await client.report({}, { today: "2026-01-03" })).length, 38);
});

test("a long draw asks for at most 65,536 bytes at once, and words are used once", () => {
  const sizes = [];
  const coin = new Coin((array) => {
    sizes.push(array.length);
    globalThis.crypto.getRandomValues(array);
  });
  assert.equal(new Set(coin.bytes(200_000)).size, 256);
  assert.deepEqual(sizes, [65_536, 65_536, 65_536, 3392]);
  const drawn = Array.from({ length: 2000 }, () => coin.word(64));
  assert.equal(new Set(drawn).size, 2000);
  assert.deepEqual(coin.sample(50, 50).sort((a, b) => a - b), Array.from({ length: 50 }, (_, i) => i));
});

test("the classics have the tables of the Python device", () => {
  for (const { categories, epsilon, each } of vectors.classics.responses) {
    assert.equal(String(new RandomizedResponse({ categories: Array.from({ length: categories }, (_, i) => String(i)), epsilon }).each), each);
  }
  for (const { epsilon, keep } of vectors.classics.harmony) assert.equal(String(new Harmony({ epsilon }).keep), keep);
  const asked = new RandomizedResponse({ categories: ["yes", "no", "perhaps"], epsilon: 1 });
  assert.deepEqual([asked.answerOf(1, 0n), asked.answerOf(1, asked.keep), asked.answerOf(1, (1n << 64n) - 1n)], [1, 0, 2]);
  assert.ok([1, 2].includes(new Harmony({ epsilon: 1 }).answer(NaN)));
});

test("a study of another server is not taken for the one that was asked for", async () => {
  const { Uploader } = await import("../src/index.js");
  const fetch = async () => new Response(vectors.studies[1].terms);
  const collector = new Uploader("http://127.0.0.1:1", { fetch });
  await assert.rejects(collector.study(vectors.studies[0].task_id), { name: "UploadError" });
  assert.equal((await collector.study(vectors.studies[1].task_id)).protocol, "privkv");
  assert.equal(hex((await collector.study(vectors.studies[1].task_id.slice(0, 32))).shortId), vectors.studies[1].task_id.slice(0, 32));
});
