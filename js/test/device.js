/** One device from its ticket to its report, for tests against a running collector. */

import { Client, Uploader } from "../src/index.js";
import { hex } from "../src/bytes.js";

/** Enrols, reports, sends, and sends once more what it has sent. */
export async function takePart({ server, task, ticket, pairs, diary }) {
  const uploader = new Uploader(server, { attempts: 4, firstPause: 50 });
  const terms = await uploader.study(task);
  const credential = hex(await uploader.enrol(terms, { ticket, diary }));
  const client = await Client.open(terms, { diary, maxEpsilon: 2 });
  const { state } = await uploader.round(terms, 0);
  const report = hex(await client.report(pairs));
  const first = await uploader.send(client);
  await diary.change((book) => book.studies[terms.taskId].waiting.push(0));
  const second = await uploader.send(client);
  return { credential, report, first, second, state };
}
