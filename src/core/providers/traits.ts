// The differences between providers that speak one format, as data (wire.md "OpenAI-compatible
// providers", "Anthropic requests"). Each vendor's row in src/config/vendors.json says how it
// departs from the generic one. The configuration overrides a trait in a provider, and again in a
// model; src/config/traits.ts checks both.

type Texts = Readonly<Record<string, string>>;

export type SamplingParameter = "temperature" | "top_p";

/** The traits of a model: those of its vendor, its provider and its own. */
export interface Traits {
  /** The header that carries the provider's key. "none": requests carry no key. */
  readonly auth: "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "none";
  /** Headers of every request, by name. */
  readonly headers: Texts;
  /** Query parameters of every request's address, by name. */
  readonly query: Texts;
  /**
   * The path that is appended to base_url in place of the format's own. `{model}` stands for
   * upstream_model, percent-encoded. Absent: the format's own.
   */
  readonly path: string | undefined;
  /** As `path`, for requests for a stream. Absent: `path`. */
  readonly stream_path: string | undefined;
  /** Whether the body names the model where the format does. If not, the path must. */
  readonly model_in_body: boolean;
  /**
   * How thinking is switched. Each format knows some values: DialectDefinition.thinkingSwitches.
   */
  readonly thinking: string;
  /**
   * Whether thinking can be switched off. If not, its text is left out unless the client asked for
   * it.
   */
  readonly thinking_off: boolean;
  /** The known depths of thinking. The one nearest to the client's reasoning_effort is sent. */
  readonly efforts: readonly string[];
  /**
   * The capabilities of the model among those that not every model has: tools, json_object,
   * json_schema, logprobs, images, audio, files.
   */
  readonly supports: readonly string[];
  /**
   * The known forms of tool_choice. `required`: all but named tools. `any`: the same, spelled "any"
   * as at Mistral, and as Mistral demands, ids of calls have nine characters, and the reasoning of
   * earlier replies goes back as a part of their content. `auto`: only "auto".
   */
  readonly tool_choice: "all" | "required" | "any" | "auto";
  /**
   * Whether the only system message must be the first message, as in chat templates of open models.
   */
  readonly system_first: boolean;
  /**
   * Whether user and assistant must alternate, as in the chat templates of Mistral's models. Then
   * the only system message must be the first message, too.
   */
  readonly alternates: boolean;
  /**
   * The most characters of the id of a tool call. A longer one, from another provider, is replaced.
   * Absent: any number.
   */
  readonly max_call_id: number | undefined;
  /** A higher temperature is lowered to this. */
  readonly max_temperature: number;
  /** A lower top_p is raised to this. */
  readonly min_top_p: number;
  /**
   * Parameters whose default is 1 at the provider too, so they are not sent where the client sends
   * none.
   */
  readonly defaults_to_one: readonly SamplingParameter[];
  /**
   * Whether the provider refuses temperature and top_p together. Then top_p is sent only without a
   * temperature.
   */
  readonly temperature_or_top_p: boolean;
  /**
   * Parameters that are not sent. One that would change the meaning of the reply makes the model
   * unfit for a request with it. `call_ids`: those of tool calls, where the format does without;
   * `vendor_betas`: a client's betas that clouds do not know.
   */
  readonly omit: readonly string[];
  /**
   * The fields of ChatRequest.extras that are sent; `name` if the names of messages are, `phase` if
   * the phases of replies in the Responses API are. Others are left out.
   */
  readonly takes: readonly string[];
  /** The header in which prompt_cache_key is sent, not in the body. Absent: there is none. */
  readonly cache_header: string | undefined;
  /** The provider's names for parameters, by the usual ones. */
  readonly rename: Texts;
  /** Fields that are always sent. */
  readonly extra: Readonly<Record<string, unknown>>;
  /**
   * The field in which the reasoning of a turn with tool calls goes back while thinking is on.
   * Absent: reasoning_content if `thinking` is "thinking", else none.
   */
  readonly echo: "reasoning_content" | "reasoning" | "none" | undefined;
  /** Whether parts of messages keep the client's marks for the provider's cache. */
  readonly cache_control: boolean;
  /**
   * Parts of a client's own request that may pass to such a provider, beyond those that always may.
   */
  readonly passes: readonly string[];
  /** Whether a stream's usage must be asked for. */
  readonly ask_usage: boolean;
  /** Whether the model only streams, so that whole replies are assembled from a stream. */
  readonly stream_only: boolean;
  /** Whether reasoning is in the text, between `<think>` and `</think>`. */
  readonly think_tags: boolean;
  /** Whether the provider sends each piece of reasoning twice in a row. */
  readonly repeats_reasoning: boolean;
  /**
   * Whether total_tokens beyond prompt and completion are hidden thinking, billed as completion.
   */
  readonly hidden_thinking_in_total: boolean;
  /**
   * Whether a stream that ends with `[DONE]`, but states no finish_reason, is complete. Absent: if
   * it stated its usage.
   */
  readonly done_without_finish: boolean | undefined;
  /** How the model is asked to continue the beginning of its own answer. "none": it cannot. */
  readonly prefill: "none" | "plain" | "prefix" | "partial" | "continue_final_message";
  /**
   * The most tokens of a reply, thinking included. A higher limit is lowered to this. Absent:
   * unknown.
   */
  readonly max_output_tokens: number | undefined;
  /**
   * The limit that is sent to a format that demands one, where neither the client nor
   * max_output_tokens states any. Absent: none is sent.
   */
  readonly default_output_tokens: number | undefined;
}

/**
 * Traits that a vendor, a provider or a model states. Absent or undefined: those of the more
 * general one apply.
 */
export type TraitOverrides = { readonly [name in keyof Traits]?: Traits[name] | undefined };
