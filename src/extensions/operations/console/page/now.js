// The view Now: the verdict on the gateway's health, charts, and tables of refusals, models,
// accounts and aliases.
import { $, fill, h, id, link, meter, soft, table, tell, tone } from "./dom.js";
import { drawVerdict, refusedIn, refusedRequests, requestsIn, whyOf } from "./verdict.js";
import { addView, getJson, live, now, storyOf, withQuery } from "./views.js";
import {
  ago,
  configurationText,
  known,
  modelState,
  money,
  number,
  percent,
  rate,
  span,
  when,
} from "./words.js";

/** The most models in a table or list: drawing thousands every few seconds stops the browser. */
const MOST_MODELS = 250;

const notShown = ({ length }) =>
  length > MOST_MODELS && h("p", `${number(length - MOST_MODELS)} further models are not shown.`);

const perMinute = (count, { seconds }) => (seconds > 0 ? (60 * count) / seconds : 0);
const inSeconds = (value) => known(value, () => span(1000 * value));
const streamRate = ({ stream_tokens: tokens, stream_ms: ms }) =>
  ms > 0 ? (1000 * tokens) / ms : null;

/** The charts: title, a function that gets the figure of a bin or range, and its format. */
const CHARTS = [
  ["Requests per minute", (row) => perMinute(requestsIn(row), row), rate],
  ["Refused and failed per minute", (row) => perMinute(refusedIn(row) + row["5xx"], row), rate],
  ["Provider faults per minute", (row) => perMinute(row.faults, row), rate],
  ["Median time to the first token", (row) => row.first_token.p50, inSeconds],
  ["Tokens per second in streams", streamRate, rate],
  ["Most requests in flight", (row) => row.in_flight, rate],
];

/** A bar for each bin. Bins without data are shaded. */
function bars({ bins, from, step }, title, figure, format) {
  const values = bins.map((bin) => (bin === null ? null : figure(bin)));
  const top = Math.max(...values);
  const bar = (value, at) => {
    const height = top > 0 ? value / top : 0;
    return h(
      "g",
      h("title", `${when(from + at * step)}: ${format(value)}`),
      h("rect", { class: bins[at] === null ? "unknown" : "space", x: at, width: 1, height: 1 }),
      h("rect", { x: at + 0.1, y: 1 - height, width: 0.8, height }),
    );
  };
  const label = `${title}: ${format(top)} at most`;
  const shape = { viewBox: `0 0 ${bins.length} 1`, preserveAspectRatio: "none" };
  return h("svg", { ...shape, role: "img", "aria-label": label }, values.map(bar));
}

const chart = (range, [title, figure, format]) =>
  h(
    "div",
    { class: "card chart" },
    h("h2", title),
    h("p", { class: "figure" }, format(figure({ ...range.total, seconds: range.seconds }))),
    bars(range, title, figure, format),
    h("p", { class: "ends" }, h("span", when(range.from)), h("span", when(range.to))),
  );

const REFUSED = [
  [
    "Who",
    ({ account, key }) => [
      account ?? "no valid key",
      key !== null && soft(link(withQuery("#keys", { find: key }), id(key))),
    ],
  ],
  [
    "Why",
    (row) =>
      tone({ tone: row.status >= 500 ? "bad" : "warn", text: `${row.status}: ${whyOf(row)}` }),
    "wide",
  ],
  ["Requests", (row) => link(refusedRequests(row), number(row.count)), "n"],
  ["Since", ({ since }) => when(since)],
  ["Last", ({ last }) => ago(now() - last)],
];

function faultText({ fault, breaker }) {
  if (!fault) return breaker.last_fault;
  const { request_id: request, time, code, detail } = fault;
  return [
    link(storyOf(request), `${ago(now() - time)}: ${code} (${known(fault.status)})`),
    detail && soft(`“${detail}”`),
  ];
}

const tokensOf = ({ prompt_tokens: prompt, completion_tokens: completion }) => prompt + completion;
/** The share of prompt tokens that came from the provider's cache. */
const hitRate = ({ cache_hit: hit = 0, cache_miss: miss = 0 } = {}) => percent(hit, hit + miss);
const costOf = ({ cost }) => money(cost, live.currency);

const MODELS = [
  ["Model", ({ model }) => link(withQuery("#requests", { model }), model)],
  ["Provider", "provider"],
  ["State", (row) => tone(modelState(row))],
  ["Requests", "requests", "n"],
  ["Faults", ({ faults, attempts }) => percent(faults, attempts), "n"],
  ["First token, p50", (row) => inSeconds(row.first_token.p50), "n"],
  ["p95", (row) => inSeconds(row.first_token.p95), "n"],
  ["Tokens per second", streamRate, "n"],
  ["Tokens", tokensOf, "n"],
  ["From cache", hitRate, "n"],
  ["Cost", costOf, "n"],
  ["Last fault", faultText, "wide"],
];

/** The figures of a model without requests. */
const UNUSED = {
  requests: 0,
  attempts: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cost: 0,
  first_token: {},
};

/** Failing models first, then the busiest. */
function modelRows({ models, faults }) {
  const rows = live.status.models.map((row) => ({
    ...UNUSED,
    ...models.find(({ model }) => model === row.model),
    ...row,
    fault: faults.find(({ model }) => model === row.model),
  }));
  const weight = ({ breaker, attempts }) => (breaker.state === "closed" ? 0 : 1e12) + attempts;
  return rows.sort((a, b) => weight(b) - weight(a));
}

function accountTable({ accounts }) {
  const rows = accounts.toSorted((a, b) => requestsIn(b) - requestsIn(a));
  const most = Math.max(...rows.map(requestsIn));
  const nameOf = ({ account, other }) => {
    if (other) return "all others";
    const query = account === null ? { status: "401" } : { account };
    return link(withQuery("#requests", query), account ?? "no valid key");
  };
  const columns = [
    ["Account", (row) => [nameOf(row), meter(requestsIn(row) / most)]],
    ["Requests", requestsIn, "n"],
    ["Refused", (row) => percent(refusedIn(row), requestsIn(row)), "n"],
    ["Failed", "5xx", "n"],
    ["Tokens", tokensOf, "n"],
    ["Cost", costOf, "n"],
  ];
  return table(columns, rows, "No account has sent a request.");
}

/** An alias: its models in order, the reason for each rank, and the share that each served. */
function aliasElement({ alias, enabled, candidates }, { requested }) {
  const { served = {}, ...caches } = requested.find(({ name }) => name === alias) ?? {};
  const requests = Object.values(served).reduce((sum, count) => sum + count, 0);
  const item = ({ model, rank, why }) => {
    // While workers take over a changed configuration, a model may have no row yet.
    const row = live.status.models.find((each) => each.model === model);
    const { state, retry_ms: retryMs } = row?.breaker ?? {};
    const isPassed = rank !== null && state !== "probing" && retryMs > 0;
    const passed = () => tone({ ...modelState(row), text: `skipped, ${modelState(row).text}` });
    const own = Object.hasOwn(served, model) ? served[model] : 0;
    const share = requests > 0 && `served ${percent(own, requests)}; `;
    const words = isPassed ? passed() : soft(share, why);
    return h("li", h("b", known(rank)), h("span", model, " ", words));
  };
  return [
    h("h3", alias, !enabled && " (disabled)"),
    h("ol", { class: "order" }, candidates.slice(0, MOST_MODELS).map(item)),
    notShown(candidates),
    requests > 0 && soft(`${hitRate(caches)} of its prompt tokens came from the provider's cache`),
  ];
}

addView("now", {
  defaults: () => ({ range: "15m" }),
  async load({ query }) {
    const ranges = ["15m", query.range];
    return await Promise.all(ranges.map((range) => getJson(withQuery("/history", { range }))));
  },
  draw([recent, range]) {
    drawVerdict(recent);
    const charts = CHARTS.map((each) => chart(range, each));
    fill($("charts"), charts);
    fill($("refused"), table(REFUSED, range.refusals, "No request was refused or failed."));
    const models = modelRows(range);
    const shown = table(MODELS, models.slice(0, MOST_MODELS), "There are no models.");
    fill($("models"), shown, notShown(models));
    fill($("accounts"), accountTable(range));
    fill(
      $("aliases"),
      live.status.aliases.map((alias) => aliasElement(alias, range)),
    );
    const since = `The gateway has been running since ${when(range.since)}.`;
    tell($("configuration"), `${configurationText(live.status, now())} ${since}`);
    return 0;
  },
});
