import { swapped } from "./swap.js";

const EVERY = 5000;
const told = document.getElementById("live");
const button = told.querySelector("button");
let going = true;

const say = () => (button.textContent = going ? button.dataset.stop : button.dataset.go);
button.addEventListener("click", () => {
  going = !going;
  say();
});
say();
told.hidden = false;

async function look() {
  if (!going || document.hidden) return;
  try {
    const answer = await fetch(location.href, { redirect: "error" });
    if (answer.ok) swapped(await answer.text());
  } catch {
    // the server is away, or the visit is over: the page stays as it is and is asked for again
  }
}
setInterval(look, EVERY);
