// The tables of Now: who is refused, models, accounts, aliases. Long ones begin with the most
// interesting rows.
import { fillFirst, h, link, meter, numeric, soft, table, tone } from "./dom.js";
import { live, now } from "./live.js";
import { storyOf, withQuery } from "./net.js";
import { refusedIn, refusedRequests, requestsIn, whyOf } from "./verdict.js";
import {
  ago,
  compact,
  known,
  modelState,
  money,
  number,
  percent,
  rate,
  span,
  when,
} from "./words.js";

const REFUSED = [
  {
    name: "Who",
    of: ({ account, key }) => [
      account ?? "nobody: no valid key",
      key !== null && h("span", { class: "soft id" }, link(withQuery("#keys", { find: key }), key)),
    ],
  },
  {
    name: "Why",
    kind: "wide",
    of: (row) => {
      const text = `${row.status}: ${whyOf(row)}`;
      return tone({ tone: row.status >= 500 ? "bad" : "warn", text });
    },
  },
  numeric("Requests", ({ count }) => number(count)),
  { name: "Since", of: ({ since }) => when(since, now()) },
  { name: "Last", of: ({ last }) => ago(now() - last) },
  { name: "", of: (row) => link(refusedRequests(row), "Requests") },
];

export const drawRefused = ({ refusals }) =>
  fillFirst("refused", refusals, (rows) =>
    table(REFUSED, rows, "Nobody was refused, and nothing failed."),
  );

/** A column of the figures of a model, which has none if nobody asked for it. */
const figure = (name, text) => numeric(name, (row) => (row.figures ? text(row.figures, row) : "–"));
const seconds = (value) => known(value, () => span(1000 * value));

const MODELS = [
  {
    name: "Model",
    of: ({ model, provider, breaker }) =>
      breaker ? [link(withQuery("#requests", { model }), model), soft(provider)] : "other models",
  },
  {
    name: "State",
    of: (row) => {
      if (!row.breaker) return "–";
      const state = tone(modelState(row));
      state.dataset.model = row.model;
      return state;
    },
  },
  figure("Requests", ({ requests }) => number(requests)),
  figure("Faults", ({ faults, attempts }) => percent(faults, attempts)),
  figure("First token, p50 and p95", ({ first_token: { p50, p95 } }) =>
    p50 === null ? "–" : `${seconds(p50)}, ${seconds(p95)}`,
  ),
  figure("Tokens a second", ({ stream_tokens: tokens, stream_ms: ms }) =>
    ms > 0 ? rate((1000 * tokens) / ms) : "–",
  ),
  figure(
    "Tokens in, out",
    (row) => `${compact(row.prompt_tokens)}, ${compact(row.completion_tokens)}`,
  ),
  figure("Cost an hour", ({ cost }, { hours }) =>
    hours > 0 ? money(cost / hours, live.status.currency) : "–",
  ),
  { name: "Last fault", kind: "wide", of: faultText },
];

function faultText({ fault, breaker }) {
  if (!fault) return breaker?.last_fault ?? "none";
  const { request_id: id, time, status, code, detail } = fault;
  const what = status === null ? code : `${code} (${status})`;
  return [
    link(storyOf(id), `${ago(now() - time)}: ${what}`),
    detail !== null && soft(`“${detail}”`),
  ];
}

/** Failing models first, then the busiest; last those that the history counts together. */
export function drawModels({ models, faults, seconds: all }) {
  const hours = all / 3_600;
  const rows = live.status.models.map((model) => ({
    ...model,
    hours,
    figures: models.find((row) => row.model === model.model),
    fault: faults.findLast((fault) => fault.model === model.model),
  }));
  const weight = ({ breaker, figures }) =>
    (breaker.state === "closed" ? 0 : 1e12) + (figures?.attempts ?? 0);
  rows.sort((a, b) => weight(b) - weight(a));
  const others = models.filter(({ other }) => other).map((figures) => ({ figures, hours }));
  const draw = (shown) => table(MODELS, shown, "There are no models.");
  fillFirst("models", [...rows, ...others], draw);
}

function accountName({ account, other }) {
  if (other) return "all others";
  const query = account === null ? { status: "401" } : { account };
  return link(withQuery("#requests", query), account ?? "nobody (no valid key)");
}

export function drawAccounts({ accounts }) {
  const sorted = accounts.toSorted((a, b) => requestsIn(b) - requestsIn(a));
  const busiest = sorted.length === 0 ? 0 : requestsIn(sorted[0]);
  const refusedText = (row) => {
    const refused = refusedIn(row);
    return refused === 0 ? "0" : `${number(refused)} (${percent(refused, requestsIn(row))})`;
  };
  const columns = [
    { name: "Account", of: (row) => [accountName(row), meter(requestsIn(row) / busiest)] },
    numeric("Requests", (row) => number(requestsIn(row))),
    numeric("Refused", refusedText),
    numeric("Failed", (row) => number(row["5xx"])),
    numeric("Tokens", (row) => compact(row.prompt_tokens + row.completion_tokens)),
    numeric("Cost", ({ cost }) => money(cost, live.status.currency)),
  ];
  const draw = (rows) => table(columns, rows, "No account has asked for anything.");
  fillFirst("accounts", sorted, draw);
}

/** One alias: the models that would be asked, by number; then those that are not, and why. */
function aliasElement({ alias, enabled, candidates }) {
  const stateOf = ({ model }) => live.status.models.find((each) => each.model === model);
  const isDead = (candidate) => {
    const { state, retry_ms: retryMs } = stateOf(candidate)?.breaker ?? {};
    return state === "open" && retryMs > 0;
  };
  const ranked = candidates.filter(({ rank }) => rank !== null);
  const asked = ranked.filter((candidate) => !isDead(candidate));
  const item = (sign, { model }, why) => h("li", h("b", sign), h("span", model, " ", why));
  const passed = (candidate) =>
    tone({ tone: "bad", text: `passed over, ${modelState(stateOf(candidate)).text}` });
  return h(
    "div",
    { class: "alias" },
    h("h3", alias, !enabled && h("small", " (disabled)")),
    asked.length === 0 && tone({ tone: "bad", text: "No model of this alias can answer now." }),
    h(
      "ol",
      { class: "order" },
      asked.map((candidate, at) => item(`${at + 1}.`, candidate, h("small", candidate.why))),
      ranked.filter(isDead).map((candidate) => item("–", candidate, passed(candidate))),
      candidates
        .filter(({ rank }) => rank === null)
        .map((candidate) => item("–", candidate, h("small", candidate.why))),
    ),
  );
}

export const drawAliases = () =>
  fillFirst("aliases", live.status.aliases, (aliases) => aliases.map(aliasElement));
