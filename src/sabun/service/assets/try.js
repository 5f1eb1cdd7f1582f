/** The visitor's browser is the device: what is entered stays here, the report alone is sent. */

import { Client, Diary, Terms } from "./client/index.js";
import { swapped } from "./swap.js";

const PAUSE = 900;
const form = document.getElementById("hold");
const failed = document.getElementById("failed");
let turn = 0;

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const wait = (time) => new Promise((done) => setTimeout(done, time));

async function drawn() {
  const terms = Terms.fromJson(form.dataset.terms);
  const client = await Client.open(terms, { diary: Diary.inMemory() });
  const held = [...form.querySelectorAll("[data-key]")].filter((input) => input.value.trim() !== "");
  return client.report(new Map(held.map((input) => [input.dataset.key, input.value])));
}

async function send(fields) {
  const answer = await fetch(location.pathname, { method: "POST", body: new URLSearchParams(fields) });
  if (!answer.ok) throw new Error(String(answer.status));
  document.activeElement?.closest("#outcome") && document.activeElement.blur();
  swapped(await answer.text(), "#outcome");
}

/** One crowd after the other, as long as nobody throws again. */
async function watch(mine) {
  for (let more; (more = document.getElementById("more")) !== null; ) {
    document.getElementById("status").textContent = more.dataset.told;
    await wait(PAUSE);
    if (mine !== turn) return;
    await send(new FormData(more));
  }
}

const told = (job) => job().then(() => (failed.hidden = true), () => (failed.hidden = false));

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const mine = (turn += 1);
  told(async () => {
    const { token, seed } = form.elements;
    await send({ token: token.value, seed: seed.value, report: hex(await drawn()) });
    if (mine === turn) await watch(mine);
  });
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "more") return;
  event.preventDefault();
  const mine = (turn += 1);
  told(async () => {
    await send(new FormData(event.target));
    await watch(mine);
  });
});
document.getElementById("plays-server").hidden = true;
document.getElementById("plays-browser").hidden = false;
