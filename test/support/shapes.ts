// Checks of the public shapes of a reply, whole and in chunks: contract.md "Replies" and "Stream
// chunks", wire.md "To the client". /openapi.json must publish the same shapes.
import { nullable } from "../../src/config/fields.ts";
import {
  array,
  literal,
  nonEmpty,
  number,
  object,
  optional,
  string,
} from "../../src/core/schema/checker.ts";

const count = number({ min: 0, integer: true });

/** hit + miss = prompt; prompt + completion = total; completion includes reasoning. */
const usage = object({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_cache_hit_tokens: count,
  prompt_cache_miss_tokens: count,
  prompt_tokens_details: object({
    cached_tokens: count,
    cache_write_tokens: optional(count),
    cache_write_1h_tokens: optional(count),
  }),
  completion_tokens_details: object({ reasoning_tokens: count }),
});
const tokenFields = {
  token: string(),
  logprob: number(),
  bytes: nullable(array(number({ min: 0, max: 255, integer: true }))),
};
const tokenLogprob = object({ ...tokenFields, top_logprobs: array(object(tokenFields)) });
const tokens = array(tokenLogprob);
const logprobs = nullable(
  object({
    content: nullable(tokens),
    refusal: nullable(tokens),
    reasoning_content: optional(tokens),
  }),
);
const finishReason = literal("stop", "length", "tool_calls", "content_filter");
const toolCall = object({
  id: nonEmpty,
  type: literal("function"),
  function: object({ name: string(), arguments: string() }),
});
const fragment = object({ name: optional(string()), arguments: string() });
const toolFragment = object({
  index: count,
  id: optional(nonEmpty),
  type: optional(literal("function")),
  function: fragment,
});
// The fields that a whole message and a delta have in common.
const texts = { reasoning_content: optional(string()), refusal: optional(string()) };
const role = literal("assistant");
const message = object({
  role,
  content: nullable(string()),
  ...texts,
  tool_calls: optional(array(toolCall, { min: 1 })),
});
const delta = object({
  role: optional(role),
  content: optional(string()),
  ...texts,
  tool_calls: optional(array(toolFragment)),
});
const envelope = { id: nonEmpty, created: count, model: nonEmpty, system_fingerprint: string() };

export const completionShape = object({
  ...envelope,
  object: literal("chat.completion"),
  choices: array(object({ index: count, message, logprobs, finish_reason: finishReason })),
  usage,
});

export const chunkShape = object({
  ...envelope,
  object: literal("chat.completion.chunk"),
  choices: array(object({ index: count, delta, logprobs, finish_reason: nullable(finishReason) })),
  usage: optional(usage),
});
