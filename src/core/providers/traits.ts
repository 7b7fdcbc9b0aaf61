// The differences between providers that speak one format, as data (wire.md "OpenAI-compatible
// providers", "Anthropic requests"). Each vendor's row in src/config/vendors.json says how it
// departs from the generic one. The configuration overrides a trait in a provider, and again in a
// model: these are the checks of both.
import {
  array,
  boolean,
  jsonObject,
  literal,
  nonEmpty,
  number,
  optional,
  record,
  refine,
  string,
  type Infer,
} from "../schema/checker.ts";

const sampling = ["temperature", "top_p"] as const;
const tokens = optional(number({ min: 1, integer: true }));
const texts = refine(record(string()), (entries) => Object.fromEntries(entries));

export const traitChecks = {
  /** The header that carries the provider's key. "none": requests carry no key. */
  auth: literal("bearer", "x-api-key", "api-key", "x-goog-api-key", "none"),
  /** Headers of every request, by name. */
  headers: texts,
  /** Query parameters of every request's address, by name. */
  query: texts,
  /**
   * The path that is appended to base_url in place of the format's own. `{model}` stands for
   * upstream_model, percent-encoded. Absent: the format's own.
   */
  path: optional(nonEmpty),
  /** As `path`, for requests for a stream. Absent: `path`. */
  stream_path: optional(nonEmpty),
  /** Whether the body names the model where the format does. If not, the path must. */
  model_in_body: boolean(),
  /**
   * How thinking is switched. Each format knows some values: DialectDefinition.thinkingSwitches.
   */
  thinking: nonEmpty,
  /**
   * Whether thinking can be switched off. If not, its text is left out unless the client asked for
   * it.
   */
  thinking_off: boolean(),
  /** The known depths of thinking. The one nearest to the client's reasoning_effort is sent. */
  efforts: array(nonEmpty),
  /** The capabilities of the model among those that not every model has. */
  supports: array(
    literal("tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"),
  ),
  /**
   * The known forms of tool_choice. `any`: all but named tools, with "any" for "required". `auto`:
   * only "auto".
   */
  tool_choice: literal("all", "any", "auto"),
  /** A higher temperature is lowered to this. */
  max_temperature: number({ min: 0, max: 2 }),
  /**
   * Parameters whose default is 1 at the provider too, so they are not sent where the client sends
   * none.
   */
  defaults_to_one: array(literal(...sampling)),
  /**
   * Whether the provider refuses temperature and top_p together. Then top_p is sent only without a
   * temperature.
   */
  temperature_or_top_p: boolean(),
  /**
   * Parameters that are not sent. One that would change the meaning of the reply makes the model
   * unfit for a request with it.
   */
  omit: array(
    literal(
      ...sampling,
      "frequency_penalty",
      "presence_penalty",
      "stop",
      "seed",
      "user",
      "parallel_tool_calls",
      "logprobs",
    ),
  ),
  /**
   * The fields of ChatRequest.further that are sent, and `name` if those of messages are. Others
   * are left out.
   */
  takes: array(
    literal(
      "logit_bias",
      "verbosity",
      "prompt_cache_key",
      "prompt_cache_retention",
      "safety_identifier",
      "name",
    ),
  ),
  /** The provider's names for parameters, by the usual ones. */
  rename: refine(record(nonEmpty), (names) => Object.fromEntries(names)),
  /** Fields that are always sent. */
  extra: jsonObject(),
  /**
   * The field in which tool calls that are sent back carry their reasoning while thinking is on.
   * Absent: reasoning_content if `thinking` is "thinking", else none.
   */
  echo: optional(literal("reasoning_content", "reasoning", "none")),
  /** Whether parts of messages keep the client's marks for the provider's cache. */
  cache_control: boolean(),
  /**
   * Parts of a client's own request that may pass to such a provider, beyond those that always may.
   */
  passes: array(nonEmpty),
  /** Whether a stream's usage must be asked for. */
  ask_usage: boolean(),
  /** Whether the model only streams, so that whole replies are assembled from a stream. */
  stream_only: boolean(),
  /** Whether reasoning is in the text, between `<think>` and `</think>`. */
  think_tags: boolean(),
  /** Whether the provider sends each piece of reasoning twice in a row. */
  repeats_reasoning: boolean(),
  /**
   * Whether total_tokens beyond prompt and completion are hidden thinking, billed as completion.
   */
  hidden_thinking_in_total: boolean(),
  /**
   * Whether a stream that ends with `[DONE]`, but states no finish_reason, is complete. Absent: if
   * it stated its usage.
   */
  done_without_finish: optional(boolean()),
  /** How the model is asked to continue the beginning of its own answer. "none": it cannot. */
  prefill: literal("none", "plain", "prefix", "partial", "continue_final_message"),
  /**
   * The most tokens of a reply, thinking included. A higher limit is lowered to this. Absent:
   * unknown.
   */
  max_output_tokens: tokens,
  /**
   * The limit that is sent to a format that demands one, where neither the client nor
   * max_output_tokens states any. Absent: none is sent.
   */
  default_output_tokens: tokens,
};

/** The traits of a model: those of its vendor, its provider and its own. */
export type Traits = {
  readonly [name in keyof typeof traitChecks]: Readonly<Infer<(typeof traitChecks)[name]>>;
};

export type SamplingParameter = (typeof sampling)[number];

/**
 * Traits that a vendor, a provider or a model states. Absent or undefined: those of the more
 * general one apply.
 */
export type TraitOverrides = { readonly [name in keyof Traits]?: Traits[name] | undefined };
