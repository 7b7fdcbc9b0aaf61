// What the gateway is at the moment: events that come every few seconds. A page that nobody sees
// listens to nothing.
import { $, tell } from "./dom.js";
import { number } from "./words.js";

/** After so many milliseconds without an event the page says that it is stale. */
const STALE_MS = 10_000;

/**
 * What the last events said, null before the first; when the last came; by how many milliseconds
 * this browser's clock is ahead of the gateway's.
 */
export const live = { status: null, address: "", heardAt: 0, skew: 0 };

const listeners = [];
/** Calls a function after each event. */
export const onEvent = (listener) => listeners.push(listener);

/** The gateway's clock, in milliseconds since 1970. */
export const now = () => Date.now() - live.skew;

let source;
export function listen() {
  source?.close();
  source = new EventSource("/events");
  source.onmessage = ({ data }) => {
    const { status, address, time, ...changing } = JSON.parse(data);
    live.status = { ...(status ?? live.status), ...changing };
    live.address = address;
    live.heardAt = Date.now();
    live.skew = live.heardAt - time;
    tellState();
    for (const listener of listeners) listener();
  };
  // A connection that breaks comes again by itself; one that was refused does not.
  source.onerror = ({ target }) => {
    if (target === source && target.readyState === EventSource.CLOSED) setTimeout(listen, 3_000);
  };
}

/** What is wrong with the gateway itself, in words. */
export function gatewayFaults() {
  const { spend, usage, limits } = live.status;
  return [
    spend?.fault && "The spend log cannot be written, so requests are refused.",
    usage?.fault && "Usage records wait: the usage sync fails.",
    limits?.fault && "The store of the limits cannot be asked.",
  ].filter(Boolean);
}

export const isStale = () => Date.now() - live.heardAt > STALE_MS;

/** The line in the head of the page. */
function tellState() {
  if (live.status === null) return;
  const { status, workers } = live.status;
  if (isStale()) {
    const seconds = Math.floor((Date.now() - live.heardAt) / STALE_MS) * 10;
    tell($("state"), `stale: last heard ${number(seconds)} s ago`, "bad");
    return;
  }
  const processes = workers > 1 ? `, ${workers} processes` : "";
  const isWell = status === "serving" && gatewayFaults().length === 0;
  tell($("state"), `${status}${processes}`, isWell ? "ok" : "bad");
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) source?.close();
  else listen();
});
setInterval(tellState, 1_000);
