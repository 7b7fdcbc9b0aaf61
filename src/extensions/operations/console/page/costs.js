// Costs: any span of days, by account, key, model, provider or day, from the books. What is chosen
// stands in the address. A click on a row leads down to what it is made of.
import { loadBudgets } from "./budgets.js";
import { createChart } from "./chart.js";
import { showRecords } from "./cost-records.js";
import { $, button, fill, h, link, meter, table, tell } from "./dom.js";
import { getJson, view, withQuery } from "./net.js";
import { addPart, isShown, replaceAddress } from "./parts.js";
import { dayText, exactMoney, fromPico, money, number, plural, toPico } from "./words.js";

const DAY_MS = 86_400_000;
/** How often a span that is not over is asked for again, in milliseconds. */
const REFRESH_MS = 15_000;
/** Rows that have a colour of their own in the chart; all others have the next. */
const TOP = 6;

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
  const figure = (name, member) => ({ name, kind: "n", of: (row) => number(row[member]) });
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
    {
      name: "Cost",
      kind: "n",
      of: ({ cost, currency: name }) =>
        h("span", { title: exactMoney(cost, name) }, money(cost, name)),
    },
  ];
  const shown = number(rows.length);
  const most = count > rows.length ? `, the ${shown} dearest of ${number(count)}` : "";
  $("sums-title").textContent = `By ${query.by}${most}`;
  fill($("sums"), table(columns, rows, "Nothing was billed."));
}

/** All days of the span. */
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

/** The dearest rows by day; none where a chart would have nothing to compare. */
async function partsOf(rows) {
  const dearest = query.by === "day" ? [] : rows.slice(0, TOP);
  const partOf = async (row) => {
    const name = row[BY[query.by].member];
    const filter = { ...filterOf(), [query.by]: name, by: "day" };
    return {
      name: name || "nobody served",
      rows: (await getJson(withQuery("/costs", filter))).rows,
    };
  };
  return await Promise.all(dearest.map(partOf));
}

/** Amounts of the chart's currency by day. The chart is a picture: it needs no exact sums. */
function amountsOf(rows) {
  const same = rows.filter((row) => row.currency === currency);
  return new Map(same.map(({ day, cost }) => [day, Number(cost)]));
}

function drawChart(days, parts) {
  const names = daysOf(query);
  $("cost-chart").hidden = names.length === 1 || days.length === 0;
  const whole = amountsOf(days);
  const own = parts.map(({ name, rows }, at) => {
    const amounts = amountsOf(rows);
    return { name, color: `c${at}`, of: (day) => amounts.get(day) ?? 0 };
  });
  const sumOf = (day) => own.reduce((sum, { of }) => sum + of(day), 0);
  const others = {
    name: own.length === 0 ? "all" : "all others",
    color: own.length === 0 ? "c0" : "c6",
    of: (day) => Math.max(0, (whole.get(day) ?? 0) - sumOf(day)),
  };
  chart.update({
    bins: names,
    series: [...own, others],
    textOf: (at) => `${dayText(names[at])}: ${money(whole.get(names[at]) ?? 0, currency)}`,
    marks: [names[0], names.at(-1)].map(dayText),
  });
}

const sums = view({
  async load() {
    const [{ rows, count }, { rows: days }] = await Promise.all([
      getJson(withQuery("/costs", query)),
      getJson(withQuery("/costs", { ...filterOf(), by: "day" })),
    ]);
    currency = rows[0]?.currency ?? currency;
    const parts = await partsOf(rows.filter((row) => row.currency === currency));
    return { rows, count, days, parts };
  },
  draw({ rows, count, days, parts }, wantsRecords) {
    drawTotal(days);
    drawSums(rows, count);
    drawChart(days, parts);
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
