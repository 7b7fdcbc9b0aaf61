// Costs: any span of days, by account, key, model, provider or day, from the books. What is chosen
// stands in the address. A click on a row leads down to what it is made of.
import { loadBudgets } from "./budgets.js";
import { createChart } from "./chart.js";
import { showRecords } from "./cost-records.js";
import { $, button, numeric, fill, h, link, meter, table, tell } from "./dom.js";
import { getJson, view, withQuery } from "./net.js";
import { addPart, isShown, replaceAddress } from "./parts.js";
import { dayText, exactMoney, fromPico, money, number, plural, toPico } from "./words.js";

const DAY_MS = 86_400_000;
/** How often a span that is not over is asked for again, in milliseconds. */
const REFRESH_MS = 15_000;

/** By what sums are told apart: the member of a row, and what a click on a row tells apart then. */
const BY = {
  account: { member: "account", next: "model" },
  model: { member: "model", next: "account" },
  key: { member: "key_id", next: "model" },
  provider: { member: "provider", next: "model" },
  day: { member: "day", next: "account" },
};
const FILTERS = ["account", "model", "key", "provider"];

const form = $("cost-filters");
let query = {};
let currency = "USD";

const isoDay = (time) => new Date(time).toISOString().slice(0, 10);

/** The usual spans, by their names: first and last day, in UTC. */
function spans() {
  const today = Date.now();
  const month = `${isoDay(today).slice(0, 7)}-01`;
  const before = isoDay(Date.parse(month) - DAY_MS);
  return {
    Today: [isoDay(today), isoDay(today)],
    Yesterday: [isoDay(today - DAY_MS), isoDay(today - DAY_MS)],
    "Last 7 days": [isoDay(today - 6 * DAY_MS), isoDay(today)],
    "This month": [month, isoDay(today)],
    "Last month": [`${before.slice(0, 7)}-01`, before],
  };
}

const choose = (change) => replaceAddress(withQuery("#costs", { ...query, ...change }));

/** What is asked of the listener, without what sums are told apart by. */
const filterOf = () => ({ ...query, by: undefined });

function drawChoices() {
  for (const name of ["from", "to", "by"]) form.elements[name].value = query[name];
  const chip = (name) => {
    const [from, to] = spans()[name];
    const isChosen = from === query.from && to === query.to;
    return button(name, () => choose({ from, to }), {
      class: "chip",
      "aria-pressed": `${isChosen}`,
    });
  };
  fill($("spans"), Object.keys(spans()).map(chip));
  const chosen = FILTERS.filter((name) => query[name] !== undefined);
  const removal = (name) =>
    button(`${name} ${query[name] || "none"} ✕`, () => choose({ [name]: undefined }), {
      class: "chip",
      "aria-pressed": "true",
      "aria-label": `Take away ${name} ${query[name]}`,
    });
  fill($("cost-chosen"), chosen.map(removal));
  $("csv").href = withQuery("/usage.csv", filterOf());
}

const requestsIn = (rows) => rows.reduce((sum, row) => sum + row.requests, 0);

/** The exact sum of each currency. */
function drawTotal(rows) {
  const amounts = [...Map.groupBy(rows, (row) => row.currency)].map(([name, same]) => {
    const cost = fromPico(same.reduce((sum, row) => sum + toPico(row.cost), 0n));
    return h("span", { "data-cost": cost, title: exactMoney(cost, name) }, money(cost, name));
  });
  fill($("cost-total"), amounts.length === 0 ? "–" : amounts.flatMap((each) => [each, " "]));
  const { from, to } = query;
  const days = from === to ? dayText(from) : `${dayText(from)} to ${dayText(to)}`;
  tell($("cost-note"), `${plural(requestsIn(rows), "request")}, ${days} (UTC)`);
}

function lead(row) {
  const { member, next } = BY[query.by];
  const value = row[member];
  if (query.by === "day")
    return link(
      withQuery("#costs", { ...query, from: value, to: value, by: next }),
      dayText(value),
    );
  const change = { [query.by]: value, by: next };
  return link(withQuery("#costs", { ...query, ...change }), value || "nobody served");
}

function drawSums(rows, count) {
  const highest = Math.max(...rows.map(({ cost }) => Number(cost)));
  const figure = (name, member) => numeric(name, (row) => number(row[member]));
  const columns = [
    {
      name: query.by[0].toUpperCase() + query.by.slice(1),
      of: (row) => [lead(row), meter(Number(row.cost) / highest)],
    },
    figure("Requests", "requests"),
    figure("New prompt tokens", "prompt_cache_miss_tokens"),
    figure("Cached", "prompt_cache_hit_tokens"),
    figure("Cache writes", "cache_write_tokens"),
    figure("Completion tokens", "completion_tokens"),
    numeric("Cost", ({ cost, currency: name }) =>
      h("span", { title: exactMoney(cost, name) }, money(cost, name)),
    ),
  ];
  const shown = number(rows.length);
  const most = count > rows.length ? `, the ${shown} dearest of ${number(count)}` : "";
  $("sums-title").textContent = `By ${query.by}${most}`;
  fill($("sums"), table(columns, rows, "Nothing was billed."));
}

/** All days of a span. */
function daysOf({ from, to }) {
  const start = Date.parse(from);
  const count = Math.round((Date.parse(to) - start) / DAY_MS) + 1;
  return Array.from({ length: count }, (_, at) => isoDay(start + at * DAY_MS));
}

const chart = createChart({
  title: "Cost by day",
  kind: "columns",
  format: (value) => money(value, currency),
  pick(at) {
    const day = daysOf(query)[at];
    choose({ from: day, to: day });
  },
});

/** The cost by day, in the currency of the first row: a picture needs no exact sums. */
function drawChart(rows) {
  const days = daysOf(query);
  $("cost-chart").hidden = days.length === 1 || rows.length === 0;
  currency = rows[0]?.currency ?? currency;
  const same = rows.filter((row) => row.currency === currency);
  const costs = new Map(same.map(({ day, cost }) => [day, Number(cost)]));
  chart.update({
    bins: days,
    series: [{ name: `cost in ${currency}`, color: "c0", of: (day) => costs.get(day) ?? 0 }],
    textOf: (at) => dayText(days[at]),
    marks: [days[0], days.at(-1)].map(dayText),
  });
}

const sums = view({
  async load() {
    const [{ rows, count }, { rows: days }] = await Promise.all([
      getJson(withQuery("/costs", query)),
      getJson(withQuery("/costs", { ...filterOf(), by: "day" })),
    ]);
    return { rows, count, days };
  },
  draw({ rows, count, days }, wantsRecords) {
    drawTotal(days);
    drawSums(rows, count);
    drawChart(days);
    loadBudgets();
    if (wantsRecords) showRecords(filterOf(), requestsIn(days));
  },
  /** What stood there is not what was asked for. */
  fail(message) {
    tell($("cost-note"), message);
    tell($("cost-total"), "–");
    $("cost-chart").hidden = true;
    for (const id of ["sums", "records"]) fill($(id));
  },
});

$("cost-chart").append(chart.element);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const [from, to] = [form.elements["from"].value, form.elements["to"].value].sort();
  choose({ from, to });
});
form.elements["by"].addEventListener("change", ({ target }) => choose({ by: target.value }));
$("records-again").addEventListener("click", () => sums(true));
addPart("costs", (_, given) => {
  const [from, to] = spans()["This month"];
  const names = ["from", "to", ...FILTERS].filter((name) => given[name] !== undefined);
  query = {
    from,
    to,
    by: Object.hasOwn(BY, given.by) ? given.by : "account",
    ...Object.fromEntries(names.map((name) => [name, given[name]])),
  };
  drawChoices();
  sums(true);
});
setInterval(() => {
  if (isShown("costs") && query.to >= isoDay(Date.now())) sums(false);
}, REFRESH_MS);
