import { swapped } from "./swap.js";

/** The page works without this; with it the plan follows the form, and the slider moves epsilon. */
const form = document.getElementById("ask");
const number = document.getElementById("epsilon");
const slider = document.getElementById("epsilon-slider");
const WAIT = 250;
let waiting = 0;
let asked = null;

async function plan() {
  asked?.abort();
  const own = new AbortController();
  asked = own;
  document.getElementById("plan").setAttribute("aria-busy", "true"); // a plan may take seconds: the old one is not its answer
  const sent = new URLSearchParams(new FormData(form));
  sent.set("act", "follow");
  try {
    const answer = await fetch(location.href, { method: "POST", body: sent, signal: own.signal, redirect: "error" });
    swapped(await answer.text()); // nothing, where a newer plan was asked for meanwhile
    marked();
  } catch {
    // a newer plan is on its way, or the desk is closed: the page stays as it is
  }
  if (asked === own) document.getElementById("plan").removeAttribute("aria-busy");
}

/** A field is marked as wrong exactly as long as something is said about it. */
function marked() {
  for (const field of form.querySelectorAll(".field")) {
    const wrong = field.querySelector(".wrong").textContent !== "";
    field.classList.toggle("misfit", wrong);
    const control = field.querySelector("[aria-describedby]");
    if (wrong) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  }
}

const soon = () => {
  clearTimeout(waiting);
  waiting = setTimeout(plan, WAIT);
};

if (form !== null) {
  form.addEventListener("input", soon);
  form.addEventListener("submit", () => clearTimeout(waiting));
}

if (slider !== null) {
  // two steps of the slider are a tenth of a power of ten, rounded as a person would
  const place = () => {
    const value = Number(number.value);
    if (value > 0) slider.value = String(Math.round(50 * Math.log10(value)));
  };
  const shown = () => {
    number.value = String(Number((10 ** (Number(slider.value) / 50)).toPrecision(2)));
    slider.setAttribute("aria-valuetext", `ε ${number.value}`);
  };
  place();
  slider.setAttribute("aria-valuetext", `ε ${number.value}`);
  slider.addEventListener("input", shown);
  number.addEventListener("input", place);
  document.getElementById("slider").hidden = false;
}

for (const fold of document.querySelectorAll("section.column")) {
  const kinds = fold.querySelectorAll("input[type=radio]");
  const parts = fold.querySelectorAll(".ends-of > div");
  const show = () => {
    const kind = [...kinds].find((one) => one.checked)?.value;
    for (const part of parts) part.hidden = !part.classList.contains(`of-${kind}`);
  };
  for (const one of kinds) one.addEventListener("change", show);
  fold.addEventListener("input", () => fold.classList.remove("misfit")); // what it is now is looked at when it is saved
  show();
}
