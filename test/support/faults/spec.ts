// A fault for each check of the level `spec`, by the check's id less the level.

import { parse, type Fault } from "../wrong-gateway.ts";
import {
  ALIAS,
  again,
  anyBody,
  asks,
  blocks,
  body,
  both,
  chat,
  chunks,
  error,
  field,
  good,
  GOOD,
  has,
  header,
  health,
  ifGood,
  increment,
  limited,
  mends,
  message,
  MODEL,
  named,
  not,
  nowhere,
  otherId,
  ownId,
  raw,
  REASONING,
  refuses,
  reply,
  status,
  stream,
  STREAM,
  thinks,
  to,
  WHOLE,
  withKey,
  WORD,
  WORD_STREAM,
  WORD_WHOLE,
} from "./kit.ts";

/** Faults in what a request may say, for a field with a range. */
const ranged = ([name, low, high]: readonly [string, number, number]): Record<string, Fault> => ({
  [`${name}.lowest`]: refuses(field(name, (value) => value === low)),
  [`${name}.highest`]: refuses(field(name, (value) => value === high)),
  [`${name}.below`]: mends(
    field(name, (value) => typeof value === "number" && value < low),
    { [name]: undefined },
  ),
  [`${name}.above`]: mends(
    field(name, (value) => typeof value === "number" && value > high),
    { [name]: undefined },
  ),
  [`${name}.type`]: mends(
    field(name, (value) => typeof value === "string"),
    { [name]: undefined },
  ),
});

const spec: Record<string, Fault> = {
  answers: { when: ({ method }) => method === "DELETE", cut: true },

  "request-id.present": {
    when: both(health, ownId(undefined)),
    answer: header("x-request-id", () => undefined),
  },
  "request-id.format": {
    when: both(health, ownId(undefined)),
    answer: header("x-request-id", (id) => id.slice(0, -1)),
  },
  "request-id.unique": {
    when: WHOLE,
    answer: ifGood(header("x-request-id", () => `req_${"0".repeat(32)}`)),
  },
  "request-id.echo": { when: ownId("conformance-whole"), answer: otherId },
  "request-id.echo.stream": { when: ownId("conformance-stream"), answer: otherId },
  "request-id.echo.error": { when: ownId("conformance-error"), answer: otherId },
  "request-id.echo.free-form": {
    when: ({ headers }) => /[^\w.-]/.test(String(headers["x-request-id"] ?? "")),
    answer: otherId,
  },
  "request-id.echo.healthz": { when: ownId("conformance-healthz"), answer: otherId },
  "request-id.echo.again": { when: again("conformance-again"), answer: otherId },
  "request-id.malformed": raw("this is not HTTP", (answer) =>
    answer.replace(/x-request-id:[^\r]*\r\n/i, ""),
  ),
  "request-id.in-error": error("error.request_id", () => "req_of_another"),

  healthz: refuses(
    both(
      health,
      ({ headers }) => headers.authorization === undefined && headers["x-request-id"] === undefined,
    ),
  ),
  "healthz.any-key": refuses(both(health, ({ headers }) => headers.authorization !== undefined)),

  "model.canonical": {
    when: both(WORD_WHOLE, to(MODEL)),
    answer: body("model", () => `${MODEL}-2026-01-01`),
  },
  "model.canonical.stream": {
    when: both(WORD_STREAM, to(MODEL)),
    answer: chunks("model", () => `${MODEL}-2026-01-01`),
  },
  "alias.chat": { when: both(WORD_WHOLE, to(ALIAS)), answer: body("model", () => ALIAS) },
  "alias.stream": { when: both(WORD_STREAM, to(ALIAS)), answer: chunks("model", () => ALIAS) },
  "alias.reasoning": {
    when: both(WORD_WHOLE, to(REASONING)),
    answer: body("model", () => REASONING),
  },
  "alias.names-a-model": refuses(asks("Who are you?")),
  "alias.same-format": refuses(
    both(
      to(ALIAS),
      field("temperature", (value) => value === 0.7),
    ),
  ),
  "model.unknown": mends(to("no-such-model"), { model: MODEL }),
  "alias.unknown": mends(to("auto/no-such-alias"), { model: MODEL }),

  "request.many-fields": refuses(
    both(
      to(MODEL),
      field("temperature", (value) => value === 0.7),
    ),
  ),
  "model.missing": mends(
    chat(({ body: given }) => "messages" in given && !("model" in given)),
    { model: MODEL },
  ),
  "model.type": mends(
    field("model", (value) => typeof value !== "string"),
    { model: MODEL },
  ),
  "messages.missing": mends(
    chat(({ body: given }) => "model" in given && !("messages" in given)),
    good,
  ),
  "messages.type": mends(
    field("messages", (value) => value === "Say hello."),
    good,
  ),
  "messages.element": mends(
    field("messages", (value) => Array.isArray(value) && typeof value[0] === "string"),
    good,
  ),
  "body.not-json": mends(
    chat(({ text }) => text !== "" && parse(text) === undefined),
    GOOD,
  ),
  "body.empty": mends(
    chat(({ text }) => text === ""),
    GOOD,
  ),
  "body.not-an-object": mends(
    chat(({ text }) => text === "[]"),
    GOOD,
  ),

  "messages.system": refuses(message(({ role }) => role === "system")),
  "messages.assistant": refuses(message(({ role }) => role === "assistant")),
  "role.missing": mends(
    message((given) => !("role" in given)),
    good,
  ),
  "role.unknown": mends(
    message(({ role }) => role === "narrator"),
    good,
  ),
  "role.type": mends(
    message(({ role }) => typeof role === "number"),
    good,
  ),
  "content.missing": mends(
    message((given) => !("content" in given)),
    good,
  ),
  "content.type": mends(
    message(({ content }) => typeof content === "number"),
    good,
  ),

  "stream.false": refuses(asks("Whole?")),
  "stream.type": mends(
    field("stream", (value) => typeof value === "string"),
    { stream: false },
  ),
  "max_tokens.accepted": refuses(field("max_tokens", (value) => value === 64)),
  "max_tokens.type": mends(
    field("max_tokens", (value) => typeof value === "string"),
    { max_tokens: 64 },
  ),
  "max_tokens.integer": mends(
    field("max_tokens", (value) => value === 1.5),
    { max_tokens: 2 },
  ),
  "max_tokens.obeyed": mends(asks("Count", false), { max_tokens: undefined }),
  "max_tokens.obeyed.stream": mends(asks("Count", true), { max_tokens: undefined }),
  "stop.string": mends(
    field("stop", (value) => value === WORD),
    { stop: undefined },
  ),
  "stop.array": mends(
    field("stop", (value) => Array.isArray(value) && value.includes(WORD)),
    { stop: ["zebra"] },
  ),
  "stop.four": refuses(field("stop", (value) => Array.isArray(value) && value.length === 4)),
  "stop.five": mends(
    field("stop", (value) => Array.isArray(value) && value.length === 5),
    { stop: undefined },
  ),
  "stop.type": mends(
    field("stop", (value) => typeof value === "number"),
    { stop: undefined },
  ),
  "stop.element": mends(
    field("stop", (value) => Array.isArray(value) && typeof value[0] === "number"),
    { stop: undefined },
  ),
  ...Object.fromEntries(
    ["stop", "tools", "thinking", "top_logprobs", "stream_options"].map((name) => [
      `${name}.null`,
      refuses(field(name, (value) => value === null)),
    ]),
  ),
  "tool_choice.default": mends(both(has("tools"), asks("in Oslo")), { tool_choice: "auto" }),
  "tool_choice.none": mends(
    both(
      has("tools"),
      field("tool_choice", (value) => value === "none"),
    ),
    { tool_choice: "auto" },
  ),
  "tool_choice.auto": refuses(field("tool_choice", (value) => value === "auto")),
  "tool_choice.named": mends(asks("Write to ada"), {
    tool_choice: { type: "function", function: { name: "get_time" } },
  }),
  "finish_reason.tool_calls": {
    when: asks("in Rome"),
    answer: body("choices[].finish_reason", () => "stop"),
  },
  "tools.type": mends(
    field("tools", (value) => typeof value === "string"),
    { tools: undefined },
  ),
  "tool_choice.type": mends(
    field("tool_choice", (value) => typeof value === "number"),
    { tool_choice: "none" },
  ),
  "response_format.text": refuses(asks("As text?")),
  "response_format.json_object": mends(asks("Answer as JSON"), { response_format: undefined }),
  "response_format.type": mends(
    field("response_format", (value) => typeof value === "string"),
    { response_format: undefined },
  ),
  "thinking.type": mends(
    field("thinking", (value) => typeof value === "string"),
    { thinking: undefined },
  ),
  "thinking.whole": {
    when: both(asks("6 times 7", false), to(REASONING)),
    answer: body("choices[].message.reasoning_content", () => undefined),
  },
  "thinking.stream": {
    when: both(asks("6 times 7", true), to(REASONING)),
    answer: chunks("choices[].delta.reasoning_content", () => undefined),
  },
  "thinking.plain-model": {
    when: both(asks("6 times 7"), to(MODEL), thinks),
    answer: body("choices[].message.reasoning_content", () => "Hm."),
  },
  "thinking.not-asked-for": reply("choices[].message.reasoning_content", () => "Hm."),
  "thinking.not-asked-for.stream": stream("choices[].delta.reasoning_content", (value, index) =>
    index === 0 ? "Hm." : value,
  ),
  "logprobs.true": { when: asks("How likely"), answer: body("choices[].logprobs", () => null) },
  "logprobs.type": mends(
    field("logprobs", (value) => typeof value === "string"),
    { logprobs: false },
  ),
  "top_logprobs.integer": mends(
    field("top_logprobs", (value) => value === 1.5),
    { top_logprobs: 1 },
  ),
  "stream_options.stream": refuses(both(WORD_STREAM, has("stream_options"))),
  "stream_options.alone": mends(both(has("stream_options"), not(has("stream"))), {
    stream_options: undefined,
  }),
  "stream_options.whole": mends(
    both(
      has("stream_options"),
      field("stream", (value) => value === false),
    ),
    { stream_options: undefined },
  ),
  "stream_options.type": mends(
    field("stream_options", (value) => typeof value === "string"),
    { stream_options: undefined },
  ),
  ...Object.assign(
    {},
    ...(
      [
        ["temperature", 0, 2],
        ["top_p", 0, 1],
        ["frequency_penalty", -2, 2],
        ["presence_penalty", -2, 2],
        ["top_logprobs", 0, 20],
      ] as const
    ).map(ranged),
  ),

  "reply.json": {
    when: WHOLE,
    answer: ifGood((answer) => ({ ...answer, text: `${answer.text},` })),
  },
  "reply.id": reply("id", () => ""),
  "reply.object": reply("object", () => "text_completion"),
  "reply.created": reply("created", () => Date.now()),
  "reply.model": reply("model", () => ""),
  "reply.system_fingerprint": reply("system_fingerprint", () => null),
  "reply.choices": reply("choices", () => []),
  "reply.choices.index": reply("choices[].index", () => 1),
  "reply.choices.message": reply("choices[].message", () => null),
  "reply.choices.message.role": reply("choices[].message.role", () => "model"),
  "reply.choices.message.content": reply("choices[].message.content", (value) => [value]),
  "reply.choices.finish_reason": reply("choices[].finish_reason", () => "end_turn"),
  "reply.usage": reply("usage", () => undefined),
  "reply.usage.prompt_tokens": reply("usage.prompt_tokens", String),
  "reply.usage.completion_tokens": reply("usage.completion_tokens", () => -1),
  "reply.usage.total_tokens": reply("usage.total_tokens", () => undefined),
  "reply.usage.prompt_cache_hit_tokens": reply("usage.prompt_cache_hit_tokens", () => null),
  "reply.usage.prompt_cache_miss_tokens": reply("usage.prompt_cache_miss_tokens", () => 0.5),
  "reply.id.unique": reply("id", () => "chatcmpl-1"),
  "usage.sum": reply("usage.total_tokens", increment),
  "usage.cache-sum": reply("usage.prompt_cache_miss_tokens", increment),
  "reply.content": {
    when: both(WORD_WHOLE, not(has("stop"))),
    answer: body("choices[].message.content", () => "I will not."),
  },

  "stream.media-type": { when: STREAM, answer: header("content-type", () => "text/plain") },
  "stream.lines": {
    when: STREAM,
    answer: blocks((events) =>
      events.map((event, index) => (index === 1 ? event.replace("data: ", "data:") : event)),
    ),
  },
  "stream.json": { when: STREAM, answer: blocks((events) => events.toSpliced(1, 0, "data: ping")) },
  "stream.done": {
    when: STREAM,
    answer: blocks((events) => events.filter((event) => event !== "data: [DONE]")),
  },
  "stream.content": {
    when: WORD_STREAM,
    answer: chunks("choices[].delta.content", (value) => (typeof value === "string" ? "" : value)),
  },
  "chunk.id": stream("id", () => ""),
  "chunk.object": stream("object", () => "chat.completion"),
  "chunk.created": stream("created", String),
  "chunk.model": stream("model", () => undefined),
  "chunk.choices": stream("choices", (value) =>
    Array.isArray(value) && value.length === 0 ? undefined : value,
  ),
  "chunk.choices.index": stream("choices[].index", () => undefined),
  "chunk.choices.delta": stream("choices[].delta", (value) =>
    JSON.stringify(value) === "{}" ? undefined : value,
  ),
  "chunk.choices.delta.role": stream("choices[].delta.role", (value) => value && "model"),
  "chunk.choices.delta.content": stream("choices[].delta.content", (value) =>
    value ? [value] : value,
  ),
  "chunk.choices.delta.reasoning_content": {
    when: both(STREAM, thinks),
    answer: chunks("choices[].delta.reasoning_content", (value) => (value ? [value] : value)),
  },
  "chunk.choices.finish_reason": stream("choices[].finish_reason", (value) => value && "end_turn"),
  "chunk.id.same": stream("id", (value, index) => (index === 1 ? "chatcmpl-1" : value)),
  "chunk.role.first": stream("choices[].delta.role", () => undefined),
  "chunk.role.once": stream("choices[].delta.role", (value, index) =>
    index === 1 ? "assistant" : value,
  ),
  "chunk.finish_reason.null": stream("choices[].finish_reason", (value, index) =>
    index === 1 ? "stop" : value,
  ),
  "chunk.finish_reason.last": stream("choices[].finish_reason", () => null),

  ...Object.fromEntries(
    [
      ["missing", undefined],
      ["unknown", "Bearer no-such-key"],
      ["empty", "Bearer"],
      ["scheme", "Basic bm86c3VjaGtleQ=="],
    ].map(([name, value]) => [
      `auth.${name}`,
      { when: withKey(value), forward: () => ({ headers: { authorization: "Bearer sk-demo" } }) },
    ]),
  ),

  "error.json": error("detail", () => "There is nothing here."),
  "error.message": error("error.message", () => ""),
  "error.type": error("error.type", () => null),
  "error.code": error("error.code", () => 404),
  "error.request_id": error("error.request_id", () => undefined),
  "error.status": { when: nowhere, answer: status(502) },
  "error.any-status": { when: nowhere, answer: status(302) },

  "limit.exists": {
    when: withKey("Bearer sk-limited"),
    forward: () => ({ headers: { authorization: "Bearer sk-demo" } }),
  },
  "limit.status": limited(status(403)),
  "limit.type": limited(anyBody("error.type", () => "requests")),
  "limit.code": limited(anyBody("error.code", () => "too_many_requests")),
  "limit.message": limited(
    anyBody("error.message", (text) => String(text).replace("per-minute ", "")),
  ),
};

export const specFaults = named("spec", spec);
