// What is counted, for Prometheus: GET /metrics. Names, kinds, help texts and buckets stand in metrics.json; where the OpenTelemetry
// conventions for generative AI have a name, it is theirs. No label has more values than the configuration has names: no account, no key.
import type { SettleRecord } from "./accounting/records.ts";
import rows from "./metrics.json" with { type: "json" };

type Name = keyof typeof rows;
/** `merge`: how the processes' figures become one; absent: they are added up. A gauge is worth nothing by itself. */
interface Row { readonly type: string; readonly help: string; readonly merge?: string; readonly buckets?: readonly number[] }
const ROWS: { readonly [name in Name]: Row } = rows;
/** By name and labels: one figure, or of a histogram the count of each bucket, that of what is above them all, and the sum. */
export type Samples = { [name in Name]?: { [labels: string]: number[] } };
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
    const { buckets = [] } = ROWS[name];
    const figures = ((samples[name] ??= {})[labels] ??= Array<number>(buckets.length + 2).fill(0));
    const at = buckets.findIndex((bound) => value <= bound);
    figures[at === -1 ? buckets.length : at]! += 1;
    figures[buckets.length + 1]! += value;
  }

  return {
    samples,
    /** What is so at the moment, by label and its value; replaces what was said before of the same name. */
    set(name: Name, label: string, values: readonly (readonly [of: string, value: number])[]): void {
      samples[name] = Object.fromEntries(values.map(([of, value]) => [label && `${label}=${JSON.stringify(of)}`, [value]]));
    },
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

/** The figures of several processes as those of one. */
export function mergeSamples(all: readonly Samples[]): Samples {
  const merged: Samples = {};
  for (const [name, rows] of all.flatMap((samples) => Object.entries(samples) as [Name, { [labels: string]: number[] }][])) {
    const { merge } = ROWS[name];
    const join = merge === "max" ? Math.max : merge === "min" ? Math.min : (a: number, b: number) => a + b;
    const into = (merged[name] ??= {});
    for (const [of, figures] of Object.entries(rows)) into[of] = figures.map((figure, at) => (into[of] ? join(into[of][at]!, figure) : figure));
  }
  return merged;
}

const written = (value: number): string => (value === Infinity ? "+Inf" : String(value));

/** Prometheus's text format. */
export const render = (samples: Samples): string => (Object.entries(ROWS) as [Name, Row][]).map(([name, { type, help, buckets }]) => {
  const lines = Object.entries(samples[name] ?? {}).flatMap(([of, figures]) => {
    if (!buckets) return [`${name}${of && `{${of}}`} ${written(figures[0]!)}`];
    const count = (bound: number) => figures.slice(0, [...buckets, Infinity].indexOf(bound) + 1).reduce((sum, each) => sum + each);
    const bounds = [...buckets, Infinity].map((bound) => `${name}_bucket{${of},le="${written(bound)}"} ${count(bound)}`);
    return [...bounds, `${name}_sum{${of}} ${figures.at(-1)}`, `${name}_count{${of}} ${count(Infinity)}`];
  });
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ""].join("\n");
}).join("");
