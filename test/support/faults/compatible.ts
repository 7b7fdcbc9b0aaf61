// Faults for the checks of the level `compatible`. A refusal must have one status, one code and one
// param: each of these can be wrong. A check without a fault here tests that a request is accepted:
// the wrong gateway refuses it.

import { CHECKS } from "../../../scripts/conformance/checks/all.ts";
import { list, isObject } from "../../../scripts/conformance/shapes.ts";
import type { Fault } from "../wrong-gateway.ts";
import * as kit from "./kit.ts";

const otherwise = {
  status: kit.status(418),
  code: kit.error("code", "bad"),
  param: kit.error("param", "it"),
};
const refused = CHECKS.filter(
  ({ id, title }) => id.startsWith("compatible.error.") && /^4\d\d [a-z_]+( \S+)?$/.test(title),
).map(({ id }) => id);

const rawStatus = (sent: string, code: string): kit.Own =>
  kit.raw(sent, (answer) => answer.replace(/^HTTP\/1.1 \d+ [\w ]*/, `HTTP/1.1 ${code}`));
const rawId = (sent: string, id: string): kit.Own =>
  kit.raw(sent, (answer) => answer.replace(/^x-request-id:.*$/im, `X-Request-Id: ${id}`));
const rawFaults = (name: string, sent: string): Record<string, kit.Own> => ({
  [`http.${name}/status`]: rawStatus(sent, "500 Internal Server Error"),
  [`http.${name}/id`]: kit.raw(sent, (answer) => answer.replace(/^x-request-id:.*\r\n/im, "")),
  [`http.${name}/body`]: kit.raw(sent, (answer) =>
    answer.replace(/"request_id":"[^"]*"/, '"request_id":"none"'),
  ),
});

const ofChecks = kit.own("compatible", {
  ...Object.assign({}, ...refused.map((id) => kit.eachOf(id, otherwise))),
  ...kit.eachOf("compatible.body.not-utf8", otherwise),
  ...kit.eachOf("compatible.models.key", otherwise),
  "no-compression": kit.header("content-encoding", "identity"),
  "content.parts": kit.body("choices[].message.content", "You said nothing."),
  "healthz.body": kit.body("status", "fine"),
  "healthz.no-store": kit.header("cache-control", undefined),
  "healthz.head/status": rawStatus("HEAD /healthz", "405 Method Not Allowed"),
  "healthz.head/body": kit.raw("HEAD /healthz", (answer) => `${answer}{}`),
  "models.list/list": kit.body("object", "models"),
  "models.list/empty": kit.body("data", []),
  ...Object.fromEntries(
    ["id", "object", "created", "owned_by"].map((name) => [
      `models.list/${name}`,
      kit.body(`data[].${name}`, undefined),
    ]),
  ),
  "models.names": kit.body("data", (data) =>
    list(data).filter((model) => isObject(model) && model["id"] !== kit.ALIAS),
  ),
  max_completion_tokens: kit.sends({ max_completion_tokens: undefined }),
  "max_completion_tokens.both": kit.sends({ max_tokens: undefined }),
  "tool_choice.required": kit.sends({ tool_choice: "none" }),
  "response_format.json_schema/ignored": kit.sends({ response_format: undefined }),
  "response_format.json_schema/words": kit.opposite,
  "error.www-authenticate": kit.header("www-authenticate", "Basic"),
  "error.allow": kit.header("allow", undefined),
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
    when: kit.has("top_logprobs"),
    answer: kit.body("choices[].logprobs.content[].top_logprobs", (value) => [value, value, value]),
  },
  "reply.top_logprobs/unasked": {
    when: kit.not(kit.has("top_logprobs")),
    answer: kit.body("choices[].logprobs.content[].top_logprobs", [{}]),
  },
});

const tools = kit.has("tools");
/** `to` gets the index of the chunk: 0 has the role, 1 the first fragment of a call. */
const fragments = (path: string, to: kit.Change): Fault =>
  kit.about(kit.both(kit.STREAM, tools), kit.chunks(`choices[].delta.tool_calls[].${path}`, to));
const asksUsage = kit.both(kit.STREAM, kit.has("stream_options"));
const logprobs = kit.has("logprobs", true);
const upperCase = (id: unknown) => `req_${String(id).slice(4).toUpperCase().replace(/^./, "A")}`;
const UNASKED = {
  prompt_tokens: 1,
  completion_tokens: 1,
  total_tokens: 2,
  prompt_cache_hit_tokens: 0,
  prompt_cache_miss_tokens: 1,
};

const ofSample = kit.sampled("compatible", {
  "error.media-type": kit.nowhere(kit.header("content-type", "text/html")),
  "error.param": kit.nowhere(kit.error("param", ["model"])),
  "error.known-status": kit.nowhere(kit.status(422)),
  "limit.retry-after": kit.limited(kit.header("retry-after", "Sat, 21 Nov 2026 00:00:00 GMT")),
  "limit.retry-after/long": kit.limited(
    kit.each(
      kit.header("retry-after", 90),
      kit.error("message", (said) => String(said).replace(/\d+/, "90")),
    ),
  ),
  "limit.message": kit.limited(
    kit.error("message", (said) => String(said).replace("Retry after", "Wait")),
  ),
  "limit.message/other": kit.limited(
    kit.error("message", (said) => String(said).replace(/\d+/, "7")),
  ),
  "request-id.lower-case": kit.nowhere(kit.idInstead(upperCase)),
  "reply.media-type": kit.wholes(kit.ifGood(kit.header("content-type", "text/json"))),
  ...kit.spoiltFields("compatible"),
  "reply.choices.message.tool_calls": kit.reply(
    "choices[].message.tool_calls",
    (value) => value ?? [],
  ),
  "reply.logprobs.unasked": kit.about(
    kit.both(kit.WHOLE, kit.not(logprobs)),
    kit.body("choices[].logprobs", { content: [] }),
  ),
  "reply.usage.prompt_tokens_details.cached_tokens": kit.reply(
    "usage.prompt_tokens_details.cached_tokens",
    kit.increment,
  ),
  "reply.usage.completion_tokens_details.reasoning_tokens": kit.reply(
    "usage.completion_tokens_details.reasoning_tokens",
    100_000,
  ),

  "stream.cache-control": kit.streams(kit.header("cache-control", "no-cache")),
  "stream.buffering": kit.streams(kit.header("x-accel-buffering", undefined)),
  "stream.no-length": kit.streams((answer) =>
    kit.header("content-length", Buffer.byteLength(answer.text))(answer),
  ),
  "stream.line-ends": kit.streams(kit.text((given) => given.replaceAll("\n", "\r\n"))),
  "stream.no-fields": kit.streams(kit.blocks((events) => ["retry: 3000", ...events])),
  "stream.ends": {
    when: kit.both(asksUsage, kit.has("model", kit.ALIAS)),
    answer: (answer) => answer,
    lateMs: 1_100,
  },
  "chunk.created.same": kit.stream("created", (value, index) => Number(value) + index),
  "chunk.model.same": kit.stream("model", (value, index) => (index === 1 ? "another" : value)),
  "chunk.no-empty-choices": kit.streams(
    kit.blocks(([first = "", ...events]) => [
      first,
      first.replace(/"choices":.*/, '"choices":[]}'),
      ...events,
    ]),
  ),
  "chunk.one-text": kit.about(
    kit.both(kit.STREAM, kit.thinks),
    kit.chunks("choices[].delta", (delta) =>
      isObject(delta) && delta["reasoning_content"] ? { ...delta, content: "Hm." } : delta,
    ),
  ),
  "chunk.thinking-first": kit.about(
    kit.both(kit.STREAM, kit.thinks),
    kit.chunks("choices[].delta", (delta, index) => (index === 1 ? { content: "Yes." } : delta)),
  ),
  "usage.once": kit.about(
    asksUsage,
    kit.blocks((events) =>
      events.flatMap((event) => (event.includes('"choices":[]') ? [event, event] : [event])),
    ),
  ),
  "usage.last": kit.about(
    asksUsage,
    kit.blocks((events) => [
      ...events.slice(0, -3),
      events.at(-2)!,
      events.at(-3)!,
      events.at(-1)!,
    ]),
  ),
  "usage.unasked": kit.about(
    kit.both(kit.STREAM, kit.not(kit.has("stream_options"))),
    kit.chunks("usage", (_, index) => (index === 1 ? UNASKED : undefined)),
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
export const compatibleFaults: kit.Faults = [
  ...stated,
  ...kit.others("compatible", stated, kit.opposite),
];
