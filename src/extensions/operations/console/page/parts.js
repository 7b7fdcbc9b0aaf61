// The parts of the page and their addresses: #now, #requests?status=429, #requests/ID, #costs.
import { $, clearSelection } from "./dom.js";

const NAMES = ["now", "requests", "costs", "keys", "try", "manual"];
const parts = {};
let shown = "";

/**
 * Adds a part. `show` is called whenever its address is gone to, with what follows the name: the
 * rest of the path, and the query as an object.
 */
export const addPart = (name, show) => {
  parts[name] = show;
};

/** Whether a part is to be seen by anybody. */
export const isShown = (name) => shown === name && !document.hidden;

function placeOf(hash) {
  const [, name = "", path = "", query = ""] = /^#?([a-z]*)\/?([^?]*)\??(.*)$/s.exec(hash) ?? [];
  const part = NAMES.includes(name) ? name : "now";
  return { part, path: decoded(path), query: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Marks the link to what is shown among those of a list. */
export function markCurrent(list, hash) {
  for (const anchor of list.querySelectorAll("a")) {
    if (anchor.hash === hash) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

/** Shows what the address says. */
export function follow() {
  clearSelection();
  const { part, path, query } = placeOf(location.hash);
  const isOther = part !== shown;
  shown = part;
  for (const name of NAMES) $(name).hidden = name !== part;
  markCurrent($("parts"), `#${part}`);
  if (isOther) window.scrollTo(0, 0);
  parts[part]?.(path, query);
}

/** Changes the address without a new entry in the history of the browser, and shows it. */
export function replaceAddress(hash) {
  history.replaceState(null, "", hash);
  follow();
}

window.addEventListener("hashchange", follow);
$("skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("main").focus();
});
