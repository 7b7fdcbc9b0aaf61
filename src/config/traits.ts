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
  type Check,
} from "../core/schema/checker.ts";
import { wellFormed } from "./fields.ts";
import { nonSecretHeaderName, nonSecretHeaders } from "./headers.ts";
import { URL_VARS } from "./vendors.ts";

const sampling = ["temperature", "top_p"] as const;
const tokens = optional(number({ min: 1, integer: true }));
const texts = refine(record(wellFormed(0)), (entries) => Object.fromEntries(entries));

/** Parameters that not every provider accepts. */
const omitted = [
  ...sampling,
  "frequency_penalty",
  "presence_penalty",
  "stop",
  "seed",
  "user",
  "parallel_tool_calls",
  "logprobs",
] as const;
/** Parameters that may be sent under another name. */
const RENAMED: readonly string[] = [...omitted, "max_tokens", "top_logprobs"];
/** The other fields that the gateway writes into a request. */
const OTHERS = [
  "model",
  "messages",
  "stream",
  "stream_options",
  "tools",
  "tool_choice",
  "response_format",
];
const names = refine(record(nonEmpty), (entries) => {
  const taken = new Set([...RENAMED, ...OTHERS]);
  for (const [from, to] of entries) {
    if (!RENAMED.includes(from))
      fail("invalid_value", `expected one of ${RENAMED.join(", ")}`, [from]);
    if (taken.has(to)) fail("invalid_value", "is the name of another field", [from]);
    taken.add(to);
  }
  return Object.fromEntries(entries);
});

const PLACEHOLDERS = ["model", ...URL_VARS];
/** A path that is appended to base_url. */
const path = refine(wellFormed(1), (text) => {
  if (!text.startsWith("/")) fail("invalid_value", 'expected a path that begins with "/"');
  if (text.includes("#")) fail("invalid_value", "must not have a fragment, which is never sent");
  for (const [, name = ""] of text.matchAll(/\{([^}]*)\}/g))
    if (!PLACEHOLDERS.includes(name))
      fail("invalid_value", `{${name}} is not a placeholder; known: ${PLACEHOLDERS.join(", ")}`);
  return text;
});

export const traitChecks: { readonly [name in keyof Traits]: Check<Traits[name]> } = {
  auth: literal("bearer", "x-api-key", "api-key", "x-goog-api-key", "none"),
  headers: nonSecretHeaders,
  query: texts,
  path: optional(path),
  stream_path: optional(path),
  model_in_body: boolean(),
  /** Each format knows some values: DialectDefinition.thinkingSwitches. */
  thinking: nonEmpty,
  thinking_off: boolean(),
  efforts: array(nonEmpty),
  supports: array(
    literal("tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"),
  ),
  tool_choice: literal("all", "required", "any", "auto"),
  system_first: boolean(),
  alternates: boolean(),
  max_call_id: optional(number({ min: 32, integer: true })),
  max_temperature: number({ min: 0, max: 2 }),
  min_top_p: number({ min: 0, max: 1 }),
  defaults_to_one: array(literal(...sampling)),
  temperature_or_top_p: boolean(),
  omit: array(literal(...omitted, "call_ids", "vendor_betas")),
  takes: array(
    literal(
      "logit_bias",
      "verbosity",
      "prompt_cache_key",
      "prompt_cache_retention",
      "safety_identifier",
      "name",
      "phase",
      "metadata",
      "store",
      "block_binding",
    ),
  ),
  cache_header: optional(nonSecretHeaderName),
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
