// The checks of the traits that a configuration states. What they mean stands in
// core/providers/traits.ts.
import { record } from "./dictionaries.ts";
import type { DialectDefinition } from "../core/providers/dialect.ts";
import type { Traits } from "../core/providers/traits.ts";
import {
  array,
  boolean,
  jsonObject,
  literal,
  nonEmpty,
  number,
  optional,
  type Check,
} from "../core/schema/checker.ts";

type TraitChecks = { readonly [name in keyof Traits]: Check<Traits[name]> };

const samplingParameter = literal("temperature", "top_p");

const fields: TraitChecks = {
  thinking: nonEmpty,
  thinking_off: boolean(),
  efforts: array(nonEmpty),
  supports: array(
    literal("tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"),
  ),
  tool_choice: literal("all", "any", "auto"),
  max_temperature: number({ min: 0, max: 2 }),
  defaults_to_one: array(samplingParameter),
  temperature_or_top_p: boolean(),
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
  rename: record(nonEmpty),
  extra: jsonObject(),
  echo: optional(literal("reasoning_content", "reasoning", "none")),
  cache_control: boolean(),
  passes: array(nonEmpty),
  ask_usage: boolean(),
  stream_only: boolean(),
  think_tags: boolean(),
  repeats_reasoning: boolean(),
  hidden_thinking_in_total: boolean(),
  done_without_finish: optional(boolean()),
  prefill: literal("none", "plain", "prefix", "partial", "continue_final_message"),
  max_output_tokens: optional(number({ min: 1, integer: true })),
  default_output_tokens: optional(number({ min: 1, integer: true })),
};

/** The checks of all traits, where these formats are known. */
export const traitFields = (definitions: readonly DialectDefinition[]): TraitChecks => ({
  ...fields,
  thinking: literal(...new Set(definitions.flatMap((definition) => definition.thinkingSwitches))),
});
