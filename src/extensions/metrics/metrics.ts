// What is counted, for Prometheus: GET /metrics. Names, kinds, labels and buckets stand in metrics.json; where the OpenTelemetry
// conventions for generative AI have a name, it is theirs. No label has more values than the configuration has names: no account, no key.
import type { AccessRecord } from "../../core/http/access-record.ts";
import type { Opening, Settlement } from "../../core/ledger/ledger.ts";
import type { Status } from "../admin/admin.ts";
import rows from "./metrics.json" with { type: "json" };
import { BREAKER_STATES } from "../../core/routing/breaker.ts";

type Name = keyof typeof rows;
interface Row {
  readonly type: string;
  readonly help: string;
  readonly labels?: readonly string[];
  readonly buckets?: readonly number[];
}
/** By name, and by the values of the labels with "\0" between them: of a histogram the count of each bucket and that of what is above them
 * all, and last the sum, which is all that counts of the others. */
export type Samples = Map<string, Map<string, number[]>>;

/** What a map has under a key; made if there is nothing. */
function entryOf<V>(map: Map<string, V>, key: string, make: () => V): V {
  const entry = map.get(key) ?? make();
  map.set(key, entry);
  return entry;
}

export type Metrics = ReturnType<typeof createMetrics>;
export function createMetrics() {
  const samples: Samples = new Map();

  function add(name: Name, values: string, value = 1): void {
    const { buckets = [] }: Row = rows[name];
    const counted = entryOf(samples, name, () => new Map());
    const figures = entryOf(counted, values, () => Array<number>(buckets.length + 2).fill(0));
    let at = 0;
    while (value > buckets[at]!) at += 1;
    figures[at]! += 1;
    figures[buckets.length + 1]! += value;
  }

  return {
    samples,
    lineDropped: (log: string) => add("chat_gateway_log_lines_dropped_total", log),
    responded: (route: string, { status, model }: Pick<AccessRecord, "status" | "model">) =>
      add("chat_gateway_requests_total", `${route}\0${status}\0${model ?? ""}`),
    chunkSent: (model: string, ms: number) =>
      add("chat_gateway_time_between_chunks_seconds", model, ms / 1000),
    settled(
      { modelRequested }: Pick<Opening, "modelRequested">,
      settlement: Settlement,
      durationMs: number,
    ): void {
      for (const { provider, model, outcome } of settlement.attempts)
        add("chat_gateway_attempts_total", `${provider}\0${model}\0${outcome}`);
      const { modelServed, provider, errorCode, firstTokenMs, usage, cost } = settlement;
      const served = `${provider ?? ""}\0${modelServed ?? ""}`;
      add(
        "gen_ai_server_request_duration_seconds",
        `${served}\0${modelRequested}\0${errorCode ?? ""}`,
        durationMs / 1000,
      );
      if (firstTokenMs !== null)
        add("gen_ai_server_time_to_first_token_seconds", served, firstTokenMs / 1000);
      if (settlement.usageSource !== "none") {
        add("gen_ai_client_token_usage", `input\0${served}`, usage.prompt_tokens);
        add("gen_ai_client_token_usage", `output\0${served}`, usage.completion_tokens);
      }
      if (cost !== "0")
        add(
          "chat_gateway_cost_total",
          `${modelServed ?? ""}\0${settlement.currency}`,
          Number(cost),
        );
    },
  };
}

/** What the console draws: responses, and times to a first token in their buckets. */
const DRAWN = ["chat_gateway_requests_total", "gen_ai_server_time_to_first_token_seconds"] as const;
export const FIRST_TOKEN_BUCKETS = rows.gen_ai_server_time_to_first_token_seconds.buckets;
/** What of it has been counted since `before`; what a process that ended had counted is gone. */
export function since(samples: Samples, before: Samples): Record<string, object> {
  return Object.fromEntries(
    DRAWN.map((name) => [name, grown(samples.get(name) ?? new Map(), before.get(name))]),
  );
}

/** As JSON has it. Object.fromEntries defines members, so that a model may be named `__proto__`. */
function grown(counted: ReadonlyMap<string, number[]>, before?: ReadonlyMap<string, number[]>) {
  const entries = [...counted].map(
    ([values, figures]) =>
      [
        values,
        figures.map((figure, at) => Math.max(0, figure - (before?.get(values)?.[at] ?? 0))),
      ] as const,
  );
  return Object.fromEntries(entries.filter(([, figures]) => figures.some((figure) => figure > 0)));
}

/** What is so at the moment. */
function gaugesOf({
  in_flight,
  workers,
  models,
  event_loop_delay,
  limits,
  spend,
  usage,
}: Status): Samples {
  const figure = (value: number) => new Map([["", [value]]]);
  const flag = (fault: string | null) => figure(fault === null ? 1 : 0);
  const gauges = {
    chat_gateway_in_flight_requests: figure(in_flight),
    chat_gateway_workers: figure(workers),
    chat_gateway_breaker_state: new Map(
      models.map(({ model, breaker }) => [model, [BREAKER_STATES.indexOf(breaker.state)]]),
    ),
    chat_gateway_event_loop_delay_seconds: new Map(
      Object.entries(event_loop_delay).map(([quantile, seconds]) => [quantile, [seconds]]),
    ),
    chat_gateway_limits_store_up: flag(limits.fault),
    chat_gateway_spend_log_writable: flag(spend.fault),
    chat_gateway_usage_sync_lag_seconds: figure(usage.lag_seconds),
  } satisfies { [name in Name]?: Map<string, number[]> };
  return new Map<string, Map<string, number[]>>(Object.entries(gauges));
}

/** What several processes have counted, together. */
export function merge(all: readonly Samples[]): Samples {
  const sums: Samples = new Map();
  for (const [name, counted] of all.flatMap((samples) => [...samples])) {
    const sum = entryOf(sums, name, () => new Map());
    for (const [values, figures] of counted)
      sum.set(
        values,
        figures.map((figure, at) => figure + (sum.get(values)?.[at] ?? 0)),
      );
  }
  return sums;
}

/** Prometheus's text format: what was counted, and how it is at the moment. */
export function render(samples: Samples, status: Status): string {
  const shown = new Map([...samples, ...gaugesOf(status)]);
  const written = (value: number) => (value === Infinity ? "+Inf" : String(value));
  return Object.entries<Row>(rows)
    .map(([name, { type, help, labels = [], buckets }]) => {
      const lines = [...(shown.get(name) ?? [])].flatMap(([values, figures]) => {
        const stated = values
          .split("\0")
          .flatMap((value, at) =>
            labels
              .slice(at, at + 1)
              .map(
                (label) => `${label}="${value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`,
              ),
          );
        const line = (ending: string, value: number, ...more: string[]) =>
          `${name}${ending}{${[...stated, ...more].join()}} ${written(value)}`;
        if (!buckets) return [line("", figures.at(-1)!)];
        const bounds = [...buckets, Infinity];
        const counts = bounds.map((_, at) =>
          figures.slice(0, at + 1).reduce((sum, each) => sum + each),
        );
        return [
          ...bounds.map((bound, at) => line("_bucket", counts[at]!, `le="${written(bound)}"`)),
          line("_sum", figures.at(-1)!),
          line("_count", counts.at(-1)!),
        ];
      });
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ""]
        .join("\n")
        .replaceAll("{} ", " ");
    })
    .join("");
}
