import { swapped } from "./swap.js";

const EVERY = 700;

async function look() {
  try {
    const answer = await fetch(location.href);
    if (answer.redirected) location.replace(answer.url);
    else swapped(await answer.text());
  } catch {
    // the desk is closed: the page stays as it is
  }
}
setInterval(look, EVERY);
