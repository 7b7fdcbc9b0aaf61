// Prometheus's text format: the counters of the tally, and gauges from the current status.
import { BREAKER_STATES } from "../../../core/routing/breaker.ts";
import type { Steps } from "../../../core/turns.ts";
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";
import type { Status } from "../../scale/installation/index.ts";
import { FAMILIES, type Family, type FamilyName } from "./families.ts";
import { rowsIn, type Counted, type Tally } from "./tally.ts";

/** A value, and the values of its labels. */
type Sample = readonly [labels: readonly string[], value: number];

/** Makes the text of GET /metrics, row by row. `delays`: in seconds, by quantile. */
export function* expose(
  tally: Tally,
  status: Status,
  delays: Status["event_loop_delay"],
): Steps<string> {
  const samples: Samples = {
    ...samplesOf(status),
    chat_gateway_event_loop_delay_seconds: Object.entries(delays).map(([name, delay]) => [
      [name],
      delay,
    ]),
  };
  let text = "";
  for (const [name, family] of Object.entries(FAMILIES) as [FamilyName, Family][]) {
    text += `# HELP ${name} ${family.help}\n# TYPE ${name} ${family.type}\n`;
    for (const [labels, row] of rowsIn(tally, name)) {
      text += countedLines(name, family, labelsOf(family, labels), row);
      yield;
    }
    for (const [labels, value] of samples[name] ?? [])
      text += lineOf(name, labelsOf(family, labels), value);
  }
  return text;
}

type Samples = { readonly [name in FamilyName]?: readonly Sample[] };

/** The samples in the status. An extension that is not loaded has none. */
function samplesOf(status: Status): Samples {
  const { budgets, config_fault, keys, limits, spend, telemetry, usage } = status;
  // Budgets of keys are left out: there are too many for labels.
  const ofAccounts = asArray(budgets)
    .map(asObject)
    .filter(({ account }) => typeof account === "string");
  const ofBudgets = (member: string): Sample[] =>
    ofAccounts.map((row) => [[String(row["account"]), String(row["period"])], Number(row[member])]);
  const spans = asObject(telemetry);
  const { config_loaded_at: loadedAt } = status;
  return {
    chat_gateway_in_flight_requests: figure(status.in_flight),
    chat_gateway_workers: figure(status.workers),
    chat_gateway_breaker_state: status.models.map(({ model, breaker }) => [
      [model],
      BREAKER_STATES.indexOf(stateOf(breaker)),
    ]),
    chat_gateway_limits_store_up: flag(limits.fault),
    chat_gateway_config_last_reload_success_timestamp_seconds: figure(
      loadedAt && Date.parse(loadedAt) / 1000,
    ),
    chat_gateway_config_last_reload_successful: flag(config_fault),
    chat_gateway_keys_readable: flag(asObject(keys)["fault"]),
    chat_gateway_spend_log_writable: flag(asObject(spend)["fault"]),
    chat_gateway_telemetry_spans_total: [
      ...figure(spans["spans_sent"], "sent"),
      ...figure(spans["spans_dropped"], "dropped"),
    ],
    chat_gateway_budget_spent: ofBudgets("spent"),
    chat_gateway_budget_held: ofBudgets("held"),
    chat_gateway_budget_limit: ofBudgets("amount"),
    chat_gateway_usage_sync_lag_seconds: figure(asObject(usage)["lag_seconds"]),
  };
}

/** When an open breaker's pause is over, the next request is the probe: shown as probing. */
const stateOf = ({ state, retry_ms }: Status["models"][number]["breaker"]) =>
  state === "open" && retry_ms === 0 ? "probing" : state;

const figure = (value: unknown, ...labels: string[]): Sample[] =>
  typeof value === "number" ? [[labels, value]] : [];

/** A sample of 1 if there is no fault (null), else 0. No sample if `fault` is undefined. */
const flag = (fault: unknown): Sample[] =>
  fault === undefined ? [] : [[[], fault === null ? 1 : 0]];

function countedLines(
  name: string,
  { buckets: bounds }: Family,
  labels: string,
  { buckets, count, sum }: Counted,
): string {
  if (bounds.length === 0) return lineOf(name, labels, sum);
  const bucketLine = (bound: number | string, values: number): string =>
    lineOf(`${name}_bucket`, `${labels},le="${bound}"`, values);
  // In Prometheus's format, buckets are cumulative.
  let total = 0;
  const lines = bounds.map((bound, at) => {
    total += buckets[at]!;
    return bucketLine(bound, total);
  });
  const infinite = bucketLine("+Inf", count);
  const sums = lineOf(`${name}_sum`, labels, sum) + lineOf(`${name}_count`, labels, count);
  return lines.join("") + infinite + sums;
}

const labelsOf = ({ labels }: Family, values: readonly string[]): string =>
  labels.map((label, at) => `${label}="${escaped(values[at] ?? "")}"`).join();

const escaped = (value: string): string => value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n");

const lineOf = (name: string, labels: string, value: number): string =>
  labels === "" ? `${name} ${value}\n` : `${name}{${labels}} ${value}\n`;
