/** A diary in a folder, for Node. */

import { link, mkdir, open, readFile, readdir, unlink } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Diary } from "./diary.js";

/**
 * A storage in a folder: generation n of the book is the file `book.n`, and the highest counts.
 *
 * A new generation is written aside, synced, and linked under the next number, which fails when another process was faster. A
 * crash leaves the old generation or the new one. Several processes may share the folder; it needs hard links (any local disk of
 * Linux, macOS or Windows).
 */
export function folderStorage(folder) {
  let ready;
  const prepared = () => (ready ??= mkdir(folder, { recursive: true, mode: 0o700 }));
  return plainSteps(async (step) => {
    await prepared();
    for (;;) {
      const number = await highest(folder);
      const before = number === 0 ? null : await textOf(join(folder, `book.${number}`));
      if (before === undefined) continue; // replaced while we looked
      const { text, result } = step(before);
      if (text === null || (await committed(folder, number + 1, text))) return result;
    }
  });
}

/** The diary of a Node program. */
export const diaryIn = (folder, options) => new Diary(folderStorage(folder), options);

function plainSteps(one) {
  let last = Promise.resolve();
  return {
    change(step) {
      const next = last.then(() => one(step));
      last = next.catch(() => {});
      return next;
    },
  };
}

async function generations(folder) {
  const found = (await readdir(folder)).map((name) => /^book\.(\d+)$/.exec(name)).filter(Boolean);
  return found.map((match) => Number(match[1])).sort((a, b) => a - b);
}

const highest = async (folder) => (await generations(folder)).at(-1) ?? 0;

async function textOf(path) {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

async function committed(folder, number, text) {
  const aside = join(folder, `.new.${randomBytes(8).toString("hex")}`);
  const file = await open(aside, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
    await file.close();
    await link(aside, join(folder, `book.${number}`));
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  } finally {
    await file.close();
    await unlink(aside);
  }
  await synced(folder);
  // Whoever was two steps ahead has removed the number we took: the highest counts, so ours does not.
  const all = await generations(folder);
  if (all.at(-1) !== number) return false;
  // Some are left: a listing that is made meanwhile must not miss them all.
  await Promise.all(all.slice(0, -8).map((old) => unlink(join(folder, `book.${old}`)).catch(() => {})));
  return true;
}

async function synced(folder) {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
