// What is counted, for Prometheus: GET /metrics. Names, kinds, help texts and buckets stand in metrics.json; where the OpenTelemetry
// conventions for generative AI have a name, it is theirs. No label has more values than the configuration has names: no account, no key.
import type { SettleRecord } from "./accounting/records.ts";
import type { Report } from "./admin.ts";
import rows from "./metrics.json" with { type: "json" };
import { BREAKER_STATES } from "./routing/breaker.ts";

type Name = keyof typeof rows;
interface Row { readonly type: string; readonly help: string; readonly buckets?: readonly number[] }
/** By name and labels: one figure, or of a histogram the count of each bucket, that of what is above them all, and the sum. */
export interface Samples { [name: string]: { [labels: string]: number[] } }
/** Labels as they stand between the braces of a sample: what is put in is quoted. */
const labels = (names: TemplateStringsArray, ...values: readonly (string | number | null | undefined)[]): string =>
  String.raw({ raw: names }, ...values.map((value) => JSON.stringify(String(value ?? ""))));

export type Metrics = ReturnType<typeof createMetrics>;
export function createMetrics() {
  const samples: Samples = {};

  function count(name: Name, labels: string, by = 1): void {
    const figures = ((samples[name] ??= {})[labels] ??= [0]);
    figures[0]! += by;
  }
  function observe(name: Name, labels: string, value: number): void {
    const { buckets = [] }: Row = rows[name];
    const figures = ((samples[name] ??= {})[labels] ??= Array<number>(buckets.length + 2).fill(0));
    const at = buckets.findIndex((bound) => value <= bound);
    figures[at === -1 ? buckets.length : at]! += 1;
    figures[buckets.length + 1]! += value;
  }

  return {
    samples,
    /** A response has left, whole or not. */
    answered: (path: string, status: number, model: string | null) => count("chat_gateway_requests_total", labels`path=${path},status=${status},model=${model}`),
    /** A piece of a stream has come, so many milliseconds after the one before. */
    piece: (model: string, ms: number) => observe("chat_gateway_time_between_chunks_seconds", labels`gen_ai_response_model=${model}`, ms / 1000),
    settled({ attempts, model_served, model_requested, provider, error_code, duration_ms, first_token_ms, usage, usage_source, cost, currency }: SettleRecord): void {
      for (const { provider, model, outcome } of attempts) count("chat_gateway_attempts_total", labels`provider=${provider},model=${model},outcome=${outcome}`);
      const served = labels`gen_ai_operation_name="chat",gen_ai_provider_name=${provider},gen_ai_response_model=${model_served}`;
      observe("gen_ai_server_request_duration_seconds", `${served},${labels`gen_ai_request_model=${model_requested},error_type=${error_code}`}`, duration_ms / 1000);
      if (first_token_ms !== null) observe("gen_ai_server_time_to_first_token_seconds", served, first_token_ms / 1000);
      if (usage_source !== "none") {
        observe("gen_ai_client_token_usage", `${served},gen_ai_token_type="input"`, usage.prompt_tokens);
        observe("gen_ai_client_token_usage", `${served},gen_ai_token_type="output"`, usage.completion_tokens);
      }
      if (cost !== "0") count("chat_gateway_cost_total", labels`model=${model_served},currency=${currency}`, Number(cost));
    },
  };
}

/** The figures of several processes, added up. */
function sumOf(all: readonly Samples[]): Samples {
  const sum: Samples = {};
  for (const [name, rows] of all.flatMap((samples) => Object.entries(samples))) {
    const into = (sum[name] ??= {});
    for (const [of, figures] of Object.entries(rows)) into[of] = figures.map((figure, at) => figure + (into[of]?.[at] ?? 0));
  }
  return sum;
}

/** What is so at the moment. */
function gaugesOf({ in_flight, workers, models, event_loop_delay, limits, spend, usage }: Report["status"]): Samples {
  const flag = (fault: string | null) => ({ "": [fault === null ? 1 : 0] });
  return {
    chat_gateway_in_flight_requests: { "": [in_flight] }, chat_gateway_workers: { "": [workers] },
    chat_gateway_breaker_state: Object.fromEntries(models.map(({ model, breaker }) => [labels`model=${model}`, [BREAKER_STATES.indexOf(breaker.state)]])),
    chat_gateway_event_loop_delay_seconds: Object.fromEntries(Object.entries(event_loop_delay).map(([quantile, seconds]) => [labels`quantile=${quantile}`, [seconds]])),
    chat_gateway_limits_store_up: flag(limits.fault), chat_gateway_spend_log_writable: flag(spend.fault),
    chat_gateway_usage_sync_lag_seconds: { "": [usage.lag_seconds] },
  } satisfies { [name in Name]?: unknown };
}

const written = (value: number): string => (value === Infinity ? "+Inf" : String(value));

/** Prometheus's text format: what the processes have counted, and how they are together. */
export function render(all: readonly Samples[], status: Report["status"]): string {
  const samples = sumOf([...all, gaugesOf(status)]);
  return Object.entries<Row>(rows).map(([name, { type, help, buckets }]) => {
    const lines = Object.entries(samples[name] ?? {}).flatMap(([of, figures]) => {
      if (!buckets) return [`${name}${of && `{${of}}`} ${written(figures[0]!)}`];
      const bounds = [...buckets, Infinity];
      const counts = bounds.map((_, at) => figures.slice(0, at + 1).reduce((sum, each) => sum + each));
      const below = bounds.map((bound, at) => `${name}_bucket{${of},le="${written(bound)}"} ${counts[at]}`);
      return [...below, `${name}_sum{${of}} ${figures.at(-1)}`, `${name}_count{${of}} ${counts.at(-1)}`];
    });
    return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ""].join("\n");
  }).join("");
}
