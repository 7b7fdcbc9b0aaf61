// Now: is it healthy, and what happens. Figures of the last 15 minutes are asked for with each event;
// those of longer ranges less often, because they change less.
import { createChart } from "./chart.js";
import { $, fill, h } from "./dom.js";
import { live, now, onEvent } from "./live.js";
import { getJson } from "./net.js";
import { addPart, isShown, replaceAddress } from "./parts.js";
import { drawAccounts, drawAliases, drawModels, drawRefused } from "./tables.js";
import { drawVerdict, refusedIn, requestsIn } from "./verdict.js";
import { configurationText, hourText, percent, rate, span } from "./words.js";

/** By name: how it is called, and how often it is asked for, in milliseconds. */
const RANGES = {
  "15m": { title: "15 min", every: 2_000 },
  "1h": { title: "1 h", every: 10_000 },
  "6h": { title: "6 h", every: 30_000 },
  "24h": { title: "24 h", every: 60_000 },
};

let chosen = "15m";
const loaded = {}; // by range: what was answered, and when

const perMinute = (name) => (bin) => (60 * bin[name]) / bin.seconds;
const seconds = (value) => (value === null ? "–" : span(1000 * value));
const tokenRate = ({ stream_tokens: tokens, stream_ms: ms }) =>
  ms > 0 ? (1000 * tokens) / ms : null;

const charts = [
  createChart({
    title: "Requests a minute",
    kind: "columns",
    format: rate,
    series: [
      { name: "answered", color: "c-fine", of: perMinute("ok") },
      { name: "client left", color: "c-other", of: perMinute("cancelled") },
      {
        name: "refused",
        color: "c-limit",
        of: (bin) => (60 * refusedIn(bin)) / bin.seconds,
      },
      { name: "failed", color: "c-fail", of: perMinute("5xx") },
    ],
    figure: ({ total, seconds: known }) => [
      rate(known > 0 ? (60 * requestsIn(total)) / known : 0),
      "a minute",
    ],
  }),
  createChart({
    title: "Refused and failed a minute",
    kind: "columns",
    format: rate,
    series: [
      { name: "429", color: "c-limit", of: perMinute("429") },
      { name: "401", color: "c-refuse", of: perMinute("401") },
      { name: "402", color: "c3", of: perMinute("402"), rare: true },
      { name: "other 4xx", color: "c-other", of: perMinute("4xx") },
      { name: "5xx", color: "c-fail", of: perMinute("5xx") },
    ],
    figure: ({ total }) => [
      percent(refusedIn(total) + total["5xx"], requestsIn(total)),
      "of all requests",
    ],
  }),
  createChart({
    title: "Faults of providers a minute",
    kind: "columns",
    format: rate,
    series: [{ name: "failed attempts", color: "c5", of: perMinute("faults") }],
    figure: ({ total }) => [rate(total.faults), "in this range"],
  }),
  createChart({
    title: "Time to first token",
    kind: "lines",
    format: seconds,
    series: [
      { name: "median", color: "c0", of: ({ first_token: times }) => times.p50 },
      {
        name: "95th percentile",
        color: "c1",
        dashed: true,
        of: ({ first_token: times }) => times.p95,
      },
    ],
    figure: ({ total }) => [seconds(total.first_token.p50), "median"],
  }),
  createChart({
    title: "Tokens a second, of a stream",
    kind: "lines",
    format: rate,
    series: [{ name: "tokens a second", color: "c2", of: tokenRate }],
    figure: ({ total }) => [rate(tokenRate(total)), "after the first token"],
  }),
  createChart({
    title: "Requests in flight",
    kind: "lines",
    format: rate,
    series: [{ name: "in flight, at most", color: "c0", of: (bin) => bin.in_flight }],
    figure: () => [rate(live.status?.in_flight ?? null), "at this moment"],
  }),
];
$("charts").append(...charts.map(({ element }) => element));

/** Asks for a range if what is known of it is old. */
async function load(name) {
  const { every } = RANGES[name];
  const { at = 0 } = loaded[name] ?? {};
  if (Date.now() - at < every) return;
  loaded[name] = { ...loaded[name], at: Date.now() };
  try {
    const range = await getJson(`/history?range=${name}`);
    loaded[name] = { at: Date.now(), range };
  } catch {
    loaded[name] = { ...loaded[name], at: 0 };
  }
}

async function refresh() {
  if (!isShown("now") || !live.status) return;
  await Promise.all([load("15m"), chosen === "15m" ? null : load(chosen)]);
  draw();
}

function draw() {
  const recent = loaded["15m"]?.range;
  if (recent) drawVerdict(recent);
  const range = loaded[chosen]?.range;
  if (!range) return;
  for (const chart of charts) chart.update(range);
  drawRefused(range);
  drawModels(range);
  drawAccounts(range);
  drawAliases();
  $("configuration").textContent = configurationText(live.status, now());
  const isYoung = range.since > range.from;
  $("range-note").textContent = isYoung ? `The gateway runs since ${hourText(range.since)}.` : "";
}

fill(
  $("ranges"),
  h("legend", { class: "hidden" }, "Time range"),
  Object.entries(RANGES).map(([name, { title }]) =>
    h(
      "label",
      {},
      h("input", {
        type: "radio",
        name: "range",
        value: name,
        checked: name === chosen,
        change: () => replaceAddress(`#now?range=${name}`),
      }),
      h("span", {}, title),
    ),
  ),
);

addPart("now", (_, { range = "15m" }) => {
  chosen = Object.hasOwn(RANGES, range) ? range : "15m";
  $("ranges").querySelector(`[value="${chosen}"]`).checked = true;
  refresh();
});
onEvent(refresh);
