// Costs: any span of days, by account, key, model, provider or day, from the books. What is chosen
// stands in the address. A click on a row leads down to what it is made of.
import { loadBudgets } from "./budgets.js";
import { $, button, fill, h, link, meter, table, tell } from "./dom.js";
import { costChart } from "./cost-chart.js";
import { drawDays, forgetDays, onDays } from "./cost-days.js";
import { clearRecords, showRecords } from "./cost-records.js";
import { getJson, withQuery } from "./net.js";
import { addPart, isShown, replaceAddress } from "./parts.js";
import { dayText, exactMoney, fromPico, money, number, plural, toPico } from "./words.js";

const DAY_MS = 86_400_000;
/** How often a span that is not over is asked for again, in milliseconds. */
const REFRESH_MS = 15_000;
/** Rows that have a colour of their own in the chart. */
const TOP = 6;

/** By what sums are told apart: the member of a row, and what a click on a row tells apart then. */
const BY = {
  account: { title: "account", member: "account", next: "model" },
  model: { title: "model", member: "model", next: "account" },
  key: { title: "key", member: "key_id", next: "model" },
  provider: { title: "provider", member: "provider", next: "model" },
  day: { title: "day", member: "day", next: "account" },
};
const FILTERS = ["account", "model", "key", "provider"];

const form = $("cost-filters");
let query = {};
let wantsRecords = false; // the single records are to be asked for with the sums
let asking = 0; // only the answer to the last question counts

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

const choose = (change) => {
  const next = Object.entries({ ...query, ...change });
  replaceAddress(
    withQuery("#costs", Object.fromEntries(next.filter(([, value]) => value !== null))),
  );
};

/** What is asked of the listener, without what sums are told apart by. */
const filterOf = () => {
  const { by: _, ...filter } = query;
  return filter;
};

function drawChoices() {
  drawDays(query);
  form.elements["by"].value = query.by;
  const usual = spans();
  for (const chip of $("spans").children) {
    const [from, to] = usual[chip.dataset.focus];
    chip.setAttribute("aria-pressed", String(from === query.from && to === query.to));
  }
  drawChosen();
  $("csv").href = withQuery("/usage.csv", filterOf());
}

/** What is chosen beside the days. A button that may be clicked just now is left as it is. */
function drawChosen() {
  const place = $("cost-chosen");
  const names = FILTERS.filter((name) => query[name] !== undefined);
  const state = JSON.stringify(names.map((name) => [name, query[name]]));
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  fill(
    place,
    names.map((name) =>
      button(`${name} ${query[name] || "none"} ✕`, () => choose({ [name]: null }), {
        class: "chip",
        "aria-pressed": "true",
        "aria-label": `Take away ${name} ${query[name]}`,
      }),
    ),
  );
}

/** Amounts by currency. */
function totalsOf(rows) {
  const totals = new Map();
  for (const { currency, cost } of rows)
    totals.set(currency, (totals.get(currency) ?? 0n) + toPico(cost));
  return totals;
}

const requestsIn = (rows) => rows.reduce((sum, row) => sum + row.requests, 0);

function drawTotal(rows) {
  const totals = totalsOf(rows);
  const requests = requestsIn(rows);
  const amounts = [...totals].map(([currency, pico], at) => {
    const exact = fromPico(pico);
    const title = exactMoney(exact, currency);
    return h(
      "span",
      { "data-cost": exact, title },
      `${at > 0 ? " + " : ""}${money(exact, currency)}`,
    );
  });
  fill($("cost-total"), amounts.length === 0 ? "–" : amounts);
  const { from, to } = query;
  const days = from === to ? dayText(from) : `${dayText(from)} to ${dayText(to)}`;
  tell($("cost-note"), `${plural(requests, "request")}, ${days} (UTC)`);
}

function drawSums(rows, count) {
  const { title, member, next } = BY[query.by];
  const columns = [
    { name: title[0].toUpperCase() + title.slice(1) },
    { name: "Requests", kind: "n" },
    { name: "New prompt tokens", kind: "n" },
    { name: "Cached", kind: "n" },
    { name: "Cache writes", kind: "n" },
    { name: "Completion tokens", kind: "n" },
    { name: "Cost", kind: "n" },
  ];
  const highest = Math.max(...rows.map(({ cost }) => Number(cost)), Number.MIN_VALUE);
  const lead = (row) => {
    const value = row[member];
    const change = query.by === "day" ? { from: value, to: value } : { [query.by]: value };
    const text = query.by === "day" ? dayText(value) : value || "nobody served";
    return link(withQuery("#costs", { ...query, ...change, by: next }), text);
  };
  const made = rows.map((row) => [
    [lead(row), meter(Number(row.cost) / highest)],
    number(row.requests),
    number(row.prompt_cache_miss_tokens),
    number(row.prompt_cache_hit_tokens),
    number(row.cache_write_tokens),
    number(row.completion_tokens),
    h("span", { title: exactMoney(row.cost, row.currency) }, money(row.cost, row.currency)),
  ]);
  const most =
    count > rows.length ? `, the ${number(rows.length)} dearest of ${number(count)}` : "";
  $("sums-title").textContent = `By ${title}${most}`;
  fill($("sums"), table(columns, made, "Nothing was billed."));
}

/** The chart by day: a row of bars for each of the dearest, and one for all others. */
async function drawChart(mine, rows, days) {
  const { from, to, by } = query;
  const currency = rows[0]?.currency;
  if (from === to || currency === undefined) {
    fill($("cost-chart"));
    return;
  }
  const { member } = BY[by];
  const same = rows.filter((row) => row.currency === currency);
  const names = by === "day" ? [] : same.slice(0, TOP).map((row) => row[member]);
  const parts = await Promise.all(
    names.map((name) => getJson(withQuery("/costs", { ...filterOf(), [by]: name, by: "day" }))),
  );
  if (mine !== asking) return;
  const ofCurrency = (list) => list.filter((row) => row.currency === currency);
  const chart = costChart({
    from,
    to,
    currency,
    names: names.map((name) => name || "nobody served"),
    parts: parts.map((part) => ofCurrency(part.rows)),
    days: ofCurrency(days),
    width: $("cost-chart").clientWidth,
    pick: (day) => choose({ from: day, to: day }),
  });
  fill($("cost-chart"), chart);
}

async function load() {
  const mine = asking + 1;
  asking = mine;
  drawChoices();
  try {
    const [{ rows, count }, { rows: days }] = await Promise.all([
      getJson(withQuery("/costs", query)),
      getJson(withQuery("/costs", { ...filterOf(), by: "day" })),
    ]);
    if (mine !== asking) return;
    drawTotal(days);
    loadBudgets();
    drawSums(rows, count);
    await drawChart(mine, rows, days);
    if (mine !== asking || !wantsRecords) return;
    wantsRecords = false;
    await showRecords(filterOf(), requestsIn(days));
  } catch (error) {
    if (mine === asking) showFault(error.message);
  }
}

/** What stood there is not what was asked for. */
function showFault(text) {
  tell($("cost-note"), text);
  tell($("cost-total"), "–");
  for (const id of ["cost-chart", "sums"]) fill($(id));
  clearRecords();
  wantsRecords = true;
}

/** Asks for everything, the single records too. */
function loadAll() {
  wantsRecords = true;
  load();
}

fill(
  form.elements["by"],
  Object.entries(BY).map(([value, { title }]) => h("option", { value }, title)),
);
fill(
  $("spans"),
  Object.keys(spans()).map((name) => button(name, () => chooseSpan(name), { class: "chip" })),
);
function chooseSpan(name) {
  const [from, to] = spans()[name];
  choose({ from, to });
}
form.addEventListener("submit", (event) => event.preventDefault());
form.elements["by"].addEventListener("change", ({ target }) => choose({ by: target.value }));
onDays(choose);
$("records-again").addEventListener("click", loadAll);
addPart("costs", (_, { from, to, by, ...others }) => {
  const [first, last] = spans()["This month"];
  const known = FILTERS.filter((name) => others[name] !== undefined);
  query = {
    from: from ?? first,
    to: to ?? last,
    by: Object.hasOwn(BY, by) ? by : "account",
    ...Object.fromEntries(known.map((name) => [name, others[name]])),
  };
  forgetDays();
  loadAll();
});
setInterval(() => {
  const isOver = query.to !== undefined && query.to < isoDay(Date.now());
  if (isShown("costs") && !isOver) load();
}, REFRESH_MS);
