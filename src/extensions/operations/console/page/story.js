// The whole story of a request id: what was asked (no content), how it ended, each attempt on a line
// of time, what it cost. What runs or ended lately is in memory; older requests are in the books.
import { $, clearSelection, fill, h, link, numeric, table, tone } from "./dom.js";
import { findInBooks } from "./from-books.js";
import { now, onEvent } from "./live.js";
import { getJson, view, withQuery } from "./net.js";
import { isShown } from "./parts.js";
import { exactMoney, known, moment, number, plural, reason, requestState, span } from "./words.js";

let shown = ""; // the id
let isRunning = false;

export function hideStory() {
  shown = "";
  $("story").hidden = true;
}

const back = () => h("p", link("#requests", "← All requests"));

/** The requests with this id: from memory, else from the books. */
async function findRequests(id) {
  const { requests } = await getJson(withQuery("/requests", { id, limit: 100 }));
  const exact = requests.filter((entry) => entry.id === id);
  return exact.length > 0 ? exact : await findInBooks(id);
}

const story = view({
  load: findRequests,
  draw(entries, id) {
    isRunning = entries.some(({ ended }) => ended === null);
    const nothing = () =>
      `Nothing is known of ${id}. It is neither among the last requests nor in the books; one that was refused long ago is in the access log only.`;
    const found =
      entries.length > 0 ? entries.map(storyElement) : h("p", { class: "card" }, nothing());
    fill($("story"), back(), found);
  },
  fail: (message) => fill($("story"), back(), h("p", { class: "card bad" }, message)),
});

export async function showStory(id) {
  const isNew = shown !== id;
  shown = id;
  $("story").hidden = false;
  if (isNew) {
    clearSelection();
    fill($("story"), h("p", { class: "card empty" }, "Looking …"));
  }
  await story(id);
  if (isNew && shown === id) $("story").focus();
}

/** How it ended, in a sentence. */
function sentence(entry) {
  const { ended, outcome, code, model, provider, duration_ms: ms } = entry;
  if (ended === null) return `It has been running for ${span(now() - entry.started)}.`;
  if (outcome === "ok")
    return `${model ?? "The gateway"} (${provider ?? "–"}) answered in ${span(ms)}.`;
  if (outcome === "cancelled") return `The client left after ${span(ms)}.`;
  const why = code === null ? "" : `: ${reason(code)}`;
  return outcome === "5xx" ? `It failed after ${span(ms)}${why}.` : `It was refused${why}.`;
}

function askedText({ asked, stream }) {
  const mode = stream ? "as a stream" : "as a whole";
  if (asked === null) return stream === null ? "–" : mode;
  const { messages, tools, thinking, format, max_tokens: most, temperature } = asked;
  const parts = [
    plural(messages, "message"),
    tools > 0 && plural(tools, "tool"),
    thinking && "thinking",
    format,
    most !== null && `at most ${number(most)} tokens`,
    temperature !== null && `temperature ${number(temperature, 2)}`,
    mode,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Names and what is known by them: a dash is not shown. */
function facts(rows) {
  const isKnown = ([, value]) => value !== "–";
  const item = ([name, value]) => h("div", h("dt", name), h("dd", { "data-figure": name }, value));
  return h("dl", { class: "facts" }, rows.filter(isKnown).map(item));
}

const card = (title, ...children) => h("section", { class: "card" }, h("h2", title), children);

const same = (text) => text;
const filtered = (name, value) =>
  known(value, () => link(withQuery("#requests", { [name]: value }), value));

/** The story of a request, from memory or of the books. */
export function storyElement(entry) {
  const manage = (key) => [
    filtered("key", key),
    " ",
    link(withQuery("#keys", { find: key }), "manage"),
  ];
  return h(
    "article",
    { class: "story" },
    h(
      "div",
      { class: "card" },
      h("h2", { class: "title id", "data-figure": "Request id" }, entry.id),
      h("p", tone(requestState(entry)), " · ", sentence(entry)),
    ),
    h(
      "div",
      { class: "card" },
      facts([
        ["Account", filtered("account", entry.account)],
        ["Key", known(entry.key, manage)],
        ["Asked for", filtered("model", entry.asked_model)],
        ["Served by", known(entry.model, (model) => `${model} (${entry.provider ?? "–"})`)],
        ["What was asked", askedText(entry)],
        ["Path", known(entry.path, same)],
        ["Began", moment(entry.started)],
        ["Ended", known(entry.ended, moment)],
        ["First token after", known(entry.first_token_ms, span)],
        ["Tokens a second", tokenRate(entry)],
        ["Finish reason", known(entry.finish_reason, same)],
        ["Error code", filtered("code", entry.code)],
        ["Field to blame", known(entry.param, same)],
      ]),
    ),
    attemptsOf(entry),
    entry.cost !== null && receiptOf(entry),
  );
}

/** How fast tokens came after the first; of a whole reply all come at once. */
function tokenRate(entry) {
  const { completion_tokens: tokens, duration_ms: ms, first_token_ms: first } = entry;
  const rest = entry.stream ? ms - first : ms;
  return tokens > 0 && rest > 0 ? number((1000 * tokens) / rest, 1) : "–";
}

/** Per million tokens, as they were when the request began. */
const pricesText = (prices) =>
  Object.entries(prices)
    .filter(([, price]) => price !== null)
    .map(([name, price]) => `${name} ${price}`)
    .join(", ");

function receiptOf(entry) {
  const { prompt_tokens: prompt, cached_tokens: cached, usage_source: source } = entry;
  const { completion_tokens: tokens, reasoning_tokens: reasoning } = entry;
  const written = entry.cache_write_tokens;
  const writes = written > 0 ? `, ${number(written)} of the new written to the cache` : "";
  const estimated = source === "estimated" ? " (estimated)" : "";
  return card(
    "Receipt",
    facts([
      [
        "Prompt tokens",
        `${number(prompt - cached)} new, ${number(cached)} cached${writes}${estimated}`,
      ],
      [
        "Completion tokens",
        `${number(tokens)}, ${number(reasoning)} of them reasoning${estimated}`,
      ],
      ["Cost", h("b", exactMoney(entry.cost, entry.currency))],
      ["Prices", known(entry.prices, pricesText)],
      ["Usage record", known(entry.usage_id, same)],
    ]),
  );
}

const OUTCOME_TONES = { completed: "ok", cancelled: "idle" };

/** When an attempt was, of the whole time of the request. */
const track = ({ from, total, duration_ms: width }) =>
  h(
    "svg",
    {
      class: "track",
      viewBox: `0 0 ${total} 1`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    h("rect", { x: from, width, height: 1 }),
  );

const ATTEMPTS = [
  { name: "Model", of: ({ model, provider }) => `${model} (${provider})` },
  {
    name: "Outcome",
    of: ({ outcome }) => tone({ tone: OUTCOME_TONES[outcome] ?? "bad", text: reason(outcome) }),
  },
  {
    name: "Answer",
    kind: "wide",
    of: ({ status, path, detail }) => [status, path, detail].filter(Boolean).join(" "),
  },
  { name: "From the beginning to the end", kind: "wide", of: track },
  numeric("Took", ({ duration_ms: ms }) => span(ms)),
];

/** Attempts one after the other. What is left of the whole time are the waits between them. */
function attemptsOf({ attempts, asked, outcome, duration_ms: duration }) {
  if (attempts.length === 0) {
    if (asked === null || outcome !== "5xx") return null;
    const text = "No provider was asked: every model that could serve was failing, and left alone.";
    return card("No attempt", h("p", text));
  }
  const busy = attempts.reduce((sum, { duration_ms: ms }) => sum + ms, 0);
  const total = Math.max(1, duration ?? busy, busy);
  const wait = (total - busy) / Math.max(1, attempts.length - 1);
  let at = 0;
  const rows = attempts.map((attempt) => {
    const from = at;
    at += attempt.duration_ms + wait;
    return { ...attempt, from, total };
  });
  const title = attempts.length === 1 ? "One attempt" : `${number(attempts.length)} attempts`;
  return card(title, table(ATTEMPTS, rows, ""));
}

onEvent(() => {
  if (isShown("requests") && shown !== "" && isRunning) showStory(shown);
});
