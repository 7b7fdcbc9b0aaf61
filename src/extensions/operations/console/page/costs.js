// The view Costs: the costs of a month or day from the books, by account, key, model, provider, day
// or request, and the state of budgets. The filters are in the URL; a row links to its breakdown.
import { $, fill, h, id, link, meter, table, tell } from "./dom.js";
import { pager } from "./requests.js";
import { addView, getJson, live, now, storyOf, withQuery } from "./views.js";
import { exactMoney, money, number, percent, plural, when } from "./words.js";

/** How often sums are reloaded, in milliseconds. */
const COSTS_MS = 15_000;
/** The page sizes of GET /usage and GET /costs. */
const RECORDS = 100;
const SUMS = 500;

/** For each grouping: the member of a row that names its group, and the grouping to link to. */
const BY = {
  account: { member: "account", next: "model" },
  model: { member: "model", next: "request" },
  key: { member: "key_id", next: "model" },
  provider: { member: "provider", next: "model" },
  day: { member: "day", next: "account" },
};

const exact = ({ cost, currency }) =>
  h("span", { "data-cost": cost, title: exactMoney(cost, currency) }, money(cost, currency));

const cachedOf = ({ prompt_cache_hit_tokens: hits, prompt_cache_miss_tokens: misses }) =>
  percent(hits, hits + misses);

function sumTable(rows, { skip: _, ...query }) {
  const { by } = query;
  const { member, next } = BY[by];
  const highest = Math.max(...rows.map(({ cost }) => Number(cost)));
  const lead = (row) => {
    const value = row[member];
    const address = withQuery("#costs", { ...query, by: next, [by]: value });
    return [value === "" ? "no model served" : link(address, value), meter(row.cost / highest)];
  };
  const columns = [
    [by[0].toUpperCase() + by.slice(1), lead],
    ["Requests", "requests", "n"],
    ["New prompt tokens", "prompt_cache_miss_tokens", "n"],
    ["Cached", "prompt_cache_hit_tokens", "n"],
    ["From cache", cachedOf, "n"],
    ["Cache writes", "cache_write_tokens", "n"],
    ["Completion tokens", "completion_tokens", "n"],
    ["Cost", exact, "n"],
  ];
  return table(columns, rows, "Nothing was billed.");
}

const BILLED = [
  ["Ended", ({ ended_at: time }) => when(Date.parse(time))],
  ["Request", ({ gateway_request_id: request }) => link(storyOf(request), id(request))],
  ["Account", "account"],
  ["Model", "model"],
  ["Status", "status"],
  ["Prompt tokens", "prompt_tokens", "n"],
  ["Completion", "completion_tokens", "n"],
  ["Cost", exact, "n"],
];

const amount = (name, member) => [name, (row) => exactMoney(row[member], row.currency), "n"];
const keyLink = (key) => link(withQuery("#keys", { find: key }), id(key));
const BUDGETS = [
  ["Account or key", ({ account, key_id: key }) => account ?? keyLink(key)],
  ["Period", "period"],
  amount("Spent", "spent"),
  amount("Held", "held"),
  amount("Left", "left"),
  amount("Of", "amount"),
  ["Renews", "ends"],
];

/** Sets the month of a query to that of its day. */
const ofDay = (query) => (query.day ? { ...query, month: query.day.slice(0, 7) } : query);

/** A page of billed requests, the latest first. GET /usage has the oldest first. */
async function loadBilled({ skip = 0, by: _, ...filter }, count) {
  const end = Math.max(0, count - skip);
  const first = Math.max(0, end - RECORDS);
  const { records } = await getJson(withQuery("/usage", { ...filter, skip: first }));
  return { count, rows: records.slice(0, end - first).reverse() };
}

addView("costs", {
  defaults: () => ({ month: new Date(now()).toISOString().slice(0, 7), by: "account" }),
  async load({ query: asked }) {
    const query = ofDay(asked);
    const whole = { ...query, by: "currency", skip: 0 };
    const { rows: totals } = await getJson(withQuery("/costs", whole));
    const requests = totals.reduce((sum, row) => sum + row.requests, 0);
    const isList = query.by === "request";
    const found = isList ? loadBilled(query, requests) : getJson(withQuery("/costs", query));
    return { ...(await found), totals, requests, isList };
  },
  draw({ totals, requests, isList, rows, count }, place) {
    const query = ofDay(place.query);
    const { budgets = [] } = live.status;
    const { by, skip = 0, ...filter } = query;
    fill($("cost-total"), totals.length === 0 ? "–" : totals.map(exact));
    tell($("cost-note"), `${plural(requests, "request")}, ${query.day || query.month} (UTC)`);
    tell($("sums-title"), `By ${by}: ${number(count)}`);
    const size = isList ? RECORDS : SUMS;
    const shown = isList ? table(BILLED, rows, "No requests match.") : sumTable(rows, query);
    fill($("sums"), shown, pager(place, { skip: Number(skip), size, count }));
    $("csv").href = withQuery("/usage.csv", filter);
    $("budgets").hidden = budgets.length === 0;
    fill($("budget-list"), table(BUDGETS, budgets, ""));
    return isList ? undefined : COSTS_MS;
  },
});
