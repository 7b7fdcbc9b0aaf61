// The expected values in replies: the shapes that checks name, and the fields of a reply, of a
// chunk and of an error.

import { parseJson } from "./client.ts";
import { first, isCount, isObject, isText, list, Shape, type Fields } from "./shapes.ts";

export const text = new Shape("a non-empty string", isText);
export const string = new Shape("a string", (value) => typeof value === "string");
export const jsonText = new Shape("a JSON object as a string", (value) =>
  isObject(parseJson(isText(value) ? value : undefined)),
);
export const count = new Shape("a count", isCount);
export const positive = new Shape("above 0", (value) => isCount(value) && value > 0);
export const object = new Shape("an object", isObject);
export const array = new Shape("an array", Array.isArray);
export const members = new Shape("an array that has members", (value) => list(value).length > 0);
export const empty = new Shape("nothing", (value) => (value ?? "") === "");
export const atMost = (most: number): Shape =>
  new Shape(`a count, at most ${most}`, (value) => isCount(value) && value <= most);
/** A time in seconds from 2001 to 2286, so that milliseconds fail. */
const unixTime = new Shape(
  "a Unix timestamp in seconds",
  (value) => isCount(value) && value > 1_000_000_000 && value < 10_000_000_000,
);
const textOrNothing = new Shape(
  "a string where it is present, or null",
  (value) => (value ?? null) === null || typeof value === "string",
);
/**
 * A reply that a filter cut short has this finish_reason in streams too (wire.md "Finish reasons").
 */
const REASONS: readonly unknown[] = ["stop", "length", "tool_calls", "content_filter"];
const reason = "stop, length, tool_calls or content_filter";

/** contract.md "Replies". */
export const REPLY: Fields = {
  id: text,
  object: "chat.completion",
  created: unixTime,
  model: text,
  system_fingerprint: string,
  choices: members,
  "choices[].index": new Shape(
    "the position of the choice in the list",
    (value, { root, parent }) => value === list(first(root, "choices")).indexOf(parent),
  ),
  "choices[].message": object,
  "choices[].message.role": "assistant",
  "choices[].message.content": new Shape(
    "a string, or null beside tool calls",
    (value, { parent }) =>
      typeof value === "string" || (value === null && list(first(parent, "tool_calls")).length > 0),
  ),
  "choices[].finish_reason": new Shape(reason, (value) => REASONS.includes(value)),
  usage: object,
  "usage.prompt_tokens": positive,
  "usage.completion_tokens": count,
  "usage.total_tokens": count,
  "usage.prompt_cache_hit_tokens": count,
  "usage.prompt_cache_miss_tokens": count,
};

/** contract.md "Stream chunks". */
export const CHUNK: Fields = {
  id: text,
  object: "chat.completion.chunk",
  created: unixTime,
  model: text,
  choices: array,
  "choices[].index": new Shape("a position, from 0", isCount),
  "choices[].delta": object,
  "choices[].delta.role": new Shape(
    '"assistant" where it is present',
    (value) => value === undefined || value === "assistant",
  ),
  "choices[].delta.content": textOrNothing,
  "choices[].delta.reasoning_content": textOrNothing,
  "choices[].finish_reason": new Shape(
    `null, ${reason}`,
    (value) => value === null || REASONS.includes(value),
  ),
};

/** contract.md "Errors". */
export const ERROR: Fields = { message: text, type: text, code: text, request_id: text };
