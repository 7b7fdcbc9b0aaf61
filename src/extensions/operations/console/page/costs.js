// Costs: any span of days, by account, key, model, provider, day or request, from the books, and how
// budgets stand. What is chosen stands in the address. A click on a row leads down to what it is
// made of.
import { $, fill, h, id, link, meter, table, tell } from "./dom.js";
import { pager } from "./requests.js";
import { addView, getJson, live, storyOf, withQuery } from "./views.js";
import { exactMoney, money, number, plural, when } from "./words.js";

const DAY_MS = 86_400_000;
/** How often a span that is not over is asked for again, in milliseconds. */
const COSTS_MS = 15_000;
/** Billed requests of a page, as GET /usage has them. */
const RECORDS_PAGE = 100;

/** By what sums are told apart: the member of a row, and what a click on a row tells apart then. */
const BY = {
  account: { member: "account", next: "model" },
  model: { member: "model", next: "request" },
  key: { member: "key_id", next: "model" },
  provider: { member: "provider", next: "model" },
  day: { member: "day", next: "account" },
};

const isoDay = (time) => new Date(time).toISOString().slice(0, 10);

/** The usual spans, by their names: first and last day, in UTC. */
function spans() {
  const now = Date.now();
  const today = isoDay(now);
  const month = `${today.slice(0, 7)}-01`;
  const monthBefore = isoDay(Date.parse(month) - DAY_MS);
  return {
    Today: { from: today, to: today },
    Yesterday: { from: isoDay(now - DAY_MS), to: isoDay(now - DAY_MS) },
    "Last 7 days": { from: isoDay(now - 6 * DAY_MS), to: today },
    "This month": { from: month, to: today },
    "Last month": { from: `${monthBefore.slice(0, 7)}-01`, to: monthBefore },
  };
}

/** A path with another query, which begins at its first page. */
const changed = (path, query, change) => withQuery(path, { ...query, skip: "", ...change });

const exact = ({ cost, currency }) =>
  h("span", { "data-cost": cost, title: exactMoney(cost, currency) }, money(cost, currency));

function lead(query, row) {
  const { member, next } = BY[query.by];
  const value = row[member];
  const change = query.by === "day" ? { from: value, to: value } : { [query.by]: value };
  if (value === "") return "nobody served";
  return link(changed("#costs", query, { ...change, by: next }), value);
}

function sumTable(rows, query) {
  const highest = Math.max(...rows.map(({ cost }) => Number(cost)));
  const figure = (name, member) => [name, (row) => number(row[member]), "n"];
  const columns = [
    [query.by, (row) => [lead(query, row), meter(row.cost / highest)]],
    figure("Requests", "requests"),
    figure("New prompt tokens", "prompt_cache_miss_tokens"),
    figure("Cached", "prompt_cache_hit_tokens"),
    figure("Cache writes", "cache_write_tokens"),
    figure("Completion tokens", "completion_tokens"),
    ["Cost", exact, "n"],
  ];
  return table(columns, rows, "Nothing was billed.");
}

const RECORDS = [
  ["Ended", ({ ended_at: time }) => when(Date.parse(time))],
  ["Request", ({ gateway_request_id: request }) => link(storyOf(request), id(request))],
  ["Account", ({ account }) => account],
  ["Model", ({ model }) => model],
  ["Status", ({ status }) => status],
  ["Tokens", (row) => `${number(row.prompt_tokens)} + ${number(row.completion_tokens)}`, "n"],
  ["Cost", exact, "n"],
];

const amount = (name, member) => [name, (row) => exactMoney(row[member], row.currency), "n"];
const BUDGETS = [
  [
    "Whose",
    ({ account, key_id: key }) => account ?? link(withQuery("#keys", { find: key }), id(key)),
  ],
  ["Period", ({ period }) => period],
  amount("Spent", "spent"),
  amount("Held", "held"),
  amount("Left", "left"),
  ["Of", (row) => [exactMoney(row.amount, row.currency), meter(row.spent / row.amount)], "n"],
  ["Renewed (UTC)", ({ ends }) => ends?.slice(0, 16).replace("T", " ") ?? "never"],
];

/** A page of the billed requests. They come in the order in which they ended: the last are shown. */
async function loadRecords(query, count) {
  const { skip = 0, by: _, ...filter } = query;
  const end = Math.max(0, count - skip);
  const first = Math.max(0, end - RECORDS_PAGE);
  const { records } = await getJson(withQuery("/usage", { ...filter, skip: first }));
  return { count, rows: records.slice(0, end - first).reverse() };
}

addView("costs", {
  defaults: () => ({ ...spans()["This month"], by: "account" }),
  async load({ query }) {
    const { rows: totals } = await getJson(changed("/costs", query, { by: "currency" }));
    const requests = totals.reduce((sum, row) => sum + row.requests, 0);
    const found =
      query.by === "request"
        ? await loadRecords(query, requests)
        : await getJson(withQuery("/costs", query));
    return { ...found, totals, requests };
  },
  draw({ totals, requests, rows, count }, place) {
    const { query } = place;
    const { from, to, by } = query;
    const { budgets = [] } = live.status;
    const spanLink = ([name, days]) => link(changed("#costs", query, days), name);
    fill($("spans"), Object.entries(spans()).map(spanLink));
    fill($("cost-total"), totals.length === 0 ? "–" : totals.map(exact));
    tell($("cost-note"), `${plural(requests, "request")}, ${from} to ${to} (UTC)`);
    tell($("sums-title"), `By ${by}: ${number(count)}`);
    const isList = by === "request";
    const shown = isList ? table(RECORDS, rows, "There are none.") : sumTable(rows, query);
    const size = isList ? RECORDS_PAGE : 500;
    fill($("sums"), shown, pager(place, { skip: Number(query.skip ?? 0), size, count }));
    const { by: _, skip: __, ...filter } = query;
    $("csv").href = withQuery("/usage.csv", filter);
    $("budgets").hidden = budgets.length === 0;
    fill($("budget-list"), table(BUDGETS, budgets, ""));
    return to >= isoDay(Date.now()) && !isList ? COSTS_MS : undefined;
  },
});
