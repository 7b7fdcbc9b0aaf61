// Prometheus's text format: what was counted, and how the gateway is at the moment.
import type { Status } from "../../scale/installation/index.ts";
import { BREAKER_STATES } from "../../../core/routing/breaker.ts";
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";
import { FAMILIES, type Family, type FamilyName } from "./families.ts";
import type { Samples } from "./samples.ts";

/** Figures of a family, by the values of its labels, as Samples has them. */
type Figures = ReadonlyMap<string, readonly number[]>;

export function expose(samples: Samples, status: Status, delays: Status["event_loop_delay"]) {
  const all = new Map<string, Figures>([...samples, ...Object.entries(gaugesOf(status, delays))]);
  return Object.entries<Family>(FAMILIES)
    .map(([name, family]) => {
      const head = [`# HELP ${name} ${family.help}`, `# TYPE ${name} ${family.type}`];
      const lines = [...(all.get(name) ?? [])].flatMap((sample) => linesOf(name, family, sample));
      return `${[...head, ...lines].join("\n")}\n`;
    })
    .join("");
}

/** Samples from the status. A member of an extension that is not loaded has none. */
function gaugesOf(
  status: Status,
  delays: Status["event_loop_delay"],
): { readonly [name in FamilyName]?: Figures } {
  const { budgets, config_fault, keys, limits, spend, telemetry, usage } = status;
  const ofAccounts = asArray(budgets)
    .map(asObject)
    .filter(({ account }) => typeof account === "string");
  // Keys are too many for labels.
  const ofBudgets = (member: string): Figures =>
    new Map(
      ofAccounts.map((row) => [`${row["account"]}\0${row["period"]}`, [Number(row[member])]]),
    );
  const { lag_seconds: lag } = asObject(usage);
  return {
    chat_gateway_in_flight_requests: single(status.in_flight),
    chat_gateway_workers: single(status.workers),
    chat_gateway_breaker_state: new Map(
      status.models.map(({ model, breaker }) => [model, [BREAKER_STATES.indexOf(breaker.state)]]),
    ),
    chat_gateway_event_loop_delay_seconds: new Map(
      Object.entries(delays).map(([quantile, seconds]) => [quantile, [seconds]]),
    ),
    chat_gateway_limits_store_up: flag(limits.fault),
    chat_gateway_config_last_reload_success_timestamp_seconds: single(
      Date.parse(status.config_loaded_at) / 1000,
    ),
    chat_gateway_config_last_reload_successful: flag(config_fault),
    chat_gateway_keys_readable: flag(asObject(keys)["fault"]),
    chat_gateway_spend_log_writable: flag(asObject(spend)["fault"]),
    chat_gateway_telemetry_spans_total: spanCounts(asObject(telemetry)),
    chat_gateway_budget_spent: ofBudgets("spent"),
    chat_gateway_budget_held: ofBudgets("held"),
    chat_gateway_budget_limit: ofBudgets("amount"),
    chat_gateway_usage_sync_lag_seconds: typeof lag === "number" ? single(lag) : NONE,
  };
}

const NONE: Figures = new Map();
const single = (value: number): Figures => new Map([["", [value]]]);

/** 1 where there is no fault. */
const flag = (fault: unknown): Figures =>
  fault === undefined ? NONE : single(fault === null ? 1 : 0);

const spanCounts = ({ spans_sent, spans_dropped }: Readonly<Record<string, unknown>>): Figures =>
  spans_sent === undefined
    ? NONE
    : new Map([
        ["sent", [Number(spans_sent)]],
        ["dropped", [Number(spans_dropped)]],
      ]);

function linesOf(
  name: string,
  family: Family,
  [values, figures]: readonly [string, readonly number[]],
): string[] {
  const labels = labelsOf(family, values);
  if (!family.buckets) return [lineOf(name, labels, figures.at(-1)!)];
  const bounds = [...family.buckets, Infinity];
  // Buckets of the format are cumulative.
  let total = 0;
  const buckets = bounds.map((bound, at) => {
    total += figures[at]!;
    return lineOf(`${name}_bucket`, [...labels, `le="${numberText(bound)}"`], total);
  });
  return [
    ...buckets,
    lineOf(`${name}_sum`, labels, figures.at(-1)!),
    lineOf(`${name}_count`, labels, total),
  ];
}

function labelsOf({ labels = [] }: Family, values: string): string[] {
  const list = values.split("\0");
  return labels.map((label, at) => `${label}="${escaped(list[at] ?? "")}"`);
}

const escaped = (value: string): string => value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n");

const lineOf = (name: string, labels: readonly string[], value: number): string =>
  `${name}${labels.length > 0 ? `{${labels.join()}}` : ""} ${numberText(value)}`;

const numberText = (value: number): string => (value === Infinity ? "+Inf" : String(value));
