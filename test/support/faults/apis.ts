// Faults for the checks of the levels `spec`, `messages` and `responses`. A check that has none here
// is about a request that is to be accepted, or refused: the opposite is done.

import { CHECKS } from "../../../scripts/conformance/checks/all.ts";
import { parseJson } from "../../../scripts/conformance/client.ts";
import { first, type Json } from "../../../scripts/conformance/shapes.ts";
import type { Fault } from "../wrong-gateway.ts";
import {
  about,
  ALIAS,
  anyBody,
  blocks,
  body,
  both,
  change,
  chunks,
  eachOf,
  error,
  header,
  idInstead,
  ifGood,
  ifStatus,
  increment,
  isHealth,
  isSampled,
  isStream,
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
  status,
  stream,
  streams,
  text,
  wholes,
  without,
  type Change,
  type Edit,
  type Faults,
} from "./kit.ts";

const ID = `req_${"0123456789abcdef".repeat(2)}`;
let asked = 0;
const noThought: Fault["answer"] = body("choices[].message.reasoning_content", undefined);

const ofSpec = own("spec", {
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

const stated = [...ofSpec, ...ofSample];
export const specFaults: Faults = [...stated, ...others("spec", stated, opposite)];

const typeOf = (event: unknown): string => String(first(event, "type"));
const events = (edit: (events: unknown[]) => unknown[]): Edit =>
  blocks((texts) =>
    edit(texts.map((block) => parseJson(block.slice(block.indexOf("data: ") + 6)))).map(
      (event) => `event: ${typeOf(event)}\ndata: ${JSON.stringify(event)}`,
    ),
  );
/** Spoils a field of the events of one type. */
const event = (type: string, path: string, to: Change): Edit =>
  events((all) => all.map((each) => (typeOf(each) === type ? change(each, path, to) : each)));
const lacking = (type: string): Edit =>
  events((all) => all.filter((each) => typeOf(each) !== type));
const withoutField = (path: string) => body(path, undefined);

const fields = CHECKS.filter(({ id }) => id.startsWith("messages.reply.")).map(({ id, title }) => {
  const [path = ""] = title.split(" ");
  return [id.replace("messages.", ""), withoutField(path)];
});

const ofMessages = own("messages", {
  ...Object.fromEntries(fields),
  "stream.names": blocks((all) => all.map((block) => block.replace(/^event: \w+/, "event: other"))),
  "stream.order/stop": lacking("content_block_stop"),
  "stream.order/index": event("content_block_start", "index", 1),
  "stream.order/last": blocks((all) => [...all.slice(0, -2), all.at(-1)!, all.at(-2)!]),
  "stream.order/start": lacking("message_start"),
  "stream.text": { when: isStream, answer: event("content_block_delta", "delta.text", "x") },
  "stream.start/tokens": event("message_start", "message.usage", undefined),
  "stream.start/reason": event("message_start", "message.stop_reason", "end_turn"),
  "stream.start/content": event("message_start", "message.content", [{}]),
  "stream.end/reason": event("message_delta", "delta", undefined),
  "stream.end/tokens": event("message_delta", "usage", undefined),
  "tools.whole/input": body("content[].input", "{}"),
  "tools.whole/id": withoutField("content[].id"),
  "tools.whole/name": body("content[].name", "get_time"),
  "tools.whole/reason": body("stop_reason", "end_turn"),
  "tools.stream/name": event("content_block_start", "content_block.name", undefined),
  "tools.stream/arguments": event("content_block_delta", "delta.partial_json", "["),
  "thinking.block/type": body("content[].type", "text"),
  "thinking.block/signature": withoutField("content[].signature"),
  "thinking.block/empty": body("content[].thinking", ""),
  ...eachOf("messages.error.", {
    status: status(422),
    shape: anyBody("type", undefined),
    type: anyBody("error.type", "error"),
    message: anyBody("error.message", undefined),
    request_id: anyBody("request_id", "another"),
  }),
  count: body("input_tokens", 0),
  "models/type": withoutField("data[].type"),
  "models/name": withoutField("data[].display_name"),
  "models/more": body("has_more", true),
  "models/last": body("last_id", "another"),
});

export const messagesFaults: Faults = [
  ...ofMessages,
  ...others("messages", ofMessages, status(400)),
];

const sendsBack: Fault["when"] = ({ body: { input } }) => Array.isArray(input);
const again = { ...opposite, when: sendsBack };
const accepted = ifStatus(400, status(200));
const misnamed = ifStatus(400, error("param", "model"));
const thought: readonly Json[] = [{ type: "summary_text", text: "I think." }];

const ofResponses = own("responses", {
  "reply.object": body("id", "chatcmpl-1"),
  "reply.object/status": body("status", "in_progress"),
  "reply.object/model": body("model", "other"),
  "reply.message": body("output[].role", "user"),
  "reply.message/text": body("output[].content[].text", ""),
  "reply.message/type": body("output[].content[].type", "text"),
  "reply.usage": body("usage.total_tokens", increment),
  "reply.usage/details": body("usage.input_tokens_details", undefined),
  "reply.repeats": body("instructions", null),
  "reply.repeats/tools": body("tools", []),
  "incomplete.whole": body("status", "completed"),
  "incomplete.whole/why": body("incomplete_details", null),
  "incomplete.stream": event("response.incomplete", "type", "response.completed"),
  "format.schema": body("output[].content[].text", "Oslo"),
  "stream.names": ifGood(text((given) => given.replaceAll(/^event: .*\n/gm, ""))),
  "stream.numbers": event("response.output_text.delta", "sequence_number", increment),
  "stream.order": lacking("response.in_progress"),
  "stream.order/end": lacking("response.completed"),
  "stream.items": lacking("response.output_item.done"),
  "stream.items/id": event("response.output_item.done", "item.id", "other"),
  "stream.items/output": event("response.completed", "response.output", []),
  "stream.text": event("response.output_text.delta", "delta", (delta) => `${delta} `),
  "stream.parts": lacking("response.content_part.done"),
  "stream.parts/text": event("response.output_text.done", "text", "other"),
  "stream.usage": event("response.completed", "response.usage", null),
  "tools.call": body("output[].name", "other"),
  "tools.call/arguments": body("output[].arguments", "other"),
  "tools.stream": lacking("response.function_call_arguments.delta"),
  "tools.result": {
    when: ({ text: sent }) => sent.includes("function_call_output"),
    answer: body("output", []),
  },
  "tools.custom": body("output[].type", "function_call"),
  "tools.custom/input": body("output[].input", (input) => ({ input })),
  "tools.namespace": body("output[].namespace", undefined),
  "reasoning.summary": body("output[].summary", []),
  "reasoning.stream": lacking("response.reasoning_summary_text.delta"),
  "reasoning.hidden": body("output[].summary", thought),
  "reasoning.sealed": body("output[].encrypted_content", undefined),
  "reasoning.sealed/back": again,
  "reasoning.changed": again,
  "refused.store": accepted,
  "refused.store/param": misnamed,
  "refused.item": accepted,
  "refused.item/param": misnamed,
});

export const responsesFaults: Faults = [
  ...ofResponses,
  ...others("responses", ofResponses, opposite),
];
