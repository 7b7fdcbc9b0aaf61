// The whole story of a request id: what was asked (no content), how it ended, each attempt on a line
// of time, what it cost. What runs or ended lately is in memory; older requests are in the books.
import { $, button, clearSelection, fill, h, link, tone } from "./dom.js";
import { now, onEvent } from "./live.js";
import { findInBooks } from "./from-books.js";
import { getJson, withQuery } from "./net.js";
import { isShown } from "./parts.js";
import { exactMoney, moment, number, plural, reason, requestState, span } from "./words.js";

let shown = ""; // the id
let isRunning = false;

export function hideStory() {
  shown = "";
  $("story").hidden = true;
}

export async function showStory(id) {
  const isNew = shown !== id;
  shown = id;
  const place = $("story");
  place.hidden = false;
  if (isNew) fill(place, h("p", { class: "card empty" }, "Looking …"));
  try {
    const entries = await find(id);
    if (shown !== id) return;
    if (isNew) clearSelection();
    isRunning = entries.some(({ ended }) => ended === null);
    fill(place, h("p", {}, link("#requests", "← All requests")), entries.map(storyOf));
    if (entries.length === 0) place.append(h("p", { class: "card" }, nothingText(id)));
  } catch (error) {
    if (shown !== id) return;
    fill(place, h("p", { class: "card bad" }, error.message));
  }
  if (isNew) place.focus();
}

const nothingText = (id) =>
  `Nothing is known of ${id}. It is neither among the last requests nor in the books; one that was refused long ago is in the access log only.`;

/** The requests with this id: from memory, else from the books. */
async function find(id) {
  const { requests } = await getJson(withQuery("/requests", { id, limit: 100 }));
  const exact = requests.filter((entry) => entry.id === id);
  if (exact.length > 0) return exact;
  return await findInBooks(id);
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
  if (asked === null) return stream === null ? null : streamText(stream);
  const { messages, tools, thinking, format, max_tokens: most, temperature } = asked;
  return [
    plural(messages, "message"),
    tools > 0 ? plural(tools, "tool") : null,
    thinking ? "thinking" : null,
    format,
    most === null ? null : `at most ${number(most)} tokens`,
    temperature === null ? null : `temperature ${number(temperature, 2)}`,
    streamText(stream),
  ]
    .filter((part) => part !== null)
    .join(", ");
}
const streamText = (stream) => (stream ? "as a stream" : "as a whole");

function facts(rows) {
  const isKnown = ([, value]) => value !== null && value !== undefined && value !== "";
  const item = ([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return h("dl", { class: "facts" }, rows.filter(isKnown).map(item));
}

const filtered = (name, value, text = value) =>
  value === null ? null : link(withQuery("#requests", { [name]: value }), text);

function storyOf(entry) {
  const { tone: name, text } = requestState(entry);
  const copy = (event) => {
    const done = navigator.clipboard?.writeText(entry.id);
    done?.then(() => {
      event.target.textContent = "Copied";
    });
  };
  const key =
    entry.key === null
      ? null
      : [
          filtered("key", entry.key),
          " ",
          link(`#keys?find=${encodeURIComponent(entry.key)}`, "manage"),
        ];
  return h(
    "article",
    { class: "story" },
    h(
      "div",
      { class: "card" },
      h(
        "div",
        { class: "head" },
        h("h2", { class: "title id" }, entry.id),
        button("Copy the id", copy, { class: "small" }),
      ),
      h("p", {}, tone(name, text), " · ", sentence(entry)),
    ),
    h(
      "div",
      { class: "card" },
      facts([
        ["Account", filtered("account", entry.account)],
        ["Key", key],
        ["Asked for", filtered("model", entry.asked_model)],
        ["Served by", entry.model === null ? null : `${entry.model} (${entry.provider ?? "–"})`],
        ["What was asked", askedText(entry)],
        ["Path", entry.path],
        ["Began", moment(entry.started)],
        ["Ended", entry.ended === null ? null : moment(entry.ended)],
        ["First token after", entry.first_token_ms === null ? null : span(entry.first_token_ms)],
        ["Finish reason", entry.finish_reason],
        ["Error code", entry.code === null ? null : filtered("code", entry.code)],
        ["Field to blame", entry.param],
      ]),
    ),
    entry.attempts.length === 0 ? noAttempts(entry) : attemptsOf(entry),
    entry.cost === null ? null : receiptOf(entry),
  );
}

/** A request that was let in, and for which no provider was asked. */
function noAttempts({ asked, outcome }) {
  if (asked === null || outcome !== "5xx") return null;
  const text = "No provider was asked: every model that could serve was failing, and left alone.";
  return h("section", { class: "card" }, h("h2", {}, "No attempt"), h("p", {}, text));
}

/** Per million tokens, as they were when the request began. */
const pricesText = (prices) =>
  Object.entries(prices)
    .filter(([, price]) => price !== null)
    .map(([name, price]) => `${name} ${price}`)
    .join(", ");

function receiptOf(entry) {
  const { prompt_tokens: prompt, cached_tokens: cached, usage_source: source } = entry;
  const written = entry.cache_write_tokens;
  const writes = written > 0 ? `, ${number(written)} of the new written to the cache` : "";
  const estimated = source === "estimated" ? " (estimated: the provider sent no figures)" : "";
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Receipt"),
    facts([
      [
        "Prompt tokens",
        `${number(prompt - cached)} new, ${number(cached)} cached${writes}${estimated}`,
      ],
      [
        "Completion tokens",
        `${number(entry.completion_tokens)}, ${number(entry.reasoning_tokens)} of them reasoning`,
      ],
      ["Cost", h("b", {}, exactMoney(entry.cost, entry.currency))],
      ["Prices", entry.prices && pricesText(entry.prices)],
      ["Usage record", entry.usage_id],
    ]),
  );
}

/** Attempts one after the other. What is left of the whole time are the waits between them. */
function attemptsOf({ attempts, duration_ms: duration, first_token_ms: first }) {
  const busy = attempts.reduce((sum, { duration_ms: ms }) => sum + ms, 0);
  const total = Math.max(1, duration ?? busy, busy);
  const gaps = Math.max(1, attempts.length - 1);
  const wait = attempts.length > 1 ? Math.max(0, total - busy) / gaps : 0;
  let at = 0;
  const items = attempts.map((attempt, index) => {
    const from = at;
    at += attempt.duration_ms + wait;
    const isLast = index === attempts.length - 1;
    return attemptItem(attempt, { from, total, first: isLast ? first : null });
  });
  return h(
    "section",
    { class: "card" },
    h("h2", {}, attempts.length === 1 ? "One attempt" : `${number(attempts.length)} attempts`),
    h("ol", { class: "attempts" }, items),
    h(
      "p",
      { class: "scale" },
      h("span", {}, "0"),
      h("span", {}, span(total / 2)),
      h("span", {}, span(total)),
    ),
  );
}

const OUTCOME_TONES = { completed: "ok", cancelled: "idle" };

function attemptItem(attempt, { from, total, first }) {
  const { model, provider, outcome, duration_ms: ms, status, path, detail } = attempt;
  const bar = h("i");
  bar.style.left = `${(100 * from) / total}%`;
  bar.style.width = `${(100 * ms) / total}%`;
  const mark =
    first === null || outcome !== "completed"
      ? null
      : h("b", { title: `first token after ${span(first)}` });
  if (mark) mark.style.left = `${(100 * Math.min(first, total)) / total}%`;
  const answer = [status, path].filter((part) => part !== undefined).join(" ");
  const name = OUTCOME_TONES[outcome] ?? "bad";
  const text = outcome === "completed" ? "completed" : reason(outcome);
  return h(
    "li",
    { class: "attempt", "data-tone": name },
    h(
      "p",
      {},
      h("b", {}, model),
      ` (${provider}) `,
      tone(name, text),
      ` ${span(ms)}`,
      mark ? h("small", {}, `, first token after ${span(first)}`) : null,
    ),
    h("div", { class: "track", "aria-hidden": "true" }, bar, mark),
    answer === "" && !detail
      ? null
      : h("blockquote", {}, answer === "" ? null : h("small", {}, `${answer} `), detail ?? ""),
  );
}

onEvent(() => {
  if (isShown("requests") && shown !== "" && isRunning) showStory(shown);
});
