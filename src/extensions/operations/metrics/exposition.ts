// Prometheus's text format: what was counted, and how the gateway is at the moment.
import type { Status } from "../../scale/installation/index.ts";
import { BREAKER_STATES } from "../../../core/routing/breaker.ts";
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";
import { FAMILIES, type Family, type FamilyName } from "./families.ts";
import type { Figures } from "./top-accounts.ts";

/**
 * One line of a family: its labels in the order of Family.labels, and its figures as Samples has
 * them.
 */
type Sample = readonly [labels: string, figures: readonly number[]];

export function expose(
  samples: ReadonlyMap<string, Figures>,
  status: Status,
  delays: Status["event_loop_delay"],
) {
  const all = new Map<string, Figures>([...samples, ...Object.entries(gaugesOf(status, delays))]);
  return Object.entries<Family>(FAMILIES)
    .map(([name, family]) => {
      const head = [`# HELP ${name} ${family.help}`, `# TYPE ${name} ${family.type}`];
      const lines = [...(all.get(name) ?? [])].flatMap((sample) => linesOf(name, family, sample));
      return `${[...head, ...lines].join("\n")}\n`;
    })
    .join("");
}

type Gauges = { [name in FamilyName]?: ReadonlyMap<string, readonly number[]> };

/** Samples from the status. An extension that is not loaded has none. */
function gaugesOf(status: Status, delays: Status["event_loop_delay"]): Gauges {
  const figure = (value: number) => new Map([["", [value]]]);
  const flag = (section: unknown) => figure(asObject(section)["fault"] === null ? 1 : 0);
  const lag = asObject(status["usage"])["lag_seconds"];
  return {
    chat_gateway_in_flight_requests: figure(status.in_flight),
    chat_gateway_workers: figure(status.workers),
    chat_gateway_breaker_state: new Map(
      status.models.map(({ model, breaker }) => [model, [BREAKER_STATES.indexOf(breaker.state)]]),
    ),
    chat_gateway_event_loop_delay_seconds: new Map(
      Object.entries(delays).map(([quantile, seconds]) => [quantile, [seconds]]),
    ),
    chat_gateway_limits_store_up: flag(status.limits),
    chat_gateway_config_last_reload_success_timestamp_seconds: figure(
      Date.parse(status.config_loaded_at) / 1000,
    ),
    ...(status["config_fault"] !== undefined && {
      chat_gateway_config_last_reload_successful: figure(status["config_fault"] === null ? 1 : 0),
    }),
    ...(status["keys"] !== undefined && { chat_gateway_keys_readable: flag(status["keys"]) }),
    ...(status["spend"] !== undefined && {
      chat_gateway_spend_log_writable: flag(status["spend"]),
    }),
    ...(status["telemetry"] !== undefined && {
      chat_gateway_telemetry_spans_total: spanCounts(asObject(status["telemetry"])),
    }),
    ...budgetGauges(asArray(status["budgets"]).map(asObject)),
    ...(typeof lag === "number" && { chat_gateway_usage_sync_lag_seconds: figure(lag) }),
  };
}

/** Of the budgets of accounts. Keys are too many for labels. */
function budgetGauges(budgets: readonly Readonly<Record<string, unknown>>[]): Gauges {
  const ofAccounts = budgets.filter(({ account }) => typeof account === "string");
  const figures = (name: string) =>
    new Map(
      ofAccounts.map(
        (row) => [`${row["account"]}\0${row["period"]}`, [Number(row[name])]] as const,
      ),
    );
  return {
    chat_gateway_budget_spent: figures("spent"),
    chat_gateway_budget_held: figures("held"),
    chat_gateway_budget_limit: figures("amount"),
  };
}

const spanCounts = ({ spans_sent, spans_dropped }: Readonly<Record<string, unknown>>) =>
  new Map([
    ["sent", [Number(spans_sent)]],
    ["dropped", [Number(spans_dropped)]],
  ]);

function linesOf(name: string, family: Family, [values, figures]: Sample): string[] {
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
