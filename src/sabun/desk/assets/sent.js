import { swapped } from "./swap.js";

/** Most answers are there at once; the longer one takes, the less often it is looked for. */
const LONGEST = 1500;
let wait = 150;

async function look() {
  try {
    const answer = await fetch(location.href, { redirect: "manual" });
    if (answer.type === "opaqueredirect") return location.reload(); // the answer is there: the page itself leads to it
    swapped(await answer.text());
  } catch {
    // the desk is closed: the page stays as it is
  }
  wait = Math.min(1.5 * wait, LONGEST);
  setTimeout(look, wait);
}
setTimeout(look, wait);
