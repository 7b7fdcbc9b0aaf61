// Faults for each check of the level `compatible`. What is refused must be refused with one status,
// one code and one param: each of these can be wrong.

import { isObject, type Fault } from "../wrong-gateway.ts";
import {
  ALIAS,
  anyBody,
  blocks,
  body,
  both,
  chunks,
  field,
  has,
  header,
  increment,
  limited,
  mends,
  named,
  not,
  nowhere,
  ownId,
  raw,
  refuses,
  reply,
  status,
  stream,
  STREAM,
  WHOLE,
} from "./kit.ts";

const marked = (name: string) => ownId(`compatible.${name}`);
const each = (names: readonly string[], fault: (name: string) => Fault) =>
  Object.fromEntries(names.map((name) => [name, fault(name)]));

const ACCEPTED = [
  "bearer.case",
  "body.bom",
  "headers.sdk",
  "headers.charset",
  "body.unknown-field",
  "message.unknown-field",
  "message.name",
  "body.nulls",
  "body.ignored-fields",
  "n.one",
  "stop.empty-array",
  "tools.empty-array",
  "tools.bare",
  "tool_choice.none-without-tools",
  "top_logprobs.alone",
  "thinking.disabled",
  "thinking.adaptive",
  "thinking.budget",
  "stream_options.empty",
  "stream_options.unknown",
  "role.developer",
  "content.empty",
  "content.refusal-part",
  "assistant.reasoning",
  "tool-loop.null",
  "tool-loop.absent",
  "tool-loop.empty",
  "tool-loop.bad-arguments",
  "tool-loop.parts",
];
const REFUSED = [
  "no-key",
  "bad-key",
  "media-type-sent",
  "encoding-sent",
  "not-json",
  "no-body",
  "not-an-object",
  "no-model",
  "no-messages",
  "empty-messages",
  "no-role",
  "bad-role",
  "function-role",
  "no-content",
  "assistant-without-content",
  "image",
  "no-tool-call-id",
  "unmatched-tool-call-id",
  "type",
  "boolean-number",
  "range",
  "infinity",
  "max_tokens",
  "max_completion_tokens",
  "five-stops",
  "empty-stop",
  "n",
  "custom-tool",
  "tool-name",
  "choice-without-tools",
  "bad-choice",
  "unlisted-choice",
  "bad-format",
  "bad-thinking",
  "stream_options",
  "include_usage",
  "unknown-model",
  "unknown-alias",
  "stream",
  "unknown-url",
  "wrong-method",
]
  .map((name) => `error.${name}`)
  .concat("body.not-utf8", "models.key");
const refusedOtherwise = (name: string): Record<string, Fault> => ({
  [`${name}/status`]: { when: marked(name), answer: status(418) },
  [`${name}/code`]: { when: marked(name), answer: anyBody("error.code", () => "bad_request") },
  [`${name}/param`]: { when: marked(name), answer: anyBody("error.param", () => "something") },
});

const withoutHeader = (name: string, header_: string): Fault => ({
  when: marked(name),
  answer: header(header_, () => undefined),
});
const rawFaults = (name: string, sent: string): Record<string, Fault> => ({
  [`http.${name}/status`]: raw(sent, (answer) => answer.replace(/^HTTP\/1.1 \d+/, "HTTP/1.1 500")),
  [`http.${name}/id`]: raw(sent, (answer) => answer.replace(/^x-request-id:.*\r\n/im, "")),
  [`http.${name}/body`]: raw(sent, (answer) =>
    answer.replace(/"request_id":"[^"]*"/, '"request_id":"none"'),
  ),
});
const otherRawId = (sent: string, id: string): Fault =>
  raw(sent, (answer) => answer.replace(/^x-request-id:.*$/im, `X-Request-Id: ${id}`));

const tools = has("tools");
const [TOOL_REPLY, TOOL_STREAM] = [both(WHOLE, tools), both(STREAM, tools)];
const calls = (path: string, to: Parameters<typeof body>[1]): Fault => ({
  when: TOOL_REPLY,
  answer: body(`choices[].message.tool_calls${path}`, to),
});
/** `to` is told which chunk it is: 0 is the role's, 1 the first fragment of a call. */
const fragments = (path: string, to: Parameters<typeof chunks>[1]): Fault => ({
  when: TOOL_STREAM,
  answer: chunks(`choices[].delta.tool_calls[].${path}`, to),
});
const asksUsage = has("stream_options");
const usage = (path: string, to: Parameters<typeof chunks>[1]): Fault => ({
  when: both(STREAM, asksUsage),
  answer: chunks(path, to),
});
const logprobs = field("logprobs", (value) => value === true);
const tokens = (path: string, to: Parameters<typeof body>[1]): Record<string, Fault> => ({
  [`reply.choices.logprobs.content.${path}`]: {
    when: both(WHOLE, logprobs),
    answer: body(`choices[].logprobs.content[].${path}`, to),
  },
  [`chunk.choices.logprobs.content.${path}`]: {
    when: both(STREAM, logprobs),
    answer: chunks(`choices[].logprobs.content[].${path}`, to),
  },
});
const wordless: Fault["answer"] & {} = header("www-authenticate", () => "Basic");

const compatible: Record<string, Fault> = {
  ...each(ACCEPTED, (name) => refuses(marked(name))),
  ...Object.assign({}, ...REFUSED.map(refusedOtherwise)),
  "no-compression": {
    when: marked("no-compression"),
    answer: (answer) => ({
      ...answer,
      headers: { ...answer.headers, "content-encoding": "identity" },
    }),
  },
  "content.parts": {
    when: marked("content.parts"),
    answer: body("choices[].message.content", () => "You said nothing."),
  },
  "healthz.body": { when: marked("healthz.body"), answer: body("status", () => "fine") },
  "healthz.no-store": withoutHeader("healthz.no-store", "cache-control"),
  "healthz.head/status": raw("HEAD /healthz", (answer) =>
    answer.replace(/^HTTP\/1.1 200 OK/, "HTTP/1.1 405 Method Not Allowed"),
  ),
  "healthz.head/body": raw("HEAD /healthz", (answer) => `${answer}{}`),
  "models.list/object": { when: marked("models.list"), answer: body("object", () => "models") },
  "models.list/empty": { when: marked("models.list"), answer: body("data", () => []) },
  ...Object.assign(
    {},
    ...["id", "object", "created", "owned_by"].map((name) => ({
      [`models.list/${name}`]: {
        when: marked("models.list"),
        answer: body(`data[].${name}`, () => undefined),
      },
    })),
  ),
  "models.names": {
    when: marked("models.names"),
    answer: body("data", (data) =>
      Array.isArray(data) ? data.filter((model) => isObject(model) && model["id"] !== ALIAS) : data,
    ),
  },

  max_completion_tokens: mends(marked("max_completion_tokens"), {
    max_completion_tokens: undefined,
  }),
  "max_completion_tokens.both": mends(marked("max_completion_tokens.both"), {
    max_tokens: undefined,
  }),
  "tool_choice.required": mends(marked("tool_choice.required"), { tool_choice: "none" }),
  "response_format.json_schema/ignored": mends(marked("response_format.json_schema"), {
    response_format: undefined,
  }),
  "response_format.json_schema/words": refuses(marked("response_format.json_schema")),

  "error.www-authenticate": { when: marked("error.www-authenticate"), answer: wordless },
  "error.allow": withoutHeader("error.allow", "allow"),
  "error.media-type": { when: nowhere, answer: header("content-type", () => "text/html") },
  "error.param": { when: nowhere, answer: anyBody("error.param", () => ["model"]) },
  "error.known-status": { when: nowhere, answer: status(422) },
  "limit.retry-after": limited(header("retry-after", () => "Sat, 21 Nov 2026 00:00:00 GMT")),
  "limit.retry-after/long": limited((answer) =>
    header(
      "retry-after",
      () => "90",
    )(anyBody("error.message", (text) => String(text).replace(/\d+/, "90"))(answer)),
  ),
  "limit.message": limited(
    anyBody("error.message", (text) => String(text).replace("Retry after", "Wait for")),
  ),
  "limit.message/other": limited(
    anyBody("error.message", (text) => String(text).replace(/\d+/, "7")),
  ),

  ...rawFaults("malformed", "nonsense, not HTTP"),
  ...rawFaults("no-host", "GET /healthz HTTP/1.1\r\nConnection"),
  ...rawFaults("large-headers", "X-Large: "),
  ...rawFaults("expect", "Expect: cake"),
  ...rawFaults("connect", "CONNECT "),
  "request-id.long": otherRawId("iiii", "i".repeat(64)),
  "request-id.too-long/status": raw("llll", (answer) =>
    answer.replace(/^HTTP\/1.1 200 OK/, "HTTP/1.1 400 Bad Request"),
  ),
  "request-id.too-long/echoed": otherRawId("llll", "l".repeat(2000)),
  "request-id.not-ascii/status": raw("caf\u00e9", (answer) =>
    answer.replace(/^HTTP\/1.1 200 OK/, "HTTP/1.1 500 Internal Server Error"),
  ),
  "request-id.not-ascii/echoed": otherRawId("caf\u00e9", "caf?"),
  "request-id.two": otherRawId("first-of-two", "first-of-two, second-of-two"),
  "request-id.lower-case": {
    when: nowhere,
    answer: (answer) =>
      anyBody(
        "error.request_id",
        (id) => `req_${String(id).slice(4).toUpperCase().replace(/^./, "A")}`,
      )(
        header(
          "x-request-id",
          (id) => `req_${id.slice(4).toUpperCase().replace(/^./, "A")}`,
        )(answer),
      ),
  },

  "reply.media-type": {
    when: WHOLE,
    answer: (answer) =>
      answer.status === 200 ? header("content-type", () => "text/json")(answer) : answer,
  },
  "reply.choices.message.tool_calls": reply("choices[].message.tool_calls", (value) => value ?? []),
  "reply.choices.message.tool_calls.id": calls("[].id", () => ""),
  "reply.choices.message.tool_calls.type": calls("[].type", () => undefined),
  "reply.choices.message.tool_calls.function.name": calls("[].function.name", () => undefined),
  "reply.choices.message.tool_calls.function.arguments": calls("[].function.arguments", (value) =>
    JSON.parse(String(value)),
  ),
  ...tokens("token", () => 7),
  ...tokens("logprob", () => 0.5),
  ...tokens("bytes", () => undefined),
  ...tokens("top_logprobs", () => null),
  "reply.logprobs.unasked": {
    when: both(WHOLE, not(logprobs)),
    answer: body("choices[].logprobs", () => ({ content: [] })),
  },
  "reply.top_logprobs/more": {
    when: both(marked("reply.top_logprobs"), has("top_logprobs")),
    answer: body("choices[].logprobs.content[].top_logprobs", (value) => [value, value, value]),
  },
  "reply.top_logprobs/unasked": {
    when: both(marked("reply.top_logprobs"), not(has("top_logprobs"))),
    answer: body("choices[].logprobs.content[].top_logprobs", () => [{}]),
  },
  "reply.usage.prompt_tokens_details.cached_tokens": reply(
    "usage.prompt_tokens_details.cached_tokens",
    increment,
  ),
  "reply.usage.completion_tokens_details.reasoning_tokens": reply(
    "usage.completion_tokens_details.reasoning_tokens",
    () => 100_000,
  ),

  "stream.cache-control": { when: STREAM, answer: header("cache-control", () => "no-cache") },
  "stream.buffering": { when: STREAM, answer: header("x-accel-buffering", () => undefined) },
  "stream.no-length": {
    when: STREAM,
    answer: (answer) => ({
      ...answer,
      headers: { ...answer.headers, "content-length": String(Buffer.byteLength(answer.text)) },
    }),
  },
  "stream.line-ends": {
    when: STREAM,
    answer: (answer) => ({ ...answer, text: answer.text.replaceAll("\n", "\r\n") }),
  },
  "stream.no-fields": { when: STREAM, answer: blocks((events) => ["retry: 3000", ...events]) },
  "stream.ends": {
    when: both(
      STREAM,
      asksUsage,
      field("model", (value) => value === ALIAS),
    ),
    answer: (answer) => answer,
    lateMs: 1_100,
  },
  "chunk.created.same": stream("created", (value, index) => Number(value) + index),
  "chunk.model.same": stream("model", (value, index) => (index === 1 ? "another" : value)),
  "chunk.no-empty-choices": {
    when: STREAM,
    answer: blocks(([first = "", ...events]) => [
      first,
      first.replace(/"choices":.*/, '"choices":[]}'),
      ...events,
    ]),
  },
  "chunk.one-text": {
    when: both(STREAM, has("thinking")),
    answer: chunks("choices[].delta", (delta) =>
      isObject(delta) && delta["reasoning_content"] ? { ...delta, content: "Hm." } : delta,
    ),
  },
  "chunk.thinking-first": {
    when: both(STREAM, has("thinking")),
    answer: chunks("choices[].delta", (delta, index) =>
      index === 1 ? { content: "Yes." } : delta,
    ),
  },
  "usage.once": {
    when: both(STREAM, asksUsage),
    answer: blocks((events) =>
      events.flatMap((event) => (event.includes('"choices":[]') ? [event, event] : [event])),
    ),
  },
  "usage.last": {
    when: both(STREAM, asksUsage),
    answer: blocks((events) => {
      const [usageEvent = "", done = ""] = events.splice(-2);
      const finish = events.pop() ?? "";
      return [...events, usageEvent, finish, done];
    }),
  },
  "usage.unasked": {
    when: both(STREAM, not(asksUsage)),
    answer: chunks("usage", (_, index) =>
      index === 1
        ? {
            prompt_tokens: 1,
            completion_tokens: 1,
            total_tokens: 2,
            prompt_cache_hit_tokens: 0,
            prompt_cache_miss_tokens: 1,
          }
        : undefined,
    ),
  },
  "chunk.usage.prompt_tokens": usage("usage.prompt_tokens", String),
  "chunk.usage.completion_tokens": usage("usage.completion_tokens", () => -1),
  "chunk.usage.total_tokens": usage("usage.total_tokens", () => undefined),
  "chunk.usage.prompt_cache_hit_tokens": usage("usage.prompt_cache_hit_tokens", () => null),
  "chunk.usage.prompt_cache_miss_tokens": usage("usage.prompt_cache_miss_tokens", () => 0.5),
  "chunk.tool_calls.index": fragments("index", () => 1),
  "chunk.tool_calls.function": fragments("function.arguments", (value, index) =>
    index === 1 ? undefined : value,
  ),
  "chunk.tool_calls.id": fragments("id", () => "call_a"),
  "chunk.tool_calls.type": fragments("type", () => "function"),
  "chunk.tool_calls.function.name": fragments("function.name", () => "send_mail"),
  "chunk.tool_calls.arguments": fragments("function.arguments", (value) =>
    String(value).replace("{", ""),
  ),
};

export const compatibleFaults = named("compatible", compatible);
