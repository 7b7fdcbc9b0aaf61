// Faults for the checks of the level `spec`. A check that has none here is about a request that is
// to be accepted, or refused: the opposite is done.

import type { Fault } from "../wrong-gateway.ts";
import {
  about,
  ALIAS,
  blocks,
  body,
  both,
  chunks,
  error,
  header,
  idInstead,
  ifGood,
  increment,
  isHealth,
  isSampled,
  limited,
  MODEL,
  nowhere,
  opposite,
  others,
  own,
  raw,
  refusal,
  reply,
  sampled,
  says,
  sends,
  spoiltFields,
  streams,
  wholes,
  status,
  stream,
  without,
  anyBody,
  type Faults,
} from "./kit.ts";

const ID = `req_${"0123456789abcdef".repeat(2)}`;
let asked = 0;
const noThought: Fault["answer"] = body("choices[].message.reasoning_content", undefined);

const ofChecks = own("spec", {
  "request-id.echo": idInstead(ID),
  "request-id.echo.stream": idInstead(ID),
  "request-id.echo.error": idInstead(ID),
  "request-id.echo.free-form": idInstead(ID),
  "request-id.echo.healthz": idInstead(ID),
  "request-id.echo.again": { when: () => asked++ > 0, answer: idInstead(ID) },
  "request-id.malformed": raw("this is not HTTP", (answer) =>
    answer.replace(/x-request-id:[^\r]*\r\n/i, ""),
  ),
  "model.canonical": body("model", `${MODEL}-2026-01-01`),
  "model.canonical.stream": chunks("model", `${MODEL}-2026-01-01`),
  "alias.chat": body("model", ALIAS),
  "alias.stream": chunks("model", ALIAS),
  "alias.reasoning": body("model", "auto/reasoning"),
  // The alias answers; the name that it answers with does not.
  "alias.names-a-model": { when: says("Who are you?"), answer: refusal },
  "max_tokens.obeyed": sends({ max_tokens: undefined }),
  "max_tokens.obeyed.stream": sends({ max_tokens: undefined }),
  "stop.string": sends({ stop: undefined }),
  "stop.array": sends({ stop: ["zebra"] }),
  "tool_choice.default": sends({ tool_choice: "auto" }),
  "tool_choice.none": sends({ tool_choice: "auto" }),
  "tool_choice.named": sends({ tool_choice: { type: "function", function: { name: "get_time" } } }),
  "finish_reason.tool_calls": body("choices[].finish_reason", "stop"),
  "response_format.json_object": sends({ response_format: undefined }),
  "thinking.whole": noThought,
  "thinking.stream": chunks("choices[].delta.reasoning_content", undefined),
  "thinking.plain-model": body("choices[].message.reasoning_content", "Hm."),
  "logprobs.true": body("choices[].logprobs", null),
  "reply.content": body("choices[].message.content", "I will not."),
  "stream.content": chunks("choices[].delta.content", (value) =>
    typeof value === "string" ? "" : value,
  ),
});

const ofSample = sampled("spec", {
  answers: { when: ({ method }) => method === "DELETE", cut: true },
  "request-id.present": about(both(isHealth, isSampled), header("x-request-id", undefined)),
  "request-id.format": about(
    both(isHealth, isSampled),
    header("x-request-id", (id) => String(id).slice(0, -1)),
  ),
  "request-id.unique": wholes(ifGood(header("x-request-id", `req_${"0".repeat(32)}`))),
  "request-id.in-error": nowhere(error("request_id", "req_of_another")),

  "thinking.not-asked-for": reply("choices[].message.reasoning_content", "Hm."),
  "thinking.not-asked-for.stream": stream("choices[].delta.reasoning_content", (value, index) =>
    index === 0 ? "Hm." : value,
  ),
  "reply.json": wholes(ifGood((answer) => ({ ...answer, text: `${answer.text},` }))),
  ...spoiltFields("spec"),
  "chunk.choices": stream("choices", (value) =>
    JSON.stringify(value) === "[]" ? undefined : value,
  ),
  "chunk.choices.delta": stream("choices[].delta", (value) =>
    JSON.stringify(value) === "{}" ? undefined : value,
  ),
  "reply.id.unique": reply("id", "chatcmpl-1"),
  "usage.sum": reply("usage.total_tokens", increment),
  "usage.cache-sum": reply("usage.prompt_cache_miss_tokens", increment),

  "stream.media-type": streams(header("content-type", "text/plain")),
  "stream.lines": streams(
    blocks((events) => events.with(1, events[1]!.replace("data: ", "data:"))),
  ),
  "stream.json": streams(blocks((events) => events.toSpliced(1, 0, "data: ping"))),
  "stream.done": streams(without((event) => event === "data: [DONE]")),
  "chunk.id.same": stream("id", (value, index) => (index === 1 ? "other" : value)),
  "chunk.role.first": stream("choices[].delta.role", undefined),
  "chunk.role.once": stream("choices[].delta.role", (value, index) =>
    index === 1 ? "assistant" : value,
  ),
  "chunk.finish_reason.null": stream("choices[].finish_reason", (value, index) =>
    index === 1 ? "stop" : value,
  ),
  "chunk.finish_reason.last": stream("choices[].finish_reason", null),

  "error.json": nowhere(anyBody("detail", "There is nothing here.")),
  "error.message": nowhere(error("message", "")),
  "error.type": nowhere(error("type", null)),
  "error.code": nowhere(error("code", 404)),
  "error.request_id": nowhere(error("request_id", undefined)),
  "error.status": nowhere(status(502)),
  "error.any-status": nowhere(status(302)),

  "limit.exists": {
    when: ({ headers }) => headers.authorization === "Bearer sk-limited",
    forward: () => ({ headers: { authorization: "Bearer sk-demo" } }),
  },
  "limit.status": limited(status(403)),
  "limit.type": limited(error("type", "requests")),
  "limit.code": limited(error("code", "too_many_requests")),
  "limit.message": limited(error("message", (said) => String(said).replace("per-minute ", ""))),
});

const stated = [...ofChecks, ...ofSample];
export const specFaults: Faults = [...stated, ...others("spec", stated, opposite)];
