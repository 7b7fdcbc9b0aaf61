// The tables of Now: who is refused, models, accounts, aliases. Long ones begin with the most
// interesting rows, and have a button for the others.
import { $, button, fill, h, isNarrow, link, meter, table, tone } from "./dom.js";
import { live, now } from "./live.js";
import { withQuery } from "./net.js";
import { faultTime, refusedIn, refusedRequests, requestsIn, whoOf, whyOf } from "./verdict.js";
import { ago, compact, modelState, money, number, percent, rate, span, when } from "./words.js";

/** Rows of a table that nobody has asked to see whole. */
const few = () => (isNarrow() ? 3 : 10);
const whole = new Set(); // tables of which all rows are wanted

/** A table of its first rows, and what shows the others. */
function bounded(place, columns, rows, empty) {
  const isWhole = whole.has(place) || rows.length <= few();
  const showAll = () => {
    whole.add(place);
    bounded(place, columns, rows, empty);
  };
  const made = (isWhole ? rows : rows.slice(0, few())).map((row) => row());
  fill(
    $(place),
    table(columns, made, empty),
    isWhole ? null : h("p", { class: "more" }, button(`Show all ${number(rows.length)}`, showAll)),
  );
}

const N = "n";

export function drawRefused({ refusals }) {
  const columns = [
    { name: "Who" },
    { name: "Why", kind: "wide" },
    { name: "Requests", kind: N },
    { name: "Since" },
    { name: "Last" },
    { name: "" },
  ];
  const rows = refusals.map((row) => () => [
    h(
      "span",
      {},
      row.account === null ? "nobody: no valid key" : row.account,
      row.key === null
        ? null
        : h("span", { class: "soft id" }, link(withQuery("#keys", { find: row.key }), row.key)),
    ),
    tone(row.status >= 500 ? "bad" : "warn", `${row.status}: ${whyOf(row)}`),
    number(row.count),
    when(row.since, now()),
    ago(now() - row.last),
    h(
      "a",
      { href: refusedRequests(row), "data-focus": `${whoOf(row)} ${row.key} ${row.code}` },
      "Requests",
    ),
  ]);
  bounded("refused", columns, rows, "Nobody was refused, and nothing failed.");
}

/** Failing models first, then the busiest. */
function modelRows({ models, faults, seconds }) {
  const figures = new Map(models.map((row) => [row.model, row]));
  const last = new Map(faults.map((fault) => [fault.model, fault]));
  const rows = live.status.models.map((model) => ({
    ...model,
    figures: figures.get(model.model),
    fault: last.get(model.model),
    hours: seconds / 3_600,
  }));
  const others = models.filter(({ other }) => other);
  const weight = ({ breaker, figures: row }) =>
    (breaker.state === "closed" ? 0 : 1e12) + (row?.attempts ?? 0);
  rows.sort((a, b) => weight(b) - weight(a));
  return { rows, others };
}

function faultText({ fault, breaker }) {
  if (!fault) return breaker.last_fault ?? "none";
  const status = fault.status === null ? fault.code : `${fault.code} (${fault.status})`;
  return [
    link(
      `#requests/${encodeURIComponent(fault.request_id)}`,
      `${faultTime(fault.time)}: ${status}`,
    ),
    fault.detail === null ? null : h("span", { class: "soft" }, `“${fault.detail}”`),
  ];
}

export function drawModels(range) {
  const columns = [
    { name: "Model" },
    { name: "State" },
    { name: "Requests", kind: N },
    { name: "Faults", kind: N },
    { name: "First token, p50 and p95", kind: N },
    { name: "Tokens a second", kind: N },
    { name: "Tokens in, out", kind: N },
    { name: "Cost an hour", kind: N },
    { name: "Last fault", kind: "wide" },
  ];
  const { rows, others } = modelRows(range);
  const made = rows.map((row) => () => {
    const { tone: name, text } = modelState(row);
    const state = tone(name, text);
    state.dataset.model = row.model;
    return [
      h(
        "span",
        {},
        link(withQuery("#requests", { model: row.model }), row.model),
        h("span", { class: "soft" }, row.provider),
      ),
      state,
      ...modelFigures(row, others.length > 0),
      faultText(row),
    ];
  });
  const hours = range.seconds / 3_600;
  for (const figures of others)
    made.push(() => ["other models", "–", ...modelFigures({ figures, hours }), "–"]);
  bounded("models", columns, made, "There are no models.");
}

/** The figures of a model. One without a row of its own may be counted with the others. */
function modelFigures({ figures, hours }, isBounded = false) {
  if (!figures) return [isBounded ? "–" : "0", "–", "–", "–", "–", "–"];
  const { requests, attempts, faults, first_token: times, stream_ms: ms, cost } = figures;
  const seconds = (value) => (value === null ? "–" : span(1000 * value));
  const currency = live.status.currency;
  return [
    number(requests),
    percent(faults, attempts),
    times.p50 === null ? "–" : `${seconds(times.p50)}, ${seconds(times.p95)}`,
    ms > 0 ? rate((1000 * figures.stream_tokens) / ms) : "–",
    `${compact(figures.prompt_tokens)}, ${compact(figures.completion_tokens)}`,
    hours > 0 ? money(cost / hours, currency) : "–",
  ];
}

export function drawAccounts({ accounts }) {
  const columns = [
    { name: "Account" },
    { name: "Requests", kind: N },
    { name: "Refused", kind: N },
    { name: "Failed", kind: N },
    { name: "Tokens", kind: N },
    { name: "Cost", kind: N },
  ];
  const currency = live.status.currency;
  const busiest = Math.max(1, ...accounts.map(requestsIn));
  const nameOf = ({ account, other }) => {
    if (other) return "all others";
    const name = account ?? "nobody (no valid key)";
    return link(withQuery("#requests", account === null ? { status: "401" } : { account }), name);
  };
  const sorted = accounts.toSorted((a, b) => requestsIn(b) - requestsIn(a));
  const rows = sorted.map((row) => () => [
    [nameOf(row), meter(requestsIn(row) / busiest)],
    number(requestsIn(row)),
    refusedIn(row) === 0
      ? "0"
      : `${number(refusedIn(row))} (${percent(refusedIn(row), requestsIn(row))})`,
    number(row["5xx"]),
    compact(row.prompt_tokens + row.completion_tokens),
    money(row.cost, currency),
  ]);
  bounded("accounts", columns, rows, "No account has asked for anything.");
}

/** One alias: the models that would be asked, by number; then those that are passed over, and why. */
function aliasElement({ alias, enabled, candidates }) {
  const states = new Map(live.status.models.map((model) => [model.model, model]));
  const ranked = candidates.filter(({ rank }) => rank !== null);
  const isDead = ({ model }) => {
    const { breaker } = states.get(model) ?? {};
    return breaker?.state === "open" && breaker.retry_ms > 0;
  };
  const asked = ranked.filter((candidate) => !isDead(candidate));
  const dead = ranked.filter(isDead);
  const out = candidates.filter(({ rank }) => rank === null);
  return h(
    "div",
    { class: "alias" },
    h("h3", {}, alias, enabled ? "" : h("small", {}, " (disabled)")),
    h(
      "ol",
      { class: "order" },
      asked.map(({ model, why }, at) =>
        h("li", {}, h("b", {}, `${at + 1}.`), h("span", {}, model, " ", h("small", {}, why))),
      ),
      dead.map(({ model }) =>
        h(
          "li",
          { class: "out" },
          h("b", {}, "–"),
          h(
            "span",
            {},
            model,
            " ",
            tone("bad", `passed over, ${modelState(states.get(model)).text}`),
          ),
        ),
      ),
    ),
    asked.length === 0 ? h("p", {}, tone("bad", "No model of this alias can answer now.")) : null,
    out.length === 0
      ? null
      : h(
          "p",
          { class: "soft" },
          `Never asked: ${out.map(({ model, why }) => `${model} (${why.replace(/^out: /, "")})`).join(", ")}.`,
        ),
  );
}

export function drawAliases() {
  const { aliases } = live.status;
  const isWhole = whole.has("aliases") || aliases.length <= few();
  const showAll = () => {
    whole.add("aliases");
    drawAliases();
  };
  fill(
    $("aliases"),
    aliases.length === 0 ? h("p", { class: "empty" }, "There are no aliases.") : null,
    (isWhole ? aliases : aliases.slice(0, few())).map(aliasElement),
    isWhole
      ? null
      : h("p", { class: "more" }, button(`Show all ${number(aliases.length)}`, showAll)),
  );
}
