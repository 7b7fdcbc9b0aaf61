// Faults for the checks of the level `compatible`. What is refused must be refused with one status,
// one code and one param: each of these can be wrong. A check that has none here is about a request
// that is to be accepted: it is refused.

import { CHECKS } from "../../../scripts/conformance/checks/all.ts";
import { list, isObject } from "../../../scripts/conformance/shapes.ts";
import type { Fault } from "../wrong-gateway.ts";
import {
  about,
  ALIAS,
  blocks,
  body,
  both,
  chunks,
  each,
  eachOf,
  error,
  has,
  header,
  idInstead,
  ifGood,
  increment,
  limited,
  not,
  nowhere,
  opposite,
  others,
  own,
  raw,
  reply,
  sampled,
  sends,
  spoiltFields,
  streams,
  wholes,
  status,
  stream,
  STREAM,
  text,
  thinks,
  WHOLE,
  type Change,
  type Faults,
  type Own,
} from "./kit.ts";

const otherwise = { status: status(418), code: error("code", "bad"), param: error("param", "it") };
const refused = CHECKS.filter(
  ({ id, title }) => id.startsWith("compatible.error.") && /^4\d\d [a-z_]+( \S+)?$/.test(title),
).map(({ id }) => id);

const rawStatus = (sent: string, code: string): Own =>
  raw(sent, (answer) => answer.replace(/^HTTP\/1.1 \d+ [\w ]*/, `HTTP/1.1 ${code}`));
const rawId = (sent: string, id: string): Own =>
  raw(sent, (answer) => answer.replace(/^x-request-id:.*$/im, `X-Request-Id: ${id}`));
const rawFaults = (name: string, sent: string): Record<string, Own> => ({
  [`http.${name}/status`]: rawStatus(sent, "500 Internal Server Error"),
  [`http.${name}/id`]: raw(sent, (answer) => answer.replace(/^x-request-id:.*\r\n/im, "")),
  [`http.${name}/body`]: raw(sent, (answer) =>
    answer.replace(/"request_id":"[^"]*"/, '"request_id":"none"'),
  ),
});

const ofChecks = own("compatible", {
  ...Object.assign({}, ...refused.map((id) => eachOf(id, otherwise))),
  ...eachOf("compatible.body.not-utf8", otherwise),
  ...eachOf("compatible.models.key", otherwise),
  "no-compression": header("content-encoding", "identity"),
  "content.parts": body("choices[].message.content", "You said nothing."),
  "healthz.body": body("status", "fine"),
  "healthz.no-store": header("cache-control", undefined),
  "healthz.head/status": rawStatus("HEAD /healthz", "405 Method Not Allowed"),
  "healthz.head/body": raw("HEAD /healthz", (answer) => `${answer}{}`),
  "models.list/list": body("object", "models"),
  "models.list/empty": body("data", []),
  ...Object.fromEntries(
    ["id", "object", "created", "owned_by"].map((name) => [
      `models.list/${name}`,
      body(`data[].${name}`, undefined),
    ]),
  ),
  "models.names": body("data", (data) =>
    list(data).filter((model) => isObject(model) && model["id"] !== ALIAS),
  ),
  max_completion_tokens: sends({ max_completion_tokens: undefined }),
  "max_completion_tokens.both": sends({ max_tokens: undefined }),
  "tool_choice.required": sends({ tool_choice: "none" }),
  "response_format.json_schema/ignored": sends({ response_format: undefined }),
  "response_format.json_schema/words": opposite,
  "error.www-authenticate": header("www-authenticate", "Basic"),
  "error.allow": header("allow", undefined),
  ...rawFaults("malformed", "nonsense, not HTTP"),
  ...rawFaults("no-host", "GET /healthz HTTP/1.1\r\nConnection"),
  ...rawFaults("large-headers", "X-Large: "),
  ...rawFaults("expect", "Expect: cake"),
  ...rawFaults("connect", "CONNECT "),
  "request-id.long": rawId("iiii", "i".repeat(64)),
  "request-id.too-long/status": rawStatus("llll", "400 Bad Request"),
  "request-id.too-long/echoed": rawId("llll", "l".repeat(2000)),
  "request-id.not-ascii/status": rawStatus("caf\u00e9", "500 Internal Server Error"),
  "request-id.not-ascii/echoed": rawId("caf\u00e9", "caf?"),
  "request-id.two": rawId("first-of-two", "first-of-two, second-of-two"),
  "reply.top_logprobs/more": {
    when: has("top_logprobs"),
    answer: body("choices[].logprobs.content[].top_logprobs", (value) => [value, value, value]),
  },
  "reply.top_logprobs/unasked": {
    when: not(has("top_logprobs")),
    answer: body("choices[].logprobs.content[].top_logprobs", [{}]),
  },
});

const tools = has("tools");
/** `to` is told which chunk it is: 0 is the role's, 1 the first fragment of a call. */
const fragments = (path: string, to: Change): Fault =>
  about(both(STREAM, tools), chunks(`choices[].delta.tool_calls[].${path}`, to));
const asksUsage = both(STREAM, has("stream_options"));
const logprobs = has("logprobs", true);
const upperCase = (id: unknown) => `req_${String(id).slice(4).toUpperCase().replace(/^./, "A")}`;
const UNASKED = {
  prompt_tokens: 1,
  completion_tokens: 1,
  total_tokens: 2,
  prompt_cache_hit_tokens: 0,
  prompt_cache_miss_tokens: 1,
};

const ofSample = sampled("compatible", {
  "error.media-type": nowhere(header("content-type", "text/html")),
  "error.param": nowhere(error("param", ["model"])),
  "error.known-status": nowhere(status(422)),
  "limit.retry-after": limited(header("retry-after", "Sat, 21 Nov 2026 00:00:00 GMT")),
  "limit.retry-after/long": limited(
    each(
      header("retry-after", 90),
      error("message", (said) => String(said).replace(/\d+/, "90")),
    ),
  ),
  "limit.message": limited(error("message", (said) => String(said).replace("Retry after", "Wait"))),
  "limit.message/other": limited(error("message", (said) => String(said).replace(/\d+/, "7"))),
  "request-id.lower-case": nowhere(idInstead(upperCase)),
  "reply.media-type": wholes(ifGood(header("content-type", "text/json"))),
  ...spoiltFields("compatible"),
  "reply.choices.message.tool_calls": reply("choices[].message.tool_calls", (value) => value ?? []),
  "reply.logprobs.unasked": about(
    both(WHOLE, not(logprobs)),
    body("choices[].logprobs", { content: [] }),
  ),
  "reply.usage.prompt_tokens_details.cached_tokens": reply(
    "usage.prompt_tokens_details.cached_tokens",
    increment,
  ),
  "reply.usage.completion_tokens_details.reasoning_tokens": reply(
    "usage.completion_tokens_details.reasoning_tokens",
    100_000,
  ),

  "stream.cache-control": streams(header("cache-control", "no-cache")),
  "stream.buffering": streams(header("x-accel-buffering", undefined)),
  "stream.no-length": streams((answer) =>
    header("content-length", Buffer.byteLength(answer.text))(answer),
  ),
  "stream.line-ends": streams(text((given) => given.replaceAll("\n", "\r\n"))),
  "stream.no-fields": streams(blocks((events) => ["retry: 3000", ...events])),
  "stream.ends": {
    when: both(asksUsage, has("model", ALIAS)),
    answer: (answer) => answer,
    lateMs: 1_100,
  },
  "chunk.created.same": stream("created", (value, index) => Number(value) + index),
  "chunk.model.same": stream("model", (value, index) => (index === 1 ? "another" : value)),
  "chunk.no-empty-choices": streams(
    blocks(([first = "", ...events]) => [
      first,
      first.replace(/"choices":.*/, '"choices":[]}'),
      ...events,
    ]),
  ),
  "chunk.one-text": about(
    both(STREAM, thinks),
    chunks("choices[].delta", (delta) =>
      isObject(delta) && delta["reasoning_content"] ? { ...delta, content: "Hm." } : delta,
    ),
  ),
  "chunk.thinking-first": about(
    both(STREAM, thinks),
    chunks("choices[].delta", (delta, index) => (index === 1 ? { content: "Yes." } : delta)),
  ),
  "usage.once": about(
    asksUsage,
    blocks((events) =>
      events.flatMap((event) => (event.includes('"choices":[]') ? [event, event] : [event])),
    ),
  ),
  "usage.last": about(
    asksUsage,
    blocks((events) => [...events.slice(0, -3), events.at(-2)!, events.at(-3)!, events.at(-1)!]),
  ),
  "usage.unasked": about(
    both(STREAM, not(has("stream_options"))),
    chunks("usage", (_, index) => (index === 1 ? UNASKED : undefined)),
  ),
  "chunk.tool_calls.index": fragments("index", 1),
  "chunk.tool_calls.function": fragments("function.arguments", (value, index) =>
    index === 1 ? undefined : value,
  ),
  "chunk.tool_calls.id": fragments("id", "call_a"),
  "chunk.tool_calls.type": fragments("type", "function"),
  "chunk.tool_calls.function.name": fragments("function.name", "send_mail"),
  "chunk.tool_calls.arguments": fragments("function.arguments", (value) =>
    String(value).replace("{", ""),
  ),
});

const stated = [...ofChecks, ...ofSample];
export const compatibleFaults: Faults = [...stated, ...others("compatible", stated, opposite)];
