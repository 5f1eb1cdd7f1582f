import { swapped } from "./swap.js";

const EVERY = 700;

async function look() {
  try {
    const answer = await fetch(location.href, { redirect: "manual" });
    if (answer.type === "opaqueredirect") return location.reload(); // the answer is there: the page itself leads to it
    swapped(await answer.text());
  } catch {
    // the desk is closed: the page stays as it is
  }
  setTimeout(look, EVERY);
}
setTimeout(look, EVERY);
