// Levels `spec` and `compatible`: the rules that every whole reply and stream of the run must meet.

import { parseJson, type Exchange } from "../client.ts";
import * as expect from "../expect.ts";
import * as is from "../forms.ts";
import { first, isCount, isObject, isText, list } from "../shapes.ts";
import { Shape, type Expected, type Fields } from "../shapes.ts";
import { choicesOf, sectionsOf, valuesAt } from "./kit.ts";

const [spec, compatible] = [sectionsOf("spec"), sectionsOf("compatible")];
const endpoints = spec('contract.md "Endpoints"');
const replies = spec('contract.md "Replies"');
const chunks = spec('contract.md "Stream chunks"');
const wholes = compatible('wire.md "Whole replies"');
const logprobs = compatible('wire.md "Log probabilities"');
const usage = compatible('wire.md "Usage in streams"');

const header =
  (name: string, expected: Expected) =>
  ({ headers }: Exchange) =>
    expect.field({ [name]: headers[name] }, name, expected);
const json: Expected = /^application\/json\b/;

/** Another rule reports values that are not numbers. */
const sum =
  (whole: string, ...parts: readonly string[]) =>
  (reply: Exchange): void => {
    const [total, one, other] = [whole, ...parts].map((name) => first(reply.usage, name));
    if (isCount(total) && isCount(one) && isCount(other))
      expect.that(one + other === total, `${whole} to be ${parts.join(" + ")}`, reply.usage);
  };
/** Compares a figure with another one. If that is not a number, another rule reports it. */
const compared = (words: string, path: string, holds: (one: number, other: number) => boolean) =>
  new Shape(words, (value, { root }) => {
    const other = first(root, path);
    return isCount(value) && (!isCount(other) || holds(value, other));
  });
const DETAILS: Fields = {
  "usage.prompt_tokens_details.cached_tokens": compared(
    "the same as prompt_cache_hit_tokens",
    "usage.prompt_cache_hit_tokens",
    (cached, hit) => cached === hit,
  ),
  "usage.completion_tokens_details.reasoning_tokens": compared(
    "at most completion_tokens",
    "usage.completion_tokens",
    (reasoning, all) => reasoning <= all,
  ),
};
const CALLS = "choices[].message.tool_calls";
const TOOL_CALL: Fields = {
  [CALLS]: new Shape(
    "an array of at least one call where it is present",
    (value) => value === undefined || list(value).length > 0,
  ),
  [`${CALLS}[].id`]: is.text,
  [`${CALLS}[].type`]: "function",
  [`${CALLS}[].function.name`]: is.text,
  [`${CALLS}[].function.arguments`]: is.jsonText,
};
const isByte = (value: unknown) => isCount(value) && value < 256;
const TOKEN = "choices[].logprobs.content[]";
const LOGPROBS: Fields = {
  [`${TOKEN}.token`]: is.string,
  [`${TOKEN}.logprob`]: new Shape(
    "a number, at most 0",
    (value) => typeof value === "number" && value <= 0,
  ),
  [`${TOKEN}.bytes`]: new Shape(
    "an array of bytes, or null",
    (value) => value === null || (Array.isArray(value) && value.every(isByte)),
  ),
  [`${TOKEN}.top_logprobs`]: is.array,
};
const noThoughts = ({ asked, thoughts }: Exchange) =>
  first(asked, "thinking.type") === "enabled" || expect.same(thoughts, "");

endpoints.rules("reply", {
  "reply.json: a reply that is not streamed is a JSON object": ({ json, text }) =>
    expect.that(isObject(json), "a JSON object", text),
});
replies.fields("reply", "reply", is.REPLY);
replies.rules("reply", {
  "usage.sum: total_tokens is prompt_tokens plus completion_tokens": sum(
    "total_tokens",
    "prompt_tokens",
    "completion_tokens",
  ),
  "usage.cache-sum: prompt tokens were served from cache or not": sum(
    "prompt_tokens",
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
  ),
  "thinking.not-asked-for: without thinking enabled a message has no reasoning_content": noThoughts,
});
wholes.rules("reply", {
  "reply.media-type: a whole reply is application/json": header("content-type", json),
});
wholes.fields("reply", "reply", { ...TOOL_CALL, ...LOGPROBS });
logprobs.rules("reply", {
  "reply.logprobs.unasked: logprobs is null unless requested": ({ asked, json }) => {
    for (const value of asked["logprobs"] === true ? [] : valuesAt(json, "choices[].logprobs"))
      expect.same(value ?? null, null);
  },
});
compatible('wire.md "Token counts"').fields("reply", "reply", DETAILS);

// A block that has only a comment or other fields is not an event; another rule covers these.
const isHarmless = (line: string) => /^(:|(event|id|retry)\b)/.test(line);
/** The value must be the same in all chunks that have it. Another rule reports missing ones. */
const isSame =
  (path: string) =>
  ({ parts }: Exchange): void => {
    const [one, ...others] = parts.map((chunk) => first(chunk, path)).filter(Boolean);
    for (const other of others) expect.that(other === one, `${path} as in the first chunk`, other);
  };

endpoints.rules("stream", {
  "stream.media-type: a stream is text/event-stream": header(
    "content-type",
    /^text\/event-stream\b/,
  ),
  "stream.lines: each event is one line of the form `data: ...`, then a blank line": (stream) => {
    for (const { lines, data } of stream.events) {
      const isOne = lines.length === 1 && lines[0]!.startsWith("data: ");
      const holds = data === undefined ? lines.every(isHarmless) : isOne;
      expect.that(holds, "one line `data: ...`", lines.join("\n"));
    }
    expect.that(stream.rest === "", "a blank line at the end", stream.rest);
  },
  "stream.json: each event but the last is a JSON object": ({ events }) => {
    for (const { data, json } of events)
      if (data !== undefined && data.trim() !== "[DONE]")
        expect.that(isObject(json), "a JSON object", data);
  },
  "stream.done: a stream ends with the line `data: [DONE]`, once": ({ events }) => {
    const terminators = events.filter(({ data }) => data?.trim() === "[DONE]").length;
    const last = events.at(-1)?.lines.join("\n");
    const isLast = terminators === 1 && last === "data: [DONE]";
    expect.that(isLast, "`data: [DONE]` as the last event", last);
  },
});
compatible('wire.md "Framing"').rules("stream", {
  "stream.cache-control: a stream has Cache-Control: no-cache, no-transform": header(
    "cache-control",
    /^(?=.*\bno-cache\b).*\bno-transform\b/,
  ),
  "stream.buffering: a stream has X-Accel-Buffering: no": header("x-accel-buffering", "no"),
  "stream.no-length: a stream has no Content-Length": header("content-length", undefined),
  "stream.line-ends: lines end with LF alone": ({ text }) =>
    expect.that(!text?.includes("\r"), "no CR", "CR"),
  "stream.no-fields: no `event:`, `id:` or `retry:`, on which clients break": ({ events }) => {
    for (const line of events.flatMap(({ lines }) => lines))
      expect.that(!/^(event|id|retry)\b/.test(line), "data and comments only", line);
  },
  "stream.ends: the response ends right after [DONE]: clients wait for that": ({ closingMs }) => {
    const late = Math.round(closingMs);
    expect.that(late < 1_000, "the end within a second", `${late} ms`);
  },
});

const asksUsage = (asked: unknown) => first(asked, "stream_options.include_usage") === true;
const hasUsage = (chunk: unknown) => isObject(first(chunk, "usage"));
const hasText = (choice: unknown) => isText(first(choice, "delta.content"));
const thinks = (choice: unknown) => isText(first(choice, "delta.reasoning_content"));
chunks.fields("stream", "chunk", is.CHUNK);
chunks.rules("stream", {
  "thinking.not-asked-for.stream: without thinking enabled no delta has reasoning_content":
    noThoughts,
  "chunk.id.same: id is the same in all chunks of a completion": isSame("id"),
  "chunk.role.first: delta.role is in the first chunk": ({ parts }) => {
    const role = first(parts[0], "choices[].delta.role");
    expect.that(role !== undefined, "a role in the first chunk", parts[0]);
  },
  "chunk.role.once: delta.role is present only in the first chunk": ({ parts }) => {
    for (const chunk of parts.slice(1)) expect.field(chunk, "choices[].delta.role", undefined);
  },
  "chunk.finish_reason.null: finish_reason is null in every chunk except the last": (stream) => {
    for (const choice of choicesOf(stream).slice(0, -1))
      expect.that(!isText(first(choice, "finish_reason")), "null before the last chunk", choice);
  },
  "chunk.finish_reason.last: the final chunk carries a finish_reason": (stream) => {
    const reason = first(choicesOf(stream).at(-1), "finish_reason");
    expect.that(reason !== null, "a finish_reason in the last chunk with a choice", reason);
  },
});
compatible('wire.md "Chunks"').rules("stream", {
  "chunk.created.same: created is the same in all chunks": isSame("created"),
  "chunk.model.same: model is the same in all chunks": isSame("model"),
  "chunk.no-empty-choices: choices is empty only in the chunk with usage": ({ parts }) => {
    for (const chunk of parts) if (!hasUsage(chunk)) expect.field(chunk, "choices", is.members);
  },
  "chunk.one-text: never both thinking and text in one delta": (stream) => {
    for (const choice of choicesOf(stream))
      expect.that(!(hasText(choice) && thinks(choice)), "one text", choice);
  },
  "chunk.thinking-first: thinking comes before text": (stream) => {
    const choices = choicesOf(stream);
    // Another rule reports a delta with both.
    const textFrom = choices.findIndex((choice) => hasText(choice) && !thinks(choice));
    for (const choice of textFrom === -1 ? [] : choices.slice(textFrom + 1))
      expect.that(!thinks(choice), "no thinking after text", choice);
  },
});
usage.rules("stream", {
  "usage.once: usage comes exactly once, if include_usage was set": ({ asked, parts }) => {
    if (asksUsage(asked)) expect.that(parts.filter(hasUsage).length === 1, "one usage", parts);
  },
  "usage.last: the chunk with usage is the last, and its choices are []": ({ asked, parts }) => {
    const chunk = parts.find(hasUsage);
    if (!asksUsage(asked) || chunk === undefined) return;
    const isLast = hasUsage(parts.at(-1)) && list(first(chunk, "choices")).length === 0;
    expect.that(isLast, "usage after all", chunk);
  },
  "usage.unasked: no usage, if include_usage was not set": ({ asked, parts }) => {
    const isShown = !asksUsage(asked) && parts.some(hasUsage);
    expect.that(!isShown, "no usage", parts.find(hasUsage));
  },
});
usage.fields(
  "stream",
  "chunk",
  Object.fromEntries(Object.entries(is.REPLY).filter(([path]) => path.startsWith("usage."))),
);
logprobs.fields("stream", "chunk", LOGPROBS);

/** The fragments of tool calls, each with its index. */
const fragmentsOf = (stream: Exchange) =>
  choicesOf(stream)
    .flatMap((choice) => list(first(choice, "delta.tool_calls")))
    .map((fragment) => ({ fragment, index: first(fragment, "index") }));
/** The field must be in the first fragment of a call, and in no other. */
const onceOf = (path: string) => (stream: Exchange) => {
  const begun = new Set<unknown>();
  for (const { fragment, index } of fragmentsOf(stream)) {
    const value = first(fragment, path);
    const holds = begun.has(index) ? value === undefined : isText(value);
    expect.that(holds, `${path} in the first fragment alone`, fragment);
    begun.add(index);
  }
};
compatible('wire.md "Chunks"').rules("stream", {
  "chunk.tool_calls.index: each fragment of a tool call has its index, counted from 0": (
    stream,
  ) => {
    let next = 0;
    for (const { fragment, index } of fragmentsOf(stream)) {
      expect.that(isCount(index) && index <= next, `an index up to ${next}`, fragment);
      next = Math.max(next, index + 1);
    }
  },
  "chunk.tool_calls.function: each fragment has arguments, a string": (stream) => {
    for (const { fragment } of fragmentsOf(stream))
      expect.fields(fragment, { "function.arguments": is.string });
  },
  "chunk.tool_calls.id: id of a tool call comes once, in its first fragment": onceOf("id"),
  "chunk.tool_calls.type: type of a tool call comes once, in its first fragment": onceOf("type"),
  "chunk.tool_calls.function.name: its name comes once, in its first fragment":
    onceOf("function.name"),
  "chunk.tool_calls.arguments: the fragments' arguments are JSON together": (stream) => {
    const calls = new Map<unknown, string>();
    for (const { fragment, index } of fragmentsOf(stream)) {
      const piece = first(fragment, "function.arguments") ?? "";
      calls.set(index, `${calls.get(index) ?? ""}${piece}`);
    }
    for (const each of calls.values()) expect.that(isObject(parseJson(each)), "JSON", each);
  },
});
