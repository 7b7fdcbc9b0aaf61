// The metric families: names, types, labels and buckets. Names follow the OpenTelemetry conventions
// for generative AI, if these define one. The number of series is bounded: label values are names
// from the configuration, never keys or requests, and counting.ts limits the accounts.

/** One family of GET /metrics. */
export interface Family {
  /** The type in its TYPE line. */
  readonly type: "counter" | "histogram" | "gauge" | "summary";
  /** The text of its HELP line. */
  readonly help: string;
  /** The names of its labels. Empty: none. */
  readonly labels: readonly string[];
  /** The upper bounds of a histogram's buckets, without infinity. Empty: it is not a histogram. */
  readonly buckets: readonly number[];
}

const family =
  (type: Family["type"]) =>
  (help: string, labels: readonly string[] = [], buckets: readonly number[] = []): Family => ({
    type,
    help,
    labels,
    buckets,
  });
const counter = family("counter");
const histogram = family("histogram");
const gauge = family("gauge");
const summary = family("summary");

const SERVED_BY = ["gen_ai_provider_name", "gen_ai_response_model"];
const BUDGET = ["account", "period"];

export const FAMILIES = {
  chat_gateway_requests_total: counter("Responses by path, status and, if known by then, model.", [
    "path",
    "status",
    "model",
  ]),
  chat_gateway_attempts_total: counter(
    "Attempts at a provider, by how they ended: completed, cancelled, or the error code.",
    ["provider", "model", "outcome"],
  ),
  chat_gateway_refusals_total: counter(
    "Requests that ended with an error, refused or failed, by account and error code; " +
      "the account is empty without a valid key.",
    ["account", "code"],
  ),
  chat_gateway_upstream_faults_total: counter(
    "Attempts that failed because of the provider or the way to it, by kind of fault.",
    ["provider", "model", "kind"],
  ),
  chat_gateway_recoveries_total: counter(
    "Broken streams that the gateway asked another attempt to continue, by outcome: " +
      "continued or failed. Only where recovery is configured.",
    ["gen_ai_request_model", "outcome"],
  ),
  gen_ai_server_request_duration_seconds: histogram(
    "From the opening of a chat request in the books to its end.",
    [...SERVED_BY, "gen_ai_request_model", "error_type"],
    [
      0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
      163.84, 327.68, 655.36,
    ],
  ),
  gen_ai_server_time_to_first_token_seconds: histogram(
    "Until the first text, thinking or tool call, or the arrival of a whole reply.",
    SERVED_BY,
    [0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120],
  ),
  chat_gateway_time_between_chunks_seconds: histogram(
    "Between two pieces of a streamed reply.",
    ["gen_ai_response_model"],
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 10, 30],
  ),
  gen_ai_client_token_usage: histogram(
    "Tokens of a request: input, output; cache_write: the input written to the provider's cache.",
    ["gen_ai_token_type", ...SERVED_BY],
    [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304],
  ),
  chat_gateway_prompt_tokens_total: counter(
    "Prompt tokens by whether the provider's cache had them: hit or miss. " +
      "Hits divided by all are the hit rate of a model or an alias.",
    ["gen_ai_request_model", "gen_ai_response_model", "cache"],
  ),
  chat_gateway_cost_total: counter("Settled costs; the books have the exact sums.", [
    "model",
    "currency",
  ]),
  chat_gateway_budget_spent: gauge(
    "What an account has spent in its budget's period; the books have the exact sums.",
    BUDGET,
  ),
  chat_gateway_budget_held: gauge("What running requests hold of an account's budget.", BUDGET),
  chat_gateway_budget_limit: gauge("What an account may spend in a period.", BUDGET),
  chat_gateway_log_lines_dropped_total: counter(
    "Lines that a log lacks: its reader was behind or gone, or its disk was full.",
    ["log"],
  ),
  chat_gateway_telemetry_spans_total: counter(
    "Trace spans: sent to the collector, or dropped because it did not take them.",
    ["result"],
  ),
  chat_gateway_in_flight_requests: gauge("Requests whose answer is not complete yet."),
  chat_gateway_workers: gauge("Processes that serve."),
  chat_gateway_breaker_state: gauge("0 closed, 1 probing or about to, 2 open.", ["model"]),
  chat_gateway_event_loop_delay_seconds: summary(
    "How late the event loop was, in the worst few seconds since somebody last read this.",
    ["quantile"],
  ),
  chat_gateway_limits_store_up: gauge(
    "1 if the gateway can reach the store of the limits; 0: limits.on_error applies.",
  ),
  chat_gateway_spend_log_writable: gauge(
    "1 if the gateway can write the spend log; 0: it refuses requests.",
  ),
  chat_gateway_config_last_reload_successful: gauge(
    "0 if the last reload failed: the previous configuration stays in force.",
  ),
  chat_gateway_config_last_reload_success_timestamp_seconds: gauge(
    "When the gateway loaded the configuration in force, in seconds since 1970.",
  ),
  chat_gateway_keys_readable: gauge(
    "0 if keys.json has changed and is unreadable: the previous keys stay in force.",
  ),
  chat_gateway_usage_sync_lag_seconds: gauge(
    "Seconds since the last successful usage sync began; it copied all requests settled by then.",
  ),
};

export type FamilyName = keyof typeof FAMILIES;
