// The checks of the traits that a provider or a model may state. Their meanings are in
// src/core/providers/traits.ts.
import type { Traits } from "../core/providers/traits.ts";
import {
  array,
  boolean,
  fail,
  jsonObject,
  literal,
  nonEmpty,
  number,
  optional,
  record,
  refine,
  string,
  type Check,
} from "../core/schema/checker.ts";

const sampling = ["temperature", "top_p"] as const;
const tokens = optional(number({ min: 1, integer: true }));
const texts = refine(record(string()), (entries) => Object.fromEntries(entries));
const names = refine(record(nonEmpty), (entries) => Object.fromEntries(entries));

const sendable = string({ pattern: /^[\x20-\x7e]*$/, expected: "printable ASCII" });
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const headerName = string({ pattern: HEADER_NAME, expected: "the name of a header" });
const headers = refine(record(sendable), (entries) => {
  for (const name of entries.keys())
    if (!HEADER_NAME.test(name)) fail("invalid_value", "is no name of a header", [name]);
  return Object.fromEntries(entries);
});

export const traitChecks: { readonly [name in keyof Traits]: Check<Traits[name]> } = {
  auth: literal("bearer", "x-api-key", "api-key", "x-goog-api-key", "none"),
  headers,
  query: texts,
  path: optional(nonEmpty),
  stream_path: optional(nonEmpty),
  model_in_body: boolean(),
  /** Each format knows some values: DialectDefinition.thinkingSwitches. */
  thinking: nonEmpty,
  thinking_off: boolean(),
  efforts: array(nonEmpty),
  supports: array(
    literal("tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"),
  ),
  tool_choice: literal("all", "any", "auto"),
  max_temperature: number({ min: 0, max: 2 }),
  defaults_to_one: array(literal(...sampling)),
  temperature_or_top_p: boolean(),
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
  takes: array(
    literal(
      "logit_bias",
      "verbosity",
      "prompt_cache_key",
      "prompt_cache_retention",
      "safety_identifier",
      "name",
      "metadata",
      "store",
    ),
  ),
  cache_header: optional(headerName),
  rename: names,
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
  max_output_tokens: tokens,
  default_output_tokens: tokens,
};
