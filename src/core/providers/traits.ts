// What differs between providers that speak one format, as data (WIRE.md 6, 7.1). Each vendor's row
// in vendors.json says how it departs from the generic one. The configuration overrides a trait in
// a provider, and again in a model.
import {
  array,
  boolean,
  jsonObject,
  literal,
  nonEmpty,
  number,
  optional,
  record,
  type Check,
} from "../schema/checker.ts";
import type { DialectDefinition } from "./dialect.ts";

export interface Traits {
  /** How thinking is switched. Each format knows some of the values. */
  readonly thinking: string;
  /**
   * Whether thinking can be switched off. If not, its text is left out unless the client asked for
   * it.
   */
  readonly thinking_off: boolean;
  /** The known depths of thinking. The one nearest to the client's reasoning_effort is sent. */
  readonly efforts: readonly string[];
  /** What the model can do of what not every model can. */
  readonly supports: readonly Capability[];
  /**
   * The known forms of tool_choice. `any`: all but named tools, with "any" for "required". `auto`:
   * only "auto".
   */
  readonly tool_choice: "all" | "any" | "auto";
  /** A higher temperature is lowered to this. */
  readonly max_temperature: number;
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
   * unfit for a request that has it.
   */
  readonly omit: readonly OmittedParameter[];
  /** The provider's names for parameters, by the usual ones. */
  readonly rename: ReadonlyMap<string, string>;
  /** Fields that are always sent. */
  readonly extra: Readonly<Record<string, unknown>>;
  /**
   * The field in which tool calls that are sent back carry their reasoning while thinking is on.
   * Undefined: reasoning_content if `thinking` is "thinking", else none.
   */
  readonly echo: "reasoning_content" | "reasoning" | "none" | undefined;
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
   * The most tokens of a reply, thinking included. A higher limit is lowered to this. Undefined:
   * unknown.
   */
  readonly max_output_tokens: number | undefined;
}

export type Capability = (typeof CAPABILITIES)[number];
const CAPABILITIES = [
  "tools",
  "json_object",
  "json_schema",
  "logprobs",
  "images",
  "audio",
  "files",
] as const;

export type SamplingParameter = (typeof SAMPLING_PARAMETERS)[number];
const SAMPLING_PARAMETERS = ["temperature", "top_p"] as const;

type OmittedParameter = (typeof OMITTED_PARAMETERS)[number];
const OMITTED_PARAMETERS = [
  ...SAMPLING_PARAMETERS,
  "frequency_penalty",
  "presence_penalty",
  "stop",
  "seed",
  "user",
  "parallel_tool_calls",
  "logprobs",
] as const;

/** The checks of all traits, where these formats are known. */
export const traitFields = (definitions: readonly DialectDefinition[]) =>
  ({
    thinking: literal(...new Set(definitions.flatMap((each) => each.thinkingSwitches))),
    thinking_off: boolean(),
    efforts: array(nonEmpty),
    supports: array(literal(...CAPABILITIES)),
    tool_choice: literal("all", "any", "auto"),
    max_temperature: number({ min: 0, max: 2 }),
    defaults_to_one: array(literal(...SAMPLING_PARAMETERS)),
    temperature_or_top_p: boolean(),
    omit: array(literal(...OMITTED_PARAMETERS)),
    rename: record(nonEmpty),
    extra: jsonObject(),
    echo: optional(literal("reasoning_content", "reasoning", "none")),
    ask_usage: boolean(),
    stream_only: boolean(),
    think_tags: boolean(),
    repeats_reasoning: boolean(),
    hidden_thinking_in_total: boolean(),
    max_output_tokens: optional(number({ min: 1, integer: true })),
  }) satisfies { readonly [name in keyof Traits]: Check<Traits[name]> };
