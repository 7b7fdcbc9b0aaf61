// The whole story of a request: what was asked (no content), how it ended, each attempt, and what it
// cost.
import { h, id, link, meter, table, tone } from "./dom.js";
import { now, withQuery } from "./views.js";
import { exactMoney, known, number, plural, reason, requestState, span, when } from "./words.js";

/** How it ended, in a sentence. */
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

function askedText({ messages, tools, thinking, format, max_tokens: most, temperature }) {
  const parts = [
    plural(messages, "message"),
    tools > 0 && plural(tools, "tool"),
    thinking && "thinking",
    format,
    most !== null && `at most ${number(most)} tokens`,
    temperature !== null && `temperature ${number(temperature, 2)}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Names and what is known by them: null and undefined are not shown. */
function facts(rows) {
  const isKnown = ([, value]) => value !== null && value !== undefined;
  const item = ([name, value, shown = String]) =>
    h("div", h("dt", name), h("dd", { "data-figure": name }, shown(value)));
  return h("dl", { class: "facts" }, rows.filter(isKnown).map(item));
}

const card = (title, ...children) => h("section", { class: "card" }, h("h2", title), children);

const filtered = (name) => (value) => link(withQuery("#requests", { [name]: value }), value);

/** How fast tokens came after the first; of a whole reply all come at once. */
function tokenRate({ stream, completion_tokens: tokens, duration_ms: ms, first_token_ms: first }) {
  const rest = stream === false ? ms : ms - first;
  return tokens > 0 && rest > 0 ? number((1000 * tokens) / rest, 1) : null;
}

const manageable = (key) => [
  filtered("key")(key),
  " ",
  link(withQuery("#keys", { find: key }), "manage"),
];

const ATTEMPTS = [
  ["Model", ({ model, provider }) => (provider ? `${model} (${provider})` : model)],
  [
    "Outcome",
    ({ outcome }) => {
      const tones = { completed: "ok", ok: "ok", cancelled: "idle" };
      return tone({ tone: tones[outcome] ?? "bad", text: reason(outcome) });
    },
  ],
  [
    "Answer",
    ({ status, path, detail }) => [status, path, detail].filter(Boolean).join(" "),
    "wide",
  ],
  ["Took", ({ duration_ms: ms, share }) => [span(ms), meter(share)], "n"],
];

function attemptsOf({ attempts, asked, outcome, duration_ms: duration }) {
  if (attempts.length === 0) {
    if (!asked || outcome !== "5xx") return null;
    const text = "No provider was asked: every model that could serve was failing, and left alone.";
    return card("No attempt", h("p", text));
  }
  const rows = attempts.map((attempt) => ({ ...attempt, share: attempt.duration_ms / duration }));
  return card(plural(attempts.length, "attempt"), table(ATTEMPTS, rows, ""));
}

/** Per million tokens, as they were when the request began. */
const pricesText = (prices) =>
  Object.entries(prices)
    .filter(([, price]) => price !== null)
    .map(([name, price]) => `${name} ${price}`)
    .join(", ");

function receiptOf(entry) {
  const { prompt_tokens: prompt, cached_tokens: cached, cache_write_tokens: written } = entry;
  const { completion_tokens: tokens, reasoning_tokens: reasoning } = entry;
  const writes = written > 0 ? `, ${number(written)} of the new written to the cache` : "";
  const estimated = entry.usage_source === "estimated" ? " (estimated)" : "";
  const promptText = `${number(prompt - cached)} new, ${number(cached)} cached${writes}`;
  const tokensText = `${number(tokens)}, ${number(reasoning)} of them reasoning`;
  return card(
    "Receipt",
    facts([
      ["Prompt tokens", promptText + estimated],
      ["Completion tokens", tokensText + estimated],
      ["Cost", exactMoney(entry.cost, entry.currency)],
      ["Prices", entry.prices, pricesText],
      ["Usage record", entry.usage_id],
    ]),
  );
}

/** The story of a request, from memory or of the books. */
export const storyElement = (entry) =>
  h(
    "article",
    { class: "story" },
    h(
      "div",
      { class: "card" },
      h("h2", { class: "title", "data-figure": "Request id" }, id(entry.id)),
      h("p", tone(requestState(entry)), " · ", sentence(entry)),
    ),
    card(
      "Request",
      facts([
        ["Account", entry.account, filtered("account")],
        ["Key", entry.key, manageable],
        ["Asked for", entry.asked_model, filtered("model")],
        ["Served by", entry.model, (model) => `${model} (${known(entry.provider)})`],
        ["What was asked", entry.asked, askedText],
        ["Streamed", entry.stream, (stream) => (stream ? "yes" : "no")],
        ["Path", entry.path],
        ["Began", entry.started, when],
        ["Ended", entry.ended, when],
        ["First token after", entry.first_token_ms, span],
        ["Tokens a second", tokenRate(entry)],
        ["Finish reason", entry.finish_reason],
        ["Error code", entry.code, filtered("code")],
        ["Field to blame", entry.param],
      ]),
    ),
    attemptsOf(entry),
    entry.cost && receiptOf(entry),
  );
