/** What every storage must keep true; the same in Node and in a browser. */

import { BudgetRefused, Client, Uploader, Diary, DiaryError, StudyRefused, Terms, credentialOf, unpack } from "../src/index.js";
import { ascii, hex, sha256, unhex } from "../src/bytes.js";

export const studyOf = (vectors, name, changes = {}) => {
  const record = JSON.parse(vectors.studies.find((study) => study.name === name).terms);
  const text = JSON.stringify(Object.fromEntries(Object.entries({ ...record, ...changes }).sort(([a], [b]) => (a < b ? -1 : 1))));
  return Terms.fromJson(text.replace(/[\u007f-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`));
};

/** Runs every behaviour on fresh storages; answers the names of those that hold, throws at the first that does not. */
export async function behave(vectors, storageNamed) {
  const held = [];
  for (const [name, one] of Object.entries(BEHAVIOURS)) {
    const storage = storageNamed(name.replaceAll(" ", "-"));
    await one(vectors, () => new Diary(storage));
    held.push(name);
  }
  return held;
}

function must(condition, what) {
  if (!condition) throw new Error(what);
}

async function refusal(kind, promise) {
  try {
    await promise;
  } catch (error) {
    must(error instanceof kind, `${error}`);
    return error;
  }
  throw new Error(`no ${kind.name}`);
}

const BEHAVIOURS = {
  "the same round gives the same bytes, from another object too": async (vectors, diary) => {
    const terms = studyOf(vectors, "pckv-ue");
    const first = await (await Client.open(terms, { diary: diary() })).report({ LINE: 0.5 });
    const second = await (await Client.open(terms, { diary: diary() })).report({ YouTube: -1 });
    must(hex(first) === hex(second), "another answer");
  },
  "concurrent calls with different values give one answer and one charge": async (vectors, diary) => {
    const terms = studyOf(vectors, "set", { rounds: 3 });
    const clients = await Promise.all(Array.from({ length: 4 }, () => Client.open(terms, { diary: diary() })));
    const calls = Array.from({ length: 20 }, (_, i) => clients[i % 4].report({ d: i / 20 - 0.5, e: 1 }, { round: 1 }));
    const found = new Set((await Promise.all(calls)).map(hex));
    must(found.size === 1, `${found.size} answers`);
    const [n, d] = await diary().spent();
    must(n * terms.certified[1] === terms.certified[0] * d, "charged more than once");
  },
  "a state that comes back gives the answer it gave, in every round anew to pay": async (vectors, diary) => {
    const terms = studyOf(vectors, "pckv-grr", { rounds: 40 });
    const client = await Client.open(terms, { diary: diary() });
    const symbols = new Set();
    for (let round = 0; round < 12; round += 1) symbols.add(unpack(terms, await client.report({ e: 1 }, { round })).symbol);
    must(symbols.size === 1, "another answer for the same state");
    const [n, d] = await diary().spent();
    must(Number(n) / Number(d) > 17.9 && Number(n) / Number(d) <= 18, "charged another amount");
  },
  "a static answer is paid once and given for ever": async (vectors, diary) => {
    const terms = studyOf(vectors, "kv3", { rounds: 9 });
    const client = await Client.open(terms, { diary: diary(), static: true, maxEpsilon: 1.5 });
    const tails = new Set();
    for (let round = 0; round < 9; round += 1) tails.add(hex((await client.report({ LINE: round / 8 }, { round })).slice(37)));
    must(tails.size === 1, "more than one answer");
  },
  "a spent budget refuses, and books nothing": async (vectors, diary) => {
    const terms = studyOf(vectors, "rr-f", { rounds: 3 });
    await refusal(StudyRefused, Client.open(terms, { diary: diary(), maxEpsilon: "1.49" }));
    const client = await Client.open(terms, { diary: diary(), maxEpsilon: "2.9" });
    await client.report({});
    const error = await refusal(BudgetRefused, client.report({ LINE: 1 }, { round: 1 }));
    must(error.message.startsWith("this device has epsilon 1.4 of 2.9 left; this report needs 1.5."), error.message);
    must(hex(await client.report({ LINE: 1 })).length === 76, "the first report is no longer there");
  },
  "all rounds of PrivKVM are paid once": async (vectors, diary) => {
    const terms = studyOf(vectors, "privkvm");
    const client = await Client.open(terms, { diary: diary(), maxEpsilon: 1.5 });
    const means = Object.fromEntries(terms.keys.map((key) => [key, 0.25]));
    const sizes = [];
    for (let round = 0; round < 3; round += 1) sizes.push((await client.report({ LINE: 1 }, { round, means })).length);
    must(sizes.join() === "38,38,38", sizes.join());
    const [n, d] = await diary().spent();
    must(n * terms.certified[1] === terms.certified[0] * d, "charged more than once");
  },
  "no pair, however odd, throws an error or changes the size": async (vectors, diary) => {
    const broken = { get YouTube() { throw new Error("odd"); }, LINE: 0.5 };
    const odd = [NaN, Infinity, "x", null, undefined, Symbol("s"), {}, [], 10n ** 400n, () => 1, { valueOf() { throw new Error("odd"); } }];
    const endless = { *entries() { yield ["LINE", 1]; throw new Error("odd"); } };
    const trap = new Proxy({}, { ownKeys() { throw new Error("odd"); } });
    let round = 0;
    for (const name of ["set", "pckv-ue", "rr-f"]) {
      const terms = studyOf(vectors, name, { rounds: 99 });
      const client = await Client.open(terms, { diary: diary() });
      const sizes = new Set();
      for (const pairs of [broken, endless, trap, new Map(odd.map((value, i) => [terms.keys[i % 5], value])), new Map([[{}, 1]])]) {
        sizes.add((await client.report(pairs, { round })).length);
        round += 1;
      }
      must(sizes.size === 1, "sizes differ");
      round = 0;
    }
  },
  "the chosen key stays the chosen key": async (vectors, diary) => {
    const terms = studyOf(vectors, "kv3, chosen index, 32 bits");
    const [first, second] = [await Client.open(terms, { diary: diary() }), await Client.open(terms, { diary: diary() })];
    must(first.index === second.index && first.index !== null, "another key");
    must(unpack(terms, await second.report({ 3: 1 })).index === first.index, "a report about another key");
  },
  "a book that was emptied meanwhile is refused": async (vectors, diary) => {
    const terms = studyOf(vectors, "kv3", { rounds: 2 });
    const book = diary();
    const client = await Client.open(terms, { diary: book });
    await book.change((content) => {
      content.studies = {};
    });
    await refusal(DiaryError, client.report({}));
  },
  "what was made waits until the collector has it, over lost and cut answers": async (vectors, diary) => {
    const terms = studyOf(vectors, "kv3", { rounds: 3 });
    const client = await Client.open(terms, { diary: diary() });
    const report = await client.report({ LINE: 1 });
    const pauses = [];
    const answers = [
      () => { throw new TypeError("no network"); },
      () => new Response("busy", { status: 503, headers: { "Retry-After": "3" } }),
      () => new Response('{"accepted": 1, "dupl'),
      () => new Response(JSON.stringify({ accepted: 0, duplicate: 0, rejected: [] })),
      () => new Response(JSON.stringify({ accepted: 0, duplicate: 1, rejected: [] })),
    ];
    const bodies = [];
    const fetch = async (url, { body }) => {
      bodies.push(`${url} ${hex(body)}`);
      return answers[bodies.length - 1]();
    };
    const options = { fetch, wait: async (ms) => pauses.push(ms), firstPause: 100 };
    await refusal(Error, new Uploader("https://collector.example/", { ...options, attempts: 2 }).send(client));
    const said = await new Uploader("https://collector.example/", options).send(await Client.open(terms, { diary: diary() }));
    must(said.duplicate === 1 && bodies.length === 5, JSON.stringify(said));
    const line = `https://collector.example/v1/studies/${hex(terms.shortId)}/rounds/0/reports ${hex(report)}`;
    must(bodies.every((body) => body === line), bodies[0]);
    must(pauses.every((pause, i) => pause <= 100 * 2 ** i + (i === 1 ? 3000 : 0)), pauses.join());
    const none = await new Uploader("https://collector.example/", options).send(client);
    must(none.accepted + none.duplicate === 0 && bodies.length === 5, "sent once more");
  },
  "a refused request is not repeated, and its report waits on": async (vectors, diary) => {
    const terms = studyOf(vectors, "kv3");
    const client = await Client.open(terms, { diary: diary() });
    await client.report({});
    let calls = 0;
    const problem = { code: "unknown-study", title: "unknown" };
    const fetch = async () => {
      calls += 1;
      return new Response(JSON.stringify(problem), { status: 404, headers: { "Content-Type": "application/problem+json" } });
    };
    const collector = new Uploader("https://collector.example", { fetch });
    const error = await refusal(Error, collector.send(client));
    must(calls === 1 && error.code === "unknown-study" && error.status === 404, `${error} after ${calls}`);
    await refusal(Error, collector.send(client));
    must(calls === 2, "the report was forgotten");
  },
  "a round the collector refuses stops no other": async (vectors, diary) => {
    const terms = studyOf(vectors, "kv3", { rounds: 4 });
    const client = await Client.open(terms, { diary: diary() });
    for (let round = 0; round < 4; round += 1) await client.report({}, { round });
    let [calls, statuses] = [[], { 0: 404, 2: 500 }];
    const fetch = async (url) => {
      const round = Number(url.split("/").at(-2));
      calls.push(round);
      if (statuses[round]) return new Response(JSON.stringify({ code: `no-${round}` }), { status: statuses[round] });
      return new Response(JSON.stringify({ accepted: 1, duplicate: 0, rejected: [] }));
    };
    const collector = new Uploader("https://collector.example", { fetch, wait: async () => {}, attempts: 2 });
    must((await refusal(Error, collector.send(client))).code === "no-0", "another error");
    must(calls.join() === "0,1,2,2,3", `sent ${calls}`);
    [calls, statuses] = [[], { 0: 503 }];
    must((await refusal(Error, collector.send(client))).status === 503, "another error");
    must(calls.join() === "0,0", `sent ${calls} to a server that is busy`);
    [calls, statuses] = [[], {}];
    must((await collector.send(client)).accepted === 2 && calls.join() === "0,2", `sent ${calls}`);
  },
  "an enrolment goes on where it broke off, and a credential that was aimed at is refused": async (vectors, diary) => {
    const terms = studyOf(vectors, "kv3");
    const nonce = "ab".repeat(32);
    let [promise, honest, up] = [null, false, 1];
    const fetch = async (url, { body }) => {
      const given = JSON.parse(body);
      if (url.endsWith("/enrolment")) {
        must(promise === null || promise === given.promise, "another promise");
        promise = given.promise;
        return up-- > 0 ? new Response("cut") : new Response(JSON.stringify({ nonce }));
      }
      must(hex(sha256(unhex(given.secret))) === promise, "the secret is not the promised one");
      const credential = honest ? credentialOf(terms, unhex(given.secret), unhex(nonce)) : ascii("x".repeat(32));
      return new Response(JSON.stringify({ credential: hex(credential) }));
    };
    const collector = new Uploader("https://collector.example", { fetch, wait: async () => {}, attempts: 1 });
    await refusal(Error, collector.enrol(terms, { ticket: "00ff", diary: diary() }));
    const error = await refusal(Error, collector.enrol(terms, { ticket: "00ff", diary: diary() }));
    must(error.code === "credential", `${error}`);
    honest = true;
    const credential = await collector.enrol(terms, { ticket: "00ff", diary: diary() });
    const client = await Client.open(terms, { diary: diary(), credential });
    must((await client.report({})).length === 38, "no report");
    must(hex(await collector.enrol(terms, { ticket: "00ff", diary: diary() })) === hex(credential), "enrolled twice");
  },
  "a server that has heard the device's number cannot say another one": async (vectors, diary) => {
    const terms = studyOf(vectors, "kv3");
    const [promises, heard] = [new Map(), []];
    let [nonce, refuses] = ["ab".repeat(32), true];
    const fetch = async (url, { body }) => {
      const given = JSON.parse(body);
      if (url.endsWith("/enrolment")) {
        const known = promises.get(given.ticket) ?? given.promise;
        must(known === given.promise, "another promise for the same ticket");
        promises.set(given.ticket, known);
        return new Response(JSON.stringify({ nonce }));
      }
      heard.push(given.secret);
      if (refuses) return new Response(JSON.stringify({ code: "unknown-ticket" }), { status: 404 });
      return new Response(JSON.stringify({ credential: hex(credentialOf(terms, unhex(given.secret), unhex(nonce))) }));
    };
    const collector = new Uploader("https://collector.example", { fetch, wait: async () => {}, attempts: 1 });
    const enrol = (ticket) => collector.enrol(terms, { ticket, diary: diary() });
    must((await refusal(Error, enrol("00ff"))).code === "unknown-ticket", "not refused");
    [nonce, refuses] = ["cd".repeat(32), false];
    for (let time = 0; time < 2; time += 1) must((await refusal(Error, enrol("00ff"))).code === "nonce", "aimed at a key");
    must(heard.length === 1, "revealed again to a server that aims");
    must((await enrol("01ff")).length === 32, "another ticket is refused");
    must(new Set(heard).size === 2 && new Set(promises.values()).size === 2, "a number that another ticket has revealed");
  },
};
