/** From the diary to a collector, and the enrolment there: again and again until it is said to be kept, with pauses. */

import { credentialOf } from "./assignment.js";
import { ascii, hex, joined, same, sha256, unhex } from "./bytes.js";
import { Coin } from "./coin.js";
import { pageOf } from "./diary.js";
import { ClientError, DiaryError, UploadError, require } from "./refusals.js";
import { Terms } from "./terms.js";

// Nobody there, or busy, for whatever else is to be sent too.
const AWAY = [0, 408, 425, 429, 502, 503, 504];
const AGAIN = [...AWAY, 500];

/** The way to a collector somewhere on the network. */
export class Uploader {
  #base;
  #fetch;
  #wait;
  #coin;
  #hash;
  #attempts;
  #first;
  #longest;
  #timeout;

  /** `server` is its address; `fetch`, `wait`, `random` and `hash` can be put in, for tests and other platforms. */
  constructor(server, options = {}) {
    const { attempts = 8, firstPause = 500, longestPause = 60_000, timeout = 30_000, random, hash = sha256 } = options;
    const { fetch = (...call) => globalThis.fetch(...call), wait = (ms) => new Promise((done) => setTimeout(done, ms)) } = options;
    this.#base = addressOf(server);
    this.#fetch = fetch;
    this.#wait = wait;
    this.#coin = new Coin(random);
    this.#hash = hash;
    [this.#attempts, this.#first, this.#longest, this.#timeout] = [attempts, firstPause, longestPause, timeout];
  }

  /**
   * The terms of a study, by the id that was agreed on elsewhere: 32 or 64 hex digits. A server that shows other terms is refused.
   *
   * @throws {UploadError} The server could not be reached, or has no such study.
   */
  async study(task) {
    require(/^(?:[0-9a-f]{32}|[0-9a-f]{64})$/.test(task), "task", "the id of a study in hex", task);
    const text = await this.#asked("GET", task.slice(0, 32), (answer) => answer);
    const terms = Terms.fromJson(text, { hash: this.#hash });
    if (!terms.taskId.startsWith(task)) throw new UploadError("the server must show the study that was asked for; it showed another.");
    return terms;
  }

  /** How a round stands; of PrivKVM's later ones the means to report with, of a study with a commitment the seed. */
  async round(terms, round) {
    const { state, feedback, seed } = await this.#asked("GET", `${hex(terms.shortId)}/rounds/${round}`, JSON.parse);
    const means = Array.isArray(feedback) ? new Map(terms.keys.map((key, place) => [key, feedback[place]])) : null;
    return { state, means, seed: unhex(seed) ?? null };
  }

  /**
   * Enrols a device with its ticket and keeps the credential in the diary; `Client.open` finds it there.
   *
   * The device promises a number of its own before it hears the server's, and keeps the server's before it reveals its own: neither
   * can aim at a key. A server that refuses the reveal and then says another number, fitted to the one it heard, is refused for
   * good. Each ticket has numbers of its own. A crash in between does no harm.
   *
   * @throws {UploadError} The server refuses the ticket, could not be reached, or aimed.
   */
  async enrol(terms, { ticket, diary }) {
    require(unhex(ticket)?.length > 0, "ticket", "hex", typeof ticket);
    const fresh = hex(this.#coin.bytes(32));
    // A ticket is as good as a key until it is used: its hash is enough for a name.
    const owner = hex(this.#hash(joined(ascii("sabun ticket\0"), unhex(ticket))));
    const begun = await diary.change((book) => {
      const page = pageOf(book, terms.taskId);
      if (page.credential !== null) return { known: page.credential };
      page.enrolments ??= {};
      return { own: (page.enrolments[owner] ??= { own: fresh, nonce: null }).own };
    });
    if (begun.known !== undefined) return unhex(begun.known);
    const secret = unhex(begun.own);
    const path = `${hex(terms.shortId)}/enrolment`;
    const promise = hex(this.#hash(secret));
    const nonce = await this.#asked("POST", path, fieldOf("nonce"), JSON.stringify({ ticket, promise }));
    const first = await diary.change((book) => {
      const page = pageOf(book, terms.taskId);
      if (page.credential !== null) return { known: page.credential };
      const numbers = page.enrolments?.[owner];
      if (numbers?.own !== begun.own) {
        throw new DiaryError("the diary must hold what this device promised; it was emptied meanwhile. Nothing was sent.");
      }
      return { nonce: (numbers.nonce ??= hex(nonce)) };
    });
    if (first.known !== undefined) return unhex(first.known);
    if (first.nonce !== hex(nonce)) {
      throw new UploadError("the nonce must be the one this ticket got first; it is another. Do not take part.", { code: "nonce" });
    }
    const reveal = JSON.stringify({ ticket, secret: begun.own });
    const credential = await this.#asked("POST", `${path}/reveal`, fieldOf("credential"), reveal);
    if (!same(credential, credentialOf(terms, secret, nonce, this.#hash))) {
      throw new UploadError("the credential must be made of both numbers; it is not. Do not take part.", { code: "credential" });
    }
    return diary.change((book) => {
      const page = pageOf(book, terms.taskId);
      page.credential ??= hex(credential);
      delete page.enrolments;
      return unhex(page.credential);
    });
  }

  /**
   * Sends whatever of a client's reports waits; those that were kept, sent twice or refused wait no longer, early ones do.
   * A request that the server refuses, say of a round it does not know, stops none of the others.
   *
   * @throws {UploadError} The server did not take all of them; what is left waits on, also over a crash. Call again later.
   */
  async send(client) {
    const task = client.terms.taskId;
    const waiting = await client.diary.change((book) => {
      const page = pageOf(book, task);
      return page.waiting.map((round) => [round, unhex(page.sent[round])]);
    });
    const outcome = { accepted: 0, duplicate: 0, rejected: [] };
    let refusal;
    for (const [round, report] of waiting) {
      const path = `${hex(client.terms.shortId)}/rounds/${round}/reports`;
      let said;
      try {
        said = await this.#asked("POST", path, countedOf(1), report);
      } catch (error) {
        if (AWAY.includes(error.status)) throw error;
        refusal ??= error;
        continue;
      }
      const early = said.rejected.some(({ reason }) => reason === "early");
      await client.diary.change((book) => {
        const page = pageOf(book, task);
        if (!early) page.waiting = page.waiting.filter((other) => other !== round);
      });
      outcome.accepted += said.accepted;
      outcome.duplicate += said.duplicate;
      outcome.rejected.push(...said.rejected.map(({ reason }) => ({ round, reason })));
    }
    if (refusal !== undefined) throw refusal;
    return outcome;
  }

  /** One request, repeated while that can help; an answer that was cut off is no answer. */
  async #asked(method, path, read, body) {
    let last;
    for (let attempt = 0; attempt < this.#attempts; attempt += 1) {
      if (attempt > 0) await this.#wait(this.#pause(attempt, last?.after));
      const answer = await this.#once(method, path, body);
      if (answer.status >= 200 && answer.status < 300) {
        try {
          return read(answer.text);
        } catch {
          last = { message: "its answer was cut off" };
          continue;
        }
      }
      last = answer;
      if (!AGAIN.includes(answer.status)) break;
    }
    throw refusalOf(last);
  }

  async #once(method, path, body) {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), this.#timeout);
    try {
      // No cookies, no referrer, no content type: nothing that tells who asks, nothing a browser would ask about first.
      const response = await this.#fetch(`${this.#base}/v1/studies/${path}`, {
        method,
        body,
        credentials: "omit",
        referrerPolicy: "no-referrer",
        cache: "no-store",
        redirect: "error",
        signal: stop.signal,
      });
      return { status: response.status, after: response.headers.get("retry-after"), text: await response.text() };
    } catch (error) {
      return { status: 0, after: null, message: error?.name ?? "no answer" };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Any time up to a limit that doubles, after what the server asked for: many devices must not come back together. */
  #pause(attempt, after) {
    const asked = Math.min(Number(after) * 1000 || 0, this.#longest);
    const limit = Math.min(this.#first * 2 ** (attempt - 1), this.#longest);
    return Math.max(asked, 0) + this.#coin.below(Math.max(Math.ceil(limit), 1));
  }
}

function addressOf(server) {
  let url;
  try {
    url = new URL(server);
  } catch {
    throw new ClientError("server must be an address such as https://collector.example; it is not.");
  }
  require(["http:", "https:"].includes(url.protocol), "server", "an http or https address", url.protocol);
  return url.href.split(/[?#]/)[0].replace(/\/+$/, "");
}

function refusalOf({ status = 0, text = "", message }) {
  let problem = {};
  try {
    problem = JSON.parse(text) ?? {};
  } catch {
    // an answer of something in between
  }
  const code = typeof problem.code === "string" ? problem.code : status === 0 ? "unreachable" : `http-${status}`;
  const why = message ?? problem.detail ?? problem.title ?? `status ${status}`;
  return new UploadError(`the collector must take what it is sent; it did not (${code}: ${why}). It waits on this device.`, {
    code,
    status,
  });
}

const fieldOf = (name) => (text) => {
  const found = unhex(JSON.parse(text)[name]);
  if (!found?.length) throw new ClientError(`${name} must be hex.`);
  return found;
};

const countedOf = (sent) => (text) => {
  const said = JSON.parse(text);
  if (said.accepted + said.duplicate + said.rejected.length !== sent) throw new ClientError("every report must be accounted for.");
  return said;
};

