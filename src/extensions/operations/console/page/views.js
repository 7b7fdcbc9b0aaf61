// The views of the page, their URL fragments, and the one cycle that loads and draws them. A
// fragment is #VIEW, #VIEW?NAME=VALUE or #VIEW/ID; its query mirrors the view's form. The gateway
// sends its status as an event every few seconds, which also triggers reloads that are due.
import { $, tell } from "./dom.js";
import { plural } from "./words.js";

/** Milliseconds without an event after which the page says that the gateway does not answer. */
const STALE_MS = 10_000;
/** Milliseconds before a failed load is tried again. */
const RETRY_MS = 10_000;

/**
 * The content of the last event and when it arrived, by performance.now(): a correction of this
 * browser's clock must not keep the page from reloading. `skew`: how far that clock is ahead of the
 * gateway's, in milliseconds.
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

/** The URL fragment of the details of a request. */
export const storyOf = (id) => `#requests/${encodeURIComponent(id)}`;

/** Calls fetch with an absolute URL without credentials: fetch rejects URLs that have them. */
export const ask = (path, options) => fetch(location.origin + path, options);

/** The JSON of an answer. Throws an Error with the listener's error message. */
export async function getJson(path, options) {
  const response = await ask(path, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body;
}

const views = {};
/**
 * Adds a view. `defaults()`: the query members that the URL need not state. `load(place)` resolves
 * with the data for `draw(loaded, place)`, which returns the milliseconds until the next load;
 * undefined: never. A place has `name`, `id` and `query`.
 */
export const addView = (name, view) => {
  views[name] = view;
};

let place = { name: "", id: "", query: {} };
let loads = 0; // counts loads: only the result of the latest one is drawn
let dueAt = Infinity; // when the next load is due

/** Loads and draws the current view. */
export async function refresh() {
  loads += 1;
  const mine = loads;
  const { load, draw } = views[place.name];
  dueAt = Infinity;
  try {
    const loaded = await load(place);
    if (mine !== loads) return;
    dueAt = performance.now() + (draw(loaded, place) ?? Infinity);
    tell($("fault"), "");
    delete $(place.name).dataset.faulty;
  } catch (error) {
    if (mine !== loads) return;
    dueAt = performance.now() + RETRY_MS;
    tell($("fault"), error.message);
    // The content that is still shown may belong to another query.
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

/** Marks the link of a list that leads to the current view or page. */
export function markCurrent(list, hash) {
  for (const anchor of list.querySelectorAll("a"))
    anchor.setAttribute("aria-current", anchor.hash === hash ? "page" : "false");
}

const formOf = (name) => document.querySelector(`form[data-view="${name}"]`);

/** Shows the view of the current URL. */
export function follow() {
  // A selection would keep fill() from replacing the old content.
  const selection = document.getSelection();
  if (!selection.isCollapsed) selection.removeAllRanges();
  const before = place;
  place = placeOf(location.hash);
  for (const name of Object.keys(views)) $(name).hidden = name !== place.name;
  markCurrent($("views"), `#${place.name}`);
  for (const field of formOf(place.name)?.elements ?? [])
    if (field.type === "radio") field.checked = field.value === place.query[field.name];
    else if (field.name) field.value = place.query[field.name] ?? "";
  // The clicked link may have been far down the page.
  if (place.name !== before.name || place.id !== before.id) window.scrollTo(0, 0);
  refresh();
}

function applyForm(event) {
  event.preventDefault();
  const { currentTarget: form, target } = event;
  // A date changes with each digit that is typed: wait for Enter.
  if (event.type === "change" && target.type === "date") return;
  const fields = [...new FormData(form)].map(([field, value]) => [field, value.trim()]);
  const query = Object.fromEntries(fields);
  location.hash = withQuery(`#${form.dataset.view}`, query);
}

/** Updates the status line in the header of the page. */
function updateState() {
  if (live.status === null) return;
  const { status, workers } = live.status;
  const isStale = performance.now() - live.heardAt > STALE_MS;
  const text = isStale ? "the gateway does not answer" : `${status}, ${plural(workers, "worker")}`;
  tell($("state"), text, isStale || status !== "serving" ? "bad" : "ok");
}

let source;
/** Opens the event stream. Calls `onFirst` after the first event. */
function listen(onFirst) {
  source?.close();
  source = new EventSource("/events");
  source.onmessage = ({ data }) => {
    const { time, status, currency } = JSON.parse(data);
    const isFirst = live.status === null;
    live.status = status;
    live.currency = currency;
    live.heardAt = performance.now();
    live.skew = Date.now() - time;
    updateState();
    if (isFirst) onFirst();
    else if (live.heardAt >= dueAt) refresh();
  };
  // EventSource reconnects if a connection breaks, but not if the server answered with an error.
  source.onerror = async ({ target }) => {
    if (target !== source || target.readyState !== EventSource.CLOSED) return;
    const answer = await ask("/events", { method: "HEAD" }).catch(() => undefined);
    // A page that repeats a wrong password locks the operator out.
    if (answer?.status === 401) tell($("fault"), "The password is wrong. Reload this page.");
    else setTimeout(listen, 3_000, onFirst);
  };
}

/** Starts the page. While it is hidden, it receives no events. */
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
  setInterval(updateState, 1_000);
  listen(onFirst);
}
