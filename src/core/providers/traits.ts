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
  object,
  optional,
  record,
  type Infer,
} from "../schema/checker.ts";
import type { DialectDefinition } from "./dialect.ts";

const samplingParameter = literal("temperature", "top_p");

const fields = {
  /** How thinking is switched. Each format knows some of the values. */
  thinking: nonEmpty,
  /**
   * Whether thinking can be switched off. If not, its text is left out unless the client asked for
   * it.
   */
  thinking_off: boolean(),
  /** The known depths of thinking. The one nearest to the client's reasoning_effort is sent. */
  efforts: array(nonEmpty),
  /** What the model can do of what not every model can. */
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
  defaults_to_one: array(samplingParameter),
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
      "temperature",
      "top_p",
      "frequency_penalty",
      "presence_penalty",
      "stop",
      "seed",
      "user",
      "parallel_tool_calls",
      "logprobs",
    ),
  ),
  /** The provider's names for parameters, by the usual ones. */
  rename: record(nonEmpty),
  /** Fields that are always sent. */
  extra: jsonObject(),
  /**
   * The field in which tool calls that are sent back carry their reasoning while thinking is on.
   * Absent: reasoning_content if `thinking` is "thinking", else none.
   */
  echo: optional(literal("reasoning_content", "reasoning", "none")),
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
   * The most tokens of a reply, thinking included. A higher limit is lowered to this. Absent:
   * unknown.
   */
  max_output_tokens: optional(number({ min: 1, integer: true })),
};

const traits = object(fields);
export type Traits = Readonly<Infer<typeof traits>>;
export type SamplingParameter = Infer<typeof samplingParameter>;

/** The checks of all traits, where these formats are known. */
export const traitFields = (definitions: readonly DialectDefinition[]): typeof fields => ({
  ...fields,
  thinking: literal(...new Set(definitions.flatMap((definition) => definition.thinkingSwitches))),
});
