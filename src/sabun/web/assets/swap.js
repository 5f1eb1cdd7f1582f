/** Pages are made on the server alone; a script fetches the page again and puts its parts in the place of the old ones. */

/** Puts each part of a new page that is marked in the place of the one with its id; what a person has opened or holds stays. */
export function swapped(text, marked = "[data-live]") {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of fresh.querySelectorAll(marked)) {
    const old = document.getElementById(part.id);
    if (old === null || old.contains(document.activeElement)) continue;
    if (old.matches("details[open]")) part.setAttribute("open", "");
    for (const fold of old.querySelectorAll("details[open][id]")) part.querySelector(`#${fold.id}`)?.setAttribute("open", "");
    if (old.outerHTML !== part.outerHTML) old.replaceWith(document.adoptNode(part));
  }
}
