// The details of a request: its parameters (no content), outcome, cost and attempts.
import { h, id, link, meter, table, tone } from "./dom.js";
import { now, withQuery } from "./views.js";
import {
  exactMoney,
  known,
  membersText,
  number,
  plural,
  reason,
  requestState,
  span,
  when,
} from "./words.js";

/** The outcome in a sentence. */
function sentence({ started, ended, outcome, code, model, provider, duration_ms: ms }) {
  if (ended === null) return `It has been running for ${span(now() - started)}.`;
  const why = code === null ? "" : `: ${reason(code)}`;
  const sentences = {
    ok: `${known(model)} (${known(provider)}) answered in ${span(ms)}.`,
    cancelled: `The client left after ${span(ms)}.`,
    "5xx": `It failed after ${span(ms)}${why}.`,
  };
  return sentences[outcome] ?? `It was refused${why}.`;
}

/** The members of an entry that are shown, if they are known. */
const FACTS = [
  "account",
  "key",
  "asked_model",
  "model",
  "provider",
  "asked",
  "stream",
  "path",
  "started",
  "ended",
  "first_token_ms",
  "finish_reason",
  "code",
  "param",
  "prompt_tokens",
  "cached_tokens",
  "cache_write_tokens",
  "completion_tokens",
  "reasoning_tokens",
  "usage_source",
  "cost",
  "prices",
  "usage_id",
];
/** Members whose value links to the requests with the same value, and the filter for that. */
const FILTERS = { account: "account", key: "key", asked_model: "model", code: "code" };

function factText(name, value, { currency }) {
  if (name in FILTERS) return link(withQuery("#requests", { [FILTERS[name]]: value }), value);
  if (name === "started" || name === "ended") return when(value);
  if (name === "cost") return exactMoney(value, currency);
  if (name.endsWith("_ms")) return span(value);
  if (typeof value === "number") return number(value);
  return typeof value === "object" ? membersText(value) : String(value);
}

function factsOf(entry) {
  const names = FACTS.filter((name) => (entry[name] ?? null) !== null);
  const item = (name) =>
    h(
      "div",
      h("dt", reason(name)),
      h("dd", { "data-figure": name }, factText(name, entry[name], entry)),
    );
  return h("dl", { class: "facts" }, names.map(item));
}

const OUTCOMES = { completed: "ok", ok: "ok", cancelled: "idle" };

const ATTEMPTS = [
  ["Model", "model"],
  ["Provider", "provider"],
  ["Outcome", ({ outcome }) => tone({ tone: OUTCOMES[outcome] ?? "bad", text: reason(outcome) })],
  [
    "Answer",
    ({ status, path, detail }) => [status, path, detail].filter(Boolean).join(" "),
    "wide",
  ],
  ["Took", ({ duration_ms: ms, share }) => [span(ms), meter(share)], "n"],
];

const NO_ATTEMPT = "The gateway asked no provider.";

/** The details of a request, from the history or the books. */
export function storyElement(entry) {
  const attempts = entry.attempts.map((attempt) => ({
    ...attempt,
    share: attempt.duration_ms / entry.duration_ms,
  }));
  const title = h("h2", { class: "title", "data-figure": "id" }, id(entry.id));
  const end = h("p", tone(requestState(entry)), " · ", sentence(entry));
  return h(
    "article",
    { class: "story" },
    h("div", { class: "card" }, title, end),
    h("div", { class: "card" }, factsOf(entry)),
    h(
      "div",
      { class: "card" },
      h("h2", plural(attempts.length, "attempt")),
      table(ATTEMPTS, attempts, NO_ATTEMPT),
    ),
  );
}
