// What a configuration of LiteLLM has and gateway.json cannot have: where it stands, and why it was
// left out, with what this gateway has in its place.

/** A field that was not carried over. Its value is not here: it may be a secret. */
export interface LeftOut {
  /** Where it stands: `model_list[0].litellm_params.rpm`. */
  readonly path: string;
  /** Why, and what to do instead. */
  readonly reason: string;
}

/** Why fields are left out, by their names. */
const REASONS: Readonly<Record<string, string>> = {
  ...reasonFor("set models.M.limits of what the provider can take, accounts.A.rpm of a customer", [
    ...["rpm", "tpm"],
  ]),
  ...reasonFor("set models.M.limits.max_in_flight, or accounts.A.max_in_flight of a customer", [
    ...["max_parallel_requests", "global_max_parallel_requests"],
  ]),
  ...reasonFor("what a request must have is not set here", ["enforced_params"]),
  ...reasonFor(
    "there are several deadlines here: set first_token_ms, idle_ms, total_ms of timeouts",
    [...["timeout", "request_timeout", "stream_timeout"]],
  ),
  ...reasonFor("a price is of input and output, with at most six decimals per million tokens", [
    ...["input_cost_per_token", "output_cost_per_token"],
    ...["cache_read_input_token_cost", "cache_creation_input_token_cost"],
  ]),
  ...reasonFor("breaker.failures and breaker.cooldown_ms are integers of at least 1", [
    ...["allowed_fails", "cooldown_time"],
  ]),
  ...reasonFor("the vendor's API takes no such content from this gateway", [
    ...["supports_audio_input", "supports_pdf_input"],
  ]),
  ...reasonFor("set retry.max_retries of the provider", ["max_retries"]),
  ...reasonFor("clients send it; models.M.extra sends it in every request, in place of theirs", [
    ...["temperature", "top_p", "max_completion_tokens", "frequency_penalty", "seed", "stop"],
    ...["presence_penalty", "reasoning_effort", "extra_body", "max_tokens"],
  ]),
  ...reasonFor("an alias asks its models in the order of its list, or by its weights or policy", [
    ...["routing_strategy", "routing_strategy_args", "weight", "order", "enable_pre_call_checks"],
  ]),
  ...reasonFor("omit and takes of a provider or model say what is sent", [
    ...["drop_params", "modify_params", "additional_drop_params", "allowed_openai_params"],
  ]),
  ...reasonFor("no reply is kept here; the provider's own prompt cache works", [
    ...["cache", "cache_params", "cache_responses", "caching_groups"],
  ]),
  ...reasonFor("limits.store shares limits through Redis", [
    ...["redis_host", "redis_port", "redis_password", "redis_url"],
  ]),
  ...reasonFor("set telemetry.otlp for traces, or read /metrics", [
    ...["success_callback", "failure_callback", "callbacks", "service_callback"],
  ]),
  ...reasonFor("keys and costs are in data_dir: make keys with `keys create`", [
    ...["database_url", "store_model_in_db", "database_connection_pool_limit"],
    ...["store_prompts_in_spend_logs", "disable_spend_logs", "salt_key"],
  ]),
  ...reasonFor("Prometheus has the alerts: scripts/prometheus-alerts.yml", [
    ...["alerting", "alert_types", "alerting_threshold", "alerting_args", "alert_to_webhook_url"],
  ]),
  ...reasonFor("an alias skips models whose context_tokens are too few for the prompt", [
    "context_window_fallbacks",
  ]),
  ...reasonFor("a refusal by a content filter is the answer, and no other model is asked", [
    "content_policy_fallbacks",
  ]),
  ...reasonFor("list the models of each alias", ["default_fallbacks"]),
  ...reasonFor("set accounts.A.budget", ["max_budget", "budget_duration"]),
  ...reasonFor("no prompt is logged here, and each line of the log is JSON", [
    ...["set_verbose", "json_logs", "turn_off_message_logging", "redact_user_api_key_info"],
  ]),
  ...reasonFor("export these variables before the gateway starts", ["environment_variables"]),
  ...reasonFor("run init for that file too, and merge the results", ["include"]),
  ...reasonFor("deployments have no ids here: receipts name model and provider", [
    "id",
    "base_model",
  ]),
};

const NO_SETTING = "this gateway has no such setting";

function reasonFor(reason: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, reason]));
}

export interface LeftOutList {
  /** All that was added, in order. */
  readonly list: readonly LeftOut[];
  /** Adds one field. */
  add(path: string, reason: string): void;
  /** Adds all fields of an object that have a value and are not among `carried`. */
  addRest(
    path: string,
    fields: Readonly<Record<string, unknown>>,
    carried: readonly string[],
  ): void;
}

export function createLeftOutList(): LeftOutList {
  const list: LeftOut[] = [];
  const add = (path: string, reason: string): void => {
    list.push({ path, reason });
  };
  return {
    list,
    add,
    addRest(path, fields, carried) {
      for (const [name, value] of Object.entries(fields)) {
        if (value === null || value === undefined || carried.includes(name)) continue;
        const reason = Object.hasOwn(REASONS, name) ? REASONS[name]! : NO_SETTING;
        add(path === "" ? name : `${path}.${name}`, reason);
      }
    },
  };
}
