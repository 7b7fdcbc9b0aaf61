// The views of the page, their addresses, and the one cycle that loads and draws them. An address
// is #VIEW, #VIEW?NAME=VALUE or #VIEW/ID: the query is that of the view's form. Events of the
// gateway, every few seconds, say what is so at the moment and keep the cycle going.
import { $, tell } from "./dom.js";
import { plural } from "./words.js";

/** After so many milliseconds without an event the page says that it is stale. */
const STALE_MS = 10_000;
/** A load that failed is tried again after so many milliseconds. */
const RETRY_MS = 10_000;

/**
 * What the last event said, and when it came; by how many milliseconds this browser's clock is
 * ahead of the gateway's.
 */
export const live = { status: null, currency: "USD", heardAt: 0, skew: 0 };

/** The gateway's clock, in milliseconds since 1970. */
export const now = () => Date.now() - live.skew;

/** The path with those members of `query` that are set. */
export function withQuery(path, query) {
  const set = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  const text = new URLSearchParams(set).toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The address of the story of a request. */
export const storyOf = (id) => `#requests/${encodeURIComponent(id)}`;

/** As fetch does it. An address that has a password in it is none that fetch takes. */
export const ask = (path, options) => fetch(location.origin + path, options);

/** The JSON of an answer. Throws an Error with the message of the listener. */
export async function getJson(path, options) {
  const response = await ask(path, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body;
}

const views = {};
/**
 * Adds a view: `defaults()` is the query where the address says nothing; `load(place)` resolves
 * with what `draw(loaded, place)` shows. What draw() returns are the milliseconds after which it is
 * to be loaded again; undefined: it does not change. A place has `name`, `id` and `query`.
 */
export const addView = (name, view) => {
  views[name] = view;
};

let place = { name: "", id: "", query: {} };
let loads = 0; // only what the last of them loads is drawn
let dueAt = Infinity; // when the next one is due

/** Loads and draws the view. */
export async function refresh() {
  loads += 1;
  const mine = loads;
  const { load, draw } = views[place.name];
  dueAt = Infinity;
  try {
    const loaded = await load(place);
    if (mine !== loads) return;
    dueAt = Date.now() + (draw(loaded, place) ?? Infinity);
    tell($("fault"), "");
    delete $(place.name).dataset.faulty;
  } catch (error) {
    if (mine !== loads) return;
    dueAt = Date.now() + RETRY_MS;
    tell($("fault"), error.message);
    // What stands there may be what another address has asked for.
    $(place.name).dataset.faulty = "";
  }
}

function placeOf(hash) {
  const [, word = "", path = "", query = ""] = /^#?([a-z]*)\/?([^?]*)\??(.*)$/s.exec(hash) ?? [];
  const name = Object.hasOwn(views, word) ? word : "now";
  const given = Object.fromEntries(new URLSearchParams(query));
  const id = new URLSearchParams(`id=${path}`).get("id");
  return { name, id, query: { ...views[name].defaults?.(), ...given } };
}

/** Marks the link to what is shown among those of a list. */
export function markCurrent(list, hash) {
  for (const anchor of list.querySelectorAll("a"))
    anchor.setAttribute("aria-current", anchor.hash === hash ? "page" : "false");
}

const formOf = (name) => document.querySelector(`form[data-view="${name}"]`);

/** Shows what the address says. */
export function follow() {
  // What was marked belongs to something that is no longer shown.
  const selection = document.getSelection();
  if (!selection.isCollapsed) selection.removeAllRanges();
  const before = place;
  place = placeOf(location.hash);
  for (const name of Object.keys(views)) $(name).hidden = name !== place.name;
  markCurrent($("views"), `#${place.name}`);
  for (const field of formOf(place.name)?.elements ?? [])
    if (field.type === "radio") field.checked = field.value === place.query[field.name];
    else if (field.name) field.value = place.query[field.name] ?? "";
  // Who clicked far below is led to what it opens.
  if (place.name !== before.name || place.id !== before.id) window.scrollTo(0, 0);
  refresh();
}

function applyForm(event) {
  event.preventDefault();
  const { currentTarget: form, target } = event;
  // A date is typed digit by digit, and holds when Enter is pressed.
  if (event.type === "change" && target.type === "date") return;
  const fields = [...new FormData(form)].map(([field, value]) => [field, value.trim()]);
  const query = Object.fromEntries(fields);
  location.hash = withQuery(`#${form.dataset.view}`, query);
}

/** The line in the head of the page. */
function tellState() {
  if (live.status === null) return;
  const { status, workers } = live.status;
  const isStale = Date.now() - live.heardAt > STALE_MS;
  const text = isStale ? "the gateway does not answer" : `${status}, ${plural(workers, "worker")}`;
  tell($("state"), text, isStale || status !== "serving" ? "bad" : "ok");
}

let source;
/** Listens to events, and calls `onFirst` after the first one. A page that nobody sees does not. */
function listen(onFirst) {
  source?.close();
  source = new EventSource("/events");
  source.onmessage = ({ data }) => {
    const { time, status, currency } = JSON.parse(data);
    const isFirst = live.status === null;
    live.status = status;
    live.currency = currency;
    live.heardAt = Date.now();
    live.skew = live.heardAt - time;
    tellState();
    if (isFirst) onFirst();
    else if (live.heardAt >= dueAt) refresh();
  };
  // A connection that breaks comes again by itself; one that was refused does not.
  source.onerror = ({ target }) => {
    const isRefused = target === source && target.readyState === EventSource.CLOSED;
    if (isRefused) setTimeout(listen, 3_000, onFirst);
  };
}

/** Starts the cycle. */
export function start(onFirst) {
  for (const form of document.querySelectorAll("form[data-view]")) {
    form.addEventListener("submit", applyForm);
    form.addEventListener("change", applyForm);
  }
  window.addEventListener("hashchange", follow);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) source.close();
    else listen(onFirst);
  });
  setInterval(tellState, 1_000);
  listen(onFirst);
}
