// Now: is it healthy, and what happens. Figures of the last 15 minutes are asked for with each event;
// those of longer ranges less often, because they change less.
import { createChart } from "./chart.js";
import { $, h } from "./dom.js";
import { live, now, onEvent } from "./live.js";
import { getJson } from "./net.js";
import { addPart, isShown, replaceAddress } from "./parts.js";
import { drawAccounts, drawAliases, drawModels, drawRefused } from "./tables.js";
import { drawVerdict, refusedIn, requestsIn } from "./verdict.js";
import { configurationText, hourText, known, percent, rate, secondText, span } from "./words.js";

/** How often a range is asked for, in milliseconds. */
const EVERY = { "15m": 2_000, "1h": 10_000, "6h": 30_000, "24h": 60_000 };

let chosen = "15m";
const loaded = {}; // by range: what was answered, and when it was asked for

const minutely = (count) => (bin) => (60 * count(bin)) / bin.seconds;
const perMinute = (name) => minutely((bin) => bin[name]);
const seconds = (value) => known(value, () => span(1000 * value));
const tokenRate = ({ stream_tokens: tokens, stream_ms: ms }) =>
  ms > 0 ? (1000 * tokens) / ms : null;

/** `figure`: that of the whole range, and what it is. */
const CHARTS = [
  {
    title: "Requests a minute",
    kind: "columns",
    format: rate,
    series: [
      { name: "answered", color: "c-fine", of: perMinute("ok") },
      { name: "client left", color: "c-other", of: perMinute("cancelled") },
      { name: "refused", color: "c-limit", of: minutely(refusedIn) },
      { name: "failed", color: "c-fail", of: perMinute("5xx") },
    ],
    figure: ({ total, seconds: all }) => [
      rate(all > 0 ? (60 * requestsIn(total)) / all : 0),
      "a minute",
    ],
  },
  {
    title: "Refused and failed a minute",
    kind: "columns",
    format: rate,
    series: [
      { name: "429", color: "c-limit", of: perMinute("429") },
      { name: "401", color: "c-refuse", of: perMinute("401") },
      { name: "402", color: "c3", of: perMinute("402") },
      { name: "other 4xx", color: "c-other", of: perMinute("4xx") },
      { name: "5xx", color: "c-fail", of: perMinute("5xx") },
    ],
    figure: ({ total }) => [
      percent(refusedIn(total) + total["5xx"], requestsIn(total)),
      "of all requests",
    ],
  },
  {
    title: "Faults of providers a minute",
    kind: "columns",
    format: rate,
    series: [{ name: "failed attempts", color: "c5", of: perMinute("faults") }],
    figure: ({ total }) => [rate(total.faults), "in this range"],
  },
  {
    title: "Time to first token",
    kind: "lines",
    format: seconds,
    series: [
      { name: "median", color: "c0", of: (bin) => bin.first_token.p50 },
      { name: "95th percentile", color: "c1", of: (bin) => bin.first_token.p95 },
    ],
    figure: ({ total }) => [seconds(total.first_token.p50), "median"],
  },
  {
    title: "Tokens a second, of a stream",
    kind: "lines",
    format: rate,
    series: [{ name: "tokens a second", color: "c2", of: tokenRate }],
    figure: ({ total }) => [rate(tokenRate(total)), "after the first token"],
  },
  {
    title: "Requests in flight",
    kind: "lines",
    format: rate,
    series: [{ name: "in flight, at most", color: "c0", of: (bin) => bin.in_flight }],
    figure: () => [rate(live.status.in_flight), "at this moment"],
  },
];

/** Adds the chart to the page. Returns a function that draws a range in it. */
function addChart(options) {
  const chart = createChart(options);
  const figure = h("p", { class: "figure" });
  $("charts").append(
    h("div", { class: "card chart" }, h("h2", options.title), figure, chart.element),
  );
  return (range) => {
    const { bins, from, step } = range;
    const [text, unit] = options.figure(range);
    figure.replaceChildren(text, h("small", unit));
    const to = from + bins.length * step;
    const marks = [from, (from + to) / 2, to].map(hourText);
    chart.update({ bins, series: options.series, textOf: binText(range), marks });
  };
}

/** The times of a bin in words. */
const binText =
  ({ bins, from, step }) =>
  (at) => {
    const start = from + at * step;
    const times = `${secondText(start)} to ${secondText(start + step)}`;
    const bin = bins[at];
    if (bin === null) return `${times}: nothing is known`;
    return 1000 * bin.seconds < step ? `${times}, incomplete: ${bin.seconds} s of it` : times;
  };

const drawCharts = CHARTS.map(addChart);

/** Asks for a range if what is known of it is old. */
async function load(name) {
  const { at = 0, range } = loaded[name] ?? {};
  if (Date.now() - at < EVERY[name]) return;
  loaded[name] = { at: Date.now(), range };
  // What cannot be read now is asked for again later: the head of the page says what is wrong.
  const next = await getJson(`/history?range=${name}`).catch(() => range);
  loaded[name].range = next;
}

async function refresh() {
  if (!isShown("now") || !live.status) return;
  await Promise.all(["15m", chosen].map(load));
  const recent = loaded["15m"].range;
  if (recent) drawVerdict(recent);
  const { range } = loaded[chosen];
  if (range) drawRange(range);
}

function drawRange(range) {
  for (const draw of drawCharts) draw(range);
  drawRefused(range);
  drawModels(range);
  drawAccounts(range);
  drawAliases();
  $("configuration").textContent = configurationText(live.status, now());
  const isYoung = range.since > range.from;
  $("range-note").textContent = isYoung ? `The gateway runs since ${hourText(range.since)}.` : "";
}

$("ranges").addEventListener("change", ({ target }) =>
  replaceAddress(`#now?range=${target.value}`),
);
addPart("now", (_, { range = "15m" }) => {
  chosen = Object.hasOwn(EVERY, range) ? range : "15m";
  $("ranges").querySelector(`[value="${chosen}"]`).checked = true;
  refresh();
});
onEvent(refresh);
