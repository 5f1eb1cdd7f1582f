/**
 * What a device remembers: its secret, its budget, its answers, its reports, and which of them wait to be sent.
 *
 * A book is one text. A storage changes it in one step that is kept whole or not at all, and is durable before it is answered:
 * `change(step)` hands the text (null at first) to `step`, which answers at once with `{ text, result }` (text null: unchanged); a
 * step may run again when somebody else was faster, and only the last run counts. Whoever can read the book can find out what its person
 * holds.
 */

import { hex } from "./bytes.js";
import { Coin } from "./coin.js";
import { exact } from "./exact.js";
import { ClientError, DiaryError, require } from "./refusals.js";

/** A device's own book; one per person, shared by all studies. */
export class Diary {
  #storage;
  #coin;

  constructor(storage, { random } = {}) {
    require(typeof storage?.change === "function", "storage", "one that can `change` a text", typeof storage);
    this.#storage = storage;
    this.#coin = new Coin(random);
  }

  /** A book that is forgotten with the object: for trials, or a device that answers once. */
  static inMemory(options) {
    return new Diary(memoryStorage(), options);
  }

  /** The book of a browser, in IndexedDB; ask for `persist()` too. */
  static inBrowser(options) {
    return new Diary(indexedDbStorage(), options);
  }

  /** Everything booked so far, over all studies, as a rational `[n, d]`. */
  async spent() {
    return this.change((book) => exact(book.spent));
  }

  /** Asks that the storage be kept when space runs out; false means that budget and answers may be forgotten one day. */
  async persist() {
    return (await this.#storage.persist?.()) ?? false;
  }

  /**
   * One page: everything `step` does to the book is kept when this answers, or nothing is.
   *
   * @throws {DiaryError} The book cannot be read or written; nothing was sent.
   */
  async change(step) {
    try {
      return await this.#storage.change((text) => {
        const book = text === null ? this.#empty() : opened(text);
        const result = step(book);
        const after = JSON.stringify(book);
        return { text: after === text ? null : after, result };
      });
    } catch (error) {
      if (error instanceof ClientError) throw error;
      // What a storage says could quote what is in it.
      throw new DiaryError(`the diary must be one this device can read and write; it is not (${error?.name}). Nothing was sent.`);
    }
  }

  #empty() {
    return { version: 1, secret: hex(this.#coin.bytes(32)), spent: "0", studies: {} };
  }
}

/** What a book holds of one study, made if it is not there. */
export function pageOf(book, task) {
  return (book.studies[task] ??= { credential: null, place: null, charges: {}, memory: {}, sent: {}, waiting: [] });
}

function opened(text) {
  const book = JSON.parse(text);
  const whole = book.version === 1 && /^[0-9a-f]{64}$/.test(book.secret) && exact(book.spent) && typeof book.studies === "object";
  if (!whole) throw new DiaryError("the diary must hold its device's secret and total; it does not. Nothing was sent.");
  return book;
}

/** A storage that is forgotten with the object. */
export function memoryStorage() {
  let kept = null;
  return {
    async change(step) {
      const { text, result } = step(kept);
      kept = text ?? kept;
      return result;
    },
  };
}

/** A storage over any asynchronous `read()` and `write(text)`, one step at a time; only one such storage may use the place. */
export function plainStorage({ read, write }) {
  let last = Promise.resolve();
  return {
    change(step) {
      const next = last.then(async () => {
        const { text, result } = step((await read()) ?? null);
        if (text !== null) await write(text);
        return result;
      });
      last = next.catch(() => {});
      return next;
    },
  };
}

/** A storage in IndexedDB, shared by all tabs of an origin. */
export function indexedDbStorage(name = "sabun") {
  let base;
  const connected = () => (base ??= settled(withStore(indexedDB.open(name, 1))).catch((error) => {
    base = undefined;
    throw error;
  }));
  return {
    async change(step) {
      const database = await connected();
      return new Promise((resolve, reject) => {
        // Everything from here to `put` happens without waiting for anything else: a transaction does not outlive that.
        const transaction = database.transaction("book", "readwrite", { durability: "strict" });
        const store = transaction.objectStore("book");
        let outcome;
        let failure;
        store.get("book").onsuccess = ({ target }) => {
          try {
            outcome = step(target.result ?? null);
            if (outcome.text !== null) store.put(outcome.text, "book");
          } catch (error) {
            failure = error;
            transaction.abort();
          }
        };
        transaction.oncomplete = () => resolve(outcome.result);
        transaction.onabort = () => reject(failure ?? transaction.error);
      });
    },
    async persist() {
      return (await globalThis.navigator?.storage?.persist?.()) ?? false;
    },
  };
}

function withStore(request) {
  request.onupgradeneeded = () => request.result.createObjectStore("book");
  return request;
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new DiaryError("the diary must not be open in an older version; close the other tabs."));
  });
}
