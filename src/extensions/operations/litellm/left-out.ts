// The fields of a LiteLLM configuration that gateway.json cannot have: their paths, and the
// reasons, which name what this gateway has instead.
import { isObject } from "../../../core/schema/checker.ts";
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";

/** An object of the file. */
export type Fields = Readonly<Record<string, unknown>>;

/** A number, or NaN. Accepts text, because some YAML parsers read 1e-06 as text. */
export const toNumber = (value: unknown): number =>
  typeof value === "number" || asString(value)?.trim() ? Number(value) : Number.NaN;

/** A field that was not carried over. Its value is not here: it may be a secret. */
export interface LeftOut {
  /** Its path in the file: `model_list[0].litellm_params.rpm`. */
  readonly path: string;
  /** Why, and what to do instead. */
  readonly reason: string;
}

/** The end of the names of prices of tokens for long prompts, which stands for all of them. */
const LONG_PRICE = "_above_N_tokens";

/** The reasons by the names of the fields. */
const REASONS = reasonsOf({
  "set models.M.limits of what the provider can take, accounts.A.rpm of a customer": "rpm tpm",
  "set models.M.limits.max_in_flight, or accounts.A.max_in_flight of a customer":
    "max_parallel_requests global_max_parallel_requests",
  "what a request must have is not set here": "enforced_params",
  "there are several deadlines here: set first_token_ms, idle_ms, total_ms of timeouts":
    "timeout request_timeout stream_timeout",
  "a price is of input and output, with at most six decimals per million tokens":
    "input_cost_per_token output_cost_per_token cache_read_input_token_cost " +
    "cache_creation_input_token_cost",
  "set models.M.long_prompts": `tiered_pricing ${LONG_PRICE}`,
  "breaker.failures and breaker.cooldown_ms, for all models, are integers of at least 1":
    "allowed_fails cooldown_time",
  "the vendor's API takes no such content from this gateway":
    "supports_audio_input supports_pdf_input",
  "retry.max_retries, also of a provider, is an integer from 0 to 10": "max_retries num_retries",
  "set retry.backoff_ms": "retry_after",
  "set headers of a provider or model": "extra_headers headers organization",
  "clients send it; models.M.extra sends it in every request, in place of theirs":
    "temperature top_p max_completion_tokens frequency_penalty seed stop presence_penalty " +
    "reasoning_effort extra_body max_tokens thinking top_k num_ctx",
  "an alias asks its models in the order of its list, or by its weights or policy":
    "routing_strategy routing_strategy_args weight order enable_pre_call_checks",
  "omit and takes of a provider or model say what is sent":
    "drop_params modify_params additional_drop_params allowed_openai_params",
  "no reply is kept here; the provider's own prompt cache works":
    "cache cache_params cache_responses caching_groups",
  "limits.store shares limits through Redis": "redis_host redis_port redis_password redis_url",
  "set telemetry.otlp for traces, or read /metrics":
    "success_callback failure_callback callbacks service_callback",
  "keys and costs are in data_dir: make keys with `keys create`":
    "database_url store_model_in_db database_connection_pool_limit " +
    "store_prompts_in_spend_logs disable_spend_logs salt_key",
  "Prometheus has the alerts: scripts/prometheus-alerts.yml":
    "alerting alert_types alerting_threshold alerting_args alert_to_webhook_url",
  "an alias skips models whose context_tokens are too few for the prompt":
    "context_window_fallbacks",
  "a refusal by a content filter is the answer, and no other model is asked":
    "content_policy_fallbacks",
  "list the models of each alias": "default_fallbacks",
  "set accounts.A.budget": "max_budget budget_duration",
  "no prompt is logged here, and each line of the log is JSON":
    "set_verbose json_logs turn_off_message_logging redact_user_api_key_info",
  "export these variables before the gateway starts": "environment_variables",
  "run init for that file too, and merge the results": "include",
  "deployments have no ids here: usage records name model and provider": "id base_model",
});

const NO_SETTING = "this gateway has no such setting";

/** `table`: the names for each reason, separated by blanks. */
function reasonsOf(table: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  const rows = Object.entries(table);
  return new Map(rows.flatMap(([reason, names]) => names.split(" ").map((name) => [name, reason])));
}

export interface LeftOutList {
  /** The fields in the order in which they were added. */
  readonly list: readonly LeftOut[];
  /** Adds one field. */
  add(path: string, reason: string): void;
  /** The object that the field holds. Empty if it has no value or, which is added, another one. */
  objectAt(path: string, value: unknown): Fields;
  /** Adds all fields of an object that have a value and are not among `carried`. */
  addRest(path: string, fields: Fields, carried: readonly string[]): void;
}

export function createLeftOutList(): LeftOutList {
  const list: LeftOut[] = [];
  const add = (path: string, reason: string): void => {
    list.push({ path, reason });
  };
  return {
    list,
    add,
    objectAt(path, value) {
      if (!isObject(value ?? {})) add(path, "expected an object");
      return asObject(value);
    },
    addRest(path, fields, carried) {
      for (const [name, value] of Object.entries(fields)) {
        if (value === null || value === undefined || carried.includes(name)) continue;
        const known = name.replace(/^\w+_token(_cost)?_above_\d+k_tokens$/, LONG_PRICE);
        add(path === "" ? name : `${path}.${name}`, REASONS.get(known) ?? NO_SETTING);
      }
    },
  };
}
